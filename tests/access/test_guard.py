"""No agent tool's input can name a person's key: the walker over schemas."""

from __future__ import annotations

from typing import Any

import pytest

from hotplug.access import PERSON_KEYS, names_person_key

OPEN = "open_input"
NAMED = "person_key"
PATTERN = "person_key_pattern"


def codes(schema: object, **how: Any) -> list[str]:
    return [one.code for one in names_person_key(schema, **how)]


def obj(**properties: object) -> dict[str, object]:
    return {"type": "object", "properties": properties}


SPELLED = [
    *("mcpProfile", "mcp_profile", "MCP-Profile", "MCPPROFILE", "mcp.profile", "Mcp Profile", "ｍｃｐProfile"),
    *("settings.mcpProfile", "/settings/mcpThreadProfiles", "mcp_sub_agent_profile", "mcp\u200bProfiles"),
    *("PROJECTS", "projects"),
]


@pytest.mark.parametrize("name", SPELLED)
def test_a_property_that_spells_a_persons_key_is_found_in_any_spelling(name: str) -> None:
    (found,) = names_person_key(obj(**{name: {"type": "string"}}))
    assert found.code == NAMED
    assert name in found.message


@pytest.mark.parametrize("name", ["profile", "mcp", "project", "myprojects", "mcpProfilesCount", "thread", ""])
def test_another_name_is_not_taken_for_one(name: str) -> None:
    assert codes(obj(**{name: {"type": "string"}})) == []


KEY = obj(mcpProfile={"type": "string"})


