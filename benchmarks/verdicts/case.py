"""What a case is made of: a task in words with its claim, a world in which it is done, and what is planted there."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Final, Literal

import anyio.abc

from hotplug.connect.claims import Condition, Constraint
from hotplug.evidence.witness import Witness

__all__ = ["AFTERWARDS", "LATE", "SLOW", "WITHIN", "Case", "Stored", "Task", "World"]

WITHIN: Final = 1.5
"""Seconds that a claim gives an effect."""
SLOW: Final = 0.4
"""Seconds after the answer at which a slow effect comes, in time."""
AFTERWARDS: Final = 0.8
"""Seconds after the answer at which what was done is spoiled, while the claim's time still runs."""
LATE: Final = WITHIN + 1.5
"""Seconds after the answer at which a late effect comes."""

Stored = Counter[tuple[str, ...]]
"""What a world has stored, as the benchmark itself reads it: each thing as a tuple of its kind and all that matters."""


@dataclass(frozen=True)
class Task:
    """Something to do, and what a careful user would claim of it, from its words alone: the same for every case.

    Args:
        words: What is to be done, and in which sense it is claimed.
        claims: Each statement with its conditions.
        act: Does it, through the client.
        holds: Whether it came about, by what the world gained and lost and what it has now.
        shows: Whether the screen says so.
        first: What a careful user looks up before.
    """

    name: str
    words: str
    claims: dict[str, tuple[Condition | Constraint, ...]]
    act: Callable[[Any, Any], Awaitable[None]]
    holds: Callable[[Stored, Stored, Stored], bool]
    shows: Callable[[Any], Awaitable[bool]]
    first: Callable[[Any], Awaitable[Any]] | None = None


class World(ABC):
    """A place in which a task is done, with its witnesses."""

    def __init__(self, tasks: anyio.abc.TaskGroup) -> None:
        self.tasks = tasks
        self.planted: list[str] = []
        """What a plant did: a case whose plant has left nothing here didn't take."""

    def record(self, what: str) -> None:
        """Note that a plant took."""
        self.planted.append(what)

    @property
    @abstractmethod
    def witnesses(self) -> Sequence[Witness]:
        """Who looks, for Hotplug."""

    @abstractmethod
    def connected(self) -> AbstractAsyncContextManager[Any]:
        """The client, with which the task is done."""

    @abstractmethod
    async def stored(self) -> Stored:
        """What is stored now, read by the benchmark's own code."""


@dataclass(frozen=True)
class Case:
    """One subject.

    Args:
        kind: Which kind of defect; `healthy` for none.
        plant: What is planted, or what makes a healthy one hard.
        truth: Whether the claim is true at the end; playing the case checks it against what the world has stored.
        world: Makes the world.
        meanwhile: Something that happens in the world, told when the window has been opened (`opened`) and when the
            task is done (`acted`).
        claimed: When the claim is written down: before acting; after it, in a window that was open (`late`); after it,
            in a window that is opened then (`afterwards`).
        late: Whether the plant does something after the claim's time, for which the world has to come to rest.
    """

    name: str
    kind: str
    task: Task
    plant: str
    truth: bool
    world: Callable[[], AbstractAsyncContextManager[World]]
    meanwhile: Callable[[World, Literal["opened", "acted"]], Awaitable[None]] | None = None
    claimed: Literal["before", "late", "afterwards"] = "before"
    late: bool = False

    @property
    def healthy(self) -> bool:
        return self.kind == "healthy"
