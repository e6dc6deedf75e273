"""Proves that no agent tool's input can name a person's key: in any spelling, at any depth, by any way of a schema.

The guard that refuses an agent's save stands in `apply_patch`; this is a host's test over its tools' input schemas.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final, cast
from urllib.parse import unquote

from hotplug.access.findings import Finding
from hotplug.access.names import PERSON_KEYS, PROJECTS, spelled_as

__all__ = ["names_person_key"]

Schema = Mapping[str, Any]
Path = tuple[str, ...]

_ONE: Final = (
    "additionalItems", "contains", "else", "if", "items", "then", "unevaluatedItems", "contentSchema",
)  # fmt: skip
_MANY: Final = ("allOf", "anyOf", "oneOf", "prefixItems", "items")
_REST: Final = ("additionalProperties", "unevaluatedProperties")
_REFS: Final = ("$ref", "$dynamicRef", "$recursiveRef")
_MOST: Final = 100_000  # subschemas; a schema that is larger is not proved


def names_person_key(
    schema: object, *, keys: Sequence[str] = PERSON_KEYS, implicit: bool = False
) -> tuple[Finding, ...]:
    """Where a tool's input schema can name a person's key; nothing where it can't.

    Walks everything that an input is held to: properties, patterns, names of further properties, `required`, values in
    `enum` and `const`, each branch, each item, each `$ref` (an anchor's and `$id`'s too; one that leads out of the
    document is a finding).

    Args:
        schema: A JSON Schema, as `json.loads` gives it.
        keys: The person's keys; a host adds its own.
        implicit: Counts an object that says nothing of further properties as open to every name, as JSON Schema does.
            Without it only one that says so is (`"additionalProperties": true`, or a schema): most servers refuse or
            drop what they don't declare.
    """
    return tuple(dict.fromkeys(_Walk(schema, tuple(keys), implicit).findings()))


class _Walk:
    def __init__(self, root: object, keys: tuple[str, ...], implicit: bool) -> None:
        self.root = root
        self.keys = keys
        self.implicit = implicit
        self.anchors = dict(_anchors(root))
        self.seen: set[int] = set()
        self.waiting: list[tuple[Path, object]] = [((), root)]

    def findings(self) -> Iterator[Finding]:
        while self.waiting:
            path, schema = self.waiting.pop()
            if len(self.seen) > _MOST:
                yield _finding(path, "unresolved_ref", "the schema is too large to be proved", "make it smaller")
                return
            if isinstance(schema, Mapping):
                if id(cast("object", schema)) not in self.seen:
                    self.seen.add(id(cast("object", schema)))
                    yield from self._object(path, cast("Schema", schema))
            elif schema is not False and self.implicit:
                yield _open(path, "anything is taken here")

    def _object(self, path: Path, schema: Schema) -> Iterator[Finding]:
        yield from self._properties(path, schema)
        yield from self._rest(path, schema)
        yield from self._values(path, schema)
        for word in _REFS:
            if isinstance(schema.get(word), str):
                target = self._target(schema[word])
                if target is None:
                    fix = "put what it means into the schema's own $defs"
                    yield _finding((*path, word), "unresolved_ref", f"{schema[word]} leads out of the schema", fix)
                else:
                    self.waiting.append(((*path, word), target))
        for word in _ONE:
            if word in schema and not isinstance(schema[word], list):
                self._later((*path, word), schema[word])
        for word in _MANY:
            for number, one in enumerate(_list(schema.get(word))):
                self._later((*path, word, str(number)), one)

    def _later(self, path: Path, schema: object) -> None:
        self.waiting.append((path, schema))

    def _properties(self, path: Path, schema: Schema) -> Iterator[Finding]:
        for name, value in _items(schema.get("properties")):
            if value is False:
                continue
            yield from self._named((*path, "properties", name), name)
            self._later((*path, "properties", name), value)
        for pattern, value in _items(schema.get("patternProperties")):
            if value is False:
                continue
            where = (*path, "patternProperties", pattern)
            matched = next((one for one in _spellings(self.keys) if _matches(pattern, one)), None)
            if matched is not None:
                yield _finding(where, "person_key_pattern", f"the pattern takes {matched}", "narrow the pattern")
            self._later(where, value)
        for name in _list(schema.get("required")):
            yield from self._named((*path, "required"), name)
        for word in ("dependentRequired", "dependentSchemas", "dependencies"):
            for name, value in _items(schema.get(word)):
                yield from self._named((*path, word, name), name)
                for other in _list(value):
                    yield from self._named((*path, word, name), other)
                if isinstance(value, Mapping):
                    self._later((*path, word, name), cast("object", value))

    def _rest(self, path: Path, schema: Schema) -> Iterator[Finding]:
        """Names that aren't declared one by one."""
        given = [word for word in _REST if word in schema]
        for word in given:
            if schema[word] is not False and schema[word] is not True:
                self._later((*path, word), schema[word])
        names = schema.get("propertyNames", True)
        said = [word for word in given if schema[word] is not False]
        if said or (self.implicit and not given and _is_object(schema)):
            refused = {name for name, value in _items(schema.get("properties")) if value is False}
            meant = (one for one in _strings(names) if spelled_as(one, self.keys, steps=True))
            taken = (one for one in (*_spellings(self.keys), *meant) if one not in refused)
            free = next((one for one in taken if self._permits(names, one, 0)), None)
            if free is not None:
                yield _open((*path, said[0]) if said else path, f"any further name is taken, {free} too")
        elif not given:
            # It says nothing of further names; those that propertyNames lists are still meant to be sent.
            yield from self._listed((*path, "propertyNames"), names)

    def _listed(self, path: Path, names: object) -> Iterator[Finding]:
        for one in _strings(names):
            if self._permits(names, one, 0):
                yield from self._named(path, one)
        if isinstance(names, Mapping) and "pattern" in names:
            matched = next((one for one in _spellings(self.keys) if self._permits(cast("object", names), one, 0)), None)
            if matched is not None:
                yield _finding(path, "person_key_pattern", f"names such as {matched} are taken", "narrow the pattern")

    def _values(self, path: Path, schema: Schema) -> Iterator[Finding]:
        """Values that are given one by one: a text may be the name of a key to set, an object may hold one."""
        # A list of kinds of things may well hold `projects`.
        keys = tuple(key for key in self.keys if key != PROJECTS)
        for word, values in (("enum", _list(schema.get("enum"))), ("const", [schema.get("const")])):
            for value in values:
                if isinstance(value, str):
                    yield from self._named((*path, word), value, keys)
                for name in _names_in(value):
                    yield from self._named((*path, word), name)

    def _named(self, path: Path, name: object, keys: Sequence[str] | None = None) -> Iterator[Finding]:
        key = spelled_as(name, keys or self.keys, steps=True) if isinstance(name, str) else None
        if key is not None:
            yield _finding(path, "person_key", f"{name} names {key}, which only a person may write", "take it out")

    def _target(self, ref: str) -> object | None:
        if ref in self.anchors:
            return self.anchors[ref]
        base, _, fragment = ref.partition("#")
        found = self.root if not base else self.anchors.get(base)
        if found is None or (fragment and not fragment.startswith("/")):
            return self.anchors.get(f"#{fragment}") if not base else None
        for step in unquote(fragment).split("/")[1:]:
            step = step.replace("~1", "/").replace("~0", "~")
            if isinstance(found, Mapping) and step in found:
                found = cast("Schema", found)[step]
            elif isinstance(found, list) and step.isdecimal() and int(step) < len(cast("list[object]", found)):
                found = cast("list[object]", found)[int(step)]
            else:
                return None
        return found

    def _permits(self, names: object, name: str, depth: int) -> bool:
        """Whether a schema for names takes one; a doubt says yes."""
        if isinstance(names, bool) or not isinstance(names, Mapping) or depth > 50:
            return names is not False
        schema = cast("Schema", names)
        kinds = schema.get("type", "string")
        if "string" not in (kinds if isinstance(kinds, list) else [kinds]):
            return False
        if "enum" in schema and name not in _list(schema["enum"]):
            return False
        if "const" in schema and schema["const"] != name:
            return False
        if isinstance(schema.get("pattern"), str) and not _matches(schema["pattern"], name):
            return False
        if not _number(schema.get("minLength"), 0) <= len(name) <= _number(schema.get("maxLength"), len(name)):
            return False
        if isinstance(schema.get("$ref"), str):
            target = self._target(schema["$ref"])
            if target is not None and not self._permits(target, name, depth + 1):
                return False
        if not all(self._permits(one, name, depth + 1) for one in _list(schema.get("allOf"))):
            return False
        for word in ("anyOf", "oneOf"):
            if word in schema and not any(self._permits(one, name, depth + 1) for one in _list(schema[word])):
                return False
        return "not" not in schema or not self._forbids(schema["not"], name)

    def _forbids(self, names: object, name: str) -> bool:
        """Whether `not` this surely refuses a name: only forms that leave no doubt."""
        if names is True:
            return True
        if not isinstance(names, Mapping):
            return False
        schema = cast("Schema", names)
        if set(schema) - {"type"} == {"enum"}:
            return name in _list(schema["enum"])
        if set(schema) - {"type"} == {"const"}:
            return schema["const"] == name
        if set(schema) - {"type"} == {"pattern"} and isinstance(schema["pattern"], str):
            return _compiled(schema["pattern"]) is not None and _matches(schema["pattern"], name)
        return False


