"""The tables of the SQLite store, version by version.

A migration that was released is never edited; a change is a new one at the end. `PRAGMA user_version` counts those that
a database has had. Tables carry the prefix `store_`, because a backend may keep its own in the same file.
"""

from __future__ import annotations

import secrets
import sqlite3
from typing import Final

from hotplug.errors import StoreError

__all__ = ["APPLICATION_ID", "MIGRATIONS", "check", "migrate", "sealing_key"]

APPLICATION_ID: Final = 0x48504C47
"""`HPLG`: `PRAGMA application_id` of our databases, so that another program's is refused."""

MIGRATIONS: Final[tuple[tuple[str, ...], ...]] = (
    (
        """
        CREATE TABLE store_record (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            identity BLOB NOT NULL UNIQUE,
            principal BLOB NOT NULL,
            operation TEXT NOT NULL,
            digest TEXT NOT NULL,
            owner TEXT NOT NULL,
            attempt INTEGER NOT NULL,
            atomic INTEGER NOT NULL,
            touched REAL NOT NULL,
            is_error INTEGER,
            outcome TEXT
        ) STRICT
        """,
        "CREATE INDEX store_record_touched ON store_record (touched)",
        """
        CREATE TABLE store_receipt (
            action_id TEXT PRIMARY KEY,
            principal BLOB NOT NULL,
            operation TEXT NOT NULL,
            at TEXT NOT NULL,
            stored REAL NOT NULL,
            details TEXT NOT NULL
        ) STRICT
        """,
        "CREATE INDEX store_receipt_stored ON store_receipt (stored)",
        """
        CREATE TABLE store_stream (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            name TEXT NOT NULL UNIQUE,
            tag TEXT NOT NULL UNIQUE,
            last INTEGER NOT NULL DEFAULT 0,
            purged INTEGER NOT NULL DEFAULT 0
        ) STRICT
        """,
        """
        CREATE TABLE store_event (
            stream INTEGER NOT NULL REFERENCES store_stream (id),
            seq INTEGER NOT NULL,
            event_id BLOB NOT NULL,
            type TEXT NOT NULL,
            stored REAL NOT NULL,
            body TEXT NOT NULL,
            PRIMARY KEY (stream, seq),
            UNIQUE (stream, event_id)
        ) STRICT, WITHOUT ROWID
        """,
        "CREATE TABLE store_secret (name TEXT PRIMARY KEY, value BLOB NOT NULL) STRICT",
    ),
    (
        """
        CREATE TABLE store_memory (
            scope TEXT NOT NULL,
            name TEXT NOT NULL,
            body TEXT NOT NULL,
            stored REAL NOT NULL,
            PRIMARY KEY (scope, name)
        ) STRICT, WITHOUT ROWID
        """,
    ),
    (
        "ALTER TABLE store_event ADD COLUMN happening BLOB",
        """
        CREATE UNIQUE INDEX store_event_happening ON store_event (stream, happening, type)
            WHERE happening IS NOT NULL
        """,
    ),
    (
        """
        CREATE TABLE store_thread (
            id TEXT PRIMARY KEY,
            parent TEXT,
            depth INTEGER NOT NULL,
            delegated INTEGER NOT NULL,
            project TEXT,
            title TEXT,
            opener TEXT,
            token BLOB UNIQUE,
            opened REAL NOT NULL,
            closed REAL,
            change INTEGER NOT NULL
        ) STRICT
        """,
        "CREATE INDEX store_thread_change ON store_thread (change)",
        "CREATE INDEX store_thread_parent ON store_thread (parent)",
        "CREATE INDEX store_thread_closed ON store_thread (closed)",
        "CREATE TABLE store_counter (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT",
        "INSERT INTO store_counter (name, value) VALUES ('thread', 0), ('thread-open', 0), ('thread-purged', 0)",
        """
        CREATE TABLE store_call (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            at REAL NOT NULL,
            kind TEXT NOT NULL,
            outcome TEXT NOT NULL,
            thread TEXT,
            server TEXT,
            member TEXT,
            projection TEXT,
            action_id TEXT,
            trace_id TEXT,
            duration_ms REAL,
            bytes_in INTEGER,
            bytes_out INTEGER,
            digest TEXT,
            arguments TEXT,
            result TEXT,
            dropped INTEGER NOT NULL
        ) STRICT
        """,
        "CREATE INDEX store_call_at ON store_call (at)",
        "CREATE INDEX store_call_thread ON store_call (thread)",
    ),
)
"""Statements by version. An outcome is NULL while its record is pending; an empty `owner` was let go.

A thread's `token` is the SHA-256 of its token, NULL once it is closed. `store_counter` has the number of
the last change of a thread (`thread`), how many are open, and the last change whose row is gone.
"""


def check(connection: sqlite3.Connection, name: str) -> None:
    """Look whether a database can be used, and change nothing.

    Raises:
        StoreError: It was made by a newer build, or by another program.
    """
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if application not in (0, APPLICATION_ID) or (application == 0 and tables):
        raise StoreError(f"{name} is a database of another program", hint="name a file that isn't there yet")
    if version > len(MIGRATIONS):
        raise StoreError(
            f"{name} has version {version} of the store, and this build knows versions up to {len(MIGRATIONS)}",
            hint="use the build that made it, or a newer one; nothing was changed",
        )


def migrate(connection: sqlite3.Connection) -> None:
    """Bring a database that passed `check` to the newest version, each step in a transaction of its own."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    for number, statements in enumerate(MIGRATIONS[version:], start=version + 1):
        connection.execute("BEGIN IMMEDIATE")
        try:
            for statement in statements:
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {number}")
        except BaseException:
            connection.execute("ROLLBACK")
            raise
        connection.execute("COMMIT")


def sealing_key(connection: sqlite3.Connection) -> bytes:
    """The database's sealing key, made now if there is none."""
    connection.execute(
        "INSERT INTO store_secret (name, value) VALUES ('sealing', ?) ON CONFLICT DO NOTHING",
        (secrets.token_bytes(32),),
    )
    (key,) = connection.execute("SELECT value FROM store_secret WHERE name = 'sealing'").fetchone()
    return key
