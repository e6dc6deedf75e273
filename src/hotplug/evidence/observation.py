"""What was seen, how it came to be known, and what it is worth."""

from __future__ import annotations

from typing import ClassVar, Self

from pydantic import Field, model_validator

from hotplug.evidence.noun import Noun, Schema, only_if
from hotplug.evidence.subject import SubjectRef
from hotplug.evidence.vocabulary import (
    PROVENANCE_CLASSES,
    ChannelId,
    Grade,
    Independence,
    Opaque,
    ProvenanceClass,
    Text,
    Whole,
)

__all__ = ["Evidence", "Observation", "Provenance", "can_support_consequence", "more_authoritative"]


class Observation(Noun):
    """One thing seen in a window.

    Args:
        value: Whatever there is to it; opaque.
        summary: A short label in the realm's words; predicates match it exactly.
    """

    id: Text
    window: Text
    channel: ChannelId
    at: Whole
    value: Opaque = None
    summary: Text


class Provenance(Noun):
    """How something came to be known.

    Args:
        class_: `class` on the wire.
        source: What produced it.
        method: How.
        confidence: 0 to 1; only what is `learned` has one, and it must.
    """

    class_: ProvenanceClass
    source: Text
    method: Text
    subject: SubjectRef
    at: Whole
    confidence: float | None = Field(default=None, ge=0, le=1, strict=True, allow_inf_nan=False)

    RULES: ClassVar[tuple[Schema, ...]] = (only_if("confidence", {"properties": {"class": {"const": "learned"}}}),)

    @model_validator(mode="after")
    def _confidence_fits(self) -> Self:
        if self.class_ == "learned" and self.confidence is None:
            raise ValueError("is learned without a confidence")
        if self.class_ != "learned" and self.confidence is not None:
            raise ValueError(f"has a confidence although it is {self.class_}: only what is learned has one")
        return self


class Evidence(Noun):
    """An observation with its worth. It has no id: an evidence id is its observation's."""

    observation: Observation
    provenance: Provenance
    independence: Independence
    grade: Grade


def can_support_consequence(evidence: Evidence) -> bool:
    """Whether this alone can pay for a `yes`: independent of the action, of consequence grade, and not learned."""
    return (
        evidence.independence == "independent"
        and evidence.grade == "consequence"
        and evidence.provenance.class_ != "learned"
    )


def more_authoritative(first: Provenance, second: Provenance) -> Provenance:
    """The one of the stronger class; the first where they are equal."""
    rank = PROVENANCE_CLASSES.index
    return second if rank(second.class_) < rank(first.class_) else first
