"""Several servers of one profile as one: which of them a call means, and what all of them together offer.

A caller names an instance by its server's name, in `_meta` or as an argument; with one there is nothing to name. What
a caller may not use is to it as what doesn't exist, in lists, calls, descriptions and events.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, cast

from hotplug.catalog import Connection
from hotplug.declare import Card, Declaration
from hotplug.declare import Instance as Declared
from hotplug.errors import Ambiguous, ConnectionFailed, Internal, InvalidArgument, Unavailable, Unsupported
from hotplug.gateway.offers import Instance, Merged, Offer, instance_argument, merge
from hotplug.gateway.passing import read_arguments
from hotplug.gateway.speaking import Speaker
from hotplug.profile import Definition, Part
from hotplug.profile.senses import DETERMINISM, Sense, exceeds, is_stronger
from hotplug.profile.versions import parse_version
from hotplug.serve import INSTANCE_META, Answer, result_of
from hotplug.serve.connection import without_of

__all__ = ["Allowed", "Chosen", "Instances", "NotGiven"]

Allowed = Callable[[str, str], bool]
"""Whether the caller may use a part, or an event, of a server: `(server, "calendar.create")`."""

_PREFIX: Final = "connection."
_NOTHING: Final = "-"
"""A kind of event that doesn't exist."""
_KEPT: Final = 256
_LONGEST_WAIT: Final = 30_000


