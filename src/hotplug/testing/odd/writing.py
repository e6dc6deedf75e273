"""JSON whose spelling is ours to choose, and the spelling in which a member came."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

__all__ = ["Raw", "member", "write"]

_DECODER = json.JSONDecoder()
_BLANK = " \t\r\n"


@dataclass(frozen=True, slots=True)
class Raw:
    """A value that is already JSON text, and is written as it stands."""

    text: str


def write(value: Any) -> str:
    """The JSON text of a value, without blanks; ASCII but for what is in `Raw`."""
    match value:
        case Raw():
            return value.text
        case dict():
            members = cast("Mapping[str, Any]", value).items()
            return "{" + ",".join(f"{json.dumps(name)}:{write(inner)}" for name, inner in members) + "}"
        case list() | tuple():
            return "[" + ",".join(write(inner) for inner in cast("list[Any]", value)) + "]"
        case _:
            return json.dumps(value)


def member(text: str, *path: str) -> Raw | None:
    """A member of the object in a JSON text, spelt as it came; None where there is none.

    Args:
        text: A JSON object, known to be well-formed.
        path: Names, each of a member of the one before.
    """
    for name in path:
        found = _members(text).get(name)
        if found is None:
            return None
        text = found
    return Raw(text)


def _members(text: str) -> dict[str, str]:
    """The members of an object by name, as text; none where it is no object."""
    found: dict[str, str] = {}
    at = _after_blanks(text, 0)
    if text[at : at + 1] != "{":
        return found
    at = _after_blanks(text, at + 1)
    while text[at] != "}":
        name, at = _DECODER.raw_decode(text, at)
        start = _after_blanks(text, _after_blanks(text, at) + 1)
        _, end = _DECODER.raw_decode(text, start)
        found[name] = text[start:end]
        at = _after_blanks(text, end)
        if text[at] == ",":
            at = _after_blanks(text, at + 1)
    return found


def _after_blanks(text: str, at: int) -> int:
    while at < len(text) and text[at] in _BLANK:
        at += 1
    return at
