"""The words of the Open Verification Protocol, version 1, and the kinds of text and number its members hold.

A closed vocabulary is a `Literal` and the tuple of its values; an open one takes names of the form `x-…` besides.
Source: OVP version 1; see the vocabularies of the specification.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Final, Literal, get_args

from pydantic import AfterValidator, BeforeValidator, Field, StrictBool, WithJsonSchema

__all__ = [
    "ANOMALY_KINDS",
    "ANOMALY_TIERS",
    "BELIEF_KINDS",
    "BLIND_SPOT_KINDS",
    "CHANNEL_IDS",
    "CLEAN_CLOSES",
    "CLOSE_CONDITIONS",
    "COMPILE_PHASES",
    "COUNT_OPS",
    "GRADES",
    "GROUNDS",
    "INDEPENDENCES",
    "MEASURE_OPS",
    "MUTATION_KINDS",
    "MUTATION_OUTCOMES",
    "OVP",
    "PREDICATE_KINDS",
    "PROFILES",
    "PROVENANCE_CLASSES",
    "REFUSAL_REASONS",
    "RESUME_STRATEGIES",
    "RUN_OUTCOMES",
    "SCENARIO_OUTCOMES",
    "SURFACES",
    "TYPE_ERROR_KINDS",
    "VERDICTS",
    "AnomalyKind",
    "AnomalyTier",
    "BeliefKind",
    "BlindSpotKind",
    "ChannelId",
    "CloseCondition",
    "CompilePhase",
    "CountOp",
    "Declaration",
    "Flag",
    "Grade",
    "Ground",
    "Independence",
    "IntentOrigin",
    "IntentStatus",
    "MeasureOp",
    "MutationOutcome",
    "Natural",
    "Opaque",
    "Positive",
    "PredicateKind",
    "Profile",
    "ProvenanceClass",
    "RefusalReason",
    "ResumeStrategy",
    "RunOutcome",
    "ScenarioOutcome",
    "Severity",
    "Surface",
    "Text",
    "TypeErrorKind",
    "Verdict",
    "Whole",
    "Words",
    "is_channel_id",
    "is_extension_name",
]

OVP: Final = "1.0"
"""The version that a run is stamped with."""

_EXTENSION: Final = re.compile(r"x-[a-z0-9-]+")
_EXTENSION_SCHEMA: Final = r"^x-[a-z0-9-]+$(?!\n)"  # `$` alone lets Python's `re` pass a trailing newline


def is_extension_name(name: str) -> bool:
    """Whether this is a name that an implementation may add: `x-` and lower-case letters, digits or hyphens."""
    return _EXTENSION.fullmatch(name) is not None


def _whole(value: Any) -> Any:
    """JSON doesn't tell 2.0 from 2."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


Text = Annotated[str, Field(strict=True, min_length=1)]
"""A text that is not empty."""
Words = Annotated[str, Field(strict=True)]
"""A text that may be empty."""
Whole = Annotated[int, Field(strict=True), BeforeValidator(_whole)]
"""A whole number; true and false are none."""
Natural = Annotated[int, Field(strict=True, ge=0), BeforeValidator(_whole)]
Positive = Annotated[int, Field(strict=True, gt=0), BeforeValidator(_whole)]
Flag = StrictBool


class _Opaque:
    """Marks a member whose value is carried as it is: its null is a value."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "Opaque"


OPAQUE: Final = _Opaque()
Opaque = Annotated[Any, OPAQUE]
"""Any JSON value, carried and never looked into. `noun.carries(name)` tells null from absent."""


def _open(known: tuple[str, ...], what: str) -> tuple[AfterValidator, WithJsonSchema]:
    def check(value: str) -> str:
        if value in known or is_extension_name(value):
            return value
        raise ValueError(f"is no {what}: use one of {', '.join(known)}, or a name of your own like x-name")

    schema = {"anyOf": [{"enum": list(known)}, {"type": "string", "pattern": _EXTENSION_SCHEMA}]}
    return AfterValidator(check), WithJsonSchema(schema)


SURFACES: Final = ("web", "desktop", "mobile", "service", "game", "device")
Surface = Annotated[str, Field(strict=True), *_open(SURFACES, "surface")]
"""The kind of place; open by `x-`."""

CHANNEL_IDS: Final = ("ui", "net", "state", "signal", "log", "route", "storage", "time", "visual")
ChannelId = Annotated[str, Field(strict=True), *_open(CHANNEL_IDS, "channel")]
"""A channel's name; open by `x-`."""


def is_channel_id(value: object) -> bool:
    """Whether this may be a channel's name."""
    return isinstance(value, str) and (value in CHANNEL_IDS or is_extension_name(value))


Independence = Literal["independent", "actuation-derived"]
INDEPENDENCES: Final[tuple[Independence, ...]] = get_args(Independence)

Grade = Literal["consequence", "presence", "context"]
GRADES: Final[tuple[Grade, ...]] = get_args(Grade)
"""Strongest first."""

