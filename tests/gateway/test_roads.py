"""Access on every road: what a thread isn't given is to it, byte for byte, as if it weren't there at all.

Most tests hold two worlds against each other: in one there is a server, or a tool, that the thread isn't given, and
that another thread uses; in the other one there isn't. Whatever is sent, the answers have to be the same.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from .roads import META, Hall, Reply, Thread, hall, only, until
from .upstreams import Fake

pytestmark = pytest.mark.anyio

CURSOR = {"cursor": "x"}
REF = {"argument": {"name": "a", "value": "b"}}


def open_server() -> Fake:
    return Fake(["echo", "ask"], ["greet"], ["fake://open"])


def shut_server() -> Fake:
    return Fake(["echo", "secret"], ["greet", "whisper"], ["fake://shut", "fake://open"], logging={})


ROADS: list[tuple[str, dict[str, Any]]] = [
    ("tools/list", {}),
    ("prompts/list", {}),
    ("resources/list", {}),
    ("resources/templates/list", {}),
    *((f"{kind}/list", CURSOR) for kind in ("tools", "prompts", "resources")),
    *(("tools/call", {"name": name, "arguments": {}}) for name in (
        "shut.echo", "shut.secret", "shut__secret", "secret", "echo", "Shut.secret", "shut.secret ", "shut.", ".secret",
        "hotplug.search", "hotplug.call", "connection.describe", "connection.events", "calendar.get", "",
    )),
    ("tools/call", {"name": "shut.secret", "arguments": {}, "requestState": "hp1.a.b"}),
    ("tools/call", {"name": "open.echo", "arguments": {"instance": "shut"}}),
    ("tools/call", {"name": "open.echo", "arguments": {}, "_meta": {"tools.noetic/instance": "shut"}}),
    ("tools/call", {"name": ["shut.secret"]}),
    ("tools/call", {}),
    *(("prompts/get", {"name": name}) for name in ("whisper", "shut.whisper", "greet", "nothing")),
    *(("resources/read", {"uri": uri}) for uri in (
        "fake://shut", "hotplug+shut:fake://shut", "hotplug+shut:fake://open", "hotplug+open:fake://open",
        "fake://open", "fake://unlisted", "hotplug+none:fake://x", "hotplug://settings",
    )),
    *(("completion/complete", {"ref": {"type": "ref/prompt", "name": name}, **REF}) for name in ("whisper", "greet")),
    *(("completion/complete", {"ref": {"type": "ref/resource", "uri": uri}, **REF}) for uri in (
        "fake://shut", "hotplug+shut:fake://shut", "fake://open",
    )),
    ("completion/complete", {}),
    ("vendor/anything", {"x": 1}),
    ("tasks/list", {}),
    ("roots/list", {}),
    ("logging/setLevel", {"level": "debug"}),
    ("no/such/method", {}),
    ("notifications/initialized", {}),
]  # fmt: skip
MODERN_ROADS = [*ROADS, ("server/discover", {}), ("resources/subscribe", {"uri": "fake://shut"}), ("ping", {})]
LEGACY_ROADS = [
    *ROADS,
    ("ping", {}),
    ("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}),
    *((f"resources/{verb}", {"uri": uri}) for verb in ("subscribe", "unsubscribe") for uri in (
        "fake://shut", "hotplug+shut:fake://shut", "fake://open",
    )),
]  # fmt: skip


class Worlds:
    """The world in which there is more than the thread is given, and the one in which there isn't."""

    def __init__(self, full: Hall, bare: Hall, mine: Thread, alone: Thread) -> None:
        self.full = full
        self.bare = bare
        self.mine = mine
        self.alone = alone

    async def same(self, ask: Any) -> Reply:
        """The answer, which is the same in both."""
        here, there = await asyncio.gather(ask(self.mine), ask(self.alone))
        assert here == there
        return here


@asynccontextmanager
async def worlds(
    folder: Path,
    full: Mapping[str, Any],
    bare: Mapping[str, Any],
    settings: Mapping[str, Any],
    *,
    warm: bool = True,
    **config: Any,
) -> AsyncIterator[Worlds]:
    async with AsyncExitStack() as stack:
        one = await stack.enter_async_context(hall(folder / "full", full, settings, **config))
        other = await stack.enter_async_context(hall(folder / "bare", bare, None, **config))
        if warm:
            # Somebody who may use all of it has done so: names are known, links are up.
            rich = await one.thread(profile="all")
            await rich.tools()
            await rich.modern("resources/list")
            await (await rich.session()).tools()
        yield Worlds(one, other, await one.thread(), await other.thread())


