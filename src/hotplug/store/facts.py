"""Small facts by scope and name, many at once, as statements on a connection that is in a transaction."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Mapping
from typing import Any, cast

__all__ = ["claim", "drop", "exchange", "take_all"]

Fact = dict[str, Any]


def take_all(connection: sqlite3.Connection, scope: str) -> dict[str, Fact | None]:
    """Every fact of a scope; None for one that can't be read."""
    rows = connection.execute("SELECT name, body FROM store_memory WHERE scope = ? ORDER BY name", (scope,))
    return {name: _read(body) for name, body in rows}


def claim(connection: sqlite3.Connection, scope: str, values: Mapping[str, str], now: float) -> dict[str, Fact | None]:
    """Put facts, JSON, where there are none; what stands under their names then."""
    connection.executemany(
        "INSERT INTO store_memory (scope, name, body, stored) VALUES (?, ?, ?, ?) ON CONFLICT (scope, name) DO NOTHING",
        [(scope, name, text, now) for name, text in sorted(values.items())],
    )
    return {name: _take(connection, scope, name) for name in values}


def exchange(
    connection: sqlite3.Connection, scope: str, values: Mapping[str, tuple[Mapping[str, Any] | None, str]], now: float
) -> bool:
    """Put facts, JSON, in the place of others, if each of those still stands; whether they did."""
    for name, (old, _) in values.items():
        if _take(connection, scope, name) != old:
            return False
    connection.executemany(
        "INSERT INTO store_memory (scope, name, body, stored) VALUES (?, ?, ?, ?)"
        " ON CONFLICT (scope, name) DO UPDATE SET body = excluded.body, stored = excluded.stored",
        [(scope, name, text, now) for name, (_, text) in sorted(values.items())],
    )
    return True


def drop(connection: sqlite3.Connection, scope: str, names: Collection[str] | None) -> int:
    """Delete facts; how many there were."""
    if names is None:
        return connection.execute("DELETE FROM store_memory WHERE scope = ?", (scope,)).rowcount
    one = "DELETE FROM store_memory WHERE scope = ? AND name = ?"
    return sum(connection.execute(one, (scope, name)).rowcount for name in sorted(set(names)))


def _take(connection: sqlite3.Connection, scope: str, name: str) -> Fact | None:
    row = connection.execute("SELECT body FROM store_memory WHERE scope = ? AND name = ?", (scope, name)).fetchone()
    return _read(row[0]) if row else None


def _read(body: str) -> Fact | None:
    try:
        value: Any = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return cast("Fact", value) if isinstance(value, dict) else None
