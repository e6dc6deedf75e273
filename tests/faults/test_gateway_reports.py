"""Field reports through the whole gateway: FR-23 to FR-31, FR-44, FR-47, FR-51 to FR-57 and FR-61."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import hotplug
from hotplug.access import Access, explain
from hotplug.connect import CommandTarget
from hotplug.gateway.config import SearchConfig, ServerConfig
from hotplug.gateway.message import split
from hotplug.testing.odd import odd_app

from ..gateway.roads import META, Thread, hall, only, until  # noqa: TID252  # tests are no package
from ..gateway.upstreams import Fake, serving, tool  # noqa: TID252  # tests are no package

pytestmark = pytest.mark.anyio

CHILDREN = Path(__file__).parents[1] / "gateway" / "children"
HOUR: dict[str, Any] = {"start": "2026-10-26T13:00:00Z", "duration": "PT1H"}
ODD = CommandTarget(
    (sys.executable, "-m", "hotplug.testing.odd"), env={"PYTHONPATH": str(Path(hotplug.__file__).parents[1])}
)


class Child:
    """A script of the pool's tests as a server, and what it wrote down."""

    def __init__(self, folder: Path, script: str, *arguments: str, **more: Any) -> None:
        self.record = folder / f"{script}.record"
        argv = (sys.executable, str(CHILDREN / f"{script}.py"), str(self.record), *arguments)
        self.config = ServerConfig("s", CommandTarget(argv), **more)

    def count(self, line: str) -> int:
        return self.record.read_text().splitlines().count(line) if self.record.exists() else 0


def content(result: dict[str, Any]) -> Any:
    assert "structuredContent" in result, result
    return result["structuredContent"]


# FR-23


async def test_fr_23_a_server_that_did_it_and_hung_up_did_it_once_and_serves_on(tmp_path: Path) -> None:
    upstream = Fake(["echo", tool("drop", annotations={"readOnlyHint": True, "idempotentHint": True})])
    async with hall(tmp_path, {"s": upstream}) as h:
        thread = await h.thread()
        session = await thread.session()
        for who in (thread, session):
            upstream.forget()
            failed = await who.call("s.drop")
            assert failed["data"]["code"] == "disconnected"
            assert failed["data"]["details"] == {"state": "unknown"}
            assert upstream.calls() == ["drop"]
            assert "content" in await who.call("s.echo")


async def test_fr_23_a_child_that_died_in_a_call_is_started_again_and_the_call_is_not(tmp_path: Path) -> None:
    child = Child(tmp_path, "plain")
    async with hall(tmp_path, {"s": child.config}) as h:
        thread = await h.thread()
        failed = await thread.call("s.crash")
        assert failed["data"]["details"] == {"state": "unknown"}
        assert child.count("tools/call") == 1
        async with asyncio.timeout(20):
            while "content" not in (await thread.call("s.echo")):
                await asyncio.sleep(0.05)


async def test_fr_23_an_error_that_a_tool_answers_is_no_lost_connection(tmp_path: Path) -> None:
    async with hall(tmp_path, {"odd": odd_app()}) as h:
        thread = await h.thread()
        session = await thread.session()
        for who in (thread, session):
            assert (await who.call("odd.refuse", {"code": -32602}))["code"] == -32602
            assert (await who.call("odd.fail"))["isError"]


# FR-24


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_fr_24_every_page_is_read_and_a_removed_tool_is_refused_by_us(tmp_path: Path, era: str) -> None:
    child = Child(tmp_path, "many_tools", era)
    async with hall(tmp_path, {"s": child.config}, search=SearchConfig(None)) as h:
        thread = await h.thread()
        assert len(await thread.tools()) == 123
        await thread.call("s.remove", {"name": "t7"})
        async with asyncio.timeout(10):
            while "s.t7" in await thread.tools():
                await asyncio.sleep(0.02)
        before = child.count("tools/call")
        assert (await thread.call("s.t7"))["message"] == "Unknown tool: s.t7"
        assert child.count("tools/call") == before


