"""Walking a folder so that what can't be read is said: every file with what tells its content."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Final

__all__ = ["FoundFile", "Tree", "fitting", "read_file", "walk"]

_CHUNK: Final = 1 << 20
_SETTLED_NS: Final = 2_000_000_000
"""Older changes than this show in a file's times for certain."""


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file below the folder, by its path with `/`."""

    path: str
    stat: os.stat_result


@dataclass(frozen=True, slots=True)
class Tree:
    """What one walk found, and which folders it couldn't read, with the reason."""

    files: tuple[FoundFile, ...]
    unread: tuple[tuple[str, str], ...]
    is_cut: bool

    def hides(self, path: str) -> bool:
        """Whether a file of this path could be there unseen."""
        return self.is_cut or any(path.startswith(f"{folder}/") for folder, _ in self.unread)


def walk(root: Path, fits: Callable[[str], bool], limit: int) -> Tree:
    """Every file that fits, sorted; folders behind symbolic links are not entered.

    Raises:
        OSError: The folder itself can't be read.
    """
    found: list[FoundFile] = []
    unread: list[tuple[str, str]] = []
    waiting = [""]
    is_cut = False
    while waiting and not is_cut:
        folder = waiting.pop()
        try:
            with os.scandir(root / folder) as entries:
                listed = sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            if not folder:
                raise
            if not isinstance(error, FileNotFoundError):  # it went meanwhile, with all that it held
                unread.append((folder, error.strerror or str(error)))
            continue
        for entry in listed:
            path = f"{folder}/{entry.name}" if folder else entry.name
            try:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(path)
                    continue
                if not fits(path):
                    continue
                seen = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue
            except OSError as error:
                unread.append((path, error.strerror or str(error)))
                continue
            if len(found) == limit:
                is_cut = True
                break
            found.append(FoundFile(path, seen))
    return Tree(tuple(sorted(found, key=lambda file: file.path)), tuple(unread), is_cut)


def read_file(root: Path, file: FoundFile) -> tuple[str, bool]:
    """The digest of a file's content, and whether its times would show every later change.

    Of what is no regular file it tells the kind, and where a link leads; nothing is opened that could block.

    Raises:
        OSError: It can't be read, or is gone.
    """
    path = root / file.path
    if stat.S_ISLNK(file.stat.st_mode):
        return f"link:{path.readlink()}", False
    if not stat.S_ISREG(file.stat.st_mode):
        return f"kind:{stat.S_IFMT(file.stat.st_mode):o}", False
    digest = sha256()
    number = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0))
    with os.fdopen(number, "rb") as opened:
        while chunk := opened.read(_CHUNK):
            digest.update(chunk)
    return f"sha256:{digest.hexdigest()}", time.time_ns() - file.stat.st_ctime_ns > _SETTLED_NS


@cache
def fitting(pattern: str) -> Callable[[str], bool]:
    """Whether a path fits a pattern: `*` and `?` within one name, `[ab]` for one of them, `**` for any folders."""
    from fnmatch import fnmatchcase

    wanted = [part for part in pattern.split("/") if part not in ("", ".")]

    def fits(path: str) -> bool:
        names = path.split("/")
        # Which positions of the pattern are reached, name after name: no backtracking.
        reached = set(_past_stars(wanted, 0))
        for name in names:
            following: set[int] = set()
            for at in reached:
                if at < len(wanted) and wanted[at] == "**":
                    following.update(_past_stars(wanted, at))
                elif at < len(wanted) and fnmatchcase(name, wanted[at]):
                    following.update(_past_stars(wanted, at + 1))
            reached = following
        return len(wanted) in reached

    return fits


def _past_stars(wanted: list[str], at: int) -> Iterator[int]:
    yield at
    while at < len(wanted) and wanted[at] == "**":
        at += 1
        yield at
