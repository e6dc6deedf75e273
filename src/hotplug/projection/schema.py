"""Reading the JSON Schemas of tools and profiles: references, the parameters inside objects, samples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, cast

__all__ = ["entry", "resolve", "sample", "types_of"]


def entry(value: object, name: str) -> Any:
    """The entry of an object, or `None` where there is none or it is no object."""
    return cast("dict[str, Any]", value).get(name) if isinstance(value, dict) else None


def resolve(schema: object, root: dict[str, Any]) -> dict[str, Any]:
    """The schema with local references followed, and the one option of an `anyOf` that is not null taken."""
    at: Any = schema
    for _ in range(10):
        if not isinstance(at, dict):
            return {}
        given = cast("dict[str, Any]", at)
        reference = given.get("$ref")
        options: Any = given.get("anyOf") or given.get("oneOf") or given.get("allOf")
        if isinstance(reference, str) and reference.startswith("#/"):
            at = root
            for part in reference[2:].split("/"):
                key = part.replace("~1", "/").replace("~0", "~")
                at = entry(at, key)
        elif isinstance(options, list) and "properties" not in given:
            real = [option for option in cast("list[Any]", options) if option != {"type": "null"}]
            if len(real) != 1:
                return given
            at = real[0]
        else:
            return given
    return {}


_BY_FORMAT: Final = {
    "date-time": "2026-06-11T17:00:00Z",
    "date": "2026-06-11",
    "time": "17:00:00",
    "duration": "PT1H",
    "uri": "https://example.org/x",
    "email": "someone@example.org",
}
_BY_TYPE: Final[dict[str, Callable[[], Any]]] = {
    "integer": lambda: 1,
    "number": lambda: 1,
    "boolean": lambda: True,
    "null": lambda: None,
    "string": lambda: "text",
}


def sample(schema: Any, root: dict[str, Any], *, full: bool, depth: int = 0) -> Any:
    """A value of a schema's types: with every field, or with the required ones only."""
    resolved = resolve(schema, root)
    for key in ("const", "default"):
        if key in resolved:
            return resolved[key]
    if resolved.get("enum"):
        return resolved["enum"][0]
    kind = resolved.get("type")
    if isinstance(kind, list):
        kind = next((item for item in cast("list[str]", kind) if item != "null"), "null")
    if depth > 5:
        return None
    if kind == "object" or "properties" in resolved or depth == 0:
        required = set(cast("list[str]", resolved.get("required") or []))
        return {
            name: sample(field, root, full=full, depth=depth + 1)
            for name, field in cast("dict[str, Any]", resolved.get("properties") or {}).items()
            if full or name in required
        }
    if kind == "array":
        return [sample(resolved.get("items"), root, full=full, depth=depth + 1)] if full else []
    if kind == "string":
        return _BY_FORMAT.get(str(resolved.get("format")), "text")
    return _BY_TYPE.get(str(kind), lambda: "text")()


def types_of(schema: object, root: dict[str, Any]) -> frozenset[str]:
    """The JSON types that a schema allows, null left out; empty where it doesn't say."""
    resolved = resolve(schema, root)
    kind: Any = resolved.get("type")
    found: set[str] = set()
    if isinstance(kind, str):
        found.add(kind)
    elif isinstance(kind, list):
        found |= set(cast("list[str]", kind))
    for key in ("anyOf", "oneOf"):
        for option in cast("list[Any]", resolved.get(key) or []):
            found |= types_of(option, root)
    return frozenset(found - {"null"})
