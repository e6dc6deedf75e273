"""Streamable HTTP in both eras, as one ASGI application: `/threads/<id>/mcp` with the thread's token.

Every request is judged by itself: path and token have to be those of one thread that is open, and a session of the
handshake era is good for its own thread alone. Whatever is wrong with them, the answer is the same.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, MutableMapping
from typing import Any, Final, Protocol, cast

from hotplug.errors import StoreError
from hotplug.gateway.eras import (
    CAPABILITIES_META,
    MODERN_VERSIONS,
    check_modern,
    duplicated_header,
    era_of_header,
    http_status,
    unsupported,
)
from hotplug.gateway.front.guard import Guard
from hotplug.gateway.front.stream import PING, SSE_HEADERS, event
from hotplug.gateway.link import Answer, Frame, LinkLost
from hotplug.gateway.message import INTERNAL_ERROR, INVALID_REQUEST, PARSE_ERROR, Message, NotAMessage
from hotplug.gateway.replay import Stream
from hotplug.gateway.router import Router
from hotplug.gateway.sessions import Session, Sessions, extensions_of
from hotplug.gateway.threads_api import authorization_of, unauthorized
from hotplug.gateway.view import Caller

__all__ = ["BODY_LIMIT", "HttpFront"]

BODY_LIMIT: Final = 4 * 1024 * 1024
_PING_SECONDS: Final = 15.0
_PRIMED_SINCE: Final = "2025-11-25"
_JSON: Final = (b"content-type", b"application/json")
_TEXT: Final = (b"content-type", b"text/plain; charset=utf-8")
_SESSION: Final = "mcp-session-id"

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

_logger = logging.getLogger(__name__)


class Authenticates(Protocol):
    """Knows which token is whose."""

    def authenticate(self, id: str, token: str) -> bool:  # noqa: A002
        ...


class _Done(Exception):
    """An answer that ends the handling of a request at once."""

    def __init__(self, status: int, body: bytes = b"", *headers: tuple[bytes, bytes]) -> None:
        super().__init__(status)
        self.status = status
        self.body = body
        self.headers = headers


class HttpFront:
    """The ASGI application.

    Args:
        threads: Says whether a token is a thread's.
        api: Answers `/threads` itself, for hosts that open and close threads; already behind the guard.
        new_session: Makes the session of a client that says `initialize`.
    """

    def __init__(
        self,
        router: Router,
        sessions: Sessions,
        threads: Authenticates,
        new_session: Callable[[str, Message], Session],
        *,
        guard: Guard | None = None,
        api: App | None = None,
        body_limit: int = BODY_LIMIT,
    ) -> None:
        self._router = router
        self._sessions = sessions
        self._threads = threads
        self._new_session = new_session
        self._guard = guard or Guard()
        self._api = api
        self._limit = body_limit
        self._scopes = itertools.count(1)
        self._open: dict[str, set[_Watch]] = {}

    def end(self, thread: str) -> None:
        """Break off what is being answered to a thread: it was closed."""
        for watch in tuple(self._open.get(thread, ())):
            watch.break_off()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await _lifespan(scope, receive, send)
            return
        # Blanks at the ends of a value don't belong to it (RFC 9110, 5.5); some parsers leave them.
        raw: list[tuple[str, str]] = [
            (name.decode("latin-1"), value.decode("latin-1").strip(" \t")) for name, value in scope["headers"]
        ]
        headers = dict(raw)
        for name in ("host", "origin"):
            # Two of them are none: whoever stands in front of this may have looked at the other one.
            headers.update({name: ", ".join(held)} if len(held := [v for k, v in raw if k == name]) > 1 else {})
        try:
            refused = self._guard.refuses(headers)
            if refused is not None:
                raise _Done(refused[0], refused[1].encode(), _TEXT)
            path = scope["path"]
            if self._api is not None and not path.endswith("/mcp") and (path == "/threads" or path[:9] == "/threads/"):
                await self._api(scope, receive, send)
                return
            thread = self._thread(path, scope["headers"])
            request = _Request(scope["method"], headers, raw, receive, send)
            await self._serve(thread, request)
        except _Done as done:
            await _respond(send, done.status, done.body, *done.headers)
        except StoreError as error:
            # Who may come in can't be known: nobody does.
            _logger.error("the store can't be read: %s", error)
            body = b'{"error":"unavailable","message":"the gateway can\'t read its store now"}'
            await _respond(send, 503, body, _JSON)
        except Exception as error:
            # Its text may repeat anything; where an answer has begun, its end tells that something is missing.
            _logger.error("a request failed inside the gateway (%s)", type(error).__name__, exc_info=error)
            await _respond(send, 500, Message.error_of(None, INTERNAL_ERROR, "Internal error").encode(), _JSON)

    def _thread(self, path: str, raw: Iterable[tuple[bytes, bytes]]) -> str:
        parts = path.split("/")
        if len(parts) != 4 or parts[0] or parts[1] != "threads" or parts[3] != "mcp":
            raise _Done(404, b"Not Found", _TEXT)
        token = authorization_of(raw)
        if token is None or not self._threads.authenticate(parts[2], token):
            refused = unauthorized()
            raise _Done(refused.status, refused.body, *refused.headers)
        return parts[2]

    async def _serve(self, thread: str, request: _Request) -> None:
        if request.method == "POST" and not request.headers.get("content-type", "").lower().startswith(
            "application/json"
        ):
            raise _Done(400, b"Invalid Content-Type header", _TEXT)
        if era_of_header(request.headers.get("mcp-protocol-version")) == "modern":
            await self._modern(thread, request)
        elif request.method == "POST":
            await self._legacy_post(thread, request)
        elif request.method == "GET":
            await self._legacy_get(thread, request)
        elif request.method == "DELETE":
            session = self._session(thread, request)
            await self._sessions.end(session)
            await _respond(request.send, 200)
        else:
            raise _Done(405, b"", (b"allow", b"GET, POST, DELETE"))

    # 2026-07-28

    async def _modern(self, thread: str, request: _Request) -> None:
        if request.method != "POST":
            raise _Done(405, b"", (b"allow", b"POST"))
        has_json, has_sse = request.accepts()
        if not (has_json and has_sse):
            raise _Done(406)
        try:
            message = Message.parse(await request.body(self._limit))
        except NotAMessage as error:
            words = "Parse error" if error.code == PARSE_ERROR else _ONE_OBJECT
            raise _answered(Message.error_of(None, error.code, words)) from None
        if message.is_answer:
            raise _answered(Message.error_of(None, INVALID_REQUEST, _ONE_OBJECT))
        if message.kind == "notification":
            version = request.headers.get("mcp-protocol-version", "")
            rejected = unsupported(version) if version not in MODERN_VERSIONS else None
            raise _answered(rejected.answer(None)) if rejected is not None else _Done(202)
        twice = duplicated_header(name for name, _ in request.raw)
        if twice is not None:
            raise _answered(
                Message.error_of(message.id, -32020, f"{twice} header appears more than once"),
            )
        rejected = check_modern(message, request.headers)
        if rejected is not None:
            raise _answered(rejected.answer(message.id))
        declared = extensions_of(message.meta.get(CAPABILITIES_META))
        scope = f"r{next(self._scopes)}"
        caller = Caller(thread, "modern", scope, headers=request.headers, extensions=declared)
        async with self._watched(thread, request) as watch, self._router.handle(caller, message) as answer:
            await self._write(request, answer, legacy=None)
            watch.done()

    # Up to 2025-11-25

    def _session(self, thread: str, request: _Request) -> Session:
        id_ = request.headers.get(_SESSION)
        if id_ is None:
            raise _answered(Message.error_of(None, INVALID_REQUEST, "Bad Request: Missing session ID"), 400)
        session = self._sessions.get(id_, thread)
        if session is None:
            raise _session_gone()
        return session

    async def _legacy_post(self, thread: str, request: _Request) -> None:
        has_json, has_sse = request.accepts()
        if not (has_json and has_sse):
            words = "Not Acceptable: Client must accept both application/json and text/event-stream"
            raise _answered(Message.error_of(None, INVALID_REQUEST, words), 406)
        try:
            message = Message.parse(await request.body(self._limit))
        except NotAMessage as error:
            raise _answered(Message.error_of(None, error.code, error.message), 400) from None
        if message.kind == "request" and message.method == "initialize":
            await self._initialize(thread, request, message)
            return
        session = self._session(thread, request)
        caller = Caller(
            thread, "legacy", session.id, session=session, headers=request.headers, extensions=session.extensions
        )
        with self._sessions.using(session):
            if message.kind != "request":
                if not _gives_up(session, message):
                    await self._router.accept(caller, message)
                await _respond(request.send, 202, b"", (_SESSION.encode(), session.id.encode()))
                return
            await self._legacy_request(session, caller, message, request)

    async def _legacy_request(self, session: Session, caller: Caller, message: Message, request: _Request) -> None:
        """Answer a request in a task of its own: a client that goes away hasn't cancelled; it says so if it wants."""
        kept: asyncio.Future[Stream] = asyncio.get_running_loop().create_future()

        async def run() -> None:
            async with self._router.handle(caller, message) as answer:
                if answer.frames is None or answer.status is not None:
                    # A server behind HTTP keeps its streams itself, and clients come back to those.
                    try:
                        await self._write(request, answer, legacy=session)
                    except asyncio.CancelledError:
                        if request.gone and answer.leave is not None:
                            answer.leave()
                        raise
                    return
                stream = session.replay.open(primed=session.protocol >= _PRIMED_SINCE, awaited=True)
                kept.set_result(stream)
                try:
                    async with contextlib.aclosing(cast("AsyncGenerator[Frame]", answer.frames)) as frames:
                        async for frame in frames:
                            await stream.put(frame)
                finally:
                    stream.end()

        task = session.spawn(message.id or b"null", run())
        try:
            async with self._watched(session.thread, request) as watch:
                await asyncio.wait({task, kept}, return_when=asyncio.FIRST_COMPLETED)
                if kept.done():
                    await self._stream(request, kept.result().read(), session)
                elif not task.cancelled():
                    await task
                elif request.begun:
                    await request.finish()
                elif session.closed:
                    raise _session_gone()
                else:
                    # The client cancelled it, and wants no answer.
                    await _respond(request.send, 200, b"", *SSE_HEADERS, (_SESSION.encode(), session.id.encode()))
                watch.done()
        finally:
            if kept.done():
                kept.result().leave()
            else:
                kept.cancel()
                task.cancel()

    async def _initialize(self, thread: str, request: _Request, message: Message) -> None:
        if request.headers.get(_SESSION) is not None:
            self._session(thread, request)
        if not await self._sessions.make_room(thread):
            raise _too_many()
        session = self._new_session(thread, message)
        caller = Caller(
            thread, "legacy", session.id, session=session, headers=request.headers, extensions=session.extensions
        )
        async with self._watched(thread, request) as watch:
            try:
                result = await self._router.hello(caller)
                if not self._sessions.add(session):
                    raise _too_many()
            except BaseException:
                with contextlib.suppress(Exception):
                    await self._sessions.drop(session)
                raise
            answer = Answer(message=Message.result_of(message.id or b"null", result))
            await self._write(request, answer, legacy=session)
            watch.done()

    async def _legacy_get(self, thread: str, request: _Request) -> None:
        if not request.accepts()[1]:
            words = "Not Acceptable: Client must accept text/event-stream"
            raise _answered(Message.error_of(None, INVALID_REQUEST, words), 406)
        session = self._session(thread, request)
        last = request.headers.get("last-event-id")
        with self._sessions.using(session):
            async with self._watched(thread, request) as watch:
                if last is not None and last.startswith("~"):
                    found = session.replay.find(last)
                    if found is None:
                        raise _answered(Message.error_of(None, INVALID_REQUEST, "the stream is no longer kept"), 404)
                    stream, number = found
                    await self._stream(request, stream.read(number), session)
                elif last is not None and "~" in last:
                    await self._resume(request, session, last)
                else:
                    await self._stream(request, session.general(), session)
                watch.done()

    async def _resume(self, request: _Request, session: Session, last: str) -> None:
        server, _, event_id = last.partition("~")
        link = session.links().get(server)
        if link is None or not self._router.view.grants.gives_server(session.thread, server):
            raise _session_gone()
        try:
            async with link.resume(event_id) as answer:
                if answer.frames is None:
                    raise _Done(answer.status or 400, answer.body or b"")

                async def mapped(frames: AsyncIterator[Frame]) -> AsyncIterator[Frame]:
                    async for frame in frames:
                        yield session.down(server, frame)

                await self._stream(request, mapped(answer.frames), session)
        except LinkLost:
            if not request.begun:
                raise _session_gone() from None
            await request.finish()

    @contextlib.asynccontextmanager
    async def _watched(self, thread: str, request: _Request) -> AsyncGenerator[_Watch]:
        """Cancel what runs inside when the client goes away, which is how it cancels, and when the thread is closed."""
        current = asyncio.current_task()
        assert current is not None
        watch = _Watch(request, current)
        held = self._open.setdefault(thread, set())
        held.add(watch)
        try:
            yield watch
        except asyncio.CancelledError:
            if not watch.stopped:
                raise
            current.uncancel()
            if watch.broken:
                await request.finish()
        finally:
            held.discard(watch)
            if not held and self._open.get(thread) is held:
                del self._open[thread]
            watch.done()
            with contextlib.suppress(asyncio.CancelledError):
                await watch.watching

    # Answers

    async def _write(self, request: _Request, answer: Answer, *, legacy: Session | None) -> None:
        if answer.frames is not None:
            await self._stream(request, answer.frames, legacy)
            return
        more = ((_SESSION.encode(), legacy.id.encode()),) if legacy is not None else ()
        if answer.message is None:
            kind = answer.headers.get("content-type")
            headers = ((b"content-type", kind.encode("latin-1")),) if kind else ()
            await _respond(request.send, answer.status or 502, answer.body or b"", *headers, *more)
        elif legacy is None:
            message = answer.message
            status = answer.status or http_status(message.error_code if message.kind == "error" else None)
            await _respond(request.send, status, message.encode(), _JSON, *more)
        elif answer.status is not None:
            await _respond(request.send, answer.status, answer.message.encode(), _JSON, *more)
        else:
            # What the gateway answers itself comes as the servers of this era do it.
            body = event(Frame(answer.message))
            await _respond(request.send, 200, body, *SSE_HEADERS, *more)

    async def _stream(self, request: _Request, frames: AsyncIterator[Frame], legacy: Session | None) -> None:
        """Write frames as they come; in the modern era an answer that comes first is no stream."""
        more = [(_SESSION.encode(), legacy.id.encode())] if legacy is not None else []
        writer = _StreamWriter(request.send, [*SSE_HEADERS, *more])
        try:
            if legacy is not None:
                await writer.start()
            async with contextlib.aclosing(cast("AsyncGenerator[Frame]", frames)):
                async for frame in frames:
                    message = frame.message
                    if not writer.started and message is not None and message.is_answer:
                        status = http_status(message.error_code if message.kind == "error" else None)
                        await _respond(request.send, status, message.encode(), _JSON)
                        return
                    await writer.write(event(frame))
            if writer.started:
                await writer.end()
            else:
                await _respond(request.send, 502, b"", *more)
        finally:
            writer.stop()


