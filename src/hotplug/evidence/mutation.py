"""Faults planted on purpose: a flow that still passes on a deliberately broken subject proves little."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hotplug.evidence.noun import Noun
from hotplug.evidence.vocabulary import MutationOutcome, RunOutcome, Text, Words

__all__ = ["MutationRequest", "MutationScore", "Reversal", "grade_mutation", "score_mutations"]


class MutationRequest(Noun):
    """The fault to plant: any kind; `vocabulary.MUTATION_KINDS` are the named ones."""

    kind: Text
    target: Words | None = None


class Reversal(Noun):
    """What undoes a planted fault; it names the fault."""

    mutation: Text


def grade_mutation(before: RunOutcome, after: RunOutcome, *, applied: bool = True) -> MutationOutcome:
    """Whether a flow noticed that its subject was broken.

    Args:
        before: The outcome of the flow's run on the intact subject.
        after: The outcome on the broken one; `partial` counts as noticed, `unknown` decides nothing.
        applied: Whether the mutation took place at all.
    """
    if not applied or before != "pass" or after == "unknown":
        return "inconclusive"
    return "survived" if after == "pass" else "killed"


@dataclass(frozen=True)
class MutationScore:
    """How many mutations a flow noticed. Inconclusive ones are listed and count for neither side."""

    killed: tuple[str, ...]
    survived: tuple[str, ...]
    inconclusive: tuple[str, ...]

    @property
    def score(self) -> float | None:
        """From 0 to 1; None where nothing was conclusive."""
        conclusive = len(self.killed) + len(self.survived)
        return len(self.killed) / conclusive if conclusive else None


def score_mutations(graded: Iterable[tuple[str, MutationOutcome]]) -> MutationScore:
    """The score over named mutations, in their order."""
    names: dict[MutationOutcome, list[str]] = {"killed": [], "survived": [], "inconclusive": []}
    for name, outcome in graded:
        names[outcome].append(name)
    return MutationScore(tuple(names["killed"]), tuple(names["survived"]), tuple(names["inconclusive"]))
