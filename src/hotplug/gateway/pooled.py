"""A link as the pool hands it out: it knows who uses it, how long its server has been silent, and why it ended."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Final, TypeVar

from hotplug.gateway.clock import Clock
from hotplug.gateway.link import Answer, Era, Frame, Hello, Link, LinkLost, Outgoing
from hotplug.gateway.message import METHOD_NOT_FOUND, Message, split

__all__ = ["PooledLink", "Wait"]

T = TypeVar("T")
_logger = logging.getLogger("hotplug.gateway")

_STRAYS: Final = 1000
"""Messages of no exchange that wait for a reader; beyond it the oldest goes."""
_KEPT: Final = frozenset({"logging/setLevel", "resources/subscribe", "resources/unsubscribe"})
_SHARED: Final = ("notifications/resources/updated",)
_TAKEN: Final = 30.0
"""Seconds for a message that nothing answers to be taken."""


class PooledLink:
    """A `Link`; what stands behind it is replaced by its upstream, never by it.

    **Who reads `general()`.** Of a link for one session (`shared` false): the session layer, alone, and every message
    reaches it unchanged, in order; also those that came while the pool itself read a list. Of a shared link the pool
    reads the server's general messages itself: it refuses requests (there is nobody to ask), answers pings, takes list
    changes as such, and drops what can't be attributed (log messages). `general()` then gives each of any number of
    readers its own copy of `notifications/resources/updated` and of list changes.

    **In use** is a link while an exchange is open, or while its session is subscribed to a resource. Waiting for
    changes of lists alone (a reader of `general()`, a `subscriptions/listen` without resources) is no use: a session
    may stay open for days, and a server that is stopped changes no lists.

    **What its caller cancelled** ends a little later, answered or not: the legacy era wants no answer then.

    Args:
        link: What carries the messages.
        instance: Of the server behind it.
        shared: Whether it serves more than one session.
        clock: For what is measured here.
        ended: Called once, when it can't be used any more, with whether it ended by itself.
        suspected: Called when a caller leaves an exchange to which nothing had been answered: the server may hang.
        cancelled: Seconds in which a server may still answer what its caller cancelled.
    """

    def __init__(
        self,
        link: Link,
        *,
        instance: str,
        shared: bool,
        clock: Clock,
        ended: Callable[[PooledLink, bool], None],
        suspected: Callable[[PooledLink], None],
        cancelled: float = 2.0,
    ) -> None:
        self.link = link
        self.instance = instance
        self.shared = shared
        self.last_use = clock.time()
        self.heard = self.last_use
        self.uses = 0
        self.waits: set[Wait] = set()
        self.running: dict[tuple[str, bytes], _Exchange] = {}
        self.clock = clock
        self._cancelled = cancelled
        self._sending = asyncio.Lock()
        self._ended = ended
        self._suspected = suspected
        self._lost: str | None = None
        self._over = False
        self._subscribed: set[str] = set()
        self.log_level: str | None = None
        """What its session set by `logging/setLevel` last."""
        self._told: list[Callable[[str], None]] = []
        self._readers: list[_Inbox] = []
        self._strays: deque[Frame] = deque(maxlen=_STRAYS)
        self._unregister = link.on_change(self._hear)
        self.general_read = False
        """Whether anybody has read `general()`: over HTTP notices come only then."""

    @property
    def era(self) -> Era:
        """See `Link`."""
        return self.link.era

    @property
    def hello(self) -> Hello:
        """See `Link`."""
        return self.link.hello

    @property
    def lost(self) -> str | None:
        """See `Link`."""
        return self._lost or self.link.lost

    @property
    def in_use(self) -> bool:
        """Whether stopping its server would take something from somebody."""
        return self.uses > 0 or bool(self._subscribed)

    def exchange(self, outgoing: Outgoing) -> AbstractAsyncContextManager[Answer]:
        """See `Link`; a call whose server is silent for too long is given up: `LinkLost(sent=True)`."""
        return _Exchange(self, outgoing)

    async def send(self, message: Message, *, scope: str = "", headers: Mapping[str, str] | None = None) -> None:
        """See `Link`; of one session's link, one after the other."""
        self.touch()
        if message.method == "notifications/cancelled":
            self._cancel(scope, message)
        try:
            async with asyncio.timeout(_TAKEN), contextlib.nullcontext() if self.shared else self._sending:
                await self.link.send(message, scope=scope, headers=headers)
        except LinkLost as error:
            raise self.told(error) from None
        except TimeoutError:
            raise LinkLost(f"it took no message in {_TAKEN:g} s", sent=True) from None

    def _cancel(self, scope: str, message: Message) -> None:
        raw = message.params.get("requestId")
        exchange = self.running.get((scope, bytes(raw))) if raw is not None else None
        if exchange is not None:
            asyncio.get_running_loop().call_later(self._cancelled, exchange.give_up)

    async def general(self) -> AsyncIterator[Frame]:
        """See `Link`, and above who reads it."""
        inbox = _Inbox()
        self._readers.append(inbox)
        reading: asyncio.Task[None] | None = None
        try:
            if not self.shared:
                self.general_read = True
                inbox.frames.extend(self._strays)
                self._strays.clear()
                reading = asyncio.create_task(self._read_into(inbox))
            if self.lost is not None:
                inbox.close()
            async for frame in inbox.read():
                yield frame
        finally:
            self._readers.remove(inbox)
            if reading is not None:
                reading.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await reading

    def resume(self, event_id: str) -> AbstractAsyncContextManager[Answer]:
        """See `Link`."""
        return self.link.resume(event_id)

    def on_change(self, told: Callable[[str], None]) -> Callable[[], None]:
        """See `Link`."""
        self._told.append(told)

        def end() -> None:
            if told in self._told:
                self._told.remove(told)

        return end

    async def aclose(self) -> None:
        """Ends it, where it is one session's alone; a shared link is its upstream's to end."""
        if not self.shared:
            self.end(None)
            await self.link.aclose()

    def touch(self) -> None:
        """It is used now."""
        self.last_use = self.clock.time()

    def end(self, reason: str | None, *, by_itself: bool = False) -> None:
        """It is over: whoever uses it hears this reason. Closing what stands behind it is its upstream's."""
        if self._over:
            return
        self._over = True
        self._lost = reason or self.link.lost or "it was closed"
        self._unregister()
        self._ended(self, by_itself)
        for wait in tuple(self.waits):
            wait.give_up(self._lost)
        for inbox in self._readers:
            inbox.close()
        self._tell("lost")

    def suspect(self) -> None:
        """Somebody waited for it in vain."""
        if not self._over:
            self._suspected(self)

    def told(self, error: LinkLost) -> LinkLost:
        """A loss in the words of who ended it."""
        return LinkLost(self._lost, sent=error.sent) if self._lost else error

    def stray(self, frame: Frame) -> None:
        """A message that belongs to no exchange, met elsewhere: for the reader of `general()`."""
        message = frame.message
        if self.shared:
            method = message.method if message is not None else None
            if method in _SHARED or (method or "").endswith("/list_changed"):
                for inbox in self._readers:
                    inbox.put(frame)
        elif self._readers:
            self._readers[0].put(frame)
        else:
            self._strays.append(frame)

    async def read_shared(self) -> None:
        """Reads the general messages of a shared link until it ends; the pool runs it once for each."""
        with contextlib.suppress(LinkLost):
            async for frame in self.link.general():
                self.hear()
                message = frame.message
                if message is None:
                    continue
                if message.kind == "request":
                    await self.refuse(message)
                else:
                    self.stray(frame)

    async def refuse(self, request: Message) -> None:
        """Answers a request of the server's for which there is nobody to ask."""
        id_ = request.id or b"null"
        if request.method == "ping":
            answer = Message.result_of(id_, {})
        else:
            answer = Message.error_of(id_, METHOD_NOT_FOUND, f"{request.method} is not offered here")
        with contextlib.suppress(LinkLost):
            await self.link.send(answer)

    def hear(self) -> None:
        """The server said something."""
        self.heard = self.clock.time()

    def keep(self, message: Message) -> None:
        """Keeps in mind what its session asked the server to remember."""
        if self.shared:
            return
        if message.method == "logging/setLevel":
            self.log_level = message.text("level")
        elif (uri := message.text("uri")) is not None:
            if message.method == "resources/subscribe":
                self._subscribed.add(uri)
            else:
                self._subscribed.discard(uri)

    async def wait(self, step: Awaitable[T], exchange: _Exchange | None = None) -> T:
        """Waits for the server's next word, no longer than it may be silent.

        Args:
            exchange: Whose it is, where its caller may cancel it.

        Raises:
            LinkLost: It was silent for too long, or the link ended.
        """
        wait = Wait(self.clock.time())
        self.waits.add(wait)
        if exchange is not None:
            exchange.waiting = wait
        try:
            async with asyncio.timeout(None) as wait.limit:
                return await step
        except TimeoutError:
            if wait.reason is None:
                raise
            raise LinkLost(wait.reason, sent=True) from None
        except LinkLost as error:
            raise self.told(error) from None
        finally:
            self.waits.discard(wait)
            if exchange is not None:
                exchange.waiting = None

    def _hear(self, what: str) -> None:
        if what == "lost":
            self.end(self.link.lost or "it ended", by_itself=True)
            return
        self._tell(what)

    def _tell(self, what: str) -> None:
        for told in tuple(self._told):
            try:
                told(what)
            except Exception:
                # One listener's fault is not the others'.
                _logger.exception("a listener failed on %s", what)

    async def _read_into(self, inbox: _Inbox) -> None:
        try:
            async for frame in self.link.general():
                self.hear()
                await inbox.wait_room()
                inbox.put(frame)
        except LinkLost:
            pass
        finally:
            inbox.close()

    def __repr__(self) -> str:
        return f"<PooledLink {self.era} {self.instance}>"


