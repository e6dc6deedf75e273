"""Another connection as a witness: what its reads show, before and after."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, cast

from hotplug.connect import Link, link_of
from hotplug.errors import ConfigError, HotplugError
from hotplug.evidence.coverage import BlindSpot
from hotplug.evidence.vocabulary import ProvenanceClass
from hotplug.profile import Part, Profile
from hotplug.profile.summaries import credential_name
from hotplug.witness.comparing import Comparing, Look, Thing
from hotplug.witness.watching import CannotLook, redact, spot

__all__ = ["OtherConnection"]

_PAGES: Final = 100


class OtherConnection(Comparing):
    """What another connection's reads show: `calendar.event REF created` for each thing that a result names by its ref.

    A thing is an object with a ref of its own (`event` in what `calendar.search` gives); the plain fields of a result
    without such things are facts, `chat.unread.count = 3`. All pages are read. What the server says it couldn't read
    is a blind spot, and so are a failed read and pages without end.

    Refs are those of the other connection; they mean nothing to the one that acts. Look for what the value holds:
    `other.state("calendar.event * created").containing("Planning")`.

    It asks another server, and is only as honest as that. So it is declared actuation-derived, unless you say that what
    it reads doesn't depend on the server that acts (`independent=True`): a second account's mailbox, not a second
    connection to the same server.

    Args:
        connection: A connection, open for as long as the witness is used.
        reads: The reads by their wire names, each with its arguments in wire form.
        independent: Whether the action's own code path doesn't decide what is read there.
        timeout: Seconds that one look may take.

    Raises:
        ConfigError: One of them is no read that the connection offers.
    """

    def __init__(
        self,
        connection: Profile,
        reads: Mapping[str, Mapping[str, Any]],
        *,
        independent: bool = False,
        timeout: float = 20.0,
        name: str = "other-connection",
    ) -> None:
        link = link_of(connection)
        super().__init__(name, str(link.channel.target), independent=independent, timeout=timeout)
        if not reads:
            raise ConfigError("a connection without reads shows nothing", hint='give reads={"calendar.search": {…}}')
        self._notes: list[str] = []
        self._link = Link(
            link.channel, link.spoken, link.options, vault=link.vault, on_note=lambda part, note: self._note(part, note)
        )
        self._reads = [(self._part(name), dict(arguments)) for name, arguments in reads.items()]
        self._salt = secrets.token_bytes(16)

    @property
    def describe(self) -> str:
        """How it looks, for a report."""
        return f"another connection, to {self.locator}"

    def provenance(self, channel: str) -> tuple[str, str, ProvenanceClass]:
        """The other server; its answers to reads."""
        del channel
        asked = ", ".join(part.name or "" for part, _ in self._reads)
        return self.locator, f"answers to {asked}, compared", "observed"

    def _part(self, name: str) -> Part:
        part = self._link.spoken.known.get(name)
        if part is None or part.kind != "read":
            raise ConfigError(f"{name} is no read of {self.locator}")
        if self._link.spoken.way(name) is None:
            raise ConfigError(f"{self.locator} doesn't offer {name}")
        return part

    def _note(self, part: str, note: str) -> None:
        self._notes.append(f"{part}: {note}")

    async def _read(self) -> Look:
        self._notes.clear()
        found = _Found(self._salt)
        for part, arguments in self._reads:
            try:
                await self._ask(part, arguments, found)
            except HotplugError as error:
                raise CannotLook(f"{part.name} failed: {error}") from None
        gaps = [spot("channel-unobserved", self.channel, f"{self.locator} says: {note}") for note in self._notes]
        gaps += found.gaps
        if found.redacted:
            hidden = ", ".join(sorted(found.redacted))
            return Look(
                tuple(found.things), found.facts, (*gaps, spot("redacted", None, hidden)), _all if gaps else None
            )
        return Look(tuple(found.things), found.facts, tuple(gaps), _all if gaps else None)

    async def _ask(self, part: Part, arguments: Mapping[str, Any], found: _Found) -> None:
        asked = dict(arguments)
        seen: set[str] = set()
        for _ in range(_PAGES):
            content = await self._link.call_wire(part, asked)
            before = len(found.things)
            found.take(part, content)
            cursor = content.get("cursor")
            if not isinstance(cursor, str) or cursor in seen:
                if len(found.things) == before and not seen:
                    found.take_facts(part, content)
                return
            seen.add(cursor)
            asked["cursor"] = cursor
        found.gaps.append(
            spot("buffer-truncated", self.channel, f"{part.name}: more than {_PAGES} pages", "narrow its arguments")
        )


def _all(ref: str) -> bool:
    del ref
    return True


@dataclass(slots=True)
class _Found:
    """What the reads of one look gave."""

    salt: bytes
    things: list[Thing] = field(default_factory=list[Thing])
    facts: dict[str, Any] = field(default_factory=dict[str, Any])
    gaps: list[BlindSpot] = field(default_factory=list[BlindSpot])
    redacted: frozenset[str] = frozenset()

    def take(self, part: Part, content: Mapping[str, Any]) -> None:
        """Add the things that a result names."""
        schema = part.output.schema
        for kind, ref, value in _named(content, schema, cast("dict[str, Any]", schema.get("$defs", {}))):
            text = json.dumps(value, sort_keys=True, default=str)
            digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), key=self.salt).hexdigest()
            shown, hidden = redact(value, frozenset(part.sensitive))
            self.redacted |= hidden
            self.things.append(Thing(kind, ref, digest, shown))

    def take_facts(self, part: Part, content: Mapping[str, Any]) -> None:
        """Add the plain fields of a result."""
        for name, value in content.items():
            if name in part.sensitive or credential_name(name):
                self.redacted |= {name}
            elif value is None or isinstance(value, str | int | float):
                self.facts[f"{part.name}.{name}"] = value


def _named(value: Any, schema: Mapping[str, Any], defs: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """The objects within a value that have a ref of their own, with its kind."""
    schema = _resolved(schema, defs)
    if isinstance(value, list):
        items = cast("dict[str, Any]", schema.get("items", {}))
        for item in cast("list[Any]", value):
            yield from _named(item, items, defs)
        return
    if not isinstance(value, dict):
        return
    members = cast("dict[str, Any]", value)
    properties = cast("dict[str, dict[str, Any]]", schema.get("properties", {}))
    for name, one in properties.items():
        kind = _resolved(one, defs).get("x-ref")
        # The ref of the thing itself is called as its kind: `event` of a `calendar.event`.
        if isinstance(kind, str) and kind.rpartition(".")[2] == name and isinstance(members.get(name), str):
            yield kind, members[name], members
            return
    for name, one in properties.items():
        if name in members:
            yield from _named(members[name], one, defs)


def _resolved(schema: Mapping[str, Any], defs: Mapping[str, Any]) -> Mapping[str, Any]:
    reference = schema.get("$ref")
    if isinstance(reference, str):
        return cast("Mapping[str, Any]", defs.get(reference.rpartition("/")[2], {}))
    return schema
