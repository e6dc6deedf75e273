"""What to change, so that a failed claim holds."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from hotplug.evidence.noun import Noun
from hotplug.evidence.vocabulary import Text, Whole, Words

__all__ = ["Repair", "RepairLocation"]


class RepairLocation(Noun):
    """Where to change it."""

    file: Words
    line: Whole | None = None
    symbol: Words | None = None


class Repair(Noun):
    """An instruction that follows from a verdict.

    Args:
        verdict: The verdict's citation, `<runId>#<verdictId>`.
        evidence: The ids of the observations behind it, one at least.
    """

    verdict: Text
    expected: Text
    actual: Text
    evidence: Annotated[tuple[Words, ...], Field(min_length=1)]
    location: RepairLocation | None = None
    instruction: Text
