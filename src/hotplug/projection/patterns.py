"""The one module that knows the engine of regular expressions: patterns of a projection, bounded in time.

Python's own `re` can't be stopped: one careless pattern and an answer that it doesn't fit hold a process up for hours.
The library `regex` takes the same patterns and a time limit.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

import regex

from hotplug.errors import Internal

__all__ = ["LIMIT", "Match", "checked", "finditer", "fits", "found", "groups", "search"]

LIMIT: Final = 0.5
"""Seconds that one use of a pattern may take."""

Match = Any
"""A match: `start()`, `end()`, `groupdict()` as of `re`."""


def checked(pattern: str) -> None:
    """Look whether a pattern is one.

    Raises:
        ValueError: It isn't; the message says why.
    """
    try:
        _compiled(pattern)
    except (regex.error, OverflowError, RecursionError) as error:
        raise ValueError(f"not a regular expression: {error}") from None


def groups(pattern: str) -> frozenset[str]:
    """The names of a pattern's groups."""
    return frozenset(_compiled(pattern).groupindex)


def search(pattern: str, text: str) -> Match | None:
    """The first place where a pattern fits; `^` and `$` are those of a line.

    Raises:
        Internal: It took longer than `LIMIT`.
    """
    return _bounded(pattern, lambda: _compiled(pattern).search(text, timeout=LIMIT))


def found(pattern: str, text: str) -> bool:
    """Whether a pattern fits somewhere; `^` and `$` are those of the text. Raises as `search`."""
    return _bounded(pattern, lambda: _compiled(pattern, lines=False).search(text, timeout=LIMIT)) is not None


def fits(pattern: str, text: str) -> bool:
    """Whether a pattern fits a whole text. Raises as `search`."""
    return _bounded(pattern, lambda: _compiled(pattern, lines=False).fullmatch(text, timeout=LIMIT)) is not None


def finditer(pattern: str, text: str) -> Iterator[Match]:
    """Every place where a pattern fits, in order. Raises as `search`, the limit being for all of them together."""
    yield from _bounded(pattern, lambda: list(_compiled(pattern).finditer(text, timeout=LIMIT)))


@lru_cache(maxsize=512)
def _compiled(pattern: str, *, lines: bool = True) -> Any:
    return regex.compile(pattern, regex.VERSION0 | (regex.MULTILINE if lines else 0))


def _bounded(pattern: str, work: Any) -> Any:
    try:
        return work()
    except TimeoutError:
        shown = pattern if len(pattern) <= 80 else pattern[:79] + "…"
        raise Internal(
            f"the pattern {shown!r} took longer than {LIMIT} s", details={"cause": "pattern", "pattern": shown}
        ) from None
