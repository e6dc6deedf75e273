"""A child process in a group of its own, its pipes, and how it and what it started are ended."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping, Sequence
from subprocess import PIPE
from typing import Any, Final

import anyio

__all__ = ["ChildProcess", "Lines", "exit_words"]

_EXIT_GRACE: Final = 2.0
_KILL_GRACE: Final = 2.0
_POLL: Final = 0.01
_READ: Final = 256 * 1024


class ChildProcess:
    """A started program with pipes for its three streams.

    Whoever starts one ends it: `end()` and then `close()`, or `kill()` where there is no time for manners.
    """

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self._process = process
        self.stdin = process.stdin
        self._stdout = process.stdout
        self._stderr = process.stderr

    @classmethod
    async def start(cls, argv: Sequence[str], *, env: Mapping[str, str], cwd: str | None = None) -> ChildProcess:
        """Starts it as the first of a process group (and session) of its own.

        Raises:
            OSError: It can't be started.
        """
        return cls(
            await asyncio.create_subprocess_exec(
                *argv, stdin=PIPE, stdout=PIPE, stderr=PIPE, env=env, cwd=cwd, start_new_session=True, limit=_READ
            )
        )

    @property
    def returncode(self) -> int | None:
        """Its exit code; negative: the signal that ended it; None while it runs."""
        return self._process.returncode

    @property
    def pid(self) -> int:
        """Its process id, which is its group's too."""
        return self._process.pid

    async def read(self) -> bytes:
        """What it wrote to its standard output, as it comes; empty when that has ended or is broken."""
        return await _read(self._stdout)

    async def read_error(self) -> bytes:
        """What it wrote to its standard error, as it comes; empty when that has ended or is broken."""
        return await _read(self._stderr)

    async def drain(self) -> None:
        """Waits until it has read most of what was written to its standard input.

        Raises:
            OSError: It reads no more.
        """
        await self.stdin.drain()

    async def exited(self, limit: float) -> bool:
        """Whether it exits within `limit` seconds, seen by its code: `wait()` waits for the pipes too."""
        with anyio.move_on_after(limit):
            while self._process.returncode is None:  # noqa: ASYNC110 - an event comes only with the pipes' end
                await asyncio.sleep(_POLL)
        return self._process.returncode is not None

    async def end(self, grace: float = _EXIT_GRACE) -> None:
        """Closes its input, waits, then ends the whole group: SIGTERM, and SIGKILL for what is left.

        Args:
            grace: Seconds that it has to exit by itself, and then as many again (at most 2) after SIGTERM.
        """
        with contextlib.suppress(OSError):
            self.stdin.close()
        await self.exited(grace)
        # Also after it has exited: what it started and left in its group is ours to end.
        if not self._signal(kill=False):
            return
        with anyio.move_on_after(min(grace, _KILL_GRACE)):
            while self._group_lives():  # noqa: ASYNC110 - the group's end raises no event
                await asyncio.sleep(_POLL)
            return
        self._signal(kill=True)
        await self.exited(_KILL_GRACE)

    def kill(self) -> None:
        """Ends the whole group at once."""
        self._signal(kill=True)

    async def close(self) -> None:
        """Closes the pipes, also where a survivor outside the group holds their other ends."""
        # One that is closed already has let go of its loop, and then says so with an AttributeError.
        with contextlib.suppress(OSError, RuntimeError, AttributeError):
            self.stdin.transport.abort()
        # asyncio keeps the transport until every pipe ends and warns at collection; nothing public closes it.
        transport: Any = getattr(self._process, "_transport", None)
        if transport is not None:
            with contextlib.suppress(PermissionError):
                transport.close()
        await asyncio.sleep(0)

    def _signal(self, *, kill: bool) -> bool:
        """Signals its group; whether there was anything left to signal."""
        if os.name != "posix":
            if self._process.returncode is None:
                self._process.kill()
            return self._process.returncode is None
        try:
            os.killpg(self._process.pid, signal.SIGKILL if kill else signal.SIGTERM)
        except ProcessLookupError:
            return False
        except PermissionError:
            return self._process.returncode is None
        return True

    def _group_lives(self) -> bool:
        if os.name != "posix":
            return self._process.returncode is None
        try:
            os.killpg(self._process.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return self._process.returncode is None
        return True


async def _read(stream: asyncio.StreamReader) -> bytes:
    try:
        return await stream.read(_READ)
    except OSError:
        return b""


def exit_words(code: int) -> str:
    """How it ended, for a message."""
    if code < 0:
        with contextlib.suppress(ValueError):
            return f"it was ended by {signal.Signals(-code).name}"
    return f"it exited with code {code}"


class Lines:
    """Cuts what comes in pieces into lines.

    Args:
        limit: Bytes that a line may have.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._pending: list[bytes] = []
        self._size = 0
        self.over = False
        """Whether a line was longer than allowed; nothing can be cut after that."""

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that this piece completes, without their ends."""
        if b"\n" not in chunk:
            self._pending.append(chunk)
            self._size += len(chunk)
            if self._size > self._limit:
                self.over = True
                self._pending.clear()
            return []
        first, *lines = chunk.split(b"\n")
        lines.insert(0, b"".join((*self._pending, first)))
        last = lines.pop()
        self._pending, self._size = ([last], len(last)) if last else ([], 0)
        return lines

    def rest(self) -> bytes:
        """What stands after the last line break; taken out."""
        rest = b"".join(self._pending)
        self._pending, self._size = [], 0
        return rest
