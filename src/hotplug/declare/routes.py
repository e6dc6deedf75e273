"""Which tool of a server is which part: by the member that it names, and by its own name only where it names none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, cast

from hotplug.declare.declaration import Declaration

__all__ = ["MEMBER_META", "Route", "members_of", "routes"]

MEMBER_META: Final = "org.classprofiles/member"


@dataclass(frozen=True, slots=True)
class Route:
    """How a part is called: the tool, and the arguments that an alias fixes."""

    tool: str
    fixed: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))


def members_of(tool: Mapping[str, Any]) -> tuple[str, ...] | None:
    """The members that a tool says it is, `calendar@1/calendar.create`; None where it says nothing."""
    meta = tool.get("_meta")
    stated = cast("Mapping[str, Any]", meta).get(MEMBER_META) if isinstance(meta, Mapping) else None
    if isinstance(stated, str):
        return (stated,)
    if isinstance(stated, list):
        return tuple(member for member in cast("list[Any]", stated) if isinstance(member, str))
    return None


def routes(
    declaration: Declaration, members: Mapping[str, str], tools: Sequence[Mapping[str, Any]]
) -> dict[str, Route]:
    """The route of each part that a server offers.

    An alias of the declaration goes first, then the member in a tool's `_meta`, then a tool of the part's own name that
    says nothing of its members: a tool that names another member isn't this part, whatever it is called.

    Args:
        members: The identity of each part wanted, by wire name: `{"calendar.create": "calendar@1/calendar.create"}`.
        tools: As the server lists them.
    """
    by_member: dict[str, str] = {}
    unnamed: set[str] = set()
    for tool in tools:
        name = str(tool.get("name"))
        stated = members_of(tool)
        if stated is None:
            unnamed.add(name)
        for member in stated or ():
            by_member.setdefault(member, name)
    found: dict[str, Route] = {}
    for part, member in members.items():
        if (alias := declaration.aliases.get(part)) is not None:
            found[part] = Route(alias.tool, alias.fixed)
        elif member in by_member:
            found[part] = Route(by_member[member])
        elif part in unnamed:
            found[part] = Route(part)
    return found
