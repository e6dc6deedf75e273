"""What is kept of calls: who called what, how it ended, how long it took; never more than it is handed."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Final, Protocol

import anyio

from hotplug.errors import ConfigError
from hotplug.store.protocols import Store
from hotplug.store.sqlite import SqliteStore

__all__ = ["CallQuery", "CallStore", "SqliteCalls", "StoredCall", "calls_of"]

_PURGED_AT_ONCE: Final = 100
_BETWEEN_PURGES: Final = 0.002
_FAILED: Final = "failed"


@dataclass(frozen=True, slots=True)
class StoredCall:
    """One call, or (`dropped`) a note that so many were not kept.

    Args:
        at: When it began, seconds since the epoch.
        kind: The method: `tools/call`. `dropped`: a note.
        outcome: `ok`, a code of ours, a JSON-RPC code, `cancelled`, `lost`.
        member: The member or tool, as the gateway resolved it.
        digest: A keyed digest of the arguments.
        arguments: JSON, masked; only where the owner turned that on.
        result: The same.
        id: The store's number; later ones are higher.
    """

    at: float
    kind: str
    outcome: str
    thread: str | None = None
    server: str | None = None
    member: str | None = None
    projection: str | None = None
    action_id: str | None = None
    trace_id: str | None = None
    duration_ms: float | None = None
    bytes_in: int | None = None
    bytes_out: int | None = None
    digest: str | None = None
    arguments: str | None = None
    result: str | None = None
    dropped: int = 0
    id: int = 0


@dataclass(frozen=True, slots=True)
class CallQuery:
    """Which calls are wanted; None: any.

    Args:
        outcome: An outcome, or `failed`: every one but `ok`.
        since: Begun at this moment or later, seconds since the epoch.
        after: Only those with a higher number than this, from the lowest on.
        limit: How many at most: the last ones, or with `after` the first.
    """

    thread: str | None = None
    server: str | None = None
    outcome: str | None = None
    since: float | None = None
    after: int | None = None
    limit: int = 100


class CallStore(Protocol):
    """Where records of calls are kept. Every method may raise `StoreError`."""

    async def add_calls(self, calls: Sequence[StoredCall]) -> None:
        """Keep some, in one go."""
        ...

    async def calls(self, query: CallQuery) -> tuple[StoredCall, ...]:
        """Those that are wanted, the oldest first."""
        ...

    async def purge_calls(self, before: float) -> int:
        """Drop those that began before a moment; how many that were."""
        ...


def calls_of(store: Store) -> CallStore:
    """The records of calls that a store keeps.

    Raises:
        ConfigError: This kind of store keeps none.
    """
    if isinstance(store, SqliteStore):
        return SqliteCalls(store)
    raise ConfigError(f"a {type(store).__name__} keeps no records of calls", hint="use a store on SQLite")


_COLUMNS: Final = tuple(one.name for one in fields(StoredCall))
_row: Final = attrgetter(*_COLUMNS[:-1])
_SELECT: Final = f"SELECT {', '.join(_COLUMNS)} FROM store_call"  # noqa: S608 - our own words
_INSERT: Final = f"INSERT INTO store_call ({', '.join(_COLUMNS[:-1])}) VALUES ({', '.join('?' for _ in _COLUMNS[:-1])})"  # noqa: S608


class SqliteCalls:
    """A `CallStore` in a store's SQLite file."""

    def __init__(self, store: SqliteStore) -> None:
        self._store = store

    async def add_calls(self, calls: Sequence[StoredCall]) -> None:
        """See `CallStore.add_calls`."""
        rows = [_row(one) for one in calls]

        def work(connection: sqlite3.Connection) -> None:
            connection.executemany(_INSERT, rows)

        await self._store.run(work, write=True)

    async def calls(self, query: CallQuery) -> tuple[StoredCall, ...]:
        """See `CallStore.calls`."""
        terms: list[str] = []
        values: list[object] = []
        for term, value in (
            ("thread = ?", query.thread),
            ("server = ?", query.server),
            ("at >= ?", query.since),
            ("id > ?", query.after),
        ):
            if value is not None:
                terms.append(term)
                values.append(value)
        if query.outcome == _FAILED:
            terms.append("outcome NOT IN ('ok', 'dropped')")
        elif query.outcome is not None:
            terms.append("outcome = ?")
            values.append(query.outcome)
        where = f" WHERE {' AND '.join(terms)}" if terms else ""
        order = "id" if query.after is not None else "id DESC"
        statement = f"{_SELECT}{where} ORDER BY {order} LIMIT ?"
        rows = await self._store.run(
            lambda c: c.execute(statement, (*values, query.limit)).fetchall(),
            write=False,
        )
        found = [StoredCall(*row) for row in rows]
        return tuple(sorted(found, key=lambda one: one.id))

    async def purge_calls(self, before: float) -> int:
        """See `CallStore.purge_calls`."""
        total = 0
        while True:
            dropped = await self._store.run(
                lambda c: (
                    c.execute(
                        "DELETE FROM store_call WHERE id IN (SELECT id FROM store_call WHERE at < ? LIMIT ?)",
                        (before, _PURGED_AT_ONCE),
                    ).rowcount
                ),
                write=True,
            )
            total += dropped
            if dropped < _PURGED_AT_ONCE:
                return total
            # Calls have the loop in between.
            await anyio.sleep(_BETWEEN_PURGES)
