"""A modern link over HTTP: one POST for each exchange, no session, no ids to map; leaving one closes its connection."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Final, Literal

from hotplug.connect.launch import HttpLaunch
from hotplug.gateway.link import Answer, Frame, Hello, LinkLost, Outgoing
from hotplug.gateway.links.changes import Changes
from hotplug.gateway.links.handshake import MODERN_REVISIONS, first_request, hello_of, refused_status
from hotplug.gateway.links.http_client import Endpoint, Headers, HttpPool, Refused
from hotplug.gateway.links.http_exchange import (
    ACCEPT,
    CLOSED,
    EventStream,
    Open,
    content_type,
    given_headers,
    header_value,
    passed_up,
)
from hotplug.gateway.message import Message

__all__ = ["ModernHttpLink", "open_modern"]

_NAMED: Final = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_UNKNOWN: Final = Hello({}, MODERN_REVISIONS[-1])


async def open_modern(
    pool: HttpPool,
    launch: HttpLaunch,
    *,
    limit: float = 30.0,
    headers: Headers | None = None,
    refused: Refused | None = None,
) -> ModernHttpLink:
    """Ask `server/discover` and give a link.

    Raises:
        EraRefused: It answered, and not as a modern server.
        LinkLost: It can't be reached, doesn't answer in `limit` seconds, or wants a credential.
    """
    link = ModernHttpLink(pool, launch, _UNKNOWN, headers=headers, refused=refused)
    try:
        async with asyncio.timeout(limit), link.exchange(Outgoing(first_request("modern", None))) as answer:
            message = answer.message
            if answer.frames is not None:
                async for frame in answer.frames:
                    message = frame.message or message
    except TimeoutError:
        raise LinkLost(f"it gave no answer to server/discover in {limit:g} s", sent=False) from None
    if message is None or not message.is_answer:
        raise refused_status("modern", answer.status or 0, answer.headers.get("content-type", ""))
    link.hello = hello_of("modern", message, link.masker, status=answer.status)
    return link


class ModernHttpLink:
    """A `Link`. It is never lost before it is closed: each exchange stands for itself.

    Args:
        hello: What the server said of itself; as it was remembered, where nobody asked now.
        headers: Headers of each request, over those of `launch`.
        refused: Asked when the credential is refused.
    """

    def __init__(
        self,
        pool: HttpPool,
        launch: HttpLaunch,
        hello: Hello,
        *,
        headers: Headers | None = None,
        refused: Refused | None = None,
    ) -> None:
        self.hello = hello
        self._endpoint = Endpoint(pool, launch, headers, refused)
        self._open = Open()
        self._changes = Changes()
        self.masker = self._endpoint.masker

    @property
    def era(self) -> Literal["modern"]:
        """It is modern."""
        return "modern"

    @property
    def lost(self) -> str | None:
        """That it was closed."""
        return CLOSED if self._open.closed.is_set() else None

    def exchange(self, outgoing: Outgoing) -> AbstractAsyncContextManager[Answer]:
        """See `Link`. Headers that the revision demands and `outgoing` lacks are made from the message."""
        return _Exchange(self, outgoing)

    async def send(self, message: Message, *, scope: str = "", headers: Mapping[str, str] | None = None) -> None:
        """See `Link`: a POST of its own. Servers of this era mostly ignore it: leaving an exchange cancels it."""
        response = await self._open.request(
            self._endpoint, "POST", self.headers_of(message, headers or {}), message.encode()
        )
        status = response.status
        self._endpoint.pool.finish(response)
        if status >= 300:
            raise LinkLost(f"HTTP {status}", sent=False)

    def general(self) -> AsyncIterator[Frame]:
        """See `Link`: nothing, until the link is closed."""
        return self._nothing()

    async def _nothing(self) -> AsyncGenerator[Frame]:
        await self._open.closed.wait()
        return
        yield

    def resume(self, event_id: str) -> AbstractAsyncContextManager[Answer]:
        """See `Link`: status 405, this era has no streams to go on with."""
        return contextlib.nullcontext(Answer(body=b"", status=405, headers={"allow": "POST"}))

    def on_change(self, told: Callable[[str], None]) -> Callable[[], None]:
        """See `Link`. Only what comes in an exchange is seen: somebody has to listen (`subscriptions/listen`)."""
        return self._changes.add(told)

    async def aclose(self) -> None:
        """Ends what is under way with `LinkLost`. May be called twice."""
        if not self._open.closed.is_set():
            self._open.close()
            self._changes.lost()

    def headers_of(self, message: Message, given: Mapping[str, str]) -> dict[str, str]:
        """The headers that a message goes with."""
        headers = {"content-type": "application/json", **ACCEPT, **passed_up(given)}
        if "mcp-protocol-version" not in headers:
            raw = message.meta.get("io.modelcontextprotocol/protocolVersion")
            headers["mcp-protocol-version"] = bytes(raw).decode().strip('"') if raw is not None else self.hello.protocol
        method = message.method
        if method is not None and "mcp-method" not in headers:
            headers["mcp-method"] = header_value(method)
            if method in _NAMED and "mcp-name" not in headers:
                name = message.text(_NAMED[method])
                if name is not None:
                    headers["mcp-name"] = header_value(name)
        return headers

    def seen(self, message: Message) -> Message:
        """Looks at a message that came, and gives it on."""
        self._changes.look(message)
        return message

    async def begin(self, outgoing: Outgoing) -> tuple[Answer, EventStream | None]:
        """Sends a request."""
        headers = self.headers_of(outgoing.message, outgoing.headers)
        response = await self._open.request(self._endpoint, "POST", headers, outgoing.message.encode())
        if response.status == 200 and content_type(response) == "text/event-stream":
            stream = self._open.add(EventStream(self._endpoint, response, self.seen))
            return Answer(frames=stream, status=200, headers=given_headers(response)), stream
        return await self._open.whole(self._endpoint, response, self.seen), None

    def end(self, stream: EventStream) -> None:
        """A stream's reader has gone."""
        self._open.discard(stream)
        stream.close()


class _Exchange:
    """The context manager that `exchange` gives."""

    __slots__ = ("_link", "_outgoing", "_stream")

    def __init__(self, link: ModernHttpLink, outgoing: Outgoing) -> None:
        self._link = link
        self._outgoing = outgoing
        self._stream: EventStream | None = None

    async def __aenter__(self) -> Answer:
        answer, self._stream = await self._link.begin(self._outgoing)
        return answer

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._stream is not None:
            self._link.end(self._stream)
