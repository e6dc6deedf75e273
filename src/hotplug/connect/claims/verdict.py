"""What came of a claim, as a program and as a person read it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from hotplug.connect.claims.conditions import Condition
from hotplug.connect.claims.translation import sense_of
from hotplug.errors import HotplugError
from hotplug.evidence import (
    Adjudication,
    BlindSpot,
    Claim,
    ConstraintViolation,
    Coverage,
    Evidence,
    Ground,
    VerificationRun,
)
from hotplug.evidence.text import verdict_lines

__all__ = ["Claimed", "Verdict", "lines_of"]


_SHOWN: Final = 5
"""Other observations that are told beside a `no`."""


@dataclass(frozen=True)
class Verdict:
    """`yes`, `no`, `unknown` or `no-fault`, with the ground that decided; true only where it is `yes`."""

    value: Literal["yes", "no", "unknown", "no-fault"]
    ground: Ground
    grade: str | None = None
    reasons: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self.value == "yes"

    def __str__(self) -> str:
        return f"Verdict({self.value}, ground={self.ground})"

    __repr__ = __str__


@dataclass
class Claimed:
    """A claim as it was written down; once its window is closed, with what came of it.

    Args:
        statement: The claim in words.
        conditions: What has to hold.
        declared_at: `after-action` where something had been done in the window before it was written.
    """

    statement: str
    conditions: tuple[Condition, ...]
    claim: Claim = field(repr=False)
    _verdict: Verdict | None = field(default=None, repr=False)
    _run: VerificationRun | None = field(default=None, repr=False)
    evidence: tuple[Evidence, ...] = ()
    """What counted for the verdict."""
    seen: tuple[str, ...] = ()
    """Every observation of the channels that it reads, a line each: what counted and what didn't."""
    blind_spots: tuple[BlindSpot, ...] | None = None
    """What couldn't be seen; None where nobody can list it."""
    violations: tuple[ConstraintViolation, ...] = ()
    """Constraints of the window that were violated."""
    unchecked: tuple[str, ...] = ()
    """Constraints of which nobody can say whether they held throughout the window."""
    next_move: str = ""
    """What to do next."""
    lines: Sequence[str] = ()

    @property
    def declared_at(self) -> Literal["before-action", "after-action"]:
        """When it was written: before anything was done in the window, or after."""
        return self.claim.declared_at

    @property
    def verdict(self) -> Verdict:
        """The verdict.

        Raises:
            HotplugError: The window is still open.
        """
        if self._verdict is None:
            raise HotplugError(
                f"{self.statement!r} has no verdict yet: its window is open", hint="ask after the async with block"
            )
        return self._verdict

    @property
    def run(self) -> VerificationRun:
        """The whole window as a document.

        Raises:
            HotplugError: The window is still open.
        """
        if self._run is None:
            raise HotplugError(
                f"{self.statement!r} has no run yet: its window is open", hint="ask after the async with block"
            )
        return self._run

    def decided(self, verdict: Verdict, run: VerificationRun) -> None:
        """Take the verdict; the window calls it once."""
        self._verdict, self._run = verdict, run

    def __str__(self) -> str:
        if self._verdict is None:
            return f"claim {self.statement!r} (its window is open)"
        return "\n".join(self.lines)


def lines_of(
    found: Adjudication,
    claimed: Claimed,
    run: VerificationRun,
    coverage: Coverage,
    renamed: Mapping[str, tuple[str, str]],
) -> tuple[str, ...]:
    """A claim as a person reads it: verdict, conditions, why, what was seen and what wasn't, and the next move."""
    counted = {f"{sense_of(one.observation.channel, renamed)}: {one.observation.summary}" for one in claimed.evidence}
    instead = [one for one in dict.fromkeys(claimed.seen) if one not in counted] if found.verdict == "no" else []
    besides = [f"  {'instead' if number == 0 else '':<9} {one}" for number, one in enumerate(instead[:_SHOWN])]
    if len(instead) > _SHOWN:
        besides.append(f"            … and {len(instead) - _SHOWN} more")
    violated = [f"  violated  {one.detail}" for one in claimed.violations]
    channels = (*run.channels, *(channel for witness in run.witnesses for channel in witness.channels))
    told = verdict_lines(
        found,
        claimed.claim,
        channels=channels,
        evidence=claimed.evidence,
        coverage=coverage,
        anomalies=run.anomalies,
        word="sense",
    )
    if renamed:
        names = re.compile("|".join(rf"(?<![\w-]){re.escape(one)}(?![\w-])" for one in renamed))
        told = tuple(names.sub(lambda one: sense_of(one[0], renamed), line) for line in told)
    last = next((number for number, line in enumerate(told) if line.startswith("  next ")), len(told))
    return (*told[:last], *besides, *violated, *told[last:])
