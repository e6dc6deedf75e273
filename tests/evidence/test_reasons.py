"""A verdict's reasons say what to do about it, and what nobody could tell."""

from __future__ import annotations

from typing import Any

import pytest

from hotplug.evidence import Adjudication, EvidenceError, adjudicate

from .making import (
    LOG,
    anomaly,
    assertion,
    case,
    claim,
    coverage,
    evidence,
    observation,
    provenance,
    spot,
    window,
)

UNEVALUATED = "no assertion was evaluated: nobody here could tell whether what was observed satisfies them"
NOT_ENUMERATED = "coverage was not enumerated: what could not be seen is not known"


@pytest.mark.parametrize(
    ("given", "ground", "reasons"),
    [
        (
            {"claim": claim()},
            "nothing-declared",
            ["the claim asserts nothing, so there is nothing to prove or fail"],
        ),
        (
            {"claim": claim(), "window": window(closed_at=None)},
            "window-not-closed",
            ["the window is still open: close it before asking"],
        ),
        (
            {"claim": claim(assertion(channels=("visual", "net", "x-mail")))},
            "channel-not-observed",
            [
                (
                    "the claim reads visual, x-mail, which nobody here watches (declared: net, log, ui, state): "
                    "add a witness for it, or claim what can be seen"
                )
            ],
        ),
        (
            {"channels": ()},
            "channel-not-observed",
            [
                (
                    "the claim reads net, which nobody here watches (declared: none): "
                    "add a witness for it, or claim what can be seen"
                )
            ],
        ),
        (
            {"anomalies": (anomaly(kind="x-odd"), anomaly(between=("state", "ui")), anomaly(between=("log", "log")))},
            "contradicted",
            [
                "x-odd (ui and net): placed; but nothing happened",
                "no-effect (log and log): placed; but nothing happened",
            ],
        ),
        (
            {"assertions_held": False, "claim": claim(assertion(reads="one order"), assertion(reads="no payment"))},
            "assertion-failed",
            ["what was observed does not satisfy: one order; no payment"],
        ),
        (
            {"window": window(closed_by=None)},
            "window-not-closed",
            ["the window is still open: close it before asking"],
        ),
        (
            {"window": window(closed_by="terminated")},
            "window-not-closed",
            ["the subject was ended from outside before the window closed: run it again undisturbed"],
        ),
        (
            {"window": window(closed_by="budget-exhausted")},
            "window-not-closed",
            ["the window's budget of 500 ms ran out before ack: allow more time, or wait for something that comes"],
        ),
        (
            {"coverage": coverage(spot("net", remedy="a larger buffer"), spot("ui"), spot(None, impeaching=True))},
            "coverage-impeached",
            [
                "could not see net (buffer-truncated): the buffer was full; to see more: a larger buffer",
                "could not see everything (buffer-truncated): the buffer was full",
            ],
        ),
        (
            {"anomalies": (anomaly("advisory"), anomaly("absence-derived", between=("x-a", "x-b")))},
            "suspicion-unresolved",
            ["no-effect (x-a and x-b): placed; but nothing happened"],
        ),
        (
            {"claim": claim(assertion(), declared_at="after-action")},
            "declared-after-action",
            ["the claim was written after the action, fitted to what happened: write it down first, then act"],
        ),
        (
            {"evidence": ()},
            "no-independent-consequence",
            ["no evidence was admitted: watch a channel that is independent of the action and shows its consequence"],
        ),
        (
            {
                "evidence": (
                    evidence(independence="actuation-derived"),
                    evidence(independence="actuation-derived"),
                    evidence(observation(channel="log"), grade="context"),
                    evidence(provenance=provenance("learned", confidence=1)),
                )
            },
            "no-independent-consequence",
            [
                (
                    "no evidence is independent of the action, of consequence grade and not learned; there is "
                    "net (observed, actuation-derived, consequence), log (observed, independent, context), "
                    "net (learned, independent, consequence): add a witness that sees the consequence itself"
                )
            ],
        ),
        (
            {"consequence_held_before": True},
            "already-true",
            ["it was so before the action already, so the action proves nothing: start from a state where it is not"],
        ),
        (
            {"evidence": (evidence(grade="context"), evidence(observation(summary="paid")))},
            "proved",
            ["independent evidence of the consequence: net: paid"],
        ),
        (
            {"evidence": (evidence(), evidence())},
            "proved",
            ["independent evidence of the consequence: net: POST /orders 201 and 1 more"],
        ),
        (
            {"evidence": (evidence(), evidence(), evidence())},
            "proved",
            ["independent evidence of the consequence: net: POST /orders 201 and 2 more"],
        ),
    ],
)
def test_a_ground_is_explained(given: dict[str, Any], ground: str, reasons: list[str]) -> None:
    answer = adjudicate(case(**given))
    assert (answer.ground, list(answer.reasons)) == (ground, reasons)


def test_a_yes_of_assertions_that_nobody_evaluated_says_so() -> None:
    answer = adjudicate(case(assertions_held=None))
    assert answer.verdict == "yes"
    assert answer.reasons[1:] == (UNEVALUATED,)


def test_gaps_that_nobody_enumerated_are_told_beside_every_verdict() -> None:
    unknown = coverage(blind_spots=None)
    assert adjudicate(case(coverage=unknown)).reasons[1:] == (NOT_ENUMERATED,)
    assert adjudicate(case(coverage=unknown, assertions_held=None)).reasons[1:] == (UNEVALUATED, NOT_ENUMERATED)
    assert adjudicate(case(coverage=unknown, assertions_held=False)).reasons[1:] == (NOT_ENUMERATED,)
    assert adjudicate(case(coverage=unknown, claim=claim())).reasons[1:] == (NOT_ENUMERATED,)


def test_only_a_yes_has_a_grade() -> None:
    assert adjudicate(case()).document()["grade"] == "consequence"
    assert "grade" not in adjudicate(case(evidence=())).document()
    with pytest.raises(EvidenceError, match="grade"):
        Adjudication.read({"verdict": "no", "grade": "consequence", "ground": "contradicted", "reasons": ["r"]})
    assert Adjudication.read({"verdict": "yes", "ground": "proved", "reasons": ["r"]}).grade is None


def test_a_convicting_anomaly_needs_both_channels_declared() -> None:
    given = {"anomalies": (anomaly(between=("log", "net")),), "claim": claim(assertion(channels=("log",)))}
    assert adjudicate(case(**given)).verdict == "no"
    assert adjudicate(case(**given, channels=(LOG,))).verdict == "yes"
    turned = (anomaly(between=("net", "log")),)
    assert adjudicate(case(**{**given, "anomalies": turned}, channels=(LOG,))).verdict == "yes"
