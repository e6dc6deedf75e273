"""What a connection gives for a claim, as a typed client sees it; `hotplug.connect.claims` makes it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol

__all__ = ["ClaimWindow", "Claimed", "Judged"]


class Judged(Protocol):
    """A verdict: true only where it is `yes`."""

    @property
    def value(self) -> Literal["yes", "no", "unknown", "no-fault"]: ...

    @property
    def ground(self) -> str:
        """The code of the clause that decided."""
        ...

    @property
    def grade(self) -> str | None: ...

    @property
    def reasons(self) -> Sequence[str]: ...

    def __bool__(self) -> bool: ...


class Claimed(Protocol):
    """A claim that was written down, and after its window what came of it; prints as a few lines to act on."""

    @property
    def statement(self) -> str: ...

    @property
    def declared_at(self) -> Literal["before-action", "after-action"]: ...

    @property
    def verdict(self) -> Judged:
        """The verdict; there once the window is closed."""
        ...

    @property
    def evidence(self) -> Sequence[Any]:
        """What counted: `hotplug.evidence.Evidence`."""
        ...

    @property
    def blind_spots(self) -> Sequence[Any] | None:
        """What couldn't be seen: `hotplug.evidence.BlindSpot`; None where nobody can list it."""
        ...

    @property
    def violations(self) -> Sequence[Any]:
        """Constraints of the window that were violated: `hotplug.evidence.ConstraintViolation`."""
        ...

    @property
    def next_move(self) -> str:
        """What to do next, in a sentence or two."""
        ...

    @property
    def run(self) -> Any:
        """The window as a document of its own: `hotplug.evidence.VerificationRun`."""
        ...


class ClaimWindow(Protocol):
    """An open window: several claims may be written down in it."""

    @property
    def id(self) -> str: ...

    def claim(self, statement: str, *conditions: Any) -> Claimed:
        """Write a claim down; one that comes after an action of the window is recorded as such."""
        ...
