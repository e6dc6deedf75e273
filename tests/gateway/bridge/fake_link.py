"""A link whose server is a function of the test's: for what no server of the SDK's can be made to say."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from hotplug.gateway.link import Answer, Era, Frame, Hello, LinkLost, Outgoing
from hotplug.gateway.message import Message, dumps, split


class FakeCall:
    """One request at the fake server."""

    def __init__(self, link: FakeLink, outgoing: Outgoing) -> None:
        self.link = link
        self.outgoing = outgoing
        self.message = outgoing.message
        self.items: asyncio.Queue[Frame | Exception | None] = asyncio.Queue(8)
        self.cancelled = asyncio.Event()

    async def say(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        """Send a notification with the call."""
        await self.items.put(Frame(Message.notification(method, params)))

    async def ask(self, method: str, params: Mapping[str, Any] | None = None) -> Message:
        """Ask the client within the call; gives its answer."""
        question = self.link.question(method, params)
        await self.items.put(Frame(question))
        return await self.link.asked[question.id or b""]

    async def run(self, script: Callable[[FakeCall], Awaitable[Any]]) -> None:
        try:
            answer = await script(self)
            if not isinstance(answer, Message):
                answer = Message.result_of(self.message.id or b"null", answer)
            await self.items.put(Frame(answer))
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        except LinkLost as lost:
            await self.items.put(lost)


class FakeLink:
    """A link with a script for each method; `*` is for all others."""

    def __init__(self, era: Era, hello: Mapping[str, Any], **scripts: Callable[[FakeCall], Awaitable[Any]]) -> None:
        self.era: Era = era
        said = split(dumps(hello))
        assert said is not None
        self.hello = Hello(said, "2026-07-28" if era == "modern" else "2025-11-25")
        self.lost: str | None = None
        self.calls: list[FakeCall] = []
        self.sent: list[Message] = []
        self.asked: dict[bytes, asyncio.Future[Message]] = {}
        self.closed = False
        self._scripts = {name.replace("_", "/"): script for name, script in scripts.items()}
        self._general: asyncio.Queue[Frame | None] = asyncio.Queue()
        self._told: list[Callable[[str], None]] = []
        self._ids = 0

    @property
    def methods(self) -> list[str | None]:
        """Of the requests that came."""
        return [call.message.method for call in self.calls]

    def question(self, method: str, params: Mapping[str, Any] | None = None) -> Message:
        """A request of the server's, whose answer is waited for."""
        self._ids += 1
        message = Message.request(self._ids, method, params)
        self.asked[message.id or b""] = asyncio.get_running_loop().create_future()
        return message

    def push(self, message: Message) -> None:
        """Send something outside of any call."""
        if message.method and message.method.endswith("/list_changed"):
            for told in tuple(self._told):
                told(message.method)
        self._general.put_nowait(Frame(message))

    def lose(self, reason: str = "the server went away") -> None:
        """What a crash of the server does."""
        self.lost = reason
        for call in self.calls:
            if not call.items.full():
                call.items.put_nowait(LinkLost(reason, sent=True))
        self._general.put_nowait(None)
        for told in tuple(self._told):
            told("lost")

    @asynccontextmanager
    async def exchange(self, outgoing: Outgoing) -> AsyncGenerator[Answer, None]:
        if self.lost:
            raise LinkLost(self.lost, sent=False)
        call = FakeCall(self, outgoing)
        self.calls.append(call)
        script = self._scripts.get(outgoing.message.method or "", self._scripts.get("other", _empty))
        task = asyncio.create_task(call.run(script))
        try:
            first = await self._next(call)
            if first.message is not None and first.message.is_answer:
                yield Answer(message=first.message)
            else:
                yield Answer(frames=self._frames(call, first))
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _next(self, call: FakeCall) -> Frame:
        item = await call.items.get()
        if isinstance(item, Exception):
            raise item
        assert item is not None
        return item

    async def _frames(self, call: FakeCall, first: Frame) -> AsyncIterator[Frame]:
        frame = first
        while True:
            yield frame
            if frame.message is not None and frame.message.is_answer:
                return
            frame = await self._next(call)

    async def send(self, message: Message, *, scope: str = "", headers: Mapping[str, str] | None = None) -> None:
        self.sent.append(message)
        if message.is_answer and (waiting := self.asked.get(message.id or b"")) is not None:
            waiting.set_result(message)

    async def general(self) -> AsyncIterator[Frame]:
        while (frame := await self._general.get()) is not None:
            yield frame

    @asynccontextmanager
    async def resume(self, event_id: str) -> AsyncGenerator[Answer, None]:
        yield Answer(body=b"", status=405)

    def on_change(self, told: Callable[[str], None]) -> Callable[[], None]:
        self._told.append(told)
        return lambda: self._told.remove(told)

    async def aclose(self) -> None:
        self.closed = True
        self._general.put_nowait(None)


async def _empty(_: FakeCall) -> Any:
    return {}