class NotGiven(Exception):
    """No server that the caller may use has a profile with such a part: answer as to any unknown tool."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """What a call means.

    Args:
        offer: Has a `route` where the call may be passed on raw (`Speaker.outgoing`, `Speaker.incoming`).
        arguments: Without the one that named the instance.
        named: The instance, as callers name it.
        instance: One of the server's own instances, where it has several.
    """

    speaker: Speaker
    offer: Offer
    arguments: Any = field(repr=False)
    named: str
    instance: str | None = None


@dataclass(frozen=True, slots=True)
class _Place:
    """An instance, and where it is."""

    instance: Instance
    speaker: Speaker
    inner: str | None = None


class Instances:
    """The profile operations of all servers, each caller's share of them.

    Args:
        speakers: In the order of the configuration.
        name: How the gateway calls itself where it is described as a whole.
    """

    def __init__(self, speakers: Iterable[Speaker] = (), *, name: str = "hotplug") -> None:
        self.name = name
        self._speakers: tuple[Speaker, ...] = tuple(speakers)
        self._listed: dict[Any, tuple[Merged, ...]] = {}

    @property
    def speakers(self) -> tuple[Speaker, ...]:
        return self._speakers

    def update(self, speakers: Iterable[Speaker]) -> None:
        """Go on with these: servers were added, removed or replaced."""
        self._speakers = tuple(speakers)
        self._listed.clear()

    # Lists

    def tools(self, allowed: Allowed, *, aware: bool = False) -> tuple[Merged, ...]:
        """The parts that a caller may use, in a stable order: by server, then as the profile has them.

        Args:
            aware: The caller declared that it knows profiles: it gets `connection.*` too, and tools whose schemas are
                the profile's own apart from an optional `instance`.
        """
        key = (aware, tuple((one.server, one.version, self._given(one, allowed)) for one in self._speakers))
        found = self._listed.get(key)
        if found is None:
            if len(self._listed) >= _KEPT:
                self._listed.clear()
            found = self._listed[key] = tuple(self._merged(allowed, aware=aware))
        return found

    def _merged(self, allowed: Allowed, *, aware: bool) -> Iterable[Merged]:
        wanted = dict.fromkeys(part for one in self._speakers for part in one.offers)
        for part in wanted:
            if part.startswith(_PREFIX) and not aware:
                continue
            places = self._places(part, allowed)
            offers = [
                offer
                for one in dict.fromkeys(place.speaker for place in places)
                if (offer := one.offers.get(part)) is not None
            ]
            if offers:
                yield merge(
                    offers,
                    [one.instance for one in places],
                    aware=aware,
                    optional=part in ("connection.describe", "connection.close"),
                )

    def _given(self, speaker: Speaker, allowed: Allowed) -> frozenset[str]:
        """The parts and events of a server that a caller may use."""
        return frozenset(part for part in _parts(speaker) if allowed(speaker.server, part))

    def _places(self, part: str, allowed: Allowed) -> list[_Place]:
        """The instances that a caller may name for a part."""
        found: list[_Place] = []
        for one in self._speakers:
            if part.startswith(_PREFIX):
                if not self._given(one, allowed):
                    continue
            elif part not in _parts(one) or not allowed(one.server, part):
                continue
            if one.own_instances:
                found.extend(
                    _Place(Instance(f"{one.server}/{each.id}", each.title or each.id, ours=False), one, each.id)
                    for each in one.own_instances
                )
            else:
                found.append(_Place(Instance(one.server, one.title, ours=one.in_here), one))
        return found

    def declaration(self, allowed: Allowed) -> Declaration:
        """What the gateway declares to a caller: of each profile what all its instances have."""
        given = [one for one in self._speakers if self._given(one, allowed)]
        return self._declared(given, self._places("connection.describe", allowed))

    def _declared(self, speakers: Sequence[Speaker], places: Sequence[_Place]) -> Declaration:
        cards: dict[str, Card] = {}
        senses: dict[str, Sense] = {}
        for speaker in speakers:
            for card in speaker.declaration.cards:
                plain = Card(card.profile, *_version(card, speaker), facets=card.facets, via=card.via)
                known = cards.get(card.profile)
                cards[card.profile] = plain if known is None else _weaker(known, plain)
            for name, sense in speaker.declaration.senses.items():
                if name not in senses or exceeds(senses[name], sense):
                    senses[name] = sense
        return Declaration.of(
            cards=cards.values(),
            senses=senses,
            determinism=_weakest([one.declaration.determinism for one in speakers]),
            instances=[Declared(one.instance.id, one.instance.title) for one in places],
        )

    # Calls

    def choose(self, part: str, arguments: Any, meta: Mapping[str, Any], *, thread: str, allowed: Allowed) -> Chosen:
        """Which server a call means.

        Args:
            arguments: Raw JSON, or values.
            meta: The caller's `_meta`.

        Raises:
            NotGiven: There is no such part for this caller.
            ConnectionFailed: `ambiguous` with `details.instances`, `invalid_argument`, `unsupported`, `unavailable`.
        """
        places = self._places(part, allowed)
        if not places:
            contract, definitions = self._contract(part, allowed)
            raise _unsupported("no server here", contract, definitions)
        contract, definitions = self._contract(part, allowed)
        named, arguments = _named(contract, read_arguments(arguments), meta)
        place = self._placed(named, places, thread)
        offer = place.speaker.offers.get(part)
        if offer is None:
            if place.speaker.told is not None and not place.speaker.offers:
                raise Unavailable(place.speaker.told)
            raise _unsupported(place.instance.id, contract, definitions)
        if part == "connection.close":
            if place.inner is None:
                raise InvalidArgument(f"{place.instance.id} isn't an instance that was opened")
            arguments = {**cast("dict[str, Any]", arguments), "instance": place.inner}
            return Chosen(place.speaker, offer, arguments, place.instance.id)
        return Chosen(place.speaker, offer, arguments, place.instance.id, place.inner)

    async def call(
        self,
        part: str,
        arguments: Any,
        meta: Mapping[str, Any],
        *,
        thread: str,
        allowed: Allowed,
        authorized: bool = False,
    ) -> dict[str, Any]:
        """Call a part at the instance that is meant; every failure is a result too. Takes what `choose` takes.

        Args:
            authorized: Whether an access profile or a person allowed it, where it is guarded.

        Raises:
            NotGiven: There is no such part for this caller.
        """
        try:
            if part == "connection.describe":
                return await self._describe(arguments, meta, thread, allowed)
            chosen = self.choose(part, arguments, meta, thread=thread, allowed=allowed)
            if part == "connection.events":
                return await self._events(chosen, meta, thread, allowed)
            result = await chosen.speaker.call(
                part,
                chosen.arguments,
                meta,
                thread=thread,
                authorized=authorized,
                instance=chosen.instance,
            )
            if part == "connection.open" and not result.get("isError"):
                server = chosen.speaker.server
                return _with_content(part, result, lambda found: {**found, "instance": f"{server}/{found['instance']}"})
        except ConnectionFailed as error:
            return result_of(Answer(error.as_wire(), is_error=True))
        return result

    def _contract(self, part: str, allowed: Allowed) -> tuple[Part, list[Definition]]:
        """The contract of a part of a profile that the caller may use something of."""
        if part in Connection.definition.all_parts:
            if not any(self._given(one, allowed) for one in self._speakers):
                raise NotGiven(part)
            return Connection.definition.all_parts[part], [Connection.definition]
        for speaker in self._speakers:
            given = self._given(speaker, allowed)
            for definition in speaker.definitions:
                contract = definition.all_parts.get(part)
                if contract is not None and contract.kind != "event" and given & frozenset(definition.all_parts):
                    return contract, [definition]
            if part in given and part in speaker.offers:
                return speaker.offers[part].shape, [*speaker.definitions]
        raise NotGiven(part)

    def _placed(self, named: str | None, places: Sequence[_Place], thread: str) -> _Place:
        known = {"instances": [one.instance.document() for one in places]}
        if named is None:
            if len(places) == 1:
                return places[0]
            listed = ", ".join(one.instance.id for one in places)
            raise Ambiguous(
                f"there are {len(places)} instances, and the call names none of them: {listed}",
                hint="say which one is meant, as `instance`",
                details=known,
            )
        for one in places:
            if one.instance.id == named:
                return one
        server, slash, inner = named.partition("/")
        if slash:
            speaker = next((one.speaker for one in places if one.speaker.server == server), None)
            opened = speaker.opened_instance(inner, thread) if speaker is not None else None
            if speaker is not None and opened is not None:
                return _Place(Instance(named, named), speaker, opened)
        shown = named if len(named) <= 60 else named[:60] + "…"
        raise InvalidArgument(f"there is no instance {shown!r} here", details=known)

    # connection@1

    async def _describe(self, arguments: Any, meta: Mapping[str, Any], thread: str, allowed: Allowed) -> dict[str, Any]:
        contract, _ = self._contract("connection.describe", allowed)
        places = self._places("connection.describe", allowed)
        named, arguments = _named(contract, read_arguments(arguments), meta)
        if named is None and len(places) != 1:
            return result_of(Answer(self._whole(self.name, self.name, list(places))))
        place = self._placed(named, places, thread)
        speaker = place.speaker
        await speaker.settle()
        if speaker.problem is not None or "connection.describe" not in speaker.offers:
            return result_of(Answer(self._whole(place.instance.title, speaker.instance, [place])))
        result = await speaker.call("connection.describe", arguments, meta, thread=thread, instance=place.inner)
        if result.get("isError"):
            return result
        used = frozenset[str]().union(
            *(offer.underlying for part, offer in speaker.offers.items() if allowed(speaker.server, part))
        )

        def change(found: dict[str, Any]) -> dict[str, Any]:
            notes = dict(cast("dict[str, Any]", found.get("notes") or {}))
            coverage: Any = notes.get("coverage")
            if isinstance(coverage, dict):
                # Of the server's own tools only those stand there that what the caller may use is made of.
                notes["coverage"] = {
                    tool: said for tool, said in cast("dict[str, Any]", coverage).items() if tool in used
                }
            if isinstance(notes.get("drift"), dict):
                notes["drift"] = speaker.drifted
            changed = {
                **found,
                "instance": speaker.instance,
                "declaration": dict(self._declared([speaker], [place]).to_extensions()),
            }
            changed.pop("notes", None)
            return {**changed, "notes": notes} if notes else changed

        return _with_content("connection.describe", result, change)

    def _whole(self, surface: str, instance: str, places: list[_Place]) -> dict[str, Any]:
        """The description of several instances together, or of one that can't be asked."""
        speakers = list(dict.fromkeys(one.speaker for one in places))
        declared = self._declared(speakers, places)
        notes: dict[str, Any] = {}
        for one in speakers:
            said = {key: value for key, value in (("problem", one.told), ("drift", one.drifted)) if value is not None}
            if said:
                notes[one.server] = said
        found: dict[str, Any] = {
            "surface": surface,
            "instance": instance,
            "declaration": dict(declared.to_extensions()),
            "determinism": dict(declared.determinism),
            "missing": [],
        }
        return {**found, "notes": {"instances": notes}} if notes else found

    async def _events(self, chosen: Chosen, meta: Mapping[str, Any], thread: str, allowed: Allowed) -> dict[str, Any]:
        """Events of one instance, without those that the caller isn't told of."""
        speaker = chosen.speaker
        given = self._given(speaker, allowed)
        arguments: Any = {} if chosen.arguments is None else chosen.arguments
        if not isinstance(arguments, dict):
            # It is refused there, as every call of this kind.
            return await speaker.call("connection.events", arguments, meta, thread=thread, instance=chosen.instance)
        request = dict(cast("dict[str, Any]", arguments))
        types: Any = request.get("types")
        if isinstance(types, list) and types:
            # What isn't given is as what doesn't exist: nothing is ever told of it.
            kept = [one for one in cast("list[Any]", types) if one in given or not isinstance(one, str)]
            request["types"] = kept or [_NOTHING]
        wait: Any = request.get("waitMs", 0)
        until = asyncio.get_running_loop().time() + (min(wait, _LONGEST_WAIT) / 1000 if isinstance(wait, int) else 0)
        place = chosen.named

        def change(found: dict[str, Any]) -> dict[str, Any]:
            events = cast("list[dict[str, Any]]", found.get("events") or [])
            return {**found, "events": [{**one, "instance": place} for one in events if one.get("type") in given]}

        while True:
            result = await speaker.call("connection.events", request, meta, thread=thread, instance=chosen.instance)
            if result.get("isError"):
                return result
            content: Any = result.get("structuredContent")
            result = _with_content("connection.events", result, change)
            shown = result["structuredContent"]
            left = until - asyncio.get_running_loop().time()
            if not content.get("events") or shown.get("events") or content.get("missed") or left <= 0:
                return result
            request |= {"cursor": content.get("cursor"), "waitMs": int(left * 1000)}


