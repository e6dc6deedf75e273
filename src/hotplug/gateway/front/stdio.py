"""MCP on standard streams, for a client that starts the gateway as its child: one client, one thread, both eras.

Standard output carries messages and nothing else. Requests are answered as they finish, each in a task of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import os
import stat
import sys
from collections.abc import Awaitable, Callable, Coroutine
from io import BufferedReader, BufferedWriter, FileIO
from typing import Any, Final, Protocol

from hotplug.gateway.eras import CAPABILITIES_META, VERSION_META, check_modern
from hotplug.gateway.link import Answer, Frame
from hotplug.gateway.message import INTERNAL_ERROR, INVALID_REQUEST, PARSE_ERROR, Message, NotAMessage
from hotplug.gateway.router import Router
from hotplug.gateway.sessions import Session, extensions_of
from hotplug.gateway.view import Caller

__all__ = ["LINE_LIMIT", "Lines", "StandardStreams", "StdioFront"]

LINE_LIMIT: Final = 64 * 1024 * 1024
_AT_ONCE: Final = 1_000
_LAST: Final = 0.5
"""Seconds for the answers that are due when the input ends."""
_logger = logging.getLogger(__name__)


class Lines(Protocol):
    """Where messages come from and go to."""

    async def read(self) -> bytes:
        """The next line; empty at the end.

        Raises:
            ValueError: A line is over `LINE_LIMIT`.
        """
        ...

    async def write(self, line: bytes) -> None:
        """Write a whole line; waits while the other side doesn't read."""
        ...


class StdioFront:
    """Serves one client until its end.

    Args:
        thread: Whose requests these are.
        open_thread: Whether the thread may still be used; asked for each request.
        new_session: Makes the session of a client that says `initialize`.
        released: Told of each session that has ended.
    """

    def __init__(
        self,
        router: Router,
        thread: str,
        new_session: Callable[[str, Message], Session],
        open_thread: Callable[[], bool],
        lines: Lines,
        released: Callable[[Session], Awaitable[None]],
    ) -> None:
        self._router = router
        self.thread = thread
        self._new_session = new_session
        self._open_thread = open_thread
        self._lines = lines
        self._released = released
        self._session: Session | None = None
        self._running: dict[bytes, asyncio.Task[None]] = {}
        self._passing: set[asyncio.Task[None]] = set()
        self._others: set[asyncio.Task[None]] = set()
        self._scopes = itertools.count(1)

    async def serve(self) -> None:
        """Answer until the client closes its end; what is under way then, and isn't about done, is cancelled."""
        try:
            while line := await self._next():
                if line.strip():
                    await self._take(line.rstrip(b"\r\n"))
            if due := [*self._running.values(), *self._passing]:
                await asyncio.wait(due, timeout=_LAST)
        finally:
            tasks = [*self._running.values(), *self._passing, *self._others]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            if self._session is not None:
                await self._close(self._session)

    async def end(self) -> None:
        """Break off what is under way: the thread was closed. What comes from now on is refused."""
        running, session = dict(self._running), self._session
        for task in running.values():
            task.cancel()
        await asyncio.gather(*running.values(), return_exceptions=True)
        if session is not None:
            await self._close(session)
        for id_ in running:
            await self._write(_not_open(id_))

    async def _close(self, session: Session) -> None:
        await session.aclose()
        await self._released(session)

    async def _next(self) -> bytes:
        while True:
            try:
                return await self._lines.read()
            except ValueError:
                # What is left of it comes as lines that are no messages.
                words = f"a line has at most {LINE_LIMIT // 1024 // 1024} MiB"
                await self._write(Message.error_of(None, PARSE_ERROR, words))

    async def _take(self, line: bytes) -> None:
        try:
            message = Message.parse(line)
        except NotAMessage as error:
            await self._write(Message.error_of(error.id, error.code, error.message))
            return
        if message.kind != "request":
            self._take_besides(message)
            return
        id_ = message.id or b"null"
        if id_ in self._running or len(self._running) >= _AT_ONCE:
            words = "another request with this id is under way" if id_ in self._running else "too many requests at once"
            await self._write(Message.error_of(id_, INVALID_REQUEST, words))
            return
        task = asyncio.create_task(self._answered(id_, message))
        self._running[id_] = task
        task.add_done_callback(lambda done: self._finished(id_, done))

    def _finished(self, id_: bytes, task: asyncio.Task[None]) -> None:
        self._running.pop(id_, None)
        if not task.cancelled():
            task.exception()

    async def _answered(self, id_: bytes, message: Message) -> None:
        """Answer, whatever happens: a client that gets no answer waits for ever."""
        try:
            await self._answer(id_, message)
        except Exception as error:
            # Its text may repeat anything.
            _logger.error("%s failed inside the gateway (%s)", message.method, type(error).__name__, exc_info=error)
            await self._write(Message.error_of(id_, INTERNAL_ERROR, "Internal error"))

    async def _answer(self, id_: bytes, message: Message) -> None:
        if not self._open_thread():
            await self._write(_not_open(id_))
            return
        if message.method == "initialize":
            await self._initialize(id_, message)
            return
        if VERSION_META in message.meta or (self._session is None and message.method != "ping"):
            rejected = check_modern(message, None)
            if rejected is not None:
                await self._write(rejected.answer(id_))
                return
            declared = extensions_of(message.meta.get(CAPABILITIES_META))
            caller = Caller(self.thread, "modern", f"r{next(self._scopes)}", extensions=declared)
        elif self._session is None:
            await self._write(Message.result_of(id_, {}))
            return
        else:
            caller = self._legacy(self._session)
        async with self._router.handle(caller, message) as answer:
            await self._pass(answer, id_)

    def _legacy(self, session: Session) -> Caller:
        return Caller(self.thread, "legacy", session.id, session=session, extensions=session.extensions)

    async def _initialize(self, id_: bytes, message: Message) -> None:
        session = self._new_session(self.thread, message)
        old, self._session = self._session, session
        if old is not None:
            await self._close(old)
        result = await self._router.hello(self._legacy(session))
        await self._write(Message.result_of(id_, result))
        _keep(self._others, self._general(session))

    async def _general(self, session: Session) -> None:
        async for frame in session.general():
            await self._frame(frame)

    async def _pass(self, answer: Answer, id_: bytes) -> None:
        if answer.frames is not None:
            async for frame in answer.frames:
                await self._frame(frame)
        elif answer.message is not None:
            await self._write(answer.message)
        else:
            words = f"the server answered with HTTP status {answer.status}"
            await self._write(Message.error_of(id_, -32603, words))

    def _take_besides(self, message: Message) -> None:
        """Pass on what isn't answered, beside everything else: whom it is for may take it slowly, or never."""
        if message.method == "notifications/cancelled":
            raw = message.params.get("requestId")
            id_ = bytes(raw) if raw is not None else b"null"
            task = self._running.get(id_)
            if task is not None and (self._session is None or self._session.flying(id_) is None):
                # No server knows of it yet.
                task.cancel()
                return
        if self._session is None:
            return
        if len(self._passing) >= _AT_ONCE:
            _logger.warning("%s is dropped: servers take no more", message.method or "an answer")
            return
        _keep(self._passing, self._accept(self._session, message))

    async def _accept(self, session: Session, message: Message) -> None:
        try:
            if self._open_thread():
                await self._router.accept(self._legacy(session), message)
        except Exception as error:
            _logger.error("passing a message on failed (%s)", type(error).__name__, exc_info=error)

    async def _frame(self, frame: Frame) -> None:
        if frame.message is not None:
            await self._write(frame.message)

    async def _write(self, message: Message) -> None:
        with contextlib.suppress(ConnectionError):
            await self._lines.write(message.line())


