"""What came of a journey: a cell for each step and backend, and whether backends gave the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from hotplug.profile.canonical import digest

__all__ = ["REPORT_SCHEMA", "BackendOutcome", "Cell", "JourneyReport", "Status"]

REPORT_SCHEMA: Final = "hotplug.journey-report/1"

Status = Literal["passed", "refused", "failed", "absent"]


@dataclass(frozen=True)
class Cell:
    """One step on one backend.

    Args:
        status: `passed`; `refused` (the backend said that it can't do this exactly); `failed`; `absent`.
        code: The wire code of a refusal or failure.
        message: What was said, or what was expected and seen.
        reason: Why it is absent: `not_applicable` (an optional part that isn't offered) or `not_reached`.
        yields: What is compared between backends.
        witnessed: Whether what the backend stored was read and was right; None where the step asks nothing of it.
    """

    step: str
    status: Status
    code: str | None = None
    message: str | None = None
    reason: Literal["not_applicable", "not_reached"] | None = None
    yields: Any = None
    witnessed: bool | None = None
    milliseconds: float | None = None

    def document(self) -> dict[str, Any]:
        values = {
            "step": self.step,
            "status": self.status,
            "code": self.code,
            "message": self.message,
            "reason": self.reason,
            "yields": self.yields,
            "witnessed": self.witnessed,
            "milliseconds": self.milliseconds,
        }
        return {key: value for key, value in values.items() if value is not None}


@dataclass(frozen=True)
class BackendOutcome:
    """A journey on one backend."""

    name: str
    target: str
    via: str
    cells: tuple[Cell, ...]
    error: str | None = None
    notes: Mapping[str, Any] = field(default_factory=dict[str, Any])
    witness: str | None = None

    def outcome(self, core: Sequence[str]) -> str | None:
        """A digest of what the core steps gave; None unless every one of them passed."""
        cells = {cell.step: cell for cell in self.cells}
        chosen = [cells.get(step) for step in core]
        if self.error or any(cell is None or cell.status != "passed" for cell in chosen):
            return None
        return digest([[cell.step, cell.yields] for cell in chosen if cell is not None])

    def document(self, core: Sequence[str]) -> dict[str, Any]:
        body: dict[str, Any] = {
            "name": self.name,
            "target": self.target,
            "via": self.via,
            "cells": [cell.document() for cell in self.cells],
            "outcome": self.outcome(core),
        }
        if self.error:
            body["error"] = self.error
        if self.witness:
            body["witness"] = self.witness
        if self.notes:
            body["notes"] = dict(self.notes)
        return body


@dataclass(frozen=True)
class JourneyReport:
    """A journey on several backends."""

    journey: str
    version: str
    digest: str
    steps: tuple[str, ...]
    core: tuple[str, ...]
    """The steps that need no facet: what has to come out the same everywhere."""
    backends: tuple[BackendOutcome, ...]
    at: str
    tool: str

    @property
    def same(self) -> int:
        """How many backends gave the same outcome: the largest group that passed every core step with equal yields."""
        outcomes = Counter(found for one in self.backends if (found := one.outcome(self.core)) is not None)
        return max(outcomes.values(), default=0)

    @property
    def failed(self) -> bool:
        """Whether any cell failed, or a backend couldn't be played at all."""
        return any(one.error or any(cell.status == "failed" for cell in one.cells) for one in self.backends)

    @property
    def line(self) -> str:
        """`N of M backends gave the same outcome`: of the steps that are asked of every backend."""
        return f"{self.same} of {len(self.backends)} backends gave the same outcome"

    def document(self) -> dict[str, Any]:
        return {
            "schema": REPORT_SCHEMA,
            "journey": {"name": self.journey, "version": self.version, "digest": self.digest},
            "tool": self.tool,
            "at": self.at,
            "steps": list(self.steps),
            "core": list(self.core),
            "backends": [one.document(self.core) for one in self.backends],
            "same": self.same,
            "failed": self.failed,
            "line": self.line,
        }
