"""Server-sent events, from bytes as they come (WHATWG HTML, 9.2.6), with data left as bytes.

What the browser's interface hides is kept here, for a gateway has to pass it on: an event without data that only sets
an id, and a wait that only sets `retry`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["SseEvent", "SseParser", "SseTooLarge"]

_BOM: Final = b"\xef\xbb\xbf"
_LIMIT: Final = 64 * 1024 * 1024
_LONGEST_RETRY: Final = 12


class SseTooLarge(ValueError):
    """An event was larger than allowed."""


@dataclass(frozen=True, slots=True)
class SseEvent:
    """What stood between two blank lines.

    Args:
        data: Its data, lines joined with `\\n`; None where it has none, or only empty ones (it is no event then).
        id: The id that it sets, perhaps empty; None where it sets none.
        event: Its type; empty for `message`.
        retry: Milliseconds that it sets.
    """

    data: bytes | None
    id: str | None = None
    event: str = ""
    retry: int | None = None


class SseParser:
    """Takes a stream in pieces that may end anywhere, and gives the events that each piece completes.

    An event that isn't ended by a blank line when the stream ends is none.

    Args:
        limit: Bytes that one event may have.
    """

    def __init__(self, limit: int = _LIMIT) -> None:
        self._limit = limit
        self._started = False
        self._after_cr = False
        self._line: list[bytes] = []
        self._size = 0
        self._data: list[bytes] = []
        self._id: str | None = None
        self._event = ""
        self._retry: int | None = None

    def feed(self, chunk: bytes) -> list[SseEvent]:
        """The events that this piece completes.

        Raises:
            SseTooLarge: An event is over the limit.
        """
        if not self._started:
            chunk = b"".join((*self._line, chunk))
            self._line.clear()
            if len(chunk) < len(_BOM) and _BOM.startswith(chunk):
                self._line.append(chunk)
                return []
            self._started = True
            chunk = chunk.removeprefix(_BOM)
        if not chunk:
            return []
        if self._after_cr:
            self._after_cr = False
            if chunk[:1] == b"\n":
                chunk = chunk[1:]
        if b"\r" in chunk:
            self._after_cr = chunk.endswith(b"\r")
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        first, *lines = chunk.split(b"\n")
        if not lines:
            self._grow(len(first))
            self._line.append(first)
            return []
        if self._line:
            # What of this line was counted as it came is counted again as what it says.
            self._size -= sum(map(len, self._line))
            self._line.append(first)
            first = b"".join(self._line)
            self._line.clear()
        rest = lines.pop()
        found: list[SseEvent] = []
        for line in (first, *lines):
            if line:
                self._take(line)
            else:
                event = self._dispatch()
                if event is not None:
                    found.append(event)
        if rest:
            self._grow(len(rest))
            self._line.append(rest)
        return found

    def _grow(self, size: int) -> None:
        self._size += size
        if self._size > self._limit:
            raise SseTooLarge(f"an event of more than {self._limit} bytes")

    def _take(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        if value[:1] == b" ":
            value = value[1:]
        if name == b"data":
            self._grow(len(value))
            self._data.append(value)
        elif name == b"event":
            self._event = value.decode("utf-8", "replace")
        elif name == b"id":
            if b"\0" not in value:
                self._id = value.decode("utf-8", "replace")
        elif name == b"retry" and value.isdigit() and len(value) <= _LONGEST_RETRY:
            self._retry = int(value)

    def _dispatch(self) -> SseEvent | None:
        data = b"\n".join(self._data)
        event = SseEvent(data or None, self._id, self._event, self._retry)
        some = bool(data) or self._id is not None or self._retry is not None
        self._data.clear()
        self._id, self._event, self._retry = None, "", None
        self._size = 0
        return event if some else None