def _parts(speaker: Speaker) -> dict[str, None]:
    """The parts and events of a server's profiles, apart from those that every server has."""
    found = dict.fromkeys(part for one in speaker.definitions for part in one.all_parts)
    found |= dict.fromkeys(part for part in speaker.offers if not part.startswith(_PREFIX))
    return found


def _named(contract: Part, arguments: Any, meta: Mapping[str, Any]) -> tuple[str | None, Any]:
    """The instance that a call names, and its arguments without it."""
    said = meta.get(INSTANCE_META)
    name = "instance" if contract.name == "connection.close" else instance_argument(contract)
    if isinstance(arguments, dict) and name in arguments:
        given = dict(cast("dict[str, Any]", arguments))
        argued: Any = given.pop(name)
        if argued is not None and said is not None and argued != said:
            raise InvalidArgument("the call names two instances, one in its arguments and another one in its _meta")
        said, arguments = (argued if argued is not None else said), given
    if said is not None and not isinstance(said, str):
        raise InvalidArgument(f"the instance is {type(said).__name__}", hint="name it by its id")
    return said, cast("Any", arguments)


def _unsupported(where: str, part: Part, definitions: Sequence[Definition]) -> Unsupported:
    lost = without_of(part, definitions)
    verb = "offers" if where.startswith("no ") else "doesn't offer"
    details: dict[str, Any] = {"part": part.name}
    if part.flags.facet:
        details["facet"] = part.flags.facet
    return Unsupported(f"{where} {verb} {part.name}" + (f": {lost}" if lost else ""), details=details)


