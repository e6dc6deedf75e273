"""Journeys as documents: one agent journey, without a word about vendors."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Final, Literal

import yaml
from pydantic import Field, ValidationError, model_validator

from hotplug.conform.journey.claims import StepClaim, StepConstraint
from hotplug.conform.journey.strict import Strict
from hotplug.connect.claims.settling import seconds_of
from hotplug.errors import ConfigError, InvalidArgument
from hotplug.profile.canonical import digest
from hotplug.profile.versions import Range

__all__ = ["SCHEMA", "Journey", "Needs", "Step", "Undo", "load"]

SCHEMA: Final = "hotplug.journey/1"


class Needs(Strict):
    """What a backend has to offer for a step to be played; where it doesn't, the step is absent, `not_applicable`."""

    facet: str | None = None
    part: str | None = None


class Undo(Strict):
    """A call that takes back what a step did, once it has been looked at."""

    do: str
    with_: dict[str, Any] = Field(default_factory=dict[str, Any], alias="with")


class Step(Strict):
    """One step: an operation with its arguments, and what has to come of it.

    Strings in `with_`, `claims` and `constraints` that begin with `=` are JSONata over what earlier steps bound
    (`=$made.event`). Claims are written down before the operation is called, so they can't speak of its result.
    """

    name: str
    do: str
    """The wire name of the part."""
    with_: dict[str, Any] = Field(default_factory=dict[str, Any], alias="with")
    bind: str | None = None
    """The name under which later steps find this step's result."""
    expect: str | None = None
    """JSONata over the result: has to be true."""
    refused: str | None = None
    """The code with which this step has to be refused."""
    yields: str | None = None
    """JSONata over the result: what is compared between backends."""
    stored: str | None = None
    """JSONata over `$stored`, what a witness read from the backend itself: has to be true."""
    may_refuse: str | None = None
    """The code of a refusal that is an honest answer here: the journey goes on, and the cell says so."""
    untouched: str | None = None
    """JSONata over `$stored` after such a refusal: has to be true, since nothing may have been done."""
    claims: Annotated[list[StepClaim] | None, Field(min_length=1)] = None
    """What is to be seen of it, by which eyes: judged when the step's window has settled."""
    constraints: Annotated[list[StepConstraint] | None, Field(min_length=1)] = None
    """What must hold from before the operation until the window has settled, also where the step is refused."""
    within: str | None = None
    """How long after the operation a claim may take to come true (`10s`); 5 s by default."""
    undo: Undo | None = None
    needs: Needs | None = None
    repeat: Annotated[
        bool, Field(description="Send the same call again under the same key; it has to change nothing.")
    ] = False

    @property
    def is_watched(self) -> bool:
        """Whether it is played in a window."""
        return bool(self.claims or self.constraints)

    @property
    def parts(self) -> tuple[str, ...]:
        """The wire names of the parts that it calls."""
        return (self.do,) if self.undo is None else (self.do, self.undo.do)

    @model_validator(mode="after")
    def _within_a_time(self) -> Step:
        if self.within is None:
            return self
        if not self.is_watched:
            raise ValueError(f"within is {self.within!r}, and the step claims nothing")
        try:
            seconds_of(self.within)
        except InvalidArgument as error:
            raise ValueError(f"{error.message} ({error.hint})") from None
        return self


class Journey(Strict):
    """A journey: steps in order, played on one backend after the other."""

    journey: Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]*$")]
    version: str
    title: str
    profiles: dict[str, str]
    let: dict[str, Any] = Field(default_factory=dict[str, Any])
    """Values that steps may use; strings beginning with `=` are JSONata over `$run` and those before."""
    steps: Annotated[list[Step], Field(min_length=1)]
    kind: Literal["journey"] = "journey"

    @property
    def core(self) -> tuple[str, ...]:
        """The steps that have to come out the same everywhere: those that need no facet and may not be refused."""
        return tuple(step.name for step in self.steps if step.needs is None and step.may_refuse is None)

    @property
    def digest(self) -> str:
        """`sha256:<hex>` over the document."""
        return digest(self.model_dump(mode="json", by_alias=True, exclude_none=True))


def load(path: str | Path) -> Journey:
    """Read a journey.

    Raises:
        ConfigError: The file can't be read, isn't YAML, or isn't a journey; the message names the place.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"the journey {str(path)!r} can't be read: {error.strerror}") from None
    try:
        body = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ConfigError(f"{path} is not YAML: {' '.join(str(error).split())}") from None
    try:
        journey = Journey.model_validate(body)
    except ValidationError as error:
        faults = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors()[:5])
        raise ConfigError(f"{path} is no journey: {faults}") from None
    names = [step.name for step in journey.steps]
    doubled = sorted({name for name in names if names.count(name) > 1})
    if doubled:
        raise ConfigError(f"{path}: two steps are called {', '.join(doubled)}")
    for range_ in journey.profiles.values():
        Range(range_)
    return journey
