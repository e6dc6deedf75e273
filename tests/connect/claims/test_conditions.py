"""What a claim is made of: refused when written where it could never be decided, else lowered to predicates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotplug import constraint, net, sense, state
from hotplug.connect.claims import Condition, Selector, predicate_reader
from hotplug.connect.claims.settling import seconds_of
from hotplug.errors import InvalidArgument
from hotplug.evidence import Observation, Reading, read_predicate


def observation(summary: str, *, channel: str = "net", value: Any = None, action: str | None = None) -> Observation:
    body = {"id": f"o-{summary}", "window": "w", "channel": channel, "at": 1, "summary": summary, "value": value}
    return Observation.read(body | ({"actionId": action} if action else {}))


def reading(condition: Condition, *actions: str, channel: str | None = None) -> Reading:
    found = predicate_reader(frozenset(actions))(condition.predicate(channel or condition.selector.sense))
    assert found is not None
    return found


@pytest.mark.parametrize(
    "write",
    [
        lambda: sense("smell", "roses"),
        lambda: sense("x-", "exit 0"),
        lambda: net("POST /orders?id=1 201"),
        lambda: net("created"),
        lambda: net(""),
        lambda: state("calendar.event e1 exploded"),
        lambda: net("POST /orders 201").exactly(-1),
        lambda: net("POST /orders 201").exactly(True),
        lambda: net("POST /orders 201").exactly(1.5),  # type: ignore[arg-type]
        lambda: net("POST /orders 201").containing(""),
        lambda: net().containing("order"),
        lambda: sense("x-load", "load %").equals(float("nan")),
        lambda: sense("x-load", "load %").equals(1, tolerance=-1),
        lambda: constraint("", net("POST /payments 2xx").at_most(1)),
        lambda: constraint("a payment", net("POST /payments 2xx").exactly(1)),
        lambda: constraint("a payment", net("POST /payments 2xx").present()),
        lambda: constraint("a payment", net("POST /payments 2xx").at_most(1), severity="fatal"),  # type: ignore[arg-type]
    ],
)
def test_a_condition_that_could_never_be_decided_is_refused_when_it_is_written(write: Callable[[], object]) -> None:
    with pytest.raises(InvalidArgument):
        write()


def test_a_summary_without_a_wildcard_becomes_the_protocols_own_predicate() -> None:
    assert net("POST /orders 201").exactly(1).predicate("net") == {
        "kind": "count",
        "match": {"channel": "net", "summary": "POST /orders 201"},
        "op": "exactly",
        "value": 1,
    }
    assert net(r"GET /a\*b 200").present().predicate("net") == {
        "kind": "present",
        "match": {"channel": "net", "summary": "GET /a*b 200"},
    }
    assert read_predicate(state("calendar.event e1 created").containing("Lunch").absent().predicate("x-eyes-state"))
    assert read_predicate(sense("x-load", "load %").equals(3, tolerance=0.5).predicate("x-load"))


def test_a_wildcard_becomes_a_predicate_of_ours_that_others_leave_undefined() -> None:
    predicate = net("POST /orders 2xx").at_least(2).predicate("net")
    assert predicate["kind"] == "x-hotplug-count"
    assert predicate["match"]["channel"] == "net"
    assert read_predicate(predicate) is None
    assert predicate_reader()(predicate) is not None


def test_patterns_select_what_they_say_and_nothing_else() -> None:
    seen = [
        observation(one) for one in ("POST /orders 201", "POST /orders 500", "POST /orders/7 201", "GET /orders 200")
    ]
    assert reading(net("POST /orders 2xx").exactly(1)).evaluate(seen) is True
    assert reading(net("POST /orders/* 2xx").exactly(1)).evaluate(seen) is True
    assert reading(net("* /orders *").exactly(3)).evaluate(seen) is True
    assert reading(net("DELETE /orders 2xx").absent()).evaluate(seen) is True
    assert reading(net().exactly(4)).evaluate(seen) is True
    assert (
        reading(net("POST /orders 2xx").exactly(1)).evaluate([observation("POST /orders 201", channel="log")]) is False
    )


def test_values_narrow_a_pattern_and_mine_narrows_it_to_this_windows_actions() -> None:
    seen = [
        observation("calendar.event a created", channel="state", value={"title": "Lunch"}, action="act-1"),
        observation("calendar.event b created", channel="state", value={"title": "Dinner"}, action="act-2"),
        observation("calendar.event c created", channel="state", value={"title": "Lunch"}),
    ]
    created = state("calendar.event * created")
    assert reading(created.containing("Lunch").exactly(2)).evaluate(seen) is True
    assert reading(created.mine().exactly(1), "act-1").evaluate(seen) is True
    assert reading(created.mine().containing("Dinner").absent(), "act-1").evaluate(seen) is True
    assert reading(created.mine().absent()).evaluate(seen) is True


def test_several_texts_are_held_by_one_and_the_same_value() -> None:
    apart = [
        observation("calendar.event a created", channel="state", value={"title": "Lunch", "start": "12:00"}),
        observation("calendar.event b created", channel="state", value={"title": "Dinner", "start": "19:00"}),
    ]
    together = [observation("calendar.event c created", channel="state", value={"title": "Lunch", "start": "19:00"})]
    for summary in ("calendar.event * created", "calendar.event c created"):
        late = state(summary).containing("Lunch").containing("19:00")
        assert str(late) == f"state \"{summary}\" containing 'Lunch' and '19:00'"
        assert reading(late.exactly(1)).evaluate(apart) is False
        assert reading(late.exactly(1)).evaluate(apart + together) is True
        assert reading(late.absent()).evaluate(apart) is True
        assert read_predicate(late.exactly(1).predicate("state")) is None, "the protocol's match has one text"


def test_numbers_are_measured_through_a_pattern_as_through_an_exact_summary() -> None:
    seen = [observation("load a", channel="x-load", value=20.6), observation("load b", channel="x-load", value=True)]
    assert reading(sense("x-load", "load *").equals(20, tolerance=1)).evaluate(seen) is True
    assert reading(sense("x-load", "load *").measures_at_most(20)).evaluate(seen) is False
    assert reading(sense("x-load", "load b").measures_at_least(0)).evaluate(seen) is None


_junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["kind", "match", "op", "value", "channel", "pattern", "sense", "mine", "valueContains", "tolerance"]
            ),
            inner,
            max_size=6,
        )
    ),
)


@given(
    _junk, st.sampled_from(["x-hotplug-count", "x-hotplug-present", "x-hotplug-measure", "x-hotplug-", "x-hotplug-sum"])
)
def test_a_malformed_predicate_of_ours_is_undefined_and_never_an_error(junk: Any, kind: str) -> None:
    read = predicate_reader()
    for body in (junk, {"kind": kind, "match": junk}, {"kind": kind, **(junk if isinstance(junk, dict) else {})}):
        found = read(body)
        assert found is None or found.evaluate([observation("POST /orders 201")]) in (True, False, None)


@pytest.mark.parametrize(
    "change",
    [
        {"op": "about"},
        {"value": -1},
        {"value": 1.5},
        {"match": {"channel": "smell", "sense": "net", "pattern": "POST /a 2xx"}},
        {"match": {"channel": "net", "sense": "net", "pattern": ""}},
        {"match": {"channel": "net", "sense": "net", "pattern": "created"}},
        {"match": {"channel": "net", "pattern": "POST /a 2xx"}},
        {"match": {"channel": "net", "sense": "net", "pattern": "POST /a 2xx", "mine": "yes"}},
        {"match": {"channel": "net", "valueContains": "x", "mine": True}},
    ],
)
def test_each_fault_in_a_predicate_of_ours_makes_it_undefined(change: dict[str, Any]) -> None:
    whole = net("POST /a 2xx").exactly(1).predicate("net")
    assert predicate_reader()(whole) is not None
    assert predicate_reader()({**whole, **change}) is None


def test_a_condition_reads_as_a_person_would_say_it() -> None:
    assert net("POST /orders 201").exactly(1).reads == 'net "POST /orders 201" exactly 1'
    assert (
        str(Selector("state", "orders 42 created", witness="db").at_most(2))
        == 'state "orders 42 created" by db at most 2'
    )
    assert sense("x-load", "load %").equals(3, tolerance=0.5).reads == 'x-load "load %" equals 3 (±0.5)'


@pytest.mark.parametrize(("text", "seconds"), [("5s", 5), ("500ms", 0.5), ("2m", 120), ("1.5 s", 1.5), (3, 3)])
def test_lengths_of_time_are_read(text: Any, seconds: float) -> None:
    assert seconds_of(text) == seconds


@pytest.mark.parametrize(
    "text", ["5", "", "s", "-1s", "0s", 0, -1, True, float("inf"), float("nan"), "5 hours", None, []]
)
def test_what_is_no_length_of_time_is_refused(text: Any) -> None:
    with pytest.raises(InvalidArgument):
        seconds_of(text)
