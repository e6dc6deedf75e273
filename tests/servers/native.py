"""Native calendars to connect to, and what is in them byte for byte."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from hotplug import connect
from hotplug.catalog import Calendar
from hotplug.store import Store, open_store

KINDS = ["sqlite", "folder"]


def path_of(kind: str, folder: Path) -> str:
    return str(folder / ("calendar.db" if kind == "sqlite" else "calendars"))


def target(kind: str, folder: Path, me: str | None = None) -> str:
    owner = f"?me={me}" if me else ""
    scheme = "sqlite:///" if kind == "sqlite" else "folder:"
    return f"{scheme}{path_of(kind, folder)}{owner}"


def store_of(kind: str, folder: Path) -> Store | None:
    """The store beside a folder; of a file none, it holds its own."""
    return None if kind == "sqlite" else open_store(f"sqlite:///{folder}/records.db")


@asynccontextmanager
async def opened(kind: str, folder: Path, me: str | None = None) -> AsyncGenerator[Calendar]:
    """A connected calendar, of this owner; the folder's records stand in a file beside it."""
    store = store_of(kind, folder)
    if store is None:
        async with connect(Calendar, target(kind, folder, me)) as calendar:
            yield calendar
        return
    async with store, connect(Calendar, target(kind, folder, me), store=store) as calendar:
        yield calendar


def content(kind: str, folder: Path) -> Any:
    """All that the backend keeps: every row, or every byte of every file."""
    if kind == "folder":
        root = folder / "calendars"
        return {
            str(path.relative_to(root)): path.read_bytes()
            for path in sorted(root.rglob("*"))
            if path.is_file() and path.name != "lock"
        }
    connection = sqlite3.connect(folder / "calendar.db")
    try:
        tables = [
            name
            for (name,) in connection.execute(
                "select name from sqlite_master where name like 'calendar_%' order by name"
            )
            if not name.endswith("_by_time")
        ]
        return {table: list(connection.execute(f"select * from {table} order by 1")) for table in tables}
    finally:
        connection.close()


def count(kind: str, folder: Path) -> int:
    """How many events there are."""
    found = content(kind, folder)
    if kind == "sqlite":
        return len(found["calendar_events"])
    return sum(name.endswith(".ics") for name in found)
