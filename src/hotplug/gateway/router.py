"""The way of each request: who it is for, whether it may pass, and what has to change on the way.

One request goes to one upstream wherever it can, and its bytes pass as they are; lists, hellos and subscriptions are
joined of several. Nothing here knows a transport.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final, cast

from hotplug.connect.secrets import NoSecrets, Secrets
from hotplug.errors import ConnectionFailed, PermissionDenied
from hotplug.gateway.authorizing import WAIT, Ask, agreed
from hotplug.gateway.calls import Calls
from hotplug.gateway.catalog import KINDS, ListKind
from hotplug.gateway.eras import LOG_LEVEL_META, NAMED_BY, encode_header
from hotplug.gateway.hellos import joined_hello, negotiated
from hotplug.gateway.link import Answer, Frame, LinkLost, Outgoing
from hotplug.gateway.listening import listen
from hotplug.gateway.message import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    Message,
    Object,
    Raw,
    dumps,
    loads,
    split,
)
from hotplug.gateway.names import Holder
from hotplug.gateway.noting import Noting
from hotplug.gateway.readdressing import readdressed
from hotplug.gateway.records import Records
from hotplug.gateway.routes import Refusal, Route, capabilities_of, link_of
from hotplug.gateway.states import StateSeal
from hotplug.gateway.tracing import Tracing, caller_context
from hotplug.gateway.uris import fitting
from hotplug.gateway.view import Caller, Known, View
from hotplug.serve import AUTHORIZED_META

__all__ = ["Router"]

_RESOURCE_NOT_FOUND: Final = -32002
_STRIPPED: Final = frozenset({AUTHORIZED_META})
"""What only the gateway may say in a request's `_meta`."""
_HELLO_WAIT: Final = 3.0
"""Seconds that a hello waits for servers: some clients give up after five, and probe anew after ten."""
_LISTS: Final[Mapping[str, ListKind]] = {method: kind for kind, (method, _, _) in KINDS.items()}
_LEGACY_ONLY: Final = frozenset(
    {"initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"}
)
_ALWAYS: Final = frozenset({"initialize", "ping", "server/discover"})
"""What is answered to a thread too that is refused: that it is connected, to nothing."""
_logger = logging.getLogger(__name__)
_PASSED: Final = frozenset({"mcp-protocol-version", "traceparent", "tracestate"})