async def test_fr_24_a_page_that_fails_makes_the_list_incomplete_and_that_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    child = Child(tmp_path, "many_tools", "modern", "broken")
    async with hall(tmp_path, {"s": child.config}, search=SearchConfig(None)) as h:
        thread = await h.thread()
        assert len(await thread.tools()) == 80
        assert "what s lists is incomplete" in caplog.text
        assert "database is locked" in caplog.text
        assert "content" in await thread.call("s.t3")


# FR-25


async def test_fr_25_what_happened_in_a_gap_comes_once_and_in_order(tmp_path: Path) -> None:
    async with hall(tmp_path, {"home": f"folder:{tmp_path}/home"}) as h:
        thread = await h.thread()
        cursor = content(await thread.call("connection.events", aware=True))["cursor"]
        where = content(await thread.call("calendar.calendars"))["calendars"][0]["calendar"]
        titles = [f"In the gap {number}" for number in range(3)]
        made = [
            content(await thread.call("calendar.create", {"calendar": where, "title": title, **HOUR}))["event"]
            for title in titles
        ]
        seen: list[str] = []
        async with asyncio.timeout(20):
            while len(seen) < 3:
                asked = {"cursor": cursor, "waitMs": 2000}
                found = content(await thread.call("connection.events", asked, aware=True))
                assert not found.get("missed")
                seen += [one["payload"]["event"] for one in found["events"]]
                cursor = found["cursor"]
        assert seen == made
        assert content(await thread.call("connection.events", {"cursor": cursor}, aware=True))["events"] == []


# FR-26, FR-27


@pytest.mark.parametrize(
    "script",
    [
        ("old_refuses_discover", "-32601"),
        ("old_refuses_discover", "-32602"),
        ("old_ignores_discover",),
        ("old_exits_on_discover",),
    ],
)
async def test_fr_26_an_old_server_is_told_by_what_it_does_whoever_asks_it(
    tmp_path: Path, script: Sequence[str]
) -> None:
    child = Child(tmp_path, *script)
    async with hall(tmp_path, {"s": child.config}) as h:
        thread = await h.thread()
        assert "s.echo" in await thread.tools()
        assert "content" in await thread.call("s.echo", {"a": 1})
        session = await thread.session()
        assert "content" in await session.call("s.echo", {"a": 1})
        assert child.count("server/discover") == 1


async def test_fr_26_http_400_at_the_probe_means_the_old_era_too(tmp_path: Path) -> None:
    old = Fake(["echo"])

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if (b"mcp-protocol-version", b"2026-07-28") in scope.get("headers", ()):
            await send({"type": "http.response.start", "status": 400, "headers": [(b"content-type", b"text/plain")]})
            await send({"type": "http.response.body", "body": b"Bad Request: unsupported protocol version"})
            return
        await old(scope, receive, send)

    async with hall(tmp_path, {"s": app}) as h:
        thread = await h.thread()
        assert "content" in await thread.call("s.echo")


async def test_fr_26_a_server_of_unknown_revisions_costs_itself_alone_and_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with hall(tmp_path, {"s": Child(tmp_path, "from_the_future").config, "good": Fake(["echo"])}) as h:
        thread = await h.thread()
        assert await thread.tools() == ["good.echo"]
        assert "2031-01-01" in caplog.text


async def test_fr_27_what_is_declared_and_missing_and_noise_cost_nothing_else(tmp_path: Path) -> None:
    much = Child(tmp_path, "declares_too_much", "both")
    servers = {"s": much.config, "noisy": ServerConfig("noisy", Child(tmp_path, "noisy").config.target)}
    async with hall(tmp_path, servers) as h:
        thread = await h.thread()
        async with asyncio.timeout(15):
            assert {"s.echo", "noisy.echo"} <= set(await thread.tools())
            assert (await thread.modern("resources/list")).message["result"]["resources"] == []
            assert (await thread.modern("prompts/list")).message["result"]["prompts"] == []
            assert "content" in await thread.call("noisy.echo")
            assert "content" in await thread.call("s.echo")


