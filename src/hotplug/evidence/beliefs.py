"""Memory: what earlier runs make likely. It may raise questions and never proves."""

from __future__ import annotations

from hotplug.evidence.noun import Noun
from hotplug.evidence.observation import Provenance
from hotplug.evidence.vocabulary import BeliefKind, Natural, Text, Whole, Words

__all__ = ["Belief"]


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
