"""Spans: in the caller's trace, named as the conventions have it, without a value, and nearly free without an SDK."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from hotplug.gateway.message import Message, split
from hotplug.gateway.tracing import TraceContext, Tracing, caller_context

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = f"00-{TRACE}-b7ad6b7169203331-01"
CONTEXT = TraceContext(TRACE, PARENT)


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    yield exporter
    provider.shutdown()


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def meta(text: str) -> Any:
    return split(text.encode())


@pytest.mark.parametrize(
    ("given", "headers", "expected"),
    [
        (f'{{"traceparent":"{PARENT}"}}', {}, CONTEXT),
        (f'{{"traceparent":"{PARENT}","tracestate":"a=1"}}', {}, TraceContext(TRACE, PARENT, "a=1")),
        ("{}", {"traceparent": PARENT, "tracestate": "b=2"}, TraceContext(TRACE, PARENT, "b=2")),
        (f'{{"traceparent":"{PARENT}"}}', {"traceparent": PARENT.replace("b7", "c8")}, CONTEXT),
        ('{"traceparent":5}', {"traceparent": PARENT}, CONTEXT),
        (f'{{"traceparent":{"5" * 5000}}}', {"traceparent": PARENT}, CONTEXT),
        (f'{{"traceparent":"{PARENT}","tracestate":"{"x" * 600}"}}', {}, CONTEXT),
        (f'{{"traceparent":"{PARENT}","tracestate":7}}', {}, CONTEXT),
        (f'{{"traceparent":"01{PARENT[2:]}-more"}}', {}, TraceContext(TRACE, f"01{PARENT[2:]}-more")),
        (f'{{"traceparent":"{PARENT}-more"}}', {}, None),
        (f'{{"traceparent":"ff{PARENT[2:]}"}}', {}, None),
        (f'{{"traceparent":"{PARENT.upper()}"}}', {}, None),
        (f'{{"traceparent":"00-{"0" * 32}-b7ad6b7169203331-01"}}', {}, None),
        (f'{{"traceparent":"00-{TRACE}-{"0" * 16}-01"}}', {}, None),
        (f'{{"traceparent":"{PARENT}\\n"}}', {}, None),
        ('{"tracestate":"a=1"}', {}, None),
        (f'{{"traceparent":"\\u0030{PARENT[1:]}"}}', {}, CONTEXT),
        ("{}", {}, None),
    ],
)
def test_a_trace_is_found_in_the_meta_or_else_in_the_headers(
    given: str, headers: dict[str, str], expected: TraceContext | None
) -> None:
    assert caller_context(meta(given), headers) == expected


def test_without_an_sdk_the_callers_own_context_goes_on() -> None:
    tracing = Tracing()
    with tracing.serving("tools/call", CONTEXT, target="x") as span, span.calling("tools/call", server="s") as below:
        assert below.trace_id == span.trace_id == TRACE
        assert below.outgoing == {"traceparent": PARENT}
        below.ended("not_found")
    with tracing.serving("tools/list", None) as span:
        assert (span.trace_id, dict(span.outgoing)) == (None, {})


def test_without_an_sdk_nothing_of_opentelemetry_is_imported() -> None:
    script = (
        "import sys; from hotplug.gateway.tracing import Tracing;"
        "span = Tracing().serving('tools/call', None).__enter__();"
        "print(sorted(name for name in sys.modules if name.startswith('opentelemetry')))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script],
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    assert ran.stdout.strip() == "[]"


def test_a_call_is_a_span_below_its_callers_and_the_servers_below_it(spans: InMemorySpanExporter) -> None:
    tracing = Tracing()
    carried = TraceContext(TRACE, PARENT, "vendor=1")
    with tracing.serving(
        "tools/call", carried, thread="t_a", target="work.add", protocol="2026-07-28", transport="tcp"
    ) as served:
        with served.calling("tools/call", server="work", target="add") as called:
            passed_on = dict(called.outgoing)
            called.ended("ok")
        served.ended("ok", member="calendar@1/calendar.create", server="work")
    client, server = spans.get_finished_spans()
    assert server.parent is not None
    assert (f"{server.parent.trace_id:032x}", f"{server.parent.span_id:016x}") == (TRACE, "b7ad6b7169203331")
    assert client.parent is not None
    assert server.context is not None
    assert client.parent.span_id == server.context.span_id
    assert client.context is not None
    assert passed_on == {
        "traceparent": f"00-{TRACE}-{client.context.span_id:016x}-01",
        "tracestate": "vendor=1",
    }
    assert (server.kind, client.kind) == (SpanKind.SERVER, SpanKind.CLIENT)
    assert (server.name, client.name) == ("tools/call work.add", "tools/call add")
    assert attributes(server) == {
        "mcp.method.name": "tools/call",
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "work.add",
        "mcp.protocol.version": "2026-07-28",
        "network.transport": "tcp",
        "hotplug.thread": "t_a",
        "hotplug.member": "calendar@1/calendar.create",
        "hotplug.server": "work",
    }
    assert server.status.status_code is StatusCode.UNSET


def test_a_call_without_a_trace_begins_one(spans: InMemorySpanExporter) -> None:
    with Tracing().serving("prompts/get", None, target="greet", session="s1") as span:
        assert span.trace_id is not None
        assert span.outgoing["traceparent"].split("-")[1] == span.trace_id
    (ended,) = spans.get_finished_spans()
    assert ended.parent is None
    assert attributes(ended)["gen_ai.prompt.name"] == "greet"
    assert attributes(ended)["mcp.session.id"] == "s1"


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        ("ok", {}),
        ("input_required", {}),
        ("not_found", {"error.type": "not_found"}),
        ("-32602", {"error.type": "-32602", "rpc.response.status_code": "-32602"}),
    ],
)
def test_how_a_call_ended_is_told_by_its_code(
    spans: InMemorySpanExporter, outcome: str, expected: dict[str, str]
) -> None:
    with Tracing().serving("tools/list", None) as span:
        span.ended(outcome)
    (ended,) = spans.get_finished_spans()
    assert {name: value for name, value in attributes(ended).items() if name != "mcp.method.name"} == expected
    assert (ended.status.status_code is StatusCode.ERROR) is bool(expected)


def test_an_exception_is_told_by_its_class_and_never_by_its_text(spans: InMemorySpanExporter) -> None:
    with pytest.raises(ValueError, match="planted"), Tracing().serving("tools/call", None):
        raise ValueError("planted-value")
    (ended,) = spans.get_finished_spans()
    assert attributes(ended)["error.type"] == "ValueError"
    assert ended.events == ()
    assert "planted" not in ended.to_json()


def test_an_sdk_that_is_set_up_later_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    tracing = Tracing(every=0)
    assert tracing.serving("ping", None).trace_id is None
    provider = TracerProvider()
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    with tracing.serving("ping", None) as span:
        assert span.trace_id is not None
    provider.shutdown()


def test_an_sdk_that_fails_costs_the_spans_and_no_call(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Failing:
        def get_tracer(self, name: str) -> Any:
            raise RuntimeError("planted-value")

    monkeypatch.setattr(trace, "get_tracer_provider", Failing)
    tracing = Tracing()
    for _ in range(3):
        with tracing.serving("ping", CONTEXT) as span:
            assert span.outgoing == {"traceparent": PARENT}
    assert caplog.text.count("RuntimeError") == 1
    assert "planted" not in caplog.text


def test_the_context_fits_into_a_message() -> None:
    message = Message.parse(b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":{"x":1}}}')
    assert caller_context(message.meta) is None
    sent = message.with_meta(Tracing().serving("ping", CONTEXT).outgoing)
    assert caller_context(sent.meta) == CONTEXT
