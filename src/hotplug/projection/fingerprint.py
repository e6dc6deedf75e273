"""Structural digests of a tool list: what a projection was written for, and whether a live server still fits.

Names and schemas count, prose does not: some servers write the date or the machine's zone into titles and
descriptions. Defaults and enums are behaviour and stay in. A *property* named `title` or `description` is no prose.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from collections.abc import Mapping as Map
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias, cast

from hotplug.profile import canonical
from hotplug.projection.mapping import exact

__all__ = [
    "Drift",
    "Tool",
    "code_bytes",
    "code_digest",
    "digest",
    "digest_of_code",
    "drift",
    "structure",
    "tool_digests",
    "tools_digest",
]

Tool: TypeAlias = Map[str, Any]
"""A tool as `tools/list` gives it, in wire names: `name`, `description`, `inputSchema`, `outputSchema`, ..."""

_PROSE: Final = frozenset({"$schema", "$comment", "title", "description", "examples", "example"})
_NAMED_SCHEMAS: Final = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
_VALUES: Final = frozenset({"default", "const", "enum"})
_SETS: Final = frozenset({"required", "type"})


def digest(value: Any) -> str:
    """`sha256:` and the hex digest of the canonical JSON (RFC 8785) of a value; integers beyond 2^53 as strings."""
    return canonical.digest(exact(value))


def code_bytes(path: Path) -> bytes:
    """A Python file with the line ends that its digest is taken of, however it was checked out.

    Raises:
        OSError: It can't be read.
    """
    return path.read_bytes().replace(b"\r\n", b"\n")


def digest_of_code(text: bytes) -> str:
    """The digest of what `code_bytes` gives."""
    return f"sha256:{hashlib.sha256(text).hexdigest()}"


def code_digest(path: Path) -> str:
    """The digest of a Python file, whatever line ends it is checked out with. `OSError` where it is missing."""
    return digest_of_code(code_bytes(path))


def structure(schema: Any) -> Any:
    """A JSON Schema without its prose; `required` and lists of types in sorted order."""
    if isinstance(schema, list):
        return [structure(item) for item in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    result: dict[str, Any] = {}
    for key, value in cast("dict[str, Any]", schema).items():
        if key in _PROSE:
            continue
        if key in _VALUES:
            result[key] = value
        elif key in _NAMED_SCHEMAS and isinstance(value, dict):
            result[key] = {name: structure(item) for name, item in cast("dict[str, Any]", value).items()}
        elif key in _SETS and isinstance(value, list):
            result[key] = sorted(cast("list[Any]", value), key=str)
        else:
            result[key] = structure(value)
    return result


def tool_digests(tools: Iterable[Tool]) -> dict[str, str]:
    """The structural digest of each tool, by name. A name that is listed twice gets one digest over both."""
    return _by_name(tools, _shape)


def tools_digest(tools: Iterable[Tool]) -> str:
    """The structural digest of a whole tool list; the order in which a server lists its tools does not matter."""
    return digest(tool_digests(tools))


@dataclass(frozen=True)
class Drift:
    """How a live tool list differs from the frozen one. All names are sorted.

    Args:
        added: Tools that are new.
        removed: Tools that are gone.
        changed: Tools whose schemas changed in structure.
        prose: Tools of which only titles, descriptions, examples or annotations changed.
    """

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    prose: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Whether the structure differs; prose alone is no drift."""
        return bool(self.added or self.removed or self.changed)

    def breaks(self, mapped: Iterable[str]) -> tuple[str, ...]:
        """The tools of `mapped` that are gone or changed: these make a projection unavailable."""
        return tuple(sorted({*self.removed, *self.changed} & set(mapped)))


def drift(frozen: Iterable[Tool], live: Iterable[Tool]) -> Drift:
    """Compares the tool list that a projection was frozen with to what the server lists now."""
    frozen, live = list(frozen), list(live)
    old, new = tool_digests(frozen), tool_digests(live)
    old_words, new_words = _by_name(frozen, _whole), _by_name(live, _whole)
    both = old.keys() & new.keys()
    changed = {name for name in both if old[name] != new[name]}
    return Drift(
        added=tuple(sorted(new.keys() - old.keys())),
        removed=tuple(sorted(old.keys() - new.keys())),
        changed=tuple(sorted(changed)),
        prose=tuple(sorted(name for name in both - changed if old_words[name] != new_words[name])),
    )


def _shape(tool: Tool) -> Any:
    shape: dict[str, Any] = {"name": tool.get("name"), "input": structure(tool.get("inputSchema") or {})}
    if tool.get("outputSchema") is not None:
        shape["output"] = structure(tool["outputSchema"])
    return shape


def _whole(tool: Tool) -> Any:
    return {
        key: tool.get(key)
        for key in ("name", "title", "description", "inputSchema", "outputSchema", "annotations")
        if tool.get(key) is not None
    }


def _by_name(tools: Iterable[Tool], view: Any) -> dict[str, str]:
    found: dict[str, list[str]] = {}
    for tool in tools:
        found.setdefault(str(tool.get("name")), []).append(digest(view(tool)))
    return {name: items[0] if len(items) == 1 else digest(sorted(items)) for name, items in sorted(found.items())}