class _StreamWriter:
    """A response that is a stream, kept alive by comments while nothing is said."""

    def __init__(self, send: Send, headers: list[tuple[bytes, bytes]]) -> None:
        self.started = False
        self._send = send
        self._headers = headers
        self._loop = asyncio.get_running_loop()
        self._quiet_since = self._loop.time()
        self._timer = self._loop.call_later(_PING_SECONDS, self._tick)
        self._pinging: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Commit to a stream."""
        if not self.started:
            self.started = True
            await self._send({"type": "http.response.start", "status": 200, "headers": self._headers})
            await self._send({"type": "http.response.body", "body": b"", "more_body": True})

    async def write(self, data: bytes) -> None:
        """One whole event, or comment."""
        await self.start()
        self._quiet_since = self._loop.time()
        await self._send({"type": "http.response.body", "body": data, "more_body": True})

    async def end(self) -> None:
        """End the stream."""
        self.stop()
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    def stop(self) -> None:
        """No comment any more."""
        self._timer.cancel()
        if self._pinging is not None:
            self._pinging.cancel()

    def _tick(self) -> None:
        due = self._quiet_since + _PING_SECONDS
        if due <= self._loop.time():
            # One that still waits for its reader is enough.
            if self._pinging is None or self._pinging.done():
                self._pinging = self._loop.create_task(self.write(PING))
            due = self._loop.time() + _PING_SECONDS
        self._timer = self._loop.call_at(due, self._tick)


class _Request:
    """One HTTP request as far as it was read."""

    def __init__(
        self, method: str, headers: dict[str, str], raw: list[tuple[str, str]], receive: Receive, send: Send
    ) -> None:
        self.method = method
        self.headers = headers
        self.raw = raw
        self.receive = receive
        self.begun = False
        """Whether an answer has begun."""
        self.ended = False
        self.gone = False
        """Whether the client went away before the answer was whole."""
        self._send = send

    async def send(self, message: MutableMapping[str, Any]) -> None:
        """Send a part of the answer."""
        self.begun = True
        self.ended = message["type"] == "http.response.body" and not message.get("more_body", False)
        await self._send(message)

    async def finish(self) -> None:
        """Answer as somebody is answered whose thread isn't open, or end what was begun."""
        if not self.begun:
            await unauthorized().send(self.send)
        elif not self.ended:
            await self.send({"type": "http.response.body", "body": b"", "more_body": False})

    def accepts(self) -> tuple[bool, bool]:
        """Whether JSON, and whether a stream of events may be answered."""
        kinds = [part.split(";")[0].strip().lower() for part in self.headers.get("accept", "").split(",")]
        any_kind = "*/*" in kinds
        return (
            any_kind or "application/json" in kinds or "application/*" in kinds,
            any_kind or "text/event-stream" in kinds or "text/*" in kinds,
        )

    async def body(self, limit: int) -> bytes:
        """The whole body.

        Raises:
            _Done: It is over the limit, or the client went away.
        """
        declared = self.headers.get("content-length", "")
        if declared.isdecimal() and int(declared) > limit:
            raise _Done(413, b"Request body too large", _TEXT)
        parts: list[bytes] = []
        size = 0
        while True:
            message = await self.receive()
            if message["type"] != "http.request":
                raise _Done(400)
            part = message.get("body", b"")
            size += len(part)
            if size > limit:
                raise _Done(413, b"Request body too large", _TEXT)
            parts.append(part)
            if not message.get("more_body", False):
                return b"".join(parts) if len(parts) != 1 else parts[0]


