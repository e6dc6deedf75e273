"""A modern link on top of legacy ones: for a 2026-07-28 client in front of an upstream that wants a handshake."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from hotplug.gateway.link import Hello, Link
from hotplug.gateway.message import Object

__all__ = ["bridged"]


async def bridged(
    open_legacy: Callable[[Object], Awaitable[Link]],
    secret: bytes,
    *,
    owner: str = "",
    hello: Hello | None = None,
    sessions: int = 4,
    parked: int = 64,
    wait: float = 600.0,
) -> Link:
    """A modern link for one owner; its upstream sessions are opened as requests need them.

    A legacy server hears a client's capabilities once, in the handshake; a modern client says them with each request.
    So there is one upstream session for each set of capabilities, opened with the first request that has it, and at
    most `sessions`: where one more is needed, the one that is idle longest is closed. A client that always says the
    same has exactly one, with all state that the server keeps in it.

    A request of the server's in the middle of a call parks the call: the caller gets `input_required`, and its retry,
    with the answers and the `requestState`, goes on with the same call at the server.

    Args:
        open_legacy: Opens a legacy session for the params of an `initialize`, `notifications/initialized` included.
        secret: Signs each `requestState`.
        owner: Whose link it is (a thread): a `requestState` of another owner's is refused.
        hello: The server's `initialize` result, where it is remembered; else a session without capabilities is opened
            to learn it.
        sessions: How many upstream sessions there may be.
        parked: How many calls may wait for input.
        wait: Seconds that a call waits for input; then it is cancelled at the server.

    Raises:
        LinkLost: The server was needed and can't be reached.
    """
    raise NotImplementedError
