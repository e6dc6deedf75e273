"""An access log as a witness: the lines that a web server adds to it after the opening."""

from __future__ import annotations

import io
import os
import stat
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread

from hotplug.evidence.channels import ChannelDescriptor
from hotplug.evidence.coverage import BlindSpot
from hotplug.evidence.vocabulary import CloseCondition, ProvenanceClass
from hotplug.witness.access_lines import FORMATS, Exchange, NotHttp, line_reader
from hotplug.witness.watching import CannotLook, Session, Watching, now, spot

__all__ = ["HttpLog"]

_CHUNK: Final = 1 << 20
_LONGEST_LINE: Final = 1 << 20
_SAMPLE: Final = 512
"""Bytes before the place reached; they tell whether the file is still the same."""
_CLOCK_STEP_NS: Final = 20_000_000
"""A file's time may lag behind the clock by this much."""


@dataclass(slots=True)
class _Tail:
    """One file, and how far it was read.

    Args:
        part: What stands after the last line break.
        skips: Whether what comes up to the next line break belongs to a line that isn't read.
        sample: The bytes just before `offset`.
    """

    file: io.FileIO
    offset: int = 0
    skips: bool = False
    part: bytes = b""
    sample: bytes = b""

    @property
    def id(self) -> tuple[int, int]:
        found = os.fstat(self.file.fileno())
        return found.st_dev, found.st_ino


@dataclass(slots=True)
class _Place:
    """Where a window stands in a log: its files, the newest last, and what became of the lines.

    Args:
        lost: What can't be made up for, a sentence each.
    """

    tails: list[_Tail]
    looked: int
    lines: int = 0
    bad: list[str] = field(default_factory=list[str])
    bad_lines: int = 0
    not_http: int = 0
    lost: list[str] = field(default_factory=list[str])
    missing: str | None = None


