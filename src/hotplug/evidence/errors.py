"""The one error of this folder: a document that cannot be read as what it should be."""

from __future__ import annotations

from typing import Final

__all__ = ["ROOT", "EvidenceError"]

ROOT: Final = "$"


class EvidenceError(ValueError):
    """A document of evidence is malformed or ambiguous.

    Args:
        problem: What is wrong, in words.
        where: The place in the document as a JSON path, `$` for the whole.
        more: What else is wrong, as (where, problem).
    """

    def __init__(self, problem: str, *, where: str = ROOT, more: tuple[tuple[str, str], ...] = ()) -> None:
        self.where = where
        self.problem = problem
        self.more = more
        others = f" (and {len(more)} more)" if more else ""
        super().__init__(f"{where}: {problem}{others}")
