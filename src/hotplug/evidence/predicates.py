"""Predicates: the four shapes that the protocol itself evaluates, and what a claim's assertions come to.

Evaluation is three-valued. A predicate that nobody here speaks, or a malformed one, is undefined (None), never false.
Source: OVP version 1, the chapter on predicates.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Final, Literal, Self

from pydantic import BeforeValidator, Field, TypeAdapter, ValidationError, model_validator

from hotplug.evidence.coverage import Coverage, impeaching_spots
from hotplug.evidence.intent import Assertion, channels_read
from hotplug.evidence.noun import Noun, Schema
from hotplug.evidence.observation import Observation
from hotplug.evidence.rendering import double, render
from hotplug.evidence.vocabulary import ChannelId, CountOp, MeasureOp, Natural, Text
from hotplug.evidence.window import Window, closed_cleanly

__all__ = [
    "Absent",
    "AbsentPredicate",
    "Count",
    "CountPredicate",
    "Match",
    "Measure",
    "MeasurePredicate",
    "Predicate",
    "Present",
    "PresentPredicate",
    "Reader",
    "Reading",
    "assertions_held",
    "assertions_held_under",
    "read_predicate",
    "render",
    "selector",
]

Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]


def _not_null(value: object) -> object:
    if value is None:
        raise ValueError("is null: leave it out")
    return value


_Given = Annotated[Text | None, BeforeValidator(_not_null)]


class Match(Noun):
    """Which observations a predicate is about.

    Args:
        channel: Theirs.
        summary: Theirs, exactly; without it, every observation of the channel.
        value_contains: A text that the rendered value contains; only together with a summary.
    """

    channel: ChannelId
    summary: _Given = None
    value_contains: _Given = None

    NULL_IS_ABSENT: ClassVar[bool] = False
    RULES: ClassVar[tuple[Schema, ...]] = ({"dependentRequired": {"valueContains": ["summary"]}},)

    @model_validator(mode="after")
    def _contains_needs_summary(self) -> Self:
        if self.value_contains is not None and self.summary is None:
            raise ValueError("has valueContains without summary: no claim rests on a part of a value alone")
        return self


class _Shape(Noun):
    NULL_IS_ABSENT: ClassVar[bool] = False


class CountPredicate(_Shape):
    """How many observations match."""

    kind: Literal["count"]
    match: Match
    op: CountOp
    value: Natural


class PresentPredicate(_Shape):
    """Some observation matches."""

    kind: Literal["present"]
    match: Match


class AbsentPredicate(_Shape):
    """No observation matches."""

    kind: Literal["absent"]
    match: Match


class MeasurePredicate(_Shape):
    """Some matching observation's value is a number that satisfies this, `tolerance` in its favour."""

    kind: Literal["measure"]
    match: Match
    op: MeasureOp
    value: Number
    tolerance: Number = Field(default=0.0, ge=0)


Predicate = Annotated[
    CountPredicate | PresentPredicate | AbsentPredicate | MeasurePredicate, Field(discriminator="kind")
]
"""The four shapes. A predicate may be anything else; then somebody else evaluates it, or nobody."""

_PREDICATE: Final[TypeAdapter[CountPredicate | PresentPredicate | AbsentPredicate | MeasurePredicate]] = TypeAdapter(
    Predicate
)


Select = Callable[[Observation], bool]


class Reading(ABC):
    """A predicate that is understood: which observations it is about, and what they come to."""

    select: Select

    def selected(self, observations: Iterable[Observation]) -> tuple[Observation, ...]:
        """The observations that it is about."""
        return tuple(filter(self.select, observations))

    @abstractmethod
    def evaluate(self, observations: Iterable[Observation]) -> bool | None:
        """Whether it holds over these; None where they do not tell."""

    @abstractmethod
    def repairable(self, observations: Iterable[Observation]) -> bool:
        """Whether it is false over these and more observations could still make it true."""


@dataclass(frozen=True, slots=True)
class Count(Reading):
    """How many observations are selected."""

    select: Select
    op: CountOp
    value: int

    def evaluate(self, observations: Iterable[Observation]) -> bool:
        found = len(self.selected(observations))
        match self.op:
            case "exactly":
                return found == self.value
            case "at-least":
                return found >= self.value
            case "at-most":
                return found <= self.value

    def repairable(self, observations: Iterable[Observation]) -> bool:
        return self.op != "at-most" and len(self.selected(observations)) < self.value


