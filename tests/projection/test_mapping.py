from __future__ import annotations

import json
import time
from typing import Any

import jsonata
import pytest

from hotplug.errors import Internal, InvalidArgument, ProjectionError
from hotplug.projection.mapping import UNDEFINED, Bounds, Mapping, Template, exact

WHERE = "caldav.yaml:12 operations.calendar.create.args"


def mapping(source: str, **options: Any) -> Mapping:
    return Mapping(source, WHERE, **options)


def test_an_expression_maps_the_input_and_the_bound_steps() -> None:
    made = mapping('{"event": $made.uid, "title": title, "from": $input.start}')
    result = made.apply({"title": "Tea"}, {"made": {"uid": "u1"}, "input": {"start": "2026-06-11"}})
    assert result == {"event": "u1", "title": "Tea", "from": "2026-06-11"}


@pytest.mark.parametrize(
    "source",
    [
        "($f := function($x) { 1 + $f($x) }; $f(1))",
        "($f := function($x) { $f($x) }; $f(1))",
        "($f := function($x) { $f($x + 1) }; $f(1))",
        "$sum([1..1000000000])",
        '$pad("", 100000000)',
        '($f := function($s, $n) { $n = 0 ? $s : $f($s & $s, $n - 1) }; $f("a", 60))',
        "$reduce([1..90000], function($a, $b) { $append($a, [$b]) })",
        '$match("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!", /(a+)+$/)',
        "[1..3000].([1..3000])",
    ],
)
def test_an_expression_without_end_fails_within_a_second(source: str) -> None:
    started = time.monotonic()
    with pytest.raises(Internal) as caught:
        mapping(source, bounds=Bounds(timeout=0.2)).apply({})
    assert time.monotonic() - started < 1
    assert caught.value.details["where"] == WHERE
    assert caught.value.details["code"] in {"D1011", "D1012", "D2014", "D2016", "U1001", "U1006"}


def test_the_largest_range_the_engine_allocates_is_still_refused() -> None:
    with pytest.raises(Internal, match="size limit"):
        mapping("[1..9999999]").apply({})


def test_a_result_over_the_bound_fails_instead_of_being_cut() -> None:
    with pytest.raises(Internal, match="limit"):
        mapping("[1..1000]", bounds=Bounds(max_result=100)).apply({})


def test_a_failure_names_place_expression_and_cause() -> None:
    with pytest.raises(Internal) as caught:
        mapping("title + 1").apply({"title": "Tea"})
    assert WHERE in str(caught.value)
    assert "title + 1" in str(caught.value)
    assert caught.value.details["code"] == "T2001"


def test_a_syntax_error_is_told_at_load_with_the_place() -> None:
    with pytest.raises(ProjectionError, match=r"caldav\.yaml:12.*not JSONata.*character"):
        mapping('{"a": [1, 2}')


@pytest.mark.parametrize("value", [2**53 + 1, -(2**53) - 1, 810234567890123457, 2**70])
def test_an_integer_beyond_the_doubles_keeps_every_digit(value: int) -> None:
    assert mapping("id").apply({"id": value}) == str(value)
    assert mapping("$made.items[0].id").apply({}, {"made": {"items": [{"id": value}]}}) == str(value)
    assert mapping('{"back": $}').apply({"a": [{"b": value}]}) == {"back": {"a": [{"b": str(value)}]}}


def test_an_integer_within_the_doubles_stays_a_number() -> None:
    assert mapping("id").apply({"id": 2**53}) == 2**53
    assert mapping("n + 1").apply({"n": 41}) == 42


def test_exact_shares_what_it_does_not_change() -> None:
    value = {"a": [1, {"b": "c"}], "d": (1, 2)}
    assert exact(value) is value
    assert exact(True) is True


def test_null_and_no_value_are_told_apart() -> None:
    assert mapping("a").apply({"a": None}) is None
    assert mapping("a").apply({}) is UNDEFINED
    assert mapping("a /* gone */").apply({}) is UNDEFINED
    assert not UNDEFINED
    assert mapping('{"x": a, "y": b}').apply({"a": None}) == {"x": None}


