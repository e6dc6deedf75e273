"""Sixteen scenarios, how they are driven, and what they earn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotplug.evidence.conformance import (
    PROFILE_CHANNELS,
    SCENARIOS,
    Answer,
    Asked,
    Failed,
    Greeted,
    Hello,
    Plant,
    Planted,
    Registration,
    Report,
    Scenario,
    Verify,
    channels_missing_for,
    drive,
    judge,
    profile_earned,
    profile_from_channels,
    registration_problems,
)
from hotplug.evidence.vocabulary import GROUNDS, PROFILES, SCENARIO_OUTCOMES, VERDICTS, ScenarioOutcome

SURFACE = PROFILE_CHANNELS["surface"]
ALL_PASSED: dict[str, ScenarioOutcome] = {scenario.id: "passed" for scenario in SCENARIOS}


def registration(channels: tuple[str, ...] = SURFACE, profile: Any = "surface") -> Registration:
    return Registration("shop", "1.0", "web", channels, ("x-conformance.plant",), profile)


def the(name: str) -> Scenario:
    return next(scenario for scenario in SCENARIOS if scenario.id == name)


def test_there_are_sixteen_and_one_negative_control() -> None:
    assert len({scenario.id for scenario in SCENARIOS}) == 16
    assert [scenario.id for scenario in SCENARIOS if scenario.is_negative_control] == ["healthy-app-real-claim"]
    assert [sum(scenario.profile == profile for scenario in SCENARIOS) for profile in PROFILES] == [12, 2, 2]


def test_every_scenario_demands_something_that_can_be_answered() -> None:
    for scenario in SCENARIOS:
        answers = [Answer(verdict, ground) for verdict in VERDICTS for ground in (None, *GROUNDS)]
        assert {judge(scenario, answer) for answer in answers} == {"passed", "failed"}
        assert scenario.document()["mustProduce"]


@pytest.mark.parametrize(
    ("scenario", "answer", "outcome"),
    [
        ("effect-failed-surface-advanced", Answer("no", "contradicted"), "passed"),
        ("effect-failed-surface-advanced", Answer("no", "assertion-failed"), "failed"),
        ("effect-failed-surface-advanced", Answer("no"), "failed"),
        ("effect-failed-surface-advanced", Answer("yes", "proved"), "failed"),
        ("double-submit-against-count-one", Answer("no", "assertion-failed"), "passed"),
        ("locator-heals-to-wrong-target", Answer("unknown"), "passed"),
        ("locator-heals-to-wrong-target", Answer("no"), "passed"),
        ("locator-heals-to-wrong-target", Answer("yes"), "failed"),
        ("subject-disappears-mid-window", Answer("no", "coverage-impeached"), "failed"),
        ("verifier-ran-out-of-budget", Answer("unknown", "window-not-closed", "any words"), "passed"),
        ("verifier-ran-out-of-budget", Answer("unknown", "coverage-impeached"), "failed"),
        ("nothing-declared", Answer("no-fault", "nothing-declared"), "passed"),
        ("nothing-declared", Answer("unknown"), "failed"),
        ("healthy-app-real-claim", Answer("unknown"), "failed"),
        ("healthy-app-real-claim", None, "absent"),
    ],
)
def test_an_answer_is_judged(scenario: str, answer: Answer | None, outcome: str) -> None:
    assert judge(the(scenario), answer) == outcome


@pytest.mark.parametrize(
    ("declared", "profile"),
    [
        ((), None),
        (("net",), None),
        (("log", "net"), "effect"),
        (("net", "log", "ui"), "effect"),
        (("net", "log", "state", "signal"), "in-realm"),
        (SURFACE, "surface"),
        (("state", "signal", "ui"), None),
    ],
)
def test_channels_reach_a_profile_without_a_gap(declared: tuple[str, ...], profile: str | None) -> None:
    assert profile_from_channels(declared) == profile


def test_missing_channels_stand_in_the_order_of_the_table() -> None:
    assert channels_missing_for("surface", ["state"]) == ("net", "log", "signal", "ui")


def test_a_registration_must_be_what_is_declared() -> None:
    assert registration_problems(("net", "log"), ("log", "net")) == ()
    problems = registration_problems(("net", "ui"), ("net", "log"))
    assert len(problems) == 2
    assert "'ui'" in problems[0]
    assert "'log'" in problems[1]


@pytest.mark.parametrize(
    ("channels", "outcomes", "earned"),
    [
        (SURFACE, {}, "surface"),
        (SURFACE, {"stale-data-in-a-nested-document": "failed"}, "in-realm"),
        (SURFACE, {"stale-data-in-a-nested-document": "absent"}, "in-realm"),
        (SURFACE, {"write-echoes-different-value": "absent"}, "effect"),
        (SURFACE, {"healthy-app-real-claim": "failed"}, None),
        (("net", "log"), {}, "effect"),
        (("net",), {}, None),
    ],
)
def test_a_profile_is_earned(channels: tuple[str, ...], outcomes: dict[str, Any], earned: str | None) -> None:
    assert profile_earned(registration(channels), ALL_PASSED | outcomes) == earned


@given(st.dictionaries(st.sampled_from(sorted(ALL_PASSED)), st.sampled_from(SCENARIO_OUTCOMES)))
def test_a_profile_is_never_earned_over_a_scenario_that_did_not_pass(outcomes: dict[str, ScenarioOutcome]) -> None:
    earned = profile_earned(registration(), outcomes)
    if earned is not None:
        covered = PROFILES[: PROFILES.index(earned) + 1]
        assert all(outcomes.get(one.id) == "passed" for one in SCENARIOS if one.profile in covered)


def right(scenario: Scenario) -> Answer:
    return Answer(scenario.verdict or "unknown", scenario.ground)


def played(
    answer: Callable[[Asked], Any], registered: Registration | None = None, limit_ms: int = 60_000
) -> tuple[Report, list[Asked]]:
    """Drive against `answer`, and say what was asked."""
    driving = drive(registered or registration(), limit_ms=limit_ms)
    asked = [next(driving)]
    while True:
        try:
            asked.append(driving.send(answer(asked[-1])))
        except StopIteration as stop:
            return stop.value, asked


def perfect(asked: Asked) -> Any:
    match asked:
        case Hello():
            return Greeted(SURFACE)
        case Plant(scenario):
            return Planted(True, {"claim": scenario.id})
        case Verify(scenario, claim):
            assert claim == {"claim": scenario.id}
            return right(scenario)


def test_a_perfect_implementation_earns_the_highest_profile() -> None:
    report, asked = played(perfect)
    assert (report.earned, report.failed, report.could_not_be_planted, report.never_attempted) == (
        "surface",
        (),
        (),
        (),
    )
    assert report.gate
    assert isinstance(asked[0], Hello)
    assert [one.scenario.id for one in asked if isinstance(one, Verify)] == [one.id for one in SCENARIOS]
    assert {one.limit_ms for one in asked if isinstance(one, Plant)} == {60_000}


def test_what_is_not_planted_or_not_answered_is_absent_with_a_note() -> None:
    def answer(asked: Asked) -> Any:
        if isinstance(asked, Plant) and asked.scenario.id == "fire-and-forget":
            return Planted(False, reason="no such state here")
        if isinstance(asked, Plant) and asked.scenario.id == "nothing-declared":
            return Failed("took longer than 60 s")
        if isinstance(asked, Verify) and asked.scenario.id == "consequence-already-true":
            return Failed("broke")
        return perfect(asked)

    report, asked = played(answer)
    assert report.could_not_be_planted == ("consequence-already-true", "fire-and-forget", "nothing-declared")
    assert "fire-and-forget: could not be planted: no such state here" in report.notes
    assert "consequence-already-true: was not answered: broke" in report.notes
    assert report.earned is None
    assert report.gate, "the score alone fails no gate"
    assert "fire-and-forget" not in [one.scenario.id for one in asked if isinstance(one, Verify)]


def test_a_wrong_answer_fails_the_gate() -> None:
    report, _ = played(lambda asked: Answer("yes", "proved") if isinstance(asked, Verify) else perfect(asked))
    assert not report.gate
    assert "nothing-declared" in report.failed
    assert "healthy-app-real-claim" not in report.failed


@pytest.mark.parametrize(
    "hello", [Failed("no answer"), Greeted(()), Greeted(("net", "log")), Greeted((*SURFACE, "x-a"))]
)
def test_a_run_is_refused_before_anything_is_driven(hello: Any) -> None:
    report, asked = played(lambda _asked: hello)
    assert len(asked) == 1
    assert report.rejected
    assert report.earned is None
    assert (report.failed, report.could_not_be_planted) == ((), ())
    assert len(report.never_attempted) == 16
    assert "earned" not in report.document()


def test_scenarios_above_the_claimed_profile_are_named() -> None:
    report, _ = played(perfect, registration(profile="effect"))
    assert report.out_of_profile == tuple(one.id for one in SCENARIOS if one.profile != "effect")
    assert report.document()["claimed"] == "effect"
