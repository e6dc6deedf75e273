"""What verdict a run's own material gives, so that a reader need not take the recorded one on trust.

A run does not hold everything that an adjudication had: whether the consequence held before, what a predicate meant
that nobody here speaks. Every completion of what is missing is tried; a verdict that none of them gives is wrong.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final, cast

from hotplug.evidence.adjudicate import AdjudicationInput, adjudicate
from hotplug.evidence.anomaly import Anomaly
from hotplug.evidence.channels import ChannelDescriptor, weaker_grade
from hotplug.evidence.coverage import Coverage
from hotplug.evidence.intent import Claim, channels_read
from hotplug.evidence.observation import Evidence, Observation
from hotplug.evidence.predicates import Reader, Reading, assertions_held_under
from hotplug.evidence.run import VerdictRecord, VerificationRun
from hotplug.evidence.vocabulary import ChannelId, Ground, Verdict
from hotplug.evidence.window import Window

__all__ = ["GROUND_VERDICT", "Bundle", "Possible", "possible_verdicts"]

GROUND_VERDICT: Final[Mapping[Ground, Verdict]] = {
    "nothing-declared": "no-fault",
    "channel-not-observed": "unknown",
    "contradicted": "no",
    "assertion-failed": "no",
    "window-not-closed": "unknown",
    "coverage-impeached": "unknown",
    "suspicion-unresolved": "unknown",
    "declared-after-action": "unknown",
    "no-independent-consequence": "unknown",
    "already-true": "unknown",
    "proved": "yes",
}
"""The one verdict that each ground goes with."""


@dataclass(frozen=True)
class Bundle:
    """What a run holds, by id.

    Args:
        judged: The windows that are not some witness's own.
    """

    run: VerificationRun
    channels: Mapping[ChannelId, ChannelDescriptor]
    evidence: Mapping[str, Evidence]
    evidence_of: Mapping[str, tuple[Evidence, ...]]
    judged: tuple[Window, ...]
    read: Reader

    @cached_property
    def unrecorded(self) -> tuple[Anomaly, ...]:
        """The run's anomalies that no verdict has; of several that could decide the same, one."""
        return _deciding(self._unrecorded)

    @cached_property
    def unrecorded_in(self) -> Mapping[str, tuple[Anomaly, ...]]:
        """Those whose evidence is of one window alone, by that window."""
        found: defaultdict[str, list[Anomaly]] = defaultdict(list)
        for anomaly in self._unrecorded:
            windows = {self.evidence[name].observation.window for name in anomaly.evidence if name in self.evidence}
            if len(windows) == 1:
                found[windows.pop()].append(anomaly)
        return {window: _deciding(anomalies) for window, anomalies in found.items()}

    @cached_property
    def _unrecorded(self) -> tuple[Anomaly, ...]:
        recorded = {anomaly.text() for record in self.run.verdicts for anomaly in record.anomalies}
        return tuple(anomaly for anomaly in self.run.anomalies if anomaly.text() not in recorded)

    @cached_property
    def claims_in(self) -> Mapping[str, frozenset[str]]:
        """The claims that were judged in each window."""
        found: defaultdict[str, set[str]] = defaultdict(set)
        for record in self.run.verdicts:
            found[record.window].add(record.claim)
        return {window: frozenset(claims) for window, claims in found.items()}


def _deciding(anomalies: Iterable[Anomaly]) -> tuple[Anomaly, ...]:
    return tuple({(anomaly.tier, anomaly.between): anomaly for anomaly in anomalies}.values())


@dataclass(frozen=True)
class Possible:
    """The verdicts that the material allows.

    Args:
        open: What is missing to tell them apart, in words; without it there is one verdict for certain.
    """

    verdicts: tuple[tuple[Verdict, Ground], ...]
    open: tuple[str, ...] = ()