@pytest.mark.parametrize("name", ["now", "millis", "random", "shuffle", "eval"])
def test_a_function_of_clock_or_chance_is_refused_at_load(name: str) -> None:
    with pytest.raises(ProjectionError, match=rf"\${name}"):
        mapping(f"(${'x'} := ${name}; $x())")


def test_the_name_of_a_refused_function_in_a_text_is_no_call() -> None:
    assert mapping('"costs $now() less" /* $eval */').apply({}) == "costs $now() less"


def test_a_refused_function_that_the_loader_cannot_see_fails_when_called() -> None:
    hidden = mapping("""[$match(t, /"/), $now(), $match(t, /"/)]""")
    with pytest.raises(Internal, match=r"\$now.*not available"):
        hidden.apply({"t": "x"})


def test_a_registered_function_is_called_and_counts_as_reading_its_argument_only() -> None:
    made = mapping('{"at": $instant(start)}', functions={"instant": lambda text: f"{text}Z"})
    assert made.apply({"start": "2026-06-11T17:00:00"}) == {"at": "2026-06-11T17:00:00Z"}
    assert made.reads().input == {"start": True}
    assert made.reads().bindings == {}
    assert mapping("$big()", functions={"big": lambda: [2**60 + 1]}).apply({}) == [str(2**60 + 1)]


def test_a_refusal_by_a_function_is_passed_on_and_any_other_failure_is_internal() -> None:
    def refuse(_: Any) -> str:
        raise InvalidArgument("no such zone")

    def broken(_: Any) -> str:
        raise KeyError("x")

    with pytest.raises(InvalidArgument, match="no such zone"):
        mapping("$zone(a)", functions={"zone": refuse}).apply({"a": 1})
    with pytest.raises(Internal, match="KeyError"):
        mapping("$zone(a)", functions={"zone": broken}).apply({"a": 1})


def test_reads_names_fields_of_input_and_steps() -> None:
    reads = mapping('{"t": changes.title, "c": $input.calendar, "u": $made.uid, "w": clear}').reads()
    assert reads.input == {"changes": {"title": True}, "clear": True}
    assert reads.bindings == {"input": {"calendar": True}, "made": {"uid": True}}
    assert mapping("$merge([$, $])").reads().input is True
    assert mapping('"x"').reads().input is None


def test_a_condition_is_true_false_or_without_value_and_nothing_else() -> None:
    assert mapping("$exists(a)").test({"a": 1})
    assert not mapping("a").test({"a": False})
    assert not mapping("a").test({})
    with pytest.raises(Internal, match="condition"):
        mapping("a").test({"a": "yes"})


def test_an_explanation_tells_the_result() -> None:
    assert "Tea" in mapping("title").explain({"title": "Tea"})


def test_a_value_nested_beyond_reason_is_internal() -> None:
    value: dict[str, Any] = {}
    for _ in range(5000):
        value = {"a": value}
    with pytest.raises(Internal):
        mapping("$").apply(value)


EVENTS = {
    "events": [
        {"uid": "a", "summary": "Tea", "start": "2026-10-23T07:00:00Z", "tags": ["x", "y"], "n": 1},
        {"uid": "b", "summary": "Coffee", "start": "2026-10-24T07:00:00Z", "tags": [], "n": 2, "location": None},
    ],
    "more": {"next": "p2"},
}


