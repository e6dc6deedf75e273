"""A tool's definition as its server gives it: its digest, and what differs between two of them.

The digest is that of the canonical form (RFC 8785). What that form can't say stands beside it, so that nothing goes
unseen: the digits of a number that is no double, the units of a text with half a surrogate pair, every member of an
object that gives a key twice. Digits beyond a double's (`0.1000000000000000001`) count for nothing: every reader of
JSON drops them.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias, cast

from msgspec import Raw

from hotplug.errors import CanonicalError
from hotplug.gateway.message import dumps
from hotplug.profile import canonical

__all__ = [
    "LONGEST_DEFINITION",
    "MISSING",
    "Change",
    "ChangeKind",
    "Definition",
    "Difference",
    "UnreadableDefinition",
    "difference",
    "read_definition",
    "shown",
]

ChangeKind: TypeAlias = Literal["schema", "annotation", "wording", "other"]
"""`schema`: what it takes or gives. `annotation`: what it claims to do. `wording`: what people and models read of it.
`other`: any other field, `_meta` too."""

LONGEST_DEFINITION: Final = 1024 * 1024
"""Bytes of one definition that are looked at; a tool with more can't be pinned."""
_DEEPEST: Final = 128
"""Objects and lists in one another, so that whatever walks a definition may recurse."""
_TOO_DEEP: Final = f"its definition is nested more than {_DEEPEST} levels deep"
_SHOWN: Final = 4000
_MOST_CHANGES: Final = 50
_LONGEST_STEP: Final = 80
_SAFE: Final = 2**53 - 1

_WORDS: Final = frozenset({"title", "description", "icons"})
_PROSE: Final = frozenset({"title", "description", "$comment", "examples", "example"})
_NAMED: Final = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
_VALUES: Final = frozenset({"default", "const", "enum", "required", "type", "dependentRequired"})
_SETS: Final = frozenset({"required", "type", "enum"})
_HIDDEN: Final = re.compile("[\u034f\u115f\u1160\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]")
"""Signs that count as printable and show nothing."""


class _Missing:
    """The type of `MISSING`."""

    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = _Missing()
"""Stands in a change for what isn't there, which is another thing than null."""


class UnreadableDefinition(Exception):
    """A definition that can't be pinned: too large, or nested too deeply."""


@dataclass(frozen=True, slots=True)
class Definition:
    """One tool as it is listed.

    Args:
        name: Its own name.
        digest: Of its canonical form, `sha256:<hex>`.
        raw: SHA-256 of its bytes: where these are equal, so is the rest.
        tree: The definition as JSON values, as they are compared and kept.
        size: Bytes of `tree` as JSON.
    """

    name: str
    digest: str
    raw: str
    tree: Mapping[str, Any] = field(repr=False)
    size: int


@dataclass(frozen=True, slots=True)
class Change:
    """One place where a definition differs.

    Args:
        kind: What it is of.
        path: Where: `inputSchema.properties.path.type`.
        old: What stood there, or `MISSING`.
        new: What stands there, or `MISSING`.
    """

    kind: ChangeKind
    path: str
    old: Any = field(repr=False)
    new: Any = field(repr=False)

    def words(self) -> str:
        """The change for a person, on few lines, with nothing in it that controls a terminal or hides itself."""
        path = shown(self.path, quote=False)
        if self.old is MISSING:
            return f"{path} is new ({self.kind}): {shown(self.new)}"
        if self.new is MISSING:
            return f"{path} is gone ({self.kind}): {shown(self.old)}"
        if isinstance(self.old, str) and isinstance(self.new, str):
            old, new = _apart(self.old, self.new)
            return f"{path} changed ({self.kind}):\n  was {old}\n  is  {new}"
        return f"{path} changed ({self.kind}): was {shown(self.old)}, is {shown(self.new)}"


@dataclass(frozen=True, slots=True)
class Difference:
    """All that differs between the definition that was accepted and the one that is listed.

    The order of `required`, `type` and `enum` is no difference: some servers list a set as it comes.

    Args:
        changes: In the order of their places.
        told: False where they can't be told, because the accepted definition was too large to be kept.
    """

    changes: tuple[Change, ...]
    told: bool = True

    def __bool__(self) -> bool:
        """Whether anything differs, as far as can be told."""
        return bool(self.changes) or not self.told

    @property
    def kinds(self) -> frozenset[ChangeKind]:
        """What it touches."""
        return frozenset(change.kind for change in self.changes)

    @property
    def wording_only(self) -> bool:
        """Whether nothing but what people and models read of it differs."""
        return bool(self.changes) and all(change.kind == "wording" for change in self.changes)

    def words(self) -> str:
        """The difference for a person."""
        if not self.told:
            return "it changed; what was accepted was too large to be kept, so it can't be said where"
        lines = [change.words() for change in self.changes[:_MOST_CHANGES]]
        if len(self.changes) > _MOST_CHANGES:
            lines.append(f"and {len(self.changes) - _MOST_CHANGES} more changes")
        return "\n".join(lines)

    def as_json(self) -> list[dict[str, Any]]:
        """The difference as JSON; `old` or `new` is left out where there is none."""
        return [
            {
                "kind": one.kind,
                "path": one.path,
                **({} if one.old is MISSING else {"old": one.old}),
                **({} if one.new is MISSING else {"new": one.new}),
            }
            for one in self.changes
        ]


