"""A request over HTTP and its answer, JSON or a stream of events: what both eras share."""

from __future__ import annotations

import asyncio
import base64
import logging
import re
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final, TypeVar

import aiohttp

from hotplug.gateway.link import Answer, Frame, LinkLost
from hotplug.gateway.links.batches import messages_in
from hotplug.gateway.links.http_client import Endpoint, read_whole
from hotplug.gateway.links.sse import SseEvent, SseParser, SseTooLarge
from hotplug.gateway.message import Message, NotAMessage

__all__ = [
    "ACCEPT",
    "CLOSED",
    "EventStream",
    "Open",
    "content_type",
    "given_headers",
    "header_value",
    "passed_up",
    "whole_answer",
]

ACCEPT: Final = {"accept": "application/json, text/event-stream"}
CLOSED: Final = "it was closed here"
_TRACING: Final = frozenset({"traceparent", "tracestate", "baggage"})
_PLAIN: Final = re.compile(r"[\x20-\x7e]*")
_WRAPPED: Final = re.compile(r"=\?base64\?.*\?=", re.DOTALL)
_PASSED: Final = ("content-type", "retry-after", "allow")
T = TypeVar("T")
_logger = logging.getLogger("hotplug.gateway")


def header_value(value: str) -> str:
    """A value as `Mcp-Name` carries it: as it is, or as `=?base64?…?=` where a header would change it (SEP-2243)."""
    if _PLAIN.fullmatch(value) and value == value.strip() and not _WRAPPED.fullmatch(value):
        return value
    return f"=?base64?{base64.b64encode(value.encode()).decode()}?="


def passed_up(headers: Mapping[str, str]) -> dict[str, str]:
    """Those of a caller's headers that may go to a server: MCP's own but for the session's, and tracing's."""
    return {
        name: value
        for name, value in headers.items()
        if (name.startswith("mcp-") and name != "mcp-session-id") or name in _TRACING
    }


def content_type(response: aiohttp.ClientResponse) -> str:
    """The media type, without parameters, in lower case."""
    return response.headers.get("content-type", "").partition(";")[0].strip().lower()


def given_headers(response: aiohttp.ClientResponse) -> dict[str, str]:
    """Those headers of an answer that are passed on."""
    return {name: response.headers[name] for name in _PASSED if name in response.headers}


async def whole_answer(
    endpoint: Endpoint, response: aiohttp.ClientResponse, restored: Callable[[Message], Message]
) -> Answer:
    """An answer that isn't a stream: a message where it is one.

    Raises:
        LinkLost: It broke off, is too large, or is a success that is neither a message nor empty.
    """
    status, headers, kind = response.status, given_headers(response), content_type(response)
    body = await read_whole(endpoint, response)
    if kind == "application/json" or kind.endswith("+json"):
        try:
            return Answer(message=restored(Message.parse(body)), status=status, headers=headers)
        except NotAMessage as error:
            if status < 300:
                raise LinkLost(f"its answer is no message: {endpoint.masker.line(error.message)}", sent=True) from None
    elif status < 300 and body.strip():
        shown = endpoint.masker.line(kind or "without a content type")[:100]
        raise LinkLost(f"HTTP {status} with {shown} where a message belongs", sent=True)
    return Answer(body=body, status=status, headers=headers)


