"""Access on every road: what a thread isn't given is to it, byte for byte, as if it weren't there at all.

Most tests hold two worlds against each other: in one there is a server, or a tool, that the thread isn't given, and
that another thread uses; in the other one there isn't. Whatever is sent, the answers have to be the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from .roads import Hall, Reply, Thread, hall, only
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
