"""Pinned tools: each stays as its owner first had it, and one that changes is closed until the owner takes the change.

The definition of every raw tool is recorded when it is seen first. From then on, another definition under that name
closes the tool, be it a schema, an annotation or only the wording: a description is what a model obeys. A tool that is
gone keeps its pin, and one that comes under another name is new, however alike: nothing is carried over. What can't be
read, of the pin or of the definition, closes too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, Literal, TypeAlias

import anyio.lowlevel

from hotplug.errors import Conflict, NotFound, StoreError
from hotplug.gateway.catalog import Item
from hotplug.gateway.definitions import (
    Definition,
    Difference,
    UnreadableDefinition,
    difference,
    raw_digest,
    read_definition,
    shown,
)
from hotplug.store import Store

__all__ = ["LONGEST_KEPT", "MOST_KEPT", "MOST_PINS", "Checked", "Pin", "PinState", "Pins"]

State: TypeAlias = Literal["open", "new", "reworded", "changed", "unreadable"]
Wording: TypeAlias = Literal["closes", "shows"]

MOST_PINS: Final = 50_000
"""Tools of one server that are pinned; further ones are closed."""
LONGEST_KEPT: Final = 64 * 1024
"""Bytes of a definition that is kept whole, so that a difference can be shown; of a longer one only its digest is."""
MOST_KEPT: Final = 16 * 1024 * 1024
"""Bytes of definitions that are kept whole for one server."""

_BATCH: Final = 20
_AGAIN: Final = "look at the difference again, then accept it"
_STATES: Final[Mapping[State, str]] = {
    "new": "new, and open: no right of another tool is carried over to it",
    "reworded": "open, in other words",
    "changed": "closed",
    "unreadable": "closed",
}
_VERSION: Final = "version"
_VERSIONS: Final = "pins"


@dataclass(frozen=True, slots=True)
class Pin:
    """What is recorded of a tool.

    Args:
        digest: Of its definition.
        raw: SHA-256 of the bytes that it was first seen in.
        kept: Bytes of the definition that is kept, 0 where it isn't.
        at: When, RFC 3339.
        accepted: Whether the owner took it expressly; else it was the first that was seen.
    """

    digest: str
    raw: str
    kept: int
    at: str
    accepted: bool

    def fact(self) -> dict[str, Any]:
        """As it is stored."""
        return {
            "digest": self.digest,
            "raw": self.raw,
            "kept": self.kept,
            "at": self.at,
            "accepted": self.accepted,
        }

    @classmethod
    def read(cls, fact: Mapping[str, Any] | None) -> Pin | None:
        """What was stored; None where it can't be read."""
        match fact:
            case {
                "digest": str(digest),
                "raw": str(raw),
                "kept": int(kept),
                "at": str(at),
                "accepted": bool(accepted),
            } if digest.startswith("sha256:"):
                return cls(digest, raw, kept, at, accepted)
            case _:
                return None


@dataclass(frozen=True, slots=True)
class PinState:
    """How a listed tool stands to its pin.

    Args:
        name: Its own name.
        state: `open`: as pinned. `new`: seen for the first time, and recorded. `changed`: closed until it is accepted.
            `unreadable`: the pin or the definition can't be read, closed. `reworded`: open although its wording
            changed, where that only shows.
        difference: What changed.
        reason: Why it is closed, for the owner; None where it is open.
        definition: As it is listed, where it had to be read in full.
        pinned: The digest that it was held against; None where there is none that can be read.
    """

    name: str
    state: State
    difference: Difference | None = None
    reason: str | None = None
    definition: Definition | None = field(default=None, repr=False)
    pinned: str | None = None

    @property
    def closed(self) -> bool:
        """Whether no thread may see or call it."""
        return self.state in ("changed", "unreadable")


@dataclass(frozen=True, slots=True)
class Checked:
    """All listed tools of a server, against their pins.

    Args:
        server: Whose.
        tools: By own name.
        gone: Names that are pinned and not listed.
        first: Whether nothing of this server was pinned before.
    """

    server: str
    tools: Mapping[str, PinState]
    gone: tuple[str, ...] = ()
    first: bool = False

    @property
    def closed(self) -> dict[str, PinState]:
        """Those that are closed, by name."""
        return {name: one for name, one in self.tools.items() if one.closed}

    def words(self) -> str | None:
        """What isn't as it was accepted, for the owner; None where all is."""
        lines: list[str] = []
        for name, one in self.tools.items():
            if one.state == "open" or (one.state == "new" and self.first):
                continue
            reason = f": {one.reason}" if one.reason else ""
            lines.append(f"{shown(name)} is {_STATES[one.state]}{reason}")
            if one.difference is not None:
                lines += [f"  {line}" for line in one.difference.words().splitlines()]
        lines += [f"{shown(name)} is gone" for name in self.gone]
        return "\n".join(lines) or None