async def test_a_server_that_a_thread_is_not_given_is_to_it_as_if_it_were_not_there(tmp_path: Path) -> None:
    shut = shut_server()
    full = {"open": open_server(), "shut": shut}
    async with worlds(tmp_path, full, {"open": open_server()}, only("open")) as two:
        shut.forget()
        for method, params in MODERN_ROADS:
            await two.same(lambda who, m=method, p=params: who.modern(m, p))
        sessions = {one.id: await one.session() for one in (two.mine, two.alone)}
        assert sessions[two.mine.id].hello.masked() == sessions[two.alone.id].hello.masked()

        async def legacy(who: Thread, method: str, params: dict[str, Any]) -> Reply:
            return (await sessions[who.id].request(method, params)).masked()

        for method, params in LEGACY_ROADS:
            await two.same(lambda who, m=method, p=params: legacy(who, m, p))
        async with two.full.stdio(two.mine.id) as here, two.bare.stdio(two.alone.id) as there:
            for method, params in MODERN_ROADS:
                assert await here.request(method, params) == await there.request(method, params)
            assert await here.initialize() == await there.initialize()
            for method, params in LEGACY_ROADS:
                assert await here.request(method, params, modern=False) == await there.request(
                    method, params, modern=False
                )
        assert shut.asked == []


async def test_a_thread_that_is_given_nothing_finds_nothing_at_all(tmp_path: Path) -> None:
    servers = {"open": open_server(), "shut": shut_server()}
    async with worlds(tmp_path, servers, {}, {"mcpProfile": "host-only"}) as two:
        for one in servers.values():
            one.forget()
        for method, params in MODERN_ROADS:
            await two.same(lambda who, m=method, p=params: who.modern(m, p))
        sessions = {one.id: await one.session() for one in (two.mine, two.alone)}
        assert sessions[two.mine.id].hello.masked() == sessions[two.alone.id].hello.masked()

        async def legacy(who: Thread, method: str, params: dict[str, Any]) -> Reply:
            return (await sessions[who.id].request(method, params)).masked()

        for method, params in LEGACY_ROADS:
            await two.same(lambda who, m=method, p=params: legacy(who, m, p))
        assert await two.mine.tools() == []
        assert [one.asked for one in servers.values()] == [[], []]


@pytest.mark.parametrize("rule", [{"deny": ["secret"]}, {"allow": ["echo", "ask"]}])
async def test_a_tool_that_is_off_is_as_one_that_its_server_does_not_have(tmp_path: Path, rule: Any) -> None:
    one, other = Fake(["echo", "ask", "secret"]), Fake(["echo", "ask"])
    settings = only("open", open=rule)
    async with worlds(tmp_path, {"open": one}, {"open": other}, settings) as two:
        one.forget()
        for name in ("open.secret", "secret", "open.nothing", "open.echo"):
            await two.same(lambda who, n=name: who.modern("tools/call", {"name": n, "arguments": {}}))
        await two.same(lambda who: who.modern("tools/list"))
        assert one.calls() == ["echo"]
        for who in (two.mine, two.alone):
            session = await who.session()
            assert await session.tools() == ["open.echo", "open.ask"]
        session = await two.mine.session()
        assert (await session.call("open.secret"))["message"] == "Unknown tool: open.secret"
        assert "secret" not in one.calls()


async def test_a_server_of_which_no_tool_is_given_is_left_out_whole(tmp_path: Path) -> None:
    one = shut_server()
    settings = only("open", "shut", shut={"allow": []})
    async with worlds(tmp_path, {"open": open_server(), "shut": one}, {"open": open_server()}, settings) as two:
        one.forget()
        for method, params in MODERN_ROADS:
            await two.same(lambda who, m=method, p=params: who.modern(m, p))
        assert one.asked == []


async def test_a_shut_server_is_never_started(tmp_path: Path) -> None:
    shut = shut_server()
    async with hall(tmp_path, {"open": open_server(), "shut": shut}, only("open")) as h:
        thread = await h.thread()
        for method, params in MODERN_ROADS:
            await thread.modern(method, params)
        session = await thread.session()
        for method, params in LEGACY_ROADS:
            await session.request(method, params)
        async with thread.listening(toolsListChanged=True, resourceSubscriptions=["fake://shut"]):
            pass
        assert shut.asked == []
        assert shut.listened == 0
        assert h.gateway.pool.upstreams["shut"].state.kind == "stopped"


