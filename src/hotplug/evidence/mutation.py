"""Faults planted on purpose, to see whether a flow notices."""

from __future__ import annotations

from hotplug.evidence.noun import Noun
from hotplug.evidence.vocabulary import Text, Words

__all__ = ["MutationRequest", "Reversal"]


class MutationRequest(Noun):
    """The fault to plant: any kind; `vocabulary.MUTATION_KINDS` are the named ones."""

    kind: Text
    target: Words | None = None


class Reversal(Noun):
    """What undoes a planted fault; it names the fault."""

    mutation: Text
