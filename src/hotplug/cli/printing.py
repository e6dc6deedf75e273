"""Text that came from elsewhere, made safe for a terminal; and words that are close to a wrong one."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

__all__ = ["block", "cut", "did_you_mean", "printable", "safe_json"]

_BREAKS: Final = "\t\n"
_UNSAFE: Final = re.compile(
    "["
    "\x00-\x1f\x7f-\x9f"  # C0, DEL, C1: escape sequences, carriage returns, bells
    "\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069"  # invisible, or turns the reading direction around
    "\u2028\u2029\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f"  # tags: text that a model reads and a person doesn't see
    "\ud800-\udfff"
    "]"
)


def printable(text: str, *, lines: bool = False) -> str:
    """The text with every character that a terminal would act on, or a reader wouldn't see, written as an escape.

    Args:
        lines: Leave line feeds and tabs as they are.
    """
    return _UNSAFE.sub(lambda match: match[0] if lines and match[0] in _BREAKS else _escape(match[0]), text)


def block(lines: Iterable[str]) -> str:
    """Lines as one text: each stays one line, so that nothing foreign in one can pass for the next."""
    return "\n".join(map(printable, lines))


def cut(text: str, limit: int = 200) -> str:
    """The text, or its beginning where it is longer than `limit` characters."""
    return text if len(text) <= limit else f"{text[:limit]}…"


def safe_json(text: str) -> str:
    r"""JSON text with the same characters as `\u` escapes: equal for a parser, safe for a terminal.

    Line feeds stand outside of JSON strings, so they stay.
    """
    return _UNSAFE.sub(lambda match: match[0] if match[0] in _BREAKS else _json_escape(match[0]), text)


def did_you_mean(word: str, known: Iterable[str]) -> str | None:
    """`Did you mean 'calendar'?`, or None where nothing known is close."""
    close = get_close_matches(word, list(known), n=3, cutoff=0.5)
    if not close:
        return None
    return f"Did you mean {' or '.join(repr(one) for one in close)}?"


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _json_escape(character: str) -> str:
    return "".join(f"\\u{unit:04x}" for unit in _utf16(character))


def _utf16(character: str) -> Iterable[int]:
    code = ord(character)
    if code < 0x10000:
        return (code,)
    return (0xD800 + ((code - 0x10000) >> 10), 0xDC00 + ((code - 0x10000) & 0x3FF))
