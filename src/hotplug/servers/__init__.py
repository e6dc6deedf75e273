"""Native servers of the catalog, by the schemes of targets."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from hotplug.profile import Profile
from hotplug.store import Store, default_store, memory
from hotplug.store.sqlite import SqliteStore

__all__ = ["native"]


def native(
    scheme: Literal["sqlite", "folder"], path: str, *, store: Store | None = None
) -> tuple[Profile, Store | None, str]:
    """The native server of a target such as `sqlite:///FILE` or `folder:DIR`, a store for it, its identity for refs.

    Args:
        store: One that is there already; none is opened then.

    Raises:
        StoreError: The file or folder can't be used; a file's own folder has to be there already.
    """
    from hotplug.servers.calendar.server import FolderCalendar, SqliteCalendar
    from hotplug.servers.calendar.sqlite import check_folder

    if scheme == "folder":
        kept = None if store else default_store("folders")
        return FolderCalendar(path), kept, f"folder:{Path(path).resolve()}"
    if path == ":memory:":
        return SqliteCalendar(path), None if store else memory(), "sqlite::memory:"
    check_folder(path)
    # The store first: it refuses a file of another program before anything is made in it.
    kept = None if store else SqliteStore.open(path)
    return SqliteCalendar(path), kept, f"sqlite:{Path(path).resolve()}"
