"""Native servers of the catalog, by the schemes of targets."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from hotplug.profile import Profile
from hotplug.store import Store, default_store, memory, open_store

__all__ = ["native"]


def native(scheme: Literal["sqlite", "folder"], path: str) -> tuple[Profile, Store, str]:
    """The native server of a target such as `sqlite:///FILE` or `folder:DIR`, its store, and its identity for refs.

    Raises:
        StoreError: The file or folder can't be used.
    """
    from hotplug.servers.calendar.server import FolderCalendar, SqliteCalendar

    if scheme == "sqlite":
        if path == ":memory:":
            return SqliteCalendar(path), memory(), "sqlite::memory:"
        # The store first: it refuses a file of another program before anything is made in it.
        store = open_store(f"sqlite:///{path}")
        return SqliteCalendar(path), store, f"sqlite:{Path(path).resolve()}"
    return FolderCalendar(path), default_store("folders"), f"folder:{Path(path).resolve()}"