def _keep(tasks: set[asyncio.Task[None]], work: Coroutine[Any, Any, None]) -> None:
    task = asyncio.create_task(work)
    tasks.add(task)
    task.add_done_callback(tasks.discard)


def _not_open(id_: bytes) -> Message:
    return Message.error_of(id_, INVALID_REQUEST, "no thread is open here")


class StandardStreams:
    """This process's own standard streams as lines, without a thread where they are pipes."""

    def __init__(self, read: Callable[[], Awaitable[bytes]], write: Callable[[bytes], Awaitable[None]]) -> None:
        self._read = read
        self._write = write

    @classmethod
    async def open(cls) -> StandardStreams:
        """Take over standard input and output; what else is printed from now on goes to standard error."""
        # Copies of the descriptors, so that a stray print can't end up between two messages.
        incoming = os.fdopen(os.dup(0), "rb", buffering=0)
        outgoing = os.fdopen(os.dup(1), "wb", buffering=0)
        sys.stdout.flush()
        os.dup2(2, 1)
        return cls(await _reading(incoming), await _writing(outgoing))

    async def read(self) -> bytes:
        """The next line; empty at the end."""
        return await self._read()

    async def write(self, line: bytes) -> None:
        """Write a whole line."""
        await self._write(line)


def _can_be_waited_for(file: FileIO) -> bool:
    """Whether the event loop can wait for it: it can't for files, nor for a null device."""
    mode = os.fstat(file.fileno()).st_mode
    return os.name == "posix" and (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(file.fileno()))


async def _reading(file: FileIO) -> Callable[[], Awaitable[bytes]]:
    if not _can_be_waited_for(file):
        buffered = BufferedReader(file)
        return lambda: asyncio.to_thread(buffered.readline, LINE_LIMIT)
    reader = asyncio.StreamReader(limit=LINE_LIMIT)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), file)
    return reader.readline


async def _writing(file: FileIO) -> Callable[[bytes], Awaitable[None]]:
    lock = asyncio.Lock()
    if not _can_be_waited_for(file):
        buffered = BufferedWriter(file)

        def put(line: bytes) -> None:
            buffered.write(line)
            buffered.flush()

        async def write(line: bytes) -> None:
            async with lock:
                await asyncio.to_thread(put, line)

        return write

    loop = asyncio.get_running_loop()
    transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, file)
    writer = asyncio.StreamWriter(transport, protocol, None, loop)

    async def write_piped(line: bytes) -> None:
        writer.write(line)
        if writer.transport.get_write_buffer_size() > 65_536:
            async with lock:
                await writer.drain()

    return write_piped
