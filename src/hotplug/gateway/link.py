"""The seam between the gateway's front and whatever carries messages to a server.

A link is one MCP conversation with one upstream, in one protocol era. It knows no threads' rights and changes no
message beyond what its transport demands (ids on a shared pipe). Links over standard streams and HTTP stand in
`links/`; a bridge (`bridge/`) is a link of one era on top of a link of the other.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Literal, Protocol

from hotplug.gateway.message import Message, Object

__all__ = ["Answer", "Era", "Frame", "Hello", "Link", "LinkLost", "Outgoing"]

Era = Literal["legacy", "modern"]
"""`modern` is 2026-07-28 and later (stateless); `legacy` is every handshake revision up to 2025-11-25."""


class LinkLost(Exception):
    """The upstream can't be reached, or went away.

    Args:
        reason: For the owner: what is wrong, masked.
        sent: Whether the request may have reached the server; it is then never sent a second time.
    """

    def __init__(self, reason: str, *, sent: bool) -> None:
        super().__init__(reason)
        self.reason = reason
        self.sent = sent


@dataclass(frozen=True, slots=True)
class Hello:
    """What a server said of itself: its `initialize` result (legacy) or its `server/discover` result (modern).

    Args:
        result: As it came, one level split.
        protocol: The revision that is spoken on this link.
    """

    result: Object
    protocol: str


@dataclass(slots=True)
class Outgoing:
    """A request on its way up.

    Args:
        message: As the server shall see it; its id is the caller's.
        headers: By lower-case name, those that go with it over HTTP: `mcp-method`, `mcp-name`, `mcp-param-…`,
            `mcp-protocol-version`, `traceparent`, `tracestate`. Never a credential.
        scope: Who asked (a session, or a request of the modern era): ids and progress tokens of two scopes never meet.
    """

    message: Message
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    scope: str = ""


@dataclass(slots=True)
class Frame:
    """One message on its way down, or (without one) a mark of the stream: an event id, a time to wait.

    Args:
        event_id: As the upstream gave it; means something to this link only.
        retry: Milliseconds after which a client may come back.
    """

    message: Message | None
    event_id: str | None = None
    retry: int | None = None


@dataclass(slots=True)
class Answer:
    """What came of a request.

    Exactly one of `message`, `frames` and `body` says it: one JSON message; a stream of frames, usually ended by the
    answer; or an answer of HTTP that is no message (`body` as it is).

    Args:
        status: HTTP's, where the upstream is spoken to over HTTP; else None.
        headers: Of HTTP's answer, by lower-case name: only `content-type`, `retry-after` and `allow`.
        leave: Of a stream that can be gone on with by `Link.resume`: leaving it after this cancels nothing.
    """

    message: Message | None = None
    frames: AsyncIterator[Frame] | None = None
    body: bytes | None = None
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    leave: Callable[[], None] | None = None


class Link(Protocol):
    """One MCP conversation with one upstream."""

    @property
    def era(self) -> Era: ...

    @property
    def hello(self) -> Hello:
        """What the server said of itself when the link was opened."""
        ...

    @property
    def lost(self) -> str | None:
        """Why it can't be used any more (masked, for the owner); None while it can."""
        ...

    def exchange(self, outgoing: Outgoing) -> AbstractAsyncContextManager[Answer]:
        """Send a request and get its answer as it comes; leaving the block early cancels it at the server.

        Every message that the server sent for it before its answer comes before it, none is dropped, and a slow reader
        slows the server down rather than filling memory without bound.

        Raises:
            LinkLost: On entering, or while frames are read.
        """
        ...

    async def send(self, message: Message, *, scope: str = "", headers: Mapping[str, str] | None = None) -> None:
        """Send a notification, or a caller's answer to a request of the server's (with the server's own id).

        A `notifications/cancelled` or `notifications/progress` of a scope names that scope's own ids and tokens.

        Raises:
            LinkLost: It couldn't be sent.
        """
        ...

    def general(self) -> AsyncIterator[Frame]:
        """What the server sends besides answers (legacy; over HTTP its GET stream). One reader at a time.

        Ends when the link does, or where the server offers none. In the modern era nothing comes here.
        """
        ...

    def resume(self, event_id: str) -> AbstractAsyncContextManager[Answer]:
        """Go on reading a stream after an event (legacy HTTP); over a pipe there is none: status 405."""
        ...

    def on_change(self, told: Callable[[str], None]) -> Callable[[], None]:
        """Be told the method of each `notifications/…/list_changed` that comes, and `lost`; gives what ends it."""
        ...

    async def aclose(self) -> None:
        """End the conversation: a session is deleted, a child that only this link used is stopped."""
        ...
