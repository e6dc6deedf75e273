"""The SDK's servers and clients in one process, each behind or in front of a `Link`, on memory streams."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio
from mcp.client._memory import InMemoryTransport
from mcp.server import Server
from mcp.shared.memory import create_client_server_memory_streams
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from hotplug.gateway.link import Answer, Era, Frame, Hello, Link, LinkLost, Outgoing
from hotplug.gateway.message import Message, Object, dumps, loads, split

ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


def parsed(message: Message) -> SessionMessage:
    return SessionMessage(jsonrpc_message_adapter.validate_json(message.encode(), by_name=False))


def raw(item: SessionMessage) -> Message:
    return Message.parse(item.message.model_dump_json(by_alias=True, exclude_unset=True).encode())


def plain(message: Message | None) -> Any:
    """A message as Python values."""
    return None if message is None else json.loads(message.encode())


class MemoryLink:
    """A link to a server in this process, as the one over standard streams is: one pipe, own ids."""

    def __init__(self, era: Era, read: Any, write: Any) -> None:
        self.era: Era = era
        self.hello = Hello({}, "")
        self.lost: str | None = None
        self.sent: list[Message] = []
        self.came: list[Message] = []
        self._read = read
        self._write = write
        self._next = 0
        self._flying: dict[bytes, tuple[Outgoing, asyncio.Queue[Frame | None]]] = {}
        self._general: asyncio.Queue[Frame | None] = asyncio.Queue()
        self._told: list[Callable[[str], None]] = []
        self.stopped = asyncio.Event()
        self.closed = False

    @asynccontextmanager
    async def exchange(self, outgoing: Outgoing) -> AsyncGenerator[Answer, None]:
        if self.lost:
            raise LinkLost(self.lost, sent=False)
        self._next += 1
        own = dumps(f"m{self._next}")
        message = outgoing.message.with_id(own)
        if "progressToken" in message.meta:
            message = message.with_meta({"progressToken": own})
        queue: asyncio.Queue[Frame | None] = asyncio.Queue()
        self._flying[own] = (outgoing, queue)
        try:
            await self._send(message)
            first = await self._next_frame(queue)
            if first.message is not None and first.message.is_answer:
                yield Answer(message=first.message)
            else:
                yield Answer(frames=self._frames(first, queue))
        finally:
            if self._flying.pop(own, None) is not None and not self.lost:
                await self._send(Message.notification("notifications/cancelled", {"requestId": loads(own)}))

    async def _next_frame(self, queue: asyncio.Queue[Frame | None]) -> Frame:
        frame = await queue.get()
        if frame is None:
            raise LinkLost(self.lost or "lost", sent=True)
        return frame

    async def _frames(self, first: Frame, queue: asyncio.Queue[Frame | None]) -> AsyncIterator[Frame]:
        frame = first
        while True:
            yield frame
            if frame.message is not None and frame.message.is_answer:
                return
            frame = await self._next_frame(queue)

    async def send(self, message: Message, *, scope: str = "", headers: Mapping[str, str] | None = None) -> None:
        await self._send(message)

    async def general(self) -> AsyncIterator[Frame]:
        while (frame := await self._general.get()) is not None:
            yield frame

    @asynccontextmanager
    async def resume(self, event_id: str) -> AsyncGenerator[Answer, None]:
        yield Answer(body=b"", status=405)

    def on_change(self, told: Callable[[str], None]) -> Callable[[], None]:
        self._told.append(told)
        return lambda: self._told.remove(told)

    async def aclose(self) -> None:
        self.closed = True
        self.stopped.set()

    def lose(self, reason: str = "the server went away") -> None:
        """What a crash of the server does."""
        self.lost = reason
        for _, queue in self._flying.values():
            queue.put_nowait(None)
        self._general.put_nowait(None)
        for told in tuple(self._told):
            told("lost")

    async def ask(self, method: str, params: Mapping[str, Any] | None = None) -> Message:
        """The answer to a request of the test's own."""
        async with self.exchange(Outgoing(Message.request("own", method, params))) as answer:
            assert answer.message is not None
            return answer.message

    async def _send(self, message: Message) -> None:
        self.sent.append(message)
        try:
            await self._write.send(parsed(message))
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            raise LinkLost("closed", sent=False) from None

    async def read(self) -> None:
        async for item in self._read:
            self._came(raw(item))

    def _came(self, message: Message) -> None:
        self.came.append(message)
        if message.is_answer:
            found = self._flying.pop(message.id or b"", None)
            if found is not None:
                outgoing, queue = found
                queue.put_nowait(Frame(message.with_id(outgoing.message.id)))
            return
        if message.method and message.method.endswith("/list_changed"):
            for told in tuple(self._told):
                told(message.method)
        own = self._owner(message)
        if own is None:
            self._general.put_nowait(Frame(message))
            return
        outgoing, queue = self._flying[own]
        if message.method == "notifications/progress":
            message = message.with_param("progressToken", outgoing.message.meta["progressToken"])
        if "io.modelcontextprotocol/subscriptionId" in message.meta:
            message = message.with_meta({"io.modelcontextprotocol/subscriptionId": outgoing.message.id})
        queue.put_nowait(Frame(message))

    def _owner(self, message: Message) -> bytes | None:
        for named in (message.params.get("progressToken"), message.meta.get("io.modelcontextprotocol/subscriptionId")):
            if named is not None and bytes(named) in self._flying:
                return bytes(named)
        calls = [own for own, (out, _) in self._flying.items() if out.message.method != "subscriptions/listen"]
        return calls[0] if len(calls) == 1 else None


