"""Streams that a client of the handshake era can come back to, where the server behind keeps none of its own.

A connection that breaks is no cancellation in that era: the request runs on, what comes of it is kept for a while, and
a client that names the last event it has seen gets the rest. What can't be kept is said by refusing to go on.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from collections.abc import AsyncGenerator
from typing import Final

from hotplug.gateway.link import Frame

__all__ = ["Replay", "Stream"]

_MARK: Final = "~"
_RETRY_MS: Final = 1_000
_AHEAD: Final = 100
"""Frames that may wait for a reader who is there."""
_KEPT_BYTES: Final = 4 * 1024 * 1024
_KEPT_STREAMS: Final = 64


class Stream:
    """What comes of one request.

    Args:
        name: Within its session.
        primed: Whether it begins with a mark that has an id and no message (2025-11-25 and later).
    """

    def __init__(self, name: str, *, primed: bool) -> None:
        self.name = name
        self.ended = False
        self._frames: deque[tuple[int, Frame]] = deque()
        self._size = 0
        self._next = 0
        self._lost = 0
        """The first number that is still kept."""
        self._read = 0
        self._reader: object | None = None
        self._moved = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()
        if primed:
            self._add(Frame(None, retry=_RETRY_MS))

    async def put(self, frame: Frame) -> None:
        """Keep a frame; waits for a reader who is there and slow."""
        self._add(frame)
        while self._reader is not None and self._next - self._read > _AHEAD:
            self._room.clear()
            await self._room.wait()

    def _add(self, frame: Frame) -> None:
        number = self._next
        self._next += 1
        kept = Frame(frame.message, f"{_MARK}{self.name}{_MARK}{number}", frame.retry)
        self._frames.append((number, kept))
        self._size += len(frame.message.encode()) if frame.message is not None else 0
        while self._size > _KEPT_BYTES and len(self._frames) > 1 and self._frames[0][0] < self._read:
            self._drop()
        if self._reader is None:
            while self._size > _KEPT_BYTES and len(self._frames) > 1:
                self._drop()
        self._moved.set()

    def _drop(self) -> None:
        number, frame = self._frames.popleft()
        self._size -= len(frame.message.encode()) if frame.message is not None else 0
        self._lost = number + 1

    def end(self) -> None:
        """Nothing more comes."""
        self.ended = True
        self._moved.set()

    def has(self, after: int) -> bool:
        """Whether everything after a number is still here."""
        return self._lost <= after + 1 <= self._next

    async def read(self, after: int = -1) -> AsyncGenerator[Frame]:
        """The frames after a number, and those that come; a later reader takes over from an earlier one."""
        me = self._reader = object()
        self._moved.set()
        at = after + 1
        try:
            while self._reader is me:
                for number, frame in tuple(self._frames):
                    if number < at:
                        continue
                    at = self._read = number + 1
                    self._room.set()
                    yield frame
                    if self._reader is not me:
                        return
                if self._frames and self._frames[-1][0] >= at:
                    continue
                if self.ended:
                    return
                self._moved.clear()
                await self._moved.wait()
        finally:
            if self._reader is me:
                self._reader = None
            self._room.set()


class Replay:
    """The streams of one session."""

    def __init__(self) -> None:
        self._names = itertools.count(1)
        self._streams: dict[str, Stream] = {}

    def open(self, *, primed: bool) -> Stream:
        """A new stream; the oldest that have ended are forgotten where there are many."""
        stream = Stream(str(next(self._names)), primed=primed)
        self._streams[stream.name] = stream
        for name in [name for name, one in self._streams.items() if one.ended][:-_KEPT_STREAMS]:
            del self._streams[name]
        return stream

    def find(self, event_id: str) -> tuple[Stream, int] | None:
        """The stream that an event's id belongs to and its number there, if the rest is still here."""
        empty, _, rest = event_id.partition(_MARK)
        name, _, number = rest.partition(_MARK)
        stream = self._streams.get(name)
        if empty or stream is None or not number.isdecimal() or not stream.has(int(number)):
            return None
        return stream, int(number)
