"""What a claim is made of: `net("POST /orders 201").exactly(1)`, and how it becomes the protocol's predicates.

A summary without wildcard becomes the protocol's exact match. One with a wildcard, and `mine()`, become a predicate of
our own (`x-hotplug-…`) that still names its sense: other implementations leave it undefined, ours reads it.
Source: design pages verification and wire; Open Verification Protocol 1, predicates.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeAlias, cast

from hotplug.errors import InvalidArgument
from hotplug.evidence import Absent, Count, Measure, Observation, Present, Reader, Reading, read_predicate, render
from hotplug.profile.senses import SENSES
from hotplug.profile.summaries import Pattern

__all__ = [
    "Condition",
    "Constraint",
    "Selector",
    "checked",
    "constraint",
    "log",
    "net",
    "predicate_reader",
    "route",
    "sense",
    "signal",
    "state",
    "storage",
    "time",
    "ui",
    "visual",
]

Severity: TypeAlias = Literal["blocking", "advisory"]

_OURS: Final = "x-hotplug-"
_COUNTS: Final = {"exactly": "exactly", "at-least": "at least", "at-most": "at most"}
_MEASURES: Final = {"equals": "equals", "at-least": "is at least", "at-most": "is at most"}


@dataclass(frozen=True)
class Selector:
    """Which observations are meant: those of a sense, with a summary, from one place that looks.

    Args:
        sense: The sense that they speak for.
        summary: Text or pattern of the summary (`POST /orders 2xx`); None for all of the sense.
        contains: Texts that the value has to hold, all of them.
        witness: The witness by whose eyes; None for whichever place shows the sense with the most weight.
        only_mine: Only what the actions of this window caused, known by their ids.
        own: Only what the subject itself shows, even where a witness shows it with more weight.
    """

    sense: str
    summary: str | None = None
    contains: tuple[str, ...] = ()
    witness: str | None = None
    only_mine: bool = False
    own: bool = False

    def __post_init__(self) -> None:
        if self.sense not in SENSES and not (self.sense.startswith("x-") and len(self.sense) > 2):
            raise InvalidArgument(
                f"{self.sense!r} is no sense", hint=f"one of {', '.join(SENSES)}, or one that begins with x-"
            )
        if self.summary is not None:
            try:
                Pattern.parse(self.sense, self.summary)
            except ValueError as error:
                raise InvalidArgument(f"{self.sense}({self.summary!r}) can never be seen: {error}") from None

    @property
    def fact(self) -> str | None:
        """The name of the fact that is meant, where it is one."""
        name, equals, _ = (self.summary or "").partition(" = ")
        return name if equals and self.sense == "state" else None

    def containing(self, text: str) -> Selector:
        """Only those whose value holds this text; it can't say that two values are equal.

        Given again, one and the same value has to hold each of the texts.
        """
        if self.summary is None:
            raise InvalidArgument(
                f"{self.sense}().containing({text!r}) names no summary", hint="no claim rests on a piece of text alone"
            )
        if not text:
            raise InvalidArgument(f"{self}.containing('') holds for everything")
        return replace(self, contains=(*self.contains, text))

    def mine(self) -> Selector:
        """Only what this window's own actions caused, where the server says so with their ids."""
        return replace(self, only_mine=True)

    def exactly(self, count: int) -> Condition:
        """There are exactly so many."""
        return self._count("exactly", count)

    def at_least(self, count: int) -> Condition:
        """There are so many or more."""
        return self._count("at-least", count)

    def at_most(self, count: int) -> Condition:
        """There are so many or fewer."""
        return self._count("at-most", count)

    def present(self) -> Condition:
        """There is one."""
        return Condition(self, "present")

    def absent(self) -> Condition:
        """There is none. Absence alone proves nothing: say also what has to be seen instead."""
        return Condition(self, "absent")

    def equals(self, value: float, *, tolerance: float = 0.0) -> Condition:
        """One of their values is this number, give or take the tolerance."""
        return self._measure("equals", value, tolerance)

    def measures_at_least(self, value: float, *, tolerance: float = 0.0) -> Condition:
        """One of their values is a number not below this one."""
        return self._measure("at-least", value, tolerance)

    def measures_at_most(self, value: float, *, tolerance: float = 0.0) -> Condition:
        """One of their values is a number not above this one."""
        return self._measure("at-most", value, tolerance)

    def _count(self, op: str, count: int) -> Condition:
        if isinstance(count, bool) or not isinstance(cast("object", count), int) or count < 0:
            raise InvalidArgument(f"{count!r} is no count", hint="a whole number, zero or more")
        return Condition(self, "count", op, count)

    def _measure(self, op: str, value: float, tolerance: float) -> Condition:
        for what, number in (("value", value), ("tolerance", tolerance)):
            if isinstance(number, bool) or not math.isfinite(number):
                raise InvalidArgument(f"the {what} {number!r} is no finite number")
        if tolerance < 0:
            raise InvalidArgument(f"the tolerance {tolerance!r} is negative")
        return Condition(self, "measure", op, value, tolerance)

    def __str__(self) -> str:
        by = f" by {self.witness}" if self.witness else " by the subject" if self.own else ""
        text = f' "{self.summary}"' if self.summary is not None else ""
        held = f" containing {' and '.join(map(repr, self.contains))}" if self.contains else ""
        return f"{self.sense}{text}{held}{by}{' of this window' if self.only_mine else ''}"


