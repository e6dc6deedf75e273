"""Cases of adjudication as people write them down: read one by one, so that a bad one costs only itself."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

from hotplug.errors import ConfigError

if TYPE_CHECKING:
    from hotplug.evidence.adjudicate import Adjudication

__all__ = ["Answered", "BadCase", "Case", "answer", "cases_in", "differences"]

_MAJOR: Final = "1"
_DERIVED: Final = ("assertionsHeld", "assertionsHeldUnder")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


class _Twice(dict[str, Any]):
    """An object with a member that was there twice."""

    member: str = ""


class BadCase(Exception):
    """A case that can't be decided as it stands.

    Args:
        where: The JSON path within the case.
    """

    def __init__(self, problem: str, where: str = "$") -> None:
        super().__init__(problem)
        self.problem = problem
        self.where = where


@dataclass(frozen=True)
class Case:
    """One case, not yet looked into.

    Args:
        name: What to call it in a message: its id, or its place in the file.
        id: As it was given; None where it has none.
        problem: Why it is none, where it isn't even JSON.
    """

    name: str
    id: Any
    value: Any
    problem: str | None = None

    @property
    def expected(self) -> dict[str, Any] | None:
        """What the case itself says should come out."""
        expected = self.value.get("expected") if isinstance(self.value, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        return cast("dict[str, Any]", expected) if isinstance(expected, dict) else None


@dataclass(frozen=True)
class Answered:
    """What came out of a case.

    Args:
        held: What was computed for `assertionsHeld`; only meant where `derived`.
    """

    adjudication: Adjudication
    derived: bool
    held: bool | None

    def document(self, case: Case) -> dict[str, Any]:
        """The answer as it is printed: `id`, `verdict`, `ground`, and on a yes its `grade`."""
        found = self.adjudication
        grade = {} if found.grade is None else {"grade": found.grade}
        return {"id": case.id, "verdict": found.verdict, "ground": found.ground, **grade}


def cases_in(text: str, source: str) -> tuple[Case, ...]:
    """The cases of a text: a file `{"format", "protocol", "vectors": […]}`, a list, JSON lines, or a single case.

    Raises:
        ConfigError: It is none of these, or of a version of the protocol that nobody here knows.
    """
    try:
        value = _parse(text)
    except RecursionError:
        raise ConfigError(f"{source} is nested too deeply to be read") from None
    except ValueError as error:
        lines = _lines(text)
        if lines is None:
            raise ConfigError(
                f"{source} isn't JSON: {error}", hint="give one case, a list, or one case a line"
            ) from None
        return lines
    if isinstance(value, dict) and "vectors" in value:
        document = cast("dict[str, Any]", value)
        _check_version(document, source)
        value = document["vectors"]
        if not isinstance(value, list):
            raise ConfigError(f"{source}: $.vectors is no list of cases")
    if isinstance(value, dict):
        return (_case(value, "the case"),)
    if not isinstance(value, list):
        raise ConfigError(f"{source} holds no case: a case is a JSON object with `input`")
    if not value:
        raise ConfigError(f"{source} holds no case")
    return tuple(_case(one, f"case {position}") for position, one in enumerate(cast("list[Any]", value), 1))


def _parse(text: str) -> Any:
    return json.loads(text, object_pairs_hook=_object, parse_constant=lambda _name: math.nan)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) == len(pairs):
        return members
    names = [name for name, _ in pairs]
    twice = _Twice(members)
    twice.member = next(name for name in names if names.count(name) > 1)
    return twice


def _lines(text: str) -> tuple[Case, ...] | None:
    """JSON lines, where that is what a text is: most of its lines are objects on their own."""
    cases: list[Case] = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            cases.append(_case(_parse(line), f"line {number}"))
        except (ValueError, RecursionError) as error:
            cases.append(Case(f"line {number}", None, None, f"isn't JSON: {error}"))
    good = sum(case.problem is None for case in cases)
    return tuple(cases) if good and 2 * good >= len(cases) > 1 else None


def _case(value: Any, name: str) -> Case:
    if not isinstance(value, dict):
        return Case(name, None, value, "is no case: a case is a JSON object with `input`")
    ambiguous = isinstance(value, _Twice) and value.member == "id"
    given = None if ambiguous else cast("dict[str, Any]", value).get("id")
    if isinstance(given, str) and not _SURROGATE.search(given):
        return Case(repr(given), given, value)
    if isinstance(given, int) and not isinstance(given, bool):
        return Case(str(given), given, value)
    return Case(name, None, value)  # pyright: ignore[reportUnknownArgumentType]


def _check_version(document: dict[str, Any], source: str) -> None:
    version = document.get("protocol")
    if version is None:
        return
    if not isinstance(version, str) or version.partition(".")[0] != _MAJOR:
        raise ConfigError(
            f"{source} is of version {version} of the protocol; this build knows version {_MAJOR}",
            hint="nothing was decided: a verdict under other rules would be a guess",
        )


def answer(case: Case) -> Answered:
    """Decide a case.

    Raises:
        BadCase: It can't be; the place is named.
    """
    from hotplug.evidence.adjudicate import AdjudicationInput, adjudicate
    from hotplug.evidence.errors import EvidenceError

    if case.problem is not None:
        raise BadCase(case.problem)
    for where, problem in _ambiguities(case.value):
        raise BadCase(problem, where)
    members = cast("dict[str, Any]", case.value)
    bare = "input" not in members and "claim" in members and "window" in members
    if not bare and "input" not in members:
        raise BadCase("has no `input`")
    where = "$" if bare else "$.input"
    try:
        given = AdjudicationInput.read(members if bare else members["input"])
        derive = members.get("derive")
        if derive is None:
            return Answered(adjudicate(given), False, given.assertions_held)
        if given.assertions_held is not None:
            raise BadCase(
                "stands there although it is to be derived: which one holds can't be told", f"{where}.assertionsHeld"
            )
        held = _derived(derive, given, members)
    except EvidenceError as error:
        raise BadCase(error.problem, where + error.where.removeprefix("$")) from None
    except RecursionError:
        raise BadCase("is nested too deeply to be read") from None
    return Answered(adjudicate(given.model_copy(update={"assertions_held": held})), True, held)


def _derived(derive: object, given: Any, members: dict[str, Any]) -> bool | None:
    from hotplug.evidence.errors import EvidenceError
    from hotplug.evidence.observation import Observation
    from hotplug.evidence.predicates import assertions_held, assertions_held_under

    if derive not in _DERIVED:
        raise BadCase(f"is {derive!r}: it can be {' or '.join(_DERIVED)}", "$.derive")
    seen = members.get("observations")
    if not isinstance(seen, list):
        raise BadCase("has no list of observations to derive it from", "$.observations")
    observations: list[Observation] = []
    for position, one in enumerate(cast("list[Any]", seen)):
        try:
            observations.append(Observation.read(one))
        except EvidenceError as error:
            raise BadCase(error.problem, f"$.observations[{position}]{error.where.removeprefix('$')}") from None
    if derive == "assertionsHeld":
        return assertions_held(given.claim.assertions, observations)
    return assertions_held_under(given.claim.assertions, observations, given.coverage)


def _ambiguities(value: Any) -> Iterator[tuple[str, str]]:
    """Where a value is no plain JSON: members that are there twice, no numbers, half characters."""
    from hotplug.evidence.wire import path

    stack: list[tuple[tuple[str | int, ...], Any]] = [((), value)]
    while stack:
        steps, here = stack.pop()
        if isinstance(here, dict):
            if isinstance(here, _Twice):
                yield path(steps), f"member {json.dumps(here.member)} is there twice in one object"
            members = cast("dict[str, Any]", here)
            for name in members:
                if _SURROGATE.search(name):
                    yield path(steps), "holds text that is not valid Unicode"
            stack += [((*steps, name), one) for name, one in reversed(members.items())]
        elif isinstance(here, list):
            items = cast("list[Any]", here)
            stack += [((*steps, position), one) for position, one in reversed(list(enumerate(items)))]
        elif isinstance(here, float) and not math.isfinite(here):
            yield path(steps), "is not a JSON number"
        elif isinstance(here, str) and _SURROGATE.search(here):
            yield path(steps), "holds text that is not valid Unicode"


def differences(case: Case, answered: Answered) -> Iterable[str]:
    """How an answer differs from what the case expects; nothing where it doesn't, or expects nothing."""
    expected = case.expected or {}
    found = answered.adjudication
    pairs: list[tuple[str, Any, Any]] = [
        (name, expected[name], value)
        for name, value in (("verdict", found.verdict), ("ground", found.ground), ("grade", found.grade))
        if name in expected
    ]
    if answered.derived and "assertionsHeld" in expected:
        pairs.append(("assertionsHeld", expected["assertionsHeld"], answered.held))
    for name, wanted, value in pairs:
        if type(wanted) is not type(value) or wanted != value:
            yield f"{name} is {json.dumps(value)}, expected {json.dumps(wanted, default=str)}"