# FR-28


async def test_fr_28_fifty_clients_with_one_id_each_get_their_own_answers_and_progress(tmp_path: Path) -> None:
    shared = Child(tmp_path, "marks", share="all")
    async with hall(tmp_path, {"s": shared.config}) as h:
        threads = [await h.thread() for _ in range(5)]
        sessions = [await threads[number % 5].session() for number in range(25)]

        async def modern(number: int) -> None:
            params = {"name": "s.mark", "arguments": {"mark": f"m{number}"}}
            reply = await threads[number % 5].modern("tools/call", params, meta={"progressToken": 1}, id_=1)
            _own(reply.messages, f"m{number}")

        async def legacy(number: int) -> None:
            params = {"name": "s.mark", "arguments": {"mark": f"l{number}"}, "_meta": {"progressToken": 1}}
            _own((await sessions[number].request("tools/call", params, id_=1)).messages, f"l{number}")

        await asyncio.gather(*(modern(number) for number in range(25)), *(legacy(number) for number in range(25)))
        assert shared.count("tools/call") == 50


def _own(messages: list[dict[str, Any]], mark: str) -> None:
    assert [one["params"]["message"] for one in messages[:-1]] == [mark, mark]
    assert [one["params"]["progressToken"] for one in messages[:-1]] == [1, 1]
    assert messages[-1]["id"] == 1
    assert messages[-1]["result"]["content"] == [{"type": "text", "text": mark}]


# FR-29, FR-30


async def test_fr_29_a_failure_and_a_success_both_hold_to_the_schema_that_is_listed(tmp_path: Path) -> None:
    async with hall(tmp_path, {"home": f"folder:{tmp_path}/home"}) as h:
        thread = await h.thread()
        listed = {one["name"]: one for one in (await thread.modern("tools/list")).message["result"]["tools"]}
        good = await thread.call("calendar.calendars")
        bad = await thread.call("calendar.get", {"event": "no such thing"})
        assert (good["isError"], bad["isError"]) == (False, True)
        assert content(bad)["code"] == "not_found"
        for name, result in (("calendar.calendars", good), ("calendar.get", bad)):
            jsonschema.validate(content(result), listed[name]["outputSchema"])


async def test_fr_30_what_a_server_says_of_its_tools_decides_neither_access_nor_a_second_try(tmp_path: Path) -> None:
    stamp = {"readOnlyHint": True, "idempotentHint": True, "destructiveHint": False, "openWorldHint": False}
    upstream = Fake([tool(name, annotations=stamp) for name in ("drop", "write", "read")])
    async with hall(tmp_path, {"s": upstream}, only("s", s={"allow": ["read", "drop"]})) as h:
        thread = await h.thread()
        assert (await thread.call("s.write"))["message"] == "Unknown tool: s.write"
        assert (await thread.call("s.drop"))["data"]["details"] == {"state": "unknown"}
        assert upstream.calls() == ["drop"]


# FR-31


async def test_fr_31_two_threads_on_one_stateful_server_each_have_their_own(tmp_path: Path) -> None:
    child = Child(tmp_path, "own_tools")
    async with hall(tmp_path, {"s": child.config}) as h:
        one, two, three = [await h.thread() for _ in range(3)]
        await one.call("s.put", {"value": "page of one"})
        await two.call("s.put", {"value": "page of two"})
        await three.call("s.put", {"value": "page of three"})
        await h.gateway.threads.close(three.id)
        # Each of these calls comes over a connection of its own.
        for thread, page in ((one, "page of one"), (two, "page of two"), (one, "page of one")):
            assert page in json.dumps(await thread.call("s.get"))


