"""Events in a folder: a sub-folder for each calendar, an `.ics` file for each event, readable by other programs.

Files are written whole (a temporary file, flushed, renamed) under a lock that processes share. What others put there
is left as it is: properties that aren't edited stay byte for byte, files that can't be read are reported, not touched.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import sys
import tempfile
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from threading import RLock
from typing import Any, Final, cast

from hotplug.catalog.calendar.records import EventRecord
from hotplug.errors import Conflict, InvalidArgument, NotFound, StoreError, TooLarge, Unavailable
from hotplug.servers.calendar.ical import check, edit, new_file, read_file
from hotplug.servers.calendar.lines import Component, FileError
from hotplug.servers.calendar.storage import CalendarEntry, Problem, Tombstone

__all__ = ["LARGEST_FILE", "FolderStorage"]

_OWN: Final = ".hotplug"
_SAFE: Final = re.compile(r"[a-z0-9][a-z0-9_@-]{0,99}(\.[a-z0-9_@-]{1,99})?", re.ASCII)
_RESERVED: Final = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.ASCII)

LARGEST_FILE: Final = 16 * 2**20
"""Bytes of an `.ics` file that is read; a larger one is reported."""

_NEVER: Final = (0, 0, 0)
"""The stamp of what is to be read again each time."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """A file as it was when it was read."""

    path: Path
    stamp: tuple[int, int, int]
    found: EventRecord | Problem
    bounds: tuple[datetime, datetime | None] = (datetime.min.replace(tzinfo=UTC), None)


class FolderStorage:
    """Events as files.

    Args:
        root: The folder; it and a calendar `calendar` in it are made if there is none. A sub-folder is a calendar,
            named as the folder or as its `.calendar.json` says (`{"name": …, "zone": …}`). Hidden sub-folders are none,
            and neither are links to a calendar that is there anyway.
        owner: The mail address of whose calendars they are, who organizes what is made here; without one, who takes
            part in an event isn't read and can't be changed.

    Raises:
        StoreError: It is no folder, or can't be made.
    """

    def __init__(self, root: str | Path, owner: str | None = None) -> None:
        self._root = Path(root)
        self._owner = owner
        self._lock = RLock()
        self._depth = 0
        self._files: dict[Path, _Seen] = {}
        self._events: dict[str, _Seen] = {}
        try:
            self._root.mkdir(parents=True, exist_ok=True)
            (self._root / _OWN).mkdir(exist_ok=True)
            if not self._folders():
                (self._root / "calendar").mkdir()
        except OSError as error:
            raise StoreError(f"the calendar folder {str(root)!r} can't be used: {error}") from error

    def at_once(self, short: Callable[[], Any]) -> None:
        """Nothing: files are looked at for every read."""

    @contextmanager
    def transaction(self) -> Generator[None]:
        """Exclusive over threads and processes that use this class. Files have no rollback: each is written whole."""
        with self._lock:
            if self._depth:
                self._depth += 1
                try:
                    yield None
                finally:
                    self._depth -= 1
                return
            with (self._root / _OWN / "lock").open("ab") as file, _locked(file.fileno()):
                self._depth = 1
                try:
                    yield None
                finally:
                    self._depth = 0

    def calendars(self) -> list[CalendarEntry]:
        """All calendars, by id (the name of the sub-folder)."""
        return [self._entry(folder) for folder in self._folders()]

    def _folders(self) -> list[Path]:
        own = self._root.stat()
        there = {(own.st_dev, own.st_ino)}
        found: list[Path] = []
        for folder in sorted(self._root.iterdir(), key=lambda each: (each.is_symlink(), each.name)):
            if folder.name.startswith(".") or not folder.is_dir():
                continue
            status = folder.stat()
            if (status.st_dev, status.st_ino) not in there:
                there.add((status.st_dev, status.st_ino))
                found.append(folder)
        return sorted(found)

    def _entry(self, folder: Path) -> CalendarEntry:
        told: dict[str, Any] = {}
        with suppress(OSError, ValueError):
            body: Any = json.loads((folder / ".calendar.json").read_text(encoding="utf-8"))
            if isinstance(body, dict):
                told = cast("dict[str, Any]", body)
        name, zone = told.get("name"), told.get("zone")
        return CalendarEntry(
            folder.name,
            name if isinstance(name, str) else folder.name,
            zone if isinstance(zone, str) else None,
            os.access(folder, os.W_OK),
        )

    def _scan(self) -> dict[str, _Seen]:
        """The events by uid; files whose size, time and number are as before are not read again."""
        with self._lock:
            files: dict[Path, _Seen] = {}
            events: dict[str, _Seen] = {}
            for folder in self._folders():
                try:
                    with os.scandir(folder) as entries:
                        names = sorted(each.name for each in entries if each.name.lower().endswith(".ics"))
                except OSError as error:
                    problem = Problem(folder.name, f"it can't be opened: {error.strerror}", folder.name)
                    files[folder] = _Seen(folder, _NEVER, problem)
                    continue
                for path in (folder / name for name in names if not name.startswith(".")):
                    seen = self._look(path)
                    if seen is None:
                        continue
                    if isinstance(seen.found, EventRecord):
                        other = events.setdefault(seen.found.uid, seen)
                        if other is not seen:
                            reason = f"its event {seen.found.uid!r} is also in {self._shown(other.path)}"
                            seen = _Seen(path, _NEVER, self._problem(path, reason, hides=False))
                    files[path] = seen
            self._files, self._events = files, events
            return events

    def _find(self, uid: str) -> _Seen | None:
        """The file of an event: where it was, if it is still there, or wherever it is."""
        with self._lock:
            known = self._events.get(uid)
            seen = None if known is None else self._look(known.path)
            if seen is not None and isinstance(seen.found, EventRecord) and seen.found.uid == uid:
                self._files[seen.path] = self._events[uid] = seen
                return seen
            return self._scan().get(uid)

    def _look(self, path: Path) -> _Seen | None:
        try:
            status = os.stat(path)  # noqa: PTH116 - a folder is looked through for each search
            stamp = status.st_mtime_ns, status.st_size, status.st_ino
            known = self._files.get(path)
            if known is not None and known.stamp == stamp:
                return known
            source = _read_regular(path)
        except FileNotFoundError:
            if path.is_symlink():
                return _Seen(path, _NEVER, self._problem(path, "it is a link to a file that isn't there"))
            return None
        except FileError as error:
            return _Seen(path, _NEVER, self._problem(path, str(error)))
        except OSError as error:
            return _Seen(path, _NEVER, self._problem(path, f"it can't be opened: {error.strerror}"))
        try:
            record, _ = self._parsed(source, path.parent.name)
        except FileError as error:
            return _Seen(path, stamp, self._problem(path, str(error)))
        return _Seen(path, stamp, record, record.series.bounds())

    def _parsed(self, source: bytes, calendar: str) -> tuple[EventRecord, Component]:
        return read_file(source, calendar, _digest(source), people=self._owner is not None)

    def _problem(self, path: Path, reason: str, *, hides: bool = True) -> Problem:
        return Problem(self._shown(path), reason, path.parent.name, hides)

    def _shown(self, path: Path) -> str:
        return path.relative_to(self._root).as_posix()

    def read(self, uid: str) -> EventRecord | None:
        """The event, its revision set."""
        seen = self._find(uid)
        return None if seen is None or isinstance(seen.found, Problem) else seen.found

    def was_deleted(self, uid: str) -> bool:
        """Whether an event of this uid was deleted here."""
        return any(each.uid == uid for each in self._deleted())

    def select(
        self, start: datetime, end: datetime, calendar: str | None
    ) -> tuple[Sequence[EventRecord], Sequence[Problem]]:
        """The events that may overlap the range in any zone, and the files that couldn't be read."""
        found: list[EventRecord] = []
        with self._lock:
            events = self._scan()
            problems = [each for each in self._known_problems() if calendar in (None, each.calendar)]
        for seen in events.values():
            record = seen.found
            assert isinstance(record, EventRecord)
            first, last = seen.bounds
            untold = "recurrenceRules" in record.unknown
            if calendar in (None, record.calendar) and first < end and (last is None or untold or last > start):
                found.append(record)
        return found, problems

    def unread(self, uid: str) -> Sequence[Problem]:
        """The files that couldn't be read: whose events they are, nobody knows."""
        return [each for each in self.problems() if each.hides]

    def fit(self, record: EventRecord, accept: frozenset[str]) -> EventRecord:
        """The event as an iCalendar file can hold it."""
        return check(record, accept, self._owner)

    def insert(self, record: EventRecord, like: EventRecord | None = None) -> EventRecord:
        """Keep a new event in a file of its own."""
        now = record.updated or datetime.now(UTC)
        if like is None:
            root = new_file(record, now, self._owner)
        else:
            _, root = self._open(like)
            edit(root, like, record, now, self._owner)
        path = self._root / record.calendar / _file_name(record.uid)
        if path.exists():
            raise Conflict(f"the file {self._shown(path)} is there already", hint="leave the id out")
        return self._write(path, _source(root), record.calendar)

    def replace(self, before: EventRecord, after: EventRecord) -> EventRecord:
        """Keep the event as it is after a change, in the file where it is."""
        path, root = self._open(before)
        edit(root, before, after, after.updated or datetime.now(UTC), self._owner)
        source = _source(root)
        if after.calendar != before.calendar:
            target = self._root / after.calendar / path.name
            if target.exists():
                raise Conflict(f"the file {self._shown(target)} is there already")
            path = path.rename(target)
        return self._write(path, source, after.calendar)

    def _open(self, record: EventRecord) -> tuple[Path, Component]:
        """The file of an event and its lines, if it is still as it was read."""
        seen = self._find(record.uid)
        if seen is None:
            raise NotFound(f"the event {record.uid!r} is not there any more")
        try:
            source = _read_regular(seen.path)
        except (OSError, FileError) as error:
            raise Unavailable(f"the file {self._shown(seen.path)} can't be read any more: {error}") from error
        if _digest(source) != record.revision:
            raise Conflict(
                f"the file of the event {record.uid!r} was changed just now", details={"current": _digest(source)}
            )
        return seen.path, self._parsed(source, record.calendar)[1]

    def _write(self, path: Path, source: bytes, calendar: str) -> EventRecord:
        record, _ = self._parsed(source, calendar)
        try:
            _write_whole(path, source)
        except OSError as error:
            raise Unavailable(f"the file {self._shown(path)} can't be written: {error.strerror}") from error
        return record

    def remove(self, record: EventRecord, now: datetime) -> None:
        """Delete the file and remember that; remembered first, and not believed while the file is there."""
        path, _ = self._open(record)
        entry = json.dumps([record.uid, record.calendar, now.isoformat()])
        with (self._root / _OWN / "deleted.jsonl").open("a+b") as file:
            file.seek(0, os.SEEK_END)
            if file.tell():
                file.seek(-1, os.SEEK_END)
                if file.read(1) != b"\n":  # a line that a crash cut
                    file.write(b"\n")
            file.write(entry.encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        path.unlink()
        _sync_folder(path.parent)

    def _deleted(self) -> list[Tombstone]:
        try:
            lines = (self._root / _OWN / "deleted.jsonl").read_text(encoding="utf-8").split("\n")
        except FileNotFoundError:
            return []
        found: list[Tombstone] = []
        for text in lines:
            with suppress(ValueError, TypeError):
                uid, calendar, at = json.loads(text)
                found.append(Tombstone(uid, calendar, datetime.fromisoformat(at)))
        return found

    def deleted_since(self, cursor: str | None, limit: int) -> tuple[list[Tombstone], str]:
        """What was deleted here after the cursor, and the next cursor; what other programs delete is not known."""
        if cursor is not None and not (cursor.isascii() and cursor.isdigit()):
            raise InvalidArgument(f"the cursor {cursor!r} is none that was given here")
        position = int(cursor or 0)
        there = self._scan()
        page = self._deleted()[position : position + limit]
        return [each for each in page if each.uid not in there], str(position + len(page))

    def problems(self) -> list[Problem]:
        """The files that couldn't be read, by path."""
        with self._lock:
            self._scan()
            return self._known_problems()

    def _known_problems(self) -> list[Problem]:
        return [each.found for _, each in sorted(self._files.items()) if isinstance(each.found, Problem)]

    def close(self) -> None:
        """Nothing is held open."""


def _digest(source: bytes) -> str:
    return hashlib.sha256(source).hexdigest()[:32]


def _source(root: Component) -> bytes:
    """The bytes of a file, if they can be read again."""
    source = root.to_bytes()
    if len(source) > LARGEST_FILE:
        # Each changed occurrence has all texts of the series once more, so an event in bounds may come to this.
        raise TooLarge(
            f"the event's file would have {len(source)} bytes, and at most {LARGEST_FILE} are read",
            details={"bytes": len(source), "limit": LARGEST_FILE},
        )
    return source


def _read_regular(path: Path) -> bytes:
    """The bytes of a file; without waiting for a pipe's other end, and of what isn't a file, or too large, nothing.

    Raises:
        FileError: It is none, or too large.
    """
    # What is no file may wait or act when it is opened, so it is looked at before; and after, for what came in between.
    _check_regular(os.stat(path))  # noqa: PTH116 - a folder is looked through for each search
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_BINARY", 0)
    with open(os.open(path, flags), "rb") as file:  # noqa: PTH123 - a handle
        _check_regular(os.fstat(file.fileno()))
        source = file.read(LARGEST_FILE + 1)
    if len(source) > LARGEST_FILE:
        raise FileError(f"it grew over the {LARGEST_FILE} bytes that are read")
    return source


def _check_regular(status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise FileError("it is no regular file")
    if status.st_size > LARGEST_FILE:
        raise FileError(f"it has {status.st_size} bytes, and at most {LARGEST_FILE} are read")


def _file_name(uid: str) -> str:
    """A file name for any uid: the uid where every file system takes it as it is, else its digest."""
    if _SAFE.fullmatch(uid) and not _RESERVED.fullmatch(uid):
        return f"{uid}.ics"
    return f"uid-{hashlib.sha256(uid.encode()).hexdigest()[:40]}.ics"


def _write_whole(path: Path, source: bytes) -> None:
    handle, name = tempfile.mkstemp(prefix=".", suffix=".tmp", dir=path.parent)
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(source)
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileNotFoundError):
            temporary.chmod(path.stat().st_mode & 0o777)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    if sys.platform == "win32":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def _locked(handle: int) -> Generator[None]:
    if sys.platform == "win32":
        import msvcrt

        os.lseek(handle, 0, os.SEEK_SET)
        msvcrt.locking(handle, msvcrt.LK_LOCK, 1)
        try:
            yield
        finally:
            os.lseek(handle, 0, os.SEEK_SET)
            msvcrt.locking(handle, msvcrt.LK_UNLCK, 1)
    else:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(handle, fcntl.LOCK_UN)
