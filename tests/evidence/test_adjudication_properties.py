"""What holds of every verdict, whatever the case."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from hotplug.evidence import (
    Adjudication,
    AdjudicationInput,
    Anomaly,
    BlindSpot,
    Evidence,
    Observation,
    adjudicate,
    admit,
    assertions_held_under,
    can_support_consequence,
    channels_read,
)
from hotplug.evidence.vocabulary import ANOMALY_TIERS, CLOSE_CONDITIONS, GRADES, GROUNDS, INDEPENDENCES

from .making import (
    CHANNELS,
    anomaly,
    assertion,
    case,
    claim,
    coverage,
    evidence,
    observation,
    present,
    provenance,
    spot,
    window,
)

NAMES = st.sampled_from(["net", "log", "ui", "state", "visual", "x-db"])
TRUTHS = st.sampled_from([None, False, True])
SUMMARIES = st.sampled_from(["placed", "paid", "POST /orders 201"])
OBSERVATIONS = st.builds(observation, st.uuids().map(str), NAMES, SUMMARIES, value=st.integers(0, 3))
PROVENANCES = st.sampled_from([*map(provenance, ("authoritative", "derived", "observed"))]) | st.just(
    provenance("learned", confidence=0.9)
)
EVIDENCE = st.builds(
    evidence,
    OBSERVATIONS,
    provenance=PROVENANCES,
    independence=st.sampled_from(INDEPENDENCES),
    grade=st.sampled_from(GRADES),
)
SPOTS = st.builds(spot, st.none() | NAMES, impeaching=st.booleans())
COVERAGES = st.builds(lambda spots: coverage(blind_spots=spots), st.none() | st.lists(SPOTS, max_size=2).map(tuple))
ANOMALIES = st.builds(anomaly, st.sampled_from(ANOMALY_TIERS), st.tuples(NAMES, NAMES))
PREDICATES = st.sampled_from(
    [
        present(),
        present("log", "paid"),
        {**present(summary="paid"), "kind": "absent"},
        {"kind": "count", "match": {"channel": "net"}, "op": "exactly", "value": 2},
        {"kind": "count", "match": {"channel": "net"}, "op": "at-most", "value": 1},
        {"kind": "measure", "match": {"channel": "state"}, "op": "at-least", "value": 2},
        "somebody else's",
    ]
)
ASSERTIONS = st.builds(assertion, PREDICATES, st.lists(NAMES, min_size=1, max_size=2).map(tuple))
CLAIMS = st.builds(
    lambda assertions, late: claim(*assertions, declared_at="after-action" if late else "before-action"),
    st.lists(ASSERTIONS, max_size=2),
    st.sampled_from([False, False, False, True]),
)
WINDOWS = st.builds(
    lambda ending: window() if ending == "ack" else window(closed_by=ending),
    st.sampled_from(["ack", *CLOSE_CONDITIONS]),
)
CASES = st.builds(
    case,
    claim=CLAIMS,
    window=WINDOWS,
    evidence=st.lists(EVIDENCE, max_size=4).map(tuple),
    coverage=COVERAGES,
    anomalies=st.lists(ANOMALIES, max_size=2).map(tuple),
    assertions_held=TRUTHS,
    consequence_held_before=TRUTHS,
)


def changed(given: AdjudicationInput, **update: Any) -> AdjudicationInput:
    return given.model_copy(update=update)


def decided(answer: Adjudication) -> tuple[str, str]:
    return answer.verdict, answer.ground


@given(CASES)
def test_every_case_has_a_verdict_of_its_ground_with_reasons(given: AdjudicationInput) -> None:
    answer = adjudicate(given)
    verdicts = dict.fromkeys(GROUNDS, "unknown") | {
        "nothing-declared": "no-fault",
        "contradicted": "no",
        "assertion-failed": "no",
        "proved": "yes",
    }
    assert answer.verdict == verdicts[answer.ground]
    assert (answer.grade == "consequence") == (answer.verdict == "yes")
    assert all(answer.reasons)
    assert adjudicate(AdjudicationInput.read(given.document())) == answer


@given(CASES, st.lists(EVIDENCE.filter(lambda item: not can_support_consequence(item)), max_size=4))
def test_no_yes_without_independent_unlearned_evidence_of_consequence(
    given: AdjudicationInput, weak: list[Evidence]
) -> None:
    assert adjudicate(changed(given, evidence=tuple(weak))).verdict != "yes"


@given(CASES, SPOTS)
def test_one_more_blind_spot_turns_nothing_into_yes_or_no(given: AdjudicationInput, gap: BlindSpot) -> None:
    before = adjudicate(given)
    blinder = given.coverage.model_copy(update={"blind_spots": (*(given.coverage.blind_spots or ()), gap)})
    after = adjudicate(changed(given, coverage=blinder))
    assert after.verdict == before.verdict or after.verdict == "unknown"


@settings(max_examples=200)
@given(CASES, st.lists(OBSERVATIONS, max_size=4), SPOTS)
def test_one_more_blind_spot_turns_nothing_into_yes_or_no_over_evaluated_assertions(
    given: AdjudicationInput, seen: list[Observation], gap: BlindSpot
) -> None:
    def whole(spots: tuple[BlindSpot, ...]) -> Adjudication:
        cover = given.coverage.model_copy(update={"blind_spots": spots})
        held = assertions_held_under(given.claim.assertions, seen, cover, window=given.window)
        return adjudicate(changed(given, coverage=cover, assertions_held=held))

    spots = given.coverage.blind_spots or ()
    before, after = whole(spots), whole((*spots, gap))
    assert after.verdict == before.verdict or after.verdict == "unknown"


@given(CASES, st.randoms(use_true_random=False))
def test_the_order_of_everything_is_no_matter(given: AdjudicationInput, random: Any) -> None:
    def shuffled(items: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(random.sample(items, len(items)))

    spots = given.coverage.blind_spots
    turned = changed(
        given,
        evidence=shuffled(given.evidence),
        channels=shuffled(given.channels),
        anomalies=tuple(one.model_copy(update={"between": shuffled(one.between)}) for one in shuffled(given.anomalies)),
        claim=given.claim.model_copy(update={"assertions": shuffled(given.claim.assertions)}),
        coverage=given.coverage.model_copy(update={"blind_spots": None if spots is None else shuffled(spots)}),
    )
    assert decided(adjudicate(turned)) == decided(adjudicate(given))


@given(CASES, ANOMALIES)
def test_an_anomaly_never_helps(given: AdjudicationInput, more: Anomaly) -> None:
    before = adjudicate(given)
    after = adjudicate(changed(given, anomalies=(*given.anomalies, more)))
    assert after.verdict == before.verdict or after.verdict in ("no", "unknown")
    assert after.verdict != "no" or more.tier == "observed" or before.verdict == "no"


@given(CASES)
def test_unknown_members_are_no_evidence(given: AdjudicationInput) -> None:
    document = given.document()
    noisy = {**document, "verdict": "yes", "assertions_held": True, "window": {**document["window"], "closed_at": 1}}
    received = AdjudicationInput.read(noisy)
    assert adjudicate(received) == adjudicate(given)
    assert received.document() == noisy


@settings(max_examples=200)
@given(CLAIMS, WINDOWS, st.lists(OBSERVATIONS, max_size=6), COVERAGES)
def test_from_observations_to_verdict_a_yes_rests_on_what_the_claim_is_about(
    wanted: Any, over: Any, seen: list[Observation], cover: Any
) -> None:
    found = admit(seen, window=over, claim=wanted, channels=CHANNELS, provenance=lambda _: provenance())
    held = assertions_held_under(wanted.assertions, found.observations, cover, window=over)
    answer = adjudicate(
        AdjudicationInput(
            claim=wanted,
            window=over,
            channels=CHANNELS,
            evidence=found.evidence,
            coverage=cover,
            anomalies=(),
            assertions_held=held,
        )
    )
    if answer.verdict == "yes":
        assert held is True
        assert any(can_support_consequence(item) for item in found.evidence)
        assert all(item.observation.channel in channels_read(wanted.assertions) for item in found.evidence)


def test_the_strategies_reach_every_ground() -> None:
    reached: set[str] = set()

    @settings(max_examples=500, derandomize=True, database=None, deadline=None)
    @given(CASES)
    def collect(given: AdjudicationInput) -> None:
        reached.add(adjudicate(given).ground)

    collect()
    assert reached == set(GROUNDS)