def possible_verdicts(
    bundle: Bundle, record: VerdictRecord, claim: Claim, window: Window, coverage: Coverage
) -> Possible:
    """The verdicts that some completion of what the run holds gives for a record."""
    readings = [bundle.read(assertion.predicate) for assertion in claim.assertions]
    unread = tuple(
        f"nobody here speaks the predicate of {assertion.id!r}"
        for assertion, reading in zip(claim.assertions, readings, strict=True)
        if reading is None
    )
    redacted = any(spot.kind == "redacted" for spot in coverage.blind_spots or ())
    seen, elsewhere = _observations(bundle, record, claim, window)
    held = {
        answer
        for observations in ((seen, seen + elsewhere) if elsewhere else (seen,))
        for answer in _held(bundle, claim, window, coverage, observations, readings)
    }
    if redacted and claim.assertions and _any_reads_values(claim):
        held |= {True, False, None}
        unread = (*unread, "values were redacted that a predicate looks into")
    found: dict[tuple[Verdict, Ground], None] = {}
    for evidence in _evidence(bundle, record, claim, window, readings):
        for anomalies in _anomalies(bundle, record, window):
            for holds in sorted(held, key=str):
                for before in (None, True):
                    given = AdjudicationInput(
                        claim=claim,
                        window=window,
                        channels=tuple(bundle.channels.values()),
                        evidence=evidence,
                        coverage=coverage,
                        anomalies=anomalies,
                        assertions_held=holds,
                        consequence_held_before=before,
                    )
                    answer = adjudicate(given)
                    found[answer.verdict, answer.ground] = None
    # Whether it was so before is never in a run, and a producer that says so only weakens its own verdict.
    certain = {verdict for verdict in found if verdict[1] != "already-true"}
    return Possible(tuple(found), unread if len(certain) > 1 else ())


def _any_reads_values(claim: Claim) -> bool:
    return any(_reads_values(assertion.predicate) for assertion in claim.assertions)


def _reads_values(predicate: object) -> bool:
    if not isinstance(predicate, dict):
        return False
    members = cast("dict[str, object]", predicate)
    match = members.get("match")
    return members.get("kind") == "measure" or (isinstance(match, dict) and "valueContains" in match)


def _observations(
    bundle: Bundle, record: VerdictRecord, claim: Claim, window: Window
) -> tuple[tuple[Observation, ...], tuple[Observation, ...]]:
    """What was seen in the window, its witnesses' windows included; and what was seen in those of no known window.

    Nothing in a run says which window of a witness belongs to which of the subject's, but for what a verdict cites.
    """
    cited = {bundle.evidence[name].observation.window for name in record.evidence if name in bundle.evidence}
    judged = {one.id for one in bundle.judged}
    related = {window.id, *(cited - judged)}
    reads = set(channels_read(claim.assertions))
    seen = tuple(item.observation for name in sorted(related) for item in bundle.evidence_of.get(name, ()))
    elsewhere = tuple(
        item.observation
        for name, items in bundle.evidence_of.items()
        if name not in related and name not in judged
        for item in items
        if item.observation.channel in reads
    )
    return seen, elsewhere


def _held(
    bundle: Bundle,
    claim: Claim,
    window: Window,
    coverage: Coverage,
    observations: tuple[Observation, ...],
    readings: list[Reading | None],
) -> Iterator[bool | None]:
    answer = assertions_held_under(claim.assertions, observations, coverage, window=window, read=bundle.read)
    yield answer
    if None in readings and answer is not False:
        # Others may speak what we don't: then it may be false, and where nothing of it is known here, true as well.
        yield False
        yield True


def _evidence(
    bundle: Bundle, record: VerdictRecord, claim: Claim, window: Window, readings: list[Reading | None]
) -> Iterator[tuple[Evidence, ...]]:
    """What may have been admitted: what the record cites; where it cites nothing, that or all there is."""
    reads = set(channels_read(claim.assertions))

    def admitted(items: Iterable[Evidence]) -> tuple[Evidence, ...]:
        return tuple(
            _clamped(item, bundle.channels[item.observation.channel])
            for item in items
            if item.observation.channel in reads
            and item.observation.channel in bundle.channels
            and (None in readings or any(reading and reading.select(item.observation) for reading in readings))
        )

    yield admitted(bundle.evidence[name] for name in record.evidence if name in bundle.evidence)
    if not record.evidence:
        yield admitted(bundle.evidence_of.get(window.id, ()))


def _clamped(item: Evidence, channel: ChannelDescriptor) -> Evidence:
    independence = item.independence if channel.independence == "independent" else channel.independence
    return item.model_copy(update={"independence": independence, "grade": weaker_grade(item.grade, channel.grade)})


def _anomalies(bundle: Bundle, record: VerdictRecord, window: Window) -> Iterator[tuple[Anomaly, ...]]:
    """The record's own, and those of the run that no record has: they are this one's for certain where only this claim
    was judged, and they are of this window or there is no other.
    """
    others = bundle.unrecorded
    if not others:
        yield record.anomalies
        return
    certain: tuple[Anomaly, ...] = ()
    if len(bundle.claims_in[window.id]) == 1:
        certain = others if len(bundle.judged) == 1 else bundle.unrecorded_in.get(window.id, ())
    yield (*record.anomalies, *certain)
    if len(certain) < len(others):
        yield (*record.anomalies, *others)
