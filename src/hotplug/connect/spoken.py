"""What a server speaks of a profile: which tool is which part, from its declaration and its list of tools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from hotplug.catalog.connection import Connection
from hotplug.declare import Declaration, Finding, available, check, routes
from hotplug.errors import ConnectError, Unsupported
from hotplug.profile import Definition, Extension, Part, Profile
from hotplug.profile.versions import Range, default_range

__all__ = ["Spoken", "Way", "speaks"]


@dataclass(frozen=True)
class Way:
    """How a part is called: the tool, and arguments that an alias fixes."""

    tool: str
    fixed: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True)
class Spoken:
    """One profile as a server speaks it.

    Args:
        known: Every part that the profile and connection@1 have, by wire name.
        ways: How those that the server offers are called.
        lost: What a user loses without each facet.
        keeps_keys: It has connection@1, so idempotency keys hold there.
    """

    profile: str
    version: str
    facets: frozenset[str]
    extensions: Mapping[str, str]
    known: Mapping[str, Part]
    ways: Mapping[str, Way]
    lost: Mapping[str, str]
    keeps_keys: bool
    definition: Definition = field(repr=False)
    declaration: Declaration = field(repr=False)
    tools: Sequence[Mapping[str, Any]] = field(repr=False)
    findings: tuple[Finding, ...] = ()

    def way(self, part: str) -> Way | None:
        return self.ways.get(part)

    def extended(self, extension: type[Extension]) -> Spoken:
        """The same with the operations of an extension.

        Raises:
            Unsupported: The server doesn't declare it in a version that does what the class says.
        """
        _check_extension(self.declaration, extension, default_range(extension.version), "the server")
        found = routes(self.declaration, _members_of(extension), self.tools)
        ways = {name: Way(route.tool, dict(route.fixed)) for name, route in found.items()}
        return replace(self, known={**self.known, **extension.parts}, ways={**self.ways, **ways})

    def document(self) -> dict[str, Any]:
        """The same as data."""
        return {
            "profile": self.profile,
            "version": self.version,
            "facets": sorted(self.facets),
            "extensions": dict(self.extensions),
            "parts": sorted(self.ways),
        }


def speaks(
    profile: type[Profile],
    versions: Range,
    declaration: Declaration,
    tools: Sequence[Mapping[str, Any]],
    *,
    target: str,
    facets: Sequence[str] = (),
    extensions: Sequence[tuple[type[Extension], Range]] = (),
) -> Spoken:
    """What a server speaks of a profile, checked against the definition and the tools that it really lists.

    Raises:
        ConnectError: It doesn't declare the profile, or its tools contradict its declaration.
        Unsupported: Version, a required facet or extension is missing.
    """
    definition = profile.definition
    card = declaration.card(definition.name)
    if card is None:
        said = ", ".join(f"{one.profile} {one.version}" for one in declaration.cards) or "none"
        raise ConnectError(
            f"{target} doesn't declare the profile {definition.name}; declared: {said}",
            target=target,
            hint="name a projection for it, or draft one with `hotplug projection new`",
        )
    if not versions.satisfied_by(card.version):
        raise Unsupported(
            f"{target} speaks {definition.name} {card.version}, and {versions} is required",
            details={"version": card.version, "required": str(versions)},
        )
    known: dict[str, Part] = {**definition.all_parts, **Connection.definition.all_parts}
    documents = {one.name: one.document() for one in (*definition.lineage(), Connection.definition)}
    findings = [one for one in check(declaration, documents, tools) if _concerns(one, known)]
    if not available(findings):
        listed = "; ".join(f"{one.code}: {one.message}" for one in findings if one.code != "unproven")
        raise ConnectError(f"{target} is unavailable, its tools contradict what it declares: {listed}", target=target)
    missing = [name for name in facets if name not in card.facets]
    if missing:
        raise Unsupported(
            f"{target} doesn't offer the facets {', '.join(missing)} of {definition.name}",
            details={
                "facets": missing,
                "without": [definition.all_facets[one].without for one in missing if one in definition.all_facets],
            },
        )
    for extension, range_ in extensions:
        _check_extension(declaration, extension, range_, target)
        known.update(extension.parts)
    found = routes(declaration, _members(profile, extensions), tools)
    ways = {name: Way(route.tool, dict(route.fixed)) for name, route in found.items() if name in known}
    return Spoken(
        profile=definition.name,
        version=card.version,
        facets=frozenset(card.facets),
        extensions=dict(declaration.extensions),
        known=known,
        ways=ways,
        lost={name: facet.without for name, facet in definition.all_facets.items()},
        keeps_keys="connection.describe" in ways,
        definition=definition,
        declaration=declaration,
        tools=tools,
        findings=tuple(findings),
    )


def _concerns(finding: Finding, known: Mapping[str, Part]) -> bool:
    """Whether a finding is about what is asked for; a server's other profiles are their own users' concern."""
    return finding.code != "unknown_profile" and (
        finding.part is None or "." not in finding.part or finding.part in known
    )


def _members(profile: type[Profile], extensions: Sequence[tuple[type[Extension], Range]]) -> dict[str, str]:
    """The identity of each part that may be called, by wire name."""
    found = {name: profile.definition.member(name) for name in profile.definition.all_parts}
    found |= {name: Connection.definition.member(name) for name in Connection.definition.all_parts}
    for extension, _ in extensions:
        found |= _members_of(extension)
    return found


def _members_of(extension: type[Extension]) -> dict[str, str]:
    major = extension.version.partition(".")[0]
    return {name: f"{extension.id}@{major}/{name}" for name in extension.parts}


def _check_extension(declaration: Declaration, extension: type[Extension], versions: Range, target: str) -> None:
    has = declaration.extensions.get(extension.id)
    if has is None or not versions.satisfied_by(has):
        raise Unsupported(
            f"{target} has {'no' if has is None else has} {extension.id}, and {versions} is required",
            details={"extension": extension.id},
        )
