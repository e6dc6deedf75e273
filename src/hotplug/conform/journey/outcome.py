"""What came of a journey: a cell for each step and backend, and whether backends gave the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from hotplug.profile.canonical import digest

__all__ = ["REPORT_SCHEMA", "BackendOutcome", "Cell", "ClaimOutcome", "ConstraintOutcome", "JourneyReport", "Status"]

REPORT_SCHEMA: Final = "hotplug.journey-report/1"

Status = Literal["passed", "refused", "failed", "absent"]


@dataclass(frozen=True)
class ClaimOutcome:
    """What came of one claim. Its verdict is no status: `unknown` leaves the cell as it is, and proves nothing.

    Args:
        ground: What decided the verdict (Open Verification Protocol 1).
        evidence: The summaries of what counted.
    """

    that: str
    verdict: Literal["yes", "no", "unknown", "no-fault"]
    ground: str
    reasons: tuple[str, ...] = ()
    next_move: str = ""
    evidence: tuple[str, ...] = ()

    def document(self) -> dict[str, Any]:
        return {
            "that": self.that,
            "verdict": self.verdict,
            "ground": self.ground,
            "reasons": list(self.reasons),
            "nextMove": self.next_move,
            "evidence": list(self.evidence),
        }


@dataclass(frozen=True)
class ConstraintOutcome:
    """What came of one constraint: it held, was violated, or nobody can say, since not all of the window was watched.

    Args:
        detail: What was seen against it, or why it couldn't be checked.
    """

    that: str
    state: Literal["held", "violated", "unchecked"]
    severity: Literal["blocking", "advisory"] = "blocking"
    detail: str | None = None

    def document(self) -> dict[str, Any]:
        body: dict[str, Any] = {"that": self.that, "state": self.state, "severity": self.severity}
        return body if self.detail is None else {**body, "detail": self.detail}


@dataclass(frozen=True)
class Cell:
    """One step on one backend.

    Status and verdicts are two things. The status is what the server answered, and whether it was right; a claim that
    ends in `no` and a blocking constraint that is violated make it `failed`. A claim that ends in `unknown` leaves it:
    the outcome can still be compared, and nobody may take the step for proved.

    Args:
        status: `passed`; `refused` (the backend said that it can't do this exactly); `failed`; `absent`.
        code: The wire code of a refusal or failure.
        message: What was said, or what was expected and seen.
        reason: Why it is absent: `not_applicable` (an optional part that isn't offered) or `not_reached`.
        yields: What is compared between backends.
        witnessed: Whether what the backend stored was read and was right; None where the step asks nothing of it, or
            nobody could look.
        claims: What came of the step's claims, none where an honest refusal left them without an object.
        constraints: What came of its constraints.
    """

    step: str
    status: Status
    code: str | None = None
    message: str | None = None
    reason: Literal["not_applicable", "not_reached"] | None = None
    yields: Any = None
    witnessed: bool | None = None
    milliseconds: float | None = None
    claims: tuple[ClaimOutcome, ...] = ()
    constraints: tuple[ConstraintOutcome, ...] = ()

    def document(self) -> dict[str, Any]:
        values: dict[str, Any] = {
            "step": self.step,
            "status": self.status,
            "code": self.code,
            "message": self.message,
            "reason": self.reason,
            "yields": self.yields,
            "witnessed": self.witnessed,
            "milliseconds": self.milliseconds,
            "claims": [one.document() for one in self.claims] or None,
            "constraints": [one.document() for one in self.constraints] or None,
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

    @property
    def undecided(self) -> tuple[str, ...]:
        """The claims that ended in `unknown` and the constraints that nobody could check: not proved, not refuted."""
        claims = [one.that for cell in self.cells for one in cell.claims if one.verdict == "unknown"]
        return (*claims, *(one.that for cell in self.cells for one in cell.constraints if one.state == "unchecked"))

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
        if any(cell.claims or cell.constraints for cell in self.cells):
            verdicts = Counter(one.verdict for cell in self.cells for one in cell.claims)
            body["verdicts"] = {name: verdicts[name] for name in ("yes", "no", "unknown", "no-fault") if verdicts[name]}
            body["undecided"] = list(self.undecided)
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
    def undecided(self) -> bool:
        """Whether a claim or constraint was left open on any backend."""
        return any(one.undecided for one in self.backends)

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
