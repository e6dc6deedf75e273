"""Calendars of our own: one engine, over a SQLite file or a folder of `.ics` files."""

from __future__ import annotations

from hotplug.servers.calendar.engine import Also, CalendarEngine, Effect
from hotplug.servers.calendar.folder import FolderStorage
from hotplug.servers.calendar.sqlite import SqliteStorage
from hotplug.servers.calendar.storage import CalendarEntry, Problem, Storage, Tombstone

__all__ = [
    "Also",
    "CalendarEngine",
    "CalendarEntry",
    "Effect",
    "FolderStorage",
    "Problem",
    "SqliteStorage",
    "Storage",
    "Tombstone",
]
