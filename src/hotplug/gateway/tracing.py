"""OpenTelemetry spans of calls, that carry on the caller's trace. No argument and no result is in one.

The trace comes in a request's `_meta` (`traceparent`, `tracestate`, as MCP has it) or else in the HTTP headers of the
same names (W3C Trace Context, level 1). Spans are made where the process has an OpenTelemetry SDK set up, for example
by `opentelemetry-instrument`; else nothing is imported, and the caller's own context goes on to the server. Attributes
have the names of OpenTelemetry's semantic conventions for MCP and GenAI where those have one; ours begin with
`hotplug.`.
"""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from time import monotonic
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING, Final, Literal, Self

from msgspec import Raw

from hotplug.gateway.message import Object, loads

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Span, SpanKind, Tracer

__all__ = ["CallSpan", "TraceContext", "Tracing", "caller_context"]

_log: Final = logging.getLogger(__name__)

_PARENT: Final = re.compile(
    r"(?P<version>[0-9a-f]{2})-(?P<trace>[0-9a-f]{32})-(?P<span>[0-9a-f]{16})-[0-9a-f]{2}(?P<more>-.*)?"
)
_LONGEST_PARENT: Final = 256
_LONGEST_STATE: Final = 512
_JSON_RPC: Final = re.compile(r"-?\d{1,10}")
_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})

_TARGETS: Final[Mapping[str, str]] = {"tools/call": "gen_ai.tool.name", "prompts/get": "gen_ai.prompt.name"}


@dataclass(frozen=True, slots=True)
class TraceContext:
    """Where a caller stands in its trace.

    Args:
        trace_id: 32 hexadecimal digits.
        traceparent: As it came.
        tracestate: As it came; None where there was none, or too much.
    """

    trace_id: str
    traceparent: str
    tracestate: str | None = None

    def carried(self) -> dict[str, str]:
        """The headers, or keys of `_meta`, that say it."""
        said = {"traceparent": self.traceparent}
        if self.tracestate is not None:
            said["tracestate"] = self.tracestate
        return said


def caller_context(meta: Object, headers: Mapping[str, str] = _NOTHING) -> TraceContext | None:
    """The trace that a request is part of, by its `_meta`, or else by its headers (lower-case names).

    None where neither has a valid `traceparent`: a tracestate alone says nothing.
    """
    raw = meta.get("traceparent")
    if raw is not None:
        state = meta.get("tracestate")
        found = _context(_text(raw), None if state is None else _text(state))
        if found is not None:
            return found
    return _context(headers.get("traceparent"), headers.get("tracestate"))


def _text(raw: Raw) -> object:
    text = bytes(raw)
    if text[:1] != b'"':
        return None
    # A plain string is its own value: the way for every message that has one.
    return text[1:-1].decode() if b"\\" not in text else loads(raw)


def _context(parent: object, state: object) -> TraceContext | None:
    if not isinstance(parent, str) or len(parent) > _LONGEST_PARENT:
        return None
    found = _PARENT.fullmatch(parent)
    if found is None or found["version"] == "ff" or (found["version"] == "00" and found["more"] is not None):
        return None
    if not found["trace"].strip("0") or not found["span"].strip("0"):
        return None
    if not isinstance(state, str) or not state or len(state) > _LONGEST_STATE or not state.isprintable():
        state = None
    return TraceContext(found["trace"], parent, state)


class CallSpan:
    """A call in its trace, as a context manager; without an SDK only the caller's own context.

    An exception that passes through is told by its class alone: its text may hold a value.
    """

    __slots__ = ("_context", "_otel", "_tracing")

    def __init__(
        self, tracing: Tracing, context: TraceContext | None, otel: tuple[Span, Context] | None = None
    ) -> None:
        self._tracing = tracing
        self._context = context
        self._otel = otel

    @property
    def trace_id(self) -> str | None:
        """The trace's id; None where there is no trace."""
        return None if self._context is None else self._context.trace_id

    @property
    def outgoing(self) -> Mapping[str, str]:
        """`traceparent` and `tracestate` for whoever is called next; empty where there is no trace."""
        return _NOTHING if self._context is None else self._context.carried()

    def calling(self, method: str, *, server: str, target: str | None = None) -> CallSpan:
        """The span of the request to a server, below this one.

        Args:
            target: The tool or prompt by the server's own name.
        """
        if self._otel is None:
            return self
        made = self._tracing.child(self._otel[1], method, server=server, target=target)
        return made or CallSpan(self._tracing, self._context)

    def ended(self, outcome: str, *, member: str | None = None, server: str | None = None) -> None:
        """Say how it ended, before the block is left.

        Args:
            outcome: As in its record: `ok`, a code, `cancelled`.
            member: The profile's member, where it was one.
            server: Whose it was.
        """
        if self._otel is None:
            return
        span = self._otel[0]
        if member is not None:
            span.set_attribute("hotplug.member", member)
        if server is not None:
            span.set_attribute("hotplug.server", server)
        if outcome not in ("ok", "input_required"):
            _failed(span, outcome)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._otel is not None:
            if kind is not None:
                _failed(self._otel[0], kind.__qualname__)
            self._otel[0].end()


