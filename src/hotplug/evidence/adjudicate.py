"""The verdict: eleven clauses in their order, the first that applies decides. A pure function of its input.

Source: OVP version 1, the chapter on adjudication. Verdict, grade and ground are the protocol's; reasons are our words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, ClassVar, Final, Literal, Self

from pydantic import Field, model_validator

from hotplug.evidence.anomaly import Anomaly
from hotplug.evidence.channels import ChannelDescriptor, Declared, declared, disagreement_can_convict
from hotplug.evidence.coverage import BlindSpot, Coverage, impeaching_spots
from hotplug.evidence.intent import Claim, channels_read
from hotplug.evidence.noun import Noun, Schema
from hotplug.evidence.observation import Evidence, can_support_consequence
from hotplug.evidence.vocabulary import ChannelId, Flag, Ground, Text, Verdict
from hotplug.evidence.window import Window, closed_cleanly

__all__ = ["Adjudication", "AdjudicationInput", "adjudicate"]


class AdjudicationInput(Noun):
    """All that a verdict is made of.

    Args:
        channels: What the realm and its witnesses declared.
        assertions_held: Whether the claim's assertions hold; None where nobody could evaluate them.
        consequence_held_before: Whether it was so before the action; None where nobody looked.
    """

    claim: Claim
    window: Window
    channels: Declared
    evidence: tuple[Evidence, ...]
    coverage: Coverage
    anomalies: tuple[Anomaly, ...]
    assertions_held: Flag | None = None
    consequence_held_before: Flag | None = None


class Adjudication(Noun):
    """A verdict with its ground and reasons.

    Args:
        grade: Only a `yes` has one.
        ground: The deciding clause.
        reasons: For people; never compared.
    """

    verdict: Verdict
    grade: Literal["consequence"] | None = None
    ground: Ground
    reasons: Annotated[tuple[Text, ...], Field(min_length=1)]

    RULES: ClassVar[tuple[Schema, ...]] = (
        {"if": {"required": ["grade"]}, "then": {"properties": {"verdict": {"const": "yes"}}}},
    )

    @model_validator(mode="after")
    def _grade_fits(self) -> Self:
        if self.grade is not None and self.verdict != "yes":
            raise ValueError(f"has a grade although it is {self.verdict}: only a yes has one")
        return self


@dataclass(frozen=True)
class _Case:
    given: AdjudicationInput

    @cached_property
    def reads(self) -> tuple[ChannelId, ...]:
        return channels_read(self.given.claim.assertions)

    @cached_property
    def declared(self) -> dict[ChannelId, ChannelDescriptor]:
        return declared(self.given.channels)


@dataclass(frozen=True, slots=True)
class _Found:
    verdict: Verdict
    ground: Ground
    reasons: tuple[str, ...]


def adjudicate(given: AdjudicationInput) -> Adjudication:
    """The verdict over a claim. It takes what it is given: it admits, filters and evaluates nothing."""
    case = _Case(given)
    found = next(found for clause in _CLAUSES if (found := clause(case)) is not None)
    return Adjudication(
        verdict=found.verdict,
        ground=found.ground,
        reasons=(*found.reasons, *_disclosures(case)),
        grade="consequence" if found.verdict == "yes" else None,
    )


def _nothing_declared(case: _Case) -> _Found | None:
    if case.given.claim.assertions:
        return None
    if not closed_cleanly(case.given.window):
        return _Found("unknown", "window-not-closed", (_how_it_closed(case.given.window),))
    return _Found("no-fault", "nothing-declared", ("the claim asserts nothing, so there is nothing to prove or fail",))


def _channel_not_observed(case: _Case) -> _Found | None:
    missing = [channel for channel in case.reads if channel not in case.declared]
    if not missing:
        return None
    reason = (
        f"the claim reads {_listed(missing)}, which nobody here watches (declared: {_listed(case.declared)}): "
        "add a witness for it, or claim what can be seen"
    )
    return _Found("unknown", "channel-not-observed", (reason,))


def _contradicted(case: _Case) -> _Found | None:
    convicting = [anomaly for anomaly in case.given.anomalies if _convicts(anomaly, case.declared)]
    if not convicting:
        return None
    return _Found("no", "contradicted", tuple(map(_told, convicting)))


def _assertion_failed(case: _Case) -> _Found | None:
    if case.given.assertions_held is not False:
        return None
    conditions = "; ".join(assertion.reads for assertion in case.given.claim.assertions)
    return _Found("no", "assertion-failed", (f"what was observed does not satisfy: {conditions}",))


def _window_not_closed(case: _Case) -> _Found | None:
    if closed_cleanly(case.given.window):
        return None
    return _Found("unknown", "window-not-closed", (_how_it_closed(case.given.window),))


def _coverage_impeached(case: _Case) -> _Found | None:
    spots = impeaching_spots(case.given.coverage, case.reads)
    if not spots:
        return None
    return _Found("unknown", "coverage-impeached", tuple(map(_gap, spots)))


def _suspicion_unresolved(case: _Case) -> _Found | None:
    suspicions = [anomaly for anomaly in case.given.anomalies if anomaly.tier == "absence-derived"]
    if not suspicions:
        return None
    return _Found("unknown", "suspicion-unresolved", tuple(map(_told, suspicions)))


def _declared_after_action(case: _Case) -> _Found | None:
    if case.given.claim.declared_at == "before-action":
        return None
    reason = "the claim was written after the action, fitted to what happened: write it down first, then act"
    return _Found("unknown", "declared-after-action", (reason,))


def _no_independent_consequence(case: _Case) -> _Found | None:
    if any(map(can_support_consequence, case.given.evidence)):
        return None
    return _Found("unknown", "no-independent-consequence", (_what_evidence_lacks(case.given.evidence),))


def _already_true(case: _Case) -> _Found | None:
    if case.given.consequence_held_before is not True:
        return None
    reason = "it was so before the action already, so the action proves nothing: start from a state where it is not"
    return _Found("unknown", "already-true", (reason,))


def _proved(case: _Case) -> _Found:
    proof = [item for item in case.given.evidence if can_support_consequence(item)]
    first = proof[0].observation
    others = f" and {len(proof) - 1} more" if len(proof) > 1 else ""
    reason = f"independent evidence of the consequence: {first.channel}: {first.summary}{others}"
    return _Found("yes", "proved", (reason,))


_CLAUSES: Final[tuple[Callable[[_Case], _Found | None], ...]] = (
    _nothing_declared,
    _channel_not_observed,
    _contradicted,
    _assertion_failed,
    _window_not_closed,
    _coverage_impeached,
    _suspicion_unresolved,
    _declared_after_action,
    _no_independent_consequence,
    _already_true,
    _proved,
)


def _convicts(anomaly: Anomaly, channels: dict[ChannelId, ChannelDescriptor]) -> bool:
    """Whether it was observed, and one of its two channels, both declared, is independent."""
    first, second = (channels.get(channel) for channel in anomaly.between)
    return (
        anomaly.tier == "observed"
        and first is not None
        and second is not None
        and disagreement_can_convict(first, second)
    )


def _disclosures(case: _Case) -> tuple[str, ...]:
    """What has to be said beside any verdict, and changes none."""
    said: list[str] = []
    if case.given.claim.assertions and case.given.assertions_held is None:
        said.append("no assertion was evaluated: nobody here could tell whether what was observed satisfies them")
    if case.given.coverage.blind_spots is None:
        said.append("coverage was not enumerated: what could not be seen is not known")
    return tuple(said)


def _how_it_closed(window: Window) -> str:
    if window.closed_at is None or window.closed_by is None:
        return "the window is still open: close it before asking"
    if window.closed_by == "terminated":
        return "the subject was ended from outside before the window closed: run it again undisturbed"
    return (
        f"the window's budget of {window.budget_ms} ms ran out before {window.closes}: "
        "allow more time, or wait for something that comes"
    )


def _told(anomaly: Anomaly) -> str:
    return f"{anomaly.kind} ({' and '.join(anomaly.between)}): {anomaly.claim}; but {anomaly.counter}"


def _gap(spot: BlindSpot) -> str:
    remedy = f"; to see more: {spot.remedy}" if spot.remedy else ""
    return f"could not see {spot.channel or 'everything'} ({spot.kind}): {spot.detail}{remedy}"


def _what_evidence_lacks(evidence: tuple[Evidence, ...]) -> str:
    if not evidence:
        return "no evidence was admitted: watch a channel that is independent of the action and shows its consequence"
    worth = dict.fromkeys(
        f"{item.observation.channel} ({item.provenance.class_}, {item.independence}, {item.grade})" for item in evidence
    )
    return (
        f"no evidence is independent of the action, of consequence grade and not learned; there is {_listed(worth)}: "
        "add a witness that sees the consequence itself"
    )


def _listed(words: Iterable[str]) -> str:
    return ", ".join(words) or "none"
