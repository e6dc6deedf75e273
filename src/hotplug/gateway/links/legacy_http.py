"""A legacy link over HTTP: one session, a POST for each exchange, a GET stream for what belongs to none.

The session's id stays here; event ids and retry times go on as the server gave them. Request ids and progress tokens
are ours on the wire (`ids`), so that the gateway's own requests and several callers can share a session.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import TracebackType
from typing import Any, Final, Literal

import aiohttp
from msgspec import Raw

from hotplug.connect.launch import HttpLaunch
from hotplug.gateway.link import Answer, Frame, Hello, LinkLost, Outgoing
from hotplug.gateway.links.changes import Changes
from hotplug.gateway.links.handshake import INITIALIZED, first_request, hello_of, refused_status
from hotplug.gateway.links.http_client import Endpoint, Headers, HttpPool, Refused
from hotplug.gateway.links.http_exchange import (
    ACCEPT,
    CLOSED,
    EventStream,
    Open,
    content_type,
    given_headers,
    passed_up,
)
from hotplug.gateway.links.ids import Ids, Ticket
from hotplug.gateway.message import Message, Object

__all__ = ["LegacyHttpLink", "open_legacy"]

_SESSION: Final = "mcp-session-id"
_VERSION: Final = "mcp-protocol-version"
_GONE: Final = "its session has ended at the server (HTTP 404)"
_DELETE_LIMIT: Final = 2.0
_CANCEL_LIMIT: Final = 5.0
_FIRST_WAIT: Final = 1.0
_LONGEST_WAIT: Final = 30.0
_SHORTEST_WAIT: Final = 0.01


async def open_legacy(
    pool: HttpPool,
    launch: HttpLaunch,
    initialize: Object | None = None,
    *,
    limit: float = 30.0,
    headers: Headers | None = None,
    refused: Refused | None = None,
) -> LegacyHttpLink:
    """Open a session: `initialize` and `notifications/initialized`.

    A caller's own `notifications/initialized` is swallowed by `send`: the handshake is done.

    Args:
        initialize: The client's params, passed on as they are; None: the gateway's own, with no capabilities.
        limit: Seconds for the handshake.
        headers: Headers of each request, over those of `launch`.
        refused: Asked when the credential is refused.

    Raises:
        EraRefused: It answered, and not as a legacy server.
        LinkLost: It can't be reached, doesn't answer in `limit` seconds, or wants a credential.
    """
    link = LegacyHttpLink(pool, launch, headers=headers, refused=refused)
    opened = False
    try:
        async with asyncio.timeout(limit):
            async with link.exchange(Outgoing(first_request("legacy", initialize))) as answer:
                message = answer.message
                if answer.frames is not None:
                    async for frame in answer.frames:
                        message = frame.message or message
            if message is None or not message.is_answer:
                raise refused_status("legacy", answer.status or 0, answer.headers.get("content-type", ""))
            link.greet(hello_of("legacy", message, link.masker, status=answer.status))
            await link.post(INITIALIZED)
        opened = True
    except TimeoutError:
        raise LinkLost(f"it gave no answer to initialize in {limit:g} s", sent=False) from None
    finally:
        if not opened:
            await link.aclose()
    return link


class LegacyHttpLink:
    """A `Link`; made by `open_legacy`."""

    hello: Hello

    def __init__(
        self, pool: HttpPool, launch: HttpLaunch, *, headers: Headers | None = None, refused: Refused | None = None
    ) -> None:
        self.lost: str | None = None
        self._endpoint = Endpoint(pool, launch, headers, refused)
        self.masker = self._endpoint.masker
        self._own: dict[str, str] = {}
        self._ids = Ids()
        self._open = Open()
        self._changes = Changes()
        self._tasks: set[asyncio.Task[None]] = set()
        self._greeted = False
        self._streamed = False
        self._ending: asyncio.Task[None] | None = None

    @property
    def era(self) -> Literal["legacy"]:
        """It is legacy."""
        return "legacy"

    def greet(self, hello: Hello) -> None:
        """The handshake is done."""
        self.hello = hello
        self._own[_VERSION] = hello.protocol
        self._greeted = True

    def exchange(self, outgoing: Outgoing) -> AbstractAsyncContextManager[Answer]:
        """See `Link`. A stream that the server ends early, after an event with an id, ends quietly: `resume`."""
        return _Exchange(self, outgoing)

    async def send(self, message: Message, *, scope: str = "", headers: Mapping[str, str] | None = None) -> None:
        """See `Link`. `notifications/initialized` goes nowhere, and neither does cancelling what isn't in flight."""
        if message.method == "notifications/initialized":
            return
        going = self._ids.upward(message, scope)
        if going is not None:
            await self.post(going, headers or {})

    async def post(self, message: Message, headers: Mapping[str, str] | None = None) -> None:
        """Sends what has no answer.

        Raises:
            LinkLost: The server didn't take it.
        """
        response = await self._request("POST", message.encode(), headers or {})
        status = response.status
        self._endpoint.pool.finish(response)
        if status >= 300:
            raise LinkLost(f"HTTP {status}", sent=False)

    def general(self) -> AsyncIterator[Frame]:
        """See `Link`: the GET stream, opened anew after its last event when it ends."""
        return self._general()

    @asynccontextmanager
    async def resume(self, event_id: str) -> AsyncGenerator[Answer]:
        """See `Link`. Ends with the answer of the request whose stream it was, if that comes."""
        response = await self._request("GET", None, {}, event_id)
        if response.status != 200 or content_type(response) != "text/event-stream":
            yield await self._open.whole(self._endpoint, response, self.restored)
            return
        stream = self._open.add(EventStream(self._endpoint, response, self.restored, resumable=True, last_id=event_id))
        try:
            yield Answer(frames=stream, status=200, headers=given_headers(response))
        finally:
            self._open.discard(stream)
            stream.close()

    def on_change(self, told: Callable[[str], None]) -> Callable[[], None]:
        """See `Link`. Most servers send such notices on the GET stream only: somebody has to read `general()`."""
        return self._changes.add(told)

    async def aclose(self) -> None:
        """Ends what is under way with `LinkLost` and deletes the session. May be called twice, and at once."""
        if self._ending is None:
            gone = self.lost is not None
            self._lose(CLOSED)
            self._ending = asyncio.get_running_loop().create_task(self._end(delete=not gone))
        await asyncio.shield(self._ending)

    async def _end(self, *, delete: bool) -> None:
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if not delete or _SESSION not in self._own:
            return
        # It is only a courtesy: a server that can't be reached forgets the session by itself.
        with contextlib.suppress(LinkLost, TimeoutError):
            async with asyncio.timeout(_DELETE_LIMIT):
                response = await self._endpoint.request("DELETE", self._own)
                self._endpoint.pool.finish(response)

    # What exchanges do

    async def begin(self, ticket: Ticket, message: Message, outgoing: Outgoing) -> tuple[Answer, EventStream | None]:
        """Sends a request."""
        response = await self._request("POST", message.encode(), outgoing.headers)
        if not self._greeted and _SESSION in response.headers:
            self._own[_SESSION] = response.headers[_SESSION]
        if response.status == 200 and content_type(response) == "text/event-stream":
            stream = self._open.add(EventStream(self._endpoint, response, self.restored, resumable=True))
            headers = given_headers(response)
            return Answer(frames=stream, status=200, headers=headers, leave=stream.leave), stream
        answer = await self._open.whole(self._endpoint, response, self.restored)
        self._ids.forget(ticket)
        return answer, None

    def issue(self, outgoing: Outgoing) -> tuple[Ticket, Message]:
        """A request as it goes on the wire."""
        if self.lost is not None:
            raise LinkLost(self.lost, sent=False)
        return self._ids.issue(outgoing)

    def end(self, ticket: Ticket, stream: EventStream | None, *, sent: bool) -> None:
        """A request's reader has gone; the server is told where neither its answer nor its stream's end has come."""
        if stream is not None:
            self._open.discard(stream)
            stream.close()
            if stream.answered:
                return
            if stream.ended:
                self._ids.park(ticket)
                return
        self._ids.forget(ticket)
        if sent and not ticket.cancelled and self._greeted and self.lost is None:
            params = {"requestId": Raw(ticket.own), "reason": "the caller has gone"}
            self._later(self._cancel(Message.notification("notifications/cancelled", params)))

    async def _cancel(self, message: Message) -> None:
        with contextlib.suppress(LinkLost, TimeoutError):
            async with asyncio.timeout(_CANCEL_LIMIT):
                await self.post(message)

    def _later(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def restored(self, message: Message) -> Message:
        """A message that came, in the ids of whoever asked."""
        self._changes.look(message)
        ticket = self._ids.named_by(message)
        if ticket is None:
            return message
        if message.is_answer:
            # It may come once more, for a reader whose connection broke meanwhile; so may the progress of its task.
            self._ids.park(ticket)
        return ticket.restored(message)

    # HTTP

    async def _request(
        self, method: str, body: bytes | None, headers: Mapping[str, str], event_id: str | None = None
    ) -> aiohttp.ClientResponse:
        if self.lost is not None:
            raise LinkLost(self.lost, sent=False)
        all_headers = {**ACCEPT, **passed_up(headers)}
        if not self._greeted:
            all_headers.pop(_VERSION, None)
        all_headers.update(self._own)
        if body is not None:
            all_headers["content-type"] = "application/json"
        else:
            all_headers["accept"] = "text/event-stream"
        if event_id:
            all_headers["last-event-id"] = event_id
        response = await self._open.request(self._endpoint, method, all_headers, body)
        if method == "GET" and not event_id and not self._streamed:
            # There may be no such stream at all: some servers say that like this, too.
            self._streamed = response.status == 200
        elif response.status == 404 and _SESSION in self._own:
            response.close()
            self._lose(_GONE)
            raise LinkLost(_GONE, sent=False)
        return response

    async def _general(self) -> AsyncGenerator[Frame]:
        last_id: str | None = None
        wait = _FIRST_WAIT
        while self.lost is None:
            stream: EventStream | None = None
            try:
                response = await self._request("GET", None, {}, last_id)
                if response.status == 200 and content_type(response) == "text/event-stream":
                    stream = self._open.add(
                        EventStream(self._endpoint, response, self.restored, awaits=False, last_id=last_id)
                    )
                    async for frame in stream:
                        wait = _FIRST_WAIT
                        yield frame
                else:
                    response.close()
                    # 409: the stream before this one isn't over yet, by the server's count.
                    if response.status < 500 and response.status != 409:
                        return
            except LinkLost:
                pass
            finally:
                if stream is not None:
                    self._open.discard(stream)
                    stream.close()
            if stream is not None:
                last_id = stream.last_id
            seconds = wait if stream is None or stream.retry is None else stream.retry / 1000
            wait = min(wait * 2, _LONGEST_WAIT)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(max(seconds, _SHORTEST_WAIT), _LONGEST_WAIT)):
                    await self._open.closed.wait()

    def _lose(self, reason: str) -> None:
        if self.lost is None:
            self.lost = reason
            self._open.close()
            self._changes.lost()


class _Exchange:
    """The context manager that `exchange` gives."""

    __slots__ = ("_link", "_outgoing", "_stream", "_ticket")

    def __init__(self, link: LegacyHttpLink, outgoing: Outgoing) -> None:
        self._link = link
        self._outgoing = outgoing
        self._ticket: Ticket | None = None
        self._stream: EventStream | None = None

    async def __aenter__(self) -> Answer:
        self._ticket, message = self._link.issue(self._outgoing)
        try:
            answer, self._stream = await self._link.begin(self._ticket, message, self._outgoing)
        except LinkLost as error:
            self._link.end(self._ticket, None, sent=error.sent)
            raise
        except BaseException:
            self._link.end(self._ticket, None, sent=True)
            raise
        return answer

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._ticket is not None and self._stream is not None:
            self._link.end(self._ticket, self._stream, sent=True)
