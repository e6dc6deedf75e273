"""JSON texts: read so that nothing ambiguous passes, written compactly."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any, Final, NoReturn

from hotplug.evidence.errors import ROOT, EvidenceError

__all__ = ["parse_json", "path", "write_json"]

_SURROGATE: Final = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}|\\u[dD][c-fC-F][0-9a-fA-F]{2}")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


def parse_json(text: str | bytes) -> Any:
    """The value of a JSON text.

    Raises:
        EvidenceError: Not JSON; a member that is there twice; NaN, an infinity, or a number too large to be one;
            half of a surrogate pair; nested deeper than can be followed.
    """
    try:
        decoded = text.decode("utf-8") if isinstance(text, bytes) else text
        value = json.loads(
            decoded, object_pairs_hook=_members, parse_constant=_refuse_constant, parse_float=_finite_float
        )
        if _SURROGATE.search(decoded):
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except EvidenceError:
        raise
    except RecursionError:
        raise EvidenceError("is nested too deeply to be read") from None
    except UnicodeError:
        raise EvidenceError("holds text that is not valid Unicode") from None
    except ValueError as error:
        raise EvidenceError(f"is not JSON: {error}") from None
    return value


def write_json(value: Any) -> str:
    """The value as one line of JSON, members in their order, letters unescaped.

    Raises:
        EvidenceError: It is no JSON value.
    """
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise EvidenceError(f"cannot be written as JSON: {error}") from None


def path(steps: Iterable[str | int], root: str = ROOT) -> str:
    """Member names and positions as a JSON path: `$.claim.assertions[0]`."""
    text = root
    for step in steps:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            text += f".{step}" if _NAME.fullmatch(step) else f"[{json.dumps(step)}]"
    return text


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise EvidenceError(f"member {json.dumps(twice)} is there twice in one object")
    return members


def _refuse_constant(name: str) -> NoReturn:
    raise EvidenceError(f"{name} is not a JSON number")


def _finite_float(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise EvidenceError(f"{text[:40]} is too large for a number")
    return number
