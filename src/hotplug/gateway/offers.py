"""Profile operations as the gateway offers them: one server's, and those of several servers of a profile as one tool.

Names, descriptions and schemas come from the profile. Nothing here is an upstream's word.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, cast

from msgspec import Raw

from hotplug.gateway.message import Object, dumps
from hotplug.profile import Part
from hotplug.profile.compare import restrict, rewrite
from hotplug.profile.schema import error_or
from hotplug.serve import Bound

__all__ = ["Instance", "Merged", "Offer", "RawRoute", "instance_argument", "merge"]

_ARGUMENT: Final = "instance"
_SPARE_ARGUMENT: Final = "hotplugInstance"


@dataclass(frozen=True, slots=True)
class RawRoute:
    """The upstream tool that an operation of a native server is, and the arguments that an alias fixes."""

    tool: str
    fixed: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class Instance:
    """One of the things that speak a profile, as callers name it.

    Args:
        id: The server's name; of a server with several instances of its own, `server/its-own-id`.
        title: For a person.
        ours: Whether the title is no upstream's word: only then it is shown to a model beside the profile's.
    """

    id: str
    title: str
    ours: bool = True

    def document(self) -> dict[str, str]:
        return {"id": self.id, "title": self.title}


@dataclass(frozen=True)
class Offer:
    """A part of a profile at one server.

    Args:
        instance: Of the server, and another one once it is replaced.
        underlying: The upstream tools that it uses; none in process.
        route: Where the server speaks the profile itself over MCP.
    """

    bound: Bound = field(repr=False)
    server: str
    instance: str
    underlying: frozenset[str] = frozenset()
    route: RawRoute | None = None

    @property
    def shape(self) -> Part:
        """The part's contract."""
        return self.bound.part

    @property
    def part(self) -> str:
        """The wire name, `calendar.create`."""
        return self.bound.part.name

    @property
    def member(self) -> str:
        """The semantic identity, `calendar@1/calendar.create`."""
        return self.bound.member

    @property
    def profile(self) -> str:
        """The profile that defines the part, by name and major."""
        return self.bound.member.partition("/")[0]

    @property
    def facets(self) -> frozenset[str]:
        """The facets that the server offers of the profile."""
        return self.bound.provider.facets

    @property
    def eager(self) -> bool:
        return self.shape.flags.eager

    @property
    def guarded(self) -> bool:
        return self.shape.flags.guarded

    @property
    def effects(self) -> bool:
        return self.shape.flags.effects

    @cached_property
    def tool(self) -> Object:
        """The tool as it is listed where this is the only instance: exactly the profile's."""
        return _raw(self.bound.tool.listed())


@dataclass(frozen=True)
class Merged:
    """A part as one caller sees it, over all the instances of which the caller may use it.

    Args:
        instances: Those; more than one: a call has to name its own.
        offers: By server, those that have the part.
    """

    part: str
    member: str
    profile: str
    eager: bool
    guarded: bool
    effects: bool
    instances: tuple[Instance, ...]
    offers: Mapping[str, Offer]
    tool: Object = field(repr=False)


def merge(
    offers: Sequence[Offer], instances: Sequence[Instance], *, aware: bool = False, optional: bool = False
) -> Merged:
    """One tool for a part at several instances.

    A part, or a facet's field, that only some of them have says so in its description.

    Args:
        offers: Of one part, at least one; of different servers.
        instances: All that a caller may name, those that don't have the part too.
        aware: The caller knows profiles: it names the instance in `_meta`, so the argument isn't required, and its own
            check of the schema against the profile's holds.
        optional: Naming none is an answer too (`connection.describe`).
    """
    first = offers[0]
    if len(instances) == 1 or not instances:
        tool = first.tool
    else:
        tool = _raw(_listed(offers, instances, required=not aware and not optional))
    return Merged(
        part=first.part,
        member=first.member,
        profile=first.profile,
        eager=first.eager,
        guarded=first.guarded,
        effects=first.effects,
        instances=tuple(instances),
        offers={one.server: one for one in offers},
        tool=tool,
    )


def instance_argument(part: Part) -> str:
    """What the argument that names the instance is called: `instance`, unless the part has one of that name."""
    properties = cast("Mapping[str, Any]", part.input.schema.get("properties") or {})
    return _SPARE_ARGUMENT if _ARGUMENT in properties else _ARGUMENT


def _listed(offers: Sequence[Offer], instances: Sequence[Instance], *, required: bool) -> dict[str, Any]:
    first = offers[0]
    part = first.shape
    listed = first.bound.tool.listed()
    union = frozenset[str]().union(*(one.facets for one in offers))
    owners = {facet: [one.server for one in offers if facet in one.facets] for facet in sorted(union)}
    partial = {facet: found for facet, found in owners.items() if len(found) < len(offers)}
    schema = _said(_restricted(part.input.schema, owners), partial)
    properties = cast("dict[str, Any]", schema.get("properties") or {})
    ext = [one.bound.tool.input_schema for one in offers if one.bound.extras]
    if ext:
        schema = _with_ext(schema, ext)
        properties = cast("dict[str, Any]", schema["properties"])
    name = instance_argument(part)
    titles = "; ".join(f"`{one.id}`: {one.title}" for one in instances if one.ours and one.title != one.id)
    chosen: dict[str, Any] = {
        "type": "string",
        "enum": [one.id for one in instances],
        "description": "Which one is meant: there are several." + (f" {titles}." if titles else ""),
    }
    needed = [name, *cast("list[str]", schema.get("required") or [])] if required else schema.get("required")
    schema = {**schema, "type": "object", "properties": {name: chosen, **properties}}
    if needed:
        schema["required"] = needed
    having = {one.server for one in offers}
    if any(one.id.partition("/")[0] not in having for one in instances):
        listed["description"] = f"{listed['description']}\n\nOnly at {_names(sorted(having))}.".strip()
    return {
        **listed,
        "inputSchema": schema,
        "outputSchema": error_or(_restricted(part.output.schema, owners)),
    }


def _restricted(schema: dict[str, Any], facets: Iterable[str]) -> dict[str, Any]:
    return cast("dict[str, Any]", restrict(schema, frozenset(facets)))


def _said(schema: dict[str, Any], partial: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """The schema in which fields of facets that only some servers have say so."""
    if not partial:
        return schema

    def change(node: dict[str, Any]) -> dict[str, Any]:
        facet = node.get("x-facet")
        if not isinstance(facet, str) or facet not in partial:
            return node
        words = f"Only at {_names(partial[facet])}."
        said = node.get("description")
        return {**node, "description": f"{said} {words}" if said else words}

    return cast("dict[str, Any]", rewrite(schema, change))


def _with_ext(schema: dict[str, Any], others: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The schema with what the servers' extensions add."""
    found: dict[str, Any] = {}
    definitions = dict(cast("dict[str, Any]", schema.get("$defs") or {}))
    for other in others:
        found |= cast("dict[str, Any]", other["properties"]["ext"]["properties"])
        for name, one in cast("dict[str, Any]", other.get("$defs") or {}).items():
            definitions.setdefault(name, one)
    ext = {"type": "object", "properties": found, "additionalProperties": False}
    changed = {**schema, "properties": {**schema.get("properties", {}), "ext": ext}}
    return {**changed, "$defs": definitions} if definitions else changed


def _names(servers: Sequence[str]) -> str:
    return ", ".join(f"`{one}`" for one in servers)


def _raw(listed: Mapping[str, Any]) -> Object:
    return {key: Raw(dumps(value)) for key, value in listed.items()}
