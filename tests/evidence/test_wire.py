"""JSON texts are read so that nothing ambiguous passes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotplug.evidence import EvidenceError, parse_json, write_json
from hotplug.evidence.wire import path

from .documents import JSON, attempt


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"a": 1, "b": {"c": 1, "c": 2}}', 'member "c" is there twice'),
        ("[NaN]", "NaN is not a JSON number"),
        ("[-Infinity]", "-Infinity is not a JSON number"),
        ("1e999", "1e999 is too large"),
        ("-1e999", "too large"),
        ('"\\ud800"', "not valid Unicode"),
        ('{"\\uDFff": 1}', "not valid Unicode"),
        (b"\xff", "not valid Unicode"),
        ("[" * 200_000, "nested too deeply"),
        ("{", "is not JSON"),
        ("1" * 5000, "is not JSON"),
        ("", "is not JSON"),
    ],
)
def test_what_is_no_clear_json_is_refused(text: str | bytes, said: str) -> None:
    with pytest.raises(EvidenceError, match=said) as caught:
        parse_json(text)
    assert caught.value.where == "$"


def test_a_pair_of_surrogates_is_a_letter() -> None:
    assert parse_json('"\\ud83d\\ude00"') == "😀"


@given(JSON)
def test_what_is_written_is_read_the_same(value: Any) -> None:
    assert parse_json(write_json(value)) == value
    assert parse_json(write_json(value).encode()) == value


@given(st.text() | st.binary())
def test_junk_is_read_or_refused(text: str | bytes) -> None:
    found = attempt(parse_json, text)
    assert not isinstance(found, EvidenceError) or found.where == "$"


@pytest.mark.parametrize("value", [float("nan"), {1, 2}, object()])
def test_what_is_no_json_value_is_not_written(value: object) -> None:
    with pytest.raises(EvidenceError, match="cannot be written"):
        write_json(value)


def test_a_path_names_members_and_positions() -> None:
    assert path(["claim", "assertions", 0, "a b"]) == '$.claim.assertions[0]["a b"]'
