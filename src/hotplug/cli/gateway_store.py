"""The gateway's store, as the commands about it open it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hotplug.cli.output import Output

if TYPE_CHECKING:
    from hotplug.store import SqliteStore

__all__ = ["StoreUrl", "open_existing", "open_or_make"]

StoreUrl = Annotated[
    str | None,
    typer.Option(
        "--store",
        help="The gateway's store. [default: `url` of [store] in hotplug.toml, else what HOTPLUG_STORE names, else "
        "gateway.sqlite3 in the user's folder of state]",
        metavar="URL",
        show_default=False,
    ),
]

_SQLITE = "sqlite:///"


def open_or_make(out: Output, url: str | None, config: Path | None = None) -> SqliteStore:
    """The store, made where it isn't there.

    Args:
        url: The one that was named.
        config: The owner's file, which names one otherwise.
    """
    from hotplug.store import open_store

    return open_store(_url(out, url, config))


def open_existing(out: Output, url: str | None, config: Path | None = None) -> SqliteStore | None:
    """The store, or None where there is none yet: looking leaves no trace. Takes what `open_or_make` takes."""
    from hotplug.store import open_store

    named = _url(out, url, config)
    file = named.removeprefix(_SQLITE).partition("?")[0]
    if named.startswith(_SQLITE) and file and not Path(file).exists():
        out.used("the store is not there yet")
        return None
    return open_store(named)


def _url(out: Output, url: str | None, config: Path | None) -> str:
    from hotplug.gateway.trust import load_config
    from hotplug.store import default_store_url

    named = (load_config(config).store_url or default_store_url("gateway")) if url is None else url
    # Another kind's URL may hold a password.
    out.used(f"store: {named if named.startswith(_SQLITE) else named.partition(':')[0]}")
    return named
