"""A projection as it runs: over a real MCP server with the faults that real servers have, and the runtime in front."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from hotplug.catalog import Calendar
from hotplug.connect import Link, McpChannel, McpSession, speaks, typed_client
from hotplug.door import MemoryChannel
from hotplug.errors import (
    Internal,
    InvalidArgument,
    NotFound,
    PermissionDenied,
    ProjectionError,
    Unavailable,
    Unsupported,
)
from hotplug.profile.versions import Range
from hotplug.projection import ProjectedProvider, read
from hotplug.serve import Runtime
from hotplug.store import Store, memory, open_store

from .diary import BIG, Diary

pytestmark = pytest.mark.anyio

DOCUMENT = Path(__file__).with_name("diary.yaml")
MEETING: dict[str, Any] = {"title": "Plan", "start": "2026-10-26T14:00:00+01:00", "duration": "PT1H"}


@asynccontextmanager
async def opened(
    diary: Diary, store: Store, *, frozen: list[dict[str, Any]] | None = None, **changes: Any
) -> AsyncIterator[Calendar]:
    source = read(DOCUMENT)
    if changes:
        source = replace(source, document=source.document.model_copy(update=changes))
    session = McpSession(diary.server)
    await session.start()
    channel = McpChannel(session)
    tools = frozen if frozen is not None else [dict(tool) for tool in await channel.tools()]
    provider = ProjectedProvider(source, Calendar, channel, tools=tools, title="diary", path=DOCUMENT)
    runtime = Runtime(provider, store=store, identity="diary")
    async with runtime.opened():
        front = MemoryChannel(runtime, "diary")
        found = speaks(Calendar, Range("^1"), runtime.declaration, await front.tools(), target="diary")
        yield typed_client(Calendar, Link(front, found))


async def main_of(calendar: Calendar) -> Any:
    return (await calendar.calendars()).calendars[0].calendar


async def test_fr10_an_id_that_is_a_large_number_reaches_the_same_thing_with_all_its_digits() -> None:
    diary = Diary()
    async with memory() as store, opened(diary, store) as calendar:
        made = await calendar.create(calendar=await main_of(calendar), **MEETING)
        other = await calendar.create(calendar=await main_of(calendar), **{**MEETING, "title": "Other"})
        await calendar.update(made.event, {"title": "Plans"})
        await calendar.delete(other.event)

        assert {number: entry["head"] for number, entry in diary.entries.items()} == {BIG: "Plans"}
        assert (await calendar.get(made.event)).title == "Plans"


async def test_one_call_for_each_calendar_gives_each_answer_with_its_item() -> None:
    diary = Diary()
    async with memory() as store, opened(diary, store) as calendar:
        main, old = [one.calendar for one in (await calendar.calendars()).calendars]
        await calendar.create(calendar=main, **MEETING)
        await calendar.create(calendar=old, **{**MEETING, "title": "Old plan"})
        found = (await calendar.search("2026-10-26T00:00:00Z", "2026-10-27T00:00:00Z")).events

        assert {event.title: event.calendar for event in found} == {"Plan": main, "Old plan": old}
        assert [event.utc_start for event in found] == ["2026-10-26T13:00:00Z"] * 2
        only = await calendar.search("2026-10-26T00:00:00Z", "2026-10-27T00:00:00Z", query="old")
        assert [event.title for event in only.events] == ["Old plan"]


async def test_what_cannot_be_kept_is_refused_before_anything_is_sent() -> None:
    diary = Diary()
    async with memory() as store, opened(diary, store) as calendar:
        main = await main_of(calendar)
        with pytest.raises(Unsupported) as caught:
            await calendar.create(
                calendar=main, title="x", start="2026-10-26T09:00:00", time_zone="Europe/Berlin", duration="PT1H"
            )
        assert caught.value.details["lost"] == ["timeZone", "showWithoutTime"]
        with pytest.raises(InvalidArgument, match="zone"):
            await calendar.create(calendar=main, title="x", start="2026-10-26T09:00:00", duration="PT1H")
        assert not diary.entries
        assert not [tool for tool, _ in diary.calls if tool == "add_entry"]


async def test_a_loss_that_the_caller_names_is_let_through() -> None:
    diary = Diary()
    async with memory() as store, opened(diary, store) as calendar:
        await calendar.create(
            calendar=await main_of(calendar),
            title="x",
            start="2026-10-26T09:00:00",
            time_zone="Europe/Berlin",
            duration="PT1H",
            accept=["timeZone", "showWithoutTime"],
        )
        assert [entry["begin"] for entry in diary.entries.values()] == ["2026-10-26T08:00:00Z"]


async def test_fr15_what_the_server_accepted_and_did_not_keep_is_no_success_and_names_the_field() -> None:
    diary = Diary()
    diary.fault["add_entry"] = "forgets"
    async with memory() as store, opened(diary, store) as calendar:
        with pytest.raises(Internal, match="location") as caught:
            await calendar.create(calendar=await main_of(calendar), location="Room 1", **MEETING)
        assert caught.value.details["state"] == "unknown"


async def test_a_failure_after_the_act_is_not_done_again_under_its_key() -> None:
    diary = Diary()
    async with memory() as store, opened(diary, store) as calendar:
        main = await main_of(calendar)
        keyed = calendar.using(key="once")
        diary.fault["entries_of"] = "down"
        for _ in range(3):
            with pytest.raises(Unavailable) as caught:
                await keyed.create(calendar=main, **MEETING)
            assert caught.value.details["state"] == "unknown"
        assert len(diary.entries) == 1


async def test_a_refusal_of_the_upstream_leaves_its_key_free() -> None:
    diary = Diary()
    diary.fault["add_entry"] = "refused"
    async with memory() as store, opened(diary, store) as calendar:
        main = await main_of(calendar)
        keyed = calendar.using(key="once")
        with pytest.raises(PermissionDenied, match="locked"):
            await keyed.create(calendar=main, **MEETING)
        diary.fault.clear()
        await keyed.create(calendar=main, **MEETING)
        assert len(diary.entries) == 1


async def test_fr18_failure_is_decided_by_the_declared_rule_and_keeps_the_reason() -> None:
    diary = Diary()
    async with memory() as store, opened(diary, store) as calendar:
        made = await calendar.create(calendar=await main_of(calendar), **{**MEETING, "title": "Error: 404"})
        assert (await calendar.get(made.event)).title == "Error: 404"
        diary.fault["entries_of"] = "down"
        with pytest.raises(Unavailable, match="no session"):
            await calendar.get(made.event)


async def test_an_answer_that_cannot_be_read_is_internal_with_its_text_and_never_empty() -> None:
    diary = Diary()
    diary.fault["entries_of"] = "noise"
    async with memory() as store, opened(diary, store) as calendar:
        with pytest.raises(Internal) as caught:
            await calendar.search("2026-10-26T00:00:00Z", "2026-10-27T00:00:00Z")
        assert "Bad gateway" in str(caught.value.details)
        assert "state" not in caught.value.details


async def test_an_unreadable_answer_of_an_act_says_that_it_may_have_been_done() -> None:
    diary = Diary()
    diary.fault["add_entry"] = "mumbles"
    async with memory() as store, opened(diary, store) as calendar:
        with pytest.raises(Internal) as caught:
            await calendar.create(calendar=await main_of(calendar), **MEETING)
        assert caught.value.details["state"] == "unknown"
        assert len(diary.entries) == 1


async def test_refs_hold_over_restarts_and_name_nothing_elsewhere(tmp_path: Path) -> None:
    diary = Diary()
    url = f"sqlite:///{tmp_path / 'store.db'}"
    async with open_store(url) as store, opened(diary, store) as calendar:
        made = await calendar.create(calendar=await main_of(calendar), **MEETING)
    async with open_store(url) as store, opened(diary, store) as calendar:
        assert (await calendar.get(made.event)).title == "Plan"
        with pytest.raises(NotFound):
            await calendar.get(type(made.event)(made.event[:-2] + "AA"))
    async with memory() as store, opened(diary, store) as calendar:
        with pytest.raises(NotFound):
            await calendar.get(made.event)


async def test_a_second_delete_is_not_found() -> None:
    diary = Diary()
    async with memory() as store, opened(diary, store) as calendar:
        made = await calendar.create(calendar=await main_of(calendar), **MEETING)
        await calendar.delete(made.event)
        with pytest.raises(NotFound):
            await calendar.delete(made.event)
        with pytest.raises(NotFound, match="no such entry"):
            await calendar.get(made.event)


async def _tools(diary: Diary) -> list[dict[str, Any]]:
    async with McpSession(diary.server) as session:
        return [dict(tool) for tool in await McpChannel(session).tools()]


async def test_a_mapped_tool_that_changed_makes_the_projection_unavailable_and_says_which() -> None:
    diary = Diary()
    frozen = await _tools(diary)
    changed = [{**tool, "inputSchema": {"type": "object"}} if tool["name"] == "add_entry" else tool for tool in frozen]
    async with memory() as store, opened(diary, store, frozen=changed) as calendar:
        with pytest.raises(Unavailable, match="add_entry"):
            await calendar.calendars()


async def test_prose_that_changed_and_tools_that_are_new_only_show_in_the_description() -> None:
    diary = Diary()
    frozen = [{**tool, "description": "Other words."} for tool in await _tools(diary)]
    diary.server.add_tool(_new_tool, structured_output=False)
    async with memory() as store, opened(diary, store, frozen=frozen) as calendar:
        assert (await calendar.calendars()).calendars
        assert (await calendar.describe())["notes"]["drift"]["added"] == ["_new_tool"]


async def _new_tool() -> str:
    """Something new."""
    return "new"


async def test_describe_gives_the_projection_and_what_becomes_of_each_tool() -> None:
    diary = Diary()
    async with memory() as store, opened(diary, store) as calendar:
        described = await calendar.describe()
        cards = described["declaration"]["org.classprofiles/profiles"]["profiles"]
        card = next(one for one in cards if one["profile"] == "calendar")

        assert (card["via"], card["projection"]["id"]) == ("projected", "test.hotplug.diary")
        assert described["notes"]["coverage"]["add_entry"] == {"state": "mapped"}
        assert {one["part"] for one in described["missing"]} >= {"calendar.rsvp", "calendar.deleted"}
        assert all(one["without"] for one in described["missing"])


async def test_fr25_who_listens_for_what_a_projection_cannot_tell_is_told_so_and_does_not_wait() -> None:
    async with memory() as store, opened(Diary(), store) as calendar:
        with anyio.fail_after(10), pytest.raises(Unsupported, match="Changes made by others show only when one looks"):
            await anext(calendar.events(Calendar.EventChanged))
        assert calendar.health().state == "down"


async def test_a_projection_without_a_core_operation_is_refused() -> None:
    operations = {name: one for name, one in read(DOCUMENT).document.operations.items() if name != "calendar.get"}
    with pytest.raises(ProjectionError, match=r"calendar\.get"):
        async with memory() as store, opened(Diary(), store, operations=operations):
            pass
