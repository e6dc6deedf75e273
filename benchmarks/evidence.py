"""From what was observed to a verdict: what it costs by the number of observations."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from benchmarks.measure import Counts, Row, compare_blocking, row
from hotplug.evidence import (
    Adjudication,
    AdjudicationInput,
    Assertion,
    ChannelDescriptor,
    Claim,
    Coverage,
    Observation,
    Provenance,
    SubjectRef,
    Window,
    adjudicate,
    admit,
    assertions_held_under,
)

__all__ = ["measure_evidence"]

SHOP = SubjectRef(surface="service", instance="shop@7")
WINDOW = Window(id="w", opened_at=0, closed_at=9, budget_ms=5000, closes="ack", closed_by="ack", subject=SHOP)
CHANNELS = (
    ChannelDescriptor(id="net", independence="independent", grade="consequence"),
    ChannelDescriptor(id="log", independence="independent", grade="context"),
)
COVERAGE = Coverage(window="w", observed=("net", "log"), blind_spots=())
SEEN = Provenance(class_="observed", source="proxy", method="read its log", subject=SHOP, at=1)
GROWTH = (10, 100, 1_000, 10_000, 100_000)


def _assertion(name: str, channel: str, summary: str, op: str, value: int) -> Assertion:
    match = {"channel": channel, "summary": summary}
    predicate = {"kind": "count", "match": match, "op": op, "value": value}
    return Assertion(id=name, predicate=predicate, reads=f"{summary} {op} {value}", channels=(channel,))


CLAIM = Claim(
    id="c",
    statement="the order is placed",
    declared_at="before-action",
    assertions=(
        _assertion("placed", "net", "POST /orders 201", "at-least", 1),
        _assertion("not twice", "net", "POST /payments 201", "at-most", 1_000_000),
        _assertion("logged", "log", "order placed", "at-least", 1),
    ),
)
SUMMARIES = (("net", "POST /orders 201"), ("net", "GET /orders 200"), ("log", "order placed"), ("log", "cache miss"))


def _observations(number: int) -> tuple[Observation, ...]:
    return tuple(
        Observation(id=f"o{one}", window="w", channel=channel, at=1, summary=summary, value={"number": one})
        for one in range(number)
        for channel, summary in [SUMMARIES[one % len(SUMMARIES)]]
    )


def _decided(observations: Sequence[Observation]) -> Adjudication:
    """The whole way: what counts, what the assertions come to, the verdict."""
    found = admit(observations, window=WINDOW, claim=CLAIM, channels=CHANNELS, provenance=lambda _: SEEN)
    held = assertions_held_under(CLAIM.assertions, found.observations, COVERAGE, window=WINDOW)
    answer = adjudicate(
        AdjudicationInput(
            claim=CLAIM,
            window=WINDOW,
            channels=CHANNELS,
            evidence=found.evidence,
            coverage=COVERAGE,
            anomalies=(),
            assertions_held=held,
        )
    )
    if answer.verdict != "yes":
        raise RuntimeError(f"the case that is measured should be proved, and is {answer.ground}")
    return answer


def _way(observations: Sequence[Observation]) -> Callable[[], object]:
    return lambda: _decided(observations)


def measure_evidence(counts: Counts) -> list[Row]:
    """A claim with 1,000 observations, and how the time grows from 10 to 100,000 of them."""
    thousand = _observations(1_000)
    documents = [one.document() for one in thousand]
    few = Counts(rounds=counts.rounds, calls=max(1, counts.calls // 5))
    times = compare_blocking(
        {"observations to verdict": _way(thousand), "json.dumps of them": lambda: json.dumps(documents)}, few
    )
    found = [row("evidence", "1,000 observations", times, "observations to verdict", "json.dumps of them")]
    once = Counts(rounds=max(1, counts.rounds // 5), calls=1)
    grown = compare_blocking({f"{number:,}": _way(_observations(number)) for number in GROWTH}, once)
    first, *others = GROWTH
    for number in others:
        # Times for as many observations as the base has: linear growth stays at one.
        name = f"{number:,}"
        scaled = {**grown, name: [ms * first / number for ms in grown[name]]}
        found.append(row("evidence", f"{name}, for each {first}", scaled, name, f"{first:,}", aim=2))
    return found
