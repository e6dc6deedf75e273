"""Where the browser comes back to: one address on this machine's loopback, while somebody logs in (RFC 8252, 7.3)."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Final
from urllib.parse import parse_qs, urlsplit

__all__ = ["Loopback", "PortTaken", "listening"]

_PATH: Final = "/callback"
_HEAD_LIMIT: Final = 16 * 1024
_PATIENCE: Final = 5.0
_PAGE: Final = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><title>Hotplug</title>'
    '<body style="font: 1.1rem system-ui; margin: 4rem auto; max-width: 32rem"><h1>{title}</h1><p>{text}</p>'
)


class PortTaken(Exception):
    """The port that was asked for isn't free."""


class Loopback:
    """Waits for the one answer that carries the right state; made by `listening`."""

    def __init__(self) -> None:
        self.strays = 0
        """How many answers came without the right state."""
        self._state: str | None = None
        self._answer: asyncio.Future[Mapping[str, str]] = asyncio.get_running_loop().create_future()
        self.port = 0

    @property
    def address(self) -> str:
        """What the browser is sent back to."""
        return f"http://127.0.0.1:{self.port}{_PATH}"

    def expect(self, state: str) -> None:
        """From now on an answer with this state is taken, once."""
        self._state = state

    async def answer(self) -> Mapping[str, str]:
        """The parameters of the answer: `code`, or `error`."""
        return await asyncio.shield(self._answer)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, one request."""
        try:
            async with asyncio.timeout(_PATIENCE):
                head = await reader.readuntil(b"\r\n\r\n")
                status, title, text = self._taken(head)
                body = _PAGE.format(title=title, text=text).encode()
                writer.write(
                    f"HTTP/1.1 {status}\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: {len(body)}\r\n"
                    "cache-control: no-store\r\nreferrer-policy: no-referrer\r\n"
                    "content-security-policy: default-src 'none'; style-src 'unsafe-inline'\r\n"
                    "connection: close\r\n\r\n".encode()
                    + body
                )
                await writer.drain()
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    def _taken(self, head: bytes) -> tuple[str, str, str]:
        method, _, rest = head.partition(b"\r\n")[0].decode("latin-1").partition(" ")
        parts = urlsplit(rest.partition(" ")[0])
        if method != "GET" or parts.path != _PATH:
            return "404 Not Found", "Nothing is here", "This address only waits for a login to come back."
        given = {name: values[0] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
        if self._state is None or not hmac.compare_digest(given.get("state", "").encode(), self._state.encode()):
            # A page that guesses must not end the login that is under way; an old tab mustn't either.
            self.strays += 1
            return "400 Bad Request", "That is another login", "It doesn't belong to the login that is under way."
        if self._answer.done():
            return "400 Bad Request", "That login is over", "You can close this page."
        self._answer.set_result(given)
        if "error" in given:
            return "200 OK", "You are not logged in", "Hotplug says why. You can close this page."
        return "200 OK", "Back to Hotplug", "You can close this page; Hotplug goes on where you started it."


@asynccontextmanager
async def listening(port: int | None) -> AsyncGenerator[Loopback]:
    """A loopback address while the block runs.

    Args:
        port: None: any free one.

    Raises:
        PortTaken: It isn't free.
    """
    loopback = Loopback()
    try:
        server = await asyncio.start_server(loopback.serve, "127.0.0.1", port or 0, limit=_HEAD_LIMIT)
    except OSError as error:
        raise PortTaken(f"127.0.0.1:{port}: {error.strerror or type(error).__name__}") from None
    loopback.port = server.sockets[0].getsockname()[1]
    try:
        yield loopback
    finally:
        server.close()
        await server.wait_closed()
