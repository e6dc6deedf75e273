"""A JSON Schema (2020-12) as a union of branches, each of one JSON type: the form that comparing works on.

A branch may say less than the schema does (it keeps no `not`, `if` or `dependentSchemas`), never more: every value that
fits the schema fits one of its branches.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, cast
from urllib.parse import unquote

__all__ = ["FORMATS", "Branch", "Root", "Schema", "TooLarge", "dump", "has_type", "rewrite", "same", "types_of"]

Schema = Mapping[str, Any] | bool

_MAPS: Final = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_LISTS: Final = ("allOf", "anyOf", "oneOf", "prefixItems")
_SINGLE: Final = ("items", "additionalProperties", "unevaluatedProperties", "unevaluatedItems")
_NEGATIVE: Final = ("not", "if", "then", "else", "contains", "propertyNames")

_ANNOTATIONS: Final = frozenset(
    (
        *("title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "discriminator"),
        *("$comment", "$schema", "$id", "$defs", "definitions"),
        *("contentEncoding", "contentMediaType", "contentSchema"),
    )
)
_FREE: Final = ("additionalProperties", "patternProperties")
_ALL_TYPES: Final[tuple[str, ...]] = ("null", "boolean", "object", "array", "string", "number")
_MOST_BRANCHES: Final = 128

_DATE = r"\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])"
_TIME = r"(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d+)?(?:[Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)"
FORMATS: Final[Mapping[str, re.Pattern[str]]] = {
    "date": re.compile(_DATE),
    "time": re.compile(_TIME),
    "date-time": re.compile(f"{_DATE}[Tt]{_TIME}"),
    "duration": re.compile(r"P(?:\d+W|(?=.)(?:\d+D)?(?:T(?=.)(?:\d+H)?(?:\d+M)?(?:\d+S)?)?)"),
    "uuid": re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"),
    "email": re.compile(r"[A-Za-z0-9._+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+"),
    "uri": re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[A-Za-z0-9./?=&_-]+"),
    "ipv4": re.compile(r"(?:(?:1?\d?\d|2[0-4]\d|25[0-5])\.){3}(?:1?\d?\d|2[0-4]\d|25[0-5])"),
}
"""Patterns that only valid strings of a format match. What doesn't match may be valid all the same."""


class TooLarge(Exception):
    """A schema splits into more branches than comparing looks at."""


