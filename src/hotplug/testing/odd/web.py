"""The odd server over HTTP, in both eras, as a small Starlette app.

Legacy requests, and tool calls and subscriptions of the newer era, are answered by a stream of events; everything else
of the newer era by a JSON body. A modern client that goes away cancels what it asked for.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import AsyncGenerator, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Final

from starlette.applications import Starlette
from starlette.requests import Request as HttpRequest
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from hotplug.testing.odd.exchange import HANDSHAKE_VERSIONS, Exchange, House, Request, Session
from hotplug.testing.odd.methods import answer, take

__all__ = ["odd_app"]

_SESSION_HEADER: Final = "mcp-session-id"
_VERSION_HEADER: Final = "mcp-protocol-version"
_STREAMED: Final = ("tools/call", "subscriptions/listen", "vendor/announce")
_ROOM: Final = 64
_STATUS: Final = {-32601: 404, -32602: 400}


def odd_app() -> Starlette:
    """The server at `/mcp`."""
    web = _Web()
    return Starlette(
        routes=[
            Route("/mcp", web.post, methods=["POST"]),
            Route("/mcp", web.get, methods=["GET"]),
            Route("/mcp", web.delete, methods=["DELETE"]),
        ]
    )


class _Mail:
    """Texts from whoever answers to whoever writes the response.

    Args:
        room: How many may wait to be written before the sender has to wait as well; 0: any number.
    """

    def __init__(self, room: int) -> None:
        self._texts: asyncio.Queue[str | None] = asyncio.Queue(maxsize=room)
        self._read_no_more = False

    async def send(self, text: str) -> None:
        if not self._read_no_more:
            await self._texts.put(text)

    async def close(self) -> None:
        """No text follows."""
        if not self._read_no_more:
            await self._texts.put(None)

    async def events(self) -> AsyncGenerator[bytes]:
        """The texts as events, until the last one or until the reader goes."""
        try:
            while (text := await self._texts.get()) is not None:
                yield f"event: message\ndata: {text}\n\n".encode()
        finally:
            # Whoever waits for room goes on, to nobody.
            self._read_no_more = True
            while not self._texts.empty():
                self._texts.get_nowait()


@dataclass(slots=True, eq=False)
class _Client:
    """A legacy session, and its stream for what belongs to no request."""

    session: Session
    mail: _Mail
    answering: dict[str, asyncio.Task[None]] = field(default_factory=dict[str, "asyncio.Task[None]"])


class _Web:
    def __init__(self) -> None:
        self._house = House()
        self._clients: dict[str, _Client] = {}

    async def post(self, http: HttpRequest) -> Response:
        request = Request.read((await http.body()).decode("utf-8", "replace"))
        if request is None:
            return _json('{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}', 400)
        version = http.headers.get(_VERSION_HEADER)
        if version is None or version in HANDSHAKE_VERSIONS:
            return await self._legacy(http, request)
        return await self._modern(http, request)

    async def _modern(self, http: HttpRequest, request: Request) -> Response:
        if request.method is None or request.id is None:
            return Response(status_code=202)
        mail = _Mail(_ROOM)
        exchange = Exchange(self._house, Session(mail.send), request, True, mail.send, _headers(http))
        if request.method in _STREAMED:
            return _events(_while_read(_answering(exchange, mail), mail))
        text = await answer(exchange)
        error = json.loads(text).get("error")
        return _json(text, _STATUS.get(error["code"], 200) if error else 200)

    async def _legacy(self, http: HttpRequest, request: Request) -> Response:
        if request.method == "initialize":
            name, client = secrets.token_hex(16), _new_client()
            self._clients[name] = client
            return self._streamed_to(client, http, request, {_SESSION_HEADER: name})
        client = self._clients.get(http.headers.get(_SESSION_HEADER, ""))
        if client is None:
            return Response("no such session", status_code=404)
        if request.method is None:
            client.session.answered(request.message)
            return Response(status_code=202)
        if request.id is None:
            take(request, self._house, client.session, client.answering)
            return Response(status_code=202)
        return self._streamed_to(client, http, request, {})

    def _streamed_to(self, client: _Client, http: HttpRequest, request: Request, headers: dict[str, str]) -> Response:
        mail = _Mail(_ROOM)
        exchange = Exchange(self._house, client.session, request, False, mail.send, _headers(http))
        task = asyncio.create_task(_answering(exchange, mail))
        assert request.id is not None
        number = request.id.text
        client.answering[number] = task
        task.add_done_callback(lambda _: client.answering.pop(number, None))
        return _events(mail.events(), headers)

    async def get(self, http: HttpRequest) -> Response:
        if _SESSION_HEADER not in http.headers:
            return Response("only within a session", status_code=405)
        client = self._clients.get(http.headers[_SESSION_HEADER])
        if client is None:
            return Response("no such session", status_code=404)
        return _events(client.mail.events())

    async def delete(self, http: HttpRequest) -> Response:
        client = self._clients.pop(http.headers.get(_SESSION_HEADER, ""), None)
        if client is None:
            return Response("no such session", status_code=404)
        self._house.sessions.discard(client.session)
        for task in client.answering.values():
            task.cancel()
        await client.mail.close()
        return Response(status_code=204)


def _new_client() -> _Client:
    mail = _Mail(room=0)
    return _Client(Session(mail.send), mail)


async def _answering(exchange: Exchange, mail: _Mail) -> None:
    try:
        await mail.send(await answer(exchange))
    finally:
        await mail.close()


async def _while_read(answering: Coroutine[None, None, None], mail: _Mail) -> AsyncGenerator[bytes]:
    """Answers for as long as somebody reads."""
    task = asyncio.create_task(answering)
    try:
        async for event in mail.events():
            yield event
    finally:
        task.cancel()


def _events(events: AsyncGenerator[bytes], headers: Mapping[str, str] | None = None) -> Response:
    return StreamingResponse(events, media_type="text/event-stream", headers=headers)


def _json(text: str, status: int) -> Response:
    return Response(text.encode("utf-8"), status, media_type="application/json")


def _headers(http: HttpRequest) -> tuple[tuple[str, str], ...]:
    return tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in http.headers.raw)
