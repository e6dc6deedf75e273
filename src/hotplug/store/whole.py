"""A file that is only ever replaced as a whole, and a lock for those who replace it.

A reader sees the old file or the new one, never a part: the new content is written beside it, forced to the disk, and
renamed over it. The lock is a file of its own, since a rename puts another file in the place of the one that was
locked; the kernel lets go of it when its holder ends, however it ends.
"""

from __future__ import annotations

import contextlib
import errno
import os
import random
import re
import secrets
import stat
import sys
import time
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hotplug.errors import StoreError

__all__ = [
    "Content",
    "as_file_errors",
    "locked",
    "read_content",
    "remove_leftovers",
    "staged",
    "sync_folder",
    "target_of",
]

_STAGED: Final = re.compile(r"\.(?P<name>.+)\.[0-9a-f]{16}\.saving", re.DOTALL)
_TORN: Final = 5

if sys.platform == "win32":
    import msvcrt

    def _try_lock(fd: int) -> bool:
        try:
            msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def _unlock(fd: int) -> None:
        msvcrt.locking(fd, msvcrt.LK_UNLCK, 1)
else:
    import fcntl

    def _try_lock(fd: int) -> bool:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _unlock(fd: int) -> None:
        fcntl.flock(fd, fcntl.LOCK_UN)


@dataclass(frozen=True)
class Content:
    """What stood in a file at one moment."""

    data: bytes
    status: os.stat_result

    @property
    def identity(self) -> tuple[int, ...]:
        """Differs once the file was written or replaced, as far as the system's clock tells the moments apart."""
        one = self.status
        return (one.st_dev, one.st_ino, one.st_size, one.st_mtime_ns, one.st_ctime_ns)


class FileTrouble(OSError):
    """Something about a file that the system wouldn't complain of, and what to do about it."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


_HINTS: Final = {
    errno.ENOSPC: "make room on the disk, and try again",
    errno.EDQUOT: "make room on the disk, and try again",
    errno.EROFS: "the disk can only be read: name a file elsewhere",
    errno.EACCES: "let this user write the file's folder too: the file is replaced, not written into",
    errno.EPERM: "let this user write the file's folder too: the file is replaced, not written into",
    errno.ELOOP: "the link leads to itself: let it lead to a file",
    errno.EISDIR: "that is a folder: name a file in it",
}


@contextlib.contextmanager
def as_file_errors(path: Path, doing: str) -> Generator[None]:
    """Raise errors of the system as `StoreError`: `settings.json can't be saved: No space left on device`."""
    try:
        yield
    except OSError as error:
        hint = error.hint if isinstance(error, FileTrouble) else _HINTS.get(error.errno or 0)
        raise StoreError(f"{path} can't be {doing}: {error.strerror or error}", hint=hint) from error


def target_of(path: Path) -> Path:
    """The file that a path means, links followed; it need not exist."""
    return Path(os.path.realpath(path))


def read_content(path: Path) -> Content | None:
    """What stands in a file now, or None where there is none.

    Raises:
        OSError: It can't be read, or is no file.
    """
    flags = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)
    for _ in range(_TORN):
        try:
            fd = os.open(path, flags)
        except FileNotFoundError:
            return None
        with os.fdopen(fd, "rb") as file:
            before = os.fstat(fd)
            if not stat.S_ISREG(before.st_mode):
                raise FileTrouble("it is no ordinary file", "name a file, or a link to one")
            found = Content(file.read(), os.fstat(fd))
        if Content(b"", before).identity == found.identity and len(found.data) == found.status.st_size:
            return found
    raise FileTrouble("somebody keeps writing it", "try again when that is done")


@contextlib.contextmanager
def locked(path: Path, *, patience: float) -> Generator[bool]:
    """Hold the lock of a file that is made for it; gives whether it could be had.

    Args:
        patience: Seconds to wait for whoever holds it.

    Raises:
        OSError: The lock's file can't be made.
    """
    fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        held = _wait_for(fd, patience)
        try:
            yield held
        finally:
            if held:
                # Closing alone would leave it to a copy that another thread's fork may have taken.
                _unlock(fd)
    finally:
        os.close(fd)


def _wait_for(fd: int, patience: float) -> bool:
    end = time.monotonic() + patience
    pause = 0.001
    while not _try_lock(fd):
        left = end - time.monotonic()
        if left <= 0:
            return False
        # At random, or those who began to wait together would ask together for ever.
        time.sleep(min(left, pause * random.random()))  # noqa: S311
        pause = min(pause * 2, 0.02)
    return True


@contextlib.contextmanager
def staged(path: Path, data: bytes, *, like: os.stat_result | None) -> Generator[Path]:
    """A temporary file beside `path` that holds `data` on the disk; removed at the end, unless it was renamed.

    Args:
        like: Whose owner and mode it gets; None: the caller's own, for nobody else.

    Raises:
        OSError: It can't be written, or can't be given that owner.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.saving")
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(data)
            file.flush()
            if like is not None:
                _give(fd, path, like)
            os.fsync(fd)
        yield temporary
    finally:
        temporary.unlink(missing_ok=True)


def _give(fd: int, path: Path, like: os.stat_result) -> None:
    if sys.platform == "win32":
        return
    if (like.st_uid, like.st_gid) != (os.fstat(fd).st_uid, os.fstat(fd).st_gid):
        try:
            os.fchown(fd, like.st_uid, like.st_gid)
        except PermissionError:
            who = f"user {like.st_uid} and group {like.st_gid}"
            fix = "save it as that user, or give the file to this one"
            raise FileTrouble(f"it belongs to {who}, and this user can't keep it so", fix) from None
    if sys.platform == "linux":
        # Without its access list, what the mode says of the group is the list's mask: more than anybody was given.
        for name in os.listxattr(path):
            with contextlib.suppress(OSError):
                os.setxattr(fd, name, os.getxattr(path, name))
    os.fchmod(fd, stat.S_IMODE(like.st_mode))


def sync_folder(folder: Path) -> None:
    """Force a folder to the disk: after this, what was renamed in it stays so after a power cut too.

    Raises:
        OSError: The disk says no.
    """
    if sys.platform != "win32":
        fd = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def remove_leftovers(folder: Path, name: str = "") -> None:
    """Remove what those left who were killed while they staged; call it under the lock of what they staged.

    Args:
        name: Only what was staged for the file of this name.
    """
    for one in folder.iterdir():
        staged_name = _STAGED.fullmatch(one.name)
        if staged_name and name in ("", staged_name["name"]):
            one.unlink(missing_ok=True)
