"""Exchanges at a legacy server that may close its stream in the middle of a call and lets it be read on later."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Final

from msgspec import Raw

from hotplug.gateway.link import Answer, Frame, Link, LinkLost, Outgoing
from hotplug.gateway.message import Message

__all__ = ["whole_exchange"]

_USUAL_MS: Final = 1000
_SHORTEST_MS: Final = 10
_LONGEST_MS: Final = 30_000
_FIRST_SILENCE: Final = 5.0
_LONGEST_SILENCE: Final = 60.0
"""Seconds of silence after which a stream is read on once more: servers of the SDK tell nobody what happens between
their reading of what they kept and their waiting for more."""


@asynccontextmanager
async def whole_exchange(link: Link, outgoing: Outgoing) -> AsyncGenerator[Answer, None]:
    """`link.exchange`, whose frames go on until the answer is there, however often the server closes the stream.

    Raises:
        LinkLost: As there; also where a closed stream can't be read on.
    """
    async with AsyncExitStack() as stack:
        answer = await stack.enter_async_context(link.exchange(outgoing))
        if answer.frames is None:
            yield answer
            return
        polled = _Polled(link, answer.frames)
        try:
            yield Answer(frames=polled.read(), status=answer.status, headers=answer.headers)
        finally:
            await polled.leave()
            if polled.went_on and not polled.answered and link.lost is None:
                # Leaving the exchange says nothing any more: its own stream had its end.
                gone = {"requestId": Raw(outgoing.message.id or b"null"), "reason": "the caller has gone"}
                with suppress(LinkLost):
                    await link.send(Message.notification("notifications/cancelled", gone), scope=outgoing.scope)


class _Polled:
    def __init__(self, link: Link, frames: AsyncIterator[Frame]) -> None:
        self.answered = False
        self.went_on = False
        self._link = link
        self._frames = frames
        self._resumed = AsyncExitStack()

    async def read(self) -> AsyncIterator[Frame]:
        last: str | None = None
        pause = _USUAL_MS
        silence = _FIRST_SILENCE
        while True:
            frames = aiter(self._frames)
            while True:
                try:
                    async with asyncio.timeout(silence if self.went_on else None):
                        frame = await anext(frames)
                except StopAsyncIteration:
                    break
                except TimeoutError:
                    silence = min(2 * silence, _LONGEST_SILENCE)
                    break
                last = frame.event_id or last
                pause = pause if frame.retry is None else min(max(frame.retry, _SHORTEST_MS), _LONGEST_MS)
                if frame.message is not None:
                    self.answered = frame.message.is_answer
                    yield frame
                    if self.answered:
                        return
            if last is None:
                raise LinkLost("the server ended the call without an answer", sent=True)
            await asyncio.sleep(pause / 1000)
            await self.leave()
            self.went_on = True
            answer = await self._resumed.enter_async_context(self._link.resume(last))
            if answer.frames is None:
                raise LinkLost(f"the server answered {answer.status} where its stream was to be read on", sent=True)
            self._frames = answer.frames

    async def leave(self) -> None:
        await self._resumed.aclose()
