"""The stretch of time in which something is looked for."""

from __future__ import annotations

from hotplug.evidence.noun import Noun
from hotplug.evidence.subject import SubjectRef
from hotplug.evidence.vocabulary import CLEAN_CLOSES, CloseCondition, Positive, Text, Whole

__all__ = ["Window", "closed_cleanly"]


class Window(Noun):
    """One window; times are milliseconds of the realm's clock.

    Args:
        budget_ms: How long it may take at most.
        closes: What the realm waits for.
        closed_by: What really ended it; never a mere copy of `closes`.
        subject: The subject that it watches.
    """

    id: Text
    opened_at: Whole
    closed_at: Whole | None = None
    budget_ms: Positive
    closes: CloseCondition
    closed_by: CloseCondition | None = None
    subject: SubjectRef


def closed_cleanly(window: Window) -> bool:
    """Whether the window ended in a way that can prove something: not open, not given up, not killed from outside."""
    return window.closed_at is not None and window.closed_by in CLEAN_CLOSES
