"""A link whose server is a function: for what no real server does on demand, in time that a test holds in its hand."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from hotplug.gateway.link import Answer, Era, Frame, Hello, LinkLost, Outgoing
from hotplug.gateway.message import Message, dumps, split

Handler = Callable[[str, Mapping[str, Any]], Any]


class SpokenLink:
    """Answers with what `handler` gives for a method and its params: a result, a `Message`, or an exception's raise."""

    def __init__(self, handler: Handler, *, era: Era = "legacy", capabilities: Mapping[str, Any] | None = None) -> None:
        self.era: Era = era
        result = split(dumps({"capabilities": capabilities if capabilities is not None else {"tools": {}}}))
        assert result is not None
        self.hello = Hello(result, "2025-11-25" if era == "legacy" else "2026-07-28")
        self.lost: str | None = None
        self.asked: list[str] = []
        self.sent: list[Message] = []
        self.streams: list[asyncio.Queue[Frame | None]] = []
        self.spoken: asyncio.Queue[Frame | None] = asyncio.Queue()
        self.before: list[Message] = []
        """Comes before the next answer."""
        self.closed = False
        self._handler = handler
        self._told: list[Callable[[str], None]] = []

    def exchange(self, outgoing: Outgoing) -> AbstractAsyncContextManager[Answer]:
        return self._exchange(outgoing)

    @asynccontextmanager
    async def _exchange(self, outgoing: Outgoing) -> AsyncGenerator[Answer]:
        message = outgoing.message
        self.asked.append(message.method or "")
        if self.lost is not None:
            raise LinkLost(self.lost, sent=False)
        if message.method == "subscriptions/listen":
            stream: asyncio.Queue[Frame | None] = asyncio.Queue()
            self.streams.append(stream)
            acknowledged = {"notifications": message.value("notifications")}
            stream.put_nowait(Frame(Message.notification("notifications/subscriptions/acknowledged", acknowledged)))
            yield Answer(frames=_all(stream))
            return
        given = self._handler(message.method or "", message.fields and {k: message.value(k) for k in message.params})
        if asyncio.iscoroutine(given):
            given = await given
        answer = (
            given.with_id(message.id) if isinstance(given, Message) else Message.result_of(message.id or b"", given)
        )
        if self.before:
            before, self.before = self.before, []
            yield Answer(frames=_these([*before, answer]))
        else:
            yield Answer(message=answer)

    async def send(self, message: Message, *, scope: str = "", headers: Mapping[str, str] | None = None) -> None:
        self.sent.append(message)

    def general(self) -> AsyncIterator[Frame]:
        return _all(self.spoken)

    def resume(self, event_id: str) -> AbstractAsyncContextManager[Answer]:
        raise NotImplementedError

    def on_change(self, told: Callable[[str], None]) -> Callable[[], None]:
        self._told.append(told)
        return lambda: self._told.remove(told)

    def tell(self, what: str) -> None:
        for told in tuple(self._told):
            told(what)

    async def aclose(self) -> None:
        self.closed = True


async def _all(queue: asyncio.Queue[Frame | None]) -> AsyncGenerator[Frame]:
    while (frame := await queue.get()) is not None:
        yield frame


async def _these(messages: list[Message]) -> AsyncGenerator[Frame]:
    for message in messages:
        yield Frame(message)