# Who comes in


async def test_every_form_of_a_path_but_one_leads_nowhere_whoever_asks(tmp_path: Path) -> None:
    async with hall(tmp_path, {"open": open_server()}) as h:
        mine = await h.thread()
        headers, body = mine.written("tools/list")
        no_token = headers[1:]
        assert (await h.raw("POST", mine.path, headers, body)).status == 200
        id_ = mine.id
        for path in (
            f"/threads/{id_}/mcp/", f"/threads//{id_}/mcp", f"//threads/{id_}/mcp", f"/threads/{id_}//mcp", "/mcp",
            f"/threads/{id_}/./mcp", f"/threads/x/../{id_}/mcp", f"/threads/{id_}/MCP", f"/THREADS/{id_}/mcp",
            f"/threads/{id_}/mcp%00", f"/threads/{id_}/mcp%20", f"/threads/{id_}/mcp;x=1", f"/x/threads/{id_}/mcp",
            f"/threads/{id_}/mcp/tools", f"/threads/{id_}/mcp%2F", "/threads/mcp", "/", "/.well-known/x",
        ):  # fmt: skip
            replies = [await h.raw("POST", path, given, body) for given in (headers, no_token)]
            assert {one.status for one in replies} <= {404, 401}, path
            assert replies[0] == replies[1] or replies[1].status == 401, path
            assert replies[0].status != 200


async def test_whoever_is_not_let_in_reads_one_answer_on_every_road(tmp_path: Path) -> None:
    async with hall(tmp_path, {"open": open_server()}) as h:
        mine, other = await h.thread(), await h.thread()
        child = await h.thread(mine)
        closed = await h.thread()
        await h.gateway.threads.close(closed.id)
        session = await other.session()
        headers, body = mine.written("tools/call", {"name": "open.echo", "arguments": {}})
        rest = headers[1:]
        tokens: list[list[tuple[str, str]]] = [
            [],
            *(
                [("Authorization", value)]
                for value in (
                    "Bearer", "Bearer ", "Basic eDp5", other.token, f"Bearer {mine.token[:-1]}",
                    f"Bearer {mine.token}x", f"Bearer {other.token}", f"Bearer {closed.token}", f"Bearer {child.token}",
                    f"Bearer {mine.token},{mine.token}", f"Token {mine.token}", "Bearer " + "x" * 4000,
                )
            ),
            [("Authorization", f"Bearer {mine.token}"), ("Authorization", f"Bearer {other.token}")],
            [("Authorization", f"Bearer {other.token}"), ("Authorization", f"Bearer {mine.token}")],
            [("X-Authorization", f"Bearer {mine.token}")],
            [("Cookie", f"token={mine.token}")],
        ]  # fmt: skip
        seen = set()
        for given in tokens:
            for method in ("POST", "GET", "DELETE", "PUT", "PATCH", "OPTIONS"):
                for path in (mine.path, f"{mine.path}?token={mine.token}"):
                    more = [("Mcp-Session-Id", session.id or "")] if method in ("GET", "DELETE") else []
                    seen.add(await h.raw(method, path, [*rest, *more, *given], body if method == "POST" else b""))
        for id_ in ("t_aaaaaaaaaaaaaaaa", closed.id, "owner", "", "..", "%2e%2e", other.id, "x" * 3000):
            seen.add(await h.raw("POST", f"/threads/{id_}/mcp", headers, body))
        seen.add(await h.raw("POST", closed.path, [*rest, ("Authorization", f"Bearer {closed.token}")], body))
        assert len(seen) == 1
        (only_one,) = seen
        assert only_one.status == 401
        head = await h.raw("HEAD", mine.path, rest)
        assert (head.status, head.headers) == (401, only_one.headers)
        # A session is of no use to another thread, and is as one that never was.
        for method, more in (("GET", []), ("DELETE", []), ("GET", [("Last-Event-ID", "~1~0")])):
            theirs, none = [
                await h.raw(method, mine.path, [*headers[:2], ("Mcp-Session-Id", id_), *more])
                for id_ in (session.id or "", "0" * 32)
            ]
            assert theirs == none
            assert theirs.status == 404
        legacy = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).encode()
        theirs, none = [
            await h.raw("POST", mine.path, [*headers[:3], ("Mcp-Session-Id", id_)], legacy)
            for id_ in (session.id or "", "0" * 32)
        ]
        assert theirs == none
        assert await session.tools() == ["open.echo", "open.ask"]


