"""Durable events as statements on a connection that is in a transaction.

A stream numbers its events from 1 without gaps and remembers up to where it was purged, so a gap shows in arithmetic. A
cursor is `<tag>-<number>`: the tag is random, one per stream and database, so a cursor of another stream is told from
one of a database that is no more. Both are of fixed width: cursors of a stream sort as text as their events do.
"""

from __future__ import annotations

import json
import re
import secrets
import sqlite3
from collections.abc import Collection, Mapping
from typing import Any, Final, NamedTuple

from hotplug.errors import InvalidArgument, StoreError
from hotplug.store.protocols import EventPage

__all__ = ["Names", "Place", "append", "cursor_at", "ensure", "locate", "names", "page", "telling_of"]

_CURSOR: Final = re.compile(r"([0-9a-f]{16})-([0-9a-f]{12})")


class Place(NamedTuple):
    """Where in a stream a cursor stands, and how far the stream goes."""

    stream: int
    tag: str
    seq: int
    last: int
    missed: bool


def cursor_at(tag: str, seq: int) -> str:
    """The cursor after the event of a number."""
    return f"{tag}-{seq:012x}"


class Names(NamedTuple):
    """What an event goes by: its id, its type, and what it tells of, where it says that."""

    id: bytes
    type: str
    happening: bytes | None


def names(event: Mapping[str, Any]) -> Names:
    """An event's names.

    Raises:
        StoreError: Id or type is missing, or one of the three is not a string.
    """
    name, kind, happening = event.get("id"), event.get("type"), event.get("happening")
    if not isinstance(name, str) or not isinstance(kind, str):
        raise StoreError(f"an event needs `id` and `type`, both strings; this one has {name!r} and {kind!r}")
    if happening is not None and not isinstance(happening, str):
        raise StoreError(f"an event's `happening` is a string, if it has one; this one has {happening!r}")
    return Names(_bytes(name), kind, None if happening is None else _bytes(happening))


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def telling_of(connection: sqlite3.Connection, stream: str, happening: str) -> tuple[dict[str, Any], ...]:
    """The events of a stream that tell of a happening, oldest first."""
    rows = connection.execute(
        "SELECT e.body FROM store_event e JOIN store_stream s ON s.id = e.stream "
        "WHERE s.name = ? AND e.happening = ? ORDER BY e.seq",
        (stream, _bytes(happening)),
    )
    return tuple(json.loads(body) for (body,) in rows)


def ensure(connection: sqlite3.Connection, stream: str) -> None:
    """Make a stream that isn't there yet."""
    connection.execute(
        "INSERT INTO store_stream (name, tag) VALUES (?, ?) ON CONFLICT (name) DO NOTHING",
        (stream, secrets.token_hex(8)),
    )


def append(connection: sqlite3.Connection, stream: str, named: Names, body: str, now: float) -> tuple[str, bool]:
    """Append an event, JSON, unless it or its happening is there; the cursor after it, and whether it is new."""
    place = locate(connection, stream, None)
    if place is None:
        ensure(connection, stream)
        place = locate(connection, stream, None)
        assert place is not None
    kept = connection.execute(
        "SELECT seq FROM store_event WHERE stream = ? AND event_id = ?", (place.stream, named.id)
    ).fetchone()
    if kept is None and named.happening is not None:
        kept = connection.execute(
            "SELECT seq FROM store_event WHERE stream = ? AND happening = ? AND type = ?",
            (place.stream, named.happening, named.type),
        ).fetchone()
    if kept is not None:
        return cursor_at(place.tag, kept[0]), False
    seq = place.last + 1
    connection.execute(
        "INSERT INTO store_event (stream, seq, event_id, type, stored, body, happening) VALUES (?, ?, ?, ?, ?, ?, ?)",
        (place.stream, seq, named.id, named.type, now, body, named.happening),
    )
    connection.execute("UPDATE store_stream SET last = ? WHERE id = ?", (seq, place.stream))
    return cursor_at(place.tag, seq), True


def locate(connection: sqlite3.Connection, stream: str, cursor: str | None) -> Place | None:
    """Find where a cursor stands; None if there is no such stream.

    Raises:
        InvalidArgument: The cursor is of another stream.
    """
    row = connection.execute("SELECT id, tag, last, purged FROM store_stream WHERE name = ?", (stream,)).fetchone()
    if row is None:
        return None
    number, tag, last, purged = row
    if cursor is None:
        return Place(number, tag, purged, last, missed=False)
    found = _CURSOR.fullmatch(cursor)
    if found is not None and found[1] == tag:
        seq = int(found[2], 16)
        # Beyond the end: the database was put back to an earlier state, and wrote other events since.
        if purged <= seq <= last:
            return Place(number, tag, seq, last, missed=False)
    elif found is not None:
        other = connection.execute("SELECT name FROM store_stream WHERE tag = ?", (found[1],)).fetchone()
        if other is not None:
            raise InvalidArgument("the cursor is of another stream of events", hint="use the one this stream gave")
    return Place(number, tag, purged, last, missed=True)


def page(connection: sqlite3.Connection, place: Place, limit: int, types: Collection[str] | None) -> EventPage:
    """The events after a place; the connection is in the transaction that located it."""
    if types is None:
        rows = connection.execute(
            "SELECT seq, body FROM store_event WHERE stream = ? AND seq > ? ORDER BY seq LIMIT ?",
            (place.stream, place.seq, limit),
        ).fetchall()
    else:
        rows = connection.execute(
            "SELECT seq, body FROM store_event WHERE stream = ? AND seq > ? "
            "AND type IN (SELECT value FROM json_each(?)) ORDER BY seq LIMIT ?",
            (place.stream, place.seq, json.dumps(sorted(types)), limit),
        ).fetchall()
    reached: int = rows[-1][0] if len(rows) == limit else place.last
    return EventPage(
        tuple(json.loads(body) for _, body in rows),
        cursor_at(place.tag, reached),
        place.missed,
        tuple(cursor_at(place.tag, seq) for seq, _ in rows),
    )