async def test_fr_31_a_handle_of_another_thread_is_refused(tmp_path: Path) -> None:
    async with hall(tmp_path, {"home": f"folder:{tmp_path}/home"}) as h:
        one, two = await h.thread(), await h.thread()
        mine, theirs = [content(await who.call("calendar.calendars"))["calendars"][0]["calendar"] for who in (one, two)]
        assert mine != theirs
        made = content(await one.call("calendar.create", {"calendar": mine, "title": "Mine", **HOUR}))["event"]
        assert content(await two.call("calendar.get", {"event": made}))["code"] == "not_found"
        refused = await two.call("calendar.create", {"calendar": mine, "title": "Theirs", **HOUR})
        assert content(refused)["code"] == "not_found"
        assert content(await one.call("calendar.get", {"event": made}))["title"] == "Mine"


# FR-44, FR-47


async def test_fr_44_what_a_child_lost_is_named_with_the_rule_and_not_on_the_wire(tmp_path: Path) -> None:
    settings = {
        "mcpProfiles": {
            "main": {"servers": ["one"], "groups": [], "tools": {"one": {"deny": ["write"]}}},
            "worker": {"servers": "all", "groups": []},
        },
        "mcpProfile": "main",
        "mcpSubagentProfile": "worker",
    }
    async with hall(tmp_path, {"one": Fake(["read", "write"]), "two": Fake(["echo"])}, settings) as h:
        rich = await h.thread(profile="all")
        await rich.tools()
        parent = await h.thread()
        child = await h.thread(parent, delegated=True)
        assert await child.tools() == ["one.read"]
        found = explain(h.gateway.settings.read(), child.id, h.gateway.threads.lineage(), h.gateway.grants.host)
        lost = {(one.server, name): one.decision for one in found.withheld for name in one.tools}
        assert set(lost) == {("one", "write"), ("two", "echo")}
        assert {one.setting for one in lost.values()} == {
            "mcpProfiles.main.tools.one.deny",
            "mcpProfiles.main.servers",
        }
        refused = await child.call("one.write")
        assert refused == {"code": -32602, "message": "Unknown tool: one.write"}


async def test_fr_44_a_question_without_a_person_ends_the_call(tmp_path: Path) -> None:
    async with hall(tmp_path, {"odd": ServerConfig("odd", ODD, share="all")}) as h:
        session = await (await h.thread()).session()
        async with asyncio.timeout(15):
            answer = await session.call("odd.ask")
        assert "the client can't answer elicitation/create" in answer["message"]


async def test_fr_47_a_tool_that_is_off_is_off_on_each_road_and_its_server_hears_nothing(tmp_path: Path) -> None:
    one = Fake([*(f"tool{number}" for number in range(6)), "off"], ["greet"])
    rule = {"deny": ["off"]}
    async with hall(tmp_path, {"one": one}, only("one", one=rule), search=SearchConfig(3)) as h:
        thread = await h.thread()
        agent = await h.thread(thread, delegated=True)
        await thread.tools()
        one.forget()
        for who in (thread, agent):
            session = await who.session()
            assert "one.off" not in await who.tools()
            found = await who.call("hotplug.search", {"query": "off does off", "limit": 50})
            assert "one.off" not in json.dumps(found)
            for asked in (
                await who.call("one.off"),
                await session.call("one.off"),
                await who.call("hotplug.call", {"name": "one.off", "arguments": {}}),
                await session.call("hotplug.call", {"name": "one.off", "arguments": {}}),
            ):
                assert asked == {"code": -32602, "message": "Unknown tool: one.off"}
            _, call = who.written("tools/call", {"name": "one.off", "arguments": {}})
            batch = await who.modern("tools/call", {"name": "one.off"}, body=b"[" + call + b"]")
            assert "error" in batch.message
            async with h.stdio(who.id) as client:
                params = {"name": "one.off", "arguments": {}}
                assert b"Unknown tool: one.off" in await client.request("tools/call", params)
        assert one.calls() == []


# FR-51, FR-52, FR-53