def raw_digest(raw: Mapping[str, Raw]) -> tuple[str, bytes]:
    """The SHA-256 of a definition's bytes, and these: its fields as they came, in the order of their keys.

    Raises:
        UnreadableDefinition: It is too large.
    """
    size = sum(len(bytes(value)) for value in raw.values())
    if size > LONGEST_DEFINITION:
        raise UnreadableDefinition(f"its definition has {size} bytes, and {LONGEST_DEFINITION} are the most")
    data = dumps({key: raw[key] for key in sorted(raw)})
    return hashlib.sha256(data).hexdigest(), data


def read_definition(name: str, raw: Mapping[str, Raw]) -> Definition:
    """A tool's definition, from its fields as they came.

    Raises:
        UnreadableDefinition: It can't be pinned.
    """
    as_bytes, data = raw_digest(raw)
    reading = _Reading()
    try:
        value: Any = json.loads(
            data, object_pairs_hook=_Pairs, parse_int=_integer, parse_float=_real, parse_constant=_Digits
        )
        tree, odd = reading.plain(value), reading.odd
        kept: dict[str, Any] = {"tool": tree, "odd": odd} if odd else {"tool": tree}
        whole = {"odd": odd, "tool": tree}
        # Several times as fast, and a server may have hundreds of tools.
        form = _quick(whole) if reading.plainly else canonical.canonical(whole)
        digest = f"sha256:{hashlib.sha256(form).hexdigest()}"
        size = len(json.dumps(kept))
    except RecursionError:
        raise UnreadableDefinition(_TOO_DEEP) from None
    except (ValueError, CanonicalError) as error:
        raise UnreadableDefinition(f"its definition can't be read: {error}"[:200]) from None
    return Definition(name, digest, as_bytes, kept, size)


def difference(old: Mapping[str, Any] | None, new: Definition) -> Difference:
    """What differs; `old` is the `tree` of the one that was accepted, None where it wasn't kept."""
    if old is None:
        return Difference((), told=False)
    before, after = old.get("tool"), new.tree["tool"]
    changes = [*_walk(before, after, "", "tool")]
    was, now = old.get("odd", []), new.tree.get("odd", [])
    if was != now:
        changes.append(Change("other", "numbers and texts that JSON readers take differently", was, now))
    return Difference(tuple(changes))


class _Pairs:
    """An object as it was written, keys twice too."""

    __slots__ = ("members",)

    def __init__(self, members: list[tuple[str, Any]]) -> None:
        self.members = members


class _Digits(str):
    """A number that no double is."""

    __slots__ = ()


def _integer(digits: str) -> int | _Digits:
    if len(digits) < 16:
        return int(digits)
    return _Digits(digits) if len(digits) > 17 or abs(int(digits)) > _SAFE else int(digits)


def _real(digits: str) -> float | _Digits:
    number = float(digits)
    return number if number - number == 0 else _Digits(digits)


class _Reading:
    """Turns a parsed value into JSON that has a canonical form; what has none is replaced, and noted with its place.

    A place is how many values were read before: names of places could be long, and there may be many.
    """

    def __init__(self) -> None:
        self.odd: list[list[Any]] = []
        self.plainly = True
        """Whether the standard library's JSON with sorted keys is the canonical form: no floats, keys in ASCII only."""
        self._count = 0

    def plain(self, value: Any, depth: int = 0) -> Any:
        self._count += 1
        if depth > _DEEPEST:
            raise UnreadableDefinition(_TOO_DEEP)
        if isinstance(value, _Digits):
            self._note("number", str(value))
            return str(value)
        if isinstance(value, str):
            text = _text(value)
            if text is not value:
                self._note("text", value.encode("utf-16-be", "surrogatepass").hex())
            return text
        if isinstance(value, list):
            return [self.plain(item, depth + 1) for item in cast("list[Any]", value)]
        if isinstance(value, _Pairs):
            found = dict(value.members)
            if len(found) == len(value.members) and all(_text(key) is key for key in found):
                self.plainly = self.plainly and all(map(str.isascii, found))
                return {key: self.plain(found[key], depth + 1) for key in sorted(found)}
            self._note("object", "a key is given twice, or is no text")
            return [
                [key.encode("utf-16-be", "surrogatepass").hex(), self.plain(member, depth + 1)]
                for key, member in value.members
            ]
        if isinstance(value, float):
            self.plainly = False
        return value

    def _note(self, kind: str, what: str) -> None:
        self.odd.append([self._count, kind, what])


