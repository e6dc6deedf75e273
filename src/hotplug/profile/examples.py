"""Values that one schema allows and another refuses: what makes a refusal certain and readable."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final, cast

from hotplug.profile.branches import FORMATS, Branch, Root, Schema, TooLarge

__all__ = ["NOTHING", "counterexample"]

NOTHING: Final = object()
"""No example was found, which proves nothing."""

_MOST_TRIED: Final = 600
_MOST_OF_A_NODE: Final = 40
_DEEPEST: Final = 6
_LONGEST_TEXT: Final = 5000
_TEXTS: Final = (
    *("a", "", "?", "Zoë", "a b", "A1", "x" * 70, "1", "2026-06-11", "2026-06-11T17:00:00", "2026-06-11T17:00:00Z"),
    *("12:30:00Z", "PT1H", "https://example.com/a", "ada@example.com", "01234567-89ab-cdef-0123-456789abcdef"),
    *("127.0.0.1", "#/a", "sha256:" + "0" * 64, "a.b", "a-b", "a_b", "AB-12", "1.0.0"),
)
_NEVER: Final = ("", "?")
"""Texts that no format in `FORMATS` allows."""


def counterexample(wider: Schema, narrower: Schema, *, named_only: bool) -> Any:
    """A value that fits `narrower` and not `wider`, both checked by a validator; else `NOTHING`."""
    # Loading the validator takes a tenth of a second, and only a comparison that doesn't succeed needs it.
    from jsonschema.exceptions import SchemaError, ValidationError
    from referencing.exceptions import Unresolvable

    accepts, refuses = _validator(wider, doubtful=True), _validator(narrower, doubtful=False)
    examples = _Examples(Root(narrower), _hints(wider), _names(wider), named_only)
    try:
        for example in islice(examples.of([narrower]), _MOST_TRIED):
            if refuses.is_valid(example) and not accepts.is_valid(example):
                return example
    except (SchemaError, ValidationError, Unresolvable, TooLarge, RecursionError):
        return NOTHING
    except (AttributeError, KeyError, TypeError, ValueError):  # a malformed keyword, in the validator or here
        return NOTHING
    return NOTHING


def _validator(schema: Schema, *, doubtful: bool) -> Any:
    """A validator of the schema's dialect; `doubtful` is what it says of a text whose format isn't certain."""
    from jsonschema import Draft202012Validator, FormatChecker
    from jsonschema.validators import validator_for

    checker = FormatChecker(formats=())
    for name in {*FORMATS, *_formats(schema)}:
        checker.checks(name)(_format(name, doubtful))
    kind: Any = validator_for(dict(schema) if isinstance(schema, Mapping) else schema, default=Draft202012Validator)
    return kind(schema, format_checker=checker)


def _format(name: str, doubtful: bool) -> Any:
    pattern = FORMATS.get(name)

    def check(value: object) -> bool:
        if not isinstance(value, str):
            return True
        if pattern is None:
            return doubtful
        return bool(pattern.fullmatch(value)) or (doubtful and value not in _NEVER)

    return check


class _Examples:
    """Examples of the schemas of one root; most fit, and none is promised to."""

    def __init__(self, root: Root, hints: Sequence[float], names: Sequence[str], named_only: bool) -> None:
        self._root = root
        self._hints = hints
        self._names = names
        self._named_only = named_only

    def of(self, nodes: Sequence[Schema], depth: int = 0) -> Iterator[Any]:
        """Examples of a conjunction, each branch's plainest first."""
        branches = self._root.branches(nodes)
        rows = [
            list(islice(self._branch(branch, depth), _MOST_TRIED if depth == 0 else _MOST_OF_A_NODE))
            for branch in branches
        ]
        for index in range(max(map(len, rows), default=0)):
            yield from (row[index] for row in rows if index < len(row))

    def _branch(self, branch: Branch, depth: int) -> Iterator[Any]:
        if branch.values is not None:
            return iter(branch.values)
        match branch.type:
            case "string":
                return self._fitting(branch, self._texts(branch))
            case "integer" | "number":
                return self._fitting(branch, self._numbers(branch))
            case "array":
                return self._lists(branch, depth)
            case _:
                return self._objects(branch, depth)

    def _fitting(self, branch: Branch, values: Iterable[Any]) -> Iterator[Any]:
        """Leaves out what the branch's own keywords refuse, so that objects aren't built of it."""
        flats = [{key: value for key, value in flat.items() if key in _OWN} for flat in branch.flats]
        validators = [_validator(flat, doubtful=False) for flat in flats if flat]
        return (value for value in values if all(validator.is_valid(value) for validator in validators))

    def _texts(self, branch: Branch) -> Iterator[Any]:
        yield from branch.all("default")
        yield from (
            text for texts in branch.all("examples") if isinstance(texts, list) for text in cast("list[Any]", texts)
        )
        yield from _TEXTS
        lengths = {*self._hints, branch.most("minLength") or 0, branch.least("maxLength") or 0}
        for length in sorted({int(n) + step for n in lengths for step in (-1, 0, 1)}):
            if 0 <= length <= _LONGEST_TEXT:
                yield "y" * length

    def _numbers(self, branch: Branch) -> Iterator[float]:
        low, high = branch.range()
        near = {0.0, *self._hints, *(bound[0] for bound in (low, high) if bound)}
        steps = (0.0, 1.0, -1.0) if branch.type == "integer" else (0.0, 1.0, -1.0, 0.5, -0.5)
        for number in sorted({n + step for n in near for step in steps}, key=abs):
            yield int(number) if number == number // 1 else number
        yield from (10**9, -(10**9))

    def _lists(self, branch: Branch, depth: int) -> Iterator[list[Any]]:
        fewest = int(branch.most("minItems") or 0)
        if depth >= _DEEPEST:
            if not fewest:
                yield []
            return
        rows = [list(self.of(branch.item(index), depth + 1)) for index in range(branch.prefix())]
        rest = list(self.of(branch.item(None), depth + 1))

        def built(length: int) -> list[Any] | None:
            found = [row[0] for row in rows[:length] if row]
            if len(found) < min(length, len(rows)) or (length > len(rows) and not rest):
                return None
            return found + [rest[index % len(rest)] for index in range(length - len(found))]

        lengths = {fewest, fewest + 1, 2, *(int(n) + step for n in self._hints for step in (0, 1))}
        for length in sorted(length for length in lengths if fewest <= length <= 60):
            if (example := built(length)) is not None:
                yield example
                if length > 1 and length > len(rows):
                    yield [*example[:-1], *rest[:1]]
        for index, row in enumerate([*rows, rest]):
            base = built(max(index + 1, fewest))
            for value in row if base is not None else ():
                yield [*base[:index], value, *base[index + 1 :]] if base is not None else []

    def _objects(self, branch: Branch, depth: int) -> Iterator[dict[str, Any]]:
        required = branch.required()
        rows: dict[str, list[Any]] = {}
        for name in sorted({*branch.named(), *required}):
            if name in required or depth < _DEEPEST:
                nodes = branch.member(name)
                rows[name] = [] if depth > 2 * _DEEPEST else list(self.of(nodes, depth + 1))
        if any(not rows[name] for name in required):
            return
        base = {name: rows[name][0] for name in rows if name in required}
        full = {name: row[0] for name, row in rows.items() if row}
        yield base
        yield full
        for name in [name for name in full if name not in required]:
            yield {**base, name: full[name]}
            yield {key: value for key, value in full.items() if key != name}
        for index in range(1, _MOST_OF_A_NODE):
            for name, row in rows.items():
                if index < len(row):
                    yield {**base, name: row[index]}
        extra = branch.extra(named_only=self._named_only)
        if extra != [False] and depth < _DEEPEST:
            row = list(islice(self.of(extra, depth + 1), 12))
            for name in [name for name in ("unlisted", *self._names) if name not in rows]:
                yield from ({**base, name: value} for value in row)


