"""References in schemas: those that lead nowhere cost their tool, and nothing else does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw

from hotplug.gateway.references import dangling, unusable_schemas

TOOL_LISTS = sorted((Path(__file__).parents[1] / "projection" / "tool_lists").glob("*.json"))
DRAFT_07 = "http://json-schema.org/draft-07/schema#"


@pytest.mark.parametrize(
    "schema",
    [
        True,
        {"$schema": DRAFT_07, "type": "object"},
        {"$ref": "#"},
        {"$ref": DRAFT_07},
        {"properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"$ref": "#/$defs/B"}, "B": True}},
        {"$ref": "#/components/schemas/A", "components": {"schemas": {"A": {}}}},
        {"$ref": "#/$defs/a~1b%20c", "$defs": {"a/b c": {}}},
        {"$ref": "#/anyOf/1", "anyOf": [{}, {"type": "string"}]},
        {"$ref": "#thing", "$defs": {"A": {"$anchor": "thing"}}},
        {"$dynamicRef": "#thing", "$defs": {"A": {"$dynamicAnchor": "thing"}}},
        {"$ref": "#old", "definitions": {"A": {"$id": "#old"}}},
        {"$id": "https://example.com/root", "$ref": "item", "$defs": {"A": {"$id": "item"}}},
        {"$id": "https://example.com/root", "$ref": "#/$defs/A", "$defs": {"A": {}}},
        {"$defs": {"A": {"$id": "https://example.com/a", "$ref": "#/$defs/B", "$defs": {"B": {}}}}},
        {"properties": {"$ref": {"type": "string"}}},
        {"default": {"$ref": "#/nowhere"}, "const": {"$ref": "#/x"}, "enum": [{"$ref": "#/y"}]},
    ],
)
def test_what_can_be_resolved_inside_is_fine(schema: Any) -> None:
    assert dangling(schema) == ()


@pytest.mark.parametrize(
    ("schema", "found"),
    [
        ({"properties": {"a": {"$ref": "#/$defs/Missing"}}}, ("#/$defs/Missing",)),
        ({"$ref": "#missing"}, ("#missing",)),
        ({"$ref": "other.json"}, ("other.json",)),
        ({"$ref": "https://example.com/a"}, ("https://example.com/a",)),
        ({"$ref": "#/title", "title": "A"}, ("#/title",)),
        ({"$ref": "#/anyOf/2", "anyOf": [{}]}, ("#/anyOf/2",)),
        ({"$ref": "http://[broken"}, ("http://[broken",)),
        ({"$defs": {"A": {"$id": "https://example.com/a", "$ref": "#/$defs/B"}, "B": {}}}, ("#/$defs/B",)),
    ],
)
def test_what_cannot_is_named(schema: Any, found: tuple[str, ...]) -> None:
    assert dangling(schema) == found


def test_a_tool_with_a_missing_definition_is_unusable_with_its_reason() -> None:
    broken = {"inputSchema": Raw(b'{"properties": {"a": {"$ref": "#/$defs/Missing"}}}')}
    assert unusable_schemas(broken) == 'its inputSchema refers to what isn\'t there: "#/$defs/Missing"'
    assert unusable_schemas({"inputSchema": Raw(b"{}"), "outputSchema": Raw(b'{"$ref":"#x"}')}) is not None
    assert unusable_schemas({"inputSchema": Raw(b'{"type": "object"}')}) is None
    assert unusable_schemas({}) is None


@pytest.mark.parametrize("file", TOOL_LISTS, ids=lambda path: path.stem)
def test_every_tool_of_real_servers_is_usable(file: Path) -> None:
    for tool in json.loads(file.read_text(encoding="utf-8"))["tools"]:
        assert unusable_schemas({key: Raw(json.dumps(value).encode()) for key, value in tool.items()}) is None
