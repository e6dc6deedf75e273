"""Native servers of the catalog, by the schemes of targets."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from hotplug.profile import Profile
from hotplug.store import Store, default_store, memory
from hotplug.store.sqlite import SqliteStore

__all__ = ["native"]


def native(
    scheme: Literal["sqlite", "folder"], path: str, *, me: str | None = None, store: Store | None = None
) -> tuple[Profile, Store | None, str]:
    """The native server of a target such as `sqlite:///FILE` or `folder:DIR`, a store for it, its identity for refs.

    Args:
        scheme: `sqlite` or `folder`.
        path: The file or folder.
        me: The mail address of the calendar's owner (`?me=…` in a target). Invitations can be answered only with one,
            and in a folder people can be invited only with one. Refs and stored events are the same without it.
        store: One that is there already; none is opened then.

    Raises:
        ConfigError: `me` is no address.
        StoreError: The file or folder can't be used; a file's own folder has to be there already.
    """
    from hotplug.servers.calendar.answers import read_address
    from hotplug.servers.calendar.server import (
        FolderCalendar,
        OwnedFolderCalendar,
        OwnedSqliteCalendar,
        SqliteCalendar,
    )
    from hotplug.servers.calendar.sqlite import check_folder

    if me is not None:
        read_address(me)  # before anything is made
    if scheme == "folder":
        kept = None if store else default_store("folders")
        return (
            (FolderCalendar(path) if me is None else OwnedFolderCalendar(path, me)),
            kept,
            f"folder:{Path(path).resolve()}",
        )
    if path == ":memory:":
        return (
            (SqliteCalendar(path) if me is None else OwnedSqliteCalendar(path, me)),
            None if store else memory(),
            "sqlite::memory:",
        )
    check_folder(path)
    # The store first: it refuses a file of another program before anything is made in it.
    kept = None if store else SqliteStore.open(path)
    return (
        (SqliteCalendar(path) if me is None else OwnedSqliteCalendar(path, me)),
        kept,
        f"sqlite:{Path(path).resolve()}",
    )