class Wait:
    """Somebody who waits for the server's next word."""

    __slots__ = ("limit", "reason", "since")

    def __init__(self, since: float) -> None:
        self.since = since
        self.limit: asyncio.Timeout | None = None
        self.reason: str | None = None

    def give_up(self, reason: str) -> None:
        """End the waiting."""
        if self.reason is None and self.limit is not None:
            self.reason = reason
            self.limit.reschedule(asyncio.get_running_loop().time())


class _Exchange:
    __slots__ = ("_counts", "_inner", "_key", "_outgoing", "_pooled", "_spoke", "given_up", "waiting")

    def __init__(self, pooled: PooledLink, outgoing: Outgoing) -> None:
        self._pooled = pooled
        self._outgoing = outgoing
        self._inner: AbstractAsyncContextManager[Answer] | None = None
        self._spoke = False
        self._counts = not _awaits_lists_only(outgoing.message)
        self._key = (outgoing.scope, outgoing.message.id or b"null")
        self.waiting: Wait | None = None
        self.given_up = False
        """Whether its caller cancelled it, and nothing more is waited for."""

    def give_up(self) -> None:
        """Wait no more for what was cancelled."""
        self.given_up = True
        if self.waiting is not None:
            self.waiting.give_up("it was cancelled")

    async def __aenter__(self) -> Answer:
        pooled = self._pooled
        if (lost := pooled.lost) is not None:
            raise LinkLost(lost, sent=False)
        pooled.uses += self._counts
        pooled.touch()
        pooled.running[self._key] = self
        inner = pooled.link.exchange(self._outgoing)
        try:
            answer = await pooled.wait(inner.__aenter__(), self)
        except BaseException as error:
            self._over(error)
            if self.given_up and isinstance(error, LinkLost):
                return Answer(frames=_nothing())
            raise
        self._inner = inner
        pooled.hear()
        self._spoke = True
        if self._outgoing.message.method in _KEPT:
            pooled.keep(self._outgoing.message)
        if answer.frames is not None:
            answer.frames = _Frames(pooled, answer.frames, self)
        return answer

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        if self._inner is None:
            return None
        try:
            return await self._inner.__aexit__(kind, error, traceback)
        finally:
            self._over(error)

    def _over(self, error: BaseException | None) -> None:
        pooled = self._pooled
        if pooled.running.get(self._key) is self:
            del pooled.running[self._key]
        pooled.uses -= self._counts
        if self._counts:
            pooled.touch()
        if not self._spoke and (self.given_up or isinstance(error, asyncio.CancelledError)):
            pooled.suspect()


