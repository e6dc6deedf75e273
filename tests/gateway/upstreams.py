"""A fake server over HTTP, in both eras, that offers what a test says and writes down everything that it is asked."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
from starlette.applications import Starlette

__all__ = ["Fake", "serving"]

MODERN = "2026-07-28"
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"


class Fake:
    """Answers on the wire.

    Args:
        tools: Names, or whole definitions.
        prompts: Names.
        resources: URIs.
        capabilities: Beside those that follow from what it offers.
    """

    def __init__(
        self,
        tools: Sequence[str | dict[str, Any]] = (),
        prompts: Sequence[str] = (),
        resources: Sequence[str] = (),
        **capabilities: Any,
    ) -> None:
        self.tools = [one if isinstance(one, dict) else tool(one) for one in tools]
        self.prompts = list(prompts)
        self.resources = list(resources)
        self.capabilities = {
            **({"tools": {"listChanged": True}} if tools else {}),
            **({"prompts": {"listChanged": True}, "completions": {}} if prompts else {}),
            **({"resources": {"listChanged": True, "subscribe": True}} if resources else {}),
            **capabilities,
        }
        self.asked: list[dict[str, Any]] = []
        """Every message, in order."""
        self.raw: list[bytes] = []
        self.others: dict[str, Callable[[dict[str, Any]], Any]] = {}
        self.held = asyncio.Event()
        """Until it is set, the tool `hold` doesn't answer."""
        self.holding = asyncio.Event()
        self.instructions: str | None = None
        self._streams: list[tuple[Any, asyncio.Queue[dict[str, Any]]]] = []
        self._sessions = 0

    def methods(self) -> list[str]:
        return [one["method"] for one in self.asked if "method" in one]

    def calls(self) -> list[str]:
        return [one["params"]["name"] for one in self.asked if one.get("method") == "tools/call"]

    def last(self, method: str) -> dict[str, Any]:
        return [one for one in self.asked if one.get("method") == method][-1]

    def forget(self) -> None:
        """Begin anew to write down."""
        self.asked.clear()
        self.raw.clear()

    def tell(self, method: str, **params: Any) -> None:
        """Send a notice, or with an `id` among the parameters a request, to whoever listens."""
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params}
        if "id" in params:
            message["id"] = params.pop("id")
        for subscription, stream in self._streams:
            meta = {"_meta": {SUBSCRIPTION: subscription}} if subscription is not None else {}
            stream.put_nowait({**message, "params": {**params, **meta}})

    @property
    def listened(self) -> int:
        """How many streams are read now."""
        return len(self._streams)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        headers = {name.decode(): value.decode("latin-1") for name, value in scope["headers"]}
        if scope["method"] == "GET":
            await self._stream(None, receive, send)
            return
        body = b""
        while True:
            event = await receive()
            body += event.get("body", b"")
            if not event.get("more_body"):
                break
        if scope["method"] != "POST":
            await _reply(send, 200, b"")
            return
        message = json.loads(body)
        self.asked.append(message)
        self.raw.append(body)
        method = message.get("method")
        if "id" not in message or method is None:
            await _reply(send, 202, b"")
            return
        if method == "tools/call" and message["params"]["name"] == "drop":
            # It was done; the answer breaks off.
            start = {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"100")]}
            await send({**start, "headers": [*start["headers"], (b"content-type", b"application/json")]})
            await send({"type": "http.response.body", "body": b'{"jsonrpc"', "more_body": True})
            raise ConnectionAbortedError("dropped, as asked")
        modern = headers.get("mcp-protocol-version") == MODERN
        if method == "subscriptions/listen" and modern:
            first = {"notifications": message["params"]["notifications"], "_meta": {SUBSCRIPTION: message["id"]}}
            await self._stream(message["id"], receive, send, first)
            return
        try:
            result = await self._result(method, message.get("params") or {}, modern=modern)
            answer = {"result": {**result, **({"resultType": result.get("resultType", "complete")} if modern else {})}}
        except LookupError as error:
            code, words = error.args
            answer = {"error": {"code": code, "message": words}}
        more = []
        if method == "initialize":
            self._sessions += 1
            more = [(b"mcp-session-id", f"s{self._sessions}".encode())]
        await _reply(send, 200, json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}).encode(), *more)

    async def _result(self, method: str, params: dict[str, Any], *, modern: bool) -> dict[str, Any]:
        if method in self.others:
            return self.others[method](params)
        hello: dict[str, Any] = {"capabilities": self.capabilities}
        if self.instructions is not None:
            hello["instructions"] = self.instructions
        match method:
            case "initialize":
                return {**hello, "protocolVersion": "2025-11-25", "serverInfo": {"name": "fake", "version": "1"}}
            case "server/discover" if modern:
                return {**hello, "supportedVersions": [MODERN, "2025-11-25"]}
            case "tools/list":
                return {"tools": self.tools, **({"ttlMs": 0, "cacheScope": "private"} if modern else {})}
            case "prompts/list":
                return {"prompts": [{"name": name} for name in self.prompts]}
            case "resources/list":
                return {"resources": [{"uri": uri, "name": uri} for uri in self.resources]}
            case "resources/templates/list":
                return {"resourceTemplates": []}
            case "tools/call":
                return await self._called(params, modern=modern)
            case "prompts/get" if params["name"] in self.prompts:
                return {"messages": []}
            case "resources/read":
                return {"contents": [{"uri": params["uri"], "text": "read"}]}
            case "completion/complete":
                return {"completion": {"values": ["a"]}}
            case "resources/subscribe" | "resources/unsubscribe" | "logging/setLevel" | "ping":
                return {}
            case _ if method.startswith("vendor/"):
                return {"vendor": params.get("x")}
            case _:
                raise LookupError(-32601, "Method not found")

    async def _called(self, params: dict[str, Any], *, modern: bool) -> dict[str, Any]:
        name = params["name"]
        if name not in {one["name"] for one in self.tools}:
            raise LookupError(-32602, f"Unknown tool: {name}")
        if name == "hold":
            self.holding.set()
            await self.held.wait()
        if name == "ask" and modern and "inputResponses" not in params:
            question = {"method": "elicitation/create", "params": {"mode": "form", "message": "?"}}
            return {"resultType": "input_required", "inputRequests": {"q": question}, "requestState": "state"}
        return {"content": [{"type": "text", "text": json.dumps({"name": name, "arguments": params.get("arguments")})}]}

    async def _stream(self, subscription: Any, receive: Any, send: Any, first: Any = None) -> None:
        queue: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        if first is not None:
            acknowledged = "notifications/subscriptions/acknowledged"
            queue.put_nowait({"jsonrpc": "2.0", "method": acknowledged, "params": first})
        entry = (subscription, queue)
        self._streams.append(entry)
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]})
        await send({"type": "http.response.body", "body": b": here\n\n", "more_body": True})

        async def write() -> None:
            while True:
                data = f"event: message\ndata: {json.dumps(await queue.get())}\n\n".encode()
                await send({"type": "http.response.body", "body": data, "more_body": True})

        writing = asyncio.create_task(write())
        try:
            while (await receive())["type"] != "http.disconnect":
                pass
        finally:
            writing.cancel()
            self._streams.remove(entry)
            await asyncio.gather(writing, return_exceptions=True)


def tool(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "description": f"Does {name}.", "inputSchema": {"type": "object"}, **more}


async def _reply(send: Any, status: int, body: bytes, *headers: tuple[bytes, bytes]) -> None:
    start = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode()), *headers]
    await send({"type": "http.response.start", "status": status, "headers": start})
    await send({"type": "http.response.body", "body": body})


@asynccontextmanager
async def serving(app: Any) -> AsyncIterator[int]:
    """An application on a port of this machine."""
    config = uvicorn.Config(
        app,
        host="127.0.0.1",
        port=0,
        log_level="error",
        lifespan="on" if isinstance(app, Starlette) else "off",
        timeout_graceful_shutdown=1,
        http="h11",
    )
    server = uvicorn.Server(config)
    server.install_signal_handlers = lambda: None  # type: ignore[attr-defined]
    task = asyncio.create_task(server.serve())
    async with asyncio.timeout(30):
        while not server.started:
            await asyncio.sleep(0.005)
    try:
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        server.force_exit = True
        await task
