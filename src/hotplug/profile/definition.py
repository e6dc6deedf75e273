"""A contract as data: what a profile's class defines, and what its document says."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, Final, Literal, cast

from hotplug.errors import ProfileError
from hotplug.profile.canonical import digest
from hotplug.profile.form import check_form
from hotplug.profile.parts import Facet, Flags, Part, PartKind
from hotplug.profile.schema import JsonSchema
from hotplug.profile.senses import Sense
from hotplug.profile.shape import DocumentShape
from hotplug.profile.versions import Range, parse_version

__all__ = ["DOCUMENT_SCHEMA", "RESERVED", "Definition", "Determinism", "RefKind"]

DOCUMENT_SCHEMA: Final = "hotplug.profile/1"

RESERVED: Final = frozenset(
    {"claim", "claims", "describe", "emit", "events", "health", "look", "recorded", "using", "window", "with_witness"}
)
"""Names of the client and the server themselves: no part may have one."""


@dataclass(frozen=True, kw_only=True)
class Determinism:
    """How a run resumes after a connection was replaced (OVP's determinism profile)."""

    reset: Literal["none", "costly", "cheap"] = "none"
    replay_prefix: Literal["unsafe", "costly", "free"] = "unsafe"
    time: Literal["wall", "injectable", "stepped"] = "wall"
    observation: Literal["sampled", "exact"] = "exact"
    actions: Literal["irreversible", "reversible"] = "irreversible"

    def document(self) -> dict[str, str]:
        return {
            "reset": self.reset,
            "replayPrefix": self.replay_prefix,
            "time": self.time,
            "observation": self.observation,
            "actions": self.actions,
        }


@dataclass(frozen=True)
class RefKind:
    """A kind of ref: `calendar.event`."""

    volatile: bool = False
    public: bool = False


@dataclass(frozen=True, kw_only=True)
class Definition:
    """A profile: its name, version and parts. Two equal documents have one digest, whatever they were made from.

    `parts` holds what this profile itself defines; `all_parts` adds what it inherits.
    """

    name: str
    version: str
    description: str
    parts: Mapping[str, Part]
    facets: Mapping[str, Facet] = field(default_factory=dict[str, Facet])
    refs: Mapping[str, RefKind] = field(default_factory=dict[str, RefKind])
    senses: Mapping[str, Sense] = field(default_factory=dict[str, Sense])
    determinism: Determinism = field(default_factory=Determinism)
    setup: JsonSchema | None = None
    parent: Definition | None = None
    extends: Mapping[str, str] = field(default_factory=dict[str, str])

    @cached_property
    def all_parts(self) -> Mapping[str, Part]:
        """The parts by wire name, inherited ones first."""
        inherited: Mapping[str, Part] = self.parent.all_parts if self.parent else {}
        return MappingProxyType({**inherited, **self.parts})

    @cached_property
    def all_facets(self) -> Mapping[str, Facet]:
        """The facets by name, inherited ones first."""
        inherited: Mapping[str, Facet] = self.parent.all_facets if self.parent else {}
        return MappingProxyType({**inherited, **self.facets})

    @cached_property
    def identity(self) -> str:
        """What the profile is called in a member's identity: name and major, `calendar@1`."""
        return f"{self.name}@{self.version.partition('.')[0]}"

    def lineage(self) -> Iterator[Definition]:
        """The profile and those that it extends, itself first."""
        yield self
        if self.parent:
            yield from self.parent.lineage()

    def member(self, part: str) -> str:
        """The semantic identity of a part, which routing goes by: `calendar@1/calendar.create`."""
        owner = next((one for one in self.lineage() if part in one.parts), self)
        return f"{owner.identity}/{part}"

    def facet_parts(self, facet: str) -> tuple[Part, ...]:
        """The parts of a facet; empty for one that only adds fields."""
        return tuple(part for part in self.all_parts.values() if part.flags.facet == facet)

    @cached_property
    def digest(self) -> str:
        """`sha256:<hex>` over the document's canonical JSON (RFC 8785)."""
        return digest(self.document())

    def document(self) -> dict[str, Any]:
        """The profile as `profile.json`; values that are their default are left out."""
        body: dict[str, Any] = {
            "schema": DOCUMENT_SCHEMA,
            "name": self.name,
            "version": self.version,
            "description": self.description,
        }
        if self.extends:
            body["extends"] = dict(self.extends)
        if self.refs:
            body["refs"] = {
                kind: {key: True for key, on in (("volatile", ref.volatile), ("public", ref.public)) if on}
                for kind, ref in sorted(self.refs.items())
            }
        if self.facets:
            body["facets"] = {
                name: {"version": facet.version, "description": facet.description, "without": facet.without}
                for name, facet in self.facets.items()
            }
        for kind, key in _SECTIONS.items():
            section = {part.name: _part_document(part) for part in self.parts.values() if part.kind == kind}
            if section:
                body[key] = section
        if self.senses:
            body["senses"] = {name: sense.document() for name, sense in self.senses.items()}
        body["determinism"] = self.determinism.document()
        if self.setup is not None:
            body["setup"] = self.setup
        return body

    @classmethod
    def from_document(cls, document: Mapping[str, Any], *, parent: Definition | None = None) -> Definition:
        """The profile that a document says.

        Args:
            parent: The definition of the profile that it extends.

        Raises:
            ProfileError: The document isn't of this form; the message names the place.
        """
        known = document.get("schema")
        if known != DOCUMENT_SCHEMA:
            raise ProfileError(f"the document's schema is {known!r}", hint=f"this build reads {DOCUMENT_SCHEMA!r}")
        check_form(document)
        name = _text(document, "name")
        version = _text(document, "version")
        parse_version(version)
        extends = dict(cast("dict[str, str]", document.get("extends", {})))
        for range_ in extends.values():
            Range(range_)
        if parent is not None and parent.name not in extends:
            raise ProfileError(f"{name} doesn't extend {parent.name}")
        parts: dict[str, Part] = {}
        methods: dict[str, str] = {}
        for kind, key in _SECTIONS.items():
            for part_name, body in cast("dict[str, dict[str, Any]]", document.get(key, {})).items():
                part = parts[part_name] = _read_part(kind, part_name, body, owner=name)
                other = methods.setdefault(part.method, part_name)
                if kind != "event" and other != part_name:
                    raise ProfileError(f"{other} and {part_name} would both be the method {part.method!r}")
        return cls(
            name=name,
            version=version,
            description=_text(document, "description"),
            parts=parts,
            facets={
                key: Facet(**body)
                for key, body in cast("dict[str, dict[str, str]]", document.get("facets", {})).items()
            },
            refs={
                key: RefKind(**body)
                for key, body in cast("dict[str, dict[str, bool]]", document.get("refs", {})).items()
            },
            senses={key: Sense(**body) for key, body in cast("dict[str, Any]", document.get("senses", {})).items()},
            determinism=_read_determinism(cast("dict[str, Any]", document.get("determinism", {}))),
            setup=document.get("setup"),
            parent=parent,
            extends=extends,
        )


_SECTIONS: Final[Mapping[PartKind, str]] = {"operation": "operations", "read": "reads", "event": "events"}

_FLAG_NAMES: Final = {
    "facet": "facet",
    "without": "without",
    "effects": "effects",
    "once": "once",
    "guarded": "guarded",
    "eager": "eager",
    "timeout_ms": "timeoutMs",
    "sense": "sense",
    "thread": "thread",
}


def _part_document(part: Part) -> dict[str, Any]:
    flags = part.flags
    inner, outer = ("arguments", "payload") if part.kind == "event" else ("input", "output")
    body: dict[str, Any] = {"description": part.description, inner: part.input.schema, outer: part.output.schema}
    if not flags.required:
        body["required"] = False
    for attribute, key in _FLAG_NAMES.items():
        value = getattr(flags, attribute)
        if value:
            body[key] = value
    if part.kind == "read":
        body["look"] = flags.look
    if part.kind == "event":
        body["replay"] = flags.replay
    return body


def _read_part(kind: PartKind, name: str, body: Mapping[str, Any], *, owner: str) -> Part:
    inner, outer = ("arguments", "payload") if kind == "event" else ("input", "output")
    if not name.startswith(f"{owner}."):
        raise ProfileError(f"{name!r} doesn't stand under {owner!r}", hint=f"name it {owner}.something")
    flags = Flags(kind=kind, name=name, required=body.get("required", True))
    flags = replace(flags, **{attribute: body[key] for attribute, key in _FLAG_NAMES.items() if key in body})
    flags = replace(flags, **{key: body[key] for key in ("look", "replay") if key in body})
    return Part(
        name=name,
        method=_method(name.removeprefix(f"{owner}.")),
        description=str(body.get("description", "")),
        flags=flags,
        input=DocumentShape(body[inner]),
        output=DocumentShape(body[outer]),
    )


def _method(name: str) -> str:
    """The Python name of a part's own name: `window.open` is `window_open`, `listAll` is `list_all`."""
    snake = re.sub(r"(?<=[a-z0-9])([A-Z])", lambda found: f"_{found[1].lower()}", name)
    found = re.sub(r"\W", "_", snake).lower()
    # The client itself has these names, and Python's keywords can't follow a dot.
    return f"{found}_" if found in RESERVED or keyword.iskeyword(found) else found


def _read_determinism(body: Mapping[str, Any]) -> Determinism:
    return Determinism(**{"replay_prefix" if key == "replayPrefix" else key: value for key, value in body.items()})


def _text(document: Mapping[str, Any], key: str) -> str:
    value = document.get(key)
    if not isinstance(value, str) or not value:
        raise ProfileError(f"{key} is {value!r}", hint="it is a text that isn't empty")
    return value
