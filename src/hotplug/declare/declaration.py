"""What a server says that it implements, whichever of the two dialects it said it in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Literal, TypeVar, cast

from hotplug.declare.findings import Finding
from hotplug.profile.senses import Sense

__all__ = ["Alias", "Card", "Declaration", "Instance", "Via"]

Via = Literal["native", "projected"]

V = TypeVar("V")


def _nothing() -> Mapping[str, Any]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Alias:
    """The tool that a part is called by, and arguments that every such call has."""

    tool: str
    fixed: Mapping[str, Any] = field(default_factory=_nothing)


@dataclass(frozen=True, slots=True)
class Instance:
    """One of the things behind a server."""

    id: str
    title: str | None = None


@dataclass(frozen=True, slots=True)
class Card:
    """One profile that a server implements.

    Args:
        facets: Exact version by facet; a facet that isn't here isn't there.
        members: Tool by part, for parts whose tool has another name.
        via: Provenance, never grade.
        projection: `{id, version, digest}` of the projection that presents it.
    """

    profile: str
    version: str
    digest: str | None = None
    facets: Mapping[str, str] = field(default_factory=_nothing)
    members: Mapping[str, str] = field(default_factory=_nothing)
    via: Via = "native"
    projection: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Declaration:
    """A whole declaration. Build one with `of` or `from_extensions`: they bring aliases and members together.

    Args:
        cards: The profiles, each name once.
        extensions: Version by extension id.
        senses: Those that are worth less than their default, and `x-…` ones.
        determinism: The fields that differ from the profile's default, or all.
        setup: Where the schema of the setup is found, `{"$ref": "#/setup"}`, in the profile's document.
        aliases: By part; those of the cards' members are among them.
        problems: What was wrong in the declaration itself when it was read; `check` gives them again.
    """

    cards: tuple[Card, ...] = ()
    extensions: Mapping[str, str] = field(default_factory=_nothing)
    senses: Mapping[str, Sense] = field(default_factory=_nothing)
    determinism: Mapping[str, str] = field(default_factory=_nothing)
    setup: Mapping[str, Any] | None = None
    aliases: Mapping[str, Alias] = field(default_factory=_nothing)
    instances: tuple[Instance, ...] = ()
    problems: tuple[Finding, ...] = ()

    @classmethod
    def of(
        cls,
        *,
        cards: Iterable[Card] = (),
        extensions: Mapping[str, str] | None = None,
        senses: Mapping[str, Sense | Mapping[str, str]] | None = None,
        determinism: Mapping[str, str] | None = None,
        setup: Mapping[str, Any] | None = None,
        aliases: Mapping[str, Alias] | None = None,
        instances: Iterable[Instance | Mapping[str, str]] = (),
        problems: Iterable[Finding] = (),
    ) -> Declaration:
        """The declaration of a server, from what it is made of.

        A card that is given twice counts once; senses and instances may be given as JSON.
        """
        once: list[Card] = []
        for card in cards:
            if card not in once:
                once.append(card)
        found = dict(aliases or {})
        for card in once:
            for part, tool in card.members.items():
                found.setdefault(part, Alias(tool))
        return cls(
            cards=tuple(_with_members(card, found) for card in once),
            extensions=_frozen(extensions),
            senses=_frozen({name: _sense(value) for name, value in (senses or {}).items()}),
            determinism=_frozen(determinism),
            setup=None if setup is None else _frozen(setup),
            aliases=_frozen(found),
            instances=tuple(
                one if isinstance(one, Instance) else Instance(one["id"], one.get("title")) for one in instances
            ),
            problems=tuple(problems),
        )

    @classmethod
    def from_extensions(cls, extensions: Mapping[str, Any]) -> Declaration:
        """Reads `capabilities.extensions` (or `experimental`, or what `connection.describe` returns).

        Nothing that a server writes raises: what is malformed, and where its two dialects disagree, stands in
        `problems`, and what can't be read is left out.
        """
        from hotplug.declare.dialects import read

        return read(extensions)

    def to_extensions(self) -> dict[str, Any]:
        """Both dialects, as they go into `capabilities.extensions`."""
        from hotplug.declare.dialects import write

        return write(self)

    def card(self, profile: str) -> Card | None:
        """The card of a profile, or None where it isn't declared."""
        return next((card for card in self.cards if card.profile == profile), None)


def _with_members(card: Card, aliases: Mapping[str, Alias]) -> Card:
    """The card with the aliases of its profile's parts that it can say: it has no word for fixed arguments."""
    told = {
        part: alias.tool
        for part, alias in aliases.items()
        if part.startswith(f"{card.profile}.") and not alias.fixed and part not in card.members
    }
    return replace(card, members=_frozen({**card.members, **told}), facets=_frozen(card.facets))


def _sense(value: Sense | Mapping[str, str]) -> Sense:
    if isinstance(value, Sense):
        return value
    return Sense(str(value.get("independence")), str(value.get("grade")))


def _frozen(value: Mapping[str, V] | None) -> Mapping[str, V]:
    return MappingProxyType(dict(cast("Mapping[str, V]", value or {})))
