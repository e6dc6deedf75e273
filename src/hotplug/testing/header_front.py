"""A front that adds headers to every request, for clients that can't be told to send any.

The conformance suite is one: it has no option for a token, and the gateway answers nobody without one. Nothing else is
changed: request bodies, and all of the answers, go through byte by byte as they come, streams and closed ones included.
"""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from typing import Final
from urllib.parse import urlsplit

from hotplug.errors import ConfigError

__all__ = ["header_front"]

_START_SECONDS: Final = 10
_LINE: Final = b"\r\n"
_HEAD_END: Final = b"\r\n\r\n"
_LARGEST_HEAD: Final = 64 * 1024
_PIECE: Final = 64 * 1024
_LATE_ROUNDS: Final = 5
_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


@contextmanager
def header_front(url: str, headers: Mapping[str, str]) -> Generator[str]:
    """Where to send what shall reach that URL with those headers.

    A request's own header of the same name is replaced. `Host` and `Origin` name the target where they named the front;
    any others stay, so that what the target thinks of strangers can be tried through the front as well.

    Args:
        url: Of the target; `http` only.
        headers: To add; their values aren't shown in any message.

    Raises:
        ConfigError: The URL is no `http` one, or a header can't be written as one line.
    """
    parts = urlsplit(url)
    if parts.scheme != "http" or parts.hostname is None:
        raise ConfigError(
            f"{url!r} isn't an http URL", hint="the front for headers knows neither TLS nor paths of files"
        )
    for name, value in headers.items():
        if not _NAME.fullmatch(name) or any(character in value for character in "\r\n\0"):
            raise ConfigError(f"the header {name!r} can't be sent as it is", hint="one line, no control characters")
    front = _Front(parts.hostname, parts.port or 80, parts.netloc, headers)
    port = front.start()
    try:
        yield parts._replace(netloc=f"127.0.0.1:{port}").geturl()
    finally:
        front.stop()


class _Front:
    """The front's listener, on an event loop in a thread of its own."""

    def __init__(self, host: str, port: int, authority: str, headers: Mapping[str, str]) -> None:
        self._target = (host, port)
        self._authority = authority.encode("ascii")
        self._replaced = {name.lower().encode("ascii") for name in headers}
        self._added = b"".join(f"{name}: {value}\r\n".encode("latin-1") for name, value in headers.items())
        self._own = b""
        self._loop = asyncio.new_event_loop()
        self._open: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._loop.run_forever, name="header-front", daemon=True)

    def start(self) -> int:
        self._thread.start()
        listening = asyncio.run_coroutine_threadsafe(self._listen(), self._loop)
        port = listening.result(_START_SECONDS)
        self._own = f"127.0.0.1:{port}".encode("ascii")
        return port

    def stop(self) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(_START_SECONDS)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _listen(self) -> int:
        self._server = await asyncio.start_server(self._accepted, "127.0.0.1", 0, limit=_LARGEST_HEAD)
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def _close(self) -> None:
        self._server.close()
        for _ in range(_LATE_ROUNDS):
            # asyncio's own, that take a connection, are waited for: cancelled, they leave its socket open.
            while others := asyncio.all_tasks() - {asyncio.current_task()}:
                for task in others & self._open:
                    task.cancel()
                await asyncio.gather(*others, return_exceptions=True)
            # A connection that was just taken begins a task of its own a round later.
            await asyncio.sleep(0)

    def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = self._loop.create_task(self._accept(reader, writer))
        self._open.add(task)

        def over(task: asyncio.Task[None]) -> None:
            # Here, since a task that is cancelled before its first step runs nothing of itself.
            self._open.discard(task)
            writer.close()

        task.add_done_callback(over)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Whoever went away, or what isn't HTTP/1.1: both sides see the connection end.
        with suppress(OSError, EOFError, asyncio.LimitOverrunError, asyncio.CancelledError):
            await self._connection(reader, writer)

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        back, forth = await asyncio.open_connection(*self._target, limit=_LARGEST_HEAD)
        requests = asyncio.ensure_future(self._requests(reader, forth))
        answers = asyncio.ensure_future(_copy(back, writer))
        try:
            # Whichever side ends ends the other: a client that closes its connection cancels what it asked for.
            await asyncio.wait((requests, answers), return_when=asyncio.FIRST_COMPLETED)
        finally:
            # Before anything is waited for: the front may be stopped meanwhile.
            forth.close()
            for direction in (requests, answers):
                direction.cancel()
            await asyncio.gather(requests, answers, return_exceptions=True)

    async def _requests(self, reader: asyncio.StreamReader, forth: asyncio.StreamWriter) -> None:
        while True:
            head = await reader.readuntil(_HEAD_END)
            request, *lines = head.removesuffix(_HEAD_END).split(_LINE)
            fields = [(name, rest) for name, _, rest in (line.partition(b":") for line in lines)]
            kept = [
                name + b":" + self._addressed(name, rest) for name, rest in fields if name.lower() not in self._replaced
            ]
            forth.write(_LINE.join((request, *kept)) + _LINE + self._added + _LINE)
            known = {name.lower(): rest.strip().lower() for name, rest in fields}
            if b"chunked" in known.get(b"transfer-encoding", b""):
                await _copy_chunks(reader, forth)
            else:
                await _copy_exactly(reader, forth, int(known.get(b"content-length", b"0")))
            await forth.drain()

    def _addressed(self, name: bytes, value: bytes) -> bytes:
        if name.lower() in (b"host", b"origin"):
            return value.replace(self._own, self._authority)
        return value


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while piece := await reader.read(_PIECE):
        writer.write(piece)
        await writer.drain()


async def _copy_exactly(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, length: int) -> None:
    while length:
        piece = await reader.readexactly(min(length, _PIECE))
        writer.write(piece)
        await writer.drain()
        length -= len(piece)


async def _copy_chunks(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    size = -1
    while size != 0:
        line = await reader.readuntil(_LINE)
        writer.write(line)
        size = int(line.partition(b";")[0], 16)
        if size:
            await _copy_exactly(reader, writer, size + len(_LINE))
    # Trailers, up to the empty line.
    while (line := await reader.readuntil(_LINE)) != _LINE:
        writer.write(line)
    writer.write(_LINE)