def _finding(path: Path, code: Any, message: str, fix: str) -> Finding:
    return Finding(code, "/".join(("#", *(step.replace("~", "~0").replace("/", "~1") for step in path))), message, fix)


def _open(path: Path, message: str) -> Finding:
    return _finding(path, "open_input", message, "close it, with additionalProperties: false or propertyNames")


def _anchors(root: object) -> Iterator[tuple[str, object]]:
    """Every `$anchor`, `$dynamicAnchor` and `$id` with its schema."""
    waiting: list[object] = [root]
    count = 0
    while waiting and count <= _MOST:
        count += 1
        one = waiting.pop()
        if isinstance(one, Mapping):
            schema = cast("Schema", one)
            for word, mark in (("$anchor", "#"), ("$dynamicAnchor", "#"), ("$id", ""), ("id", "")):
                if isinstance(schema.get(word), str):
                    yield f"{mark}{schema[word]}", schema
            waiting.extend(schema.values())
        elif isinstance(one, list):
            waiting.extend(cast("list[object]", one))


def _names_in(value: object) -> Iterator[str]:
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, Mapping):
            yield from (name for name, _ in _items(cast("object", one)))
            waiting.extend(value for _, value in _items(cast("object", one)))
        elif isinstance(one, list):
            waiting.extend(cast("list[object]", one))