_ONE_OBJECT: Final = "Body must be a single JSON-RPC request or notification object"


class _Watch:
    """Watches for what ends the answering of a request early."""

    def __init__(self, request: _Request, task: asyncio.Task[Any]) -> None:
        self.stopped = False
        """Whether it was ended from here."""
        self.broken = False
        """Whether by the gateway: the client is still there."""
        self._request = request
        self._task = task
        self.watching = asyncio.create_task(self._watch())

    async def _watch(self) -> None:
        while (await self._request.receive())["type"] != "http.disconnect":
            pass
        self.stopped = self._request.gone = True
        self._task.cancel()

    def break_off(self) -> None:
        """End it: the thread isn't open any more."""
        if not self.stopped and self.watching.cancel():
            self.stopped = self.broken = True
            self._task.cancel()

    def done(self) -> None:
        """The answer is whole: the connection's end is none of a cancellation now."""
        self.watching.cancel()


def _answered(message: Message, status: int | None = None) -> _Done:
    """An answer of ours as JSON, with the status that goes with its error."""
    return _Done(status or http_status(message.error_code), message.encode(), _JSON)


def _too_many() -> _Done:
    return _answered(Message.error_of(None, INTERNAL_ERROR, "Too many open sessions"), 503)


def _gives_up(session: Session, message: Message) -> bool:
    """Whether it cancels a request that no server knows of yet."""
    raw = message.params.get("requestId") if message.method == "notifications/cancelled" else None
    return raw is not None and session.give_up(bytes(raw))


def _session_gone() -> _Done:
    return _answered(Message.error_of(None, INVALID_REQUEST, "Session not found"), 404)


async def _respond(send: Send, status: int, body: bytes = b"", *headers: tuple[bytes, bytes]) -> None:
    if not any(name == b"content-length" for name, _ in headers):
        headers = (*headers, (b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": status, "headers": list(headers)})
    await send({"type": "http.response.body", "body": body, "more_body": False})


async def _lifespan(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] != "lifespan":
        return
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