async def test_fr_51_a_profile_that_is_removed_while_it_is_used_takes_the_tools_and_not_the_thread(
    tmp_path: Path,
) -> None:
    upstream = Fake(["echo"])
    settings = {"mcpProfiles": {"x": {"servers": "all", "groups": []}}, "mcpProfile": "all"}
    async with hall(tmp_path, {"one": upstream}, settings) as h:
        thread = await h.thread(profile="x")
        session = await thread.session()
        assert await session.tools() == ["one.echo"]
        h.settings(mcpProfiles={})
        upstream.forget()
        for who in (thread, session):
            assert (await who.call("one.echo"))["data"]["code"] == "permission_denied"
        assert upstream.calls() == []
        refused = h.gateway.grants.access(thread.id)
        assert not isinstance(refused, Access)
        assert '"x", which is not set up' in refused.reason
        h.settings(mcpThreadProfiles={thread.id: "all"})
        assert "content" in await session.call("one.echo")


async def test_fr_52_what_was_revoked_stays_revoked_and_reads_as_what_never_was(tmp_path: Path) -> None:
    upstream = Fake(["echo", "write"])
    wide = {"mcpProfiles": {"x": {"servers": "all", "groups": []}}, "mcpProfile": "x"}
    async with hall(tmp_path, {"one": upstream}, wide) as h:
        thread = await h.thread()
        session = await thread.session()
        assert "content" in await session.call("one.write")
        less = {"servers": "all", "groups": [], "tools": {"one": {"deny": ["write"]}}}
        upstream.forget()
        for change in ({"mcpProfiles": {"x": less}}, {"mcpProfiles": {"y": less}, "mcpProfile": "y"}, {"theme": 1}):
            h.settings(**change)
            for who in (thread, session):
                assert (await who.call("one.write"))["message"] == "Unknown tool: one.write"
                assert (await who.call("one.never"))["message"] == "Unknown tool: one.never"
                assert await who.tools() == ["one.echo"]
        assert upstream.calls() == []
        h.settings(mcpProfile="no-rule-at-all")
        assert "error" in (await thread.modern("tools/list")).message
        assert "error" in (await session.request("tools/list")).message


async def test_fr_53_an_unknown_thread_is_an_error_and_so_is_whatever_goes_wrong_while_deciding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    upstream = Fake(["echo"])
    async with hall(tmp_path, {"one": upstream}) as h:
        thread = await h.thread()
        assert await thread.tools() == ["one.echo"]
        for id_ in ("t_aaaaaaaaaaaaaaaa", "random text", ""):
            reply = await Thread(h, id_.replace(" ", "%20"), thread.token).modern("tools/list")
            assert reply.status == 401
            assert b"one" not in reply.body.replace(b"one of", b"")
        upstream.forget()

        def late() -> None:
            raise TimeoutError("the policy source gave no answer")

        monkeypatch.setattr(h.gateway.grants._settings, "read", late)
        for method, params in (("tools/list", {}), ("tools/call", {"name": "one.echo"}), ("resources/list", {})):
            assert "error" in (await thread.modern(method, params)).message
        assert upstream.asked == []


# FR-54, FR-55


async def test_fr_54_same_names_are_both_reachable_under_names_that_no_order_changes(tmp_path: Path) -> None:
    seen: list[list[str]] = []
    for number, order in enumerate((("files", "notes"), ("notes", "files"))):
        servers = {name: Fake(["search"]) for name in ("files", "notes")}
        async with hall(tmp_path / str(number), {name: servers[name] for name in order}) as h:
            thread = await h.thread()
            # The first one that is started is the first one that anybody asks.
            for name in order:
                assert "content" in await thread.call(f"{name}.search")
                assert servers[name].calls() == ["search"]
            seen.append(sorted(await thread.tools()))
    assert seen == [["files.search", "notes.search"]] * 2