def _strings(names: object) -> Iterator[str]:
    """Texts that a schema for names lists."""
    waiting = [names]
    count = 0
    while waiting and count <= _MOST:
        count += 1
        one = waiting.pop()
        if isinstance(one, Mapping):
            schema = cast("Schema", one)
            for value in (*_list(schema.get("enum")), schema.get("const")):
                if isinstance(value, str):
                    yield value
            for word in ("allOf", "anyOf", "oneOf"):
                waiting.extend(_list(schema.get(word)))


def _is_object(schema: Schema) -> bool:
    """Whether an object may stand here that this schema itself describes."""
    if any(word in schema for word in ("$ref", "allOf", "anyOf", "oneOf", "enum", "const")) and "type" not in schema:
        return False
    kinds = schema.get("type", "object")
    return "object" in (kinds if isinstance(kinds, list) else [kinds])


def _items(value: object) -> list[tuple[str, object]]:
    return [(str(name), one) for name, one in cast("Schema", value).items()] if isinstance(value, Mapping) else []


def _list(value: object) -> list[object]:
    return cast("list[object]", value) if isinstance(value, list) else []


def _number(value: object, otherwise: int) -> float:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else otherwise


@cache
def _spellings(keys: tuple[str, ...]) -> tuple[str, ...]:
    """The common ways to write each key: every case, every separator."""
    found: dict[str, None] = {}
    for key in keys:
        words = re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])", key) or [key]
        low = [word.lower() for word in words]
        title = [word.capitalize() for word in low]
        for mark in ("", "_", "-", ".", " ", "/", ":"):
            for one in (words, low, title, [low[0], *title[1:]], [word.upper() for word in low]):
                found[mark.join(one)] = None
    return tuple(found)


@cache
def _compiled(pattern: str) -> re.Pattern[str] | None:
    try:
        return re.compile(pattern)
    except re.error:
        return None


def _matches(pattern: str, name: str) -> bool:
    """Whether a pattern takes a name; one that can't be read here might."""
    found = _compiled(pattern)
    return found is None or found.search(name) is not None
