"""A whole gateway for tests that attack it: real fronts and upstreams, and clients that send exactly what they say."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from hotplug.connect import CommandTarget, HttpTarget, parse_target
from hotplug.gateway.app import Gateway
from hotplug.gateway.config import GatewayConfig, ServerConfig
from hotplug.store import memory

from .upstreams import MODERN, serving

__all__ = ["Hall", "Reply", "Session", "Stdio", "Thread", "Wire", "hall", "only", "until"]

META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "attacker", "version": "1"},
}
AWARE = {"extensions": {"tools.noetic/profiles": {}}}
ACCEPT = "application/json, text/event-stream"
NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}


async def until(condition: Any, limit: float = 30.0) -> None:
    """Wait until it holds."""
    async with asyncio.timeout(limit):
        while not condition():
            await asyncio.sleep(0.01)


@dataclass(frozen=True)
class Reply:
    """An answer of HTTP, every byte of it but the date."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes

    @property
    def messages(self) -> list[dict[str, Any]]:
        if dict(self.headers).get("content-type") == "text/event-stream":
            found = [line[6:] for line in self.body.split(b"\r\n") if line.startswith(b"data: {")]
            return [json.loads(one) for one in found]
        return [json.loads(self.body)]

    @property
    def message(self) -> dict[str, Any]:
        return self.messages[-1]

    def masked(self) -> Reply:
        """Without what is drawn by lot."""
        headers = tuple((name, "-" if name == "mcp-session-id" else value) for name, value in self.headers)
        return replace(self, headers=headers)


class Wire:
    """One connection of HTTP/1.1, on which a request goes out as it is written.

    Args:
        limit: Seconds for an answer's head, and for its body.
    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, limit: float = 20) -> None:
        self.reader = reader
        self.writer = writer
        self.limit = limit
        self.bodiless = False

    @classmethod
    @asynccontextmanager
    async def sent(
        cls,
        port: int,
        method: str,
        target: str,
        headers: Sequence[tuple[str, str]],
        body: bytes = b"",
        *,
        limit: float = 20,
    ) -> AsyncIterator[Self]:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        given = {name.lower() for name, _ in headers}
        more = [("Host", f"127.0.0.1:{port}")] if "host" not in given else []
        length = [("Content-Length", str(len(body)))] if body or method == "POST" else []
        lines = [f"{method} {target} HTTP/1.1", *(f"{k}: {v}" for k, v in (*more, *headers, *length)), "", ""]
        writer.write("\r\n".join(lines).encode("latin-1") + body)
        wire = cls(reader, writer, limit)
        wire.bodiless = method == "HEAD"
        try:
            yield wire
        finally:
            writer.close()
            await asyncio.gather(writer.wait_closed(), return_exceptions=True)

    async def head(self) -> tuple[int, tuple[tuple[str, str], ...]]:
        async with asyncio.timeout(self.limit):
            raw = await self.reader.readuntil(b"\r\n\r\n")
        status, *lines = raw.decode("latin-1").strip().split("\r\n")
        split = [line.split(": ", 1) for line in lines]
        kept = tuple((name.lower(), value) for name, value in split if name.lower() != "date")
        return int(status.split(" ")[1]), kept

    async def chunk(self) -> bytes:
        """The next chunk of a stream; empty at its end."""
        size = int((await self.reader.readuntil(b"\r\n")).strip(), 16)
        data = await self.reader.readexactly(size + 2)
        return data[:-2]

    async def reply(self) -> Reply:
        status, headers = await self.head()
        given = dict(headers)
        body = b""
        async with asyncio.timeout(self.limit):
            if given.get("transfer-encoding") == "chunked":
                while part := await self.chunk():
                    body += part
            elif "content-length" in given and not self.bodiless:
                body = await self.reader.readexactly(int(given["content-length"]))
        return Reply(status, headers, body)

    async def event(self) -> dict[str, Any]:
        """The next message of a stream."""
        async with asyncio.timeout(30):
            while True:
                part = await self.chunk()
                if not part:
                    raise EOFError
                for line in part.split(b"\r\n"):
                    if line.startswith(b"data: {"):
                        return json.loads(line[6:])

    async def ended(self) -> None:
        """Wait until the stream ends."""
        async with asyncio.timeout(30):
            while await self.chunk():
                pass


@dataclass
class Thread:
    """A client of one thread, with its token; `limit` is the seconds that it waits for an answer."""

    hall: Hall
    id: str
    token: str
    limit: float = 20
    _ids: int = field(default=0, repr=False)

    @property
    def path(self) -> str:
        return f"/threads/{self.id}/mcp"

    @property
    def bearer(self) -> list[tuple[str, str]]:
        return [("Authorization", f"Bearer {self.token}")]

    async def modern(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        meta: Mapping[str, Any] | None = None,
        body: bytes | None = None,
        id_: Any = 1,
        name: str | None = None,
        aware: bool = False,
    ) -> Reply:
        headers, data = self.written(method, params, meta=meta, body=body, id_=id_, name=name, aware=aware)
        async with Wire.sent(self.hall.port, "POST", self.path, headers, data, limit=self.limit) as wire:
            return await wire.reply()

    def written(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        meta: Mapping[str, Any] | None = None,
        body: bytes | None = None,
        id_: Any = 1,
        name: str | None = None,
        aware: bool = False,
    ) -> tuple[list[tuple[str, str]], bytes]:
        capable = {"io.modelcontextprotocol/clientCapabilities": AWARE} if aware else {}
        given = {**(params or {}), "_meta": {**META, **capable, **(meta or {})}}
        message = {"jsonrpc": "2.0", "id": id_, "method": method, "params": given}
        named = name or (str(given.get(NAMED[method])) if method in NAMED else None)
        headers = [
            *self.bearer,
            ("Accept", ACCEPT),
            ("Content-Type", "application/json"),
            ("MCP-Protocol-Version", MODERN),
            ("Mcp-Method", method),
            *([("Mcp-Name", named)] if named is not None else []),
        ]
        return headers, body if body is not None else json.dumps(message).encode()

    @asynccontextmanager
    async def listening(self, **wanted: Any) -> AsyncIterator[Wire]:
        """A `subscriptions/listen` that was acknowledged."""
        headers, data = self.written("subscriptions/listen", {"notifications": wanted})
        async with Wire.sent(self.hall.port, "POST", self.path, headers, data) as wire:
            await wire.head()
            assert (await wire.event())["method"] == "notifications/subscriptions/acknowledged"
            yield wire

    async def call(self, tool: str, arguments: Mapping[str, Any] | None = None, **more: Any) -> dict[str, Any]:
        """The answer's `result`, or its `error`."""
        reply = await self.modern("tools/call", {"name": tool, "arguments": dict(arguments or {})}, **more)
        return reply.message.get("result") or reply.message["error"]

    async def tools(self, **more: Any) -> list[str]:
        return [one["name"] for one in (await self.modern("tools/list", **more)).message["result"]["tools"]]

    async def session(self, **capabilities: Any) -> Session:
        """A session of the handshake era."""
        params = {
            "protocolVersion": "2025-11-25",
            "capabilities": capabilities,
            "clientInfo": {"name": "attacker", "version": "1"},
        }
        session = Session(self)
        session.hello = await session.request("initialize", params)
        session.id = dict(session.hello.headers).get("mcp-session-id")
        await session.notify("notifications/initialized")
        return session


