"""Two calendars at once: which of them a call means, what a thread sees of them, and what happens there."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from hotplug.catalog import Calendar, Connection
from hotplug.connect import Link, Reply, speaks, typed_client
from hotplug.declare import Declaration, available, check
from hotplug.errors import Ambiguous
from hotplug.gateway.instances import Allowed, Instances, NotGiven
from hotplug.gateway.message import loads
from hotplug.profile.versions import Range
from hotplug.store import memory

from .test_speaking import HOUR, child, native

pytestmark = pytest.mark.anyio

INSTANCE = "tools.noetic/instance"


def everything(server: str, part: str) -> bool:
    return True


class Two:
    """A calendar with invitations, `work` (SQLite), and one without, `home` (a folder)."""

    def __init__(self, instances: Instances) -> None:
        self.instances = instances

    async def call(
        self,
        part: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        on: str | None = None,
        thread: str = "t_one",
        allowed: Allowed = everything,
        **more: Any,
    ) -> dict[str, Any]:
        meta = {INSTANCE: on} if on else {}
        return await self.instances.call(part, dict(arguments or {}), meta, thread=thread, allowed=allowed, **more)

    async def done(self, part: str, arguments: Mapping[str, Any] | None = None, **options: Any) -> Any:
        result = await self.call(part, arguments, **options)
        assert not result["isError"], result
        assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
        return result["structuredContent"]

    async def refused(self, part: str, arguments: Mapping[str, Any] | None = None, **options: Any) -> dict[str, Any]:
        result = await self.call(part, arguments, **options)
        assert result["isError"], result
        return result["structuredContent"]

    async def calendar(self, on: str, **options: Any) -> str:
        return (await self.done("calendar.calendars", on=on, **options))["calendars"][0]["calendar"]

    async def create(self, on: str, title: str, **options: Any) -> Any:
        where = await self.calendar(on, **options)
        return await self.done("calendar.create", {"calendar": where, "title": title, **HOUR}, on=on, **options)


@asynccontextmanager
async def opened(folder: Path, *, over: str = "here") -> AsyncIterator[Two]:
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(memory())
        if over == "here":
            work = await stack.enter_async_context(native("sqlite", folder, store, "work"))
        else:
            work, _ = await stack.enter_async_context(child("sqlite", folder, store))
        home = await stack.enter_async_context(native("folder", folder, store, "home"))
        yield Two(Instances([work, home]))


async def test_a_call_without_an_instance_is_ambiguous_and_one_with_it_goes_there(tmp_path: Path) -> None:
    async with opened(tmp_path) as two:
        error = await two.refused("calendar.calendars")
        assert error["code"] == "ambiguous"
        assert [one["id"] for one in error["details"]["instances"]] == ["work", "home"]
        assert all(one["title"] for one in error["details"]["instances"])
        await two.create("work", "At work")
        by_argument = await two.done(
            "calendar.search",
            {"instance": "work", "from": "2026-10-26T00:00:00Z", "to": "2026-10-27T00:00:00Z"},
        )
        assert [one["title"] for one in by_argument["events"]] == ["At work"]
        by_meta = await two.done(
            "calendar.search", {"from": "2026-10-26T00:00:00Z", "to": "2026-10-27T00:00:00Z"}, on="home"
        )
        assert by_meta["events"] == []


async def test_a_wrong_instance_and_two_different_ones_are_invalid(tmp_path: Path) -> None:
    async with opened(tmp_path) as two:
        for wrong in ("nowhere", "work/other", ""):
            error = await two.refused("calendar.calendars", {"instance": wrong})
            assert error["code"] == "invalid_argument"
            assert [one["id"] for one in error["details"]["instances"]] == ["work", "home"]
        assert (await two.refused("calendar.calendars", {"instance": 3}))["code"] == "invalid_argument"
        assert (await two.refused("calendar.calendars", {"instance": "home"}, on="work"))["code"] == "invalid_argument"
        assert await two.done("calendar.calendars", {"instance": "work"}, on="work")


async def test_a_ref_of_one_instance_is_unknown_to_the_other(tmp_path: Path) -> None:
    async with opened(tmp_path) as two:
        made = await two.create("work", "Plan")
        assert (await two.refused("calendar.get", {"event": made["event"]}, on="home"))["code"] == "not_found"
        assert (await two.done("calendar.get", {"event": made["event"]}, on="work"))["title"] == "Plan"


async def test_what_only_one_instance_has_is_unsupported_at_the_other(tmp_path: Path) -> None:
    async with opened(tmp_path) as two:
        where = await two.calendar("home")
        body = {"calendar": where, "title": "x", "participants": [{"email": "bo@example.org"}], **HOUR}
        error = await two.refused("calendar.create", body, on="home")
        assert (error["code"], error["details"]["facet"]) == ("unsupported", "invitations")
        error = await two.refused("calendar.rsvp", {"event": "x", "answer": "accepted"}, on="home")
        assert error["code"] == "unsupported"


async def test_a_thread_sees_only_the_instances_that_it_may_use(tmp_path: Path) -> None:
    def only_home(server: str, part: str) -> bool:
        return server == "home"

    def reading(server: str, part: str) -> bool:
        return server == "home" or part == "calendar.search"

    async with opened(tmp_path) as two:
        alone = {one.part: one for one in two.instances.tools(only_home)}
        assert "instance" not in loads(alone["calendar.create"].tool["inputSchema"])["properties"]
        assert alone["calendar.create"].tool == alone["calendar.create"].offers["home"].tool
        assert await two.done("calendar.calendars", allowed=only_home)
        assert (await two.refused("calendar.calendars", on="work", allowed=only_home))["code"] == "invalid_argument"
        nowhere = await two.refused("calendar.calendars", on="nowhere", allowed=only_home)
        forbidden = await two.refused("calendar.calendars", on="work", allowed=only_home)
        assert str(forbidden).replace("work", "nowhere") == str(nowhere)

        some = {one.part: one for one in two.instances.tools(reading)}
        assert [one.id for one in some["calendar.search"].instances] == ["work", "home"]
        assert [one.id for one in some["calendar.create"].instances] == ["home"]
        assert set(some["calendar.search"].offers) == {"work", "home"}


async def test_what_a_thread_may_not_use_is_as_what_does_not_exist(tmp_path: Path) -> None:
    def nothing(server: str, part: str) -> bool:
        return False

    def no_delete(server: str, part: str) -> bool:
        return part != "calendar.delete"

    async with opened(tmp_path) as two:
        assert two.instances.tools(nothing) == ()
        for part in ("calendar.create", "calendar.nonsense", "connection.describe", "connection.events"):
            with pytest.raises(NotGiven):
                await two.call(part, allowed=nothing)
        with pytest.raises(NotGiven):
            await two.call("calendar.nonsense")
        assert "calendar.delete" not in {one.part for one in two.instances.tools(no_delete)}
        forbidden = await two.refused("calendar.delete", {"event": "x"}, on="work", allowed=no_delete)
        absent = await two.refused("calendar.rsvp", {"event": "x"}, on="work", allowed=no_delete)
        assert (forbidden["code"], absent["code"]) == ("unsupported", "unsupported")
        assert two.instances.declaration(nothing).cards == ()


async def test_lists_are_in_a_stable_order_and_connection_parts_are_for_those_who_know_profiles(tmp_path: Path) -> None:
    async with opened(tmp_path) as two:
        plain = [one.part for one in two.instances.tools(everything)]
        assert plain == [one.part for one in two.instances.tools(everything)]
        assert not any(one.startswith("connection.") for one in plain)
        aware = [one.part for one in two.instances.tools(everything, aware=True)]
        assert {"connection.describe", "connection.events", "connection.window.open"} <= set(aware)
        assert [one for one in aware if not one.startswith("connection.")] == plain


@pytest.mark.parametrize("over", ["here", "stdio"])
async def test_what_is_declared_holds_by_the_tools_that_are_listed(tmp_path: Path, over: str) -> None:
    async with opened(tmp_path, over=over) as two:
        declaration = two.instances.declaration(everything)
        tools = [
            {key: loads(value) for key, value in one.tool.items()}
            for one in two.instances.tools(everything, aware=True)
        ]
        documents = {one.name: one.document() for one in (*Calendar.definition.lineage(), Connection.definition)}
        findings = check(declaration, documents, tools)
        assert available(findings), findings
        card = declaration.card("calendar")
        assert card is not None
        assert "invitations" not in card.facets
        assert "recurrence" in card.facets
        assert len(declaration.instances) == 2


@pytest.mark.parametrize("over", ["here", "stdio"])
async def test_describe_lists_the_instances_and_one_by_one_what_they_are(tmp_path: Path, over: str) -> None:
    name = "work" if over == "here" else "child"
    async with opened(tmp_path, over=over) as two:
        whole = await two.done("connection.describe")
        Connection.definition.all_parts["connection.describe"].output.read(whole)
        listed = whole["declaration"]["tools.noetic/profiles"]["instances"]
        assert [one["id"] for one in listed] == [name, "home"]
        one = await two.done("connection.describe", on=name)
        assert [each["id"] for each in one["declaration"]["tools.noetic/profiles"]["instances"]] == [name]
        [card] = [
            card
            for card in one["declaration"]["org.classprofiles/profiles"]["profiles"]
            if card["profile"] == "calendar"
        ]
        assert "invitations" in card["facets"]
        assert "aliases" not in one["declaration"]["tools.noetic/profiles"]

        def only_home(server: str, part: str) -> bool:
            return server == "home"

        alone = await two.done("connection.describe", allowed=only_home)
        assert name not in json.dumps(alone["declaration"])


@pytest.mark.parametrize("over", ["here", "stdio"])
async def test_events_come_from_one_instance_with_the_threads_own_refs(tmp_path: Path, over: str) -> None:
    name = "work" if over == "here" else "child"
    async with opened(tmp_path, over=over) as two:
        assert (await two.refused("connection.events"))["code"] == "ambiguous"
        start = (await two.done("connection.events", on=name))["cursor"]
        made = await two.create(name, "Plan")
        await two.create("home", "Elsewhere")
        for thread in ("t_one", "t_two"):
            page = await two.done("connection.events", {"cursor": start, "waitMs": 2000}, on=name, thread=thread)
            [event] = page["events"]
            assert event["type"] == "calendar.event.changed"
            assert event["instance"] == name
            assert event["actionId"] == made["receipt"]["actionId"]
            ref = event["payload"]["event"]
            assert ref in event["summary"]
            assert (ref == made["event"]) is (thread == "t_one")
            found = await two.done("calendar.get", {"event": ref}, on=name, thread=thread)
            assert found["title"] == "Plan"
        where = await two.calendar(name)
        for calendar, count in ((where, 1), ("nonsense", 0)):
            page = await two.done("connection.events", {"cursor": start, "where": {"calendar": calendar}}, on=name)
            assert len(page["events"]) == count


@pytest.mark.parametrize("over", ["here", "stdio"])
async def test_events_that_a_thread_may_not_have_are_never_told(tmp_path: Path, over: str) -> None:
    name = "work" if over == "here" else "child"

    def no_events(server: str, part: str) -> bool:
        return part != "calendar.event.changed"

    async with opened(tmp_path, over=over) as two:
        start = (await two.done("connection.events", on=name))["cursor"]
        await two.create(name, "Plan")
        for types in (None, ["calendar.event.changed"], ["calendar.nonsense"]):
            body = {"cursor": start, "waitMs": 300, **({"types": types} if types else {})}
            with anyio.fail_after(30):
                page = await two.done("connection.events", body, on=name, allowed=no_events)
            assert page["events"] == []


@pytest.mark.parametrize("over", ["here", "stdio"])
async def test_a_window_is_of_one_instance_and_of_one_thread(tmp_path: Path, over: str) -> None:
    name = "work" if over == "here" else "child"
    async with opened(tmp_path, over=over) as two:
        opened_ = await two.done("connection.window.open", {"budgetMs": 5000}, on=name)
        window = {"window": opened_["window"]}
        assert (await two.refused("connection.window.close", window, on=name, thread="t_two"))["code"] == "not_found"
        assert (await two.refused("connection.window.close", window, on="home"))["code"] == "not_found"
        closed = await two.done("connection.window.close", window, on=name)
        assert closed["closedBy"] == "ack"
        assert (await two.refused("connection.window.close", window, on=name))["code"] == "not_found"


async def test_one_bad_instance_does_not_touch_the_other(tmp_path: Path) -> None:
    bad = tmp_path / "bad"
    bad.mkdir()
    (bad / "calendar.db").write_text("somebody's notes")
    from hotplug.connect import parse_target
    from hotplug.gateway.config import ServerConfig
    from hotplug.gateway.speaking import speak

    async with memory() as store, native("folder", tmp_path, store, "home") as home:
        config = ServerConfig("work", parse_target(f"sqlite:///{bad}/calendar.db"), profiles=("calendar",))
        work = await speak(config, conversation=None, store=store)
        assert work is not None
        two = Two(Instances([work, home]))
        error = await two.refused("calendar.calendars", on="work")
        assert error["code"] == "unavailable"
        assert await two.calendar("home")
        assert (await two.refused("calendar.calendars"))["code"] == "ambiguous"
        whole = await two.done("connection.describe")
        assert "work" in whole["notes"]["instances"]
        alone = await two.done("connection.describe", on="work")
        assert alone["notes"]["instances"]["work"]["problem"]
        await work.aclose()


async def test_servers_come_and_go(tmp_path: Path) -> None:
    async with opened(tmp_path) as two:
        before = {one.part: one for one in two.instances.tools(everything)}
        two.instances.update(two.instances.speakers[1:])
        after = {one.part: one for one in two.instances.tools(everything)}
        assert [one.id for one in before["calendar.create"].instances] == ["work", "home"]
        assert [one.id for one in after["calendar.create"].instances] == ["home"]
        assert await two.done("calendar.calendars")


class Front:
    """What a front makes of instances for one thread, as the channel of a typed client: a fake."""

    target = "the gateway"

    def __init__(self, instances: Instances, thread: str) -> None:
        self.instances, self.thread = instances, thread

    @property
    def extensions(self) -> Mapping[str, Any]:
        return self.instances.declaration(everything).to_extensions()

    async def tools(self) -> list[dict[str, Any]]:
        listed = self.instances.tools(everything, aware=True)
        return [{key: loads(value) for key, value in one.tool.items()} for one in listed]

    async def call(
        self, tool: str, arguments: Mapping[str, Any], *, meta: Mapping[str, Any], timeout: float | None = None
    ) -> Reply:
        result = await self.instances.call(tool, dict(arguments), meta, thread=self.thread, allowed=everything)
        return Reply(result["structuredContent"], result["isError"], meta=result.get("_meta") or {})

    async def restore(self) -> None:
        """Nothing is lost here."""

    async def aclose(self) -> None:
        """Nothing to close."""


@pytest.mark.parametrize("over", ["here", "stdio"])
async def test_a_typed_client_works_with_several_instances_and_is_told_of_what_happens(
    tmp_path: Path, over: str
) -> None:
    name = "work" if over == "here" else "child"
    async with opened(tmp_path, over=over) as two:
        front = Front(two.instances, "t_one")
        spoken = speaks(
            Calendar, Range("^1"), Declaration.from_extensions(front.extensions), await front.tools(), target="gateway"
        )
        assert spoken.keeps_keys
        calendar = typed_client(Calendar, Link(front, spoken))
        with pytest.raises(Ambiguous) as caught:
            await calendar.calendars()
        ids = [one["id"] for one in caught.value.details["instances"]]
        assert ids == [name, "home"]
        for one in ids:
            there = calendar.using(instance=one)
            where = (await there.calendars()).calendars[0].calendar
            events = there.events(Calendar.EventChanged)
            told = asyncio.create_task(anext(aiter(events)))
            made = await there.create(calendar=where, title=one, **HOUR)
            async with asyncio.timeout(20):
                assert (await told).event == made.event
            await events.aclose()
            assert (await there.get(made.event)).title == one
