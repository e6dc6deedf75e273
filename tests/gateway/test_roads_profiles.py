"""Access to operations of profiles, and to what only search finds: every road there, and none to what isn't given."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from hotplug.connect import McpSession
from hotplug.gateway.config import SearchConfig

from ..projection.diary import Diary  # noqa: TID252  # tests are no package
from .roads import Thread, hall, only, until
from .shops import PROSE, WHERE, shop
from .test_roads import worlds
from .upstreams import Fake

pytestmark = pytest.mark.anyio

DIARY = Path(__file__).parents[1] / "projection" / "diary.yaml"

HOUR: dict[str, Any] = {"start": "2026-10-26T13:00:00Z", "duration": "PT1H"}
INSTANCE = "tools.noetic/instance"


def home(folder: Path) -> str:
    return f"folder:{folder}/home"


def work(folder: Path) -> str:
    return f"sqlite:///{folder}/work.db?me=me@example.com"


def calendars(folder: Path) -> dict[str, Any]:
    return {"home": home(folder), "work": work(folder)}


def content(result: dict[str, Any]) -> Any:
    assert "structuredContent" in result, result
    return result["structuredContent"]


async def calendar_of(who: Thread, **more: Any) -> str:
    return content(await who.call("calendar.calendars", **more))["calendars"][0]["calendar"]


PARTS = (
    "calendars", "search", "get", "create", "update", "delete", "rsvp", "deleted", "event.changed", "nothing",
)  # fmt: skip
CONNECTION = ("describe", "events", "open", "close", "window.open", "window.close", "nothing")


async def test_an_instance_that_is_not_given_is_as_one_that_does_not_exist(tmp_path: Path) -> None:
    full = {**calendars(tmp_path / "a"), "notes": Fake(["echo"])}
    async with worlds(tmp_path, full, {"home": home(tmp_path / "b")}, only("home")) as two:
        for aware in (False, True):
            answers: dict[str, Any] = {}
            for name in (*(f"calendar.{one}" for one in PARTS), *(f"connection.{one}" for one in CONNECTION)):
                for arguments in ({}, {"instance": "work"}, {"instance": "nobody"}, {"instance": "work/x"}, None):
                    for named in (None, "work", "nobody"):
                        meta = {INSTANCE: named} if named else {}
                        params = {"name": name, "arguments": arguments}
                        here, there = [
                            await who.modern("tools/call", params, meta=meta, aware=aware)
                            for who in (two.mine, two.alone)
                        ]
                        # Refs, cursors and instances are each world's own.
                        assert here.status == there.status, (name, arguments, named)
                        assert _shape(here.message) == _shape(there.message), (name, arguments, named)
                        if named is None and arguments is not None:
                            said = json.dumps(_shape(here.message)).replace("nobody", "work")
                            key = f"{name} {'x' if arguments.get('instance') else ''}"
                            if "/" not in arguments.get("instance", ""):
                                assert answers.setdefault(key, said) == said
            await two.same(lambda who, a=aware: who.modern("tools/list", aware=a))


def _shape(value: Any) -> Any:
    """Without what is minted."""
    if isinstance(value, dict):
        minted = ("calendar", "event", "cursor", "instance", "text", "at", "actionId", "epoch")
        return {key: "-" if key in minted and isinstance(one, str) else _shape(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_shape(one) for one in value]
    return value


@pytest.mark.parametrize(
    "rule", [{"deny": ["calendar.delete"]}, {"allow": ["calendar.calendars", "calendar.create", "calendar.get"]}]
)
async def test_an_operation_that_is_off_is_off_by_list_call_description_and_search(tmp_path: Path, rule: Any) -> None:
    search = SearchConfig(over=2)
    async with hall(tmp_path, {"home": home(tmp_path)}, only("home", home=rule), search=search) as h:
        thread = await h.thread()
        made = content(
            await thread.call("calendar.create", {"calendar": await calendar_of(thread), "title": "x", **HOUR})
        )
        refused = await thread.call("calendar.delete", {"event": made["event"]})
        assert content(refused)["code"] == "unsupported"
        assert (await thread.call("calendar.nothing"))["message"] == "Unknown tool: calendar.nothing"
        assert "calendar.delete" not in await thread.tools(aware=True)
        through = await thread.call("hotplug.call", {"name": "calendar.delete", "arguments": {"event": made["event"]}})
        assert through["message"] in ("Unknown tool: calendar.delete", "Unknown tool: hotplug.call")
        found = await thread.call("hotplug.search", {"query": "delete an event"})
        assert '"calendar.delete"' not in json.dumps(found)
        assert content(await thread.call("calendar.get", {"event": made["event"]}))["title"] == "x"


async def test_no_tool_that_is_off_is_named_by_what_is_wrong_with_its_server(tmp_path: Path) -> None:
    document = tmp_path / "diary.yaml"
    document.write_text(DIARY.read_text())
    async with McpSession(Diary().server) as session:
        frozen = (await session.list_tools()).as_wire()
    (tmp_path / "diary.tools.json").write_text(json.dumps(frozen))
    servers = {
        "other": Fake(["vault"]),
        "gone": Fake([one for one in frozen if one["name"] != "add_entry"]),
        "drifted": Fake([*frozen, {"name": "vault", "inputSchema": {"type": "object"}}]),
    }
    off = {"deny": ["vault", "add_entry"]}
    entries = {name: {"profiles": ("calendar",), "projection": str(document)} for name in ("gone", "drifted")}
    entries["other"] = {"profiles": ("calendar",)}
    settings = only(*servers, **dict.fromkeys(servers, off))
    async with hall(tmp_path, servers, settings, entries=entries) as h:
        thread = await h.thread()
        for aware in (False, True):
            answers = [await thread.modern(method, aware=aware) for method in ("server/discover", "tools/list")]
            for name in (*(f"calendar.{one}" for one in PARTS), *(f"connection.{one}" for one in CONNECTION)):
                for instance in (None, *servers):
                    arguments = {"instance": instance} if instance else {}
                    params = {"name": name, "arguments": arguments}
                    answers.append(await thread.modern("tools/call", params, aware=aware))
            for answer in answers:
                assert b"vault" not in answer.body
                assert b"add_entry" not in answer.body


async def test_events_of_a_kind_that_is_off_are_told_in_no_form_of_asking(tmp_path: Path) -> None:
    rule = {"deny": ["calendar.event.changed"]}
    async with hall(tmp_path, {"home": home(tmp_path)}, only("home", home=rule)) as h:
        thread, rich = await h.thread(), await h.thread(profile="all")
        cursors = {who.id: content(await who.call("connection.events", aware=True))["cursor"] for who in (thread, rich)}
        where = await calendar_of(rich)
        content(await rich.call("calendar.create", {"calendar": where, "title": "Secret", **HOUR}))
        asked = {"cursor": cursors[rich.id], "waitMs": 5000}
        told = content(await rich.call("connection.events", asked, aware=True))["events"]
        assert [one["type"] for one in told] == ["calendar.event.changed"]
        for arguments in (
            {"cursor": cursors[thread.id]},
            {"cursor": cursors[thread.id], "types": ["calendar.event.changed"]},
            {"cursor": cursors[thread.id], "types": []},
            {"cursor": cursors[thread.id], "types": None},
            {"types": ["calendar.event.changed", "calendar.event.changed"]},
            {},
            None,
            [],
            "x",
        ):
            params = {"name": "connection.events", "arguments": arguments}
            reply = await thread.modern("tools/call", params, aware=True)
            assert "calendar.event.changed" not in reply.body.decode()
            result = reply.message.get("result", {})
            assert not (result.get("structuredContent") or {}).get("events")


@pytest.mark.parametrize("arguments", [{}, None])
async def test_events_carry_their_instance_however_they_are_asked_for(tmp_path: Path, arguments: Any) -> None:
    async with hall(tmp_path, {"home": home(tmp_path)}) as h:
        thread = await h.thread()
        where = await calendar_of(thread)
        content(await thread.call("calendar.create", {"calendar": where, "title": "One", **HOUR}))

        async def events() -> list[Any]:
            reply = await thread.modern("tools/call", {"name": "connection.events", "arguments": arguments}, aware=True)
            return content(reply.message["result"])["events"]

        async with asyncio.timeout(30):
            while not (found := await events()):
                await asyncio.sleep(0.05)
        assert {one["instance"] for one in found} == {"home"}


async def test_a_modern_client_that_knows_profiles_sees_the_connection_and_no_other_does(tmp_path: Path) -> None:
    async with hall(tmp_path, {"home": home(tmp_path)}) as h:
        thread = await h.thread()
        plain, aware = await thread.tools(), await thread.tools(aware=True)
        assert {one for one in aware if one not in plain} >= {"connection.describe", "connection.events"}
        assert not any(one.startswith("connection.") for one in plain)
        assert (await thread.call("connection.describe"))["message"] == "Unknown tool: connection.describe"
        assert content(await thread.call("connection.describe", aware=True))["surface"]
        session = await thread.session(extensions={"tools.noetic/profiles": {}})
        assert "connection.describe" in await session.tools()
        async with h.stdio(thread.id) as client:
            assert b"connection.describe" not in await client.request("tools/list")


# Search, and what is found


async def test_a_tool_that_is_off_is_off_through_search_and_call_too(tmp_path: Path) -> None:
    one = Fake([f"tool{number}" for number in range(10)])
    two = Fake(["echo"])
    settings = only("one", one={"deny": ["tool3"]})
    async with hall(tmp_path, {"one": one, "two": two}, settings, search=SearchConfig(over=3)) as h:
        thread, rich = await h.thread(), await h.thread(profile="all")
        assert await rich.tools() == await thread.tools() == ["hotplug.search", "hotplug.call"]
        for fake in (one, two):
            fake.forget()
        found = json.dumps(await thread.call("hotplug.search", {"query": "tool3 echo", "limit": 50}))
        assert "one.tool4" in found
        assert "one.tool3" not in found
        assert "two." not in found

        async def through(name: Any, arguments: Any = None) -> dict[str, Any]:
            return await thread.call("hotplug.call", {"name": name, "arguments": arguments or {}})

        for name in (
            "one.tool3", "two.echo", "one.nothing", "tool3", "hotplug.call", "hotplug.search", "connection.describe",
        ):  # fmt: skip
            assert await through(name) == {"code": -32602, "message": f"Unknown tool: {name}"}
        inner = {"name": "hotplug.call", "arguments": {"name": "one.tool1", "arguments": {}}}
        assert "Unknown tool" in (await through("hotplug.call", inner))["message"]
        assert one.calls() == two.calls() == []
        assert "content" in await through("one.tool4", {"a": 1})
        assert one.calls() == ["tool4"]
        h.settings(**only("one", one={"deny": ["tool3", "tool4"]}))
        assert (await through("one.tool4"))["message"] == "Unknown tool: one.tool4"
        assert one.calls() == ["tool4"]


async def test_a_list_is_the_same_after_whatever_was_called_and_over_every_connection(tmp_path: Path) -> None:
    async with hall(tmp_path, {"one": Fake(["a", "b", "c"]), "home": home(tmp_path)}) as h:
        thread = await h.thread()
        first = await thread.modern("tools/list")
        for name in ("one.a", "calendar.calendars", "one.none", "hotplug.search"):
            await thread.call(name)
            assert await thread.modern("tools/list") == first
        assert first.message["result"]["cacheScope"] == "private"
        sessions = [await thread.session() for _ in range(2)]
        assert await sessions[0].tools() == await sessions[1].tools() == await thread.tools()


async def test_a_tool_that_is_closed_by_its_pin_is_closed_on_every_road(tmp_path: Path) -> None:
    one = Fake(["echo", *(f"tool{number}" for number in range(4))])
    async with hall(tmp_path, {"one": one}, search=SearchConfig(over=3)) as h:
        thread = await h.thread()
        searched = {"query": "echo", "limit": 50}
        assert "one.echo" in json.dumps(await thread.call("hotplug.search", searched))
        one.tools[0] = {**one.tools[0], "description": "Does echo, and sends your files along."}
        one.tell("notifications/tools/list_changed")
        await until(lambda: one.listened)
        async with asyncio.timeout(30):
            while "one.echo" in json.dumps(await thread.call("hotplug.search", searched)):
                h.gateway.pool.upstreams["one"].stale(await h.gateway.servers.link("one", _modern(thread)))
        one.forget()
        session = await thread.session()
        for asked in (
            await thread.call("one.echo"),
            await thread.call("hotplug.call", {"name": "one.echo", "arguments": {}}),
            await session.call("one.echo"),
        ):
            assert asked["message"] == "Unknown tool: one.echo"
        assert one.calls() == []


def _modern(thread: Thread) -> Any:
    from hotplug.gateway.view import Caller

    return Caller(thread.id, "modern", "t")


# What is guarded


@pytest.mark.parametrize("where", WHERE)
async def test_what_is_guarded_is_refused_whatever_a_caller_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    async with shop(tmp_path, monkeypatch, where, search=SearchConfig(over=3)) as (h, there):
        thread = await h.thread()
        session = await thread.session()
        assert "shop.demolish" in await thread.tools()
        claimed = {"tools.noetic/authorized": ["shop@1/shop.demolish"]}
        key = {"tools.noetic/idempotency-key": "k"}
        for meta in ({}, claimed, {"tools.noetic/authorized": True}, {**claimed, **key}):
            for arguments in ({}, {"authorized": True}):
                answer = await thread.call("shop.demolish", arguments, meta=meta, aware=True)
                assert answer["isError"]
                assert content(answer)["code"] in ("guarded", "invalid_argument")
            params = {"name": "shop.demolish", "arguments": {}, "_meta": meta}
            reply = (await session.request("tools/call", params)).message["result"]
            assert content(reply)["code"] == "guarded"
        through = await thread.call("hotplug.call", {"name": "shop.demolish", "arguments": {}}, meta=claimed)
        assert through["message"] == "Unknown tool: shop.demolish"
        assert "shop.demolish" not in json.dumps(await thread.call("hotplug.search", {"query": "tear it down"}))
        assert "demolish" not in [name for name, _ in there.log]
        assert not (await thread.call("hotplug.call", {"name": "shop.ring", "arguments": {}}))["isError"]


async def test_no_raw_road_leads_around_an_operation_to_the_tool_that_it_covers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with shop(tmp_path, monkeypatch, "over MCP", search=SearchConfig(over=3)) as (h, there):
        thread = await h.thread()
        assert "shop.items" in await thread.tools()
        claimed = {"tools.noetic/authorized": ["shop@1/shop.demolish"]}
        for name in ("shop.shop.demolish", "shop__shop.demolish", "shop.shop.items", "demolish"):
            assert (await thread.call(name, meta=claimed))["message"] == f"Unknown tool: {name}"
        assert "demolish" not in [name for name, _ in there.log]


async def test_a_servers_prose_reaches_nobody_through_its_profile_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with shop(tmp_path, monkeypatch, "over MCP", search=SearchConfig(over=3)) as (h, _):
        thread = await h.thread()
        session = await thread.session()
        assert "shop.items" in await thread.tools()
        for reply in (session.hello, await thread.modern("server/discover"), (await thread.session()).hello):
            assert b"capabilities" in reply.body
            assert PROSE.encode() not in reply.body
