"""Which tools are listed, and which are left to search: counted as they are sent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hotplug.gateway.config import SearchConfig

__all__ = ["Candidate", "Shown", "show"]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A tool that a thread may use.

    Args:
        name: As the client would see it.
        eager: Whether its profile wants it listed.
        searchable: Whether it can be called once it was found; a guarded one never through `hotplug.call`.
    """

    name: str
    eager: bool = False
    searchable: bool = True


@dataclass(frozen=True, slots=True)
class Shown:
    """What a thread's tool list holds.

    Args:
        listed: In their order; together with what the gateway adds these are the tools that are sent.
        left: Those that only `hotplug.search` finds, in their order.
        sent: How many tools are sent, `hotplug.search` and `hotplug.call` among them where they are.
        over: The limit that more are sent than, because they have to be; else None.
    """

    listed: tuple[str, ...]
    left: tuple[str, ...]
    sent: int
    over: int | None = None

    @property
    def searching(self) -> bool:
        """Whether `hotplug.search` and `hotplug.call` are listed."""
        return bool(self.left)

    def words(self) -> str | None:
        """What is left out and why, for the owner; None where nothing is."""
        said: list[str] = []
        if self.left:
            names = ", ".join(self.left[:_NAMED])
            more = f" and {len(self.left) - _NAMED} more" if len(self.left) > _NAMED else ""
            said.append(
                f"{len(self.left)} tools are left to hotplug.search, so that {self.sent} are sent: {names}{more}"
            )
        if self.over is not None:
            said.append(
                f"{self.sent} tools are sent although {self.over} is the limit: "
                "a profile lists them, or they may not be called through hotplug.call"
            )
        return "; ".join(said) or None


_NAMED = 10
_OURS = 2


def show(tools: Sequence[Candidate], search: SearchConfig, *, ours: int = 0) -> Shown:
    """Say which tools are listed. Whether one is depends on the whole set alone, never on what was called.

    Where all fit into `search.over` all are listed. Else every eager one is, and every one that search can't lead to;
    the others are left to search, all of them: which of them would be sent should not hang on their number.

    Args:
        tools: All that the thread may use, in the order in which they are listed.
        search: `over` is how many tools may be sent; None: any number.
        ours: Tools that the gateway lists besides, search and call apart (`connection.*`).
    """
    if search.over is None or len(tools) + ours <= search.over:
        return Shown(tuple(one.name for one in tools), (), len(tools) + ours)
    listed = tuple(one.name for one in tools if one.eager or not one.searchable)
    left = tuple(one.name for one in tools if not one.eager and one.searchable)
    sent = len(listed) + ours + (_OURS if left else 0)
    return Shown(listed, left, sent, search.over if sent > search.over else None)
