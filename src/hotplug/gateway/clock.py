"""Time as the pool sees it: a test gives its own."""

from __future__ import annotations

import asyncio
from typing import Protocol

__all__ = ["Clock", "LoopClock"]


class Clock(Protocol):
    """Counts seconds, and waits for some to pass."""

    def time(self) -> float:
        """Seconds since any fixed moment; never goes back."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        ...


class LoopClock:
    """The event loop's own time."""

    def time(self) -> float:
        """See `Clock`."""
        return asyncio.get_running_loop().time()

    async def sleep(self, seconds: float) -> None:
        """See `Clock`."""
        await asyncio.sleep(seconds)
