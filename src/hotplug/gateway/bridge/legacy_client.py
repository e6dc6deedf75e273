"""A legacy link on top of a modern one: for a legacy client in front of an upstream that speaks only 2026-07-28."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from itertools import count
from types import TracebackType
from typing import Any, Final, Self

from msgspec import Raw

from hotplug.gateway.bridge.headers import mirrored, routing
from hotplug.gateway.bridge.listening import Listening, NotHeard
from hotplug.gateway.bridge.stopping import Stop, Stopped
from hotplug.gateway.bridge.words import (
    CAPABILITIES,
    CLIENT_INFO,
    LEVELS,
    LOG_LEVEL,
    MODERN_ONLY,
    PROTOCOL,
    asked,
    capabilities_for_request,
    declared,
    is_input_required,
    items,
    legacy_answer,
    legacy_hello,
    legacy_note,
    modern_request,
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

__all__ = ["LegacyClientLink", "bridged"]

_FIRST_PAUSE: Final = 0.05
_LONGEST_PAUSE: Final = 1.0
_HEADER_MISMATCH: Final = -32020
_MOST_PAGES: Final = 100
_scopes: Final = count(1)


def bridged(link: Link, initialize: Object, *, log_level: str = "info", rounds: int = 32) -> LegacyClientLink:
    """A legacy link for one client session; closing it leaves the link below open.

    What the client said in its handshake goes with each request as the modern envelope. An upstream's `input_required`
    becomes requests of the server's to the client within the call, and the client's answers the retry. `ping`,
    `logging/setLevel`, `resources/subscribe` and `resources/unsubscribe` are answered here; notices of changes come
    from one `subscriptions/listen` of the session's own, which is there while somebody waits for them.

    Args:
        link: The modern link below, also a shared one.
        initialize: The params of the client's `initialize`.
        log_level: What is logged for the client until it sets a level itself.
        rounds: How often the upstream may ask for input in one call.
    """
    return LegacyClientLink(link, initialize, log_level=log_level, rounds=rounds)


class LegacyClientLink:
    """See `bridged`.

    Args:
        below: The modern link, for what has to know more than a legacy client is told (how long lists may be kept).
    """

    def __init__(self, below: Link, initialize: Object, *, log_level: str, rounds: int) -> None:
        self.below = below
        wanted = loads(initialize["protocolVersion"]) if "protocolVersion" in initialize else None
        self._hello = legacy_hello(below.hello, wanted if isinstance(wanted, str) else None)
        self._server = split(self._hello.result["capabilities"]) or {}
        capabilities = capabilities_for_request(initialize.get("capabilities"))
        self._can = declared(capabilities)
        self._envelope: dict[str, Any] = {
            PROTOCOL: below.hello.protocol,
            CAPABILITIES: Raw(dumps(capabilities)),
            CLIENT_INFO: initialize.get("clientInfo"),
            LOG_LEVEL: log_level if "logging" in self._server else None,
        }
        self._rounds = rounds
        self._scope = f"bridge-{next(_scopes)}"
        self._ids = count(1)
        self._running: dict[tuple[str, bytes], Stop] = {}
        self._questions: dict[bytes, asyncio.Future[Message]] = {}
        self._schemas: dict[str, Any] = {}
        self._told: list[Callable[[str], None]] = []
        self._closed = False
        self._listening = Listening(below, self._server, lambda: self._envelope, self._scope, self._tell)
        self._unhook = below.on_change(self._lost_below)

    @property
    def era(self) -> Era:
        return "legacy"

    @property
    def hello(self) -> Hello:
        return self._hello

    @property
    def lost(self) -> str | None:
        return "it was closed" if self._closed else self.below.lost

    @property
    def busy(self) -> bool:
        """Whether a request is under way."""
        return bool(self._running)

    @asynccontextmanager
    async def exchange(self, outgoing: Outgoing) -> AsyncGenerator[Answer, None]:
        own = await self._own_answer(outgoing.message)
        if own is not None:
            yield Answer(message=own)
            return
        stop = Stop()
        key = (outgoing.scope, outgoing.message.id or b"null")
        self._running[key] = stop
        try:
            async with _Call(self, outgoing, stop) as call:
                try:
                    answer = await call.answer()
                except Stopped:
                    answer = Answer(frames=_nothing())
                yield answer
        finally:
            if self._running.get(key) is stop:
                del self._running[key]

    async def send(self, message: Message, *, scope: str = "", headers: Mapping[str, str] | None = None) -> None:
        if message.is_answer:
            question = self._questions.pop(message.id or b"null", None)
            if question is not None and not question.done():
                question.set_result(message)
        elif message.method == "notifications/cancelled":
            stop = self._running.get((scope, bytes(message.params.get("requestId", b"null"))))
            if stop is not None:
                stop.stop()
        elif message.method not in _UNTOLD:
            await self.below.send(message, scope=scope, headers=headers)

    async def general(self) -> AsyncIterator[Frame]:
        self._listening.start()
        while (notice := await self._listening.notices.next()) is not None:
            yield Frame(notice)

    @asynccontextmanager
    async def resume(self, event_id: str) -> AsyncGenerator[Answer, None]:
        yield Answer(body=b"", status=405)

    def on_change(self, told: Callable[[str], None]) -> Callable[[], None]:
        self._told.append(told)
        self._listening.start()
        return lambda: self._told.remove(told) if told in self._told else None

    async def aclose(self) -> None:
        self._closed = True
        self._unhook()
        for stop in self._running.values():
            stop.stop()
        await self._listening.aclose()

    async def _own_answer(self, message: Message) -> Message | None:
        id_ = message.id or b"null"
        match message.method:
            case "initialize":
                return Message.result_of(id_, self._hello.result)
            case "ping":
                return Message.result_of(id_, {})
            case "logging/setLevel":
                return self._set_level(message)
            case "resources/subscribe" | "resources/unsubscribe":
                return await self._subscribe(message)
            case method if method in MODERN_ONLY:
                return not_found(message)
            case _:
                return None

    def _set_level(self, message: Message) -> Message:
        level = message.text("level")
        if "logging" not in self._server:
            return not_found(message)
        if level not in LEVELS:
            return Message.error_of(message.id, INVALID_PARAMS, f"the level is one of {', '.join(LEVELS)}")
        self._envelope[LOG_LEVEL] = level
        return Message.result_of(message.id or b"null", {})

    async def _subscribe(self, message: Message) -> Message:
        resources = split(self._server["resources"]) if "resources" in self._server else None
        if bytes((resources or {}).get("subscribe", b"")) != b"true":
            return not_found(message)
        uri = message.text("uri")
        if uri is None:
            return Message.error_of(message.id, INVALID_PARAMS, "a subscription names a uri")
        try:
            if message.method == "resources/subscribe":
                await self._listening.subscribe(uri)
            else:
                await self._listening.unsubscribe(uri)
        except NotHeard as refused:
            if refused.answer is not None:
                return legacy_answer(refused.answer, message)
            return Message.error_of(message.id, INVALID_REQUEST, f"the server sends no notices of {uri[:200]}")
        return Message.result_of(message.id or b"null", {})

    def fresh_id(self) -> str:
        """An id of our own, for a request in either direction."""
        return f"{self._scope}-{next(self._ids)}"

    def upward(self, outgoing: Outgoing, message: Message) -> Outgoing:
        """A request as the modern server shall see it."""
        message = modern_request(message, self._envelope)
        headers = {name: value for name, value in outgoing.headers.items() if name.startswith("trace")}
        headers.update(routing(message))
        schema = self._schemas.get(message.text("name") or "") if message.method == "tools/call" else None
        if schema is not None:
            headers.update(mirrored(schema, message.value("arguments")))
        return Outgoing(message, headers, outgoing.scope)

    def learn(self, listed: Message) -> None:
        """Keep the input schemas of listed tools whose arguments go into headers too."""
        for tool in _tools(listed):
            if b'"x-mcp-header"' in bytes(tool.get("inputSchema", b"")):
                self._schemas[loads(tool["name"])] = loads(tool["inputSchema"])

    async def learn_all(self) -> None:
        """Read the whole list of tools for their schemas."""
        cursor: str | None = None
        for _ in range(_MOST_PAGES):
            params = {"cursor": cursor} if cursor else {}
            listing = Outgoing(Message.request(self.fresh_id(), "tools/list", params))
            found = await _only(self.below, self.upward(listing, listing.message))
            if found is None:
                return
            self.learn(found)
            raw = found.result.get("nextCursor")
            cursor = loads(raw) if raw is not None else None
            if not isinstance(cursor, str):
                return

    def can(self, question: Message) -> str | None:
        """Why the client can't be asked this; None where it can."""
        found = refusal(question, self._can)
        return found.message if found else None

    @property
    def rounds(self) -> int:
        """How often a server may ask in one call."""
        return self._rounds

    @property
    def told_of_ends(self) -> bool:
        """Whether the client's revision knows the notice that a visit of a URL is over."""
        return self._hello.protocol == "2025-11-25"

    def ask(self, question: Message) -> asyncio.Future[Message]:
        """What will be the client's answer."""
        answer: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        id_ = question.id or b"null"
        self._questions[id_] = answer
        answer.add_done_callback(lambda _: self._questions.pop(id_, None))
        return answer

    def _tell(self, method: str) -> None:
        for told in tuple(self._told):
            told(method)

    def _lost_below(self, method: str) -> None:
        # Lists are told by our own stream; others' notices on a shared link are no news of this session's.
        if method == "lost":
            self._listening.notices.end()
            self._tell(method)


