"""An exchange whose stream the server closes is read on until its answer is there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from hotplug.gateway.bridge.polling import whole_exchange
from hotplug.gateway.link import Answer, Frame, Outgoing
from hotplug.gateway.message import Message

pytestmark = pytest.mark.anyio
ANSWER = Frame(Message.result_of(b"1", {}), "e3")


class Forgetful:
    """Closes its stream after an event; says nothing on so many of those that go on, then what it kept."""

    lost = None

    def __init__(self, silent: int) -> None:
        self.silent = silent
        self.resumed: list[str] = []

    @asynccontextmanager
    async def exchange(self, outgoing: Outgoing) -> AsyncGenerator[Answer]:
        yield Answer(frames=self._frames(Frame(None, "e1", 10)))

    @asynccontextmanager
    async def resume(self, event_id: str) -> AsyncGenerator[Answer]:
        self.resumed.append(event_id)
        yield Answer(frames=self._frames(ANSWER) if len(self.resumed) > self.silent else self._nothing())

    async def _frames(self, *frames: Frame) -> AsyncIterator[Frame]:
        for frame in frames:
            yield frame

    async def _nothing(self) -> AsyncIterator[Frame]:
        await asyncio.Event().wait()
        yield ANSWER


@pytest.mark.parametrize("silent", [0, 2])
async def test_a_stream_that_stays_silent_is_read_on_once_more(silent: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hotplug.gateway.bridge.polling._FIRST_SILENCE", 0.05)
    link: Any = Forgetful(silent)
    async with asyncio.timeout(30), whole_exchange(link, Outgoing(Message.request(1, "tools/call"))) as answer:
        assert answer.frames is not None
        frames = [frame async for frame in answer.frames]
    assert [frame.message.id for frame in frames if frame.message is not None] == [b"1"]
    assert link.resumed == ["e1"] * (silent + 1)
