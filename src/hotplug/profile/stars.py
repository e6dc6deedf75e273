"""Texts with stars, read piece by piece: what stands between two separators that a star may not cross."""

from __future__ import annotations

from string import digits
from typing import NamedTuple

__all__ = ["Piece", "cut_at", "items_of", "split"]


class Piece(NamedTuple):
    """What stands between two separators of a pattern: the literal texts around its stars, or a status class."""

    texts: tuple[str, ...]
    status: str | None = None

    def matches(self, text: str) -> bool:
        """Whether the whole text fits. Linear in the length of the text for each star."""
        if self.status is not None:
            return len(text) == 3 and text[0] == self.status and set(text[1:]) <= set(digits)
        first, *rest = self.texts
        if not rest:
            return text == first
        *middle, last = rest
        if len(text) < len(first) + len(last) or not (text.startswith(first) and text.endswith(last)):
            return False
        at, end = len(first), len(text) - len(last)
        for literal_text in middle:
            found = text.find(literal_text, at, end)
            if found < 0:
                return False
            at = found + len(literal_text)
        return True


def items_of(text: str) -> list[str | None]:
    """The characters of a pattern, a star as None."""
    items: list[str | None] = []
    at = 0
    while at < len(text):
        char = text[at]
        if char == "\\" and text.startswith("*", at + 1):
            items.append("*")
            at += 1
        else:
            items.append(None if char == "*" else char)
        at += 1
    return items


def split(items: list[str | None], separators: str) -> tuple[tuple[Piece, ...], str]:
    """The pieces of a pattern, and the separators between them."""
    pieces: list[Piece] = []
    seen: list[str] = []
    texts: list[list[str]] = [[]]
    for item in items:
        if item is None:
            texts.append([])
        elif item in separators:
            pieces.append(Piece(tuple("".join(text) for text in texts)))
            seen.append(item)
            texts = [[]]
        else:
            texts[-1].append(item)
    pieces.append(Piece(tuple("".join(text) for text in texts)))
    return tuple(pieces), "".join(seen)


def cut_at(text: str, separators: str) -> tuple[list[str], str]:
    """The parts of a text, and the separators between them."""
    seen = "".join(char for char in text if char in separators)
    first, *others = separators
    for other in others:
        text = text.replace(other, first)
    return text.split(first), seen
