"""A client of MCP that keeps every message as the text that came: over HTTP and standard streams, in both eras."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import aiohttp

from hotplug.gateway.link import Era
from hotplug.testing.odd.writing import member

VERSIONS: Mapping[Era, str] = {"legacy": "2025-11-25", "modern": "2026-07-28"}
NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
CAPABILITIES = (
    '{"elicitation":{"form":{},"vendorMode":null},"sampling":{},"roots":{},"experimental":{"vendor.example/c":1.50}}'
)
INFO = '{"name":"raw","version":"1","vendorField":{"lone":"\\ud800"}}'
ENVELOPE = (
    f'"io.modelcontextprotocol/protocolVersion":"{VERSIONS["modern"]}",'
    f'"io.modelcontextprotocol/clientInfo":{INFO},"io.modelcontextprotocol/clientCapabilities":{CAPABILITIES}'
)
LIMIT = 60.0


@dataclass
class Said:
    """What came of one request.

    Args:
        texts: Every message on its way, the answer last.
    """

    texts: list[str] = field(default_factory=list[str])

    @property
    def answer(self) -> str:
        return self.texts[-1]

    @property
    def notes(self) -> list[str]:
        return self.texts[:-1]

    @property
    def result(self) -> Any:
        return json.loads(self.answer)["result"]

    def raw(self, *path: str) -> str | None:
        found = member(self.answer, *path)
        return found.text if found is not None else None


class Transport(Protocol):
    def stream(self, text: str, headers: Mapping[str, str]) -> AsyncGenerator[str]:
        """Send a request; every message on its stream until its answer."""
        ...

    async def send(self, text: str) -> None:
        """Send what has no answer."""
        ...

    general: asyncio.Queue[str]


class RawClient:
    """One client.

    Args:
        answers: What it answers to a server's question, by method: a result as JSON.
    """

    def __init__(self, transport: Transport, era: Era) -> None:
        self.era: Era = era
        self.transport = transport
        self.answers: dict[str, str] = {}
        self.questions: list[str] = []
        self.hello: Said | None = None
        self.answer: Callable[[str], Awaitable[str | None]] = self._answer
        self._next = 0

    async def _answer(self, question: str) -> str | None:
        return self.answers.get(json.loads(question)["method"])

    def params(self, members: str = "", meta: str = "") -> str:
        """The params of a request, with what its era has in `_meta`."""
        inside = [ENVELOPE] if self.era == "modern" else []
        inside += [meta] if meta else []
        parts = [members] if members else []
        parts += ['"_meta":{' + ",".join(inside) + "}"] if inside else []
        return "{" + ",".join(parts) + "}"

    def new_id(self) -> str:
        self._next += 1
        return str(self._next)

    async def read(self, method: str, members: str = "", meta: str = "", id_: str | None = None) -> AsyncGenerator[str]:
        """The messages that answer a request as they come."""
        id_ = id_ or self.new_id()
        params = self.params(members, meta)
        text = f'{{"jsonrpc":"2.0","id":{id_},"method":{json.dumps(method)},"params":{params}}}'
        headers: dict[str, str] = {}
        if self.era == "modern":
            headers = {"mcp-protocol-version": VERSIONS["modern"], "mcp-method": method}
            name = member(params, NAMED.get(method, ""))
            if name is not None:
                headers["mcp-name"] = _header(json.loads(name.text))
        stream = self.transport.stream(text, headers)
        try:
            async for told in stream:
                if member(told, "method") is not None and (number := member(told, "id")) is not None:
                    self.questions.append(told)
                    result = await self.answer(told)
                    body = f'"result":{result}' if result else '"error":{"code":-32601,"message":"no","data":{"a":1.0}}'
                    await self.transport.send(f'{{"jsonrpc":"2.0","id":{number.text},{body}}}')
                    continue
                yield told
                if member(told, "method") is None and (number := member(told, "id")) and number.text == id_:
                    return
        finally:
            await stream.aclose()

    async def ask(self, method: str, members: str = "", meta: str = "", id_: str | None = None) -> Said:
        said = Said()
        async with asyncio.timeout(LIMIT):
            async for text in self.read(method, members, meta, id_):
                said.texts.append(text)
        return said

    async def call(self, tool: str, arguments: str = "{}", meta: str = "", more: str = "") -> Said:
        return await self.ask("tools/call", f'"name":{json.dumps(tool)},"arguments":{arguments}{more}', meta)

    async def notify(self, method: str, params: str) -> None:
        await self.transport.send(f'{{"jsonrpc":"2.0","method":{json.dumps(method)},"params":{params}}}')

    async def heard(self, fits: Callable[[str], bool]) -> str:
        """The next message of the general stream that fits."""
        async with asyncio.timeout(LIMIT):
            while True:
                text = await self.transport.general.get()
                if fits(text):
                    return text


def _header(value: str) -> str:
    if value.isascii() and value.isprintable():
        return value
    return f"=?base64?{base64.b64encode(value.encode()).decode()}?="


def is_method(method: str) -> Callable[[str], bool]:
    return lambda text: json.loads(text).get("method") == method


class HttpTransport:
    def __init__(self, session: aiohttp.ClientSession, url: str, token: str | None) -> None:
        self.general: asyncio.Queue[str] = asyncio.Queue()
        self.headers = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
        if token is not None:
            self.headers["authorization"] = f"Bearer {token}"
        self.session = session
        self.url = url

    async def stream(self, text: str, headers: Mapping[str, str]) -> AsyncGenerator[str]:
        async with self.session.post(self.url, data=text.encode(), headers={**self.headers, **headers}) as response:
            if "mcp-session-id" in response.headers:
                self.headers["mcp-session-id"] = response.headers["mcp-session-id"]
            if response.content_type != "text/event-stream":
                yield (await response.read()).decode()
                return
            async for told in events(response.content):
                yield told

    async def send(self, text: str) -> None:
        async with self.session.post(self.url, data=text.encode(), headers=self.headers) as response:
            assert response.status == 202, (response.status, await response.text())

    async def listen(self, ready: asyncio.Event) -> None:
        headers = {**self.headers, "accept": "text/event-stream"}
        async with self.session.get(self.url, headers=headers) as response:
            assert response.status == 200
            ready.set()
            async for told in events(response.content):
                self.general.put_nowait(told)


async def events(content: aiohttp.StreamReader) -> AsyncIterator[str]:
    """The data of each event that has some."""
    data: list[bytes] = []
    while line := await content.readline():
        line = line.rstrip(b"\r\n")
        if line.startswith(b"data:"):
            data.append(line[5:].removeprefix(b" "))
        elif not line and data:
            text, data = b"\n".join(data).decode(), []
            if text:
                yield text


class StdioTransport:
    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.general: asyncio.Queue[str] = asyncio.Queue()
        self.process = process
        self.waiting: dict[str, asyncio.Queue[str]] = {}

    async def stream(self, text: str, headers: Mapping[str, str]) -> AsyncGenerator[str]:
        """Every message that comes while this request is the only one under way is taken for its own."""
        number = member(text, "id")
        assert number is not None
        queue = self.waiting[number.text] = asyncio.Queue(0 if "subscriptions/listen" in text else 1)
        await self.send(text)
        try:
            while True:
                yield await queue.get()
        finally:
            del self.waiting[number.text]
            while not queue.empty():
                queue.get_nowait()

    async def send(self, text: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(text.encode() + b"\n")
        await self.process.stdin.drain()

    async def listen(self) -> None:
        assert self.process.stdout is not None
        while line := await self.process.stdout.readline():
            text = line.decode().rstrip("\n")
            number = member(text, "id") if member(text, "method") is None else None
            queue = self.waiting.get(number.text) if number is not None else None
            subscription = member(text, "params", "_meta", "io.modelcontextprotocol/subscriptionId")
            if subscription is not None:
                queue = self.waiting.get(subscription.text)
            if queue is None and member(text, "method") is not None and not _general(text):
                queue = next(iter(self.waiting.values())) if len(self.waiting) == 1 else None
            if queue is not None:
                await queue.put(text)
            else:
                self.general.put_nowait(text)


def _general(text: str) -> bool:
    method = json.loads(text)["method"]
    if method.endswith("/list_changed") or method == "notifications/resources/updated":
        return "_meta" not in json.loads(text).get("params", {})
    return False


@asynccontextmanager
async def over_http(
    url: str, era: Era, token: str | None = None, *, capabilities: str = CAPABILITIES, info: str = INFO
) -> AsyncGenerator[RawClient]:
    async with aiohttp.ClientSession(read_bufsize=64 * 1024, timeout=aiohttp.ClientTimeout(total=120)) as session:
        transport = HttpTransport(session, url, token)
        client = RawClient(transport, era)
        listening: asyncio.Task[None] | None = None
        if era == "legacy":
            await _shake_hands(client, capabilities, info)
            transport.headers["mcp-protocol-version"] = VERSIONS["legacy"]
            await client.notify("notifications/initialized", "{}")
            ready = asyncio.Event()
            listening = asyncio.create_task(transport.listen(ready))
            await asyncio.wait_for(ready.wait(), LIMIT)
        try:
            yield client
        finally:
            if listening is not None:
                listening.cancel()
                await asyncio.gather(listening, return_exceptions=True)
                async with session.delete(transport.url, headers=transport.headers):
                    pass


@asynccontextmanager
async def over_stdio(command: tuple[str, ...], era: Era, env: Mapping[str, str]) -> AsyncGenerator[RawClient]:
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env=dict(env),
        limit=64 * 1024 * 1024,
    )
    transport = StdioTransport(process)
    client = RawClient(transport, era)
    listening = asyncio.create_task(transport.listen())
    try:
        if era == "legacy":
            await _shake_hands(client)
            await client.notify("notifications/initialized", "{}")
        yield client
    finally:
        assert process.stdin is not None
        process.stdin.close()
        async with asyncio.timeout(LIMIT):
            await process.wait()
            await listening


async def _shake_hands(client: RawClient, capabilities: str = CAPABILITIES, info: str = INFO) -> None:
    members = (
        f'"protocolVersion":"{VERSIONS["legacy"]}","capabilities":{capabilities},"clientInfo":{info},"vendorField":1e-7'
    )
    client.hello = await client.ask("initialize", members)
