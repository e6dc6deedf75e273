"""What an upstream offers: its tools, prompts, resources and templates, every page of each, as raw JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from msgspec import Raw

from hotplug.gateway.message import Object

__all__ = ["KINDS", "Catalog", "Item", "ListKind", "Listing"]

ListKind = Literal["tools", "prompts", "resources", "templates"]

KINDS: Final[Mapping[ListKind, tuple[str, str, str]]] = {
    "tools": ("tools/list", "tools", "name"),
    "prompts": ("prompts/list", "prompts", "name"),
    "resources": ("resources/list", "resources", "uri"),
    "templates": ("resources/templates/list", "resourceTemplates", "uriTemplate"),
}
"""For each kind: the method that lists it, the key of the list in the result, and what identifies an item."""


@dataclass(frozen=True, slots=True)
class Item:
    """One listed thing.

    Args:
        name: What identifies it: a name, a URI, a template.
        raw: Its fields as they came.
    """

    name: str
    raw: Object = field(repr=False)


@dataclass(frozen=True, slots=True)
class Listing:
    """All of one kind.

    Args:
        items: In the server's order.
        extra: Fields of the (first page's) result that are neither the list nor a cursor: `_meta`, `ttlMs`, a vendor's.
        problem: Why the list is incomplete; None where it is whole. Never empty where a page failed.
        unusable: Items that can't be used, by name or place, each with the reason.
        ttl_ms: How long it may be used, by the server's word; None where it says nothing.
        offered: Whether the server has the capability at all.
    """

    items: tuple[Item, ...] = ()
    extra: Object = field(default_factory=dict[str, Raw], repr=False)
    problem: str | None = None
    unusable: Mapping[str, str] = field(default_factory=dict[str, str])
    ttl_ms: int | None = None
    offered: bool = True
    by_name: Mapping[str, Item] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "by_name", {item.name: item for item in self.items})


@dataclass(frozen=True, slots=True)
class Catalog:
    """Everything that one upstream offers on one link, as it was read last.

    Args:
        version: Changes whenever anything in it does.
    """

    version: int
    tools: Listing
    prompts: Listing
    resources: Listing
    templates: Listing

    def of(self, kind: ListKind) -> Listing:
        """The listing of a kind."""
        listing: Listing = getattr(self, kind)
        return listing