def _with_content(
    part: str, result: dict[str, Any], change: Callable[[dict[str, Any]], dict[str, Any]]
) -> dict[str, Any]:
    """The result of a part of connection@1 with its structured content changed, in its text too.

    Raises:
        Internal: It isn't what the part answers: then nothing of it is passed on.
    """
    content: Any = result.get("structuredContent")
    try:
        if not isinstance(content, dict):
            raise InvalidArgument("there is no structured content")
        Connection.definition.all_parts[part].output.read(content, strict=False)
    except InvalidArgument as error:
        raise Internal(f"{part} answered what its profile doesn't allow: {error.message}") from None
    told = result_of(Answer(change(cast("dict[str, Any]", content))))
    return {**result, "structuredContent": told["structuredContent"], "content": told["content"]}


def _version(card: Card, speaker: Speaker) -> tuple[str, str | None]:
    """The version that is listed here: the definition's at hand, where the server's is a later one."""
    known = next((one for each in speaker.definitions for one in each.lineage() if one.name == card.profile), None)
    if known is None and card.profile == Connection.definition.name:
        known = Connection.definition
    if known is None or known.version == card.version:
        return card.version, card.digest
    if parse_version(known.version) < parse_version(card.version):
        return known.version, known.digest
    return card.version, card.digest


def _weaker(one: Card, other: Card) -> Card:
    """What both have: a declaration is never stronger than what stands behind it."""
    lower = one if parse_version(one.version) <= parse_version(other.version) else other
    facets = {name: version for name, version in one.facets.items() if other.facets.get(name) == version}
    return replace(lower, facets=facets, via=one.via if one.via == other.via else "projected")


def _weakest(all_: Sequence[Mapping[str, str]]) -> dict[str, str]:
    found: dict[str, str] = {}
    for one in all_:
        for name, value in one.items():
            if value not in DETERMINISM.get(name, ()):
                continue
            if name not in found or is_stronger(name, found[name], value):
                found[name] = value
    return found
