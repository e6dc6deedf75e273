"""Field reports that cross packages, each named after its report."""

from __future__ import annotations

from contextlib import aclosing
from pathlib import Path
from typing import Any

import anyio
import jsonschema
import pytest
from mcp import Client
from tests.conform.liars import ACTS, NeverDeletes, NeverStores, journey, served

from hotplug import connect
from hotplug.catalog import Calendar
from hotplug.catalog.connection import Connection
from hotplug.conform.journey import play
from hotplug.connect import McpSession, link_of
from hotplug.errors import ConnectionFailed, NotFound
from hotplug.profile.schema import error_or, subschemas
from hotplug.serve import attach, build
from hotplug.servers.calendar.server import FolderCalendar
from hotplug.store import memory
from hotplug.witness import CalendarFolder

from ..serve.proxy import through_a_proxy  # noqa: TID252  # tests are no package
from ..serve.shop import MyShop, Shelf, Shop  # noqa: TID252
from ..serve.team import Message, MyTeam, Team  # noqa: TID252
from ..serve.ways import listening, mcpserver  # noqa: TID252

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("profile", [Calendar, Connection, Shop])
def test_fr22_published_schemas_are_2020_12_and_complete_in_themselves(profile: Any) -> None:
    for part in profile.definition.parts.values():
        for schema in (part.input.schema, part.output.schema, error_or(part.output.schema)):
            jsonschema.Draft202012Validator.check_schema(schema)
            for node in subschemas(schema):
                reference = node.get("$ref")
                if reference is not None:
                    assert reference.removeprefix("#/$defs/") in schema["$defs"]
                assert "title" not in node or isinstance(node["title"], dict)
                options = node.get("anyOf", [])
                assert not any("anyOf" in option for option in options), "optional-or-null is one level deep"


async def test_fr28_equal_request_ids_of_fifty_clients_never_meet() -> None:
    class Slow(MyShop):
        waiting = 0
        all_here = anyio.Event()

        async def items(self, query: str | None = None) -> Shelf:
            self.waiting += 1
            if self.waiting == 50:
                self.all_here.set()
            await self.all_here.wait()
            raise NotFound(f"mark {query}")

    shop = Slow()
    answers: dict[str, str] = {}
    async with memory() as store:
        server, _ = build(shop, name="shop", store=store)
        async with listening(server.streamable_http_app()) as url:

            async def one(mark: str, era: Any) -> None:
                # Each session counts its requests from the same number.
                async with McpSession(f"{url}/mcp", era=era) as session:
                    result = await session.call("shop.items", {"query": mark})
                    answers[mark] = str(result.structured["message"])

            with anyio.fail_after(60):
                async with anyio.create_task_group() as tasks:
                    for number in range(50):
                        tasks.start_soon(one, str(number), "legacy" if number % 2 else "modern")
    assert answers == {str(number): f"mark {number}" for number in range(50)}


async def test_fr29_a_strict_client_sees_our_error_and_not_a_fault_of_its_form() -> None:
    async with memory() as store:
        server = mcpserver()
        attach(server, MyShop(), store=store)
        for mode in ("auto", "legacy"):
            async with Client(server, mode=mode) as client:
                listed = {tool.name: tool for tool in (await client.list_tools()).tools}
                result = await client.call_tool("shop.items", {"query": "raise conflict"})
                assert result.is_error
                schema = listed["shop.items"].output_schema
                assert schema is not None
                jsonschema.validate(result.structured_content, schema)
                good = await client.call_tool("shop.items", {})
                jsonschema.validate(good.structured_content, schema)
                assert not jsonschema.Draft202012Validator(schema).is_valid({"anything": "else"})


async def test_fr30_annotations_come_from_the_contract_and_never_claim_too_much() -> None:
    async with memory() as store:
        server = mcpserver()
        attach(server, MyShop(), store=store)
        async with McpSession(server) as session:
            for tool in (await session.list_tools()).tools:
                part = {**Shop.definition.parts, **Connection.definition.parts}.get(tool.name)
                if part is None:
                    continue
                assert tool.annotations["readOnlyHint"] is not part.flags.effects
                assert tool.annotations["idempotentHint"] is not part.flags.effects
                assert (tool.annotations.get("destructiveHint") is False) is (not part.flags.effects)


async def test_fr41_the_same_intention_under_one_key_is_one_event_over_restarts(tmp_path: Path) -> None:
    target = f"sqlite:///{tmp_path}/calendar.db"
    results: list[Any] = []
    for _ in range(3):
        async with connect(Calendar, target) as calendar:
            where = (await calendar.calendars()).calendars[0].calendar
            keyed = calendar.using(key="intention")
            made = await keyed.create(calendar=where, title="x", start="2026-06-11T17:00:00Z", duration="PT1H")
            results.append(made)
    assert results[0] == results[1] == results[2]
    async with connect(Calendar, target) as calendar:
        await calendar.delete(made.event)
        # Deleted, and yet the first intention's outcome is what it was: nothing is made again.
        assert (
            await calendar.using(key="intention").create(
                calendar=where, title="x", start="2026-06-11T17:00:00Z", duration="PT1H"
            )
            == results[0]
        )
        with pytest.raises(ConnectionFailed, match="was deleted"):
            await calendar.get(made.event)


