"""The ways in which a server's profile operations are answered: by a runtime in here, or by the server itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, cast

from hotplug.declare import Declaration
from hotplug.errors import Internal
from hotplug.gateway.offers import Offer, RawRoute
from hotplug.gateway.passing import WINDOW, Passage, RemoteProvider, ThreadSeal, masked, opened_window
from hotplug.gateway.raw_channel import Conversation, raw_result_of
from hotplug.profile import Definition
from hotplug.serve import AUTHORIZED_META, INSTANCE_META, Answer, Provider, Runtime, Seal, Seals, result_of
from hotplug.store import Store

__all__ = ["Caller", "PassedVoice", "RuntimeVoice", "ThreadRuntime", "Voice"]

_GRACE: Final = 5.0
"""Seconds that a server has beyond a part's own limit."""


class ThreadRuntime(Runtime):
    """A runtime whose volatile refs die with what is behind, and are each thread's own."""

    def __init__(
        self, *providers: Provider, store: Store, identity: str, name: str, instance: Callable[[], str]
    ) -> None:
        super().__init__(*providers, store=store, identity=identity, name=name)
        key = store.sealing_key()
        self._of_threads = Seals(lambda thread: ThreadSeal(key, identity, thread, instance))

    def seal(self, principal: str) -> Seal:
        return self._of_threads.of(principal)


class Voice(Protocol):
    """One way of speaking."""

    @property
    def definitions(self) -> Sequence[Definition]: ...

    @property
    def declaration(self) -> Declaration: ...

    @property
    def title(self) -> str: ...

    @property
    def hidden(self) -> frozenset[str]: ...

    def offers(self, server: str, instance: str) -> dict[str, Offer]: ...

    async def call(self, part: str, arguments: Any, meta: Mapping[str, Any], by: Caller) -> dict[str, Any]: ...


@dataclass(frozen=True, slots=True)
class Caller:
    """On whose behalf a call is made, whether it is authorised, and at which of the server's own instances."""

    thread: str
    authorized: bool
    instance: str | None


@dataclass
class RuntimeVoice:
    """Parts that a runtime of ours answers: of a native server in here, of a projection, of one that keeps no keys."""

    runtime: Runtime
    hidden: frozenset[str] = frozenset()
    underlying: frozenset[str] = frozenset()
    mask: Callable[[str], str] = str

    @property
    def definitions(self) -> Sequence[Definition]:
        return [one.definition for one in self.runtime.providers]

    @property
    def declaration(self) -> Declaration:
        return self.runtime.declaration

    @property
    def title(self) -> str:
        return self.runtime.providers[0].title

    def offers(self, server: str, instance: str) -> dict[str, Offer]:
        return {
            name: Offer(bound, server, instance, self._under(bound.provider, name))
            for name, bound in self.runtime.bound.items()
        }

    def _under(self, provider: Provider, part: str) -> frozenset[str]:
        if isinstance(provider, RemoteProvider):
            way = provider.spoken.ways.get(part)
            return frozenset() if way is None else frozenset({way.tool})
        plans: Any = getattr(provider, "plans", None)
        plan = plans.get(part) if plans is not None else None
        if plan is None:
            return frozenset()
        # What its code calls is known of the whole only.
        return self.underlying if plan.result is None else frozenset(call.tool for call in plan.calls)

    async def call(self, part: str, arguments: Any, meta: Mapping[str, Any], by: Caller) -> dict[str, Any]:
        given = {key: value for key, value in meta.items() if key not in (AUTHORIZED_META, INSTANCE_META)}
        bound = self.runtime.bound.get(part)
        if by.authorized and bound is not None:
            given[AUTHORIZED_META] = [bound.member]
        seal = self.runtime.seal(by.thread)
        if part == "connection.window.close" and isinstance(arguments, dict):
            arguments = opened_window(seal, cast("dict[str, Any]", arguments))
        answer = await self.runtime.call(part, arguments, meta=given, principal=by.thread)
        if part == "connection.window.open" and not answer.is_error:
            # Another thread's window is none of this one's, whoever guesses its name.
            answer = Answer({**answer.content, "window": seal.seal(WINDOW, answer.content["window"])}, meta=answer.meta)
        if answer.is_error:
            answer = Answer(cast("dict[str, Any]", masked(answer.content, self.mask)), True, answer.meta)
        return result_of(answer)


@dataclass
class PassedVoice:
    """Parts that a server answers itself, over MCP."""

    passages: tuple[Passage, ...]
    conversation: Conversation
    hidden: frozenset[str]
    title: str
    declaration: Declaration
    definitions: Sequence[Definition] = field(default_factory=list[Definition])

    def passage(self, part: str) -> Passage | None:
        return next((one for one in self.passages if part in one.bound), None)

    def offers(self, server: str, instance: str) -> dict[str, Offer]:
        found: dict[str, Offer] = {}
        for passage in self.passages:
            for name, bound in passage.bound.items():
                way = passage.spoken.ways[name]
                route = RawRoute(way.tool, way.fixed)
                found.setdefault(name, Offer(bound, server, instance, frozenset({way.tool}), route))
        return found

    async def call(self, part: str, arguments: Any, meta: Mapping[str, Any], by: Caller) -> dict[str, Any]:
        passage = self.passage(part)
        assert passage is not None
        sent = passage.outgoing(part, arguments, meta, thread=by.thread, authorized=by.authorized, instance=by.instance)
        limit = passage.bound[part].part.flags.timeout_ms
        # It keeps to the limit itself, and says so better.
        timeout = limit / 1000 + _GRACE if limit else None
        answer = await self.conversation.request("tools/call", sent.params, thread=by.thread, timeout=timeout)
        result = raw_result_of(answer)
        if result.rpc_error is not None:
            raise result.failed() or Internal(f"{part} failed")
        # The era of the caller is the front's to write.
        raw = {key: value for key, value in result.raw.items() if (key, value) != ("resultType", "complete")}
        return passage.incoming(sent, raw, thread=by.thread)
