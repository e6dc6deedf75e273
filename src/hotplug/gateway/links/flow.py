"""What comes for one reader, and how much of it may wait."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from hotplug.gateway.link import Frame, LinkLost
from hotplug.gateway.message import Message

__all__ = ["Flow"]

_OVERHEAD = 512
"""Bytes that a waiting message takes beside its own."""


class Flow:
    """A queue between a pipe that is read for all and one reader, with a size; an async iterator of frames.

    Args:
        taken: Called when something was taken out, or the reader has gone.
    """

    def __init__(self, taken: Callable[[], None]) -> None:
        self.size = 0
        self.reading = False
        """Whether somebody waits at this moment."""
        self._waiting: deque[tuple[Message, int]] = deque()
        self._taken = taken
        self._waiter: asyncio.Future[None] | None = None
        self._ended = False
        self._failure: LinkLost | None = None

    @property
    def closed(self) -> bool:
        """Whether nothing more can come."""
        return self._ended or self._failure is not None

    def put(self, message: Message) -> None:
        """Takes a message; whoever puts looks at `size` and waits."""
        if self.closed:
            return
        size = len(message.encode()) + _OVERHEAD
        self._waiting.append((message, size))
        self.size += size
        self._wake()

    def drop_oldest(self) -> Message | None:
        """Takes out what has waited longest; None where nothing waits."""
        if not self._waiting:
            return None
        message, size = self._waiting.popleft()
        self.size -= size
        return message

    def end(self) -> None:
        """Nothing more comes; what waits can still be read."""
        self._ended = True
        self._wake()

    def fail(self, failure: LinkLost, *, at_once: bool = False) -> None:
        """Nothing more comes, and the reader is told why, after what waits or at once."""
        if at_once:
            self._waiting.clear()
            self.size = 0
        if not self.closed:
            self._failure = failure
            self._wake()

    def leave(self) -> None:
        """The reader has gone; what waits is dropped."""
        self._waiting.clear()
        self.size = 0
        self._ended = True
        self._taken()

    def __aiter__(self) -> Flow:
        return self

    async def __anext__(self) -> Frame:
        return Frame(await self.take())

    async def take(self) -> Message:
        """The next message.

        Raises:
            StopAsyncIteration: Nothing more comes.
            LinkLost: Nothing more comes, and this is why.
        """
        while not self._waiting:
            if self._failure is not None:
                raise LinkLost(self._failure.reason, sent=self._failure.sent)
            if self._ended:
                raise StopAsyncIteration
            self._waiter = asyncio.get_running_loop().create_future()
            self.reading = True
            try:
                await self._waiter
            finally:
                self._waiter = None
                self.reading = False
        message, size = self._waiting.popleft()
        self.size -= size
        self._taken()
        return message

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