async def _nothing() -> AsyncIterator[Frame]:
    return
    yield


def _awaits_lists_only(message: Message) -> bool:
    if message.method != "subscriptions/listen":
        return False
    raw = message.params.get("notifications")
    return "resourceSubscriptions" not in ((split(raw) if raw is not None else None) or {})


class _Frames:
    """The frames of one exchange; a class, so that a reader who leaves early leaves nothing to finish."""

    __slots__ = ("_exchange", "_frames", "_pooled")

    def __init__(self, pooled: PooledLink, frames: AsyncIterator[Frame], exchange: _Exchange) -> None:
        self._pooled = pooled
        self._frames = frames
        self._exchange = exchange

    def __aiter__(self) -> _Frames:
        return self

    async def __anext__(self) -> Frame:
        pooled, exchange = self._pooled, self._exchange
        try:
            if exchange.given_up:
                raise StopAsyncIteration
            frame = await pooled.wait(self._frames.__anext__(), exchange)
        except LinkLost:
            if exchange.given_up:
                raise StopAsyncIteration from None
            raise
        pooled.hear()
        return frame


class _Inbox:
    """Frames for one reader; bounded."""

    def __init__(self) -> None:
        self.frames: deque[Frame] = deque(maxlen=_STRAYS)
        self._closed = False
        self._moved = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()

    def put(self, frame: Frame) -> None:
        self.frames.append(frame)
        self._moved.set()
        if len(self.frames) >= _STRAYS // 2:
            self._room.clear()

    async def wait_room(self) -> None:
        await self._room.wait()

    def close(self) -> None:
        self._closed = True
        self._moved.set()

    async def read(self) -> AsyncIterator[Frame]:
        while True:
            while self.frames:
                yield self.frames.popleft()
            self._room.set()
            if self._closed:
                return
            self._moved.clear()
            await self._moved.wait()
