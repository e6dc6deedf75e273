"""Compares ways of doing the same work, so that what else runs on the machine touches all of them alike."""

from __future__ import annotations

import gc
import random
import statistics
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

__all__ = ["Counts", "Row", "Side", "compare", "compare_blocking", "row"]

Side = Callable[[], Awaitable[object]]
"""One operation, done once."""


@dataclass(frozen=True)
class Counts:
    """How much is measured.

    Args:
        rounds: Of each comparison; the sides stand in another order in each.
        calls: Of each side in a round, one after another.
        starts: Of each program.
    """

    rounds: int = 25
    calls: int = 20
    starts: int = 11


@dataclass(frozen=True)
class Row:
    """One comparison of a side with the base that it ran beside.

    Args:
        ms: The median time of one operation, over all rounds.
        ratio: The median, over the rounds, of this side's median in a round by the base's in the same round.
        spread: The quarter and three quarter points of these ratios.
        aim: What the ratio (with a base) or the time (without) should stay under.
    """

    group: str
    name: str
    side: str
    ms: float
    base: str | None = None
    base_ms: float | None = None
    ratio: float | None = None
    spread: tuple[float, float] | None = None
    aim: float | None = None

    @property
    def met(self) -> bool | None:
        """Whether the aim is met; None where there is none."""
        if self.aim is None:
            return None
        return (self.ms if self.ratio is None else self.ratio) < self.aim

    def document(self) -> dict[str, object]:
        """The row for programs; values that aren't there are left out."""
        found: dict[str, object] = {
            "group": self.group,
            "name": self.name,
            "side": self.side,
            "ms": round(self.ms, 4),
            "base": self.base,
            "baseMs": None if self.base_ms is None else round(self.base_ms, 4),
            "ratio": None if self.ratio is None else round(self.ratio, 3),
            "spread": None if self.spread is None else [round(one, 3) for one in self.spread],
            "aim": self.aim,
            "met": self.met,
        }
        return {key: value for key, value in found.items() if value is not None}


async def compare(sides: Mapping[str, Side], counts: Counts) -> dict[str, list[float]]:
    """Milliseconds of one operation, a median for each round, by side. Every side runs in every round."""
    for side in sides.values():
        for _ in range(min(counts.calls, 10)):
            await side()
    found: dict[str, list[float]] = {name: [] for name in sides}
    order = list(sides)
    for _ in range(counts.rounds):
        random.shuffle(order)
        gc.collect()
        for name in order:
            side = sides[name]
            times: list[float] = []
            for _ in range(counts.calls):
                start = time.perf_counter()
                await side()
                times.append(time.perf_counter() - start)
            found[name].append(statistics.median(times) * 1000)
    return found


def compare_blocking(sides: Mapping[str, Callable[[], object]], counts: Counts) -> dict[str, list[float]]:
    """As `compare`, for work that awaits nothing."""
    found: dict[str, list[float]] = {name: [] for name in sides}
    order = list(sides)
    for number in range(counts.rounds + 1):
        random.shuffle(order)
        for name in order:
            times: list[float] = []
            for _ in range(counts.calls):
                start = time.perf_counter()
                sides[name]()
                times.append(time.perf_counter() - start)
            if number:  # the first round warms up
                found[name].append(statistics.median(times) * 1000)
    return found


def row(
    group: str,
    name: str,
    times: Mapping[str, Sequence[float]],
    side: str,
    base: str | None = None,
    aim: float | None = None,
) -> Row:
    """What a comparison says of one side."""
    ms = statistics.median(times[side])
    if base is None:
        return Row(group, name, side, ms, aim=aim)
    ratios = sorted(one / other for one, other in zip(times[side], times[base], strict=True))
    quarter, three_quarters = ratios[len(ratios) // 4], ratios[(3 * len(ratios)) // 4]
    return Row(
        group=group,
        name=name,
        side=side,
        ms=ms,
        base=base,
        base_ms=statistics.median(times[base]),
        ratio=statistics.median(ratios),
        spread=(quarter, three_quarters),
        aim=aim,
    )
