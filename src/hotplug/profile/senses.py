"""Senses and determinism: the values there are, how strong each is, and what a sense is unless a declaration says less.

Source: OVP version 1, the channel table and the DeterminismProfile. A sense is what OVP calls a channel.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

__all__ = ["DETERMINISM", "GRADES", "INDEPENDENCES", "SENSES", "Sense", "exceeds", "is_stronger"]

INDEPENDENCES: Final = ("actuation-derived", "independent")
GRADES: Final = ("context", "presence", "consequence")

DETERMINISM: Final[Mapping[str, tuple[str, ...]]] = {
    "reset": ("none", "costly", "cheap"),
    "replayPrefix": ("unsafe", "costly", "free"),
    "time": ("wall", "injectable", "stepped"),
    "observation": ("sampled", "exact"),
    "actions": ("irreversible", "reversible"),
}
"""Each field's values, weakest first. OVP doesn't order `time`: a clock that moves only when told promises most."""


class Sense(NamedTuple):
    """What evidence of a sense is worth: `independence` of the action, and `grade`."""

    independence: str
    grade: str

    def document(self) -> dict[str, str]:
        """The sense as it stands in documents and declarations."""
        return {"independence": self.independence, "grade": self.grade}


SENSES: Final[Mapping[str, Sense]] = {
    "ui": Sense("actuation-derived", "presence"),
    "net": Sense("independent", "consequence"),
    "state": Sense("actuation-derived", "consequence"),
    "signal": Sense("actuation-derived", "consequence"),
    "log": Sense("independent", "context"),
    "route": Sense("actuation-derived", "presence"),
    "storage": Sense("actuation-derived", "consequence"),
    "time": Sense("independent", "context"),
    "visual": Sense("actuation-derived", "presence"),
}
"""The most that may be claimed for each sense. A sense called `x-…` has no row: a profile has to say what it is."""


def exceeds(claimed: Sense, limit: Sense) -> bool:
    """Whether a claim is stronger than the limit in independence or grade; a value that isn't known is."""
    return _rank(INDEPENDENCES, claimed.independence) > _rank(INDEPENDENCES, limit.independence) or _rank(
        GRADES, claimed.grade
    ) > _rank(GRADES, limit.grade)


def is_stronger(field: str, claimed: str, limit: str) -> bool:
    """Whether a determinism value promises more than the limit; a value that isn't known does."""
    order = DETERMINISM[field]
    return _rank(order, claimed) > _rank(order, limit)


def _rank(order: tuple[str, ...], value: str) -> int:
    return order.index(value) if value in order else len(order)
