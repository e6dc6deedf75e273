"""JSON Schemas as profiles publish them: 2020-12, complete in themselves, without generated titles."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, cast

__all__ = [
    "ERROR_SCHEMA",
    "error_or",
    "fields_of_facets",
    "map_refs",
    "patch_fields",
    "plain",
    "sensitive_fields",
    "subschemas",
]

JsonSchema = dict[str, Any]

_MAPS: Final = ("properties", "$defs", "patternProperties", "dependentSchemas")
_LISTS: Final = ("anyOf", "oneOf", "allOf", "prefixItems")
_SINGLES: Final = ("items", "additionalProperties", "not", "contains", "propertyNames", "if", "then", "else")

ERROR_SCHEMA: Final[JsonSchema] = {
    "type": "object",
    "properties": {"code": {"type": "string"}, "message": {"type": "string"}, "details": {"type": "object"}},
    "required": ["code", "message"],
}
"""The structured content of a refused or failed call."""


def subschemas(schema: Any) -> Iterator[JsonSchema]:
    """Every schema in a schema, itself first; names of properties are not mistaken for keywords."""
    if not isinstance(schema, dict):
        return
    node = cast("JsonSchema", schema)
    yield node
    for key in _MAPS:
        for child in cast("dict[str, Any]", node.get(key, {})).values():
            yield from subschemas(child)
    for key in _LISTS:
        for child in cast("list[Any]", node.get(key, [])):
            yield from subschemas(child)
    for key in _SINGLES:
        yield from subschemas(node.get(key))


def plain(schema: JsonSchema, *, output: bool = False) -> JsonSchema:
    """The schema as published: no generated titles, no `default: null`.

    Inputs are closed (`additionalProperties: false`), since an unknown argument is refused.

    Args:
        output: Outputs are open, require the receipt, and have no null alternative of optional fields, which is never
            sent.
    """
    for node in subschemas(schema):
        if isinstance(node.get("title"), str):
            del node["title"]
        if "default" in node and node["default"] is None:
            del node["default"]
        properties = cast("dict[str, JsonSchema]", node.get("properties", {}))
        if not output and "properties" in node:
            node["additionalProperties"] = False
        if output:
            required = cast("list[str]", node.get("required", []))
            for name, child in properties.items():
                if name not in required:
                    properties[name] = _without_null(child)
            if "receipt" in properties and "receipt" not in required:
                properties["receipt"].pop("default", None)
                node["required"] = [*required, "receipt"]
    return schema


def _without_null(schema: JsonSchema) -> JsonSchema:
    options = cast("list[JsonSchema]", schema.get("anyOf", []))
    kept = [option for option in options if option != {"type": "null"}]
    if not options or len(kept) == len(options):
        return schema
    rest = {key: value for key, value in schema.items() if key != "anyOf"}
    return {**kept[0], **rest} if len(kept) == 1 else {"anyOf": kept, **rest}


def fields_of_facets(schema: Mapping[str, Any], where: str = "") -> dict[str, str]:
    """The dotted paths of fields that belong to a facet, and which; references are followed once per path."""
    found: dict[str, str] = {}
    definitions = cast("Mapping[str, Any]", schema.get("$defs", {}))

    def walk(node: Any, path: str, seen: tuple[str, ...]) -> None:
        if not isinstance(node, Mapping):
            return
        body = cast("Mapping[str, Any]", node)
        reference = body.get("$ref")
        if isinstance(reference, str) and reference.startswith("#/$defs/"):
            name = reference.removeprefix("#/$defs/")
            if name not in seen:
                walk(definitions.get(name), path, (*seen, name))
        for key, child in cast("Mapping[str, Any]", body.get("properties", {})).items():
            at = f"{path}.{key}" if path else key
            facet = cast("Mapping[str, Any]", child).get("x-facet")
            if isinstance(facet, str):
                found[at] = facet
            else:
                walk(child, at, seen)
        for key in _LISTS:
            for child in cast("list[Any]", body.get(key, [])):
                walk(child, path, seen)

    walk(schema, where, ())
    return found


def sensitive_fields(schema: Mapping[str, Any]) -> frozenset[str]:
    """The names of fields, anywhere in the schema, whose values must never be shown."""
    names: set[str] = set()
    for node in subschemas(dict(schema)):
        for name, child in cast("dict[str, Any]", node.get("properties", {})).items():
            if any(inner.get("x-sensitive") is True for inner in subschemas(child)):
                names.add(name)
    return frozenset(names)


def patch_fields(schema: Mapping[str, Any]) -> frozenset[str]:
    """The names of fields, anywhere in the schema, that hold patches: null in them means "without"."""
    return frozenset(
        name
        for node in subschemas(dict(schema))
        for name, child in cast("dict[str, Any]", node.get("properties", {})).items()
        if any(inner.get("x-patch") is True for inner in subschemas(child))
    )


def map_refs(schema: JsonSchema, value: Any, change: Callable[[JsonSchema, Any], Any]) -> Any:
    """The value with everything that stands where the schema has `x-ref` changed.

    Args:
        change: Gets the ref's schema (`x-ref` is its kind) and what stands there.
    """
    definitions = cast("dict[str, Any]", schema.get("$defs", {}))

    def walk(node: Any, item: Any) -> Any:
        if not isinstance(node, dict) or item is None:
            return item
        body = cast("JsonSchema", node)
        reference = body.get("$ref")
        if isinstance(reference, str) and reference.startswith("#/$defs/"):
            return walk(definitions.get(reference.removeprefix("#/$defs/")), item)
        if "x-ref" in body:
            return change(body, item)
        if isinstance(item, dict):
            properties = cast("dict[str, Any]", body.get("properties", {}))
            item = {key: walk(properties.get(key), one) for key, one in cast("dict[str, Any]", item).items()}
        elif isinstance(item, list):
            item = [walk(body.get("items"), one) for one in cast("list[Any]", item)]
        for option in cast("list[Any]", body.get("anyOf", [])):
            changed = walk(option, item)
            if changed != item:
                return changed
        return item

    return walk(schema, value)


def error_or(output: JsonSchema) -> JsonSchema:
    """What a tool lists as its output schema: the part's output, or the error of the wire page.

    MCP wants structured content to fit the schema also where the call failed, and a strict client
    throws away an error that doesn't. Definitions are lifted to the root, so that references resolve.
    """
    body = {key: value for key, value in output.items() if key != "$defs"}
    listed: JsonSchema = {"type": "object", "anyOf": [body, ERROR_SCHEMA]}
    if "$defs" in output:
        listed["$defs"] = output["$defs"]
    return listed