async def test_a_request_for_another_name_or_from_another_page_comes_to_nothing(tmp_path: Path) -> None:
    upstream = open_server()
    async with hall(tmp_path, {"open": upstream}) as h:
        thread = await h.thread()
        headers, body = thread.written("tools/call", {"name": "open.echo", "arguments": {}})
        upstream.forget()
        for more, status in (
            ([("Host", "evil.example")], 421),
            ([("Origin", "https://evil.example")], 403),
            ([("Origin", "null")], 403),
            ([("Origin", "http://127.0.0.1"), ("Origin", "https://evil.example")], 403),
            ([("Origin", "https://evil.example"), ("Origin", "http://127.0.0.1")], 403),
        ):
            assert (await h.raw("POST", thread.path, [*headers, *more], body)).status == status
        assert upstream.asked == []


# What may not be said


async def test_a_batch_is_refused_whole_and_reaches_nobody(tmp_path: Path) -> None:
    upstream = open_server()
    async with hall(tmp_path, {"open": upstream}) as h:
        thread = await h.thread()
        session = await thread.session()
        await thread.tools()
        upstream.forget()
        _, one = thread.written("tools/call", {"name": "open.echo", "arguments": {}})
        for data in (b"[" + one + b"]", b"[" + one + b"," + one + b"]", b"[]", b"[[" + one + b"]]"):
            assert (await thread.modern("tools/call", {"name": "open.echo"}, body=data)).message["error"]
            assert (await session.send(data)).message["error"]
            async with h.stdio(thread.id) as client:
                client.send(data + b"\n")
                assert b'"error"' in await client.receive()
        assert upstream.calls() == []