class Pins:
    """The pins of all servers in a store.

    Args:
        wording: Whether a change of wording alone closes a tool, or only shows.
    """

    def __init__(self, store: Store, *, wording: Wording = "closes") -> None:
        self._store = store
        self._wording: Wording = wording

    async def versions(self) -> dict[str, str]:
        """By server, what changes when a tool is accepted or pins are forgotten, by any process: to be looked at often.

        Raises:
            StoreError: They can't be read.
        """
        facts = await self._store.recall_all(_VERSIONS)
        return {server: str(fact.get(_VERSION)) if fact else "" for server, fact in facts.items()}

    async def check(self, server: str, items: Iterable[Item]) -> Checked:
        """Hold the tools that a server lists against their pins, and record those that are new. Never raises.

        Where the pins can't be read, every tool is closed; where a new one can't be recorded, it is.
        """
        listed = _by_name(items)
        try:
            facts = await self._store.recall_all(_pins(server))
        except StoreError as error:
            reason = f"the pins can't be read: {error.message}"
            return Checked(server, {name: PinState(name, "unreadable", reason=reason) for name in listed})
        states: dict[str, PinState] = {}
        new: dict[str, Definition] = {}
        for number, (name, found) in enumerate(listed.items(), start=1):
            if number % _BATCH == 0:
                # Thousands of definitions take a second or more; others shall have their turn.
                await anyio.lowlevel.checkpoint()
            try:
                if name in facts:
                    states[name] = await self._against(server, name, found, facts[name])
                else:
                    new[name] = _definition(name, found)
            except UnreadableDefinition as error:
                states[name] = PinState(name, "unreadable", reason=str(error))
        states |= await self._record(server, new, facts)
        return Checked(
            server,
            {name: states[name] for name in listed},
            tuple(sorted(facts.keys() - listed.keys())),
            first=not facts,
        )

    async def accept(self, checked: Checked, names: Collection[str] | None = None) -> tuple[str, ...]:
        """Take tools as they stand in `checked`, which is what the owner saw: some, or with None all that changed.

        All of them or none. Gives the names that were changed.

        Raises:
            NotFound: The server doesn't list a tool of that name.
            Conflict: A pin, or what is listed, isn't any more what was shown.
            StoreError: It can't be written.
        """
        server = checked.server
        differing = {name for name, one in checked.tools.items() if one.closed or one.state == "reworded"}
        wanted = sorted(differing if names is None else set(names))
        chosen: dict[str, Definition] = {}
        for name in wanted:
            state = checked.tools.get(name)
            if state is None:
                raise NotFound(f"the server {server!r} lists no tool {shown(name)}")
            if name not in differing:
                continue
            if state.definition is None:
                if names is None:
                    continue
                raise Conflict(f"{shown(name)} can't be accepted: {state.reason}")
            chosen[name] = state.definition
        if not chosen:
            return ()
        facts = await self._store.recall_all(_pins(server))
        kept = await self._keep(server, chosen, facts)
        changes: dict[str, tuple[Mapping[str, Any] | None, Mapping[str, Any]]] = {}
        for name, definition in chosen.items():
            before = facts.get(name)
            now = Pin.read(before)
            if now is not None and now.digest == definition.digest:
                continue  # Somebody accepted the very same.
            if (now.digest if now else None) != checked.tools[name].pinned:
                raise Conflict(f"the pin of {shown(name)} changed meanwhile", hint=_AGAIN)
            changes[name] = (before, _pin(definition, kept.get(name, 0), accepted=True).fact())
        if not changes:
            return ()
        if not await self._store.exchange(_pins(server), changes):
            raise Conflict(f"pins of {server!r} changed meanwhile", hint=_AGAIN)
        await self._drop_unused(server)
        await self._moved(server)
        return tuple(changes)

    async def forget(self, server: str) -> int:
        """Drop all pins of a server, by the owner's wish: what it lists then is seen for the first time.

        Raises:
            StoreError: It can't be written.
        """
        count = await self._store.forget_all(_pins(server))
        await self._store.forget_all(_definitions(server))
        await self._moved(server)
        return count

    async def _against(self, server: str, name: str, found: list[Item], fact: Mapping[str, Any] | None) -> PinState:
        pin = Pin.read(fact)
        if pin is not None and len(found) == 1 and raw_digest(found[0].raw)[0] == pin.raw:
            return PinState(name, "open")
        definition = _definition(name, found)
        if pin is None:
            return PinState(name, "unreadable", reason="its pin can't be read", definition=definition)
        if definition.digest == pin.digest:
            return PinState(name, "open", definition=definition)
        old = None
        if pin.kept:
            try:
                old = await self._store.recall(_definitions(server), pin.digest)
            except (StoreError, ValueError, RecursionError):
                old = None
        changed = difference(old, definition)
        if not changed:
            return PinState(name, "open", definition=definition)
        if changed.wording_only and self._wording == "shows":
            return PinState(name, "reworded", changed, definition=definition, pinned=pin.digest)
        kinds = ", ".join(sorted(changed.kinds)) or "it isn't known what"
        reason = f"its definition changed ({kinds}) since it was pinned"
        return PinState(name, "changed", changed, reason, definition, pin.digest)

    async def _record(
        self, server: str, new: Mapping[str, Definition], facts: Mapping[str, Mapping[str, Any] | None]
    ) -> dict[str, PinState]:
        states: dict[str, PinState] = {}
        left = max(0, MOST_PINS - len(facts))
        for name in list(new)[left:]:
            states[name] = PinState(
                name, "unreadable", reason=f"its server has had {MOST_PINS} tools, and that is the most"
            )
        chosen = {name: new[name] for name in list(new)[:left]}
        if not chosen:
            return states
        try:
            kept = await self._keep(server, chosen, facts)
            stands = await self._store.claim(
                _pins(server),
                {name: _pin(one, kept.get(name, 0), accepted=False).fact() for name, one in chosen.items()},
            )
        except StoreError as error:
            reason = f"it can't be recorded: {error.message}"
            return states | {name: PinState(name, "unreadable", reason=reason) for name in chosen}
        for name, one in chosen.items():
            pin = Pin.read(stands[name])
            if pin is not None and pin.digest == one.digest:
                states[name] = PinState(name, "new", definition=one)
            else:
                # Another process saw another definition first.
                reason = "another definition of it was recorded first"
                untold = Difference((), told=False)
                state = "changed" if pin else "unreadable"
                states[name] = PinState(name, state, untold, reason, one, pin.digest if pin else None)
        return states

    async def _keep(
        self, server: str, chosen: Mapping[str, Definition], facts: Mapping[str, Mapping[str, Any] | None]
    ) -> dict[str, int]:
        """Keep definitions whole as far as there is room; the bytes of each that is."""
        room = MOST_KEPT - sum(pin.kept for fact in facts.values() if (pin := Pin.read(fact)) is not None)
        kept: dict[str, int] = {}
        for name, one in chosen.items():
            if one.size <= min(room, LONGEST_KEPT):
                kept[name] = one.size
                room -= one.size
        await self._store.claim(_definitions(server), {chosen[name].digest: chosen[name].tree for name in kept})
        return kept

    async def _drop_unused(self, server: str) -> None:
        pins = (Pin.read(fact) for fact in (await self._store.recall_all(_pins(server))).values())
        used = {pin.digest for pin in pins if pin is not None}
        unused = (await self._store.recall_all(_definitions(server))).keys() - used
        await self._store.forget_all(_definitions(server), unused)

    async def _moved(self, server: str) -> None:
        await self._store.remember(_VERSIONS, server, {_VERSION: datetime.now(UTC).isoformat()})


def _by_name(items: Iterable[Item]) -> dict[str, list[Item]]:
    found: dict[str, list[Item]] = {}
    for item in items:
        found.setdefault(item.name, []).append(item)
    return found


def _definition(name: str, found: list[Item]) -> Definition:
    if len(found) > 1:
        raise UnreadableDefinition(f"it is listed {len(found)} times")
    return read_definition(name, found[0].raw)


def _pin(definition: Definition, kept: int, *, accepted: bool) -> Pin:
    at = datetime.now(UTC).isoformat(timespec="seconds")
    return Pin(definition.digest, definition.raw, kept, at, accepted)


def _pins(server: str) -> str:
    return f"pins:{server}"


def _definitions(server: str) -> str:
    return f"definitions:{server}"
