"""A value as text, the same here as in any other implementation of the protocol."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, Final, cast

__all__ = ["double", "render"]

_EXACT: Final = 2**53
_LARGEST_EXPONENT, _SMALLEST_EXPONENT = 21, -6  # outside, ECMAScript writes numbers with an exponent
_LONE: Final = re.compile("[\ud800-\udfff]")


def render(value: object) -> str:
    """A value as `valueContains` sees it: a text is itself, anything else compact JSON with numbers as ECMAScript
    prints them; what is no JSON value is the empty text.

    Redact before rendering. A missing value is the empty text, too; None here is null.
    """
    if isinstance(value, str):
        return value
    try:
        return "".join(_pieces(value))
    except (TypeError, RecursionError):
        return ""


def double(value: float) -> float:
    """A number as a double; an integer too large for one is infinite."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _pieces(value: object) -> Iterator[str]:
    match value:
        case None:
            yield "null"
        case bool():
            yield "true" if value else "false"
        case str():
            yield _quoted(value)
        case int() | float():
            yield _number(value)
        case dict():
            yield "{"
            for position, (name, member) in enumerate(cast("dict[Any, Any]", value).items()):
                if not isinstance(name, str):
                    raise TypeError("no JSON object")
                yield f"{',' if position else ''}{_quoted(name)}:"
                yield from _pieces(member)
            yield "}"
        case list() | tuple():
            yield "["
            for position, item in enumerate(cast("list[Any]", value)):
                if position:
                    yield ","
                yield from _pieces(item)
            yield "]"
        case _:
            raise TypeError("no JSON value")


def _quoted(text: str) -> str:
    return _LONE.sub(lambda lone: f"\\u{ord(lone.group()):x}", json.dumps(text, ensure_ascii=False))


def _number(value: float) -> str:
    if isinstance(value, int) and abs(value) <= _EXACT:
        return str(value)
    number = double(value)
    if not math.isfinite(number):
        return "null"
    if number == 0:
        return "0"
    sign = "-" if number < 0 else ""
    shortest = Decimal(repr(abs(number))).normalize().as_tuple()
    digits = "".join(map(str, shortest.digits))
    point = len(digits) + cast("int", shortest.exponent)
    if len(digits) <= point <= _LARGEST_EXPONENT:
        return f"{sign}{digits}{'0' * (point - len(digits))}"
    if 0 < point <= _LARGEST_EXPONENT:
        return f"{sign}{digits[:point]}.{digits[point:]}"
    if _SMALLEST_EXPONENT < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    rest = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{rest}e{point - 1:+d}"
