"""At most one start at a time, as long as it isn't known that starting works."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

__all__ = ["StartGate"]

AT_ONCE: Final = 4


class StartGate:
    """Lets starts of one upstream through: one by one until one has worked, then four at once.

    Where many threads want a child each of the same server, the first shows whether it starts at all: while it
    doesn't, the others are refused by its failure rather than failing each for itself.
    """

    def __init__(self) -> None:
        self.proven = False
        """Whether the last start that ended came up."""
        self._one = asyncio.Lock()
        self._several = asyncio.Semaphore(AT_ONCE)

    @asynccontextmanager
    async def through(self) -> AsyncGenerator[None]:
        """Wait for the turn, and hold it."""
        if not self.proven:
            async with self._one:
                if not self.proven:
                    yield
                    return
        async with self._several:
            yield
