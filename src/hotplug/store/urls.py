"""From a store's URL to the store."""

from __future__ import annotations

from collections.abc import Callable
from time import time
from typing import Final, get_args
from urllib.parse import parse_qsl

from hotplug.errors import ConfigError
from hotplug.store.protocols import Retention
from hotplug.store.sqlite import Durability, SqliteStore

__all__ = ["memory", "open_store"]

_SQLITE: Final = "sqlite:///"
_SUPPORTED: Final = "supported are sqlite:///FILE, sqlite:////ABSOLUTE/FILE and sqlite:///:memory:"


def open_store(url: str, *, retention: Retention | None = None, clock: Callable[[], float] = time) -> SqliteStore:
    """Open the store that a URL names; close it with `aclose`, or use it as an async context manager.

    `sqlite:///FILE` is relative to the working folder, `sqlite:////FILE` absolute (as in SQLAlchemy). The path is taken
    as it stands, without percent-decoding. `?durability=full` after it waits for the disk at each commit; the default
    is `process`.

    Args:
        url: Which store.
        retention: How long things are kept; by default records 24 hours, receipts and events 7 days.
        clock: Seconds since the epoch; only retention goes by it.

    Raises:
        ConfigError: The URL is of a kind that isn't supported, names no file, or has an unknown option.
        StoreError: The store can't be opened, or is of a newer build.
    """
    scheme, found, _ = url.partition(":")
    if not url.startswith(_SQLITE):
        # Only the scheme: the rest of a foreign URL may hold a password.
        raise ConfigError(f"a store of kind {scheme!r} isn't supported" if found else "that is no URL", hint=_SUPPORTED)
    path, _, query = url.removeprefix(_SQLITE).partition("?")
    if not path:
        raise ConfigError(f"the store's URL {url!r} names no file", hint=_SUPPORTED)
    durability: Durability = "process"
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name != "durability":
            raise ConfigError(f"unknown option {name!r} in the store's URL", hint="`durability` is the only one")
        if value == "full" or value == "process":
            durability = value
        else:
            raise ConfigError(f"durability is {value!r}", hint=f"one of {', '.join(get_args(Durability))}")
    return SqliteStore.open(
        None if path == ":memory:" else path, durability=durability, retention=retention, clock=clock
    )


def memory(*, retention: Retention | None = None, clock: Callable[[], float] = time) -> SqliteStore:
    """A store that lives as long as it is open, for servers in this process and for tests."""
    return SqliteStore.open(None, retention=retention, clock=clock)
