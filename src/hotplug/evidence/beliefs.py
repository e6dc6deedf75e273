"""Memory: what earlier runs make likely. It may raise questions and never proves."""

from __future__ import annotations

from typing import Literal

from hotplug.evidence.errors import EvidenceError
from hotplug.evidence.noun import Noun
from hotplug.evidence.observation import Provenance
from hotplug.evidence.vocabulary import BeliefKind, Natural, Text, Whole, Words

__all__ = ["Belief", "belief_can_prove", "promote_belief", "strongest_verdict_from"]


class Belief(Noun):
    """Something held to be so.

    Args:
        observations: How often it was seen.
        promoted_by: Who took responsibility for it; no count or success promotes a belief by itself.
    """

    id: Text
    kind: BeliefKind
    statement: Text
    provenance: Provenance
    observations: Natural = 0
    promoted_by: Words | None = None
    promoted_at: Whole | None = None


def belief_can_prove(belief: Belief) -> bool:
    """Whether it is more than learned; how often it was seen and how sure it is play no part."""
    return belief.provenance.class_ != "learned"


def strongest_verdict_from(belief: Belief) -> Literal["no", "unknown"]:
    """The most that a belief alone may end in: never a yes."""
    return "no" if belief_can_prove(belief) else "unknown"


def promote_belief(belief: Belief, by: str, at: int) -> Belief:
    """A copy that somebody takes responsibility for: authoritative, without a confidence. The original stays.

    Args:
        by: Who.
        at: When, in milliseconds.

    Raises:
        EvidenceError: `by` is blank. Nothing but somebody promotes a belief.
    """
    if not by.strip():
        raise EvidenceError("is blank: say who takes responsibility for the belief", where="$.promotedBy")
    provenance = belief.provenance.document() | {"class": "authoritative"}
    provenance.pop("confidence", None)
    return Belief.read(belief.document() | {"provenance": provenance, "promotedBy": by, "promotedAt": at})