class EventStream:
    """Frames of an answer that is a stream of events; an async iterator.

    Args:
        restored: What each message is turned into.
        resumable: Whether a stream that ends before its answer, after an event with an id, ends without an error.
        awaits: Whether an answer belongs to it, and ends it.
        last_id: The id of the event after which it goes on.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        response: aiohttp.ClientResponse,
        restored: Callable[[Message], Message],
        *,
        resumable: bool = False,
        awaits: bool = True,
        last_id: str | None = None,
    ) -> None:
        self._endpoint = endpoint
        self._response = response
        self._restored = restored
        self._resumable = resumable
        self._awaits = awaits
        self._parser = SseParser()
        self._found: deque[Frame] = deque()
        self.answered = False
        """Whether the answer has been given."""
        self.ended = False
        """Whether the server has ended it, or it broke."""
        self.last_id = last_id
        """The id of the event read last."""
        self.retry: int | None = None
        """Milliseconds to wait before coming back, as the server said last."""

    def __aiter__(self) -> EventStream:
        return self

    async def __anext__(self) -> Frame:
        while not self._found:
            if self.answered or (self.ended and not self._misses_answer()):
                raise StopAsyncIteration
            if self.ended:
                raise LinkLost("the stream ended before its answer", sent=True)
            await self._read()
        frame = self._found.popleft()
        if frame.message is not None and frame.message.is_answer and self._awaits:
            self.answered = True
        return frame

    def close(self) -> None:
        """The reader has gone."""
        if self.answered:
            self._endpoint.pool.finish(self._response)
        else:
            self._response.close()

    def leave(self) -> None:
        """Its reader may come back: as if the server had ended it, where it can be gone on with."""
        self.ended = self.ended or not self._misses_answer()

    def abort(self) -> None:
        """The link is closed: whoever reads gets `LinkLost`."""
        self._resumable = False
        self._response.close()

    async def _read(self) -> None:
        try:
            chunk = await self._response.content.readany()
            events = self._parser.feed(chunk)
        except SseTooLarge as error:
            self._response.close()
            self.ended = True
            raise LinkLost(str(error), sent=True) from None
        except (aiohttp.ClientError, OSError) as error:
            self.ended = True
            self._response.close()
            if not self._misses_answer():
                return
            raise self._endpoint.lost(error, sent=True) from None
        for event in events:
            self._take(event)
        if not chunk and self._response.content.at_eof():
            self.ended = True

    def _misses_answer(self) -> bool:
        return self._awaits and not (self._resumable and self.last_id)

    def _take(self, event: SseEvent) -> None:
        if event.id is not None:
            self.last_id = event.id
        if event.retry is not None:
            self.retry = event.retry
        messages: list[Message] = []
        if event.data is not None and event.event in ("", "message"):
            try:
                messages = [self._restored(message) for message in messages_in(event.data)]
            except NotAMessage as error:
                _logger.warning("an event is no message, skipped: %s", self._endpoint.masker.line(error.message))
        # The id of a batch is that of its last message: who has read that far has read all of it.
        *others, last = messages or (None,)
        self._found.extend(Frame(message) for message in others)
        if last is not None or event.id is not None or event.retry is not None:
            self._found.append(Frame(last, event.id, event.retry))


class Open:
    """What is under way on a link, so that closing the link ends it."""

    def __init__(self) -> None:
        self._waiting: set[asyncio.Timeout] = set()
        self._streams: set[EventStream] = set()
        self.closed = asyncio.Event()

    async def request(
        self, endpoint: Endpoint, method: str, headers: Mapping[str, str], body: bytes | None = None
    ) -> aiohttp.ClientResponse:
        """`Endpoint.request`, ended by `close()`."""
        return await self._until_closed(endpoint.request(method, headers, body))

    async def whole(
        self, endpoint: Endpoint, response: aiohttp.ClientResponse, restored: Callable[[Message], Message]
    ) -> Answer:
        """`whole_answer`, ended by `close()`."""
        return await self._until_closed(whole_answer(endpoint, response, restored))

    async def _until_closed(self, work: Coroutine[Any, Any, T]) -> T:
        if self.closed.is_set():
            work.close()
            raise LinkLost(CLOSED, sent=False)
        limit = asyncio.timeout(None)
        try:
            async with limit:
                self._waiting.add(limit)
                try:
                    return await work
                finally:
                    self._waiting.discard(limit)
        except TimeoutError:
            if limit.expired():
                raise LinkLost(CLOSED, sent=True) from None
            raise

    def add(self, stream: EventStream) -> EventStream:
        """A stream that is read."""
        self._streams.add(stream)
        return stream

    def discard(self, stream: EventStream) -> None:
        """It is no longer read."""
        self._streams.discard(stream)

    def close(self) -> None:
        """Ends everything that is under way with `LinkLost`."""
        self.closed.set()
        for limit in tuple(self._waiting):
            limit.reschedule(0)
        for stream in tuple(self._streams):
            stream.abort()
        self._streams.clear()
