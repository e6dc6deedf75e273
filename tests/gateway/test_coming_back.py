"""Streams of the handshake era that break, or that nobody reads: what goes on, and what it costs."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp.server import MCPServer
from mcp.server.mcpserver import Context

from hotplug.gateway.front import http

from .links.test_legacy_http import Events
from .roads import Session, Wire, hall, until
from .upstreams import Fake

pytestmark = pytest.mark.anyio
CHILDREN = Path(__file__).parent / "children"


class Patient:
    """A server whose tool answers when it is told to; it keeps its events."""

    def __init__(self) -> None:
        self.started = asyncio.Event()
        self.go = asyncio.Event()
        self.cancelled = False
        server = MCPServer("patient")

        @server.tool()
        async def wait(context: Context) -> str:
            self.started.set()
            try:
                await self.go.wait()
            except BaseException:
                self.cancelled = True
                raise
            return "waited"

        self.events = Events()
        self.app = server.streamable_http_app(event_store=self.events, retry_interval=20)


def calling(tool: str, id_: int = 7) -> bytes:
    params = {"name": tool, "arguments": {}}
    return json.dumps({"jsonrpc": "2.0", "id": id_, "method": "tools/call", "params": params}).encode()


async def first_id(wire: Wire) -> str:
    await wire.head()
    async with asyncio.timeout(30):
        while True:
            for line in (await wire.chunk()).split(b"\r\n"):
                if line.startswith(b"id: "):
                    return line[4:].decode()


async def test_a_call_whose_client_may_come_back_isnt_cancelled_at_its_server(tmp_path: Path) -> None:
    patient = Patient()
    async with hall(tmp_path, {"patient": patient.app}) as place:
        thread = await place.thread()
        session = await thread.session()
        await session.tools()
        async with Wire.sent(place.port, "POST", thread.path, session.headers, calling("patient.wait")) as wire:
            last = await first_id(wire)
            await patient.started.wait()
        patient.go.set()
        await until(lambda: "waited" in str(patient.events.kept))
        for _ in range(2):
            # Its connection may break once more, however far the answer had come.
            messages = await _messages(session, last)
            assert messages[-1]["id"] == 7
            assert messages[-1]["result"]["content"][0]["text"] == "waited"
        assert not patient.cancelled


async def _messages(session: Session, last: str) -> list[dict[str, Any]]:
    async with session.general(("Last-Event-ID", last)) as wire:
        return (await wire.reply()).messages


async def test_a_reader_that_doesnt_read_is_pinged_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "_PING_SECONDS", 0.01)
    async with hall(tmp_path, {"fake": Fake(tools=["echo"])}) as place:
        thread = await place.thread()
        session = await thread.session()
        app = place.gateway.http()
        stuck = asyncio.Event()
        pings: list[bytes] = []

        async def receive() -> Any:
            await asyncio.Event().wait()

        async def send(message: Any) -> None:
            if body := message.get("body"):
                pings.append(body)
                stuck.set()
                await asyncio.Event().wait()

        headers = [(name.lower().encode(), value.encode()) for name, value in session.headers]
        scope = {"type": "http", "method": "GET", "path": thread.path, "headers": [*headers, (b"host", b"localhost")]}
        before = len(asyncio.all_tasks())
        reading = asyncio.create_task(app(scope, receive, send))  # type: ignore[arg-type]
        await stuck.wait()
        ticks = asyncio.get_running_loop().time() + 0.2
        await until(lambda: asyncio.get_running_loop().time() > ticks)
        assert pings == [http.PING]
        # Itself, its watch, and the ping.
        assert len(asyncio.all_tasks()) <= before + 3
        reading.cancel()
        await asyncio.wait([reading])


async def test_who_can_hear_nothing_more_of_a_server_is_told_so(tmp_path: Path) -> None:
    argv = [sys.executable, str(CHILDREN / "plain.py"), str(tmp_path / "record")]
    async with hall(tmp_path, {"child": argv}) as place:
        thread = await place.thread()
        async with thread.listening(vendor=1) as wire, thread.listening(toolsListChanged=True) as lists:
            await thread.call("child.crash")
            last = await wire.event()
            assert last["result"]["resultType"] == "complete"
            await wire.ended()
            # Lists of the child in its place are still heard of.
            assert "content" in await thread.call("child.remove", {"name": "wait"})
            assert (await lists.event())["method"] == "notifications/tools/list_changed"
