"""Predicates are three-valued, and what is malformed is undefined."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from hotplug.evidence import (
    Absent,
    Count,
    EvidenceError,
    Match,
    Measure,
    Observation,
    Present,
    Reading,
    assertions_held,
    assertions_held_under,
    read_predicate,
    schema_of,
)

from .documents import documents, lenient, spoiled
from .making import assertion, coverage, observation, present, spot, window

OPEN = window(closed_at=None, closed_by=None)
MATCH = {"channel": "net", "summary": "POST /orders 201"}


def count(op: str, value: Any, match: Any = MATCH) -> dict[str, Any]:
    return {"kind": "count", "match": match, "op": op, "value": value}


def measure(op: str, value: Any, **given: Any) -> dict[str, Any]:
    return {"kind": "measure", "match": {"channel": "net"}, "op": op, "value": value, **given}


def orders(number: int) -> list[Observation]:
    return [observation(f"o{one}") for one in range(number)]


def values(*found: Any) -> list[Observation]:
    return [observation(f"o{one}", value=value) for one, value in enumerate(found)]


def reading(predicate: object) -> Reading:
    found = read_predicate(predicate)
    assert found is not None
    return found


@given(documents("predicate") | spoiled("predicate"))
def test_a_predicate_is_read_exactly_when_it_fits_the_schema(predicate: Any) -> None:
    fits = Draft202012Validator(lenient(schema_of("predicate"))).is_valid(predicate)
    assert (read_predicate(predicate) is not None) == fits


@pytest.mark.parametrize(
    "malformed",
    [
        None,
        "present",
        ["present"],
        {},
        {"kind": "some", "match": MATCH},
        {"kind": "present"},
        {"kind": "present", "match": {}},
        {"kind": "present", "match": {"channel": "sound"}},
        {"kind": "present", "match": {"channel": "net", "summary": ""}},
        {"kind": "present", "match": {"channel": "net", "summary": None}},
        {"kind": "present", "match": {"channel": "net", "valueContains": "x"}},
        {"kind": "present", "match": {**MATCH, "valueContains": ""}},
        {"kind": "present", "match": {**MATCH, "valueContains": None}},
        count("exactly", -1),
        count("exactly", 1.5),
        count("exactly", True),
        count("exactly", "1"),
        count("more", 1),
        measure("equals", math.nan),
        measure("equals", math.inf),
        measure("equals", 1, tolerance=-0.1),
        measure("equals", 1, tolerance=None),
        measure("equals", True),
        measure("exactly", 1),
    ],
)
def test_what_is_malformed_is_undefined(malformed: object) -> None:
    assert read_predicate(malformed) is None
    assert assertions_held([assertion(malformed or "none")], orders(1)) is None


def test_each_shape_has_its_reading() -> None:
    assert isinstance(read_predicate(count("exactly", 2.0)), Count)
    assert isinstance(read_predicate(present()), Present)
    assert isinstance(read_predicate({**present(), "kind": "absent", "note": "ignored"}), Absent)
    found = read_predicate(measure("at-most", 3))
    assert isinstance(found, Measure)
    assert (found.op, found.value, found.tolerance) == ("at-most", 3.0, 0.0)


@pytest.mark.parametrize(
    ("op", "at_zero", "at_one", "at_two", "at_three"),
    [
        ("exactly", False, False, True, False),
        ("at-least", False, False, True, True),
        ("at-most", True, True, True, False),
    ],
)
def test_counts(op: str, at_zero: bool, at_one: bool, at_two: bool, at_three: bool) -> None:
    two = reading(count(op, 2))
    assert [two.evaluate(orders(number)) for number in range(4)] == [at_zero, at_one, at_two, at_three]


@pytest.mark.parametrize(
    ("predicate", "observations", "repairable"),
    [
        (count("exactly", 2), orders(1), True),
        (count("exactly", 2), orders(2), False),
        (count("exactly", 2), orders(3), False),
        (count("at-least", 2), orders(1), True),
        (count("at-least", 2), orders(2), False),
        (count("at-most", 2), orders(1), False),
        (count("at-most", 2), orders(3), False),
        (present(), [], True),
        (present(), orders(1), False),
        ({**present(), "kind": "absent"}, orders(1), False),
        ({**present(), "kind": "absent"}, [], False),
        (measure("equals", 2), values(1), True),
        (measure("equals", 2), values(2), False),
        (measure("equals", 2), values("2"), False),
    ],
)
def test_a_false_is_repairable_where_more_observations_could_turn_it_true(
    predicate: object, observations: list[Observation], repairable: bool
) -> None:
    found = reading(predicate)
    assert found.repairable(observations) is repairable
    held = False if found.evaluate(observations) is False else found.evaluate(observations)
    assert assertions_held_under([assertion(predicate)], observations, coverage(), window=window()) is held
    expected = None if repairable else held
    assert assertions_held_under([assertion(predicate)], observations, coverage(), window=OPEN) is expected


@pytest.mark.parametrize(
    ("op", "number", "held"),
    [
        ("equals", 10.5, True),
        ("equals", 9.5, True),
        ("equals", 10.6, False),
        ("equals", 9.4, False),
        ("at-least", 9.5, True),
        ("at-least", 9.4, False),
        ("at-least", 99, True),
        ("at-most", 10.5, True),
        ("at-most", 10.6, False),
        ("at-most", -99, True),
    ],
)
def test_a_tolerance_widens_in_the_readings_favour_with_its_edges(op: str, number: float, held: bool) -> None:
    assert reading(measure(op, 10, tolerance=0.5)).evaluate(values(number)) is held


@pytest.mark.parametrize("value", [True, "10", None, {"n": 10}, [10], math.nan, math.inf, 10**400])
def test_what_is_no_finite_number_is_no_reading(value: object) -> None:
    ten = reading(measure("equals", 10))
    assert ten.evaluate(values(value)) is None
    assert ten.evaluate(values(value, 10)) is True
    assert ten.evaluate(values(value, 9)) is False
    assert ten.evaluate([observation()]) is None


def test_one_satisfying_reading_is_enough() -> None:
    assert reading(measure("equals", 2)).evaluate(values(1, 2, 3)) is True
    assert reading(measure("equals", 2)).evaluate(values(2, 1)) is True
    assert reading(measure("equals", 0)).evaluate(values(0)) is True


@pytest.mark.parametrize(
    ("match", "selected"),
    [
        ({"channel": "net"}, ["a", "b", "c", "d"]),
        ({"channel": "net", "summary": "paid"}, ["a", "b", "d"]),
        ({"channel": "net", "summary": "paid", "valueContains": "out/pack"}, ["a"]),
        ({"channel": "net", "summary": "paid", "valueContains": "null"}, ["b"]),
        ({"channel": "net", "summary": "Paid"}, []),
        ({"channel": "log"}, ["e"]),
    ],
)
def test_a_match_selects_by_channel_summary_and_part_of_the_value(match: Any, selected: list[str]) -> None:
    seen = [
        observation("a", summary="paid", value={"path": "out/pack.bak"}),
        observation("b", summary="paid", value=None),
        observation("c", summary="paid twice", value="out/pack"),
        observation("d", summary="paid"),
        observation("e", channel="log", summary="paid", value="out/pack"),
    ]
    found = reading({"kind": "present", "match": match})
    assert [one.id for one in found.selected(iter(seen))] == selected
    assert found.evaluate(iter(seen)) is bool(selected)
    assert reading({"kind": "absent", "match": match}).evaluate(iter(seen)) is not bool(selected)


def test_a_missing_value_contains_nothing() -> None:
    for part in ("X", "None", "null"):
        found = reading({"kind": "present", "match": {**MATCH, "valueContains": part}})
        assert found.evaluate([observation()]) is False


def test_names_of_here_are_unknown_members_in_a_predicate() -> None:
    found = reading({"kind": "present", "match": {**MATCH, "value_contains": "x"}})
    assert found.evaluate(orders(1)) is True


def test_a_match_made_here_needs_its_summary_too() -> None:
    assert Match(channel="net", summary="s", value_contains="v").document() == {
        "channel": "net",
        "summary": "s",
        "valueContains": "v",
    }
    with pytest.raises(EvidenceError, match="valueContains without summary"):
        Match.read({"channel": "net", "valueContains": "v"})
    with pytest.raises(EvidenceError, match=r"^\$\.summary: is null: leave it out$"):
        Match.read({"channel": "net", "summary": None})


def test_the_undefined_ones_are_dropped_and_one_false_decides() -> None:
    true, false, undefined = assertion(present()), assertion(present(summary="x")), assertion("what?")
    assert assertions_held([], orders(1)) is None
    assert assertions_held([undefined], orders(1)) is None
    assert assertions_held([true, undefined], iter(orders(1))) is True
    assert assertions_held([true, undefined, false], iter(orders(1))) is False
    assert assertions_held([true, true], iter(orders(1))) is True


def test_a_gap_on_a_channel_that_is_read_silences_everything() -> None:
    false = assertion(present(summary="x"), channels=("net", "log"))
    assert assertions_held_under([false], orders(1), coverage()) is False
    assert assertions_held_under([false], orders(1), coverage(spot("log"))) is None
    assert assertions_held_under([false], orders(1), coverage(spot("ui"))) is False
    assert assertions_held_under([false], orders(1), coverage(spot("ui", impeaching=True))) is None


def test_over_an_unclean_close_a_final_false_stays_and_the_others_are_dropped() -> None:
    repairable, final, true = (
        assertion(count("at-least", 2)),
        assertion(count("at-most", 0)),
        assertion(present()),
    )
    killed = window(closed_by="terminated")
    assert assertions_held_under([repairable, final], orders(1), coverage(), window=killed) is False
    assert assertions_held_under([repairable, true], orders(1), coverage(), window=killed) is True
    assert assertions_held_under([repairable], orders(1), coverage(), window=killed) is None
    assert assertions_held_under([repairable, true], orders(1), coverage()) is False


def test_another_reader_brings_other_predicates() -> None:
    def wild(predicate: object) -> Reading | None:
        return Present(lambda one: one.summary.startswith("POST")) if predicate == "any post" else None

    assert assertions_held([assertion("any post")], orders(1)) is None
    assert assertions_held([assertion("any post")], orders(1), read=wild) is True
    assert assertions_held([assertion(present())], orders(1), read=wild) is None
    assert assertions_held_under([assertion("any post")], [], coverage(), read=wild) is False
    assert assertions_held_under([assertion("any post")], [], coverage(), read=wild, window=OPEN) is None


@given(st.permutations(values(1, 2, "x", None) + orders(2)), documents("predicate"))
def test_the_order_of_observations_is_no_matter(shuffled: list[Observation], predicate: Any) -> None:
    found = reading(predicate)
    assert found.evaluate(shuffled) is found.evaluate(sorted(shuffled, key=lambda one: one.id))
