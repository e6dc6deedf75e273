"""What a judge's answers are worth: false yes, false no, unknown, right."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, cast

__all__ = ["AIMS", "JUDGES", "Answer", "Judged", "Score", "missed", "scored"]

Answer = Literal["yes", "no", "unknown"]

JUDGES: Final = ("hotplug", "own_flag", "presence")
"""Hotplug's verdict; the tool's own success flag; whether the screen says so."""

AIMS: Final = {"false_yes": 0, "false_no": 0, "healthy_proved": 0.9}
"""Hotplug's: no false answer, and this share of the healthy proved."""


@dataclass(frozen=True)
class Judged:
    """One case as it was played.

    Args:
        truth: Whether what was claimed was true at the end: exactly so, come to be in this window, within its time.
        answers: What each judge said.
    """

    case: str
    healthy: bool
    truth: bool
    answers: dict[str, Answer]
    details: tuple[str, ...] = ()


@dataclass(frozen=True)
class Score:
    """How one judge did over all cases.

    Args:
        false_yes: It said yes, and it wasn't so.
        false_no: It said no, and it was so.
        unknown: It didn't say.
        right: It said what was so.
        healthy_proved: Healthy cases to which it said yes.
    """

    cases: int
    false_yes: int
    false_no: int
    unknown: int
    right: int
    healthy: int
    healthy_proved: int

    def document(self) -> dict[str, int]:
        return {name: cast("int", value) for name, value in vars(self).items()}


def scored(judge: str, played: Sequence[Judged]) -> Score:
    """The score of a judge."""
    pairs: list[tuple[bool, Answer]] = [(one.truth, one.answers[judge]) for one in played]
    healthy = [one for one in played if one.healthy]
    return Score(
        cases=len(pairs),
        false_yes=_count(pairs, False, "yes"),
        false_no=_count(pairs, True, "no"),
        unknown=sum(answer == "unknown" for _, answer in pairs),
        right=_count(pairs, True, "yes") + _count(pairs, False, "no"),
        healthy=len(healthy),
        healthy_proved=sum(one.answers[judge] == "yes" for one in healthy),
    )


def _count(pairs: Iterable[tuple[bool, Answer]], truth: bool, answer: Answer) -> int:
    return sum(pair == (truth, answer) for pair in pairs)


def missed(score: Score) -> list[str]:
    """Hotplug's aims that a score misses, in words."""
    found: list[str] = []
    if score.false_yes > AIMS["false_yes"]:
        found.append(f"{score.false_yes} false yes")
    if score.false_no > AIMS["false_no"]:
        found.append(f"{score.false_no} false no")
    if score.healthy_proved < AIMS["healthy_proved"] * score.healthy:
        found.append(f"only {score.healthy_proved} of {score.healthy} healthy ones proved")
    return found
