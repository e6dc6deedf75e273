"""JSON that comes back as it was."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotplug.access import AccessError, NotJson, parse, write
from hotplug.access.document import ListNode, NumberNode, ObjectNode, TextNode, node_of, parse_node, same, write_node

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)

ODD = [
    '{\n  "b": 1.50,\n  "a": 1e400,\n  "n": -0,\n  "long": 123456789012345678901234567890.10\n}\n',
    '{\n\t"tabs": [1, 2],\n\t"empty": {},\n\t"none": []\n}\n',
    '{"one": "line", "half": "\\ud83d", "escape": "\\u00e9\\/"}',
    '{\r\n    "windows": {\r\n        "x": true\r\n    }\r\n}\r\n',
    '{\n  "twice": 1,\n  "twice": 2,\n  "inline": {"a": [], "b": null}\n}',
    '"a text"',
    "[]\n",
]


@pytest.mark.parametrize("text", ODD)
def test_a_text_of_common_form_comes_back_to_the_byte(text: str) -> None:
    assert write(parse(text)) == text
    assert write(parse(text.encode())) == text


@given(VALUES, st.sampled_from([None, 1, 2, 4]))
def test_what_the_standard_library_writes_reads_as_the_same_values(value: object, indent: int | None) -> None:
    text = json.dumps(value, indent=indent)
    document = parse(text)
    assert json.loads(write(document)) == value
    assert same(parse_node(write(document)), document.root)
    assert write(parse(write(document))) == write(document)


@given(st.text(alphabet='{}[]",:0123456789.eE+-truefalsn \n\\u\x00\ud83d', max_size=30))
def test_it_takes_what_the_standard_library_takes(text: str) -> None:
    def strict(name: str) -> None:
        raise ValueError(name)

    try:
        json.loads(text, parse_constant=strict)
    except ValueError:
        with pytest.raises(NotJson):
            parse(text)
    else:
        assert json.loads(write(parse(text))) == json.loads(text)


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("", 1, 1),
        ('{\n  "a": 1,\n}', 3, 1),
        ("[1 2]", 1, 4),
        ("{}{}", 1, 3),
        ("[1,\n2", 2, 2),
        (b'{"a": "\xff"}', 1, 8),
        ("nul", 1, 1),
        ("NaN", 1, 1),
        ("01", 1, 2),
    ],
)
def test_what_is_no_json_is_refused_with_its_place(text: str | bytes, line: int, column: int) -> None:
    with pytest.raises(NotJson) as caught:
        parse(text)
    assert (caught.value.line, caught.value.column) == (line, column)
    assert f"line {line} column {column}" in str(caught.value)


def test_a_byte_order_mark_is_forgiven() -> None:
    assert write(parse(b'\xef\xbb\xbf{"a": 1}')) == '{"a": 1}'


def test_any_depth_is_read_written_compared_and_shown() -> None:
    deep = "[" * 20_000 + "]" * 20_000
    document = parse(deep)
    assert write(document) == deep
    assert document.root == parse(deep).root
    assert document.root != parse("[" * 19_999 + "]" * 19_999).root
    assert "[[[" in repr(document.root)


def test_numbers_are_equal_by_value_and_texts_however_they_are_written() -> None:
    assert parse_node("1.50") == parse_node("15e-1")
    assert parse_node("12345678901234567890") != parse_node("12345678901234567891")
    assert parse_node('"\\u00e9"') == TextNode("é")
    assert parse_node("1") != parse_node("true")
    assert parse_node("1e99999999999999999999") != parse_node("2e99999999999999999999")
    assert NumberNode("0.1", rounded=True) == parse_node("0.1000000000000000055")
    assert parse_node('{"a": 1, "b": [null]}') == parse_node('{"b": [null], "a": 1}')
    assert parse_node('{"a": 1}') != parse_node('{"a": 1, "a": 1}')
    assert parse_node("[1]") != parse_node("{}")
    assert ObjectNode() != "{}"


def test_a_key_that_is_given_twice_keeps_both_values() -> None:
    node = parse_node('{"a": 1, "b": 2, "\\u0061": 3}')
    assert isinstance(node, ObjectNode)
    assert node.twice() == ("a",)
    assert [write_node(one) for one in node.values("a")] == ["1", "3"]
    assert write_node(node.having("a", TextNode("x")), indent=None) == '{"a": "x", "b": 2}'
    assert write_node(node.without("a"), indent=None) == '{"b": 2}'


def test_python_values_become_nodes() -> None:
    node = node_of({"a": [1, 2.5, True, None, Decimal("1.10")], "b": ("x",), "c": parse("7")})
    assert write_node(node, indent=None) == '{"a": [1, 2.5, true, null, 1.10], "b": ["x"], "c": 7}'
    assert write_node(ListNode((TextNode("\ud83d"),)), indent=None) == '["\\ud83d"]'


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {1: 2}, {"a": object()}, b"bytes", {"a": {1}}])
def test_what_has_no_json_is_refused(value: object) -> None:
    with pytest.raises(AccessError):
        node_of(value)


def test_a_python_value_that_is_nested_too_deep_is_refused() -> None:
    value: object = 1
    for _ in range(500):
        value = [value]
    with pytest.raises(AccessError, match="deeper than 200"):
        node_of(value)
