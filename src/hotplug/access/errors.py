"""The errors of this folder."""

from __future__ import annotations

__all__ = ["AccessError", "NotJson"]


class AccessError(ValueError):
    """Something that was handed in can't be read or isn't allowed; the message says what, where and what to do."""


class NotJson(AccessError):
    """A text is no JSON document.

    Args:
        problem: What is wrong, in words.
        line: Where, from 1; so is `column`.
    """

    def __init__(self, problem: str, *, line: int = 1, column: int = 1) -> None:
        self.problem = problem
        self.line = line
        self.column = column
        super().__init__(f"not JSON: {problem} (line {line} column {column})")
