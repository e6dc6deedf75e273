"""The one module that knows the expression engine: a JSONata expression, compiled once and bounded in every evaluation.

The engine (`jlens`) bounds nothing by default: a function that calls itself in tail position runs for ever, and
`max_depth` alone does not stop it. So every evaluation here carries all of `Bounds`. Expressions have no I/O, no clock
and no chance: `$now`, `$millis`, `$random`, `$shuffle` and `$eval` are refused when the expression is loaded, and fail
when an expression reaches them by a way the loader did not see.

Numbers of JSONata are doubles. Integers beyond 2^53 go in as strings, digit for digit, and come out so (FR-10).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from collections.abc import Mapping as Map
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final, Literal, TypeAlias, cast

import jlens

from hotplug.errors import ConnectionFailed, Internal, ProjectionError

__all__ = [
    "DEFAULT_BOUNDS",
    "UNDEFINED",
    "Bounds",
    "Function",
    "Mapping",
    "Read",
    "Reads",
    "Template",
    "Undefined",
    "exact",
]

Function: TypeAlias = Callable[..., Any]
"""A function that expressions may call. It gets JSON values, and `None` for both null and undefined."""

Read: TypeAlias = "Literal[True] | Map[str, Read]"
"""What is read of a value: `True` for the whole, or only the fields listed, each with its own `Read`."""


class Undefined(Enum):
    """The type of `UNDEFINED`: JSONata's "no value", which is not JSON null."""

    UNDEFINED = "undefined"

    def __bool__(self) -> bool:
        return False


UNDEFINED: Final = Undefined.UNDEFINED
"""What `Mapping.apply` gives for an expression without a value. Falsy."""

_SAFE: Final = 2**53
_REFUSED: Final = frozenset({"now", "millis", "random", "shuffle", "eval"})
_SILENT: Final = re.compile(r""""(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|`[^`]*`|/\*.*?\*/""", re.DOTALL)
_VARIABLE: Final = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*)")


@dataclass(frozen=True)
class Bounds:
    """The limits of one evaluation. Each one that is passed fails the evaluation, it never cuts the result.

    Args:
        timeout: Seconds. The engine's range operator allocates up to 1e7 items before it looks at the clock.
        max_depth: Nested evaluations.
        max_steps: Steps of the evaluation; about 10 million a second.
        max_string: Bytes of one string.
        max_array: Items of one array.
        max_result: Bytes of the result as JSON.
    """

    timeout: float = 0.5
    max_depth: int = 500
    max_steps: int = 2_000_000
    max_string: int = 4 * 1024 * 1024
    max_array: int = 100_000
    max_result: int = 8 * 1024 * 1024


DEFAULT_BOUNDS: Final = Bounds()


@dataclass(frozen=True)
class Reads:
    """What an expression reads.

    Args:
        input: Of its context (`$`); `None` where it reads nothing of it.
        bindings: Of the variables that are bound from outside, by name without `$`. Functions are not among them.
    """

    input: Read | None = None
    bindings: Map[str, Read] = field(default_factory=dict[str, Read])


