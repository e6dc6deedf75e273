"""The two dialects in which servers declare: `tools.noetic/profiles` and `org.classprofiles/profiles`.

They overlap in profiles, versions and the tool of a part. Each says what the other can't: the first senses,
determinism, aliases with fixed arguments and instances, the second digests, facets and provenance.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

from hotplug.declare.declaration import Alias, Card, Declaration, Instance
from hotplug.declare.findings import Finding
from hotplug.declare.names import is_extension, is_part, is_profile, is_sense
from hotplug.errors import ProfileError
from hotplug.profile.senses import Sense
from hotplug.profile.versions import parse_version

__all__ = ["CARDS", "NOETIC", "read", "write"]

NOETIC: Final = "tools.noetic/profiles"
CARDS: Final = "org.classprofiles/profiles"

_AGREE: Final = "say the same in both dialects, or use one"


def write(declaration: Declaration) -> dict[str, Any]:
    """Both dialects as JSON; members that would be empty are left out."""
    noetic: dict[str, Any] = {"profiles": {card.profile: card.version for card in declaration.cards}}
    if declaration.extensions:
        noetic["extensions"] = dict(declaration.extensions)
    if declaration.senses:
        noetic["senses"] = {name: sense._asdict() for name, sense in declaration.senses.items()}
    if declaration.determinism:
        noetic["determinism"] = dict(declaration.determinism)
    if declaration.setup is not None:
        noetic["setup"] = dict(declaration.setup)
    if declaration.aliases:
        noetic["aliases"] = {
            part: {"tool": alias.tool, **({"fixed": dict(alias.fixed)} if alias.fixed else {})}
            for part, alias in declaration.aliases.items()
        }
    if declaration.instances:
        noetic["instances"] = [
            {"id": one.id, **({"title": one.title} if one.title is not None else {})} for one in declaration.instances
        ]
    return {NOETIC: noetic, CARDS: {"profiles": [_write_card(card) for card in declaration.cards]}}


def _write_card(card: Card) -> dict[str, Any]:
    written: dict[str, Any] = {"profile": card.profile, "version": card.version}
    if card.digest is not None:
        written["digest"] = card.digest
    if card.facets:
        written["facets"] = dict(card.facets)
    if card.members:
        written["members"] = {part: {"tool": tool} for part, tool in card.members.items()}
    written["via"] = card.via
    if card.projection is not None:
        written["projection"] = dict(card.projection)
    return written


def read(extensions: Mapping[str, Any]) -> Declaration:
    """One declaration from what a server gave of both."""
    reader = _Reader()
    noetic = reader.object(extensions.get(NOETIC, {}), NOETIC)
    card_document = reader.object(extensions.get(CARDS, {}), CARDS)
    versions = reader.versions(noetic.get("profiles", {}), "profiles", is_profile)
    cards = reader.cards(card_document.get("profiles", []))
    aliases = reader.aliases(noetic.get("aliases", {}))
    if NOETIC in extensions and CARDS in extensions:
        reader.compare(versions, cards, aliases)
    declared = {**{name: Card(name, version) for name, version in versions.items()}, **cards}
    return Declaration.of(
        cards=declared.values(),
        extensions=reader.versions(noetic.get("extensions", {}), "extensions", is_extension),
        senses=reader.senses(noetic.get("senses", {})),
        determinism=reader.texts(noetic.get("determinism", {}), "determinism"),
        setup=reader.object(noetic["setup"], "setup") if "setup" in noetic else None,
        aliases=aliases,
        instances=reader.instances(noetic.get("instances", [])),
        problems=reader.problems,
    )


class _Reader:
    """Reads what a stranger wrote: keeps what makes sense, and notes what doesn't."""

    def __init__(self) -> None:
        self.problems: list[Finding] = []

    def _bad(self, place: str, value: object, wanted: str, part: str | None = None) -> None:
        shown = repr(value)
        shown = shown if len(shown) <= 60 else shown[:60] + "…"
        self.problems.append(Finding("bad_name", part, f"{place} is {shown}", f"write {wanted}"))

    def object(self, value: object, place: str) -> Mapping[str, Any]:
        if isinstance(value, Mapping):
            return cast("Mapping[str, Any]", value)
        self._bad(place, value, "an object")
        return {}

    def list(self, value: object, place: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
        if not isinstance(value, list):
            self._bad(place, value, "a list")
            return
        for index, item in enumerate(cast("list[Any]", value)):
            yield f"{place}[{index}]", self.object(item, f"{place}[{index}]")

    def texts(self, value: object, place: str) -> dict[str, str]:
        found: dict[str, str] = {}
        for name, text in self.object(value, place).items():
            if isinstance(text, str):
                found[name] = text
            else:
                self._bad(f"{place}.{name}", text, "a text")
        return found

    def version(self, value: object, place: str, part: str) -> str | None:
        try:
            return str(parse_version(value))
        except ProfileError:
            self._bad(f"the version of {place}", value, "three numbers, as in 1.2.0", part)
            return None

    def versions(self, value: object, place: str, named: Any) -> dict[str, str]:
        found: dict[str, str] = {}
        for name, text in self.object(value, place).items():
            if not named(name):
                self._bad(f"a name in {place}", name, "the name as its document has it", name)
            elif (version := self.version(text, name, name)) is not None:
                found[name] = version
        return found

    def cards(self, value: object) -> dict[str, Card]:
        found: dict[str, Card] = {}
        for place, item in self.list(value, f"{CARDS} profiles"):
            name = item.get("profile")
            if not isinstance(name, str) or not is_profile(name):
                self._bad(f"{place}.profile", name, "the name as its document has it")
                continue
            version = self.version(item.get("version"), name, name)
            if version is None:
                continue
            card = Card(
                profile=name,
                version=version,
                digest=self._text(item, "digest", place, name),
                facets=self.texts(item.get("facets", {}), f"{place}.facets"),
                members={part: alias.tool for part, alias in self.aliases(item.get("members", {})).items()},
                via=self._via(item, place, name),
                projection=self.object(item["projection"], f"{place}.projection") if "projection" in item else None,
            )
            known = found.setdefault(name, card)
            if known != card:
                message = f"{name} has two cards, {known.version} and {version}"
                self.problems.append(Finding("dialects_disagree", name, message, "declare each profile once"))
        return found

    def _text(self, item: Mapping[str, Any], key: str, place: str, part: str) -> str | None:
        value = item.get(key)
        if value is None or isinstance(value, str):
            return value
        self._bad(f"{place}.{key}", value, "a text", part)
        return None

    def _via(self, item: Mapping[str, Any], place: str, part: str) -> Any:
        value = item.get("via", "native")
        if value in ("native", "projected"):
            return value
        self._bad(f"{place}.via", value, "native or projected", part)
        return "native"

    def aliases(self, value: object) -> dict[str, Alias]:
        found: dict[str, Alias] = {}
        for part, item in self.object(value, "aliases").items():
            body = self.object(item, f"the alias of {part}")
            tool = body.get("tool")
            if not is_part(part):
                self._bad("the part of an alias", part, "the part's name, as in calendar.create", part)
            elif not isinstance(tool, str) or not tool:
                self._bad(f"the tool of {part}", tool, "the tool's name", part)
            else:
                found[part] = Alias(tool, self.object(body.get("fixed", {}), f"the fixed arguments of {part}"))
        return found

    def senses(self, value: object) -> dict[str, Sense]:
        found: dict[str, Sense] = {}
        for name, item in self.object(value, "senses").items():
            body = self.object(item, f"the sense {name}")
            if is_sense(name):
                found[name] = Sense(str(body.get("independence")), str(body.get("grade")))
            else:
                self._bad("the name of a sense", name, "one of OVP's channels, or x- and a name in lower case")
        return found

    def instances(self, value: object) -> list[Instance]:
        found: list[Instance] = []
        for place, item in self.list(value, "instances"):
            name, title = item.get("id"), item.get("title")
            if not isinstance(name, str) or not name:
                self._bad(f"{place}.id", name, "the instance's id")
            elif any(one.id == name for one in found):
                self._bad(f"{place}.id", name, "an id of its own: another instance has this one")
            else:
                found.append(Instance(name, title if isinstance(title, str) else None))
        return found

    def compare(self, versions: Mapping[str, str], cards: Mapping[str, Card], aliases: Mapping[str, Alias]) -> None:
        """Where both dialects speak, they say the same or the server is unavailable."""
        for name in sorted(versions.keys() | cards.keys()):
            one, other = versions.get(name), cards[name].version if name in cards else None
            if one != other:
                self._disagree(name, f"{name} is {one or 'not declared'}", other or "not declared")
        for card in cards.values():
            for part, tool in card.members.items():
                if part in aliases and aliases[part].tool != tool:
                    self._disagree(part, f"{part} is the tool {aliases[part].tool!r}", repr(tool))

    def _disagree(self, part: str, noetic: str, card: str) -> None:
        message = f"{noetic} in {NOETIC}, and {card} in {CARDS}"
        self.problems.append(Finding("dialects_disagree", part, message, _AGREE))