@dataclass(frozen=True, slots=True)
class Present(Reading):
    """Some observation is selected."""

    select: Select

    def evaluate(self, observations: Iterable[Observation]) -> bool:
        return any(map(self.select, observations))

    def repairable(self, observations: Iterable[Observation]) -> bool:
        return not self.evaluate(observations)


@dataclass(frozen=True, slots=True)
class Absent(Reading):
    """No observation is selected."""

    select: Select

    def evaluate(self, observations: Iterable[Observation]) -> bool:
        return not any(map(self.select, observations))

    def repairable(self, observations: Iterable[Observation]) -> bool:
        return False


@dataclass(frozen=True, slots=True)
class Measure(Reading):
    """Some selected observation's value is a number that satisfies this; without any number it is undefined.

    Args:
        tolerance: Widens in the reading's favour, its edge included; plain double arithmetic.
    """

    select: Select
    op: MeasureOp
    value: float
    tolerance: float = 0.0

    def evaluate(self, observations: Iterable[Observation]) -> bool | None:
        answers = [self._satisfied_by(number) for number in _numbers(self.selected(observations))]
        return any(answers) if answers else None

    def repairable(self, observations: Iterable[Observation]) -> bool:
        return self.evaluate(observations) is False

    def _satisfied_by(self, number: float) -> bool:
        match self.op:
            case "equals":
                return abs(number - self.value) <= self.tolerance
            case "at-least":
                return number >= self.value - self.tolerance
            case "at-most":
                return number <= self.value + self.tolerance


Reader = Callable[[object], Reading | None]
"""Understands a predicate; None where it does not speak it."""


def read_predicate(predicate: object) -> Reading | None:
    """The reading of one of the protocol's four shapes; None for anything else, malformed ones included."""
    if not isinstance(predicate, dict):
        return None
    try:
        shape = _PREDICATE.validate_python(predicate, by_name=False)
    except (ValidationError, RecursionError):
        return None
    select = selector(shape.match)
    match shape:
        case CountPredicate():
            return Count(select, shape.op, shape.value)
        case PresentPredicate():
            return Present(select)
        case AbsentPredicate():
            return Absent(select)
        case MeasurePredicate():
            return Measure(select, shape.op, shape.value, shape.tolerance)


def selector(match: Match) -> Select:
    """Whether an observation matches: its channel, its summary where given, a part of its value where given."""
    channel, summary, part = match.channel, match.summary, match.value_contains

    def select(observation: Observation) -> bool:
        return (
            observation.channel == channel
            and (summary is None or observation.summary == summary)
            and (part is None or part in (render(observation.value) if observation.carries("value") else ""))
        )

    return select


def assertions_held(
    assertions: Sequence[Assertion], observations: Iterable[Observation], *, read: Reader = read_predicate
) -> bool | None:
    """Whether every assertion that could be evaluated holds; None where none could be.

    Where a coverage is at hand, ask `assertions_held_under`.
    """
    seen = tuple(observations)
    return _together(_answer(assertion, seen, read, final=True) for assertion in assertions)


def assertions_held_under(
    assertions: Sequence[Assertion],
    observations: Iterable[Observation],
    coverage: Coverage,
    *,
    window: Window | None = None,
    read: Reader = read_predicate,
) -> bool | None:
    """`assertions_held`, unless sight was lost: None where a gap bears on the channels that the assertions read.

    Args:
        window: Where it did not close cleanly, a false that later observations could still turn true counts as
            undefined.
    """
    if impeaching_spots(coverage, channels_read(assertions)):
        return None
    seen = tuple(observations)
    final = window is None or closed_cleanly(window)
    return _together(_answer(assertion, seen, read, final=final) for assertion in assertions)


def _answer(assertion: Assertion, seen: tuple[Observation, ...], read: Reader, *, final: bool) -> bool | None:
    reading = read(assertion.predicate)
    if reading is None:
        return None
    answer = reading.evaluate(seen)
    if answer is False and not final and reading.repairable(seen):
        return None
    return answer


def _together(answers: Iterable[bool | None]) -> bool | None:
    evaluated = [answer for answer in answers if answer is not None]
    return all(evaluated) if evaluated else None


def _numbers(observations: Iterable[Observation]) -> Iterator[float]:
    for observation in observations:
        value: object = observation.value
        if isinstance(value, int | float) and not isinstance(value, bool):
            number = double(value)
            if math.isfinite(number):
                yield number
