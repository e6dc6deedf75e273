"""The versions of a file that were seen, in a folder beside it: what `history` lists and a broken file falls back to.

A version's name is the beginning of the SHA-256 of its bytes, so one that rotted on the disk, or was written into, is
not taken for what it was.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections.abc import Callable, Generator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from hotplug.store.whole import read_content, staged, sync_folder

__all__ = ["KEPT", "Entry", "Versions", "version_of"]

KEPT: Final = 100
"""How many versions are kept; the oldest go first."""

_NAME: Final = re.compile(r"(\d{8})-([0-9a-f]{16})")


def version_of(data: bytes | None) -> str:
    """The version of a content; `none` where there is no file."""
    return "none" if data is None else hashlib.sha256(data).hexdigest()[:16]


@dataclass(frozen=True)
class Entry:
    """One version that is kept."""

    number: int
    version: str
    kept: datetime
    """When it was kept: as it was saved, or first seen."""
    path: Path


class Versions:
    """The kept versions of one file.

    Args:
        target: The file, links followed.
    """

    def __init__(self, target: Path) -> None:
        self.folder = target.with_name(target.name + "-versions")
        self.lock = self.folder / "lock"

    def entries(self) -> list[Entry]:
        """Oldest first; empty where nothing was kept yet.

        Raises:
            OSError: The folder can't be read.
        """
        found: list[Entry] = []
        try:
            with os.scandir(self.folder) as names:
                for one in names:
                    if name := _NAME.fullmatch(one.name):
                        kept = datetime.fromtimestamp(one.stat().st_mtime, UTC)
                        found.append(Entry(int(name[1]), name[2], kept, Path(one.path)))
        except FileNotFoundError:
            return []
        return sorted(found, key=lambda entry: entry.number)

    def data(self, entry: Entry) -> bytes | None:
        """The content of a version, or None where it is gone or isn't what it was.

        Raises:
            OSError: It can't be read.
        """
        content = read_content(entry.path)
        if content is None or version_of(content.data) != entry.version:
            return None
        return content.data

    def make(self) -> None:
        """Make the folder, for the owner alone."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    @contextlib.contextmanager
    def keeping(self, data: bytes) -> Generator[Callable[[], None]]:
        """Have a content ready on the disk; call what is given to keep it as the newest version. Under the lock.

        Raises:
            OSError: It can't be written.
        """
        entries = self.entries()
        version = version_of(data)
        if entries and entries[-1].version == version and self.data(entries[-1]) is not None:
            yield lambda: None
            return
        path = self.folder / f"{entries[-1].number + 1 if entries else 1:08d}-{version}"
        with staged(path, data, like=None) as temporary:

            def keep() -> None:
                temporary.replace(path)
                sync_folder(self.folder)
                for old in entries[: max(0, len(entries) + 1 - KEPT)]:
                    old.path.unlink(missing_ok=True)

            yield keep

    def keep(self, data: bytes) -> None:
        """Keep a content as the newest version, unless it is that already; call it under the lock.

        Raises:
            OSError: It can't be written.
        """
        with self.keeping(data) as keep:
            keep()