class _Call:
    """One request of the client's, and all that it takes at the server."""

    def __init__(self, bridge: LegacyClientLink, outgoing: Outgoing, stop: Stop) -> None:
        self._bridge = bridge
        self._outgoing = outgoing
        self._request = outgoing.message
        self._stop = stop
        self._below: Any = None
        self._asked: list[asyncio.Future[Message]] = []
        self._visits: list[str] = []
        self._rounds = 0
        self._pause = _FIRST_PAUSE

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for question in self._asked:
            question.cancel()
        self._asked = []
        below, self._below = self._below, None
        if below is not None:
            await below.__aexit__(kind, error, trace)

    async def answer(self) -> Answer:
        """As far as it comes at once."""
        answer = await self._send(self._request)
        if answer.body is not None:
            return answer
        final = answer.message
        if final is not None and self._is_mismatch(final):
            # The tool wants arguments in headers as well, and refused before doing anything.
            await self._bridge.learn_all()
            answer = await self._send(self._request)
            final = answer.message
        if final is not None and not is_input_required(final):
            return Answer(message=self._finished(final))
        return Answer(frames=self._frames(answer))

    def _is_mismatch(self, final: Message) -> bool:
        return self._request.method == "tools/call" and final.error_code == _HEADER_MISMATCH

    async def _send(self, message: Message) -> Answer:
        await self.__aexit__(None, None, None)
        return await self._stop.wait(self._enter(self._bridge.upward(self._outgoing, message)))

    async def _enter(self, outgoing: Outgoing) -> Answer:
        below = self._bridge.below.exchange(outgoing)
        answer = await below.__aenter__()
        self._below = below
        return answer

    async def _frames(self, answer: Answer) -> AsyncIterator[Frame]:
        try:
            while True:
                final = answer.message
                while final is None and answer.frames is not None:
                    try:
                        frame = await self._stop.wait(anext(answer.frames))
                    except StopAsyncIteration:
                        return
                    if frame.message is not None and frame.message.is_answer:
                        final = frame.message
                    elif frame.message is not None and (note := legacy_note(frame.message)) is not None:
                        yield Frame(note)
                if final is None:
                    raise LinkLost(f"the server answered a retry with status {answer.status}", sent=True)
                if not is_input_required(final):
                    for note in self._visited():
                        yield Frame(note)
                    yield Frame(self._finished(final))
                    return
                await self.__aexit__(None, None, None)
                questions = self._questions(final)
                if isinstance(questions, Message):
                    yield Frame(questions)
                    return
                answers = {name: self._bridge.ask(question) for name, question in questions.items()}
                self._asked = list(answers.values())
                for question in questions.values():
                    yield Frame(question)
                retry = await self._retry(final, answers)
                if retry.is_answer:
                    yield Frame(retry)
                    return
                try:
                    answer = await self._send(retry)
                except LinkLost as lost:
                    # The retry may not have been sent; what it goes on with was.
                    raise LinkLost(lost.reason, sent=True) from None
        except Stopped:
            return

    def _questions(self, final: Message) -> dict[str, Message] | Message:
        """What the client has to be asked, or the error that ends the call."""
        self._rounds += 1
        if self._rounds > self._bridge.rounds:
            return self._failed(INTERNAL_ERROR, f"the server asked for input more than {self._bridge.rounds} times")
        raw = final.result.get("inputRequests")
        questions: dict[str, Message] = {}
        for name, wanted in ((split(raw) if raw is not None else None) or {}).items():
            question = asked(self._bridge.fresh_id(), wanted)
            reason = "it isn't one" if question is None else self._bridge.can(question)
            if question is None or reason is not None:
                return self._failed(INVALID_REQUEST, f"the server asked what can't be asked of the client: {reason}")
            if (visit := question.text("elicitationId")) is not None and question.text("mode") == "url":
                self._visits.append(visit)
            questions[name] = question
        return questions

    async def _retry(self, final: Message, answers: Mapping[str, asyncio.Future[Message]]) -> Message:
        """The request again, with what the client answered; or the client's error, which ends the call."""
        responses: dict[str, Raw] = {}
        if answers:
            self._pause = _FIRST_PAUSE
            for name, answered in zip(answers, await self._stop.wait(asyncio.gather(*answers.values())), strict=True):
                if "result" not in answered.fields:
                    return answered.with_id(Raw(self._request.id or b"null"))
                responses[name] = answered.fields["result"]
        else:
            await self._stop.wait(asyncio.sleep(self._pause))
            self._pause = min(2 * self._pause, _LONGEST_PAUSE)
        changes = {"inputResponses": responses or None, "requestState": final.result.get("requestState")}
        return self._request.with_id(self._bridge.fresh_id()).with_params(changes)

    def _finished(self, final: Message) -> Message:
        if self._request.method == "tools/list":
            self._bridge.learn(final)
        return legacy_answer(final, self._request)

    def _visited(self) -> list[Message]:
        visits = self._visits if self._bridge.told_of_ends else []
        return [
            Message.notification("notifications/elicitation/complete", {"elicitationId": visit}) for visit in visits
        ]

    def _failed(self, code: int, why: str) -> Message:
        return Message.error_of(self._request.id, code, why)


_UNTOLD: Final = frozenset({"notifications/initialized", "notifications/progress", "notifications/roots/list_changed"})
"""What a legacy client says that the modern era has no word for."""


async def _only(link: Link, outgoing: Outgoing) -> Message | None:
    """The answer alone, without what comes before it."""
    async with link.exchange(outgoing) as answer:
        if answer.frames is None:
            return answer.message
        async for frame in answer.frames:
            if frame.message is not None and frame.message.is_answer:
                return frame.message
    return None


def _tools(listed: Message) -> list[Object]:
    raw = listed.result.get("tools", Raw(b"[]"))
    if b'"x-mcp-header"' not in bytes(raw):
        return []
    tools = (split(tool) for tool in items(raw))
    return [tool for tool in tools if tool is not None and bytes(tool.get("name", b""))[:1] == b'"']


async def _nothing() -> AsyncIterator[Frame]:
    return
    yield  # pragma: no cover