@dataclass(frozen=True)
class Condition:
    """What has to hold of the selected observations at the end of a window."""

    selector: Selector
    kind: Literal["count", "present", "absent", "measure"]
    op: str | None = None
    value: float | None = None
    tolerance: float = 0.0

    @property
    def is_fact(self) -> bool:
        """Whether it is about how something is (`orders.count = 3`), not about something that happens.

        Only of such a condition can be said that it held before the action.
        """
        return self.selector.fact is not None

    @property
    def reads(self) -> str:
        """The condition in words."""
        match self.kind:
            case "count":
                return f"{self.selector} {_COUNTS[cast('str', self.op)]} {self.value}"
            case "measure":
                within = f" (±{self.tolerance:g})" if self.tolerance else ""
                return f"{self.selector} {_MEASURES[cast('str', self.op)]} {self.value:g}{within}"
            case _:
                return f"{self.selector} {self.kind}"

    def predicate(self, channel: str) -> dict[str, Any]:
        """The predicate over a channel, in the protocol's shape where it has one."""
        match_: dict[str, Any] = {"channel": channel}
        selector, kind = self.selector, self.kind
        exact = None if selector.summary is None else Pattern.parse(selector.sense, selector.summary).exact
        own = selector.only_mine or (selector.summary is not None and exact is None) or len(selector.contains) > 1
        if own:
            kind = f"{_OURS}{kind}"
            if selector.summary is not None:
                match_ |= {"sense": selector.sense, "pattern": selector.summary}
            if selector.only_mine:
                match_["mine"] = True
        elif exact is not None:
            match_["summary"] = exact
        if selector.contains:
            # The protocol's match has one text; several are a predicate of our own.
            match_["valueContains"] = selector.contains[0] if len(selector.contains) == 1 else [*selector.contains]
        body: dict[str, Any] = {"kind": kind, "match": match_}
        if self.op is not None:
            body |= {"op": self.op, "value": self.value}
        if self.kind == "measure" and self.tolerance:
            body["tolerance"] = self.tolerance
        return body

    def __str__(self) -> str:
        return self.reads


@dataclass(frozen=True)
class Constraint:
    """What must hold throughout a window; see `constraint`."""

    statement: str
    condition: Condition
    severity: Severity = "blocking"


def constraint(statement: str, condition: Condition, *, severity: Severity = "blocking") -> Constraint:
    """Something that must hold throughout a window.

    `constraint("no payment twice", net("POST /payments 2xx").at_most(1))`

    Args:
        severity: `blocking` makes the run fail where it is violated; `advisory` is only recorded.

    Raises:
        InvalidArgument: It says nothing, or can't be violated by anything that is seen.
    """
    if not statement.strip():
        raise InvalidArgument("a constraint says in words what must hold")
    if condition.kind in {"present", "measure"} or condition.op in {"exactly", "at-least"}:
        raise InvalidArgument(
            f"{condition} doesn't hold before it has happened, so it can't hold throughout a window",
            hint="constrain with at_most(n) or absent(); what has to be there at the end is a claim",
        )
    if severity not in {"blocking", "advisory"}:
        raise InvalidArgument(f"{severity!r} is no severity", hint="blocking or advisory")
    return Constraint(statement, condition, severity)


