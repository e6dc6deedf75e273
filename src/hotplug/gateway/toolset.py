"""The tools of one caller: which are listed, which are found by search, and by which names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from hotplug.gateway.config import SearchConfig
from hotplug.gateway.limits import Candidate, show
from hotplug.gateway.message import Object
from hotplug.gateway.search import Index, Searchable, call_tool, search_tool

__all__ = ["OURS", "Shown", "Toolset"]

OURS: Final = ("hotplug.search", "hotplug.call")
"""The gateway's own tools, as they are named before a style is put on them."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A tool that a caller may use.

    Args:
        name: As it is called by the caller.
        server: Whose it is; empty for a profile's operation.
        definition: As it is listed.
        eager: Whether it is listed in any case.
        searchable: Whether it may be called through `hotplug.call` once it was found.
    """

    name: str
    server: str
    definition: Object = field(repr=False)
    eager: bool = False
    searchable: bool = True


class Toolset:
    """All tools of one caller, in a stable order.

    Args:
        ours: The names of `hotplug.search` and `hotplug.call`.
    """

    def __init__(self, tools: Sequence[Shown], search: SearchConfig, ours: tuple[str, str]) -> None:
        self._tools = {one.name: one for one in tools}
        candidates = [Candidate(one.name, one.eager, one.searchable) for one in tools]
        shown = show(candidates, search)
        self._left = frozenset(shown.left)
        self.searching = shown.searching
        """Whether something is left to search: only then there is a search."""
        self.ours = ours
        self.words = shown.words()
        self.listed: list[Object] = [self._tools[name].definition for name in shown.listed]
        if self.searching:
            self.listed += [search_tool(*ours), call_tool(ours[1], ours[0])]

    def found_by_search(self, name: str) -> bool:
        """Whether a tool is one of those that are called through `hotplug.call`."""
        return name in self._left

    @cached_property
    def index(self) -> Index:
        """What search looks through."""
        left = (one for one in self._tools.values() if one.name in self._left)
        return Index([Searchable(one.name, one.server, one.definition) for one in left])
