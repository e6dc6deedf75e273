"""Ending what a task waits for from outside, without ending the task."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

__all__ = ["Stop", "Stopped"]

T = TypeVar("T")


class Stopped(Exception):
    """The caller cancelled the request; nothing answers it."""


class Stop:
    """Whether a request was cancelled. One task waits through it at a time."""

    def __init__(self) -> None:
        self._stopped = False
        self._limit: asyncio.Timeout | None = None

    def stop(self) -> None:
        """Let the present wait, and each later one, raise `Stopped`."""
        if not self._stopped:
            self._stopped = True
            if self._limit is not None:
                self._limit.reschedule(asyncio.get_running_loop().time())

    async def wait(self, what: Awaitable[T]) -> T:
        """The result of something awaited.

        Raises:
            Stopped: It was cancelled before it was there.
        """
        limit = asyncio.timeout(0 if self._stopped else None)
        try:
            async with limit:
                self._limit = limit
                return await what
        except TimeoutError:
            if limit.expired():
                raise Stopped from None
            raise
        finally:
            self._limit = None
