"""A child that speaks MCP on its standard streams, as a transport for the SDK's session.

The SDK has one too; it gives neither exit code nor standard error, and logs a traceback for each line of noise. This
one keeps them: they are what a person needs when a server doesn't start.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from subprocess import PIPE
from typing import TYPE_CHECKING, Final

import anyio
import anyio.abc
import anyio.lowlevel
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp_types import jsonrpc_message_adapter

from hotplug.connect.launch import StdioLaunch
from hotplug.connect.upstream_log import UpstreamLog

if TYPE_CHECKING:
    from mcp.shared.message import SessionMessage

__all__ = ["Child", "child_streams"]

_EXIT_GRACE: Final = 2.0
_KILL_GRACE: Final = 2.0
_FLUSH: Final = 0.5
_TAIL_WAIT: Final = 0.3
_POLL: Final = 0.01
_NOISE_LIMIT: Final = 1000
"""Lines of noise between two messages: a server that logs a line a call is bearable for ever, a flood is not."""
_LINE_LIMIT: Final = 64 * 1024 * 1024


class Child:
    """What is known of a started child while and after it runs.

    Args:
        log: Takes its standard error and the noise on its standard output.
        on_lost: Called once, when its standard output ends or can't be used any more.
    """

    def __init__(self, log: UpstreamLog, on_lost: Callable[[], None]) -> None:
        self.log = log
        self.lost = False
        self.answered = False
        self.problem: str | None = None
        self.exit_code: int | None = None
        self.too_large: int | None = None
        """The limit in bytes that a message of it was over, if that is how it ended."""
        self._on_lost = on_lost

    def lose(self, problem: str | None = None) -> None:
        """Marks the connection as ended, with what is wrong if it is more than an end."""
        if not self.lost:
            self.lost = True
            self.problem = problem
            self._on_lost()

    def ending(self) -> str:
        """How it ended, for a message."""
        if self.problem:
            return self.problem
        if self.exit_code is None:
            return "it closed its standard output" if self.lost else "it is still running"
        if self.exit_code < 0:
            with contextlib.suppress(ValueError):
                return f"it was ended by {signal.Signals(-self.exit_code).name}"
        return f"it exited with code {self.exit_code}"


@asynccontextmanager
async def child_streams(
    launch: StdioLaunch, child: Child
) -> AsyncGenerator[
    tuple[MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]]
]:
    """Starts the child in a process group of its own, and ends that group on the way out, whatever happens.

    Raises:
        OSError: It can't be started.
    """
    from mcp.shared.message import SessionMessage

    process = await anyio.open_process(
        launch.argv, stdin=PIPE, stdout=PIPE, stderr=PIPE, env=launch.env, cwd=launch.cwd, start_new_session=True
    )
    # No await before the task group is entered: a cancellation in between would leave the child behind.
    incoming, reading = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    writing, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
    flushed = anyio.Event()
    logged = anyio.Event()

    async def read() -> None:
        assert process.stdout is not None
        pending: list[bytes] = []
        size = 0
        noise = 0
        with contextlib.suppress(anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
            while True:
                chunk = await process.stdout.receive()
                if b"\n" not in chunk:
                    pending.append(chunk)
                    size += len(chunk)
                    if size > _LINE_LIMIT:
                        child.too_large = _LINE_LIMIT
                        pending.clear()
                        child.lose(f"it wrote a line of more than {_LINE_LIMIT // 1024 // 1024} MiB")
                        break
                    continue
                first, *lines = chunk.split(b"\n")
                lines.insert(0, b"".join((*pending, first)))
                last = lines.pop()
                pending, size = ([last], len(last)) if last else ([], 0)
                for line in lines:
                    try:
                        message = jsonrpc_message_adapter.validate_json(line, by_name=False)
                    except ValueError:
                        child.log.noise(line)
                        noise += 1
                        if noise > _NOISE_LIMIT:
                            break
                        continue
                    child.answered = True
                    noise = 0
                    await incoming.send(SessionMessage(message))
                if noise > _NOISE_LIMIT:
                    child.lose(f"it writes to its standard output what is no message: {child.log.first_noise}")
                    break
        for line in pending:
            child.log.noise(line)
        # The tail of standard error belongs to the error that this end causes.
        with anyio.move_on_after(_TAIL_WAIT):
            await logged.wait()
        await _exited(process, _TAIL_WAIT)
        child.exit_code = process.returncode
        child.lose()
        incoming.close()
        # A child that still writes must not block on a full pipe while it is asked to end.
        with contextlib.suppress(anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
            while True:
                await process.stdout.receive()

    async def write() -> None:
        assert process.stdin is not None
        try:
            async for message in outgoing:
                text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                await process.stdin.send(text.encode() + b"\n")
        except (anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
            # It reads no more; `read` sees how it ends, and this bounds the case in which it lives on.
            await _exited(process, _TAIL_WAIT)
            child.lose("it closed its standard input" if process.returncode is None else None)
            incoming.close()
        finally:
            flushed.set()

    async def keep_log() -> None:
        assert process.stderr is not None
        try:
            with contextlib.suppress(anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
                while True:
                    child.log.feed(await process.stderr.receive())
        finally:
            child.log.finish()
            logged.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read)
        tasks.start_soon(write)
        tasks.start_soon(keep_log)
        try:
            yield reading, writing
        finally:
            try:
                with anyio.CancelScope(shield=True):
                    reading.close()
                    writing.close()
                    with anyio.move_on_after(_FLUSH):
                        await flushed.wait()
                    await _end(process)
            except BaseException:
                # A task cancelled natively isn't held by the shield: no time for manners.
                _signal_group(process, kill=True)
                raise
            finally:
                child.exit_code = process.returncode
                for stream in (incoming, reading, writing, outgoing):
                    stream.close()
                tasks.cancel_scope.cancel()
    with anyio.CancelScope(shield=True):
        await _close(process)


async def _end(process: anyio.abc.Process) -> None:
    """Closes its input, waits, then ends the whole group: SIGTERM, and SIGKILL for what is left."""
    assert process.stdin is not None
    with contextlib.suppress(OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
        await process.stdin.aclose()
    await _exited(process, _EXIT_GRACE)
    # Also after it has exited: what it started and left in its group is ours to end.
    if not _signal_group(process, kill=False):
        return
    with anyio.move_on_after(_KILL_GRACE):
        while _group_alive(process):  # noqa: ASYNC110 - the group's end raises no event
            await anyio.sleep(_POLL)
        return
    _signal_group(process, kill=True)
    await _exited(process, _KILL_GRACE)


async def _exited(process: anyio.abc.Process, limit: float) -> bool:
    """Whether it exits within `limit` seconds, seen by its code: `wait()` waits for the pipes too."""
    with anyio.move_on_after(limit):
        while process.returncode is None:  # noqa: ASYNC110 - an event comes only with the pipes' end
            await anyio.sleep(_POLL)
    return process.returncode is not None


def _signal_group(process: anyio.abc.Process, *, kill: bool) -> bool:
    """Signals its group; whether there was anything left to signal."""
    if os.name != "posix":
        if process.returncode is None:
            process.kill()
        return process.returncode is None
    try:
        os.killpg(process.pid, signal.SIGKILL if kill else signal.SIGTERM)
    except ProcessLookupError:
        return False
    except PermissionError:
        return process.returncode is None
    return True


def _group_alive(process: anyio.abc.Process) -> bool:
    if os.name != "posix":
        return process.returncode is None
    _ = process.returncode
    try:
        os.killpg(process.pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return process.returncode is None
    return True


async def _close(process: anyio.abc.Process) -> None:
    """Closes the pipes, also where a survivor outside the group holds their other ends."""
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            with contextlib.suppress(OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
                await stream.aclose()
    # asyncio keeps the transport until every pipe ends and warns at collection; nothing public closes it.
    transport = getattr(getattr(process, "_process", None), "_transport", None)
    close = getattr(transport, "close", None)
    if callable(close):
        with contextlib.suppress(PermissionError):
            close()
    await anyio.lowlevel.checkpoint()