async def test_fr_54_a_new_server_takes_no_name_that_another_one_has(tmp_path: Path) -> None:
    old, new = Fake(["search"]), Fake(["search", "other"])
    async with hall(
        tmp_path, {"new": new, "old": old}, only("old"), entries={"old": {"prefix": ""}, "new": {"prefix": ""}}
    ) as h:
        first, both = await h.thread(), await h.thread(profile="all")
        assert await first.tools() == ["search"]
        assert "other" in await both.tools()
        for thread in (first, both):
            assert "content" in await thread.call("search")
        assert (old.calls(), new.calls()) == (["search", "search"], [])


async def test_fr_55_names_fit_the_consumer_and_each_leads_to_its_own_tool(tmp_path: Path) -> None:
    owns = ["calendar.events.list", "calendar_events_list", "l" * 130, "l" * 129 + "m", "bad\nname", "ä ö"]
    upstream = Fake(owns)
    async with hall(tmp_path, {"s": upstream}, names="underscored", client_prefix=14) as h:
        thread = await h.thread()
        names = await thread.tools()
        assert len(set(names)) == 5
        assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,50}", one) for one in names)
        upstream.forget()
        for name in names:
            assert "content" in await thread.call(name)
        assert sorted(upstream.calls()) == sorted(one for one in owns if "\n" not in one)
        assert [holder for holder in h.gateway.book.left_out if holder[0] == "s"] == [("s", "bad\nname")]


async def test_fr_55_over_a_consumers_limit_search_says_what_else_there_is(tmp_path: Path) -> None:
    upstream = Fake([f"tool{number}" for number in range(130)])
    async with hall(tmp_path, {"s": upstream}, search=SearchConfig(128)) as h:
        thread = await h.thread()
        assert await thread.tools() == ["hotplug.search", "hotplug.call"]
        found = await thread.call("hotplug.search", {"query": "tool129"})
        assert "s.tool129" in json.dumps(found)


# FR-56


@pytest.mark.parametrize("name", ["contents", "nulls", "numbers", "strings", "media", "fail", "refuse", "echo"])
async def test_fr_56_a_result_is_byte_for_byte_the_servers(tmp_path: Path, name: str) -> None:
    app = odd_app()
    async with hall(tmp_path, {"odd": app}, entries={"odd": {"prefix": ""}}) as h, serving(app) as port:
        thread = await h.thread()
        assert name in await thread.tools()
        arguments = '{"big": 123456789012345678901234567890, "f": 1.0e-7, "s": "\\ud800 \\u00e4", "n": null}'
        meta = json.dumps({**META, "vendor.example/x": [None]}, separators=(",", ":"))
        body = (
            '{"jsonrpc":"2.0","id":"x\\u0041","method":"tools/call","params":'
            f'{{"name":"{name}","arguments":{arguments},"_meta":{meta},'
            '"vendorField":{"a":1.50}}}'
        ).encode()
        headers, _ = thread.written("tools/call", {"name": name})
        there = await Thread(h, thread.id, thread.token).modern("tools/call", {"name": name}, body=body)
        direct = await _straight(port, headers, body)
        assert _data(there.body) == _data(direct)


async def _straight(port: int, headers: list[tuple[str, str]], body: bytes) -> bytes:
    from ..gateway.roads import Wire  # noqa: TID252  # tests are no package

    async with Wire.sent(port, "POST", "/mcp", headers, body) as wire:
        return (await wire.reply()).body


def _data(body: bytes) -> list[bytes]:
    """The raw results, or errors, of a stream or of a body."""
    lines = [line[6:] for line in body.replace(b"\r\n", b"\n").split(b"\n") if line.startswith(b"data: {")] or [body]
    found: list[bytes] = []
    for line in lines:
        fields = split(line)
        assert fields is not None
        assert bytes(fields["id"]) == b'"x\\u0041"'
        found.append(bytes(fields.get("result") or fields["error"]))
    return found


# FR-57


