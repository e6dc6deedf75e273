"""A child that speaks MCP on its standard streams, as a transport for the SDK's session.

The SDK has one too; it gives neither exit code nor standard error, and logs a traceback for each line of noise. This
one keeps them: they are what a person needs when a server doesn't start.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp_types import jsonrpc_message_adapter

from hotplug.connect.launch import StdioLaunch
from hotplug.connect.process import ChildProcess, Lines, exit_words
from hotplug.connect.upstream_log import UpstreamLog

if TYPE_CHECKING:
    from mcp.shared.message import SessionMessage

__all__ = ["Child", "child_streams"]

_FLUSH: Final = 0.5
_TAIL_WAIT: Final = 0.3
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
        return exit_words(self.exit_code)


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

    process = await ChildProcess.start(launch.argv, env=launch.env, cwd=launch.cwd)
    # No await before the task group is entered: a cancellation in between would leave the child behind.
    incoming, reading = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    writing, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
    flushed = anyio.Event()
    logged = anyio.Event()

    async def read() -> None:
        lines = Lines(_LINE_LIMIT)
        noise = 0
        with contextlib.suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
            while chunk := await process.read():
                for line in lines.feed(chunk):
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
                if lines.over:
                    child.too_large = _LINE_LIMIT
                    child.lose(f"it wrote a line of more than {_LINE_LIMIT // 1024 // 1024} MiB")
                    break
        child.log.noise(lines.rest())
        # The tail of standard error belongs to the error that this end causes.
        with anyio.move_on_after(_TAIL_WAIT):
            await logged.wait()
        await process.exited(_TAIL_WAIT)
        child.exit_code = process.returncode
        child.lose()
        incoming.close()
        # A child that still writes must not block on a full pipe while it is asked to end.
        while await process.read():
            pass

    async def write() -> None:
        try:
            async for message in outgoing:
                text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                process.stdin.write(text.encode() + b"\n")
                await process.drain()
        except (anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
            # It reads no more; `read` sees how it ends, and this bounds the case in which it lives on.
            await process.exited(_TAIL_WAIT)
            child.lose("it closed its standard input" if process.returncode is None else None)
            incoming.close()
        finally:
            flushed.set()

    async def keep_log() -> None:
        try:
            while chunk := await process.read_error():
                child.log.feed(chunk)
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
                    await process.end()
            except BaseException:
                # A task cancelled natively isn't held by the shield: no time for manners.
                process.kill()
                raise
            finally:
                child.exit_code = process.returncode
                for stream in (incoming, reading, writing, outgoing):
                    stream.close()
                tasks.cancel_scope.cancel()
    with anyio.CancelScope(shield=True):
        await process.close()