class Mapping:
    """One JSONata expression, compiled. May be used from several threads.

    Args:
        source: The expression.
        where: The place in the projection for messages: `caldav.yaml:12 operations.calendar.create.args`.
        functions: Functions by name without `$`. A `ConnectionFailed` one of them raises is passed on as it is.
        bounds: The limits of every evaluation.

    Raises:
        ProjectionError: The expression doesn't parse, or names a function that isn't fixed (`$now`, ...).
    """

    __slots__ = ("_bounds", "_exists", "_expression", "_functions", "_limits", "source", "where")

    def __init__(
        self,
        source: str,
        where: str,
        *,
        functions: Map[str, Function] | None = None,
        bounds: Bounds = DEFAULT_BOUNDS,
    ) -> None:
        self.source = source
        self.where = where
        self._functions = dict(functions or {})
        self._bounds = bounds
        self._limits: dict[str, Any] = {
            "timeout": bounds.timeout,
            "max_depth": bounds.max_depth,
            "max_steps": bounds.max_steps,
            "max_string_length": bounds.max_string,
            "max_array_length": bounds.max_array,
            "max_result_size": bounds.max_result,
            "now": 0,
            "seed": 0,
        }
        self._expression = self._compile(source)
        for name in _VARIABLE.findall(_SILENT.sub(" ", source)):
            if name in _REFUSED:
                raise ProjectionError(
                    f"{where}: `${name}` is not available in a projection: the same answer must give the same result"
                )
        self._exists: jlens.Expression | None = None

    def __repr__(self) -> str:
        return f"Mapping({self.source!r}, {self.where!r})"

    def apply(self, value: Any = None, bindings: Map[str, Any] | None = None) -> Any:
        """Evaluates the expression on a JSON value (`$`), with further values bound to `$name`.

        `None` as the value means no context at all. An expression without a value gives `UNDEFINED`.

        Raises:
            Internal: The evaluation failed or passed a bound; `details` has `where`, `expression`, `cause` and `code`.
            ConnectionFailed: A function of `functions` raised it.
        """
        return self._evaluate(*_exact_all(value, bindings and _named(bindings, self.source)))

    def _evaluate(self, context: Any, bound: dict[str, Any] | None) -> Any:
        if bound:
            bound = _named(bound, self.source)
        try:
            result = self._expression.evaluate(context, bound, **self._limits)
            if result is None and not self._has_value(context, bound):
                return UNDEFINED
        except ConnectionFailed:
            raise
        except jlens.JlensError as error:
            raise self._failed(str(error), error.code, error.position) from error
        except Exception as error:
            raise self._failed(f"{type(error).__name__}: {error}", "function", None) from error
        return result

    def test(self, value: Any = None, bindings: Map[str, Any] | None = None) -> bool:
        """Evaluates a condition: true only for `true`, false for `false`, null and no value.

        Raises:
            Internal: As `apply`, and where the result is anything else: a condition that is a text or a number is
                nearly always a mistake.
        """
        result = self.apply(value, bindings)
        if result is True:
            return True
        if result is False or result is None or result is UNDEFINED:
            return False
        raise self._failed(f"a condition gave {_short(result)}, not true or false", "condition", None)

    def reads(self) -> Reads:
        """What the expression reads of its context and of the variables bound from outside."""
        found = self._expression.reads()
        names = self._functions.keys() | _REFUSED
        bindings = cast("dict[str, Read]", found["bindings"])
        return Reads(
            input=cast("Read | None", found.get("input")),
            bindings={name: read for name, read in bindings.items() if name not in names},
        )

    def explain(self, value: Any = None, bindings: Map[str, Any] | None = None) -> str:
        """Why the expression gives what it gives, as text for a person. Failures are told, not raised."""
        context, bound = _exact_all(value, bindings)
        return self._expression.evaluate_with_audit(context, bound, **self._limits)["explanation_text"]

    def _compile(self, source: str) -> jlens.Expression:
        try:
            expression = jlens.Expression(source)
            # Only those that the source could name: each one costs a microsecond in every evaluation.
            for name in _REFUSED - self._functions.keys():
                if name in source:
                    expression.register_function(name, _refuser(name))
            for name, function in self._functions.items():
                if name in source:
                    expression.register_function(name, _exactly(function))
        except jlens.JlensError as error:
            at = "" if error.position is None else f" at character {error.position + 1}"
            raise ProjectionError(f"{self.where}: `{_short(source)}` is not JSONata: {error}{at}") from error
        return expression

    def _has_value(self, context: Any, bound: dict[str, Any] | None) -> bool:
        # `evaluate` gives None for null and for undefined. Only where it did, a second look tells them apart; the
        # newlines end a comment that the source may close with.
        if self._exists is None:
            self._exists = self._compile(f"$exists((\n{self.source}\n))")
        return self._exists.evaluate(context, bound, **self._limits) is True

    def _failed(self, cause: str, code: str, position: int | None) -> Internal:
        details: dict[str, Any] = {
            "where": self.where,
            "expression": _short(self.source, 500),
            "cause": cause,
            "code": code,
        }
        if position is not None:
            details["position"] = position
        return Internal(f"{self.where}: `{_short(self.source)}` failed: {cause}", details=details)


