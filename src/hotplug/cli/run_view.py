"""A run as its reader sees it: each claim with its verdict, what was seen, what wasn't, and the next move."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from hotplug.evidence.anomaly import Anomaly
    from hotplug.evidence.channels import ChannelDescriptor
    from hotplug.evidence.checks import Examined, Fault
    from hotplug.evidence.coverage import Coverage
    from hotplug.evidence.intent import Claim, Constraint, ConstraintViolation
    from hotplug.evidence.observation import Evidence
    from hotplug.evidence.run import VerdictRecord, VerificationRun
    from hotplug.evidence.window import Window

__all__ = ["OUTCOME_MARKS", "WORD", "Judged", "RunView", "examined_text", "view_of"]

WORD = "sense"
"""What a channel of the protocol is called for people."""

OUTCOME_MARKS = {"pass": "✓", "fail": "✗", "partial": "~", "unknown": "?"}


@dataclass(frozen=True)
class Judged:
    """A claim, and one verdict about it.

    Args:
        record: None where nobody judged it.
        corrected_by: The id of the verdict that supersedes this one.
    """

    claim: Claim
    record: VerdictRecord | None
    window: Window | None
    coverage: Coverage | None
    evidence: tuple[Evidence, ...]
    channels: tuple[ChannelDescriptor, ...]
    corrected_by: str | None = None

    @property
    def anomalies(self) -> tuple[Anomaly, ...]:
        """The contradictions that its verdict knew of."""
        return self.record.anomalies if self.record else ()

    @property
    def next_move(self) -> str | None:
        """What to do now; None where nothing is to be done or nothing can be said."""
        from hotplug.evidence.moves import next_move
        from hotplug.evidence.text import concerned

        if self.record is None or self.record.ground is None or self.record.verdict == "yes" or self.corrected_by:
            return None
        about = concerned(
            self.record.ground,
            self.claim,
            channels=self.channels,
            coverage=self.coverage,
            anomalies=self.anomalies,
        )
        return next_move(self.record.ground, about, word=WORD)

    def document(self) -> dict[str, Any]:
        """The claim as data."""
        body: dict[str, Any] = {
            "id": self.claim.id,
            "statement": self.claim.statement,
            "conditions": [assertion.reads for assertion in self.claim.assertions],
        }
        if self.record is None:
            return body
        body |= {
            "verdict": self.record.verdict,
            **({"ground": self.record.ground} if self.record.ground else {}),
            "reasons": list(self.record.reasons),
            "evidence": [
                {
                    "id": item.observation.id,
                    "sense": item.observation.channel,
                    "summary": item.observation.summary,
                    "independence": item.independence,
                    "grade": item.grade,
                    "provenance": item.provenance.class_,
                }
                for item in self.evidence
            ],
        }
        if self.coverage is not None and self.coverage.blind_spots is not None:
            body["unseen"] = [
                {
                    "kind": spot.kind,
                    **({"sense": spot.channel} if spot.channel else {}),
                    "detail": spot.detail,
                    **({"remedy": spot.remedy} if spot.remedy else {}),
                }
                for spot in self.coverage.blind_spots
            ]
        if self.corrected_by:
            body["correctedBy"] = self.corrected_by
        if self.next_move:
            body["next"] = self.next_move
        return body


@dataclass(frozen=True)
class RunView:
    """A run that could be read, with what is wrong with it."""

    run: VerificationRun
    outcome: str
    faults: tuple[Fault, ...]
    unjudged: tuple[Fault, ...]
    claims: tuple[Judged, ...]

    @cached_property
    def counts(self) -> Counter[str]:
        """How many standing verdicts there are of each kind; `not judged` besides."""
        return Counter(
            one.record.verdict if one.record else "not judged" for one in self.claims if one.corrected_by is None
        )

    def constraints(self) -> Iterator[tuple[Constraint, tuple[ConstraintViolation, ...]]]:
        """Each constraint with its violations."""
        for constraint in self.run.constraints:
            yield constraint, tuple(one for one in self.run.violations if one.constraint == constraint.id)


def examined_text(text: str, *, shown: str | None = None) -> Examined:
    """A run's text, checked as its reader must, with the protocol's predicates and ours understood."""
    from hotplug.connect.claims.conditions import predicate_reader
    from hotplug.evidence.checks import examine_run
    from hotplug.evidence.errors import EvidenceError
    from hotplug.evidence.wire import parse_json

    try:
        document = parse_json(text)
    except EvidenceError:
        return examine_run(text)
    return examine_run(document, shown_summary=shown, read=predicate_reader(_actions_in(document)))


def _actions_in(document: Any) -> frozenset[str]:
    """The ids of the actions of what may be a run: what `mine` in a condition of ours means."""
    actions = cast("dict[str, Any]", document).get("actions") if isinstance(document, dict) else None
    if not isinstance(actions, list):
        return frozenset()
    every = (cast("dict[str, Any]", one).get("id") for one in cast("list[Any]", actions) if isinstance(one, dict))
    return frozenset(one for one in every if isinstance(one, str))


def view_of(examined: Examined) -> RunView | None:
    """What there is to see; None where the run can't be read."""
    run = examined.run
    if run is None:
        return None
    return RunView(run, examined.outcome, examined.faults, examined.unjudged, tuple(_judged(run)))


def _judged(run: VerificationRun) -> Iterator[Judged]:
    from hotplug.evidence.run import citation

    windows = {window.id: window for window in run.windows}
    coverage = {one.window: one for one in run.coverage}
    evidence = {item.observation.id: item for item in run.evidence}
    channels = (*run.channels, *(channel for witness in run.witnesses for channel in witness.channels))
    corrections = {record.supersedes: record.id for record in run.verdicts if record.supersedes}
    by_claim: dict[str, list[VerdictRecord]] = {}
    for record in run.verdicts:
        by_claim.setdefault(record.claim, []).append(record)
    for claim in run.claims:
        records = by_claim.get(claim.id, [])
        if not records:
            yield Judged(claim, None, None, None, (), channels)
        for record in records:
            yield Judged(
                claim,
                record,
                windows.get(record.window),
                coverage.get(record.window),
                tuple(evidence[name] for name in record.evidence if name in evidence),
                channels,
                corrections.get(citation(run.id, record.id)),
            )
