"""What was observed counts where it is of the window, of the claim, and selected by an assertion that was evaluated."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotplug.evidence import (
    Admitted,
    ChannelDescriptor,
    Claim,
    Observation,
    Present,
    Provenance,
    Reading,
    admit,
    assertions_held_under,
    can_support_consequence,
)
from hotplug.evidence.vocabulary import GRADES, INDEPENDENCES

from .making import CHANNELS, assertion, claim, coverage, observation, present, provenance, subject, window

PLACED = claim(assertion())


def known(_: Observation) -> Provenance:
    return provenance()


def admitted(*observations: Observation, of: Claim = PLACED, **given: Any) -> Admitted:
    base: dict[str, Any] = {"window": window(), "channels": CHANNELS, "provenance": known}
    return admit(iter(observations), claim=of, **{**base, **given})


def ids(found: Admitted) -> list[str]:
    return [item.observation.id for item in found.evidence]


def test_an_observation_becomes_evidence_of_its_channels_worth() -> None:
    found = admitted(observation())
    assert found.dropped == ()
    assert found.observations == (observation(),)
    (item,) = found.evidence
    assert (item.observation, item.provenance) == (observation(), provenance())
    assert (item.independence, item.grade) == ("independent", "consequence")


@pytest.mark.parametrize(
    ("one", "why"),
    [
        (observation(window="other"), "it is of window other, not of w"),
        (observation(channel="storage"), "nobody declared the channel storage"),
        (observation(channel="ui"), "the claim does not read the channel ui"),
        (observation(summary="GET / 200"), "no assertion that could be evaluated is about it"),
    ],
)
def test_what_does_not_count_is_told_with_why(one: Observation, why: str) -> None:
    found = admitted(one, observation("good"))
    assert ids(found) == ["good"]
    assert found.dropped == (f"observation o ({one.channel}: {one.summary}) does not count: {why}",)
    assert found.observations == ((observation("good"),) if one.window == "other" else (one, observation("good")))


def test_what_was_seen_of_another_instance_does_not_count() -> None:
    def of_the_old(one: Observation) -> Provenance:
        return provenance(subject=subject("shop@6")) if one.id == "old" else provenance(subject=subject(epoch=4))

    found = admitted(observation("old"), observation("new"), provenance=of_the_old)
    assert ids(found) == ["new"]
    assert found.dropped == (
        "observation old (net: POST /orders 201) does not count: it was seen of shop@6, and the window watches shop@7",
    )
    assert [one.id for one in found.observations] == ["new"]


def test_a_witnesss_window_and_subject_are_its_own() -> None:
    database = window(id="db", subject=subject("orders.db"))

    def from_its_source(one: Observation) -> Provenance:
        return provenance(subject=subject("orders.db" if one.channel == "x-db-state" else "shop@7"))

    channels = (*CHANNELS, ChannelDescriptor(id="x-db-state", independence="independent", grade="consequence"))
    of = claim(assertion(present("x-db-state", "42 created"), channels=("net", "x-db-state")))
    seen = observation(channel="x-db-state", summary="42 created", window="db")
    given: dict[str, Any] = {"channels": channels, "provenance": from_its_source}
    assert ids(admitted(seen, of=of, witnesses=[database], **given)) == ["o"]
    assert admitted(seen, of=of, **given).evidence == ()
    third = admitted(observation(window="x"), of=of, witnesses=[database], **given)
    assert "it is of window x, not of w, db" in third.dropped[0]
    swapped = admitted(observation(window="db"), of=of, witnesses=[database], **given)
    assert "it was seen of shop@7, and the window watches orders.db" in swapped.dropped[0]


def test_nothing_counts_where_nothing_could_be_evaluated() -> None:
    assert admitted(observation(), of=claim(assertion("somebody else's"))).evidence == ()
    measure = {"kind": "measure", "match": {"channel": "net"}, "op": "equals", "value": 1}
    assert admitted(observation(value="1"), of=claim(assertion(measure))).evidence == ()
    assert ids(admitted(observation(value=1), of=claim(assertion(measure)))) == ["o"]
    assert ids(admitted(observation(value=2), of=claim(assertion(measure)))) == ["o"]
    assert admitted(observation(), of=claim()).evidence == ()


def test_one_assertion_that_selects_it_is_enough() -> None:
    both = claim(assertion("unknown"), assertion(present(summary="paid")), assertion())
    assert ids(admitted(observation("a"), observation("b", summary="paid"), of=both)) == ["a", "b"]


def test_an_absence_selects_nothing() -> None:
    absent = claim(assertion({**present(summary="POST /payments 201"), "kind": "absent"}))
    found = admitted(observation(), of=absent)
    assert found.evidence == ()
    assert assertions_held_under(absent.assertions, found.observations, coverage()) is True


def test_another_reader_decides_what_is_selected() -> None:
    def wild(predicate: object) -> Reading | None:
        return Present(lambda one: one.summary.startswith("POST")) if predicate == "any post" else None

    assert ids(admitted(observation(), of=claim(assertion("any post")), read=wild)) == ["o"]
    assert admitted(observation(summary="GET"), of=claim(assertion("any post")), read=wild).evidence == ()


@pytest.mark.parametrize("independence", INDEPENDENCES)
@pytest.mark.parametrize("grade", GRADES)
@pytest.mark.parametrize("claimed_independence", INDEPENDENCES)
@pytest.mark.parametrize("claimed_grade", GRADES)
def test_an_observation_is_worth_less_than_its_channel_and_never_more(
    independence: Any, grade: Any, claimed_independence: Any, claimed_grade: Any
) -> None:
    channels = [ChannelDescriptor(id="net", independence=independence, grade=grade)]
    found = admitted(observation(), channels=channels, worth=lambda _: (claimed_independence, claimed_grade))
    (item,) = found.evidence
    assert INDEPENDENCES.index(item.independence) == max(map(INDEPENDENCES.index, (independence, claimed_independence)))
    assert GRADES.index(item.grade) == max(map(GRADES.index, (grade, claimed_grade)))


def test_an_observation_that_only_shows_a_dispatch_is_presence() -> None:
    def worth(one: Observation) -> Any:
        return ("independent", "presence" if one.value == "one way" else "consequence")

    found = admitted(observation("a", value="one way"), observation("b"), worth=worth)
    assert [item.grade for item in found.evidence] == ["presence", "consequence"]


OBSERVATIONS = st.lists(
    st.builds(
        observation,
        st.sampled_from(["a", "b", "c"]),
        st.sampled_from(["net", "log", "ui", "storage"]),
        st.sampled_from(["POST /orders 201", "GET / 200"]),
        window=st.sampled_from(["w", "v"]),
        value=st.sampled_from([1, "1", None]),
    ),
    max_size=8,
)


@given(OBSERVATIONS, st.lists(st.sampled_from([present(), present("log"), present("ui", None), "?"]), max_size=3))
def test_every_observation_counts_or_is_told_and_only_those_of_the_claim_count(
    observations: list[Observation], predicates: list[Any]
) -> None:
    of = claim(*(assertion(predicate, channels=("net", "log")) for predicate in predicates))
    found = admitted(*observations, of=of)
    assert len(found.evidence) + len(found.dropped) == len(observations)
    for item in found.evidence:
        assert item.observation in observations
        assert (item.observation.window, item.observation.summary) == ("w", "POST /orders 201")
        assert item.observation.channel in ("net", "log")
        assert can_support_consequence(item) == (item.observation.channel == "net")
    turned = admitted(*reversed(observations), of=of)
    assert sorted(turned.dropped) == sorted(found.dropped)
    assert sorted(ids(turned)) == sorted(ids(found))
