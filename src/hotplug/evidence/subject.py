"""The thing under observation, and what ends the use of what was seen of it."""

from __future__ import annotations

from typing import Literal

from hotplug.evidence.noun import Noun
from hotplug.evidence.vocabulary import Natural, Surface, Text, Words

__all__ = ["Invalidation", "SubjectRef", "evidence_is_admissible", "invalidation_between"]


class SubjectRef(Noun):
    """One subject at one moment.

    Args:
        surface: The kind of place.
        instance: Ends with the thing it names: a replacement gets a new one. Never a constant.
        epoch: The round of source edits; None where edits cannot be observed, 0 claims that there was none.
        locator: Where it is, in free form.
        revision: The build, commit or deploy it was made from.
    """

    surface: Surface
    instance: Text
    epoch: Natural | None = None
    locator: Words | None = None
    revision: Words | None = None


class Invalidation(Noun):
    """That a subject was replaced (`instance`) or edited (`epoch`) between two looks."""

    kind: Literal["instance", "epoch"]
    from_: Words
    to: Words


def evidence_is_admissible(observed: SubjectRef, current: SubjectRef) -> bool:
    """Whether what was seen of one may be used for the other: they are the same instance.

    A new epoch is a fact to report (`invalidation_between`), not a reason to drop what was seen.
    """
    return observed.instance == current.instance


def invalidation_between(observed: SubjectRef, current: SubjectRef) -> Invalidation | None:
    """What changed between two looks; None where nothing did or where only one side knows its epoch."""
    if observed.instance != current.instance:
        return Invalidation(kind="instance", from_=observed.instance, to=current.instance)
    if observed.epoch is not None and current.epoch is not None and observed.epoch != current.epoch:
        return Invalidation(kind="epoch", from_=str(observed.epoch), to=str(current.epoch))
    return None
