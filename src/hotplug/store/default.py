"""Where a server's store is kept when nobody says."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

from hotplug.store.sqlite import SqliteStore
from hotplug.store.urls import open_store

__all__ = ["STORE_VARIABLE", "default_store", "default_store_url"]

STORE_VARIABLE: Final = "HOTPLUG_STORE"
"""The environment variable that names another store, as a URL."""


def default_store_url(name: str) -> str:
    """The URL of a server's store: what `HOTPLUG_STORE` says, else a file of its name in the user's state folder."""
    named = os.environ.get(STORE_VARIABLE)
    if named:
        return named
    import platformdirs

    folder = Path(platformdirs.user_state_dir("hotplug", appauthor=False))
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return f"sqlite:///{folder / (re.sub(r'[^A-Za-z0-9_-]+', '-', name).strip('-') or 'server')}.sqlite3"


def default_store(name: str) -> SqliteStore:
    """Open the store of a server called `name`; see `default_store_url`."""
    return open_store(default_store_url(name))
