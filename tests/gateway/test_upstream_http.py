"""One upstream behind a URL: eras told by its answers, one modern link for all, a session for each legacy session."""

from __future__ import annotations

import asyncio
import json
import socket
import uuid
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from hotplug.connect.target import HttpTarget
from hotplug.errors import Unavailable
from hotplug.gateway.config import ServerConfig
from hotplug.gateway.link import Era, LinkLost
from hotplug.gateway.pool import Pool
from hotplug.gateway.upstream import LinkKey

from .pooling import QUICK, HandClock, call, initialize, until

pytestmark = pytest.mark.anyio
ONE = LinkKey("t_one", "s1")
OTHER = LinkKey("t_other", "s2")
TOOLS = {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}], "resultType": "complete"}


class Remote:
    """A server over HTTP that answers the probe as `probe` says: a JSON-RPC code, an HTTP status or `silent`."""

    def __init__(self, probe: str = "", eras: tuple[Era, ...] = ("legacy", "modern")) -> None:
        self.probe = probe
        self.eras = eras
        self.methods: list[str] = []
        self.sessions: set[str] = set()
        self.ended = 0
        self.url = ""

    async def post(self, request: web.Request) -> web.StreamResponse:
        message = await request.json()
        method = message.get("method", "")
        self.methods.append(method)
        session = request.headers.get("mcp-session-id")
        if "id" not in message:
            return web.Response(status=202)
        if method == "server/discover" and "modern" not in self.eras:
            if self.probe == "silent":
                await asyncio.sleep(3600)
            if self.probe.startswith("-"):
                return self.error(message, int(self.probe))
            return web.Response(status=int(self.probe), text="no")
        if method == "server/discover":
            return self.result(message, {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}})
        if method == "initialize":
            if "legacy" not in self.eras:
                return self.error(message, -32601)
            session = uuid.uuid4().hex
            self.sessions.add(session)
            result = {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "r", "version": "1"},
            }
            return self.result(message, result, {"mcp-session-id": session})
        if session is not None and session not in self.sessions:
            return web.Response(status=404)
        if method == "tools/list":
            return self.result(message, TOOLS)
        if message["params"]["name"] == "silent":
            await asyncio.sleep(3600)
        return self.result(
            message, {"content": [{"type": "text", "text": session or "none"}], "resultType": "complete"}
        )

    async def delete(self, request: web.Request) -> web.Response:
        self.ended += 1
        self.sessions.discard(request.headers["mcp-session-id"])
        return web.Response(status=200)

    def result(self, message: Any, result: Any, headers: dict[str, str] | None = None) -> web.Response:
        body = {"jsonrpc": "2.0", "id": message["id"], "result": result}
        return web.Response(text=json.dumps(body), content_type="application/json", headers=headers)

    def error(self, message: Any, code: int) -> web.Response:
        body = {"jsonrpc": "2.0", "id": message["id"], "error": {"code": code, "message": "no"}}
        return web.Response(text=json.dumps(body), content_type="application/json")

    def config(self, **settings: Any) -> dict[str, ServerConfig]:
        return {"remote": ServerConfig("remote", HttpTarget(self.url), **settings)}


@asynccontextmanager
async def running(remote: Remote) -> AsyncGenerator[Remote]:
    app = web.Application()
    app.router.add_post("/mcp", remote.post)
    app.router.add_delete("/mcp", remote.delete)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    remote.url = f"http://127.0.0.1:{runner.addresses[0][1]}/mcp"
    try:
        yield remote
    finally:
        await runner.cleanup()


@pytest.mark.parametrize("probe", ["-32601", "-32602", "400", "silent"])
async def test_an_old_server_is_told_by_how_it_takes_the_probe(probe: str) -> None:
    """FR-26."""
    async with running(Remote(probe, ("legacy",))) as remote, Pool(remote.config(), patience=QUICK) as pool:
        link = await pool.upstreams["remote"].link("modern", ONE)
        assert link.era == "modern"
        assert await call(link, "echo") in remote.sessions
        await pool.upstreams["remote"].link("modern", OTHER)
        assert remote.methods.count("server/discover") == 1
        await pool.aclose()
        assert not remote.sessions


