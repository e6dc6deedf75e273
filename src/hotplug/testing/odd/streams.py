"""The odd server on standard streams: a message a line, each request answered by a task of its own."""

from __future__ import annotations

import asyncio
import sys
from typing import Final

from hotplug.testing.odd.exchange import Exchange, House, Request, Session
from hotplug.testing.odd.methods import answer, take

__all__ = ["serve_streams"]

_LONGEST: Final = 64 * 1024 * 1024


async def serve_streams() -> None:
    """Serve until standard input ends."""
    loop = asyncio.get_running_loop()
    lines = asyncio.StreamReader(limit=_LONGEST)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, sys.stdout)
    writer = asyncio.StreamWriter(transport, protocol, None, loop)

    async def send(text: str) -> None:
        writer.write(text.encode("utf-8") + b"\n")
        await writer.drain()

    house = House()
    session = Session(general=send)
    answering: dict[str, asyncio.Task[None]] = {}
    while line := await lines.readline():
        request = Request.read(line.decode("utf-8", "replace"))
        if request is None:
            continue
        if request.method is None:
            session.answered(request.message)
        elif request.id is None:
            take(request, house, session, answering)
        else:
            number = request.id.text
            task = asyncio.create_task(_answer(Exchange(house, session, request, request.is_modern, send)))
            answering[number] = task
            task.add_done_callback(lambda _, number=number: answering.pop(number, None))


async def _answer(exchange: Exchange) -> None:
    await exchange.send(await answer(exchange))
