"""A fake witness, for what a test must provoke: it sees what it is told to see."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from hotplug.connect.claims import Looking
from hotplug.connect.claims.realm import now_ms
from hotplug.evidence import BlindSpot, ChannelDescriptor, Coverage, Observation, SubjectRef, Window

__all__ = ["FakeEyes"]

_INDEPENDENT = {"independence": "independent", "grade": "consequence"}


class FakeEyes(Looking):
    """Gives the summaries that a test puts into `sees`, of the senses that it declares.

    Args:
        senses: Sense → worth; by default an independent `state`.
        facts: Facts as they stand when a window is opened; at each look those in `facts` now.
    """

    def __init__(
        self, name: str = "eyes", senses: dict[str, dict[str, str]] | None = None, facts: Sequence[str] = ()
    ) -> None:
        self.name = name
        self._senses = senses or {"state": _INDEPENDENT}
        self.facts: list[str] = list(facts)
        self.sees: list[tuple[str, str, Any]] = []
        self.blind: list[BlindSpot] | None = []
        self.ends: Any = "quiescence"
        self.fails: Exception | None = None
        self.looks = 0
        self._count = itertools.count(1)
        self._before: tuple[Observation, ...] = ()

    def see(self, summary: str, value: Any = None, *, sense: str = "state") -> None:
        """From now on it sees this too."""
        self.sees.append((sense, summary, value))

    def identity(self) -> SubjectRef:
        return SubjectRef(surface="service", instance=f"{self.name}-1")

    def channels(self) -> tuple[ChannelDescriptor, ...]:
        return tuple(ChannelDescriptor.read({"id": name, **worth}) for name, worth in self._senses.items())

    def provenance(self, channel: str) -> Any:
        return self.name, "told by the test", "observed"

    async def open_window(self, budget_ms: int) -> Window:
        if self.fails:
            raise self.fails
        window = Window(
            id=f"{self.name}-w{next(self._count)}",
            opened_at=now_ms(),
            budget_ms=budget_ms,
            closes="quiescence",
            subject=self.identity(),
        )
        self._before = self._facts(window)
        return window

    async def before(self, window: Window) -> tuple[Observation, ...]:
        return self._before

    def _facts(self, window: Window) -> tuple[Observation, ...]:
        return tuple(self._observation(window, f"f{n}", "state", fact, None) for n, fact in enumerate(self.facts))

    def _observation(self, window: Window, id_: str, sense: str, summary: str, value: Any) -> Observation:
        return Observation(id=id_, window=window.id, channel=sense, at=now_ms(), summary=summary, value=value)

    async def observe(self, window: Window) -> tuple[Observation, ...]:
        self.looks += 1
        if self.fails:
            raise self.fails
        seen = [
            self._observation(window, f"o{n}", sense, summary, value)
            for n, (sense, summary, value) in enumerate(self.sees)
        ]
        return (*self._facts(window), *seen)

    async def coverage(self, window: Window) -> Coverage:
        body: dict[str, Any] = {"window": window.id, "observed": tuple(self._senses)}
        if self.blind is not None:
            body["blind_spots"] = tuple(self.blind)
        return Coverage(**body)

    async def close_window(self, window: Window) -> Window:
        return window.model_copy(update={"closed_at": now_ms(), "closed_by": self.ends})
