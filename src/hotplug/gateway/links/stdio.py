"""A link over a child's pipes (signatures first; the bodies follow)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager

from hotplug.connect.launch import StdioLaunch
from hotplug.connect.upstream_log import UpstreamLog
from hotplug.gateway.link import Answer, Era, Frame, Hello, Outgoing
from hotplug.gateway.message import Message, Object

__all__ = ["StdioLink", "open_stdio"]


async def open_stdio(
    launch: StdioLaunch,
    era: Era,
    *,
    initialize: Object | None = None,
    limit: float = 30.0,
    log: UpstreamLog | None = None,
) -> StdioLink:
    """Start a child and shake hands with it in one era: `initialize` and `notifications/initialized`, or `server/discover`.

    A caller's own `notifications/initialized` is swallowed by `send`: the handshake is done. On any failure, and where
    the caller is cancelled, the child and its whole process group have ended before this returns.

    Args:
        initialize: The legacy client's params, passed on as they are; None: the gateway's own, with no capabilities.
        limit: Seconds for start and handshake together.
        log: Takes standard error and noise; None: one of the link's own. Masked already where it says so.

    Raises:
        EraRefused: It answered, and not as a server of this era.
        LinkLost: It couldn't be started, ended, or gave no answer in time; with the end of its standard error.
    """
    raise NotImplementedError


class StdioLink:
    """A `Link` over one child's pipes; made by `open_stdio`."""

    era: Era
    hello: Hello
    lost: str | None
    log: UpstreamLog

    @property
    def in_flight(self) -> int:
        """How many exchanges are open."""
        raise NotImplementedError

    @property
    def heard(self) -> float:
        """When the last message came (`loop.time()`), for who looks for a hang."""
        raise NotImplementedError

    def exchange(self, outgoing: Outgoing) -> AbstractAsyncContextManager[Answer]:
        """See `Link`. Entering waits for the first message: `Answer.message` if that is the answer, else `frames`."""
        raise NotImplementedError

    async def send(self, message: Message, *, scope: str = "", headers: Mapping[str, str] | None = None) -> None:
        """See `Link`."""

    def general(self) -> AsyncIterator[Frame]:
        """See `Link`."""
        raise NotImplementedError

    def resume(self, event_id: str) -> AbstractAsyncContextManager[Answer]:
        """See `Link`: status 405."""
        raise NotImplementedError

    def on_change(self, told: Callable[[str], None]) -> Callable[[], None]:
        """See `Link`. Told also of notices that nobody reads."""
        raise NotImplementedError

    async def aclose(self) -> None:
        """Ends the exchanges (`LinkLost`), the child and its process group. May be called twice."""