_OWN: Final = frozenset(
    (
        *("type", "pattern", "format", "minLength", "maxLength"),
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    )
)


def _walk(node: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(node, Mapping):
        mapping = cast("Mapping[str, Any]", node)
        yield mapping
        for value in mapping.values():
            yield from _walk(value)
    elif isinstance(node, list):
        for item in cast("list[Any]", node):
            yield from _walk(item)


def _formats(schema: Schema) -> set[str]:
    return {node["format"] for node in _walk(schema) if isinstance(node.get("format"), str)}


def _hints(schema: Schema) -> list[float]:
    """The numbers by which a schema draws its limits: just beyond them examples differ."""
    limits = ("minLength", "maxLength", "minItems", "maxItems", "minimum", "maximum", "multipleOf")
    found = {
        node[key]
        for node in _walk(schema)
        for key in (*limits, "exclusiveMinimum", "exclusiveMaximum", "maxProperties", "minProperties")
        if isinstance(node.get(key), (int, float)) and not isinstance(node.get(key), bool)
    }
    return sorted(found, key=abs)[:12]


def _names(schema: Schema) -> list[str]:
    """The properties that a schema names anywhere."""
    found = {
        name for node in _walk(schema) if isinstance(node.get("properties"), Mapping) for name in node["properties"]
    }
    return sorted(found)[:20]