def _quick(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()


def _text(text: str) -> str:
    """The text itself, or where it has half a surrogate pair, one that shows where."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace").decode()
    return text


_Place = Literal["tool", "annotations", "schema", "schemas", "value", "wording", "other"]

_KIND_OF: Final[Mapping[_Place, ChangeKind]] = {
    "tool": "other",
    "annotations": "annotation",
    "schema": "schema",
    "schemas": "schema",
    "value": "schema",
    "wording": "wording",
    "other": "other",
}


def _walk(old: Any, new: Any, path: str, place: _Place) -> Iterator[Change]:
    if _same(old, new):
        return
    if isinstance(old, dict) and isinstance(new, dict):
        before, after = cast("dict[str, Any]", old), cast("dict[str, Any]", new)
        for key in sorted(before.keys() | after.keys()):
            both = place == "schema" and key in _SETS and key in before and key in after
            if both and _same(_sorted(before[key]), _sorted(after[key])):
                continue
            step = key if len(key) <= _LONGEST_STEP else f"{key[:_LONGEST_STEP]}…"
            inner = f"{path}.{step}" if path else step
            yield from _walk(before.get(key, MISSING), after.get(key, MISSING), inner, _below(place, key))
    elif isinstance(old, list) and isinstance(new, list) and place in ("schema", "schemas"):
        items, others = cast("list[Any]", old), cast("list[Any]", new)
        for at in range(max(len(items), len(others))):
            was = items[at] if at < len(items) else MISSING
            now = others[at] if at < len(others) else MISSING
            yield from _walk(was, now, f"{path}[{at}]", "schema")
    else:
        yield Change(_KIND_OF[place], path, old, new)


def _sorted(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    return sorted(cast("list[Any]", value), key=lambda one: json.dumps(one, sort_keys=True))


def _below(place: _Place, key: str) -> _Place:
    match place:
        case "tool":
            if key in _WORDS:
                return "wording"
            if key in ("inputSchema", "outputSchema"):
                return "schema"
            return "annotations" if key == "annotations" else "other"
        case "annotations":
            return "wording" if key == "title" else "annotations"
        case "schema":
            if key in _PROSE:
                return "wording"
            if key in _NAMED:
                return "schemas"
            return "value" if key in _VALUES else "schema"
        case "schemas":
            return "schema"
        case _:
            return place


def _same(old: Any, new: Any) -> bool:
    """Whether two JSON values are the same; true is not 1."""
    if old is MISSING or new is MISSING:
        return old is new
    if isinstance(old, bool) or isinstance(new, bool):
        return old is new
    if isinstance(old, dict) and isinstance(new, dict):
        before, after = cast("dict[str, Any]", old), cast("dict[str, Any]", new)
        return before.keys() == after.keys() and all(_same(before[key], after[key]) for key in before)
    if isinstance(old, list) and isinstance(new, list):
        items, others = cast("list[Any]", old), cast("list[Any]", new)
        return len(items) == len(others) and all(map(_same, items, others))
    return old == new


def shown(value: Any, *, quote: bool = True) -> str:
    """A value from a server as text for a person: one line, printable signs only, cut at 4000 of them.

    What can't be seen, or turns the text around it, is written as an escape.
    """
    text = value if isinstance(value, str) and not quote else json.dumps(value, ensure_ascii=False)
    safe = "".join(one if one.isprintable() else _escaped(one) for one in text)
    safe = _HIDDEN.sub(lambda found: _escaped(found[0]), safe)
    return safe if len(safe) <= _SHOWN else f"{safe[:_SHOWN]}… ({len(safe) - _SHOWN} more characters)"


def _escaped(one: str) -> str:
    return one.encode("unicode_escape").decode()


def _apart(old: str, new: str) -> tuple[str, str]:
    """Two texts from shortly before they part to shortly after they meet again."""
    start, most = 0, min(len(old), len(new))
    while start < most and old[start] == new[start]:
        start += 1
    end = 0
    while end < most - start and old[-1 - end] == new[-1 - end]:
        end += 1
    first, last = max(0, start - 40), max(0, end - 40)

    def piece(text: str) -> str:
        return f"{'…' if first else ''}{shown(text[first : len(text) - last])}{'…' if last else ''}"

    return piece(old), piece(new)
