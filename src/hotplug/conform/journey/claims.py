"""What a journey claims: conditions and constraints as they stand in a document, one to one those of a connection.

`{that: the meeting is stored once, by: witness, state: calendar.event * created, containing: =$title, exactly: 1}`
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final, Literal, cast

from pydantic import Field, model_validator

from hotplug.conform.journey.strict import Strict
from hotplug.connect.claims import Condition, Constraint, Selector, constraint
from hotplug.errors import HotplugError
from hotplug.profile.senses import SENSES

__all__ = ["Evaluate", "Holds", "StepClaim", "StepConstraint"]

Evaluate = Callable[[Any], Any]
"""Gives a value with its expressions (`=…`) evaluated."""

_Text = Annotated[str, Field(min_length=1)]
_Count = int | str
"""A whole number, or an expression that gives one."""

_COUNTS: Final = ("exactly", "at_least", "at_most")
_MEASURES: Final = ("equals", "measures_at_least", "measures_at_most")
_FLAGS: Final = ("present", "absent")


class Holds(Strict):
    """One condition: which observations, and how many of them or what of them.

    In a document the sense is the name of a member, and the summary or its pattern what stands there: `state:
    calendar.event * created`; without a summary (`signal:`) all of the sense are meant. Exactly one of the members from
    `exactly` on says what has to hold.
    """

    sense: _Text
    summary: str | None = None
    by: Literal["witness", "subject"] | None = None
    """Whose eyes count: those of the backend's witness, or its own; by default whoever shows the sense with the most
    weight."""
    containing: str | None = None
    """Text that the value of an observation has to hold."""
    mine: Literal[True] | None = None
    """Only what the step's own actions caused, where the backend says so."""
    exactly: _Count | None = None
    at_least: _Count | None = None
    at_most: _Count | None = None
    present: Literal[True] | None = None
    absent: Literal[True] | None = None
    equals: float | str | None = None
    measures_at_least: float | str | None = None
    measures_at_most: float | str | None = None
    tolerance: float | None = None

    @model_validator(mode="before")
    @classmethod
    def _sense_by_its_name(cls, body: Any) -> Any:
        if not isinstance(body, Mapping) or "sense" in body:
            return cast("object", body)
        members = dict(cast("Mapping[str, Any]", body))
        named = [name for name in members if name in SENSES or name.startswith("x-")]
        if len(named) != 1:
            said = "names no sense" if not named else f"names {len(named)} senses ({', '.join(named)})"
            raise ValueError(f"a condition {said}: write one such as `state: calendar.event * created`")
        summary = members.pop(named[0])
        return {**members, "sense": named[0], "summary": summary}

    @model_validator(mode="after")
    def _says_one_thing(self) -> Holds:
        said = [name for name in (*_COUNTS, *_FLAGS, *_MEASURES) if getattr(self, name) is not None]
        if len(said) != 1:
            what = "nothing" if not said else ", ".join(said)
            raise ValueError(f"a condition says one thing of {self.sense}, such as `exactly: 1`; this one says {what}")
        if self.tolerance is not None and said[0] not in _MEASURES:
            raise ValueError(f"a tolerance goes with a number that is measured, not with {said[0]}")
        if not any(isinstance(value, str) and value.startswith("=") for value in self.model_dump().values()):
            _said(lambda: self.condition(lambda value: value))
        return self

    @property
    def channel(self) -> str:
        """The channel that it reads, as a journey may name it: without any backend's or witness's name."""
        return self.sense if self.by is None else self.channel_by(self.by, self.sense)

    @staticmethod
    def channel_by(by: Literal["witness", "subject"], sense: str) -> str:
        """The channel of a sense as one kind of eyes sees it."""
        return f"x-{by}-{sense.removeprefix('x-')}"

    def condition(self, evaluate: Evaluate, witness: str = "witness") -> Condition:
        """The condition of a connection.

        Args:
            witness: The name of the backend's witness.

        Raises:
            InvalidArgument: Its summary, text or number can't be used.
        """
        summary = evaluate(self.summary)
        selector = Selector(
            self.sense,
            None if summary is None else str(summary),
            witness=witness if self.by == "witness" else None,
            own=self.by == "subject",
        )
        if self.containing is not None:
            selector = selector.containing(str(evaluate(self.containing)))
        if self.mine:
            selector = selector.mine()
        for name in _FLAGS:
            if getattr(self, name):
                return cast("Condition", getattr(selector, name)())
        for name in _COUNTS:
            if getattr(self, name) is not None:
                return cast("Condition", getattr(selector, name)(evaluate(getattr(self, name))))
        tolerance = self.tolerance or 0.0
        name = next(name for name in _MEASURES if getattr(self, name) is not None)
        return cast("Condition", getattr(selector, name)(evaluate(getattr(self, name)), tolerance=tolerance))


class _Said(Strict):
    """Something said in words, with its conditions: inline where there is one, in `all` where there are several."""

    that: _Text
    all: Annotated[tuple[Holds, ...], Field(min_length=1)]

    @model_validator(mode="before")
    @classmethod
    def _one_condition_inline(cls, body: Any) -> Any:
        if not isinstance(body, Mapping) or "all" in body:
            return cast("object", body)
        members = dict(cast("Mapping[str, Any]", body))
        own = {name: members.pop(name) for name in ("that", "severity") if name in members}
        return {**own, "all": [members]}


class StepClaim(_Said):
    """What a step claims to bring about."""

    def conditions(self, evaluate: Evaluate, witness: str = "witness") -> tuple[Condition, ...]:
        """The conditions of a connection; see `Holds.condition`."""
        return tuple(one.condition(evaluate, witness) for one in self.all)


class StepConstraint(_Said):
    """What must hold throughout a step.

    Args:
        severity: `blocking` fails the step where it is violated, `advisory` is only told.
    """

    severity: Literal["blocking", "advisory"] = "blocking"

    @model_validator(mode="after")
    def _one_condition(self) -> StepConstraint:
        if len(self.all) != 1:
            raise ValueError(f"the constraint {self.that!r} has {len(self.all)} conditions: write one for each")
        held = self.all[0]
        if not any(isinstance(value, str) and value.startswith("=") for value in held.model_dump().values()):
            _said(lambda: self.constraint(lambda value: value))
        return self

    def constraint(self, evaluate: Evaluate, witness: str = "witness") -> Constraint:
        """The constraint of a connection.

        Raises:
            InvalidArgument: Nothing that is seen could violate it.
        """
        return constraint(self.that, self.all[0].condition(evaluate, witness), severity=self.severity)


def _said(make: Callable[[], object]) -> None:
    """Make it once while the document is read, so that what can't be made is refused there."""
    try:
        make()
    except HotplugError as error:
        raise ValueError(f"{error.message}{f' ({error.hint})' if error.hint else ''}") from None
