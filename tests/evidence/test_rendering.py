"""Values are rendered as any other implementation renders them."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotplug.evidence import render

from .documents import JSON


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("as it is \u00fc", "as it is \u00fc"),
        (None, "null"),
        (True, "true"),
        (False, "false"),
        (21, "21"),
        (21.0, "21"),
        (-0.0, "0"),
        (0.1, "0.1"),
        (-21.5, "-21.5"),
        (123.456, "123.456"),
        (1e-6, "0.000001"),
        (1.5e-6, "0.0000015"),
        (1e-7, "1e-7"),
        (-1.25e-7, "-1.25e-7"),
        (1e20, "100000000000000000000"),
        (123456789012345680000.0, "123456789012345680000"),
        (1e21, "1e+21"),
        (1.5e300, "1.5e+300"),
        (5e-324, "5e-324"),
        (2**53, "9007199254740992"),
        (-(2**53), "-9007199254740992"),
        (2**53 + 1, "9007199254740992"),
        (10**400, "null"),
        (-(10**400), "null"),
        (math.nan, "null"),
        ([math.inf, 1], "[null,1]"),
        ({"b": 1, "a": [1, "x"], "ü": None}, '{"b":1,"a":[1,"x"],"ü":null}'),
        (("a", 1.0), '["a",1]'),
        ([], "[]"),
        ({}, "{}"),
        (['"\\\n\t\x01\x7f'], '["\\"\\\\\\n\\t\\u0001\x7f"]'),
        (["\ud800"], '["\\ud800"]'),
        ([{1, 2}], ""),
        ({1: 2}, ""),
        (object(), ""),
    ],
)
def test_a_value_is_rendered(value: Any, text: str) -> None:
    assert render(value) == text


def test_a_value_nested_too_deeply_is_the_empty_text() -> None:
    deep: Any = 1
    for _ in range(100_000):
        deep = [deep]
    assert render(deep) == ""


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_is_rendered_exactly(number: float) -> None:
    assert float(render(number)) == number


@given(JSON.filter(lambda value: not isinstance(value, str)))
def test_a_rendered_value_is_the_same_value(value: Any) -> None:
    assert json.loads(render(value), parse_int=float) == json.loads(json.dumps(value), parse_int=float)