class HttpLog(Watching):
    """What a web server wrote into its access log: `POST /orders 201` for each request.

    Its `net` is independent of what the caller was told, and of consequence grade: the server's own record of what
    came over the wire and of what it answered. Only lines that were added after the opening count, by their place in
    the file. Rotation is followed. Blind spots are: a missing file; a log that was truncated, or rotated more than
    once between two looks, and so lost lines; lines that can't be read; a last line that isn't complete.

    A server writes a line when the request has ended, so the close waits until the log was quiet for `quiet` seconds.
    A server that buffers its log (nginx's `buffer=`) needs more.

    Args:
        path: The file.
        format: `combined`, `common`, `json` (one object a line, as of Caddy, Traefik, nginx and pino), or a regular
            expression with the groups `method`, `path` and `status`.
        fields: Where the three stand in a JSON object, by dotted names, such as `{"method": "req.verb"}`.
        origin: The server's own origin, where its log has whole URLs.
        quiet: Seconds without a new line after which a close ends; it waits no longer than the window's budget.
        limit: Requests that are kept of one window.

    Raises:
        ConfigError: The format is none of these.
    """

    closes: CloseCondition = "quiescence"

    def __init__(
        self,
        path: str | Path,
        format: str = "combined",  # noqa: A002 - the word that web servers use for it
        *,
        fields: Mapping[str, str] | None = None,
        origin: str | None = None,
        quiet: float = 0.2,
        limit: int = 100_000,
        timeout: float = 10.0,
        name: str = "http-log",
    ) -> None:
        self._path = Path(path)
        super().__init__(name, str(self._path), timeout=timeout)
        self._read_line = line_reader(format, fields or {}, origin)
        self._format = format if format in FORMATS else "a format of one's own"
        self._quiet = quiet
        self._limit = limit

    def channels(self) -> tuple[ChannelDescriptor, ...]:
        """`net`, independent, consequence."""
        return (ChannelDescriptor(id="net", independence="independent", grade="consequence"),)

    def provenance(self, channel: str) -> tuple[str, str, ProvenanceClass]:
        """The file; lines added after the opening."""
        del channel
        return self.locator, f"lines of an access log ({self._format}) added after the opening", "observed"

    async def _begin(self, session: Session) -> None:
        session.state = await anyio.to_thread.run_sync(self._open)

    def _open(self) -> _Place:
        looked = time.time_ns()
        tail = _Tail(self._file())
        tail.offset = os.fstat(tail.file.fileno()).st_size
        _sample(tail)
        # A line that was begun before the opening is of a request that had ended before.
        tail.skips = bool(tail.sample) and not tail.sample.endswith(b"\n")
        return _Place([tail], looked)

    def _file(self) -> io.FileIO:
        try:
            # Without O_NONBLOCK a pipe would hold us until somebody writes into it.
            number = os.open(self._path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        except OSError as error:
            raise CannotLook(error.strerror or str(error), remedy="does the server write its log there?") from None
        if not stat.S_ISREG(os.fstat(number).st_mode):
            os.close(number)
            raise CannotLook("it is no file")
        return io.FileIO(number)

    async def _look(self, session: Session) -> Sequence[BlindSpot]:
        place: _Place | None = session.state
        if place is None:
            return ()  # what the server wrote while it was missing can't be known: the gap at the opening stays
        for exchange in await anyio.to_thread.run_sync(self._follow, place):
            method, path, _ = exchange.summary.split(" ")
            value = {"method": method, "path": path, "status": exchange.status}
            session.seen.append(session.observation("net", exchange.summary, value))
        return self._gaps(place)

    async def _settle(self, session: Session) -> bool:
        """Wait until no line came for a while."""
        left = (session.window.opened_at + session.window.budget_ms - now()) / 1000
        size, since = await anyio.to_thread.run_sync(self._size), anyio.current_time()
        with anyio.move_on_after(max(left, self._quiet * 2)):
            while anyio.current_time() - since < self._quiet:
                await anyio.sleep(self._quiet / 8)
                seen = await anyio.to_thread.run_sync(self._size)
                if seen != size:
                    size, since = seen, anyio.current_time()
            return True
        return False

    def _size(self) -> tuple[int, int] | None:
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_ino, found.st_size

    def _closed_by(self, session: Session) -> CloseCondition:
        del session
        return "quiescence"

    def _let_go(self, session: Session) -> None:
        place: _Place | None = session.state
        if place is not None:
            for tail in place.tails:
                tail.file.close()

    def _follow(self, place: _Place) -> list[Exchange]:
        """Read on in every file of the window: a server may write into the old one for a while after a rotation."""
        found: list[Exchange] = []
        looked = time.time_ns()
        try:
            here = self._path.stat()
            place.missing = None
            if (here.st_dev, here.st_ino) != place.tails[-1].id:
                self._rotated(place)
        except (OSError, CannotLook) as error:
            place.missing = error.detail if isinstance(error, CannotLook) else error.strerror or str(error)
        for tail in place.tails:
            found += self._read_on(place, tail)
        place.looked = looked
        return found

    def _rotated(self, place: _Place) -> None:
        new = _Tail(self._file())
        known = {tail.id for tail in place.tails} | {new.id}
        for path in self._path.parent.glob(f"{_escaped(self._path.name)}*"):
            try:
                other = path.stat()
            except FileNotFoundError:
                continue
            if (other.st_dev, other.st_ino) not in known and other.st_mtime_ns >= place.looked - _CLOCK_STEP_NS:
                place.lost.append(f"it was rotated more than once between two looks: {path.name} was not read")
        place.tails.append(new)

    def _read_on(self, place: _Place, tail: _Tail) -> list[Exchange]:
        number = tail.file.fileno()
        is_shorter = os.fstat(number).st_size < tail.offset
        if is_shorter or os.pread(number, len(tail.sample), tail.offset - len(tail.sample)) != tail.sample:
            place.lost.append("it was truncated: lines written just before that may be lost")
            tail.offset, tail.part, tail.sample, tail.skips = 0, b"", b"", False
        found: list[Exchange] = []
        while chunk := os.pread(number, _CHUNK, tail.offset):
            tail.offset += len(chunk)
            *lines, tail.part = (tail.part + chunk).split(b"\n")
            for line in lines:
                if tail.skips:
                    tail.skips = False
                else:
                    found += self._read(place, line)
            if len(tail.part) > _LONGEST_LINE:
                self._bad(place, tail.part, "the line is too long")
                tail.part, tail.skips = b"", True
        _sample(tail)
        return found

    def _read(self, place: _Place, line: bytes) -> list[Exchange]:
        if not line.strip():
            return []
        try:
            exchange = self._read_line(line.decode("utf-8", "backslashreplace").rstrip("\r"))
        except NotHttp:
            place.not_http += 1
            return []
        except ValueError as error:
            self._bad(place, line, str(error))
            return []
        if exchange is None:
            return []
        place.lines += 1
        return [exchange] if place.lines <= self._limit else []

    def _bad(self, place: _Place, line: bytes, reason: str) -> None:
        del line  # it may hold anything
        place.bad_lines += 1
        if reason not in place.bad and len(place.bad) < 3:
            place.bad.append(reason)

    def _gaps(self, place: _Place) -> list[BlindSpot]:
        gaps = [spot("buffer-truncated", "net", f"{self.locator}: {lost}") for lost in dict.fromkeys(place.lost)]
        if place.missing is not None:
            gaps.append(spot("channel-unobserved", "net", f"{self.locator} is missing: {place.missing}"))
        if place.bad_lines:
            said = f"{self.locator}: {place.bad_lines} line(s) could not be read: {'; '.join(place.bad)}"
            gaps.append(spot("channel-unobserved", "net", said, "name the log's format with format="))
        if place.lines > self._limit:
            said = f"{self.locator}: {place.lines} requests, of which {self._limit} were kept"
            gaps.append(spot("buffer-truncated", "net", said, "give a higher limit="))
        if any(tail.part and not tail.skips for tail in place.tails):
            gaps.append(spot("still-in-flight", "net", f"{self.locator}: the last line isn't complete"))
        if place.not_http:
            said = f"{self.locator}: {place.not_http} line(s) tell of no HTTP request"
            gaps.append(spot("boundary-uncrossable", None, said))
        return gaps


def _sample(tail: _Tail) -> None:
    start = max(0, tail.offset - _SAMPLE)
    tail.sample = os.pread(tail.file.fileno(), tail.offset - start, start)


def _escaped(name: str) -> str:
    return "".join(f"[{char}]" if char in "*?[" else char for char in name)