def checked(statement: str, conditions: Sequence[Condition | Constraint]) -> tuple[Condition, ...]:
    """The conditions of a claim.

    Raises:
        InvalidArgument: It says nothing, or names nothing that could be evaluated.
    """
    if not statement.strip():
        raise InvalidArgument("a claim says in words what is to be true")
    for one in conditions:
        if not isinstance(cast("object", one), Condition | Constraint):
            raise InvalidArgument(
                f"{one!r} in the claim {statement!r} is no condition",
                hint='say how many of it: net("POST /orders 201").exactly(1)',
            )
    held = tuple(one for one in conditions if isinstance(one, Condition))
    if not held:
        raise InvalidArgument(
            f"the claim {statement!r} names nothing to look for",
            hint='add a condition: net("POST /orders 201").exactly(1)',
        )
    return held


def sense(name: str, summary: str | None = None) -> Selector:
    """Observations of any sense, `x-` ones too: `sense("x-exit", "exit 0").present()`.

    Raises:
        InvalidArgument: No such sense, or a summary that this sense never has.
    """
    return Selector(name, summary)


def _of(name: str) -> Callable[[str | None], Selector]:
    def select(summary: str | None = None) -> Selector:
        return Selector(name, summary)

    select.__name__ = select.__qualname__ = name
    select.__doc__ = f"""Observations of the sense `{name}`, with this summary or pattern; all of them without one.

    Raises:
        InvalidArgument: A summary that this sense never has.
    """
    return select


net = _of("net")
log = _of("log")
state = _of("state")
signal = _of("signal")
ui = _of("ui")
route = _of("route")
storage = _of("storage")
time = _of("time")
visual = _of("visual")


def predicate_reader(actions: Collection[str] = ()) -> Reader:
    """Reads the protocol's predicates and ours.

    Args:
        actions: The ids of the window's own actions, for `mine`.
    """

    def read(predicate: object) -> Reading | None:
        found = read_predicate(predicate)
        if found is not None:
            return found
        return _read_ours(predicate, actions)

    return read


def _read_ours(predicate: object, actions: Collection[str]) -> Reading | None:
    """A predicate of ours, checked as strictly as the protocol's are: anything malformed is undefined."""
    if not isinstance(predicate, Mapping):
        return None
    body = cast("Mapping[str, Any]", predicate)
    kind, match_ = body.get("kind"), body.get("match")
    if not isinstance(kind, str) or not kind.startswith(_OURS) or not isinstance(match_, Mapping):
        return None
    select = _selection(cast("Mapping[str, Any]", match_), actions)
    if select is None:
        return None
    # The protocol's own reading checks op, value and tolerance; the channel is one that any match may name.
    named = cast("Mapping[str, Any]", match_).get("channel")
    plain: dict[str, Any] = {**body, "kind": kind.removeprefix(_OURS), "match": {"channel": named}}
    found = read_predicate(plain)
    match found:
        case Count() | Present() | Absent() | Measure():
            return replace(found, select=select)
        case _:
            return None


def _selection(match_: Mapping[str, Any], actions: Collection[str]) -> Callable[[Observation], bool] | None:
    channel, sense_, text = match_.get("channel"), match_.get("sense"), match_.get("pattern")
    contains, mine = match_.get("valueContains"), match_.get("mine", False)
    if not isinstance(channel, str) or not isinstance(mine, bool):
        return None
    pattern: Pattern | None = None
    if text is not None:
        if not isinstance(text, str) or not text or not isinstance(sense_, str):
            return None
        try:
            pattern = Pattern.parse(sense_, text)
        except ValueError:
            return None
    texts = _texts(contains)
    if texts is None or (texts and pattern is None):
        return None

    def select(observation: Observation) -> bool:
        return (
            observation.channel == channel
            and (pattern is None or pattern.matches(observation.summary))
            and (not mine or action_of(observation) in actions)
            and (not texts or _holds(render(observation.value), texts))
        )

    return select


def _texts(contains: object) -> tuple[str, ...] | None:
    """The texts of a match, one or a list of several; None where it is neither."""
    if contains is None:
        return ()
    texts = cast("list[object]", contains) if isinstance(contains, list) else [contains]
    if not texts or not all(isinstance(text, str) and text for text in texts):
        return None
    return tuple(cast("list[str]", texts))


def _holds(rendered: str, texts: tuple[str, ...]) -> bool:
    return all(text in rendered for text in texts)


def action_of(observation: Observation) -> str | None:
    """The id of the action that caused it, where the server says so."""
    found = (observation.model_extra or {}).get("actionId")
    return found if isinstance(found, str) else None
