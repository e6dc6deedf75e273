"""Notices of changes that wait for their reader: many of the same are one, so memory is bounded and none is lost."""

from __future__ import annotations

import asyncio
from typing import Final

from hotplug.gateway.message import Message

__all__ = ["Notices"]

_MOST: Final = 10_000


class Notices:
    """Notifications in their order, each kept once while nobody read it."""

    def __init__(self) -> None:
        self._waiting: dict[tuple[str, str | None], Message] = {}
        self._news = asyncio.Event()
        self._failure: Exception | None = None
        self._ended = False

    def add(self, message: Message) -> None:
        """One more; where far too many different ones wait, the oldest goes."""
        key = (message.method or "", message.text("uri"))
        if key not in self._waiting and len(self._waiting) >= _MOST:
            del self._waiting[next(iter(self._waiting))]
        self._waiting[key] = message
        self._news.set()

    def end(self, failure: Exception | None = None) -> None:
        """There will be no more; the reader gets what waits first, then the failure."""
        if not self._ended:
            self._ended = True
            self._failure = failure
            self._news.set()

    async def next(self) -> Message | None:
        """The next one; None at the end.

        Raises:
            Exception: What it ended with.
        """
        while not self._waiting:
            if self._failure is not None:
                raise self._failure
            if self._ended:
                return None
            self._news.clear()
            await self._news.wait()
        return self._waiting.pop(next(iter(self._waiting)))