@pytest.mark.parametrize(
    "source",
    [
        "events.uid",
        "events[uid='b'].summary",
        "events[0].tags",
        "events[1].tags",
        "events[].{'event': uid, 'title': summary}",
        "{'events': [events.{'event': uid, 'where': location}], 'cursor': more.next}",
        "events[summary ~> /^T/].uid",
        "$map(events, function($e) { $uppercase($e.summary) })",
        "[$filter(events, function($e) { $e.n > 1 })].uid",
        "$sort(events, function($l, $r) { $l.start < $r.start }).uid",
        "$sum(events.n) / 4",
        "events.$substringBefore(start, 'T')",
        "$exists(missing) ? 'yes' : 'no'",
        "more.next & '-' & missing",
        "$merge([more, {'a': 1}])",
        "$keys(more)",
        "$join(events.summary, ', ')",
        "$replace('a-b-c', '-', '_')",
        "$match('09:00-10:00', /(\\d+):(\\d+)/).groups",
        "events{uid: summary}",
        "$toMillis('2026-10-23T07:00:00.000Z')",
        "$fromMillis(1792738800000)",
        "$count(events.tags)",
        "$lookup(more, 'next')",
        "$not($boolean(events[0].tags))",
        "$reduce(events.n, function($a, $b) { $a + $b })",
    ],
)
def test_the_engine_agrees_with_another_implementation(source: str) -> None:
    ours = mapping(source).apply(EVENTS)
    theirs = jsonata.Jsonata(source).evaluate(json.loads(json.dumps(EVENTS)))
    assert (None if ours is UNDEFINED else ours) == theirs


def test_a_small_mapping_costs_tens_of_microseconds() -> None:
    made = mapping('{"summary": title, "start": start & "Z", "end": $exists(end) ? end : start}')
    value = {"title": "Tea", "start": "2026-06-11T17:00:00", "calendar": "c1"}
    best = float("inf")
    for _ in range(20):
        started = time.perf_counter()
        for _ in range(100):
            made.apply(value)
        best = min(best, (time.perf_counter() - started) / 100)
    assert best < 100e-6


def test_a_template_leaves_out_what_has_no_value() -> None:
    shape = {"request": {"title": "title", "where": {"name": "location"}}, "confirm": True, "n": 3, "kept": "gone"}
    template = Template(shape, lambda *path: ".".join(("args", *path)))
    assert template.apply({"title": "Tea", "gone": None}) == {
        "request": {"title": "Tea"},
        "confirm": True,
        "n": 3,
        "kept": None,
    }
    assert [path for path, _ in template.leaves()] == [
        ("request", "title"),
        ("request", "where", "name"),
        ("confirm",),
        ("n",),
        ("kept",),
    ]


def test_a_template_of_one_expression_and_an_empty_one() -> None:
    assert Template("title", lambda *_: WHERE).apply({"title": "Tea"}) == "Tea"
    assert Template("title", lambda *_: WHERE).apply({}) is UNDEFINED
    assert Template({"a": "b"}, lambda *_: WHERE).apply({}) == {}


def test_a_template_names_the_leaf_that_fails() -> None:
    template = Template({"a": {"b": "c + 1"}}, lambda *path: "x.yaml " + ".".join(path))
    with pytest.raises(Internal, match=r"x\.yaml a\.b"):
        template.apply({"c": "x"})


def test_answers_of_repeated_calls_keep_their_item_and_an_empty_one_adds_nothing() -> None:
    lists = [
        {"item": "home", "answer": []},
        {"item": "work", "answer": [{"uid": "a"}, {"uid": "b"}]},
    ]
    gathered = mapping('[$lists.($c := item; answer.{"uid": uid, "calendar": $c})]')
    assert gathered.apply({}, {"lists": lists}) == [{"uid": "a", "calendar": "work"}, {"uid": "b", "calendar": "work"}]
    assert gathered.apply({}, {"lists": lists[:1]}) == []


def test_an_expression_sees_every_binding_that_it_names_and_a_template_each_leaf_its_own() -> None:
    bindings = {"input": {"a": 1}, "answer": {"b": 2}, "item": 2**60}
    assert Mapping("($f := function($x){$x + $answer.b}; $f($input.a))", "t").apply({}, bindings) == 3
    shape = {"one": "$input.a", "two": {"three": "$item"}, "four": "five"}
    found = Template(shape, lambda *_: "t").apply({"five": 5}, bindings)
    assert found == {"one": 1, "two": {"three": str(2**60)}, "four": 5}
