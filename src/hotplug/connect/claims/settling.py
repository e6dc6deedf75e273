"""When a window has settled: lengths of time, what may still change, and whether anything still does."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from datetime import timedelta
from typing import Final, cast

from hotplug.connect.claims.conditions import Condition
from hotplug.errors import InvalidArgument
from hotplug.evidence import Observation

__all__ = ["Stillness", "Within", "seconds_of", "spoilable", "told"]

Within = str | float | timedelta
"""A length of time: `"5s"`, `"500ms"`, `"2m"`, seconds, or a timedelta."""

_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0}


def seconds_of(length: Within, what: str = "within") -> float:
    """The length in seconds.

    Raises:
        InvalidArgument: It is no length of time above zero.
    """
    value: float | None = None
    if isinstance(length, timedelta):
        value = length.total_seconds()
    elif isinstance(length, str):
        found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|min|m)\s*", length)
        value = float(found[1]) * _UNITS[found[2]] if found else None
    elif isinstance(cast("object", length), int | float) and not isinstance(length, bool):
        value = float(length)
    if value is None or not math.isfinite(value) or value <= 0:
        raise InvalidArgument(f"{what} is {length!r}", hint='a length of time such as "5s", "500ms" or "2m"')
    return value


class Stillness:
    """For how long the same has been seen."""

    def __init__(self, started: float) -> None:
        self._since = started
        self._seen = frozenset[str]()

    def lasting(self, now: float, seen: Iterable[Observation]) -> float:
        """Seconds since something else was seen."""
        ids = told(seen)
        if ids != self._seen:
            self._seen, self._since = ids, now
        return now - self._since


def told(seen: Iterable[Observation]) -> frozenset[str]:
    """What tells whether the same was seen again."""
    return frozenset(f"{one.id} {one.summary}" for one in seen)


def spoilable(condition: Condition) -> bool:
    """Whether what comes later could make it false again."""
    return condition.is_fact or condition.kind == "absent" or condition.op in {"exactly", "at-most"}
