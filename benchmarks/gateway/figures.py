"""What was measured, as rows."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

__all__ = ["Figure", "figures"]


@dataclass(frozen=True)
class Figure:
    """One figure of one target.

    Args:
        value: The median over the rounds.
        ratio: The median, over the rounds, of this target's value by the direct call's in the same round.
        spread: The quarter and three quarter points of these ratios.
    """

    group: str
    what: str
    target: str
    value: float
    unit: str
    ratio: float | None = None
    spread: tuple[float, float] | None = None

    def document(self) -> dict[str, object]:
        """The figure for programs; values that aren't there are left out."""
        found: dict[str, object] = {
            "group": self.group,
            "what": self.what,
            "target": self.target,
            "value": round(self.value, 4),
            "unit": self.unit,
            "ratio": None if self.ratio is None else round(self.ratio, 3),
            "spread": None if self.spread is None else [round(one, 3) for one in self.spread],
        }
        return {key: value for key, value in found.items() if value is not None}


def figures(
    group: str, what: str, unit: str, rounds: Mapping[str, Sequence[float]], base: str | None = "direct"
) -> list[Figure]:
    """A row for each target, from its values in each round."""
    found: list[Figure] = []
    for target, values in rounds.items():
        if not values:
            continue
        ratio: float | None = None
        spread: tuple[float, float] | None = None
        if base is not None and target != base and rounds.get(base):
            ratios = sorted(one / other for one, other in zip(values, rounds[base], strict=True))
            ratio = statistics.median(ratios)
            spread = (ratios[len(ratios) // 4], ratios[(3 * len(ratios)) // 4])
        found.append(Figure(group, what, target, statistics.median(values), unit, ratio, spread))
    return found