class Template:
    """Expressions in the shape of the object they make: each leaf is an expression, or a number or truth value as such.

    A leaf without value leaves its field out; an object whose fields are all left out is left out as well, unless it
    is the outermost.

    Args:
        shape: An expression, or an object of shapes.
        where: The place in the projection of the part at a path below the shape: `where("event", "title")`.
        functions: As for `Mapping`.
        bounds: As for `Mapping`, for each leaf.

    Raises:
        ProjectionError: A leaf doesn't parse.
    """

    __slots__ = ("_node", "_sources")

    def __init__(
        self,
        shape: Any,
        where: Callable[..., str],
        *,
        functions: Map[str, Function] | None = None,
        bounds: Bounds = DEFAULT_BOUNDS,
    ) -> None:
        def build(part: Any, path: tuple[str, ...]) -> _Node:
            if isinstance(part, dict):
                return {name: build(item, (*path, name)) for name, item in cast("dict[str, Any]", part).items()}
            source = part if isinstance(part, str) else json.dumps(part)
            return Mapping(source, where(*path), functions=functions, bounds=bounds)

        self._node = build(shape, ())
        self._sources = "\n".join(mapping.source for _, mapping in self.leaves())

    def apply(self, value: Any = None, bindings: Map[str, Any] | None = None) -> Any:
        """The object, or what the one expression gives. Raises as `Mapping.apply`."""
        result = _fill(self._node, *_exact_all(value, bindings and _named(bindings, self._sources)))
        return {} if result is UNDEFINED and isinstance(self._node, dict) else result

    def leaves(self) -> tuple[tuple[tuple[str, ...], Mapping], ...]:
        """Every expression, with its path in the shape; an expression that stands alone has the path `()`."""
        return tuple(_leaves(self._node, ()))


_Node: TypeAlias = "Mapping | dict[str, _Node]"


def _fill(node: _Node, context: Any, bound: dict[str, Any] | None) -> Any:
    if isinstance(node, Mapping):
        return node._evaluate(context, bound)  # pyright: ignore[reportPrivateUsage]
    filled = {name: item for name, part in node.items() if (item := _fill(part, context, bound)) is not UNDEFINED}
    return filled or UNDEFINED


def _leaves(node: _Node, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Mapping]]:
    if isinstance(node, Mapping):
        yield path, node
    else:
        for name, part in node.items():
            yield from _leaves(part, (*path, name))


def exact(value: Any) -> Any:
    """The value with every integer beyond 2^53 as a string of its digits, however deep; unchanged parts are shared."""
    if value is None or isinstance(value, (str, bool, float)):
        return value
    if isinstance(value, int):
        return value if -_SAFE <= value <= _SAFE else str(value)
    if isinstance(value, dict):
        source = cast("dict[Any, Any]", value)
        changed: dict[Any, Any] = {}
        for key, item in source.items():
            # Most of what there is: not worth a call.
            if type(item) is str or item is None:
                continue
            new = exact(item)
            if new is not item:
                changed[key] = new
        return {**source, **changed} if changed else source
    if isinstance(value, (list, tuple)):
        items = cast("list[Any]", value)
        new_items: list[Any] | None = None
        for at, item in enumerate(items):
            if type(item) is str or item is None:
                continue
            new = exact(item)
            if new is not item:
                new_items = new_items or list(items)
                new_items[at] = new
        return items if new_items is None else new_items
    return value


def _named(bindings: Map[str, Any], source: str) -> dict[str, Any]:
    """The bindings that a source may name: the engine converts each one whole, whether it is read or not.

    A variable stands in the source as it is called, without escapes.
    """
    return {name: item for name, item in bindings.items() if name in source}


def _exact_all(value: Any, bindings: Map[str, Any] | None) -> tuple[Any, dict[str, Any] | None]:
    try:
        context = exact(value)
        if not bindings:
            return context, None
        return context, {name: context if item is value else exact(item) for name, item in bindings.items()}
    except RecursionError as error:
        raise Internal("a value is nested too deep to be mapped") from error


def _exactly(function: Function) -> Function:
    def call(*args: Any) -> Any:
        return exact(function(*args))

    return call


def _refuser(name: str) -> Function:
    def refuse(*_: Any) -> Any:
        raise PermissionError(f"`${name}` is not available in a projection")

    return refuse


def _short(value: Any, length: int = 80) -> str:
    text = value if isinstance(value, str) else repr(value)
    text = " ".join(text.split())
    return text if len(text) <= length else text[: length - 1] + "…"