@dataclass
class Session:
    """A client of the handshake era."""

    thread: Thread
    id: str | None = None
    hello: Reply = field(default=Reply(0, (), b""), repr=False)

    @property
    def headers(self) -> list[tuple[str, str]]:
        session = [("Mcp-Session-Id", self.id)] if self.id is not None else []
        return [*self.thread.bearer, ("Accept", ACCEPT), ("Content-Type", "application/json"), *session]

    async def send(self, data: bytes) -> Reply:
        thread = self.thread
        port, limit = thread.hall.port, thread.limit
        async with Wire.sent(port, "POST", thread.path, self.headers, data, limit=limit) as wire:
            return await wire.reply()

    async def request(self, method: str, params: Mapping[str, Any] | None = None, id_: Any = 1) -> Reply:
        message = {"jsonrpc": "2.0", "id": id_, "method": method, **({"params": params} if params is not None else {})}
        return await self.send(json.dumps(message).encode())

    async def notify(self, method: str, params: Mapping[str, Any] | None = None) -> Reply:
        return await self.send(json.dumps({"jsonrpc": "2.0", "method": method, "params": params or {}}).encode())

    async def call(self, tool: str, arguments: Mapping[str, Any] | None = None) -> dict[str, Any]:
        reply = await self.request("tools/call", {"name": tool, "arguments": dict(arguments or {})})
        return reply.message.get("result") or reply.message["error"]

    async def tools(self) -> list[str]:
        return [one["name"] for one in (await self.request("tools/list")).message["result"]["tools"]]

    @asynccontextmanager
    async def general(self, *more: tuple[str, str]) -> AsyncIterator[Wire]:
        """The GET stream."""
        async with Wire.sent(self.thread.hall.port, "GET", self.thread.path, [*self.headers, *more]) as wire:
            yield wire


