"""States that can be put back, and where."""

from __future__ import annotations

from hotplug.evidence.noun import Noun
from hotplug.evidence.subject import SubjectRef
from hotplug.evidence.vocabulary import Opaque, Text, Whole

__all__ = ["FixtureRef", "fixture_usable"]


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


def fixture_usable(fixture: FixtureRef, current: SubjectRef) -> bool:
    """Whether a state may be put back here: the same surface, instance and epoch. Ask before applying it.

    Two subjects that don't know their epoch are alike in it; one that does and one that doesn't are not.
    """
    captured = fixture.subject
    return (captured.surface, captured.instance, captured.epoch) == (current.surface, current.instance, current.epoch)