async def test_a_new_server_is_bridged_for_an_old_client() -> None:
    async with running(Remote(eras=("modern",))) as remote, Pool(remote.config()) as pool:
        link = await pool.upstreams["remote"].link("legacy", ONE, initialize=initialize())
        assert link.era == "legacy"
        assert await call(link, "echo") == "none"


async def test_all_share_one_modern_link(tmp_path: Any) -> None:
    async with running(Remote()) as remote, Pool(remote.config()) as pool:
        upstream = pool.upstreams["remote"]
        links = await asyncio.gather(*(upstream.link("modern", LinkKey(f"t_{n}")) for n in range(10)))
        assert len(set(map(id, links))) == 1
        assert remote.methods == ["server/discover"]
        catalog = await upstream.catalog(links[0])
        assert [item.name for item in catalog.tools.items] == ["echo"]
        await upstream.release(LinkKey("t_1"))
        assert links[0].lost is None


async def test_each_legacy_session_has_its_own_and_it_is_ended_with_it() -> None:
    async with running(Remote()) as remote, Pool(remote.config(share="all")) as pool:
        upstream = pool.upstreams["remote"]
        first = await upstream.link("legacy", ONE, initialize=initialize())
        second = await upstream.link("legacy", OTHER, initialize=initialize())
        assert await call(first, "echo") != await call(second, "echo")
        assert upstream.instance_of(first) != upstream.instance_of(second)
        await upstream.release(ONE)
        assert remote.ended == 1
        assert len(remote.sessions) == 1
    assert not remote.sessions


async def test_a_session_that_the_server_forgot_is_opened_anew_at_once() -> None:
    async with running(Remote()) as remote, Pool(remote.config(), clock=HandClock()) as pool:
        upstream = pool.upstreams["remote"]
        link = await upstream.link("legacy", ONE, initialize=initialize())
        remote.sessions.clear()
        with pytest.raises(LinkLost) as raised:
            await call(link, "echo")
        assert not raised.value.sent
        again = await upstream.link("legacy", ONE, initialize=initialize())
        assert await call(again, "echo") in remote.sessions
        assert upstream.instance_of(again) != upstream.instance_of(link)


async def test_where_nothing_listens_is_said_after_one_try() -> None:
    remote = Remote()
    with socket.socket() as held:
        # Held, so that nobody else gets the port meanwhile.
        held.bind(("127.0.0.1", 0))
        remote.url = f"http://127.0.0.1:{held.getsockname()[1]}/mcp"
        async with Pool(remote.config()) as pool:
            with pytest.raises(Unavailable, match="remote can't be reached: "):
                await pool.upstreams["remote"].link("modern", ONE)
            assert pool.upstreams["remote"].state.kind == "failed"


async def test_a_silent_call_is_given_up_and_the_link_stays() -> None:
    async with running(Remote()) as remote, Pool(remote.config(call_timeout=1.0)) as pool:
        link = await pool.upstreams["remote"].link("modern", ONE)
        with pytest.raises(LinkLost, match=r"it said nothing for 1 s") as raised:
            await call(link, "silent")
        assert raised.value.sent
        assert link.lost is None
        assert await call(link, "echo") == "none"


async def test_a_removed_one_ends_its_sessions() -> None:
    async with running(Remote()) as remote, Pool(remote.config()) as pool:
        link = await pool.upstreams["remote"].link("legacy", ONE, initialize=initialize())
        pending = asyncio.create_task(call(link, "silent"))
        await until(lambda: "tools/call" in remote.methods)
        await pool.update({})
        with pytest.raises(LinkLost) as raised:
            await pending
        assert raised.value.sent
        assert not remote.sessions
