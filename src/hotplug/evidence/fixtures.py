"""A state that can be put back."""

from __future__ import annotations

from hotplug.evidence.noun import Noun
from hotplug.evidence.subject import SubjectRef
from hotplug.evidence.vocabulary import Opaque, Text, Whole

__all__ = ["FixtureRef"]


class FixtureRef(Noun):
    """A captured state.

    Args:
        id: What the state is for.
        subject: Whose state it is, with the epoch where it is known.
        payload: Only the realm reads it.
    """

    id: Text
    subject: SubjectRef
    captured_at: Whole
    payload: Opaque = None