class Router:
    """Answers requests, and passes on what clients say besides.

    Args:
        seal: Binds the states of multi-round requests.
        secrets: That callers may name in sensitive fields; default: none.
        records: Takes a record of each call; None keeps none.
        tracing: Makes spans.
    """

    def __init__(
        self,
        view: View,
        seal: StateSeal,
        *,
        secrets: Secrets | None = None,
        records: Records | None = None,
        tracing: Tracing | None = None,
    ) -> None:
        self.view = view
        self.served: set[str] = set()
        """Threads that something was answered to, until they are closed."""
        self._seal = seal
        self._calls = Calls(view, seal, secrets or NoSecrets())
        self._records = records
        self._tracing = tracing or Tracing()
        self._routes: dict[str, Callable[[Caller, Message], Any]] = {
            "prompts/get": self._prompt,
            "resources/read": self._resource,
            "resources/subscribe": self._resource,
            "resources/unsubscribe": self._resource,
            "completion/complete": self._completion,
        }

    @asynccontextmanager
    async def handle(self, caller: Caller, message: Message) -> AsyncGenerator[Answer]:
        """Answer one request; leaving the block early cancels it."""
        self.served.add(caller.thread)
        context = caller_context(message.meta, caller.headers or {})
        span = self._tracing.serving(message.method or "", context, thread=caller.thread)
        with Noting(self._records, span, caller.thread, message) as noting:
            async with self._answer(caller, message, noting) as answer:
                if answer.message is not None:
                    noting.answered(answer.message)
                yield answer

    @asynccontextmanager
    async def _answer(
        self, caller: Caller, message: Message, noting: Noting, *, authorized: str | None = None
    ) -> AsyncGenerator[Answer]:
        id_ = message.id or b"null"
        try:
            if message.method not in _ALWAYS and self.view.grants.refuses(caller.thread):
                # An error, and no empty success: nobody takes it for a thread that is to have nothing.
                raise PermissionDenied("this thread is given nothing now; its owner is told why")
            own = await self._own(caller, message)
            route = own if own is not None else await self._route(caller, message, noting, authorized=authorized)
            if isinstance(route, Answer):
                yield route
                return
            if isinstance(route, Ask):
                async with contextlib.aclosing(self._asked(caller, message, noting, route)) as frames:
                    yield Answer(frames=frames)
                return
        except Refusal as refusal:
            noting.refused()
            yield Answer(message=Message.error_of(id_, refusal.code, refusal.message, refusal.data))
            return
        except ConnectionFailed as error:
            yield Answer(message=_failed(id_, error.code, str(error), error.details))
            return
        except Exception as error:
            # Its text may repeat anything.
            _logger.error("%s failed inside the gateway", message.method, exc_info=error)
            yield Answer(message=Message.error_of(id_, INTERNAL_ERROR, "Internal error"))
            return
        async with contextlib.AsyncExitStack() as stack:
            if caller.session is not None:
                stack.enter_context(caller.session.flight(id_, route.known.server))
            headers = self._headers(caller, route.message, route.headers)
            outgoing = Outgoing(self._traced(route.message, noting), headers, caller.scope)
            try:
                answer = await stack.enter_async_context(route.link.exchange(outgoing))
            except LinkLost as lost:
                yield Answer(message=_lost(id_, route.known.server, lost))
                return
            yield self._down(caller, route, answer, id_, noting)

    async def _asked(self, caller: Caller, message: Message, noting: Noting, ask: Ask) -> AsyncGenerator[Frame]:
        """A call of the handshake era that waits for a person's yes, and is then decided anew and made."""
        session = caller.session
        assert session is not None
        with session.asking("elicitation/create", ask.params) as (question, reply):
            yield Frame(question)
            try:
                async with asyncio.timeout(WAIT):
                    answer = await reply
            except TimeoutError:
                answer = None
        result = answer.fields.get("result") if answer is not None else None
        if not agreed(loads(result) if result is not None else None):
            refused = self._calls.refused(caller, message, ask)
            noting.answered(refused)
            yield Frame(refused)
            return
        async with self._answer(caller, message, noting, authorized=ask.what) as made:
            if made.message is not None:
                noting.answered(made.message)
                yield Frame(made.message)
            elif made.frames is not None:
                async for frame in made.frames:
                    yield frame
            else:
                yield Frame(_failed(message.id or b"null", "internal", f"HTTP status {made.status}", {}))

    def _traced(self, message: Message, noting: Noting) -> Message:
        """The request with the trace that it is part of now, where it was part of one."""
        carried = noting.span.outgoing
        return message.with_meta(dict(carried)) if carried and "traceparent" in message.meta else message

    async def accept(self, caller: Caller, message: Message) -> None:
        """Take a notification, or a client's answer to a server's request; neither is ever answered."""
        session = caller.session
        if session is None:
            return  # The modern era has neither over HTTP; over streams only cancellation, which the front does.
        if message.is_answer:
            found = session.answered(message)
            if found is not None:
                server, answer = found
                await self._tell(caller, server, answer)
            return
        if message.method == "notifications/initialized":
            return
        for server in self._addressed(caller, message):
            await self._tell(caller, server, message)

    def _addressed(self, caller: Caller, message: Message) -> list[str]:
        session = caller.session
        assert session is not None
        if message.method == "notifications/cancelled":
            raw = message.params.get("requestId")
            server = session.flying(bytes(raw)) if raw is not None else None
            return [server] if server is not None else []
        if message.method == "notifications/progress":
            raw = message.params.get("progressToken")
            server = session.asked_by(bytes(raw)) if raw is not None else None
            return [server] if server is not None else []
        return list(session.links())

    async def _tell(self, caller: Caller, server: str, message: Message) -> None:
        assert caller.session is not None
        link = caller.session.links().get(server)
        if link is None or not self.view.grants.gives_server(caller.thread, server):
            return
        with contextlib.suppress(LinkLost):
            # Settled, as requests are: who reads the first of two equal keys must read what was read here.
            await link.send(message.settled(), scope=caller.scope)

    # What the gateway answers itself

    async def _own(self, caller: Caller, message: Message) -> Answer | None:
        method = message.method or ""
        id_ = message.id or b"null"
        kind = _LISTS.get(method)
        if kind is not None:
            return Answer(message=Message.result_of(id_, await self._list(caller, message, kind)))
        if method == "server/discover" and caller.era == "modern":
            return Answer(message=Message.result_of(id_, await self.hello(caller)))
        if method == "subscriptions/listen" and caller.era == "modern":
            known = await self.view.all_known(caller)
            return Answer(frames=listen(self.view, caller, message, known))
        if caller.era == "legacy":
            if method == "ping":
                return Answer(message=Message.result_of(id_, {}))
            if method == "logging/setLevel":
                return await self._set_level(caller, message)
        return None

    async def hello(self, caller: Caller) -> Object:
        """What the gateway says of itself to this caller."""
        servers = self.view.servers(caller)
        said = {server: await self.view.upstreams.remembered(server, caller.era) for server in servers}
        # The only one, never seen before, has all the time that it would have at the client itself.
        only = len(servers) == 1 and said[servers[0]] is None
        known = await self.view.all_known(caller, wait=None if only else _HELLO_WAIT)
        said |= {one.server: one.link.hello if one.link is not None else None for one in known}
        hellos = [(server, hello) for server, hello in said.items() if hello is not None]
        told = [(server, hello) for server, hello in hellos if self.view.gives_words(caller.thread, server)]
        asked = caller.session.initialize.get("protocolVersion") if caller.session is not None else None
        protocol = negotiated(loads(asked) if asked is not None else None)
        if caller.session is not None:
            caller.session.protocol = protocol
        speaking = [server for server in servers if self.view.upstreams.speaks(server)]
        silent = set(speaking).difference(one.server for one in known if self.view.has_raw(one, caller))
        return joined_hello(
            caller.era,
            told,
            alone=len(hellos) == len(servers) == 1 and not speaking,
            protocol=protocol,
            extensions=self._extensions(caller),
            own_tools=bool(speaking),
            silent=silent,
            late=len(hellos) + len([one for one in known if one.link is None]) < len(servers),
        )

    def _extensions(self, caller: Caller) -> Mapping[str, Any]:
        """What the gateway declares of profiles: to clients that know them, since the others get no `connection.*`."""
        if not caller.aware:
            return {}
        declaration = self.view.upstreams.instances.declaration(self.view.allowed(caller))
        return declaration.to_extensions() if declaration.cards else {}

    async def _list(self, caller: Caller, message: Message, kind: ListKind) -> Object:
        if message.params.get("cursor") is not None:
            raise Refusal(INVALID_PARAMS, "no list here has a second page: leave the cursor out")
        known = await (self.view.all_known(caller) if kind == "tools" else self._telling(caller))
        alone = len(known) == len(self.view.servers(caller)) == 1
        if alone and not known[0].catalog.of(kind).offered and kind != "tools":
            raise Refusal(METHOD_NOT_FOUND, "Method not found")
        items = self.view.toolset(known, caller).listed if kind == "tools" else self.view.others(kind, known)
        return self.view.list_of(kind, known, caller, items)

    async def _set_level(self, caller: Caller, message: Message) -> Answer:
        id_ = message.id or b"null"
        known = [one for one in await self._telling(caller) if "logging" in capabilities_of(one)]
        if not known:
            raise Refusal(METHOD_NOT_FOUND, "Method not found")
        answers = await asyncio.gather(*(self._ask(caller, one, message) for one in known))
        good = [answer for answer in answers if answer is not None and answer.kind == "result"]
        bad = [answer for answer in answers if answer is not None and answer.kind == "error"]
        return Answer(message=(good or bad or [_failed(id_, "unavailable", "no server took the level", {})])[0])

    async def _ask(self, caller: Caller, known: Known, message: Message) -> Message | None:
        """A request of which only the answer counts; None where the server was lost."""
        link = known.link
        if link is None:
            return None
        try:
            outgoing = Outgoing(message.settled(), self._headers(caller, message), caller.scope)
            async with link.exchange(outgoing) as answer:
                if answer.frames is None:
                    return answer.message
                async for frame in answer.frames:
                    if frame.message is not None and frame.message.is_answer:
                        return frame.message
                    if caller.session is not None and frame.message is not None:
                        caller.session.tell(caller.session.down(known.server, frame))
        except LinkLost:
            pass
        return None

    # Where the others go

    async def _route(
        self, caller: Caller, message: Message, noting: Noting, *, authorized: str | None
    ) -> Route | Answer | Ask:
        method = message.method or ""
        if caller.era == "modern" and method in _LEGACY_ONLY:
            raise Refusal(METHOD_NOT_FOUND, "Method not found")
        if not _STRIPPED.isdisjoint(message.meta):
            message = message.with_meta(dict.fromkeys(_STRIPPED))
        if method == "tools/call":
            found = await self._calls.route(caller, message, noting, authorized=authorized)
            if isinstance(found, Answer | Ask):
                return found
            route = found
        else:
            router = self._routes.get(method)
            route = cast(
                "Route", await (router(caller, message) if router is not None else self._foreign(caller, message))
            )
        noting.server = route.known.server
        changes: dict[str, Any] = {}
        if LOG_LEVEL_META in route.message.meta and route.known.mixed:
            # Nobody can tell whose log message comes out of a pipe that several threads use.
            changes[LOG_LEVEL_META] = None
        state = route.message.text("requestState")
        moved = route.message
        if state is not None:
            opened = self._seal.open(state, thread=caller.thread, server=route.known.server, what=route.what)
            if opened is None:
                raise Refusal(INVALID_PARAMS, "Invalid requestState")
            moved = moved.with_param("requestState", opened)
        route.message = moved.with_meta(changes) if changes else moved.settled()
        return route

    async def _prompt(self, caller: Caller, message: Message) -> Route:
        name = message.text("name")
        found = await self._named(caller, "prompts", name)
        if found is None:
            raise Refusal(INVALID_PARAMS, f"Unknown prompt: {name}")
        known, own = found
        moved = message if own == name else message.with_param("name", own)
        return Route(known, link_of(known), moved, f"prompts/get {own}")

    async def _resource(self, caller: Caller, message: Message) -> Route:
        uri = message.text("uri")
        found = await self._located(caller, uri)
        if found is None:
            code = _RESOURCE_NOT_FOUND if caller.era == "legacy" else INVALID_PARAMS
            raise Refusal(code, f"Resource not found: {uri}", {"uri": uri})
        known, own = found
        if caller.session is not None and message.method != "resources/read":
            mine = caller.session.subscribed.setdefault(known.server, set())
            mine.add(own) if message.method == "resources/subscribe" else mine.discard(own)
        moved = message if own == uri else message.with_param("uri", own)
        return Route(known, link_of(known), moved, f"{message.method} {own}")

    async def _completion(self, caller: Caller, message: Message) -> Route:
        raw = message.params.get("ref")
        ref = (split(raw) if raw is not None else None) or {}
        kind, key = _text(ref, "type"), ""
        found: tuple[Known, str] | None = None
        if kind == "ref/prompt":
            key = "name"
            found = await self._named(caller, "prompts", _text(ref, key))
        elif kind == "ref/resource":
            key = "uri"
            found = await self._located(caller, _text(ref, key))
        if found is None:
            raise Refusal(INVALID_PARAMS, "params.ref names nothing that there is")
        # Written anew in any case: a key that is given twice in it is read here as it is read there.
        moved = message.with_param("ref", {**ref, key: Raw(dumps(found[1]))})
        return Route(found[0], link_of(found[0]), moved, "completion/complete")

    async def _telling(self, caller: Caller) -> list[Known]:
        """The servers whose prompts and resources are the caller's too."""
        known = await self.view.all_known(caller)
        return [one for one in known if self.view.gives_words(caller.thread, one.server, one.catalog.tools.by_name)]

    async def _named(self, caller: Caller, kind: ListKind, exposed: str | None) -> tuple[Known, str] | None:
        if exposed is None:
            return None
        known = await self._telling(caller)
        meant = self.view.book.meant(kind, exposed)
        if meant is None:
            return None
        server, own = meant
        for one in known:
            if one.server == server and own in one.catalog.of(kind).by_name:
                return one, own
        return None

    async def _located(self, caller: Caller, uri: str | None) -> tuple[Known, str] | None:
        """The server that a URI belongs to, among those of the caller."""
        if uri is None:
            return None
        known = {one.server: one for one in await self._telling(caller) if "resources" in capabilities_of(one)}
        holder = fitting(
            uri,
            resources=self._offered(known, "resources"),
            templates=self._offered(known, "templates"),
            offering=tuple(known),
        )
        return (known[holder[0]], holder[1]) if holder is not None else None

    def _offered(self, known: Mapping[str, Known], kind: ListKind) -> dict[str, Holder]:
        found: dict[str, Holder] = {}
        for server, one in known.items():
            for name in one.catalog.of(kind).by_name:
                exposed = self.view.book.exposed(server, kind, name)
                if exposed is not None:
                    found[exposed] = (server, name)
        return found

    async def _foreign(self, caller: Caller, message: Message) -> Route:
        """A method that isn't the protocol's own goes where there is only one place for it.

        What it does nobody knows here. So where some tools of its server are off it isn't passed on: it may use them.
        """
        upstreams = self.view.upstreams
        servers = [server for server in self.view.servers(caller) if not upstreams.in_process(server)]
        if len(servers) != 1 or not self.view.grants.gives_whole(caller.thread, servers[0]):
            raise Refusal(METHOD_NOT_FOUND, "Method not found")
        known = await self.view.known(servers[0], caller)
        return Route(known, link_of(known), message, message.method or "")

    # On the way

    def _headers(self, caller: Caller, message: Message, repeating: Mapping[str, str] | None = None) -> dict[str, str]:
        headers = {
            name: value
            for name, value in (caller.headers or {}).items()
            if name in _PASSED or (repeating is None and name.startswith("mcp-param-"))
        }
        headers |= repeating or {}
        if caller.era == "modern" and message.method is not None:
            headers["mcp-method"] = message.method
            key = NAMED_BY.get(message.method)
            named = message.text(key) if key is not None else None
            if named is not None:
                headers["mcp-name"] = encode_header(named)
        return headers

    def _down(self, caller: Caller, route: Route, answer: Answer, id_: bytes, noting: Noting) -> Answer:
        if answer.message is not None:
            answer.message = self._settle(caller, route, answer.message)
        elif answer.frames is not None:
            answer.frames = self._frames(caller, route, answer.frames, id_, noting)
        return answer

    async def _frames(
        self, caller: Caller, route: Route, frames: AsyncIterator[Frame], id_: bytes, noting: Noting
    ) -> AsyncIterator[Frame]:
        session = caller.session
        server = route.known.server
        try:
            async for frame in frames:
                message = frame.message
                if message is not None and message.is_answer and message.id == id_:
                    frame.message = self._settle(caller, route, message)
                    noting.answered(frame.message)
                yield session.down(server, frame) if session is not None else frame
        except LinkLost as lost:
            message = _lost(id_, server, lost)
            noting.answered(message)
            yield Frame(message)

    def _settle(self, caller: Caller, route: Route, message: Message) -> Message:
        """The last touch to an answer: a state that comes back has to come back to the same server."""
        if route.back is not None:
            message = route.back(message)
        if message.kind != "result":
            return message
        encoded = message.encode()
        if b'"uri"' in encoded and len(self.view.servers(caller)) > 1:
            server = route.known.server
            # What can't be looked into passes as it is.
            with contextlib.suppress(ValueError):
                before = message.result
                after = readdressed(before, lambda uri: self.view.address(server, uri, caller))
                if after is not before:
                    message = message.with_result(after)
        if b'"requestState"' not in encoded:
            return message
        result = message.result
        raw = result.get("requestState")
        state = loads(raw) if raw is not None else None
        if not isinstance(state, str):
            return message
        sealed = self._seal.seal(state, thread=caller.thread, server=route.known.server, what=route.what)
        if route.guarded:
            self._calls.authorizing.expect(sealed)
        return message.with_result({**result, "requestState": Raw(dumps(sealed))})


def _text(fields: Object, name: str) -> str | None:
    raw = fields.get(name)
    value = loads(raw) if raw is not None else None
    return value if isinstance(value, str) else None


def _lost(id_: bytes, server: str, lost: LinkLost) -> Message:
    state = "unknown" if lost.sent else "not_sent"
    words = "went away before it answered; it may or may not have done it" if lost.sent else "can't be reached"
    return _failed(id_, "disconnected", f"{server} {words}: {lost.reason}", {"state": state})


def _failed(id_: bytes, code: str, message: str, details: dict[str, Any]) -> Message:
    data = {"code": code, "message": message, "details": details}
    return Message.error_of(id_, INTERNAL_ERROR, message, data)