async def test_fr_57_a_hint_that_turns_closes_the_tool_until_its_owner_accepts_it(tmp_path: Path) -> None:
    upstream = Fake([tool("wipe", annotations={"destructiveHint": True}), "echo"])
    async with hall(tmp_path, {"s": upstream}) as h:
        thread = await h.thread()
        assert await thread.tools() == ["s.wipe", "s.echo"]
        upstream.tools[0] = tool("wipe", annotations={"destructiveHint": False})
        upstream.tell("notifications/tools/list_changed")
        async with asyncio.timeout(10):
            while "s.wipe" in await thread.tools():
                await asyncio.sleep(0.05)
        upstream.forget()
        assert (await thread.call("s.wipe"))["message"] == "Unknown tool: s.wipe"
        assert upstream.calls() == []
        link = await h.gateway.servers.upstream("s").link("modern", _key(thread))
        items = (await h.gateway.servers.upstream("s").catalog(link)).tools.items
        checked = await h.gateway.pins.check("s", items)
        assert "destructiveHint" in (checked.words() or "")
        assert await h.gateway.pins.accept(checked) == ("wipe",)
        async with asyncio.timeout(10):
            while "content" not in await thread.call("s.wipe"):
                await asyncio.sleep(0.05)


def _key(thread: Thread) -> Any:
    from hotplug.gateway.upstream import LinkKey

    return LinkKey(thread.id, None)


async def test_fr_57_a_similar_tool_inherits_no_right_of_the_one_that_went(tmp_path: Path) -> None:
    upstream = Fake(["find-page", "echo"])
    async with hall(tmp_path, {"s": upstream}, only("s", s={"allow": ["find-page", "echo"]})) as h:
        thread = await h.thread()
        assert await thread.tools() == ["s.find-page", "s.echo"]
        upstream.tools[0] = tool("lookup-page", description="Does find-page.")
        upstream.tell("notifications/tools/list_changed")
        async with asyncio.timeout(10):
            while "s.find-page" in await thread.tools():
                await asyncio.sleep(0.05)
        assert await thread.tools() == ["s.echo"]
        upstream.forget()
        for name in ("s.find-page", "s.lookup-page"):
            assert (await thread.call(name))["message"] == f"Unknown tool: {name}"
        assert upstream.calls() == []


async def test_fr_57_pins_that_can_not_be_read_close_every_tool(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hotplug.errors import StoreError

    upstream = Fake(["echo"])
    async with hall(tmp_path, {"s": upstream}) as h:
        recall_all = h.gateway.store.recall_all

        async def broken(scope: str) -> Any:
            if scope == "pins:s":
                raise StoreError("the pins are gone")
            return await recall_all(scope)

        monkeypatch.setattr(h.gateway.store, "recall_all", broken)
        thread = await h.thread()
        assert await thread.tools() == []
        assert (await thread.call("s.echo"))["message"] == "Unknown tool: s.echo"
        assert upstream.calls() == []


# FR-61


async def test_fr_61_a_list_hangs_on_the_token_alone(tmp_path: Path) -> None:
    servers = {"one": Fake(["b", "a"]), "two": Fake(["c"])}
    async with hall(tmp_path, servers, only("one")) as h:
        thread, other = await h.thread(), await h.thread(profile="all")
        first = await thread.modern("tools/list")
        result = first.message["result"]
        assert ([one["name"] for one in result["tools"]], result["cacheScope"]) == (["one.b", "one.a"], "private")
        assert await other.tools() == ["one.b", "one.a", "two.c"]
        for name in ("one.a", "one.none", "two.c"):
            await thread.call(name)
            assert await thread.modern("tools/list") == first
        sessions = [await thread.session() for _ in range(2)]
        assert [await one.tools() for one in sessions] == [["one.b", "one.a"]] * 2
        hello = (await thread.modern("server/discover")).message["result"]
        assert hello["cacheScope"] == "private"
        await until(lambda: len(h.gateway.sessions) == 2)
