"""References in a tool's schemas that lead nowhere: such a tool can't be used, and costs no other.

The dialect that a schema says it is of is no reason to refuse it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, cast
from urllib.parse import unquote, urldefrag, urljoin

from hotplug.gateway.definitions import shown
from hotplug.gateway.message import Object, loads

__all__ = ["dangling", "unusable_schemas"]

_KNOWN: Final = ("http://json-schema.org/", "https://json-schema.org/")
"""Schemas of schemas, which every validator has."""
_NAMED: Final = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
_VALUES: Final = frozenset({"default", "const", "enum", "examples", "example", "required"})
_POINTING: Final = ("$ref", "$dynamicRef")
_MOST_NAMED: Final = 3


def unusable_schemas(tool: Object) -> str | None:
    """Why a listed tool's schemas can't be used, for the owner; None where they can."""
    for name in ("inputSchema", "outputSchema"):
        if name in tool:
            try:
                found = dangling(loads(tool[name]))
            except (ValueError, RecursionError):
                return f"its {name} can't be read"
            if found:
                named = ", ".join(shown(one) for one in found[:_MOST_NAMED])
                more = f" and {len(found) - _MOST_NAMED} more" if len(found) > _MOST_NAMED else ""
                return f"its {name} refers to what isn't there: {named}{more}"
    return None


def dangling(schema: Any) -> tuple[str, ...]:
    """The references of a schema that can't be resolved inside it, sorted; those to JSON Schema's own are known."""
    if not isinstance(schema, dict):
        return ()
    root = cast("dict[str, Any]", schema)
    resources: dict[str, Any] = {"": root}
    anchors: set[str] = set()
    asked: list[tuple[str, str]] = []
    for node, base in _nodes(root, ""):
        if isinstance(identity := node.get("$id"), str):
            if identity.startswith("#"):  # How an anchor was written before 2019-09.
                anchors.add(f"{base}{identity}")
            else:
                resources.setdefault(base, node)
        for keyword in ("$anchor", "$dynamicAnchor"):
            if isinstance(anchor := node.get(keyword), str):
                anchors.add(f"{base}#{anchor}")
        asked += [(base, node[keyword]) for keyword in _POINTING if isinstance(node.get(keyword), str)]
    return tuple(sorted({reference for base, reference in asked if not _leads(base, reference, resources, anchors)}))


def _leads(base: str, reference: str, resources: Mapping[str, Any], anchors: set[str]) -> bool:
    try:
        address, fragment = urldefrag(urljoin(base, reference) if not reference.startswith("#") else base + reference)
    except ValueError:
        return False
    if address.startswith(_KNOWN):
        return True
    if fragment and not fragment.startswith("/"):
        return f"{address}#{fragment}" in anchors
    return address in resources and _points(resources[address], unquote(fragment))


def _points(value: Any, pointer: str) -> bool:
    for step in pointer.split("/")[1:]:
        step = step.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and step in value:
            value = cast("dict[str, Any]", value)[step]
        elif (
            isinstance(value, list)
            and step.isdecimal()
            and len(step) < 10
            and int(step) < len(cast("list[Any]", value))
        ):
            value = cast("list[Any]", value)[int(step)]
        else:
            return False
    return isinstance(value, dict | bool)


def _nodes(root: dict[str, Any], base: str) -> Iterator[tuple[dict[str, Any], str]]:
    """Every schema in a schema, each with the address that its references count from."""
    waiting: list[tuple[Any, str]] = [(root, base)]
    while waiting:
        value, base = waiting.pop()
        if isinstance(value, list):
            waiting += [(item, base) for item in cast("list[Any]", value)]
        if not isinstance(value, dict):
            continue
        node = cast("dict[str, Any]", value)
        identity = node.get("$id")
        if isinstance(identity, str) and not identity.startswith("#"):
            try:
                base = urldefrag(urljoin(base, identity)).url
            except ValueError:
                base = identity
        yield node, base
        for key, inner in node.items():
            if key in _NAMED and isinstance(inner, dict):
                waiting += [(item, base) for item in cast("dict[str, Any]", inner).values()]
            elif key not in _VALUES:
                waiting.append((inner, base))
