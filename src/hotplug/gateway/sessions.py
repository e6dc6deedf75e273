"""Sessions of the handshake era: what a client of it has open with each upstream, as one conversation.

A session belongs to one thread and is good for that thread alone. It grants nothing: every request is judged by itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import secrets
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Generator, Mapping
from typing import Any, Final, NamedTuple, cast

from hotplug.gateway.link import Frame, Link, LinkLost
from hotplug.gateway.message import METHOD_NOT_FOUND, Message, Object, Raw, dumps, loads
from hotplug.gateway.replay import Replay

__all__ = ["SESSIONS_LIMIT", "SESSION_IDLE", "THREAD_LIMIT", "Heard", "Session", "Sessions", "extensions_of"]

SESSION_IDLE: Final = 30 * 60.0
"""Seconds without a request after which a session ends."""
SESSIONS_LIMIT: Final = 10_000
THREAD_LIMIT: Final = 256
"""Sessions of one thread: a client that leaves them open takes none from the others."""
_QUEUE: Final = 1_000
_QUEUED_BYTES: Final = 1024 * 1024
_PENDING: Final = 10_000

OpenLink = Callable[["Session", str], Awaitable[Link]]
Heard = Callable[["Session", str, Message], Message | None]
"""What a session is told of a message that a server sends besides answers; None: nothing."""


class _Question(NamedTuple):
    """What a server asked: its own id for it, and the token by which it wants progress."""

    server: str
    own: bytes
    token: bytes | None


class Session:
    """One client's session.

    Args:
        thread: Whose it is.
        initialize: The client's `initialize` params, as they came.
        open_link: Opens this session's link to an upstream; raises `Unavailable`.
        heard: Default: all of it, as it comes.
    """

    def __init__(
        self,
        thread: str,
        initialize: Object,
        open_link: OpenLink,
        *,
        id_: str | None = None,
        heard: Heard | None = None,
    ) -> None:
        self.id = id_ or secrets.token_hex(16)
        self.thread = thread
        self.initialize = initialize
        self.protocol = ""
        self.closed = False
        self.used = time.monotonic()
        self.active = 0
        """Requests and streams that are open now."""
        self.extensions: frozenset[str] = extensions_of(initialize.get("capabilities"))
        self.subscribed: dict[str, set[str]] = {}
        """The URIs of each server that were subscribed to."""
        self.ends: list[Callable[[], None]] = []
        """Called when it has ended."""
        self._heard = heard
        self.replay = Replay()
        self._open_link = open_link
        self._links: dict[str, Link] = {}
        self._opening: dict[str, asyncio.Task[Link]] = {}
        self._pumps: dict[str, asyncio.Task[None]] = {}
        self._pending: dict[bytes, _Question] = {}
        self._tokens: dict[bytes, str] = {}
        self._replaced: Counter[str] = Counter()
        self._flights: dict[bytes, str] = {}
        self._asked: dict[bytes, asyncio.Future[Message]] = {}
        self._asks = itertools.count(1)
        self._requests: dict[bytes, asyncio.Task[None]] = {}
        self._waiting: deque[Frame] = deque()
        self._size = 0
        self._bell = asyncio.Event()
        self._readers: list[object] = []
        self._tasks: set[asyncio.Task[None]] = set()

    async def link(self, server: str) -> Link:
        """The link to an upstream, opened when it is first needed or was lost; one opening at a time.

        Raises:
            Unavailable: It can't be opened.
        """
        link = self._links.get(server)
        if link is not None and link.lost is None:
            return link
        task = self._opening.get(server)
        if task is None:
            task = self._opening[server] = asyncio.create_task(self._open(server), name=f"open {server}")
            task.add_done_callback(lambda done: self._opened(server, done))
        return await asyncio.shield(task)

    def links(self) -> dict[str, Link]:
        """Those that are open now."""
        return {server: link for server, link in self._links.items() if link.lost is None}

    async def _open(self, server: str) -> Link:
        link = await self._open_link(self, server)
        old = self._pumps.pop(server, None)
        if old is not None:
            old.cancel()
        if self.closed:
            await link.aclose()
            raise LinkLost("the session was closed", sent=False)
        if server in self._links:
            # What the one before asked went with it: an answer to that must not become one to this one's questions.
            self._replaced[server] += 1
            for shown in [shown for shown, asked in self._pending.items() if asked.server == server]:
                self._forget(shown)
        self._links[server] = link
        self._pumps[server] = asyncio.create_task(self._pump(server, link), name=f"general {server}")
        return link

    def _opened(self, server: str, task: asyncio.Task[Link]) -> None:
        self._opening.pop(server, None)
        if not task.cancelled():
            task.exception()  # whoever waited has been told

    async def _pump(self, server: str, link: Link) -> None:
        with contextlib.suppress(LinkLost):
            async for frame in link.general():
                message = frame.message
                if message is not None and self._heard is not None:
                    frame.message = self._heard(self, server, message)
                    if frame.message is None:
                        if message.kind == "request":
                            error = Message.error_of(message.id, METHOD_NOT_FOUND, "nobody can be asked here any more")
                            await link.send(error)
                        continue
                self.tell(self.down(server, frame))

    def spawn(self, id_: bytes, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Answer a request in a task that lives no longer than the session; who waits for it is told how it ended."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        self._requests[id_] = task
        task.add_done_callback(lambda done: self._ran(id_, done))
        return task

    def _ran(self, id_: bytes, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if self._requests.get(id_) is task:
            del self._requests[id_]
        if not task.cancelled():
            task.exception()

    def give_up(self, id_: bytes) -> bool:
        """Answer a request no more that the client cancelled, where no server knows of it yet."""
        task = self._requests.get(id_)
        return task is not None and id_ not in self._flights and task.cancel()

    def tell(self, frame: Frame) -> None:
        """Put a frame on the session's general stream; the oldest go where nobody reads for long."""
        self._waiting.append(frame)
        self._size += _size(frame)
        while len(self._waiting) > _QUEUE or (self._size > _QUEUED_BYTES and len(self._waiting) > 1):
            self._size -= _size(self._waiting.popleft())
        self._bell.set()

    async def general(self) -> AsyncIterator[Frame]:
        """The general stream: what came while nobody read first, then what comes.

        Of several readers the latest gets it: an earlier one may be of a connection that broke without a word. What a
        reader was given and didn't come back from is left to the next one.
        """
        me = object()
        self._readers.append(me)
        try:
            while not self.closed:
                if not self._waiting or self._readers[-1] is not me:
                    self._bell.clear()
                    await self._bell.wait()
                    continue
                frame = self._waiting.popleft()
                self._size -= _size(frame)
                try:
                    yield frame
                except GeneratorExit:
                    self._waiting.appendleft(frame)
                    self._size += _size(frame)
                    raise
        finally:
            self._readers.remove(me)
            self._bell.set()

    def down(self, server: str, frame: Frame) -> Frame:
        """A frame of an upstream as the client gets it: the ids of requests and events lead back to that upstream.

        Progress passes whatever changed meanwhile: it belongs to a call that was given, and whose answer passes too.
        """
        event_id = None if frame.event_id is None else f"{server}~{frame.event_id}"
        message = frame.message
        if message is not None and message.kind == "request":
            message = self._ask(server, message)
        elif message is not None and message.method != "notifications/progress" and self._heard is not None:
            message = message if message.is_answer else self._heard(self, server, message)
        return Frame(message, event_id, frame.retry)

    def _ask(self, server: str, message: Message) -> Message:
        own = message.id or b"null"
        replaced = self._replaced[server]
        shown = dumps(f"{server}~{replaced}~{own.decode()}") if replaced else own
        taken = self._pending.get(shown)
        if shown in self._asked or (taken is not None and (taken.server, taken.own) != (server, own)):
            shown = dumps(f"{server}~{own.decode()}")
        self._forget(shown)
        while len(self._pending) >= _PENDING:
            self._forget(next(iter(self._pending)))
        token: bytes | None = None
        raw = message.meta.get("progressToken")
        if raw is not None:
            token = bytes(raw)
            if self._tokens.setdefault(token, server) != server:
                # Another server's question has the same: rather no progress than another's.
                message, token = message.with_meta({"progressToken": None}), None
        self._pending[shown] = _Question(server, own, token)
        return message if shown == own else message.with_id(Raw(shown))

    def _forget(self, shown: bytes) -> _Question | None:
        asked = self._pending.pop(shown, None)
        if asked is not None and asked.token is not None:
            self._tokens.pop(asked.token, None)
        return asked

    def answered(self, message: Message) -> tuple[str, Message] | None:
        """The upstream that an answer is for, and the answer with that upstream's own id; None where nobody asked.

        An answer to a question of the gateway's own goes to who waits for it.
        """
        own_question = self._asked.pop(message.id or b"null", None)
        if own_question is not None:
            if not own_question.done():
                own_question.set_result(message)
            return None
        found = self._forget(message.id or b"null")
        if found is None:
            return None
        return found.server, message if found.own == message.id else message.with_id(Raw(found.own))

    def asked_by(self, token: bytes) -> str | None:
        """Whose request a progress token belongs to."""
        return self._tokens.get(token)

    @contextlib.contextmanager
    def flight(self, id_: bytes, server: str) -> Generator[None]:
        """While a request is under way, where: for its cancellation."""
        self._flights[id_] = server
        try:
            yield
        finally:
            if self._flights.get(id_) == server:
                del self._flights[id_]

    @contextlib.contextmanager
    def asking(self, method: str, params: Mapping[str, Any]) -> Generator[tuple[Message, asyncio.Future[Message]]]:
        """A question of the gateway's own while a request waits for its answer; ends with the block.

        Yields:
            The question to send, and its answer to come.
        """
        while (id_ := dumps(f"hotplug-{next(self._asks)}")) in self._pending:
            pass
        reply: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._asked[id_] = reply
        try:
            yield Message.request(Raw(id_), method, params), reply
        finally:
            self._asked.pop(id_, None)

    @property
    def asks(self) -> bool:
        """Whether a question of the gateway's own stands."""
        return bool(self._asked)

    def flies_to(self, server: str) -> bool:
        """Whether a request of the client's is under way at a server."""
        return server in self._flights.values()

    def flying(self, id_: bytes) -> str | None:
        """Where a request of the client's is under way."""
        return self._flights.get(id_)

    async def aclose(self) -> None:
        """End it: its links are closed."""
        if self.closed:
            return
        self.closed = True
        for end in self.ends:
            end()
        self._bell.set()
        tasks: list[asyncio.Task[Any]] = [*self._pumps.values(), *self._opening.values(), *self._tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        links, self._links = list(self._links.values()), {}
        await asyncio.gather(*(link.aclose() for link in links), return_exceptions=True)


class Sessions:
    """All sessions of a gateway.

    Args:
        released: Told of each session that has ended.
        idle: Seconds without a request after which one ends.
        limit: How many there may be.
        of_one: How many one thread may have.
        clock: Seconds.
    """

    def __init__(
        self,
        released: Callable[[Session], Awaitable[None]],
        *,
        idle: float = SESSION_IDLE,
        limit: int = SESSIONS_LIMIT,
        of_one: int = THREAD_LIMIT,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._released = released
        self._idle = idle
        self._limit = limit
        self._of_one = of_one
        self._clock = clock
        self._by_id: dict[str, Session] = {}

    def __len__(self) -> int:
        return len(self._by_id)

    async def make_room(self, thread: str) -> bool:
        """Whether a thread may have one more; where it has its share, the one goes that is idle longest."""
        mine = self.of(thread)
        if len(mine) >= self._of_one and (idle := [one for one in mine if not one.active]):
            await self.end(min(idle, key=lambda one: one.used))
        return self._has_room(thread)

    def _has_room(self, thread: str) -> bool:
        return len(self._by_id) < self._limit and len(self.of(thread)) < self._of_one

    def add(self, session: Session) -> bool:
        """Keep a session; False where there are too many."""
        if not self._has_room(session.thread):
            return False
        self._by_id[session.id] = session
        session.used = self._clock()
        return True

    def get(self, id_: str, thread: str) -> Session | None:
        """The session of that id, for its own thread alone."""
        session = self._by_id.get(id_)
        if session is None or session.thread != thread or session.closed:
            return None
        session.used = self._clock()
        return session

    @contextlib.contextmanager
    def using(self, session: Session) -> Generator[None]:
        """While something of a session is open; how long nobody uses it counts from its end."""
        session.active += 1
        try:
            yield
        finally:
            session.active -= 1
            session.used = self._clock()

    def of(self, thread: str) -> list[Session]:
        """A thread's sessions."""
        return [session for session in self._by_id.values() if session.thread == thread]

    def all(self) -> list[Session]:
        """Every session."""
        return list(self._by_id.values())

    async def end(self, session: Session) -> None:
        """End a session and forget it; done only once."""
        if self._by_id.pop(session.id, None) is not None:
            await self.drop(session)

    async def drop(self, session: Session) -> None:
        """End a session that isn't kept."""
        await session.aclose()
        await self._released(session)

    async def sweep(self) -> None:
        """End those that nobody used for long."""
        before = self._clock() - self._idle
        for session in self.all():
            if not session.active and session.used < before:
                await self.end(session)

    async def aclose(self) -> None:
        """End all."""
        await asyncio.gather(*(self.end(session) for session in self.all()))


def _size(frame: Frame) -> int:
    return len(frame.message.encode()) if frame.message is not None else 0


def extensions_of(raw: Raw | None) -> frozenset[str]:
    """The names of the extensions in a client's capabilities, as they came."""
    text = bytes(raw) if raw is not None else b""
    if b'"extensions"' not in text and b'"experimental"' not in text:
        return frozenset()
    capabilities = loads(text)
    if not isinstance(capabilities, dict):
        return frozenset()
    found: set[str] = set()
    for key in ("extensions", "experimental"):
        named = cast("dict[str, Any]", capabilities).get(key)
        if isinstance(named, dict):
            found.update(cast("dict[str, Any]", named))
    return frozenset(found)
