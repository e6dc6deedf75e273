"""Dropping what is past its retention, in transactions so small that nobody waits long for one."""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from hotplug.store.protocols import Retention

__all__ = ["Cutoffs", "purge"]

_BATCH: Final = 200


class Cutoffs(NamedTuple):
    """What was stored before these moments goes, in seconds since the epoch."""

    records: float
    receipts: float
    events: float

    @classmethod
    def at(cls, now: float, retention: Retention) -> Cutoffs:
        """The cutoffs at a moment."""
        return cls(
            now - retention.records.total_seconds(),
            now - retention.receipts.total_seconds(),
            now - retention.events.total_seconds(),
        )


def purge(connection: sqlite3.Connection, cutoffs: Cutoffs, is_alive: Callable[[str], bool]) -> Iterator[int]:
    """Drop batch after batch, each committed before its size is yielded.

    A pending record whose owner lives stays, however old it is: its work is still going on.
    """
    yield from _until_empty(
        connection,
        "DELETE FROM store_record WHERE id IN "
        "(SELECT id FROM store_record WHERE touched < ? AND outcome IS NOT NULL LIMIT ?)",
        (cutoffs.records, _BATCH),
    )
    owners = connection.execute(
        "SELECT DISTINCT owner FROM store_record WHERE touched < ? AND outcome IS NULL", (cutoffs.records,)
    ).fetchall()
    for (owner,) in owners:
        if not (owner and is_alive(owner)):
            yield from _until_empty(
                connection,
                "DELETE FROM store_record WHERE id IN "
                "(SELECT id FROM store_record WHERE touched < ? AND outcome IS NULL AND owner = ? LIMIT ?)",
                (cutoffs.records, owner, _BATCH),
            )
    yield from _until_empty(
        connection,
        "DELETE FROM store_receipt WHERE action_id IN (SELECT action_id FROM store_receipt WHERE stored < ? LIMIT ?)",
        (cutoffs.receipts, _BATCH),
    )
    streams = connection.execute(
        "SELECT s.id FROM store_stream s JOIN store_event e ON e.stream = s.id AND e.seq = s.purged + 1 "
        "WHERE e.stored < ?",
        (cutoffs.events,),
    ).fetchall()
    for (stream,) in streams:
        while dropped := _events(connection, stream, cutoffs.events):
            yield dropped


def _until_empty(connection: sqlite3.Connection, statement: str, values: tuple[object, ...]) -> Iterator[int]:
    while dropped := connection.execute(statement, values).rowcount:
        yield dropped


def _events(connection: sqlite3.Connection, stream: int, cutoff: float) -> int:
    # Only from the front, even where a clock that was set back makes a later event look older: no holes.
    connection.execute("BEGIN IMMEDIATE")
    try:
        rows = connection.execute(
            "SELECT seq, stored FROM store_event WHERE stream = ? ORDER BY seq LIMIT ?", (stream, _BATCH)
        ).fetchall()
        old = [seq for seq, _ in itertools.takewhile(lambda row: row[1] < cutoff, rows)]
        if old:
            connection.execute("DELETE FROM store_event WHERE stream = ? AND seq <= ?", (stream, old[-1]))
            connection.execute("UPDATE store_stream SET purged = ? WHERE id = ?", (old[-1], stream))
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")
    return len(old)