@pytest.mark.parametrize(
    "schema",
    [
        obj(a=obj(b=obj(c=KEY))),
        {"anyOf": [{"type": "string"}, KEY]},
        {"oneOf": [{"allOf": [KEY]}]},
        {"type": "array", "items": KEY},
        {"type": "array", "items": [True, KEY]},
        {"prefixItems": [KEY]},
        {"contains": KEY},
        {"if": True, "then": KEY},
        {"if": True, "else": KEY},
        {"if": KEY},
        {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": KEY}},
        {"$ref": "#here", "$defs": {"a": {"$anchor": "here", **KEY}}},
        {"$ref": "urn:x", "$defs": {"a": {"$id": "urn:x", **KEY}}},
        {"$ref": "#/$defs/a~1b%20c", "$defs": {"a/b c": KEY}},
        {"$ref": "#/anyOf/1", "anyOf": [{}, KEY]},
        obj(a={"type": "object", "additionalProperties": False, "patternProperties": {"^x-": KEY}}),
        {"dependentSchemas": {"a": KEY}},
        {"dependencies": {"a": KEY}},
        {"unevaluatedItems": KEY},
        {"type": "string", "contentSchema": KEY},
    ],
)
def test_a_key_is_found_at_any_depth_by_any_way(schema: object) -> None:
    assert NAMED in codes(schema)


@pytest.mark.parametrize(
    "schema",
    [
        {"required": ["mcpProfile"]},
        {"dependentRequired": {"a": ["mcpProfile"]}},
        {"dependentRequired": {"mcp-profile": []}},
        {"properties": {"key": {"enum": ["theme", "mcpSubagentProfile"]}}},
        {"properties": {"key": {"const": "mcp_profiles"}}},
        {"const": {"settings": [{"projects": {}}]}},
        {"propertyNames": {"enum": ["theme", "mcpProfile"]}},
        {"propertyNames": {"anyOf": [{"const": "projects"}, {"const": "x"}]}},
    ],
)
def test_a_key_that_is_only_mentioned_is_found_too(schema: object) -> None:
    assert NAMED in codes(schema)


def test_a_list_of_kinds_of_things_may_hold_projects() -> None:
    assert codes(obj(kind={"enum": ["files", "projects"]})) == []


@pytest.mark.parametrize("pattern", ["", ".*", "^mcp", "rofile$", "^[a-z]+[A-Z]", "(?i)^MCP_", "^mcp-", "["])
def test_a_pattern_that_takes_a_key_is_found(pattern: str) -> None:
    assert codes({"patternProperties": {pattern: {"type": "string"}}}) == [PATTERN]


@pytest.mark.parametrize("pattern", ["^x-", "^[0-9]+$", "^theme$"])
def test_a_pattern_that_takes_none_is_not(pattern: str) -> None:
    assert codes({"patternProperties": {pattern: {"type": "string"}}}) == []


@pytest.mark.parametrize(
    "rest",
    [
        {"additionalProperties": True},
        {"additionalProperties": {"type": "string"}},
        {"additionalProperties": {}},
        {"unevaluatedProperties": True},
        {"additionalProperties": True, "propertyNames": {"pattern": "^mcp"}},
        {"additionalProperties": True, "propertyNames": {"maxLength": 10}},
        {"additionalProperties": True, "propertyNames": {"not": {"const": "mcpProfile"}}},
        {
            "additionalProperties": True,
            "propertyNames": {"$ref": "#/$defs/name"},
            "$defs": {"name": {"type": "string"}},
        },
    ],
)
def test_an_object_that_takes_any_further_name_takes_a_key(rest: dict[str, object]) -> None:
    assert codes({"type": "object", **rest}) == [OPEN]


@pytest.mark.parametrize(
    "rest",
    [
        {"additionalProperties": False},
        {"unevaluatedProperties": False},
        {"additionalProperties": True, "propertyNames": {"pattern": "^x-"}},
        {"additionalProperties": True, "propertyNames": {"enum": ["a", "b"]}},
        {"additionalProperties": True, "propertyNames": {"maxLength": 5}},
        {"additionalProperties": True, "propertyNames": {"not": {"pattern": "(?i)mcp|projects"}}},
        {"additionalProperties": True, "propertyNames": False},
        {"additionalProperties": True, "propertyNames": {"allOf": [{"anyOf": [{"const": "a"}]}]}},
        {"additionalProperties": True, "propertyNames": {"$ref": "#/$defs/n"}, "$defs": {"n": {"const": "n"}}},
    ],
)
def test_an_object_whose_further_names_are_closed_does_not(rest: dict[str, object]) -> None:
    assert codes({"type": "object", **rest}) == []


def test_names_that_further_properties_may_have_are_walked_where_nothing_is_said_of_them() -> None:
    assert codes({"propertyNames": {"pattern": "^mcp"}}) == [PATTERN]
    assert codes({"propertyNames": {"pattern": "^x-"}}) == []


def test_what_further_properties_hold_is_walked() -> None:
    schema = {"additionalProperties": KEY, "propertyNames": {"enum": ["a"]}}
    assert codes(schema) == [NAMED]


def test_a_property_that_is_refused_by_its_schema_names_nothing() -> None:
    assert codes({"properties": {"mcpProfile": False}, "patternProperties": {"^mcp": False}}) == []


def test_a_reference_that_leads_out_of_the_schema_proves_nothing() -> None:
    for ref in ("https://example.com/x.json", "#/$defs/none", "#nowhere", "other.json#/a", "#/allOf/9"):
        assert codes({"$ref": ref, "allOf": [{}]}) == ["unresolved_ref"]


def test_a_schema_that_refers_to_itself_ends() -> None:
    assert codes({"$ref": "#", "properties": {"next": {"$ref": "#"}}}) == []
    assert codes({"$ref": "#", "properties": {"mcpProfile": {"$ref": "#"}}}) == [NAMED]


def test_a_definition_that_nothing_refers_to_is_no_way_in() -> None:
    assert codes({"$defs": {"a": KEY}, "additionalProperties": False}) == []


def test_depth_has_no_end() -> None:
    schema: dict[str, object] = KEY
    for _ in range(5_000):
        schema = {"anyOf": [schema]}
    assert codes(schema) == [NAMED]


def test_an_object_that_says_nothing_of_further_names_counts_where_all_doubts_do() -> None:
    schema = obj(a={"type": "string"}, b=obj())
    assert codes(schema) == []
    assert codes(schema, implicit=True) == [OPEN, OPEN]
    closed = {**obj(a={"type": "string"}), "additionalProperties": False}
    assert codes(closed, implicit=True) == []
    assert codes(True, implicit=True) == [OPEN]
    assert codes({"items": True, "type": "array"}, implicit=True) == [OPEN]
    assert codes({"properties": dict.fromkeys(PERSON_KEYS, False)}, implicit=True) == [OPEN]  # mcp_profile


def test_a_host_has_keys_of_its_own() -> None:
    assert codes(obj(apiToken={}), keys=("apiToken",)) == [NAMED]
    assert codes(obj(api_token={}), keys=(*PERSON_KEYS, "apiToken")) == [NAMED]


def test_the_place_is_a_pointer() -> None:
    (found,) = names_person_key({"anyOf": [obj(**{"a/b": KEY})]})
    assert found.setting == "#/anyOf/0/properties/a~1b/properties/mcpProfile"
    assert "only a person may write" in str(found)


@pytest.mark.parametrize("schema", [False, {}, {"type": "string"}, None, [], "x", {"properties": [], "required": 5}])
def test_what_can_name_nothing_finds_nothing(schema: object) -> None:
    assert codes(schema) == []
