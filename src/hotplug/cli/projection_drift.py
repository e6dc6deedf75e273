"""How a live server differs from what a projection was frozen with, and whether that matters to it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from hotplug.projection import Source
    from hotplug.projection.fingerprint import Drift

__all__ = ["broken_by", "changes_of", "used_tools"]


def used_tools(source: Source) -> frozenset[str]:
    """The upstream tools that a projection calls; of one with code, also those that its coverage says are mapped."""
    document = source.document
    found = {step.tool for operation in document.operations.values() for _, step in operation.calls()}
    if any(operation.by_code for operation in document.operations.values()):
        found |= {tool for tool, entry in document.coverage.items() if entry.state in {"mapped", "approximated"}}
    return frozenset(found)


def broken_by(source: Source, drift: Drift) -> tuple[str, ...]:
    """The tools that a projection uses and that are gone or different, sorted."""
    return drift.breaks(used_tools(source))


def changes_of(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """What changed in a tool's schemas, in words: arguments added, removed, changed, demanded."""
    return [
        *_sides(old, new, "inputSchema", "argument"),
        *_sides(old, new, "outputSchema", "result field"),
    ]


def _sides(old: Mapping[str, Any], new: Mapping[str, Any], key: str, word: str) -> Iterator[str]:
    from hotplug.projection.fingerprint import structure

    before, after = (cast("Mapping[str, Any]", structure(one.get(key) or {})) for one in (old, new))
    if before == after:
        return
    said = False
    had, has = (cast("Mapping[str, Any]", one.get("properties") or {}) for one in (before, after))
    needed, needs = (set(cast("Sequence[str]", one.get("required") or ())) for one in (before, after))
    for name in sorted({*had, *has}):
        if name not in has:
            yield f"{word} {name} is gone"
        elif name not in had:
            yield f"{word} {name} is new" + (" and required" if name in needs else "")
        elif had[name] != has[name]:
            yield f"{word} {name} has another schema"
        elif (name in needed) != (name in needs):
            yield f"{word} {name} is {'now' if name in needs else 'no longer'} required"
        else:
            continue
        said = True
    if not said:
        yield f"the {'input' if key == 'inputSchema' else 'output'} schema is another"