def _failed(span: Span, outcome: str) -> None:
    from opentelemetry.trace import StatusCode

    span.set_attribute("error.type", outcome)
    if _JSON_RPC.fullmatch(outcome):
        span.set_attribute("rpc.response.status_code", outcome)
    span.set_status(StatusCode.ERROR)


class Tracing:
    """Makes spans where an OpenTelemetry SDK is set up in this process, whenever that happens.

    Args:
        every: Seconds after which it is looked for again while there is none.
    """

    def __init__(self, *, every: float = 1.0) -> None:
        self._tracer: Tracer | None = None
        self._broken = False
        self._every = every
        self._again = 0.0

    def serving(
        self,
        method: str,
        context: TraceContext | None,
        *,
        thread: str | None = None,
        target: str | None = None,
        protocol: str | None = None,
        session: str | None = None,
        transport: Literal["pipe", "tcp"] | None = None,
    ) -> CallSpan:
        """The span of a request that came, below its caller's.

        Args:
            method: `tools/call`.
            context: What `caller_context` found.
            thread: Whose call it is.
            target: The tool or prompt, where the gateway knows it: another name is the caller's own text.
            protocol: The protocol revision.
            session: The session of the old era.
            transport: Standard streams are a `pipe`.
        """
        tracer = self._found()
        if tracer is None:
            return CallSpan(self, context)
        attributes = {
            "hotplug.thread": thread,
            "mcp.protocol.version": protocol,
            "mcp.session.id": session,
            "network.transport": transport,
        }
        try:
            from opentelemetry.trace import SpanKind

            parent = None if context is None else _parent(context)
            return self._started(tracer, parent, method, SpanKind.SERVER, attributes, target)
        except Exception as error:
            self._give_up(error)
            return CallSpan(self, context)

    def child(self, parent: Context, method: str, *, server: str, target: str | None) -> CallSpan | None:
        """A client's span below another; None where it can't be made."""
        tracer = self._found()
        if tracer is None:
            return None
        try:
            from opentelemetry.trace import SpanKind

            return self._started(tracer, parent, method, SpanKind.CLIENT, {"hotplug.server": server}, target)
        except Exception as error:
            self._give_up(error)
            return None

    def _started(
        self,
        tracer: Tracer,
        parent: Context | None,
        method: str,
        kind: SpanKind,
        attributes: Mapping[str, str | None],
        target: str | None,
    ) -> CallSpan:
        from opentelemetry.trace import set_span_in_context

        known = {name: value for name, value in attributes.items() if value is not None}
        known["mcp.method.name"] = method
        if method == "tools/call":
            known["gen_ai.operation.name"] = "execute_tool"
        if target is not None and method in _TARGETS:
            known[_TARGETS[method]] = target
        # Not made the current one: a call's stream may be read by another task than began it.
        span = tracer.start_span(
            method if target is None else f"{method} {target}", context=parent, kind=kind, attributes=known
        )
        inside = set_span_in_context(span, parent)
        return CallSpan(self, _own(inside), (span, inside))

    def _found(self) -> Tracer | None:
        if self._tracer is not None or self._broken:
            return self._tracer
        now = monotonic()
        if now < self._again:
            return None
        self._again = now + self._every
        # Whoever sets an SDK up has imported the API by then.
        trace = sys.modules.get("opentelemetry.trace")
        if trace is None:
            return None
        try:
            provider = trace.get_tracer_provider()
            if isinstance(provider, trace.ProxyTracerProvider | trace.NoOpTracerProvider):
                return None
            self._tracer = provider.get_tracer("hotplug.gateway")
        except Exception as error:
            self._give_up(error)
        return self._tracer

    def _give_up(self, error: Exception) -> None:
        self._tracer, self._broken = None, True
        _log.warning("no spans are made: OpenTelemetry failed with %s", type(error).__name__)


def _parent(context: TraceContext) -> Context:
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    return TraceContextTextMapPropagator().extract(context.carried())


def _own(inside: Context) -> TraceContext | None:
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    carrier: dict[str, str] = {}
    TraceContextTextMapPropagator().inject(carrier, inside)
    return _context(carrier.get("traceparent"), carrier.get("tracestate"))