def same(a: Any, b: Any) -> bool:
    """Whether two JSON values are equal as JSON Schema means it: 1 is 1.0, and neither is true."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        left, right = cast("Mapping[str, Any]", a), cast("Mapping[str, Any]", b)
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(a, list) and isinstance(b, list):
        one, two = cast("list[Any]", a), cast("list[Any]", b)
        return len(one) == len(two) and all(map(same, one, two))
    return a == b


def rewrite(
    schema: Any, change: Callable[[dict[str, Any]], Any], *, negative: bool = False, skip: Collection[str] = ()
) -> Any:
    """The schema with `change` applied to each of its schemas, inner ones first, properties called `title` untouched.

    Args:
        schema: A schema; anything else comes back as it is.
        change: Gets a copy that it may alter.
        negative: Also inside of `not`, `if`, `contains` and `propertyNames`, where a wider schema allows less.
        skip: Keywords whose schemas stay as they are.
    """
    if not isinstance(schema, Mapping):
        return schema
    changed: dict[str, Any] = dict(cast("Mapping[str, Any]", schema))

    def inside(value: Any) -> Any:
        return rewrite(value, change, negative=negative, skip=skip)

    for key, value in changed.items():
        if key in skip:
            continue
        if key in _MAPS and isinstance(value, Mapping):
            changed[key] = {name: inside(item) for name, item in cast("Mapping[str, Any]", value).items()}
        elif key in _LISTS and isinstance(value, list):
            changed[key] = [inside(item) for item in cast("list[Any]", value)]
        elif key in _SINGLE or (negative and key in _NEGATIVE):
            changed[key] = inside(value)
    return change(changed)


def dump(value: Any) -> str:
    """A text that two values share exactly where they are spelled alike."""
    return json.dumps(value, sort_keys=True, default=dict)


@dataclass(frozen=True)
class Branch:
    """A conjunction of schemas without references or alternatives, narrowed to one type or to listed values."""

    flats: tuple[Mapping[str, Any], ...]
    type: str | None
    values: tuple[Any, ...] | None = None

    @cached_property
    def key(self) -> str:
        """What tells this branch from another of the same root."""
        return dump([self.flats, self.type, self.values])

    def all(self, keyword: str) -> Iterator[Any]:
        """The values of a keyword, one for each schema that has it."""
        return (flat[keyword] for flat in self.flats if keyword in flat)

    def named(self) -> dict[str, None]:
        """The properties that some schema names, in order."""
        return {name: None for properties in self.all("properties") for name in properties}

    def required(self) -> set[str]:
        return {name for names in self.all("required") for name in names}

    def member(self, name: str) -> list[Schema]:
        """What a member of that name has to fit, as far as it is known."""
        found: list[Schema] = []
        for flat in self.flats:
            if name in flat.get("properties", {}):
                found.append(flat["properties"][name])
            elif "patternProperties" not in flat and "additionalProperties" in flat:
                found.append(flat["additionalProperties"])
        return found

    def extra(self, *, named_only: bool) -> list[Schema]:
        """What members have to fit that no schema names; `[False]` where there can't be any."""
        if any(value is False for value in self._additional()):
            return [False]
        names = any("properties" in flat for flat in self.flats)
        if named_only and names and not any(key in flat for flat in self.flats for key in _FREE):
            return [False]
        return list(self._additional())

    def _additional(self) -> Iterator[Schema]:
        return (flat["additionalProperties"] for flat in self.flats if _closes(flat))

    def item(self, index: int | None) -> list[Schema]:
        """What the item at an index has to fit, or with None one beyond every `prefixItems`."""
        found: list[Schema] = []
        for flat in self.flats:
            prefix = flat.get("prefixItems", ())
            if index is not None and index < len(prefix):
                found.append(prefix[index])
            elif isinstance(flat.get("items"), (Mapping, bool)):
                found.append(flat["items"])
        return found

    def prefix(self) -> int:
        """The length of the longest `prefixItems`."""
        return max((len(prefix) for prefix in self.all("prefixItems")), default=0)

    def most(self, keyword: str) -> float | None:
        """The highest of a lower bound's values, booleans of older dialects left out."""
        return max(_numbers(self.all(keyword)), default=None)

    def least(self, keyword: str) -> float | None:
        """The lowest of an upper bound's values."""
        return min(_numbers(self.all(keyword)), default=None)

    def range(self) -> tuple[tuple[float, bool] | None, tuple[float, bool] | None]:
        """Lower and upper bound of a number, each with whether it is itself left out; whole for an integer."""
        low = [(n, False) for n in _numbers(self.all("minimum"))]
        low += [(n, True) for n in _numbers(self.all("exclusiveMinimum"))]
        high = [(n, False) for n in _numbers(self.all("maximum"))]
        high += [(n, True) for n in _numbers(self.all("exclusiveMaximum"))]
        if self.type == "integer":
            low = [(n // 1 + 1, False) if out or n != n // 1 else (n, False) for n, out in low]
            high = [(-(-n // 1) - 1 if out else n // 1, False) for n, out in high]
        return max(low, default=None), min(high, key=lambda bound: (bound[0], not bound[1]), default=None)


def _closes(flat: Mapping[str, Any]) -> bool:
    return "additionalProperties" in flat and "patternProperties" not in flat


def _numbers(values: Iterable[Any]) -> list[float]:
    return [value for value in values if isinstance(value, (int, float)) and not isinstance(value, bool)]


class Root:
    """A whole schema, in which references are resolved."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.legacy = isinstance(schema, Mapping) and "draft-0" in str(schema.get("$schema"))
        self._scattered = _has_inner_id(schema)
        self._plain: dict[int, tuple[Schema, str]] = {}

    def target(self, reference: object) -> Schema | None:
        """The schema that a `$ref` names, or None where it isn't in this document (or the document is of several)."""
        if not isinstance(reference, str) or not reference.startswith("#") or self._scattered:
            return None
        node: Any = self.schema
        for step in reference[1:].split("/")[1:] if reference != "#" else ():
            name = _unescape(step)
            if isinstance(node, Mapping) and name in node:
                node = cast("Mapping[str, Any]", node)[name]
            elif isinstance(node, list) and name.isdigit() and int(name) < len(cast("list[Any]", node)):
                node = cast("list[Any]", node)[int(name)]
            else:
                return None
        if reference not in ("", "#") and not reference.startswith("#/"):
            return None
        return cast("Schema", node) if isinstance(node, (Mapping, bool)) else None

    def rest(self, node: Mapping[str, Any]) -> dict[str, Any]:
        """What stands beside a `$ref` and applies: nothing in draft-07 and older."""
        return {} if self.legacy else {key: value for key, value in node.items() if key != "$ref"}

    def plain(self, node: Schema) -> str:
        """The node without annotations, as a text, with every definition that it leads to."""
        if known := self._plain.get(id(node)):
            return known[1]
        seen: dict[str, Any] = {}

        def visit(schema: Schema) -> Any:
            stripped = rewrite(schema, _without_annotations, negative=True)
            for reference in _references(stripped):
                if reference not in seen:
                    seen[reference] = None
                    target = self.target(reference)
                    seen[reference] = "unresolved" if target is None else visit(target)
            return stripped

        text = dump([visit(node), seen])
        self._plain[id(node)] = (node, text)  # the node is kept, so that its id stays its own
        return text

    def branches(self, nodes: Sequence[Schema]) -> list[Branch]:
        """The union that a conjunction of schemas is.

        Raises:
            TooLarge: more alternatives than are looked at.
        """
        found: list[Branch] = []
        for flats in self._alternatives(nodes, frozenset()):
            found.extend(_by_type(tuple(flats)))
            if len(found) > _MOST_BRANCHES:
                raise TooLarge
        return found

    def _alternatives(self, nodes: Sequence[Schema], following: frozenset[str]) -> list[list[Mapping[str, Any]]]:
        product: list[list[Mapping[str, Any]]] = [[]]
        for node in nodes:
            options = self._options(node, following)
            product = [left + right for left in product for right in options]
            if len(product) > _MOST_BRANCHES:
                raise TooLarge
        return product

    def _options(self, node: Schema, following: frozenset[str]) -> list[list[Mapping[str, Any]]]:
        if isinstance(node, bool):
            return [[]] if node else []
        if "$ref" in node:
            reference = str(node["$ref"])
            target = self.target(reference)
            known: list[list[Mapping[str, Any]]] = [[]]
            if target is not None and reference not in following:
                known = self._options(target, following | {reference})
            rest = self._options(self.rest(node), following)
            return [left + right for left in known for right in rest]
        flat = {key: value for key, value in node.items() if key not in ("allOf", "anyOf", "oneOf")}
        options: list[list[Mapping[str, Any]]] = [[flat]] if flat else [[]]
        if isinstance(node.get("allOf"), list):
            inner = self._alternatives(node["allOf"], following)
            options = [left + right for left in options for right in inner]
        for keyword in ("anyOf", "oneOf"):
            if isinstance(node.get(keyword), list):
                inner = [option for member in node[keyword] for option in self._options(member, following)]
                options = [left + right for left in options for right in inner]
                if len(options) > _MOST_BRANCHES:
                    raise TooLarge
        return options


def types_of(flat: Mapping[str, Any]) -> set[str]:
    """The JSON types that a schema's own `type` allows."""
    stated = flat.get("type")
    if isinstance(stated, str):
        return {stated}
    if isinstance(stated, list):
        return set(cast("list[str]", stated))
    return set(_ALL_TYPES)


def has_type(value: Any, types: set[str]) -> bool:
    """Whether a JSON value is of one of the types."""
    match value:
        case None:
            return "null" in types
        case bool():
            return "boolean" in types
        case int() | float():
            return "number" in types or ("integer" in types and value == value // 1)
        case str():
            return "string" in types
        case list():
            return "array" in types
        case _:
            return "object" in types


def _by_type(flats: tuple[Mapping[str, Any], ...]) -> Iterator[Branch]:
    types: set[str] = set(_ALL_TYPES)
    for flat in flats:
        types = _both(types, types_of(flat))
    listed = [values for flat in flats for values in _listed(flat)]
    if listed:
        values = [
            value
            for value in listed[0]
            if has_type(value, types) and all(any(same(value, other) for other in more) for more in listed[1:])
        ]
        if values:
            yield Branch(flats, None, tuple(values))
        return
    for name in sorted(types):
        if name == "null":
            yield Branch(flats, None, (None,))
        elif name == "boolean":
            yield Branch(flats, None, (True, False))
        else:
            yield Branch(flats, name)


def _listed(flat: Mapping[str, Any]) -> Iterator[list[Any]]:
    if "const" in flat:
        yield [flat["const"]]
    if isinstance(flat.get("enum"), list):
        yield flat["enum"]


def _both(one: set[str], other: set[str]) -> set[str]:
    found = one & other
    for left, right in ((one, other), (other, one)):
        if "integer" in left and "number" in right:
            found.add("integer")
    return found - {"integer"} if "number" in found else found


def _without_annotations(schema: dict[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in schema.items() if key not in _ANNOTATIONS and not key.startswith("x-")}
    if isinstance(kept.get("required"), list):
        kept["required"] = sorted(set(cast("list[str]", kept["required"])))
        if not kept["required"]:
            del kept["required"]
    return kept


def _references(node: Any) -> Iterator[str]:
    if isinstance(node, Mapping):
        for key, value in cast("Mapping[str, Any]", node).items():
            if key == "$ref" and isinstance(value, str):
                yield value
            else:
                yield from _references(value)
    elif isinstance(node, list):
        for item in cast("list[Any]", node):
            yield from _references(item)


def _has_inner_id(schema: Schema) -> bool:
    found: list[int] = []

    def look(node: dict[str, Any]) -> dict[str, Any]:
        if isinstance(node.get("$id"), str):
            found.append(1)
        return node

    rewrite(schema, look, negative=True)
    return len(found) > (1 if isinstance(schema, Mapping) and isinstance(schema.get("$id"), str) else 0)


def _unescape(step: str) -> str:
    return unquote(step).replace("~1", "/").replace("~0", "~")
