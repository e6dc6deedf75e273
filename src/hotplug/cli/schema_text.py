"""JSON Schemas in words: the fields of an object, each with the name of its type."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

__all__ = ["Field", "fields", "type_name"]

Schema = Mapping[str, Any]


@dataclass(frozen=True)
class Field:
    """One property of an object."""

    name: str
    type: str
    required: bool
    facet: str | None
    """The facet that it exists with, if not always."""
    description: str


def fields(schema: Schema) -> Iterator[Field]:
    """The properties of an object's schema in their order; none where it isn't an object."""
    definitions = cast("Schema", schema.get("$defs", {}))
    target = _resolved(schema, definitions)
    required = cast("list[str]", target.get("required", []))
    for name, child in cast("dict[str, Schema]", target.get("properties", {})).items():
        named = _resolved(child, definitions)
        yield Field(
            name=name,
            type=type_name(child, definitions),
            required=name in required,
            facet=child.get("x-facet") or named.get("x-facet"),
            description=" ".join(str(child.get("description") or named.get("description") or "").split()),
        )


def type_name(schema: Schema, definitions: Schema) -> str:
    """What a value is, in a few words: `text`, `ref calendar.event`, `list of Alert`, `"a" or "b"`."""
    if "$ref" in schema:
        target = _resolved(schema, definitions)
        plain_object = target.get("type") == "object" and not any(key.startswith("x-") for key in target)
        return str(schema["$ref"]).rpartition("/")[2] if plain_object else type_name(target, definitions)
    for key, word in (("x-ref", "ref"), ("x-target", "target")):
        if isinstance(schema.get(key), str):
            return f"{word} {schema[key]}"
    if schema.get("x-receipt"):
        return "receipt"
    if "const" in schema:
        return json.dumps(schema["const"])
    if "enum" in schema:
        return " or ".join(json.dumps(value) for value in schema["enum"])
    for key in ("anyOf", "oneOf"):
        if key in schema:
            names = [
                type_name(one, definitions) for one in cast("list[Schema]", schema[key]) if one.get("type") != "null"
            ]
            return " or ".join(dict.fromkeys(names))
    kind = schema.get("type")
    if isinstance(kind, list):
        return " or ".join(_WORDS.get(one, one) for one in cast("list[str]", kind) if one != "null")
    if kind == "array":
        items = schema.get("items")
        return f"list of {type_name(cast('Schema', items), definitions)}" if isinstance(items, Mapping) else "list"
    if kind == "string" and schema.get("x-sensitive"):
        return "secret text"
    return _WORDS.get(str(kind), "any")


_WORDS = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "yes or no",
    "object": "object",
    "null": "nothing",
}


def _resolved(schema: Schema, definitions: Schema) -> Schema:
    """The schema that a local reference names; a reference elsewhere stays as it is."""
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference.startswith("#/$defs/"):
        return cast("Schema", definitions.get(reference.removeprefix("#/$defs/"), schema))
    return schema
