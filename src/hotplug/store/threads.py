"""The threads of a gateway as the store keeps them: where each comes from, and the hash of its token.

A thread is added in one transaction, with its lineage and the hash; whoever gives its token out does so after that.
Every change gets a number, so that another process learns of it by one cheap look (`last`), and what it was by another
(`since`). Closing a thread closes everything below it and forgets their hashes.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from time import time
from typing import Final, Literal, NamedTuple, Protocol, TypeVar

import anyio.to_thread

from hotplug.errors import ConfigError
from hotplug.store.files import as_store_errors, connect
from hotplug.store.protocols import Store
from hotplug.store.sqlite import SqliteStore

__all__ = ["Changes", "NotAdded", "SqliteThreads", "ThreadRecord", "ThreadStore", "threads_of"]

T = TypeVar("T")

NotAdded = Literal["parent", "depth", "project", "limit", "taken"]
"""Why a thread was not added: no such parent is open, too deep, not its parent's project, too many, the id is used."""

_DAY: Final = 86_400.0
_BATCH: Final = 100
_COLUMNS: Final = "id, parent, delegated, project, title, opener, opened, closed, depth, token"


@dataclass(frozen=True, slots=True)
class ThreadRecord:
    """A thread as it was recorded.

    Args:
        id: Made by the gateway; never used a second time.
        parent: The thread that it was forked from, or that opened it; None for a root.
        delegated: It is a sub-agent.
        project: Its project; a child's is its parent's.
        title: For people.
        opened: When, UTC.
        closed: When, UTC; None while it is open.
        opener: The name of the opener that opened it over HTTP; only roots have one.
        depth: How many threads are above it.
    """

    id: str
    parent: str | None
    delegated: bool
    project: str | None
    title: str | None
    opened: datetime
    closed: datetime | None = None
    opener: str | None = None
    depth: int = 0


class Changes(NamedTuple):
    """What became of threads.

    Args:
        last: The number of the last change that is in it, or an earlier one.
        threads: Each thread that changed, as it is now, with the hash of its token (None: it has none any more).
        whole: It is everything that is open, in place of what was known.
    """

    last: int
    threads: tuple[tuple[ThreadRecord, bytes | None], ...]
    whole: bool


class ThreadStore(Protocol):
    """Where threads are kept, for one gateway or several. Every method may raise `StoreError`."""

    def last(self) -> int:
        """The number of the last change by anybody, as of now. Called for every message: it has to be cheap."""
        ...

    def since(self, change: int | None) -> Changes:
        """What changed after a change; None: everything that is open."""
        ...

    def thread(self, id: str) -> ThreadRecord | None:  # noqa: A002
        """A thread, open or closed, as far as it is remembered."""
        ...

    def closed(self, limit: int) -> tuple[ThreadRecord, ...]:
        """Those that were closed last, the newest first."""
        ...

    async def add(
        self, thread: ThreadRecord, token: bytes | None, *, most: int, deepest: int
    ) -> ThreadRecord | NotAdded:
        """Record a new thread under its parent, or say why not. Its depth, and a child's project, come from the parent.

        Args:
            token: The SHA-256 of its token; None: it has none.
            most: How many may be open.
            deepest: How many may be above it.
        """
        ...

    async def reopen(self, thread: ThreadRecord) -> ThreadRecord:
        """Record a root without a token under an id of ours, unless it is open already; gives it as it is then."""
        ...

    async def close(self, id: str, at: float) -> tuple[str, ...]:  # noqa: A002
        """Close a thread and all below it; gives those that were open, the thread itself first."""
        ...

    async def aclose(self) -> None:
        """Let go of what was opened for reading; the store itself stays open."""
        ...


def threads_of(store: Store) -> ThreadStore:
    """The threads that a store keeps.

    Raises:
        ConfigError: This kind of store keeps none.
    """
    if isinstance(store, SqliteStore):
        return SqliteThreads(store)
    raise ConfigError(f"a {type(store).__name__} keeps no threads", hint="use a store on SQLite")


