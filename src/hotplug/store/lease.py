"""Who is alive: a lock per owner that the kernel lets go of when its process ends.

Each open store is an owner with a random id, and holds an exclusive lock (`flock`, on Windows `msvcrt.locking`) on a
file of its own beside the database, for as long as it is open. Whoever wants to know whether an owner lives asks for a
shared lock on that file without waiting: refused means alive; granted, or no such file, means dead, for good, because
ids are never used again. No clock is compared, no heartbeat can be late (a process that is stopped or swapped out is
alive), and a process id that was given out again fools nobody. A child of `fork` would inherit the lock and keep its
dead parent alive; it closes its copy at once, and a program started by `exec` never gets one.

Holds among processes of one kernel, containers that share the folder included; not across machines. If somebody else
deletes the lease of a living owner, its pending records read as a dead one's: in doubt, or taken over where they are
atomic, and then its own commit is refused.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import sys
import weakref
from collections.abc import Generator
from pathlib import Path
from typing import Final

__all__ = ["Lease", "gate", "is_alive", "sweep"]

_SUFFIX: Final = ".lease"

if sys.platform == "win32":
    import msvcrt

    def _lock(fd: int) -> None:
        msvcrt.locking(fd, msvcrt.LK_LOCK, 1)

    def _is_free(fd: int) -> bool:
        try:
            msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        msvcrt.locking(fd, msvcrt.LK_UNLCK, 1)
        return True
else:
    import fcntl

    def _lock(fd: int) -> None:
        fcntl.flock(fd, fcntl.LOCK_EX)

    def _is_free(fd: int) -> bool:
        # Shared, so that two who ask at the same moment don't take each other for the owner.
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


class Lease:
    """One owner's sign of life, from construction to `release` or the end of the process.

    Construct it inside `gate`, or a sweep may take the file, not locked yet, for a dead one's.

    Args:
        folder: Where the leases of a database lie.
    """

    def __init__(self, folder: Path) -> None:
        self.owner = secrets.token_hex(16)
        self.forked = False
        self._path = folder / (self.owner + _SUFFIX)
        self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        _lock(self._fd)
        _held.add(self)

    def release(self) -> None:
        """Die: remove the file and let go of the lock."""
        if self._fd < 0:
            return
        with contextlib.suppress(OSError):
            self._path.unlink()
        self._close()

    def leave_to_parent(self) -> None:
        """In a forked child: close the inherited copy of the lock, so that it can't outlive the parent."""
        self.forked = True
        self._close()

    def _close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


_held: weakref.WeakSet[Lease] = weakref.WeakSet()


def _after_fork() -> None:
    for lease in list(_held):
        lease.leave_to_parent()


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_after_fork)


def is_alive(folder: Path, owner: str) -> bool:
    """Whether an owner still holds its lease. Once false, false for ever."""
    try:
        fd = os.open(folder / (owner + _SUFFIX), os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        return not _is_free(fd)
    finally:
        os.close(fd)


def sweep(folder: Path) -> None:
    """Remove the leases of the dead; call it inside `gate`."""
    for path in folder.glob("*" + _SUFFIX):
        if not is_alive(folder, path.stem):
            path.unlink(missing_ok=True)


@contextlib.contextmanager
def gate(folder: Path) -> Generator[None]:
    """One store at a time opens a database: journal mode, migration, key, leases. Makes the folder."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    fd = os.open(folder / "gate", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        _lock(fd)
        yield
    finally:
        os.close(fd)
