"""A modern link on top of legacy ones: for a 2026-07-28 client in front of an upstream that wants a handshake."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from msgspec import Raw

from hotplug.connect.version import own_version
from hotplug.gateway.bridge.parked import Parked, Unknown
from hotplug.gateway.bridge.polling import whole_exchange
from hotplug.gateway.bridge.running import Running, Visit
from hotplug.gateway.bridge.session import Session
from hotplug.gateway.bridge.stopping import Stop, Stopped
from hotplug.gateway.bridge.subscribing import Wanted, subscribed
from hotplug.gateway.bridge.words import (
    CAPABILITIES,
    CLIENT_INFO,
    HANDSHAKES,
    INPUT_METHODS,
    LEGACY_ONLY,
    LOG_LEVEL,
    MISSING_CAPABILITY,
    SERVER_INFO,
    URL_REQUIRED,
    capabilities_for_handshake,
    declared,
    input_request,
    legacy_request,
    modern_answer,
    modern_hello,
    modern_note,
    not_found,
    refusal,
)
from hotplug.gateway.link import Answer, Era, Frame, Hello, Link, LinkLost, Outgoing
from hotplug.gateway.message import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    Message,
    Object,
    dumps,
    loads,
    split,
)

__all__ = ["ModernClientLink", "bridged"]


async def bridged(
    open_legacy: Callable[[Object], Awaitable[Link]],
    secret: bytes,
    *,
    owner: str = "",
    hello: Hello | None = None,
    sessions: int = 4,
    parked: int = 64,
    wait: float = 600.0,
) -> ModernClientLink:
    """A modern link for one owner; its upstream sessions are opened as requests need them.

    A legacy server hears a client's capabilities once, in the handshake; a modern client says them with each request.
    So there is one upstream session for each set of capabilities, opened with the first request that has it, and at
    most `sessions`: where one more is needed, the one that is idle longest is closed. A client that always says the
    same has exactly one, with all state that the server keeps in it.

    A request of the server's in the middle of a call parks the call: the caller gets `input_required`, and its retry,
    with the answers and the `requestState`, goes on with the same call at the server.

    Args:
        open_legacy: Opens a legacy session for the params of an `initialize`, `notifications/initialized` included.
        secret: Signs each `requestState`.
        owner: Whose link it is (a thread): a `requestState` of another owner's is refused.
        hello: The server's `initialize` result, where it is remembered; else a session without capabilities is opened
            to learn it.
        sessions: How many upstream sessions there may be.
        parked: How many calls may wait for input.
        wait: Seconds that a call waits for input; then it is cancelled at the server.

    Raises:
        LinkLost: The server was needed and can't be reached.
    """
    link = ModernClientLink(open_legacy, Parked(secret, owner, limit=parked, wait=wait), sessions)
    await link.meet(hello)
    return link


class ModernClientLink:
    """See `bridged`."""

    def __init__(
        self,
        open_legacy: Callable[[Object], Awaitable[Link]],
        parked: Parked[Running | Visit],
        most_sessions: int,
    ) -> None:
        self._open_legacy = open_legacy
        self._parked = parked
        self._most_sessions = most_sessions
        self._sessions: dict[str, asyncio.Task[Session]] = {}
        self._jobs: set[asyncio.Task[None]] = set()
        self._running: dict[tuple[str, bytes], Stop] = {}
        self._calls: set[Running] = set()
        self._told: list[Callable[[str], None]] = []
        self._hello: Hello | None = None
        self._server_info: Raw | None = None
        self._closed = False

    async def meet(self, remembered: Hello | None) -> None:
        """Know what the server says of itself, by heart or by asking."""
        if remembered is None:
            async with self._using({}, None) as session:
                remembered = session.link.hello
        self._learn(remembered)

    @property
    def era(self) -> Era:
        return "modern"

    @property
    def hello(self) -> Hello:
        if self._hello is None:
            raise RuntimeError("the link wasn't opened by bridged()")
        return self._hello

    @property
    def lost(self) -> str | None:
        # A session that ended is opened again with the next request.
        return "it was closed" if self._closed else None

    @property
    def busy(self) -> bool:
        """Whether a request is under way, a call waits for input, or somebody listens."""
        return bool(self._running or self._calls or len(self._parked))

    @asynccontextmanager
    async def exchange(self, outgoing: Outgoing) -> AsyncGenerator[Answer, None]:
        message = outgoing.message
        if message.method in LEGACY_ONLY:
            yield Answer(message=not_found(message))
            return
        stop = Stop()
        key = (outgoing.scope, message.id or b"null")
        self._running[key] = stop
        try:
            if message.method == "subscriptions/listen":
                carried = self._listen(message, stop)
            elif message.method in INPUT_METHODS and bytes(message.params.get("requestState", b"null")) != b"null":
                carried = self._go_on(outgoing, stop)
            else:
                carried = self._begin(outgoing, stop)
            async with carried as answer:
                yield answer
        finally:
            if self._running.get(key) is stop:
                del self._running[key]

    async def send(self, message: Message, *, scope: str = "", headers: Mapping[str, str] | None = None) -> None:
        # The modern era has one notification of a client's, and no request of a server's that could be answered.
        if message.method == "notifications/cancelled":
            stop = self._running.get((scope, bytes(message.params.get("requestId", b"null"))))
            if stop is not None:
                stop.stop()

    async def general(self) -> AsyncIterator[Frame]:
        return
        yield  # pragma: no cover

    @asynccontextmanager
    async def resume(self, event_id: str) -> AsyncGenerator[Answer, None]:
        yield Answer(body=b"", status=405)

    def on_change(self, told: Callable[[str], None]) -> Callable[[], None]:
        self._told.append(told)
        return lambda: self._told.remove(told) if told in self._told else None

    async def aclose(self) -> None:
        self._closed = True
        for stop in self._running.values():
            stop.stop()
        self._parked.clear()
        await asyncio.gather(*(call.aclose() for call in tuple(self._calls)))
        opened = tuple(self._sessions.values())
        self._sessions.clear()
        for task in opened:
            await self._close(task)
        await asyncio.gather(*self._jobs, return_exceptions=True)

    @asynccontextmanager
    async def _begin(self, outgoing: Outgoing, stop: Stop) -> AsyncGenerator[Answer, None]:
        """Carry a request that isn't known yet."""
        meta = outgoing.message.meta
        capabilities = capabilities_for_handshake(meta.get(CAPABILITIES))
        given = False
        link: Link | None = None
        for attempt in (1, 2):
            try:
                async with self._using(capabilities, meta.get(CLIENT_INFO)) as session:
                    link = session.link
                    if outgoing.message.method == "server/discover":
                        given = True
                        yield Answer(message=Message.result_of(outgoing.message.id or b"null", self.hello.result))
                        return
                    await session.log_from(_level(outgoing.message))
                    heard = {"progressToken", LOG_LEVEL} & meta.keys()
                    outlives = outgoing.message.method in INPUT_METHODS and (session.can or heard)
                    carry = self._interactively if outlives else self._directly
                    async with carry(session, outgoing, stop) as answer:
                        given = True
                        yield answer
                        return
            except LinkLost as lost:
                # Only where there was a session, and it was over before the server could read anything.
                if given or lost.sent or attempt == 2 or link is None or link.lost is None:
                    raise

    @asynccontextmanager
    async def _directly(self, session: Session, outgoing: Outgoing, stop: Stop) -> AsyncGenerator[Answer, None]:
        request = outgoing.message
        async with AsyncExitStack() as stack:
            session.plain += 1
            stack.callback(session.done)
            try:
                answer = await stop.wait(stack.enter_async_context(whole_exchange(session.link, _downward(outgoing))))
            except Stopped:
                answer = Answer(frames=_nothing())
            if answer.message is not None:
                yield Answer(message=self._final(answer.message, request, session))
            elif answer.frames is None:
                yield answer
            else:
                yield Answer(frames=self._plain_frames(session, answer.frames, request, stop))

    async def _plain_frames(
        self, session: Session, frames: AsyncIterator[Frame], request: Message, stop: Stop
    ) -> AsyncIterator[Frame]:
        level = _level(request)
        while True:
            try:
                frame = await stop.wait(anext(frames))
            except (Stopped, StopAsyncIteration):
                return
            message = frame.message
            if message is None or session.notice(message):
                continue
            if message.is_answer:
                yield Frame(self._final(message, request, session))
                return
            if message.kind == "request":
                await session.refuse(message)
            elif (note := modern_note(message, level)) is not None:
                yield Frame(note)

    @asynccontextmanager
    async def _interactively(self, session: Session, outgoing: Outgoing, stop: Stop) -> AsyncGenerator[Answer, None]:
        call = Running(session, _downward(outgoing), lambda: not self._parked.full, self._calls.discard)
        self._calls.add(call)
        async with self._carried(call, outgoing.message, stop) as answer:
            yield answer

    @asynccontextmanager
    async def _go_on(self, outgoing: Outgoing, stop: Stop) -> AsyncGenerator[Answer, None]:
        """Carry a retry."""
        request = outgoing.message
        try:
            call = self._parked.take(request.text("requestState") or "", request)
        except Unknown:
            why = {"reason": "invalid_request_state"}
            yield Answer(message=Message.error_of(request.id, INVALID_PARAMS, "Invalid or expired requestState", why))
            return
        answers = _answers(request)
        if isinstance(call, Visit):
            if not answers:
                yield Answer(message=self._park(call, request))
            elif not call.agreed(answers):
                why = "the server requires a URL to be visited first, and it wasn't"
                yield Answer(message=Message.error_of(request.id, INVALID_REQUEST, why))
            else:
                async with self._begin(outgoing, stop) as answer:
                    yield answer
            return
        async with self._carried(call, request, stop, answers) as answer:
            yield answer

    @asynccontextmanager
    async def _carried(
        self, call: Running, request: Message, stop: Stop, answers: Mapping[str, Raw] | None = None
    ) -> AsyncGenerator[Answer, None]:
        """Read a call until it is answered or parked; where the caller leaves before, it ends."""
        try:
            if answers is not None:
                await call.resume(answers)
                if call.questions:
                    yield Answer(message=self._park(call, request))
                    return
            try:
                first = await call.first(stop)
            except Stopped:
                yield Answer(frames=_nothing())
                return
            if isinstance(first, Answer):
                yield first
            elif first is not None and first.is_answer:
                yield Answer(message=self._final(first, request, call.session))
            else:
                yield Answer(frames=self._frames(call, first, request, stop))
        finally:
            if call not in self._parked:
                await call.aclose()

    async def _frames(self, call: Running, first: Message | None, request: Message, stop: Stop) -> AsyncIterator[Frame]:
        try:
            async for message in call.messages(stop, first, request.meta.get("progressToken"), _level(request)):
                yield Frame(self._final(message, request, call.session) if message.is_answer else message)
        except Stopped:
            return
        if call.questions:
            yield Frame(self._park(call, request))

    def _final(self, message: Message, request: Message, session: Session) -> Message:
        """The server's answer in the modern form."""
        if message.error_code == URL_REQUIRED and request.method in INPUT_METHODS:
            visit = Visit(message)
            if not visit.questions:
                return modern_answer(message, request, self._server_info)
            if self._parked.full:
                return Message.error_of(request.id, INTERNAL_ERROR, "too many calls wait for input")
            if any(refusal(question, session.can) for question in visit.questions.values()):
                needed: Any = {"requiredCapabilities": {"elicitation": {"url": {}}}}
                why = "the server requires a URL to be visited first"
                return Message.error_of(request.id, MISSING_CAPABILITY, why, needed)
            return self._park(visit, request)
        return modern_answer(message, request, self._server_info)

    def _park(self, call: Running | Visit, request: Message) -> Message:
        wanted = {name: input_request(question) for name, question in call.questions.items()}
        result: dict[str, Any] = {
            "resultType": "input_required",
            "inputRequests": wanted,
            "requestState": self._parked.park(call, request),
        }
        if self._server_info is not None:
            result["_meta"] = {SERVER_INFO: self._server_info}
        return Message.result_of(request.id or b"null", result)

    @asynccontextmanager
    async def _listen(self, request: Message, stop: Stop) -> AsyncGenerator[Answer, None]:
        wanted = Wanted.of(request)
        if wanted is None:
            yield Answer(message=Message.error_of(request.id, INVALID_PARAMS, "a subscription says what it is for"))
            return
        meta = request.meta
        capabilities = capabilities_for_handshake(meta.get(CAPABILITIES))
        async with (
            self._using(capabilities, meta.get(CLIENT_INFO)) as session,
            subscribed(session, wanted) as listener,
        ):
            yield Answer(frames=listener.frames(request, stop))

    @asynccontextmanager
    async def _using(self, capabilities: Object, info: Raw | None) -> AsyncGenerator[Session, None]:
        session = await self._session(capabilities, info)
        session.used += 1
        try:
            yield session
        finally:
            session.used -= 1

    async def _session(self, capabilities: Object, info: Raw | None) -> Session:
        if self._closed:
            raise LinkLost("the link was closed", sent=False)
        key = json.dumps({name: loads(value) for name, value in capabilities.items()}, sort_keys=True)
        task = self._sessions.pop(key, None)
        if task is not None and _is_over(task):
            self._start(self._close(task))
            task = None
        if task is None:
            self._make_room()
            task = asyncio.create_task(self._open(capabilities, info))
        # At the end stands what was used last.
        self._sessions[key] = task
        return await asyncio.shield(task)

    async def _open(self, capabilities: Object, info: Raw | None) -> Session:
        params: Object = {
            "protocolVersion": Raw(dumps(HANDSHAKES[-1])),
            "capabilities": Raw(dumps(capabilities)),
            "clientInfo": info
            if info is not None and split(info)
            else Raw(dumps({"name": "hotplug", "version": own_version()})),
        }
        link = await self._open_legacy(params)
        self._learn(link.hello)
        return Session(link, declared(capabilities), self._tell)

    def _make_room(self) -> None:
        if len(self._sessions) < self._most_sessions:
            return
        for key, task in self._sessions.items():
            if _is_over(task) or (task.done() and not task.result().busy):
                del self._sessions[key]
                self._start(self._close(task))
                return
        raise LinkLost(
            f"the server has one session for each set of client capabilities, and all {self._most_sessions} are in use",
            sent=False,
        )

    async def _close(self, task: asyncio.Task[Session]) -> None:
        task.cancel()
        found = await asyncio.gather(task, return_exceptions=True)
        if isinstance(found[0], Session):
            await found[0].aclose()

    def _start(self, job: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(job)
        self._jobs.add(task)
        task.add_done_callback(self._jobs.discard)

    def _learn(self, hello: Hello) -> None:
        self._hello = modern_hello(hello)
        self._server_info = (split(self._hello.result["_meta"]) or {}).get(SERVER_INFO)

    def _tell(self, method: str) -> None:
        for told in tuple(self._told):
            told(method)


def _is_over(task: asyncio.Task[Session]) -> bool:
    if not task.done():
        return False
    return task.cancelled() or task.exception() is not None or task.result().link.lost is not None


def _downward(outgoing: Outgoing) -> Outgoing:
    headers = {name: value for name, value in outgoing.headers.items() if name.startswith("trace")}
    return Outgoing(legacy_request(outgoing.message), headers, outgoing.scope)


def _answers(request: Message) -> dict[str, Raw]:
    raw = request.params.get("inputResponses")
    given = (split(raw) if raw is not None else None) or {}
    return {name: value for name, value in given.items() if bytes(value).startswith(b"{")}


def _level(request: Message) -> str | None:
    raw = request.meta.get(LOG_LEVEL)
    level = loads(raw) if raw is not None else None
    return level if isinstance(level, str) else None


async def _nothing() -> AsyncIterator[Frame]:
    return
    yield  # pragma: no cover