class SqliteThreads:
    """A `ThreadStore` in a store's SQLite file. To be used from one thread.

    Looks go by a connection of their own, so that they never wait for whoever writes.

    Args:
        kept: Days for which closed threads are remembered; they go little by little as new ones are added.
        clock: Seconds since the epoch.
    """

    def __init__(self, store: SqliteStore, *, kept: int = 90, clock: Callable[[], float] = time) -> None:
        self._store = store
        self._kept = kept * _DAY
        self._clock = clock
        self._reader: sqlite3.Connection | None = None

    def last(self) -> int:
        """See `ThreadStore.last`."""
        return self._read(lambda c: _value(c, "thread"))

    def since(self, change: int | None) -> Changes:
        """See `ThreadStore.since`."""
        return self._read(lambda c: _since(c, change))

    def thread(self, id: str) -> ThreadRecord | None:  # noqa: A002
        """See `ThreadStore.thread`."""
        return self._read(lambda c: _thread(c, id))

    def closed(self, limit: int) -> tuple[ThreadRecord, ...]:
        """See `ThreadStore.closed`."""

        def work(connection: sqlite3.Connection) -> tuple[ThreadRecord, ...]:
            rows = connection.execute(
                f"SELECT {_COLUMNS} FROM store_thread WHERE closed IS NOT NULL "  # noqa: S608 - our own words
                "ORDER BY closed DESC, change DESC LIMIT ?",
                (limit,),
            )
            return tuple(_record(row) for row in rows)

        return self._read(work)

    async def add(
        self, thread: ThreadRecord, token: bytes | None, *, most: int, deepest: int
    ) -> ThreadRecord | NotAdded:
        """See `ThreadStore.add`."""

        def work(connection: sqlite3.Connection) -> ThreadRecord | NotAdded:
            _forget_old(connection, self._clock() - self._kept)
            if _value(connection, "thread-open") >= most:
                return "limit"
            added = thread
            if thread.parent is not None:
                parent = _thread(connection, thread.parent)
                if parent is None or parent.closed is not None:
                    return "parent"
                if parent.depth >= deepest:
                    return "depth"
                if thread.project not in (None, parent.project):
                    return "project"
                added = replace(thread, project=parent.project, depth=parent.depth + 1)
            if _thread(connection, thread.id) is not None:
                return "taken"
            _insert(connection, added, token)
            return added

        return await self._store.run(work, write=True)

    async def reopen(self, thread: ThreadRecord) -> ThreadRecord:
        """See `ThreadStore.reopen`."""

        def work(connection: sqlite3.Connection) -> ThreadRecord:
            known = _thread(connection, thread.id)
            if known is not None and known.closed is None:
                return known
            connection.execute("DELETE FROM store_thread WHERE id = ?", (thread.id,))
            _insert(connection, thread, None)
            return thread

        return await self._store.run(work, write=True)

    async def close(self, id: str, at: float) -> tuple[str, ...]:  # noqa: A002
        """See `ThreadStore.close`."""

        def work(connection: sqlite3.Connection) -> tuple[str, ...]:
            rows = connection.execute(
                "WITH RECURSIVE below (id, depth) AS ("
                " SELECT id, depth FROM store_thread WHERE id = ? AND closed IS NULL"
                " UNION SELECT t.id, t.depth FROM store_thread t JOIN below b ON t.parent = b.id"
                " WHERE t.closed IS NULL) SELECT id FROM below ORDER BY depth, id",
                (id,),
            ).fetchall()
            if rows:
                change = _add(connection, "thread", 1)
                _add(connection, "thread-open", -len(rows))
                connection.executemany(
                    "UPDATE store_thread SET closed = ?, token = NULL, change = ? WHERE id = ?",
                    [(at, change, one) for (one,) in rows],
                )
            return tuple(one for (one,) in rows)

        gone = await self._store.run(work, write=True)
        if gone and self._store.file is not None:
            await anyio.to_thread.run_sync(_settle, self._store.file)
        return gone

    async def aclose(self) -> None:
        """See `ThreadStore.aclose`."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    def _read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        file = self._store.file
        if file is None:
            with self._store.transaction() as connection:
                return work(connection)
        with as_store_errors(file):
            if self._reader is None:
                with contextlib.ExitStack() as opened:
                    reader = connect(file)
                    opened.callback(reader.close)
                    reader.execute("PRAGMA query_only = 1")
                    opened.pop_all()
                self._reader = reader
            return work(self._reader)


def _settle(file: Path) -> None:
    """Force the database's log to the disk: what was closed stays so after a power cut too."""
    # No lock of SQLite's is on the log, so none is dropped when it is closed here.
    with contextlib.suppress(OSError):
        fd = os.open(file.with_name(file.name + "-wal"), os.O_RDWR | getattr(os, "O_BINARY", 0))
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def _value(connection: sqlite3.Connection, name: str) -> int:
    (value,) = connection.execute("SELECT value FROM store_counter WHERE name = ?", (name,)).fetchone()
    return value


