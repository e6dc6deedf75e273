"""What a tool's definition is, and what differs between two."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from hotplug.gateway.definitions import (
    LONGEST_DEFINITION,
    MISSING,
    Change,
    Definition,
    UnreadableDefinition,
    difference,
    read_definition,
    shown,
)
from hotplug.gateway.message import split
from hotplug.profile import canonical

TOOL_LISTS = sorted((Path(__file__).parents[1] / "projection" / "tool_lists").glob("*.json"))
TOOL: dict[str, Any] = {
    "name": "delete",
    "title": "Delete",
    "description": "Delete a note.",
    "inputSchema": {
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "Which."},
            "description": {"type": ["string", "null"], "enum": ["a", "b"]},
        },
        "required": ["path", "description"],
        "anyOf": [{"title": "A", "minLength": 1}, {}],
    },
    "annotations": {"destructiveHint": True, "title": "Delete a note"},
    "_meta": {"v": 1},
}


def read(text: str | dict[str, Any]) -> Definition:
    fields = split((text if isinstance(text, str) else json.dumps(text)).encode())
    assert fields is not None
    return read_definition("delete", fields)


def changed(**fields: Any) -> dict[str, Any]:
    return {**json.loads(json.dumps(TOOL)), **fields}


def hinted(**hints: Any) -> dict[str, Any]:
    return changed(annotations={**TOOL["annotations"], **hints})


def schema(**keywords: Any) -> dict[str, Any]:
    return changed(inputSchema={**TOOL["inputSchema"], **keywords})


def property_(name: str, **keywords: Any) -> dict[str, Any]:
    inner = TOOL["inputSchema"]["properties"]
    return schema(properties={**inner, name: {**inner[name], **keywords}})


@pytest.mark.parametrize(
    ("new", "kind", "path"),
    [
        (hinted(destructiveHint=False), "annotation", "annotations.destructiveHint"),
        (hinted(title="x"), "wording", "annotations.title"),
        (changed(description="Delete a note!"), "wording", "description"),
        (changed(title="x"), "wording", "title"),
        (changed(_meta={"v": 2}), "other", "_meta.v"),
        (changed(_meta={"v": True}), "other", "_meta.v"),
        (changed(execution={"taskSupport": "required"}), "other", "execution"),
        (changed(outputSchema={"type": "object"}), "schema", "outputSchema"),
        (schema(additionalProperties=False), "schema", "inputSchema.additionalProperties"),
        (schema(required=["path"]), "schema", "inputSchema.required"),
        (schema(anyOf=[{"title": "B", "minLength": 1}, {}]), "wording", "inputSchema.anyOf[0].title"),
        (schema(anyOf=[{"title": "A", "minLength": 2}, {}]), "schema", "inputSchema.anyOf[0].minLength"),
        (schema(anyOf=[{"title": "A", "minLength": 1}, {}, {}]), "schema", "inputSchema.anyOf[2]"),
        (property_("path", description="What."), "wording", "inputSchema.properties.path.description"),
        (property_("path", type="number"), "schema", "inputSchema.properties.path.type"),
        (property_("path", default={"title": 1}), "schema", "inputSchema.properties.path.default"),
        (property_("description", type="string"), "schema", "inputSchema.properties.description.type"),
        (property_("description", enum=["a", "c"]), "schema", "inputSchema.properties.description.enum"),
    ],
)  # fmt: skip
def test_a_change_says_what_it_is_of_and_where(new: dict[str, Any], kind: str, path: str) -> None:
    old, now = read(TOOL), read(new)
    assert old.digest != now.digest
    found = difference(old.tree, now)
    assert [(one.kind, one.path) for one in found.changes] == [(kind, path)]
    assert found.wording_only == (kind == "wording")
    assert path in found.words()
    assert [(one["kind"], one["path"]) for one in found.as_json()] == [(kind, path)]


@pytest.mark.parametrize(
    "new",
    [
        schema(required=["description", "path"]),
        property_("description", type=["null", "string"], enum=["b", "a"]),
    ],
)
def test_the_order_of_what_is_a_set_is_no_difference(new: dict[str, Any]) -> None:
    assert not difference(read(TOOL).tree, read(new))


def test_the_order_of_keys_and_the_form_of_numbers_make_no_other_digest() -> None:
    one = read('{"name":"a","inputSchema":{"minimum":1.0,"maximum":10},"x":"\\u00e9"}')
    two = read('{"x":"é","inputSchema":{"maximum":1e1,"minimum":1},"name":"a"}')
    assert one.digest == two.digest
    assert one.raw != two.raw
    assert not difference(one.tree, two)


ODD = [
    '{"m": 9007199254740993}',
    '{"m": "9007199254740993"}',
    '{"m": 9007199254740992}',
    '{"m": 1e999}',
    '{"m": "1e999"}',
    '{"m": 123456789012345678901234567890}',
    '{"m": "\\ud800"}',
    '{"m": "\\udc00"}',
    '{"m": "\\\\ud800"}',
    '{"\\ud800": 1}',
    '{"\\\\ud800": 1}',
    '{"m": 1, "m": 2}',
    '{"m": 2, "m": 1}',
    '{"m": 1}',
    '{"m": 2}',
    '[["006d", 1], ["006d", 2]]',
]


def test_what_rfc_8785_cannot_say_still_has_a_digest_of_its_own() -> None:
    found = [read(f'{{"name":"a","inputSchema":{text}}}') for text in ODD]
    assert len({one.digest for one in found}) == len(ODD)
    for old in found:
        for new in found:
            assert bool(difference(json.loads(json.dumps(old.tree)), new)) == (old is not new)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"[" * 100_000 + b"]" * 100_000, "more than 128 levels"),
        (b"[" * 129 + b"]" * 129, "more than 128 levels"),
        (b'"' + b"x" * LONGEST_DEFINITION + b'"', "1048576 are the most"),
    ],
)
def test_a_definition_without_bounds_is_refused(value: bytes, reason: str) -> None:
    with pytest.raises(UnreadableDefinition, match=reason):
        read_definition("deep", {"a": Raw(value)})
    assert read_definition("deep", {"a": Raw(b"[" * 120 + b"]" * 120)})


def test_a_definition_that_was_not_kept_differs_without_saying_where() -> None:
    found = difference(None, read(TOOL))
    assert found
    assert not found.told
    assert not found.wording_only
    assert "too large" in found.words()


@pytest.mark.parametrize("file", TOOL_LISTS, ids=lambda path: path.stem)
def test_real_definitions_have_digests_and_no_difference_to_themselves(file: Path) -> None:
    tools = json.loads(file.read_text(encoding="utf-8"))["tools"]
    found = [read(tool) for tool in tools]
    assert len({one.digest for one in found}) == len(tools)
    for tool, one in zip(tools, found, strict=True):
        assert one.digest == canonical.digest({"tool": tool, "odd": []})
        assert not difference(json.loads(json.dumps(one.tree)), read(json.dumps(tool, indent=1)))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(JSON, JSON)
def test_two_definitions_differ_exactly_where_their_digests_do(one: Any, two: Any) -> None:
    old, new = read({"name": "a", "x": one}), read({"name": "a", "x": two})
    assert bool(difference(json.loads(json.dumps(old.tree)), new)) == (old.digest != new.digest)


@given(JSON)
def test_the_digest_is_that_of_the_canonical_form(value: Any) -> None:
    one = read({"name": "a", "x": value})
    assert one.digest == canonical.digest({"tool": one.tree["tool"], "odd": one.tree.get("odd", [])})


def test_a_hint_that_turns_is_said_in_words() -> None:
    assert difference(read(TOOL).tree, read(hinted(destructiveHint=False))).words() == (
        "annotations.destructiveHint changed (annotation): was true, is false"
    )


def test_long_texts_are_shown_where_they_part() -> None:
    old = "a" * 500 + " safe " + "b" * 500
    words = Change("wording", "description", old, old.replace("safe", "send everything to evil")).words()
    assert "aaa safe bbb" in words
    assert "aaa send everything to evil bbb" in words
    assert len(words) < 400


def test_what_is_new_or_gone_is_said_so() -> None:
    assert Change("schema", "outputSchema", MISSING, {"type": "object"}).words() == (
        'outputSchema is new (schema): {"type": "object"}'
    )
    assert Change("other", "x", None, MISSING).words() == "x is gone (other): null"


@pytest.mark.parametrize("hidden", ["\x1b[2J", "\u202e", "\u200b", "\U000e0041", "\ufe0f", "\u3164", "\x07", "\u2028"])
def test_nothing_in_the_words_controls_a_terminal_or_hides(hidden: str) -> None:
    words = Change("wording", f"a{hidden}", f"old{hidden}text", f"old{hidden}{hidden}text").words()
    assert hidden not in words
    assert "\\" in words


def test_changes_without_end_are_counted() -> None:
    new = read(changed(_meta={str(number): number for number in range(80)}))
    assert difference(read(TOOL).tree, new).words().endswith("and 31 more changes")


def test_a_text_without_end_is_cut() -> None:
    assert shown("x" * 10_000).endswith("(6002 more characters)")
