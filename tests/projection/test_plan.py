from __future__ import annotations

from typing import Any

import pytest

from hotplug.errors import Internal, NotFound, ProjectionError, Unsupported
from hotplug.projection.document import parse
from hotplug.projection.plan import Plan, compile_plans

HEAD = """\
projection: dev.hotplug.blade
version: 1.0.0
upstream: {package: "pypi:caldav-blade-mcp", versions: "=0.4.0"}
profiles: {calendar: 1.0.0}
failure: {text: "^Error:"}
errors: [{match: "not found", code: not_found}]
coverage: {cal_event: mapped}
operations:
"""
GET = """\
  calendar.get:
    tool: cal_event
    args: {event_uid: event.uid, when: $zone(start)}
    codec: {name: regex, pattern: "^Title: (?P<title>.*)$"}
    errors: [{match: "Set confirm", code: guarded, message: It wants a confirmation}]
    fail: [{when: 'title = "gone"', message: No such event}]
    refuse: [{when: $exists(scope), message: No series here, lost: [scope]}]
    result: {event: $input.event, title: title, same: $answer.title}
"""


def plan(body: str = GET, **options: Any) -> Plan:
    options.setdefault("functions", {"zone": lambda value: value})
    (only,) = compile_plans(parse(HEAD + body, "blade.yaml"), **options).values()
    return only


def test_a_plan_maps_arguments_and_result() -> None:
    (call,) = plan().calls
    value = {"event": {"uid": "u1"}}
    assert call.args is not None
    assert call.args.apply(value, {"input": value}) == {"event_uid": "u1"}
    data = call.data(False, "Title: Standup\nUID: u1")
    result = plan().result
    assert result is not None
    made = result.apply(data, {"input": value, "answer": data})
    assert made == {"event": {"uid": "u1"}, "title": "Standup", "same": "Standup"}


def test_a_failure_gets_the_code_of_the_first_rule_that_fits() -> None:
    (call,) = plan().calls
    with pytest.raises(NotFound, match="cal_event: Error: Event 'x' not found") as caught:
        call.data(False, "Error: Event 'x' not found")
    assert caught.value.details == {"tool": "cal_event", "upstream": "Error: Event 'x' not found"}
    with pytest.raises(Internal, match="boom"):
        call.data(True, "boom")
    with pytest.raises(Exception, match="It wants a confirmation") as guarded:
        call.data(False, "Error: Set confirm=true")
    assert guarded.value.code == "guarded"  # type: ignore[attr-defined]


def test_an_answer_that_no_codec_reads_needs_structured_content() -> None:
    (call,) = plan("  calendar.get: {tool: cal_event, result: $}\n").calls
    assert call.data(False, "{}", {"a": 1}) == {"a": 1}
    with pytest.raises(Internal, match="without structured content"):
        call.data(False, '{"a": 1}')


def test_a_failure_that_only_the_data_shows() -> None:
    (call,) = plan().calls
    call.check({"title": "here"}, {})
    with pytest.raises(NotFound, match="No such event"):
        call.check({"title": "gone"}, {})


def test_what_would_be_lost_is_refused_unless_accepted() -> None:
    (guard,) = plan().guards
    guard.check({"event": 1})
    guard.check({"scope": "all", "accept": ["scope", "other"]})
    with pytest.raises(Unsupported, match="No series here") as caught:
        guard.check({"scope": "all", "accept": ["other"]})
    assert caught.value.details == {"lost": ["scope"]}


def test_a_variable_or_function_that_nothing_binds_is_told_with_the_nearest() -> None:
    with pytest.raises(
        ProjectionError, match=r"blade\.yaml:16 .*result\.event: nothing binds \$inptu, did you mean \$input"
    ):
        plan(GET.replace("$input.event", "$inptu.event"))
    with pytest.raises(ProjectionError, match=r"args\.when: nothing binds \$zone"):
        plan(functions={})
    with pytest.raises(ProjectionError, match=r"nothing binds \$later"):
        plan(
            "  calendar.get:\n    steps:\n      - {name: first, tool: a, args: {x: $later.id}}\n"
            "      - {name: later, tool: b}\n    result: $later\n"
        )


def test_item_is_bound_only_where_a_step_repeats() -> None:
    body = "  calendar.search: {tool: a, each: calendars, args: {c: $item.url}, result: $}\n"
    assert plan(body).calls[0].each is not None
    with pytest.raises(ProjectionError, match=r"nothing binds \$item"):
        plan(body.replace("each: calendars, ", ""))


def test_a_step_may_not_take_the_name_of_a_function() -> None:
    with pytest.raises(ProjectionError, match=r"\$zone is a function"):
        plan("  calendar.get: {steps: [{name: zone, tool: a}], result: $}\n")


def test_every_expression_that_does_not_parse_is_told() -> None:
    body = "  a.b: {tool: a, result: '{'}\n  a.c: {tool: a, when: '1 +', result: $}\n  a.d: {tool: a, result: $}\n"
    with pytest.raises(ProjectionError) as caught:
        compile_plans(parse(HEAD + body, "blade.yaml"))
    lines = str(caught.value).splitlines()
    assert [line.split(":")[1].split(" ")[0] for line in lines] == ["9", "10"]


def test_all_expressions_of_a_plan_are_listed() -> None:
    assert [mapping.source for mapping in plan().mappings()] == [
        "$exists(scope)",
        "event.uid",
        "$zone(start)",
        'title = "gone"',
        "$input.event",
        "title",
        "$answer.title",
    ]