IntentOrigin = Literal["user", "developer", "agent", "system", "workflow", "derived"]
IntentStatus = Literal["declared", "bound", "abandoned"]
Declaration = Literal["before-action", "after-action"]
Severity = Literal["blocking", "advisory"]

PredicateKind = Literal["count", "present", "absent", "measure"]
PREDICATE_KINDS: Final[tuple[PredicateKind, ...]] = get_args(PredicateKind)
CountOp = Literal["exactly", "at-least", "at-most"]
COUNT_OPS: Final[tuple[CountOp, ...]] = get_args(CountOp)
MeasureOp = Literal["equals", "at-least", "at-most"]
MEASURE_OPS: Final[tuple[MeasureOp, ...]] = get_args(MeasureOp)

RefusalReason = Literal["undeclared", "unsupported", "unresolved", "unavailable", "guarded", "malformed"]
REFUSAL_REASONS: Final[tuple[RefusalReason, ...]] = get_args(RefusalReason)

CloseCondition = Literal[
    "quiescence", "ticks", "ack", "signal", "settled-physical", "exit", "terminated", "budget-exhausted"
]
CLOSE_CONDITIONS: Final[tuple[CloseCondition, ...]] = get_args(CloseCondition)
CLEAN_CLOSES: Final[frozenset[CloseCondition]] = frozenset(CLOSE_CONDITIONS) - {"terminated", "budget-exhausted"}
"""The endings after which a window may prove something."""

ProvenanceClass = Literal["authoritative", "derived", "observed", "learned"]
PROVENANCE_CLASSES: Final[tuple[ProvenanceClass, ...]] = get_args(ProvenanceClass)
"""Strongest first."""

BlindSpotKind = Literal[
    "channel-unobserved", "boundary-uncrossable", "buffer-truncated", "redacted", "still-in-flight", "effect-elsewhere"
]
BLIND_SPOT_KINDS: Final[tuple[BlindSpotKind, ...]] = get_args(BlindSpotKind)

AnomalyTier = Literal["observed", "absence-derived", "advisory"]
ANOMALY_TIERS: Final[tuple[AnomalyTier, ...]] = get_args(AnomalyTier)
ANOMALY_KINDS: Final = (
    "advanced-over-failure",
    "claimed-over-failure",
    "effect-discarded",
    "claim-uncorroborated",
    "failure-inside-success",
    "value-not-applied",
    "duplicated-effect",
    "stale-applied",
    "no-effect",
    "fault-misattributed",
    "evidence-superseded",
    "evidence-predates-edit",
)
AnomalyKind = Annotated[str, Field(strict=True), *_open(ANOMALY_KINDS, "kind of anomaly")]
"""Which two facts cannot both hold; open by `x-`."""

Verdict = Literal["yes", "no", "unknown", "no-fault"]
VERDICTS: Final[tuple[Verdict, ...]] = get_args(Verdict)
Ground = Literal[
    "nothing-declared",
    "channel-not-observed",
    "contradicted",
    "assertion-failed",
    "window-not-closed",
    "coverage-impeached",
    "suspicion-unresolved",
    "declared-after-action",
    "no-independent-consequence",
    "already-true",
    "proved",
]
GROUNDS: Final[tuple[Ground, ...]] = get_args(Ground)
"""In the order of the clauses."""

RunOutcome = Literal["pass", "fail", "partial", "unknown"]
RUN_OUTCOMES: Final[tuple[RunOutcome, ...]] = get_args(RunOutcome)

BeliefKind = Literal["invariant", "failure-mode", "gap", "repair-outcome"]
BELIEF_KINDS: Final[tuple[BeliefKind, ...]] = get_args(BeliefKind)

MUTATION_KINDS: Final = ("handler-removed", "locator-renamed", "request-fails", "effect-discarded")
"""The named ones; any text is allowed."""
MutationOutcome = Literal["killed", "survived", "inconclusive"]
MUTATION_OUTCOMES: Final[tuple[MutationOutcome, ...]] = get_args(MutationOutcome)

ResumeStrategy = Literal["replay-prefix", "reset-then-replay", "refuse"]
RESUME_STRATEGIES: Final[tuple[ResumeStrategy, ...]] = get_args(ResumeStrategy)

TypeErrorKind = Literal[
    "undeclared-capability",
    "unobserved-channel",
    "unresolved-flow",
    "cyclic-invocation",
    "unsatisfied-requirement",
    "unjudged-requirement",
]
TYPE_ERROR_KINDS: Final[tuple[TypeErrorKind, ...]] = get_args(TypeErrorKind)
CompilePhase = Literal["parse", "resolve", "typecheck", "emit"]
COMPILE_PHASES: Final[tuple[CompilePhase, ...]] = get_args(CompilePhase)
"""In their order."""

Profile = Literal["effect", "in-realm", "surface"]
PROFILES: Final[tuple[Profile, ...]] = get_args(Profile)
"""Nested, the smallest first."""
ScenarioOutcome = Literal["passed", "failed", "absent"]
SCENARIO_OUTCOMES: Final[tuple[ScenarioOutcome, ...]] = get_args(ScenarioOutcome)
