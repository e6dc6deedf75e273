"""One deadline for all that comes before a call: the start, the handshake and the whole list of tools."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable
from typing import TypeVar

from hotplug.errors import ConnectError

__all__ = ["Deadline", "within"]

T = TypeVar("T")


class Deadline:
    """A moment, and what is left until it.

    Args:
        seconds: From now.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._until = time.monotonic() + seconds

    def left(self) -> float:
        """Seconds, at least a moment: what is asked for then ends at once, in its own words."""
        return max(self._until - time.monotonic(), 0.001)


async def within(limit: float | None, opening: Awaitable[T], label: str) -> T:
    """What comes of connecting to a server, with its list of tools read.

    Args:
        limit: Seconds; None for no limit but those of the session.

    Raises:
        ConnectError: It took longer; nothing was called.
    """
    # asyncio's, not a cancel scope: what is opened inside stays open, and scopes have to be nested.
    scope = asyncio.timeout(limit)
    try:
        async with scope:
            return await opening
    except TimeoutError:
        if not scope.expired():
            raise
        raise ConnectError(
            f"{label} was not ready within {limit:g} s: it gave no answer to the handshake, or no list of its tools",
            target=label,
        ) from None
