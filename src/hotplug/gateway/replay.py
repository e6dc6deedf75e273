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
_KEPT_IN_ALL: Final = 16 * 1024 * 1024
"""Bytes of the streams of one session that have ended."""


class Stream:
    """What comes of one request.

    Args:
        name: Within its session.
        primed: Whether it begins with a mark that has an id and no message (2025-11-25 and later).
        awaited: Whether its first reader is about to come: until then, or `leave`, nothing is dropped.
    """

    def __init__(self, name: str, *, primed: bool, awaited: bool = False) -> None:
        self.name = name
        self.ended = False
        self.size = 0
        """Bytes that are kept."""
        self._frames: deque[Frame] = deque()
        self._awaited = awaited
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
        while self._is_read and self._is_ahead:
            self._room.clear()
            await self._room.wait()

    @property
    def _is_read(self) -> bool:
        return self._awaited or self._reader is not None

    @property
    def _is_ahead(self) -> bool:
        """Whether much waits for the reader: what it has read can be dropped for more, the rest can't."""
        unread = self._next - self._read
        return unread > _AHEAD or (self.size > _KEPT_BYTES and len(self._frames) > 1 and self._read <= self._lost)

    def _add(self, frame: Frame) -> None:
        number = self._next
        self._next += 1
        self._frames.append(Frame(frame.message, f"{_MARK}{self.name}{_MARK}{number}", frame.retry))
        self.size += _size(frame)
        while self.size > _KEPT_BYTES and len(self._frames) > 1 and (self._lost < self._read or not self._is_read):
            self.size -= _size(self._frames.popleft())
            self._lost += 1
        self._moved.set()

    def leave(self) -> None:
        """Nobody is about to come any more; who reads goes on."""
        self._awaited = False
        self._room.set()

    def end(self) -> None:
        """Nothing more comes."""
        self.ended = True
        self._moved.set()

    def has(self, after: int) -> bool:
        """Whether everything after a number is still here."""
        return self._lost <= after + 1 <= self._next

    async def read(self, after: int = -1) -> AsyncGenerator[Frame]:
        """The frames after a number, and those that come; a later reader takes over from an earlier one.

        Nothing, where they aren't all here any more.
        """
        if not self.has(after):
            return
        me = self._reader = object()
        self._awaited = False
        self._moved.set()
        at = self._read = after + 1
        try:
            while self._reader is me:
                if at < self._next:
                    # They have no gaps: the last one's number is known.
                    frame = self._frames[at - self._next]
                    at = self._read = at + 1
                    self._room.set()
                    yield frame
                elif self.ended:
                    return
                else:
                    self._moved.clear()
                    await self._moved.wait()
        finally:
            if self._reader is me:
                self._reader = None
            self._room.set()


def _size(frame: Frame) -> int:
    return len(frame.message.encode()) if frame.message is not None else 0


class Replay:
    """The streams of one session."""

    def __init__(self) -> None:
        self._names = itertools.count(1)
        self._streams: dict[str, Stream] = {}

    def open(self, *, primed: bool, awaited: bool = False) -> Stream:
        """A new stream; the oldest that have ended are forgotten where there are many, or they are large.

        Args:
            awaited: See `Stream`.
        """
        stream = Stream(str(next(self._names)), primed=primed, awaited=awaited)
        ended = [one for one in self._streams.values() if one.ended]
        size = sum(one.size for one in ended)
        for at, one in enumerate(ended):
            if len(ended) - at <= _KEPT_STREAMS and size <= _KEPT_IN_ALL:
                break
            size -= one.size
            del self._streams[one.name]
        self._streams[stream.name] = stream
        return stream

    def find(self, event_id: str) -> tuple[Stream, int] | None:
        """The stream that an event's id belongs to and its number there, if the rest is still here."""
        empty, _, rest = event_id.partition(_MARK)
        name, _, number = rest.partition(_MARK)
        stream = self._streams.get(name)
        if empty or stream is None or not number.isdecimal() or not stream.has(int(number)):
            return None
        return stream, int(number)
