"""Events in one SQLite file: what a call does commits whole, together with what the caller adds to the transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from threading import RLock
from typing import Final, TypeVar

from hotplug.catalog.calendar.records import EventRecord
from hotplug.errors import InvalidArgument, StoreError, Unavailable
from hotplug.servers.calendar.bodies import BodyError, read_body, write_body
from hotplug.servers.calendar.storage import CalendarEntry, Problem, Tombstone

__all__ = ["SqliteStorage", "check_folder"]

T = TypeVar("T")

_VERSION: Final = 1
_SCHEMA: Final = """
create table calendar_calendars (id text primary key, name text not null, zone text, writable integer not null);
create table calendar_events (
  uid text primary key,
  calendar text not null references calendar_calendars (id),
  revision integer not null,
  first text not null,
  last text,
  body text not null
);
create index calendar_events_by_time on calendar_events (first, last);
create table calendar_deleted (
  position integer primary key autoincrement,
  uid text not null unique,
  calendar text not null,
  at text not null
);
create table calendar_counter (revision integer not null);
insert into calendar_counter values (0);
"""


class SqliteStorage:
    """Events in a SQLite file.

    Args:
        path: The file, made if it isn't there, in a folder that is; `:memory:` for one that is gone afterwards.
        calendars: Those to have; by default one with id `calendar`. Ones that the file has already stay as they are.

    Raises:
        StoreError: The file can't be opened, is no database, or was made by a newer build.
    """

    def __init__(self, path: str | Path, calendars: Sequence[CalendarEntry] = ()) -> None:
        self._lock = RLock()
        self._depth = 0
        self._unread: set[str] = set()
        check_folder(path)
        try:
            # threads take turns by the lock; a statement outside a transaction commits by itself
            self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=10)
            self._connection.execute("pragma foreign_keys = on")
            self._connection.execute("pragma journal_mode = wal")
            self._connection.execute("pragma synchronous = full")
            self._prepare(path, calendars)
        except sqlite3.Error as error:
            raise StoreError(f"the calendar file {str(path)!r} can't be opened: {error}") from error

    def _prepare(self, path: str | Path, calendars: Sequence[CalendarEntry]) -> None:
        with self.transaction() as connection:
            # A table of our own: `user_version` is that of the store, which may live in the same file.
            connection.execute("create table if not exists calendar_format (version integer not null)")
            (version,) = connection.execute("select coalesce(max(version), 0) from calendar_format").fetchone()
            if version > _VERSION:
                raise StoreError(
                    f"the calendar file {str(path)!r} has format {version}, and this build knows {_VERSION}",
                    hint="use a newer build",
                )
            if version == 0:
                for statement in filter(str.strip, _SCHEMA.split(";")):
                    connection.execute(statement)
                connection.execute("insert into calendar_format values (?)", (_VERSION,))
            (number,) = connection.execute("select count(*) from calendar_calendars").fetchone()
            for entry in calendars or (() if number else (CalendarEntry("calendar", "Calendar"),)):
                connection.execute(
                    "insert or ignore into calendar_calendars values (?, ?, ?, ?)",
                    (entry.id, entry.name, entry.zone, entry.writable),
                )

    def at_once(self, short: Callable[[], T]) -> tuple[T] | None:
        """What a short read gives, unless another thread is at work, as in a transaction.

        With a write-ahead log no other process makes a reader wait.
        """
        if not self._lock.acquire(blocking=False):
            return None
        try:
            return (short(),)
        finally:
            self._lock.release()

    @contextmanager
    def transaction(self) -> Generator[sqlite3.Connection]:
        """A write transaction, exclusive over processes; one inside another is part of it. An error rolls it back."""
        with self._lock:
            if self._depth == 0:
                self._begin()
            self._depth += 1
            try:
                yield self._connection
            except BaseException:
                if self._depth == 1:
                    self._connection.execute("rollback")
                raise
            else:
                if self._depth == 1:
                    self._connection.execute("commit")
            finally:
                self._depth -= 1

    def _begin(self) -> None:
        try:
            self._connection.execute("begin immediate")
        except sqlite3.OperationalError as error:
            raise Unavailable(f"the calendar file can't be written now: {error}", hint="try again later") from error

    def calendars(self) -> list[CalendarEntry]:
        """All calendars, by id."""
        with self._lock:
            rows = self._connection.execute(
                "select id, name, zone, writable from calendar_calendars order by id"
            ).fetchall()
        return [CalendarEntry(id_, name, zone, bool(writable)) for id_, name, zone, writable in rows]

    def read(self, uid: str) -> EventRecord | None:
        """The event, its revision set."""
        with self._lock:
            row = self._connection.execute(
                "select calendar, revision, cast(body as blob) from calendar_events where uid = ?", (uid,)
            ).fetchone()
        found = None if row is None else self._read(uid, *row)
        return found if isinstance(found, EventRecord) else None

    def _read(self, uid: str, calendar: str, revision: int, body: bytes) -> EventRecord | Problem:
        # as bytes: of text that isn't UTF-8, sqlite3 would give no row at all, and none of the others
        try:
            return read_body(uid, calendar, str(revision), body.decode())
        except UnicodeDecodeError as error:
            reason = f"it is no UTF-8: {error.reason} at byte {error.start}"
        except BodyError as error:
            reason = str(error)
        self._unread.add(uid)
        return Problem(f"the event {uid!r} of {calendar!r}", reason, calendar)

    def was_deleted(self, uid: str) -> bool:
        """Whether an event of this uid was deleted here."""
        with self._lock:
            return (
                self._connection.execute("select 1 from calendar_deleted where uid = ?", (uid,)).fetchone() is not None
            )

    def select(
        self, start: datetime, end: datetime, calendar: str | None
    ) -> tuple[Sequence[EventRecord], Sequence[Problem]]:
        """The events that may overlap the range in any zone, and the rows of such that couldn't be read."""
        with self._lock:
            rows = self._connection.execute(
                "select uid, calendar, revision, cast(body as blob) from calendar_events"
                " where first < ? and (last is null or last > ?) and (? is null or calendar = ?)",
                (_text(end), _text(start), calendar, calendar),
            ).fetchall()
        found = [self._read(*row) for row in rows]
        return (
            [each for each in found if isinstance(each, EventRecord)],
            [each for each in found if isinstance(each, Problem)],
        )

    def unread(self, uid: str) -> Sequence[Problem]:
        """The event's own row, if it is there and couldn't be read."""
        return self._problems([uid])

    def _problems(self, uids: Iterable[str]) -> list[Problem]:
        found: list[Problem] = []
        with self._lock:
            for uid in uids:
                row = self._connection.execute(
                    "select calendar, revision, cast(body as blob) from calendar_events where uid = ?", (uid,)
                ).fetchone()
                problem = None if row is None else self._read(uid, *row)
                if isinstance(problem, Problem):
                    found.append(problem)
                else:
                    self._unread.discard(uid)
        return found

    def fit(self, record: EventRecord, accept: frozenset[str]) -> EventRecord:
        """The event: everything is kept as it is."""
        return record

    def insert(self, record: EventRecord, like: EventRecord | None = None) -> EventRecord:
        """Keep a new event."""
        return self._write(
            "insert into calendar_events (calendar, revision, first, last, body, uid) values (?, ?, ?, ?, ?, ?)", record
        )

    def replace(self, before: EventRecord, after: EventRecord) -> EventRecord:
        """Keep the event as it is after a change."""
        return self._write(
            "update calendar_events set calendar = ?, revision = ?, first = ?, last = ?, body = ? where uid = ?", after
        )

    def _write(self, statement: str, record: EventRecord) -> EventRecord:
        first, last = record.series.bounds()
        body = write_body(record)
        with self.transaction() as connection:
            connection.execute("update calendar_counter set revision = revision + 1")
            (revision,) = connection.execute("select revision from calendar_counter").fetchone()
            bounds = _text(first), None if last is None else _text(last)
            connection.execute(statement, (record.calendar, revision, *bounds, body, record.uid))
        return read_body(record.uid, record.calendar, str(revision), body)

    def remove(self, record: EventRecord, now: datetime) -> None:
        """Delete the event and remember that."""
        with self.transaction() as connection:
            connection.execute("delete from calendar_events where uid = ?", (record.uid,))
            connection.execute(
                "insert into calendar_deleted (uid, calendar, at) values (?, ?, ?)",
                (record.uid, record.calendar, now.isoformat()),
            )

    def deleted_since(self, cursor: str | None, limit: int) -> tuple[list[Tombstone], str]:
        """What was deleted after the cursor, and the next cursor."""
        if cursor is not None and not (cursor.isascii() and cursor.isdigit()):
            raise InvalidArgument(f"the cursor {cursor!r} is none that was given here")
        position = int(cursor or 0)
        with self._lock:
            rows = self._connection.execute(
                "select position, uid, calendar, at from calendar_deleted where position > ? order by position limit ?",
                (position, limit),
            ).fetchall()
        found = [Tombstone(uid, calendar, datetime.fromisoformat(at)) for _, uid, calendar, at in rows]
        return found, str(rows[-1][0] if rows else position)

    def problems(self) -> list[Problem]:
        """The rows that hold no JSON, and those that were met here and couldn't be read for another reason.

        Not every body is read for this: there may be many.
        """
        with self._lock:
            rows = self._connection.execute("select uid from calendar_events where not json_valid(body)").fetchall()
            return self._problems(sorted({uid for (uid,) in rows} | self._unread))

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()


def check_folder(path: str | Path) -> None:
    """Refuse a file in a folder that isn't there: a misspelt path would be a new, empty calendar.

    Raises:
        StoreError: The folder isn't there.
    """
    folder = Path(path).parent
    if not folder.is_dir():
        raise StoreError(
            f"there is no folder {str(folder)!r} for the calendar file {Path(path).name!r}",
            hint="correct the path, or make the folder first",
        )


def _text(moment: datetime) -> str:
    # fixed width, so that text order is time order
    return moment.replace(tzinfo=None).isoformat(timespec="seconds")
