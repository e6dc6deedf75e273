"""Runs a projection: a provider of a profile whose parts are calls of an upstream server's tools."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, Protocol, cast

from hotplug.connect import Channel, Reply
from hotplug.errors import ConnectionFailed, Internal, NotFound, ProjectionError, Unavailable
from hotplug.profile import Definition, Determinism, Extension, Part, Profile, Sense
from hotplug.profile.schema import JsonSchema, map_refs
from hotplug.projection import fingerprint
from hotplug.projection.code import load_class
from hotplug.projection.codecs import Codec
from hotplug.projection.document import Document, Source, digest
from hotplug.projection.fingerprint import Drift
from hotplug.projection.functions import functions_of
from hotplug.projection.mapping import UNDEFINED
from hotplug.projection.plan import Call, Plan, compile_plans
from hotplug.serve import Memory, ProjectionRef

__all__ = ["ProjectedProvider", "ProjectionCode", "Upstream"]


class Upstream:
    """The upstream server as a projection calls it: by tool, with the rules that say what an answer means."""

    def __init__(self, channel: Channel, reading: frozenset[str], notice: str | None = None) -> None:
        self.channel = channel
        self.reading = reading
        """Tools that some read of the projection uses, or that its code names as `reading`: they change nothing."""
        self._notice = re.compile(rf"\A(?:{notice})") if notice else None

    async def send(self, tool: str, arguments: Mapping[str, Any]) -> Reply:
        """Call a tool and give what came back, whatever it says.

        Raises:
            ConnectionFailed: It couldn't be called; `details["state"]` is `unknown` where it may have acted.
        """
        try:
            reply = await self.channel.call(tool, arguments, meta={})
        except ConnectionFailed as error:
            if tool in self.reading:
                error.details.pop("state", None)
            raise
        return replace(reply, text=self._notice.sub("", reply.text)) if self._notice else reply


class ProjectionCode(Protocol):
    """The class beside a document, for what needs more than expressions: one async method a part, named as the part's.

    It is made once per connection with the provider, and may call `provider.ask`, `provider.run(plan, ...)` and
    `provider.upstream`. A class attribute `reading` names the tools that it calls and that change nothing.
    """

    def __init__(self, provider: ProjectedProvider) -> None: ...


@dataclass(frozen=True)
class _State:
    drift: Drift | None
    unavailable: str | None


class ProjectedProvider:
    """Presents a profile by an unmodified upstream.

    Args:
        source: The projection.
        profile: The profile's class.
        channel: The connection to the upstream; the provider closes it.
        tools: The tool list that the projection was frozen with.
        title: What stands behind, for a person.
        path: Where the document lies; code beside it is loaded from there.

    Raises:
        ProjectionError: The document doesn't compile, or implements less than the core.
    """

    takes: Literal["typed", "wire"] = "wire"
    extensions: tuple[type[Extension], ...] = ()
    atomic = False
    emits: frozenset[str] = frozenset()
    """None: it watches nothing, so it can't tell of any event; who listens for one is told so."""

    def __init__(
        self,
        source: Source,
        profile: type[Profile],
        channel: Channel,
        *,
        tools: Sequence[Mapping[str, Any]],
        title: str,
        path: Path | None = None,
    ) -> None:
        document = source.document
        self.source = source
        self.document: Document = document
        self.definition: Definition = profile.definition
        self.title = title
        self.plans: Mapping[str, Plan] = compile_plans(source, functions=functions_of(document.profiles))
        self.implemented = frozenset(document.operations)
        unknown = self.implemented - set(self.definition.all_parts)
        if unknown:
            raise ProjectionError(
                f"{source.file} maps parts that {self.definition.name} doesn't have: {', '.join(sorted(unknown))}"
            )
        lacking = [
            one.name
            for one in self.definition.all_parts.values()
            if one.core and one.kind != "event" and one.name not in self.implemented
        ]
        if lacking:
            raise ProjectionError(
                f"{source.file} leaves out {', '.join(lacking)}",
                hint="the core is all or nothing: map it, or refuse it with a code and a reason",
            )
        self.facets = frozenset(document.facets)
        self.senses: Mapping[str, Sense] = {
            name: Sense(sense.independence, cast("Any", sense.grade)) for name, sense in document.senses.items()
        }
        self.determinism: Determinism = self.definition.determinism
        self.projection = ProjectionRef(document.projection, document.version, digest(document))
        reads = {part.name for part in self.definition.all_parts.values() if part.kind == "read"}
        reading = {call.tool for name, plan in self.plans.items() if name in reads for call in plan.calls}
        code = load_class(source, path) if document.code else None
        reading.update(getattr(code, "reading", ()))
        self.upstream = Upstream(channel, frozenset(reading), document.upstream.notice)
        self._frozen = list(tools)
        self._parts = {kind: tuple(spec.parts) for kind, spec in document.refs.items() if spec.parts}
        self._code: Any = code(self) if code else None
        self._state: _State | None = None
        self.memory: Memory | None = None
        """What the projection's code knows of its own writes, over restarts; there once a runtime is in front."""

    @property
    def instance(self) -> str:
        return f"{self.document.upstream.package} {self.upstream.channel.target}"

    @property
    def notes(self) -> Mapping[str, Any]:
        coverage = {
            tool: {"state": entry.state, **({"note": entry.note} if entry.note else {})}
            for tool, entry in self.document.coverage.items()
        }
        found: dict[str, Any] = {"coverage": coverage}
        if self.drift:
            found["drift"] = asdict(self.drift)
        return found

    @property
    def drift(self) -> Drift | None:
        """How the server's tools differed from the frozen ones when they were compared last; None where they didn't."""
        return self._state.drift if self._state else None

    @property
    def unavailable(self) -> str | None:
        """Why it can't be used as the server is; None while it can, or where that wasn't looked at."""
        return self._state.unavailable if self._state else None

    @property
    def used(self) -> frozenset[str]:
        """The upstream tools that something here calls; of code it is known only by the coverage."""
        return frozenset(self._used())

    def join(self, emit: Any, memory: Memory) -> None:
        """Take the memory; a projection that watches nothing emits nothing."""
        self.memory = memory

    async def aopen(self) -> None:
        """Compare the live tool list with the frozen one; what changed is kept for `describe` and for every call."""
        live = await self.upstream.channel.tools()
        drift = fingerprint.drift(self._frozen, cast("Any", list(live)))
        broken = drift.breaks(self._used())
        reason = None
        if broken:
            reason = (
                f"{self.title} no longer has the tools that {self.document.projection} {self.document.version} was "
                f"tested with: "
                f"{', '.join(broken)} {'is' if len(broken) == 1 else 'are'} different"
            )
        self._state = _State(drift or None, reason)

    def _used(self) -> Iterator[str]:
        """The upstream tools that something here calls; of code it is known only by the coverage."""
        yield from (call.tool for plan in self.plans.values() for call in plan.calls)
        if self._code is not None:
            yield from (
                tool for tool, entry in self.document.coverage.items() if entry.state in ("mapped", "approximated")
            )

    async def aclose(self) -> None:
        await self.upstream.channel.aclose()

    async def invoke(self, part: Part, arguments: Mapping[str, Any]) -> Any:
        if self._state is None:
            await self.aopen()
        if self._state is not None and self._state.unavailable:
            raise Unavailable(self._state.unavailable, hint="`hotplug projection diff` shows what changed")
        given = cast("dict[str, Any]", self._handles(part.input.schema, dict(arguments), self._open_handle))
        plan = self.plans[part.name]
        for guard in plan.guards:
            guard.check(given)
        if plan.result is None:
            result = await getattr(self._code, part.method)(given)
        else:
            result = await self.run(plan, given, effects=part.flags.effects)
        return self._handles(part.output.schema, result, self._close_handle)

    async def ask(self, tool: str, arguments: Mapping[str, Any], *, codec: str | None = "json") -> Any:
        """Call a tool for the code beside the document, judged by the document's `failure` and `errors`.

        Args:
            codec: What reads the text; with None the text itself is given.

        Raises:
            ConnectionFailed: The answer is a failure, can't be read, or there was none.
        """
        reply = await self.upstream.send(tool, arguments)
        where = self.source.where("code")
        call = Call(
            name="answer",
            tool=tool,
            where=where,
            when=None,
            each=None,
            args=None,
            codec=Codec(codec, where) if codec else None,
            failure=self.document.failure,
            errors=self.document.errors,
            fails=(),
        )
        if codec is None:
            call.data(reply.is_error, reply.text, reply.content if reply.content is not None else {})
            return reply.text
        return call.data(reply.is_error, reply.text, reply.content)

    async def run(self, plan: Plan, given: Mapping[str, Any], *, effects: bool = False) -> Any:
        """Play the calls of a plan and give its result.

        Raises:
            ConnectionFailed: By the plan's rules. Once a tool has acted, whatever fails after it carries
                `state: unknown`, so that a repeat doesn't act again.
        """
        if plan.result is None:
            raise ProjectionError(f"{plan.where} has no result")
        bindings: dict[str, Any] = {"input": given}
        data: Any = given
        acted = False
        try:
            for call in plan.calls:
                if call.when is not None and not call.when.test(given, bindings):
                    continue
                acts = effects and call.tool not in self.upstream.reading
                try:
                    data = await self._call(call, given, bindings)
                except Internal as error:
                    if acts:
                        error.details["state"] = "unknown"
                    raise
                acted = acted or acts
                bindings[call.name] = data
                call.check(data, bindings)
            result = plan.result.apply(data, bindings)
            if result is UNDEFINED:
                raise Internal(f"{plan.where}: the result has no value")
        except ConnectionFailed as error:
            if acted:
                error.details.setdefault("state", "unknown")
            raise
        return result

    async def _call(self, call: Call, given: Mapping[str, Any], bindings: Mapping[str, Any]) -> Any:
        if call.each is None:
            return await self._send(call, given, bindings)
        items = call.each.apply(given, bindings)
        if items is UNDEFINED or items is None:
            items = []
        if not isinstance(items, list):
            items = [items]
        return [
            {"item": item, "answer": await self._send(call, given, {**bindings, "item": item})}
            for item in cast("list[Any]", items)
        ]

    async def _send(self, call: Call, given: Mapping[str, Any], bindings: Mapping[str, Any]) -> Any:
        arguments: Any = call.args.apply(given, bindings) if call.args is not None else {}
        if not isinstance(arguments, dict):
            raise Internal(f"{call.where}: the arguments are no object")
        reply = await self.upstream.send(call.tool, cast("dict[str, Any]", arguments))
        return call.data(reply.is_error, reply.text, reply.content)

    def _handles(self, schema: JsonSchema, value: Any, change: Any) -> Any:
        """The value with handles that are objects upstream opened or closed; others are left as they are."""
        if not self._parts:
            return value
        return map_refs(schema, value, change)

    def _open_handle(self, schema: JsonSchema, handle: Any) -> Any:
        parts = self._parts.get(schema["x-ref"])
        if not parts:
            return handle
        try:
            values = json.loads(handle)
        except ValueError:
            values = None
        if not isinstance(values, list) or len(cast("list[Any]", values)) != len(parts):
            raise NotFound(f"a {schema['x-ref']} of {self.title} has {len(parts)} parts, and this has not")
        return dict(zip(parts, cast("list[Any]", values), strict=True))

    def _close_handle(self, schema: JsonSchema, handle: Any) -> Any:
        parts = self._parts.get(schema["x-ref"])
        if not parts or not isinstance(handle, dict):
            return handle
        values = cast("dict[str, Any]", handle)
        missing = [name for name in parts if not values.get(name)]
        if missing:
            raise Internal(f"{self.source.file}: a {schema['x-ref']} lacks {', '.join(missing)}")
        return json.dumps([values[name] for name in parts], ensure_ascii=False)