class Stdio:
    """A client on lines, in place of standard streams: what `hotplug serve` serves."""

    def __init__(self) -> None:
        self.incoming: asyncio.Queue[bytes] = asyncio.Queue()
        self.outgoing: asyncio.Queue[bytes] = asyncio.Queue()

    async def read(self) -> bytes:
        return await self.incoming.get()

    async def write(self, line: bytes) -> None:
        self.outgoing.put_nowait(line)

    def send(self, message: Mapping[str, Any] | bytes) -> None:
        self.incoming.put_nowait(message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n")

    async def receive(self) -> bytes:
        async with asyncio.timeout(20):
            return await self.outgoing.get()

    async def request(self, method: str, params: Mapping[str, Any] | None = None, *, modern: bool = True) -> bytes:
        """The next line after a request."""
        given = {**(params or {}), **({"_meta": META} if modern else {})}
        self.send({"jsonrpc": "2.0", "id": 1, "method": method, "params": given})
        return await self.receive()

    async def initialize(self) -> bytes:
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}
        found = await self.request("initialize", params, modern=False)
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return found


class Hall:
    """A gateway with its HTTP front, and its settings file."""

    def __init__(self, gateway: Gateway, port: int, settings: Path) -> None:
        self.gateway = gateway
        self.port = port
        self._settings = settings
        self.written = 0

    async def thread(self, parent: Thread | None = None, *, profile: str | None = None, **more: Any) -> Thread:
        above = parent.id if parent is not None else None
        record, token = await self.gateway.threads.open(parent=above, **more)
        if profile is not None:
            self.settings(mcpThreadProfiles={**self.document().get("mcpThreadProfiles", {}), record.id: profile})
        return Thread(self, record.id, token)

    def document(self) -> dict[str, Any]:
        return json.loads(self._settings.read_text())

    def settings(self, **changes: Any) -> None:
        """Change keys of the settings, as another process would."""
        self.write(json.dumps({**self.document(), **changes}))

    def write(self, text: str) -> None:
        beside = self._settings.with_suffix(".new")
        beside.write_text(text)
        beside.replace(self._settings)

    @property
    def settings_path(self) -> Path:
        return self._settings

    async def raw(self, method: str, target: str, headers: Sequence[tuple[str, str]] = (), body: bytes = b"") -> Reply:
        async with Wire.sent(self.port, method, target, headers, body) as wire:
            return await wire.reply()

    @asynccontextmanager
    async def stdio(self, thread: str) -> AsyncIterator[Stdio]:
        lines, threads = Stdio(), self.gateway.threads
        task = asyncio.create_task(self.gateway.serve_lines(thread, lambda: threads.is_open(thread), lines))
        try:
            yield lines
        finally:
            lines.incoming.put_nowait(b"")
            await task


@asynccontextmanager
async def hall(
    folder: Path, servers: Mapping[str, Any], settings: Mapping[str, Any] | None = None, **config: Any
) -> AsyncIterator[Hall]:
    """A gateway.

    Args:
        servers: An ASGI application (`Fake` is one), a command (a list), a `ServerConfig`, or what a target may be.
        settings: Of access.
        config: Of the gateway; `entries` has more of single servers.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "settings.json"
    path.write_text(json.dumps(settings or {}))
    entries: Mapping[str, Mapping[str, Any]] = config.pop("entries", {})
    async with AsyncExitStack() as stack:
        configs: dict[str, ServerConfig] = {}
        for name, server in servers.items():
            more = entries.get(name, {})
            if isinstance(server, ServerConfig):
                configs[name] = server
            elif isinstance(server, str):
                configs[name] = ServerConfig(name, parse_target(server), **more)
            elif isinstance(server, list):
                configs[name] = ServerConfig(name, CommandTarget(tuple(server)), **more)
            else:
                port = await stack.enter_async_context(serving(server))
                configs[name] = ServerConfig(name, HttpTarget(f"http://127.0.0.1:{port}/mcp"), **more)
        store = await stack.enter_async_context(memory())
        set_up = GatewayConfig(servers=configs, settings=path, **config)
        gateway = await stack.enter_async_context(Gateway(set_up, store=store))
        port = await stack.enter_async_context(serving(gateway.http()))
        yield Hall(gateway, port, path)


def only(*servers: str, **tools: Any) -> dict[str, Any]:
    """Settings that give everybody these servers, and of their tools what is said."""
    profile = {"servers": list(servers), "groups": [], **({"tools": tools} if tools else {})}
    return {"mcpProfiles": {"some": profile}, "mcpProfile": "some"}
