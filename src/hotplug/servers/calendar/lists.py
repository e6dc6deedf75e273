"""Lists that change by their own explicit forms: add, remove, replace."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hotplug.errors import InvalidArgument, NotFound

__all__ = ["changed_list"]


def changed_list(
    name: str, key: str, before: list[dict[str, Any]] | None, given: Mapping[str, Any]
) -> list[dict[str, Any]] | None:
    """The list after what a call says of it; None where it says nothing.

    Args:
        name: `participants`; the call's words are `addParticipants`, `removeParticipants`, `replaceParticipants`.
        key: What tells the entries apart.

    Raises:
        InvalidArgument: It is replaced and changed at once.
        NotFound: What is to be removed isn't there.
    """
    word = name[0].upper() + name[1:]
    added, removed, replaced = (given.get(f"{verb}{word}") for verb in ("add", "remove", "replace"))
    if added is None and removed is None and replaced is None:
        return None
    if replaced is not None:
        if added is not None or removed is not None:
            raise InvalidArgument(f"replace{word} stands beside add{word} or remove{word}", hint="do one or the other")
        return list(replaced)
    entries = list(before or ())
    for wanted in removed or ():
        kept = [entry for entry in entries if entry.get(key) != wanted]
        if len(kept) == len(entries):
            raise NotFound(f"there is no {wanted!r} among the {name}")
        entries = kept
    for entry in added or ():
        entries = [other for other in entries if key not in entry or other.get(key) != entry[key]]
        entries.append(entry)
    return entries