async def test_a_key_that_is_given_twice_is_read_alike_here_and_at_the_server(tmp_path: Path) -> None:
    upstream = Fake(["echo", "secret"], ["greet"], ["fake://open"], logging={})
    async with hall(tmp_path, {"open": upstream}, only("open", open={"deny": ["secret"]})) as h:
        thread = await h.thread()
        session = await thread.session()
        await thread.tools()
        upstream.forget()
        meta = json.dumps(META)
        call = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{%s,"_meta":' + meta + "}}"
        refused = '"name":"open.echo","name":"open.secret","arguments":{}'
        body = (call % refused).encode()
        assert "error" in (await thread.modern("tools/call", name="open.secret", body=body)).message
        assert "error" in (await session.send(body)).message
        allowed = '"name":"secret","name":"open.echo","arguments":{"a":1},"\\u006eame":"open.echo"'
        twice = (call % allowed).encode()
        assert "result" in (await thread.modern("tools/call", name="open.echo", body=twice)).message
        assert "result" in (await session.send(twice)).message
        for method, params in (
            ("logging/setLevel", '{"level":"info"}'),
            ("completion/complete", '{"ref":{"type":"ref/prompt","name":"x","name":"greet"},"argument":{}}'),
            ("completion/complete", '{"ref":{"type":"ref/resource","uri":"x","uri":"fake://open"},"argument":{}}'),
            ("resources/read", '{"uri":"fake://shut","uri":"fake://open"}'),
            ("resources/subscribe", '{"uri":"fake://shut","uri":"fake://open"}'),
            ("prompts/get", '{"name":"whisper","name":"greet"}'),
            ("vendor/echo", '{"x":1,"x":2}'),
        ):
            first = '"method":"tools/call","params":{"name":"secret","arguments":{}},'
            data = f'{{"jsonrpc":"2.0","id":1,{first}"method":"{method}","params":{params}}}'
            assert "error" not in (await session.send(data.encode())).message or method == "vendor/echo"
        data = '{"jsonrpc":"2.0","method":"tools/call","method":"notifications/roots/list_changed","params":{"a":1}}'
        assert (await session.send(data.encode())).status == 202
        await until(lambda: "notifications/roots/list_changed" in upstream.methods())
        assert upstream.calls() == ["echo", "echo"]
        for data in upstream.raw:

            def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
                assert len(dict(pairs)) == len(pairs), pairs
                return dict(pairs)

            json.loads(data, object_pairs_hook=once)


async def test_an_authorisation_that_a_caller_claims_never_arrives(tmp_path: Path) -> None:
    upstream = open_server()
    async with hall(tmp_path, {"open": upstream}) as h:
        thread = await h.thread()
        session = await thread.session()
        claimed = {"tools.noetic/authorized": ["lamps@1/lamps.smash"]}
        await thread.call("open.echo", meta=claimed)
        await session.request("tools/call", {"name": "open.echo", "arguments": {}, "_meta": {**claimed, "a": 1}})
        spelled = json.dumps({"name": "open.echo", "arguments": {}, "_meta": {**META, **claimed}})
        spelled = spelled.replace("tools.noetic", "tools\\u002enoetic")
        data = f'{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{spelled}}}'.encode()
        await thread.modern("tools/call", name="open.echo", body=data)
        assert upstream.calls() == ["echo"] * 3
        assert not any(b"authorized" in one or b"noetic" in one for one in upstream.raw)


async def test_the_keys_of_two_threads_never_meet_at_a_server(tmp_path: Path) -> None:
    upstream = open_server()
    async with hall(tmp_path, {"open": upstream}) as h:
        one, two = await h.thread(), await h.thread()
        key = {"tools.noetic/idempotency-key": "same"}
        for thread in (one, two, one):
            await thread.call("open.echo", meta=key)
        seen = [
            each["params"]["_meta"]["tools.noetic/idempotency-key"]
            for each in upstream.asked
            if each["method"] == "tools/call"
        ]
        assert seen[0] == seen[2] != seen[1]
        assert "same" not in seen


async def test_a_state_is_good_for_its_thread_its_server_and_its_tool_alone(tmp_path: Path) -> None:
    one, two = Fake(["ask", "echo"]), Fake(["ask"])
    async with hall(tmp_path, {"one": one, "two": two}) as h:
        mine, other = await h.thread(), await h.thread()
        state = (await mine.call("one.ask"))["requestState"]
        await other.call("one.ask")
        await other.call("two.ask")
        for fake in (one, two):
            fake.forget()

        async def retry(who: Thread, tool: str, given: str = state) -> dict[str, Any]:
            params = {"name": tool, "arguments": {}, "inputResponses": {"q": {}}, "requestState": given}
            reply = (await who.modern("tools/call", params)).message
            return reply.get("result") or reply["error"]

        refused = [
            await retry(other, "one.ask"),
            await retry(mine, "two.ask"),
            await retry(mine, "one.echo"),
            await retry(mine, "one.ask", state + "x"),
            await retry(mine, "one.ask", "state"),
            await retry(mine, "one.ask", ""),
        ]
        assert [each["message"] for each in refused] == ["Invalid requestState"] * 6
        assert one.calls() == two.calls() == []
        assert "content" in await retry(mine, "one.ask")
        assert one.last("tools/call")["params"]["requestState"] == "state"


# Servers that several threads use


async def test_what_is_asked_for_a_thread_by_its_methods_goes_nowhere_where_its_tools_are_not_all_given(
    tmp_path: Path,
) -> None:
    one, two = Fake(["echo", "secret"]), Fake(["echo"])
    async with hall(tmp_path, {"one": one, "two": two}, only("one")) as h:
        whole, both = await h.thread(), await h.thread(profile="all")
        h.settings(mcpProfiles={
            **h.document()["mcpProfiles"],
            "part": {"servers": ["one"], "groups": [], "tools": {"one": {"deny": ["secret"]}}},
        })  # fmt: skip
        part = await h.thread(profile="part")
        for who in (whole, both, part):
            await who.tools()
        assert (await whole.modern("vendor/run", {"x": 7})).message["result"]["vendor"] == 7
        for fake in (one, two):
            fake.forget()
        answers = [await who.modern("vendor/run", {"x": 7}) for who in (both, part)]
        unknown = await both.modern("no/such", {"x": 7})
        assert answers == [unknown, unknown]
        assert one.asked == two.asked == []


async def test_a_method_of_its_own_goes_to_no_other_server_because_one_is_down(tmp_path: Path) -> None:
    one = Fake(["echo"])
    async with hall(tmp_path, {"one": one, "two": ["/nowhere/at-all"]}) as h:
        thread = await h.thread()
        assert await thread.tools() == ["one.echo"]
        one.forget()
        assert (await thread.modern("vendor/run", {"x": 7})).message["error"]["code"] == -32601
        assert one.asked == []
