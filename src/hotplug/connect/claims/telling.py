"""A claim as a person reads it: the verdict, why, what was seen and what wasn't, and the next move."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hotplug.evidence import Adjudication
from hotplug.evidence.moves import next_move

if TYPE_CHECKING:
    from hotplug.connect.claims.sources import Sources
    from hotplug.connect.claims.verdict import Claimed

__all__ = ["lines_of", "move_of"]


def move_of(claimed: Claimed, found: Adjudication, sources: Sources) -> str:
    """What to do next."""
    return next_move(found.ground, word="sense")


def lines_of(claimed: Claimed, found: Adjudication, sources: Sources) -> tuple[str, ...]:
    """The claim as a few lines."""
    return (f"{found.verdict} ({found.ground}): {claimed.statement}", *found.reasons, claimed.next_move)
