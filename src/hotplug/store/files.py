"""The SQLite file of a store, and connections to it."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
from collections.abc import Generator
from pathlib import Path
from typing import Final

from hotplug.errors import StoreError
from hotplug.store import schema
from hotplug.store.lease import Lease, gate, sweep

__all__ = [
    "PATIENCE",
    "PATIENCE_MS",
    "as_store_errors",
    "broken",
    "checkpoint",
    "connect",
    "is_busy",
    "open_file",
    "open_memory",
    "owners",
    "transaction",
]

PATIENCE: Final = 10.0
"""Seconds until a database that others keep locked is an error."""

PATIENCE_MS: Final = 10_000
"""The same in milliseconds, for `PRAGMA busy_timeout`."""

_OLDEST_SQLITE: Final = (3, 38, 0)


def owners(path: Path) -> Path:
    """The folder beside a database where its owners' leases lie."""
    return path.with_name(path.name + "-owners")


def connect(path: Path | str) -> sqlite3.Connection:
    """A connection that begins no transaction by itself, waits for locks, and leaves checkpoints to `checkpoint`."""
    connection = sqlite3.connect(path, timeout=PATIENCE, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("PRAGMA wal_autocheckpoint = 0")
    connection.execute("PRAGMA journal_size_limit = 33554432")
    return connection


def open_memory() -> tuple[sqlite3.Connection, bytes]:
    """A new database in memory, and its sealing key.

    Raises:
        StoreError: SQLite is too old.
    """
    _check_sqlite()
    connection = connect(":memory:")
    schema.migrate(connection)
    return connection, schema.sealing_key(connection)


def open_file(path: Path, *, full: bool) -> tuple[sqlite3.Connection, Lease, bytes]:
    """A connection to a file of the newest version, made with its folder if it isn't there; a lease; the sealing key.

    Raises:
        StoreError: It can't be opened, is of a newer build (nothing is changed then), or is another program's.
    """
    _check_sqlite()
    with as_store_errors(path):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if path.exists() and path.stat().st_size:
            # Even reading makes SQLite lay a log and an index beside a WAL database that has none.
            how = "mode=ro" if path.with_name(path.name + "-wal").exists() else "immutable=1"
            with contextlib.closing(sqlite3.connect(f"{path.as_uri()}?{how}", uri=True, timeout=PATIENCE)) as looking:
                schema.check(looking, str(path))
        with gate(owners(path)):
            connection = _open(path)
            try:
                schema.check(connection, str(path))
                connection.execute("PRAGMA journal_mode = WAL")
                schema.migrate(connection)
                if full:
                    connection.execute("PRAGMA synchronous = FULL")
                sealing_key = schema.sealing_key(connection)
                sweep(owners(path))
                return connection, Lease(owners(path)), sealing_key
            except BaseException:
                connection.close()
                raise


def _check_sqlite() -> None:
    if sqlite3.sqlite_version_info < _OLDEST_SQLITE:
        raise StoreError(f"SQLite is {sqlite3.sqlite_version}", hint="the store needs 3.38 or newer")


def _open(path: Path) -> sqlite3.Connection:
    # Never open and close a database that is there: that would drop this process's other locks on it (POSIX).
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        if stat.S_IMODE(path.stat().st_mode) & 0o077:
            path.chmod(0o600)
    return connect(path)


def checkpoint(path: Path) -> None:
    """Copy the log into the database, while nobody writes.

    Otherwise a busy store's log is never wholly copied, so never begun anew, and grows; and a commit that begins it
    anew during a checkpoint can corrupt the file before SQLite 3.51.3 (sqlite.org/wal.html, "The WAL-Reset Bug").
    """
    with contextlib.closing(connect(path)) as writer, contextlib.closing(connect(path)) as copier:
        writer.execute("BEGIN IMMEDIATE")
        copier.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        writer.rollback()


@contextlib.contextmanager
def transaction(connection: sqlite3.Connection, *, write: bool) -> Generator[None]:
    """Commit at the end, roll back on an exception."""
    connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        connection.rollback()
        raise


def is_busy(error: Exception) -> bool:
    """Whether SQLite refused because somebody else is writing."""
    # Errors of the Python module itself have no code.
    code: int = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    return code & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def broken(path: Path | None, error: Exception) -> StoreError:
    """What a caller is told of an error of SQLite or the system."""
    return StoreError(f"the store {path or 'in memory'} can't be used: {error}")


@contextlib.contextmanager
def as_store_errors(path: Path | None) -> Generator[None]:
    """Raise errors of SQLite and the system as `StoreError`."""
    try:
        yield
    except (sqlite3.Error, OSError, UnicodeEncodeError) as error:
        raise broken(path, error) from error