async def test_fr25_events_of_a_calendar_are_replayed_from_a_cursor_over_a_restart(tmp_path: Path) -> None:
    target = f"sqlite:///{tmp_path}/calendar.db"
    async with connect(Calendar, target) as calendar, calendar.window() as window:
        where = (await calendar.calendars()).calendars[0].calendar
    async with connect(Calendar, target) as other:
        for title in ("a", "b"):
            await other.create(calendar=where, title=title, start="2026-06-11T17:00:00Z", duration="PT1H")
        made = await other.using(key="k").create(
            calendar=where, title="c", start="2026-06-11T17:00:00Z", duration="PT1H"
        )
        await other.delete(made.event)
    async with connect(Calendar, target) as calendar:
        seen: list[tuple[str, bool]] = []
        with anyio.fail_after(20):
            async for change in calendar.events(Calendar.EventChanged, cursor=window.cursor, calendar=where):
                seen.append((change.change, change.event == made.event))
                if len(seen) == 4:
                    break
        assert seen == [("created", False), ("created", False), ("created", True), ("deleted", True)]


async def test_fr40_a_deletion_is_failed_where_the_listing_still_has_it_and_unknown_where_the_listing_fails(
    tmp_path: Path,
) -> None:
    document = journey("find", "create", "delete")
    for root, listing, status, verdict in (
        ("kept", "kept", "failed", ("no", "assertion-failed")),
        ("unread", "nowhere", "passed", ("unknown", "coverage-impeached")),
    ):
        witness = CalendarFolder(tmp_path / listing)
        async with memory() as store, served(NeverDeletes(tmp_path / root), store) as calendar:
            outcome = await play(document, link_of(calendar), name="it", via="native", witness=witness)
        cell = outcome.cells[-1]
        assert cell.step == "delete"
        assert cell.status == status
        assert [(one.verdict, one.ground) for one in cell.claims] == [verdict]


async def test_fr37_what_was_accepted_is_verified_by_an_expectation_that_was_false_before(tmp_path: Path) -> None:
    there: dict[str, Any] = {"that": "there is one", "by": "witness", "state": "calendar.event.count = 1"}
    step = {**ACTS["create"], "claims": [{**there, "at_least": 1}], "within": "400ms"}
    root = tmp_path / "calendars"
    async with memory() as store, served(NeverStores(root), store) as calendar:
        link = link_of(calendar)
        idle = await play(journey("find", step), link, name="it", via="native", witness=CalendarFolder(root))
    assert idle.cells[-1].status == "failed"
    assert [one.verdict for one in idle.cells[-1].claims] == ["no"]
    async with memory() as store, served(FolderCalendar(root), store) as calendar:
        link = link_of(calendar)
        first = await play(journey("find", step), link, name="it", via="native", witness=CalendarFolder(root))
        touch = {"name": "look", "do": "calendar.calendars", "claims": step["claims"], "within": "400ms"}
        held = await play(journey(touch), link, name="it", via="native", witness=CalendarFolder(root))
    assert [(one.verdict, one.ground) for one in first.cells[-1].claims] == [("yes", "proved")]
    assert [(one.verdict, one.ground) for one in held.cells[-1].claims] == [("unknown", "already-true")]


@pytest.mark.parametrize("how", ["closed", "frozen"])
async def test_fr25_three_mentions_in_a_gap_each_told_as_two_kinds_with_two_ids_are_three_events(how: Any) -> None:
    server = MyTeam()
    got: list[str] = []
    with anyio.fail_after(60):
        async with through_a_proxy(Team, server, "http modern") as (team, proxy):

            async def listen() -> None:
                async with aclosing(team.events(Team.Said, Team.Mentioned)) as told:
                    async for one in told:
                        got.append(one.text)  # as they come
                        if one.text == "end":
                            return

            async def happen(name: str) -> None:
                await server.emit(Team.Said(message=Message(name), text=name))
                await server.emit(Team.Mentioned(message=Message(name), text=name, who="ada"))

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(listen)
                await happen("before")
                while not got:
                    await anyio.sleep(0.02)
                await proxy.cut(how)
                for name in ("one", "two", "three"):
                    await happen(name)
                while team.health().up:
                    await anyio.sleep(0.02)
                proxy.mend()
                await happen("end")
    assert got == ["before", "one", "two", "three", "end"]