def _add(connection: sqlite3.Connection, name: str, count: int) -> int:
    connection.execute("UPDATE store_counter SET value = value + ? WHERE name = ?", (count, name))
    return _value(connection, name)


def _since(connection: sqlite3.Connection, change: int | None) -> Changes:
    # Outside of a transaction each statement sees its own moment: the number first, so that at worst a change that is
    # in the rows already is looked up once more.
    last = _value(connection, "thread")
    if change is not None:
        rows = connection.execute(
            f"SELECT {_COLUMNS} FROM store_thread WHERE change > ?",  # noqa: S608 - our own words
            (change,),
        ).fetchall()
        if _value(connection, "thread-purged") <= change:
            return Changes(last, tuple((_record(row), row[9]) for row in rows), whole=False)
        # That a thread was closed can't be seen any more where its row went since.
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM store_thread WHERE closed IS NULL"  # noqa: S608 - our own words
    ).fetchall()
    return Changes(last, tuple((_record(row), row[9]) for row in rows), whole=True)


def _thread(connection: sqlite3.Connection, id_: str) -> ThreadRecord | None:
    row = connection.execute(
        f"SELECT {_COLUMNS} FROM store_thread WHERE id = ?",  # noqa: S608 - our own words
        (id_,),
    ).fetchone()
    return None if row is None else _record(row)


def _record(
    row: tuple[str, str | None, int, str | None, str | None, str | None, float, float | None, int, object],
) -> ThreadRecord:
    id_, parent, delegated, project, title, opener, opened, closed, depth, _ = row
    return ThreadRecord(
        id=id_,
        parent=parent,
        delegated=bool(delegated),
        project=project,
        title=title,
        opened=datetime.fromtimestamp(opened, UTC),
        closed=None if closed is None else datetime.fromtimestamp(closed, UTC),
        opener=opener,
        depth=depth,
    )


def _insert(connection: sqlite3.Connection, thread: ThreadRecord, token: bytes | None) -> None:
    _add(connection, "thread-open", 1)
    connection.execute(
        "INSERT INTO store_thread (id, parent, depth, delegated, project, title, opener, token, opened, closed, change)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, NULL, ?)",
        (
            thread.id,
            thread.parent,
            thread.depth,
            thread.delegated,
            thread.project,
            thread.title,
            thread.opener,
            token,
            thread.opened.timestamp(),
            _add(connection, "thread", 1),
        ),
    )


def _forget_old(connection: sqlite3.Connection, before: float) -> None:
    gone = connection.execute(
        "DELETE FROM store_thread WHERE id IN (SELECT id FROM store_thread WHERE closed < ? LIMIT ?) RETURNING change",
        (before, _BATCH),
    ).fetchall()
    if gone:
        connection.execute(
            "UPDATE store_counter SET value = max(value, ?) WHERE name = 'thread-purged'",
            (max(change for (change,) in gone),),
        )