@asynccontextmanager
async def linked(server: Server[Any], era: Era, initialize: Object | None = None) -> AsyncGenerator[MemoryLink, None]:
    """A link to a server, with its handshake done."""
    async with InMemoryTransport(server) as (read, write), anyio.create_task_group() as tasks:
        link = MemoryLink(era, read, write)
        tasks.start_soon(link.read)
        if era == "legacy":
            params = initialize or handshake({})
            hello = (await link.ask("initialize", params)).result
            await link.send(Message.notification("notifications/initialized"))
            link.hello = Hello(hello, loads(hello["protocolVersion"]))
        else:
            hello = (await link.ask("server/discover", {"_meta": ENVELOPE})).result
            link.hello = Hello(hello, "2026-07-28")
        link.sent.clear()
        link.came.clear()
        yield link
        tasks.cancel_scope.cancel()


def handshake(capabilities: Mapping[str, Any], protocol: str = "2025-11-25") -> Object:
    """The params of an `initialize`."""
    said = {"protocolVersion": protocol, "capabilities": capabilities, "clientInfo": {"name": "test", "version": "1"}}
    found = split(dumps(said))
    assert found is not None
    return found


class Sessions:
    """Opens legacy links to one server, as a pool does."""

    def __init__(self, server: Server[Any], tasks: Any) -> None:
        self.server = server
        self.links: list[MemoryLink] = []
        self.said: list[dict[str, Any]] = []
        self._tasks = tasks

    async def open(self, initialize: Object) -> Link:
        self.said.append({name: loads(value) for name, value in initialize.items()})
        return await self._tasks.start(self._hold, initialize)

    async def _hold(self, initialize: Object, *, task_status: Any) -> None:
        async with linked(self.server, "legacy", initialize) as link:
            self.links.append(link)
            task_status.started(link)
            await link.stopped.wait()


@asynccontextmanager
async def sessions(server: Server[Any]) -> AsyncGenerator[Sessions, None]:
    async with anyio.create_task_group() as tasks:
        yield Sessions(server, tasks)
        tasks.cancel_scope.cancel()


@asynccontextmanager
async def front(link: Link) -> AsyncGenerator[Any, None]:
    """What stands between an SDK client and a link: a transport for the client, as `hotplug serve` over stdio is."""
    async with create_client_server_memory_streams() as (client, server), anyio.create_task_group() as tasks:
        read, write = server

        async def answer(message: Message) -> None:
            try:
                async with link.exchange(Outgoing(message, scope="client")) as answer:
                    if answer.message is not None:
                        await write.send(parsed(answer.message))
                    if answer.frames is not None:
                        async for frame in answer.frames:
                            if frame.message is not None:
                                await write.send(parsed(frame.message))
            except LinkLost as lost:
                await write.send(parsed(Message.error_of(message.id, -32000, lost.reason)))

        async def tell() -> None:
            async for frame in link.general():
                if frame.message is not None:
                    await write.send(parsed(frame.message))

        async def serve() -> None:
            async for item in read:
                assert isinstance(item, SessionMessage)
                message = raw(item)
                if message.kind == "request":
                    tasks.start_soon(answer, message)
                else:
                    await link.send(message, scope="client")

        tasks.start_soon(serve)
        tasks.start_soon(tell)
        yield _Transport(client, link)
        tasks.cancel_scope.cancel()


class _Transport:
    def __init__(self, streams: Any, link: Link) -> None:
        self.link = link
        self._streams = streams

    async def __aenter__(self) -> Any:
        return self._streams

    async def __aexit__(self, *_: object) -> None:
        for stream in self._streams:
            await stream.aclose()


async def exchanged(link: Link, message: Message, scope: str = "test") -> list[Message]:
    """All that came of a request, the answer last."""
    async with link.exchange(Outgoing(message, scope=scope)) as answer:
        if answer.message is not None:
            return [answer.message]
        assert answer.frames is not None
        return [frame.message async for frame in answer.frames if frame.message is not None]
