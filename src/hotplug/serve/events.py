"""Events of a server: durable ones in the store, live ones kept while a window is open."""

from __future__ import annotations

import base64
import hashlib
import json
import logging
import secrets
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast

import anyio

from hotplug.errors import HotplugError, InvalidArgument
from hotplug.profile import Event, Extra, Flags, Model
from hotplug.serve.call import Call, current_call
from hotplug.serve.provider import Provider

if TYPE_CHECKING:
    from hotplug.serve.runtime import Runtime

__all__ = ["EventLog", "Page", "Window"]

_log = logging.getLogger(__name__)

_LIVE_KEPT = 2_000
"""Live events kept at the most; a window that lost some says so in its coverage."""


@dataclass
class Window:
    """A stretch of time in which live events are kept."""

    id: str
    opened_at: str
    opened: float
    deadline: float
    first: int
    closes: list[str] | None = None
    lost: bool = False


@dataclass
class Page:
    """Some events, the cursor after them, and whether others may have been missed."""

    events: list[dict[str, Any]]
    cursor: str
    missed: bool


@dataclass
class EventLog:
    """What happened at the servers of a runtime.

    A cursor names a place among durable events (in the store) and one among live events (in this process's life).

    A happening is told once. Of two events of one kind about it the second isn't kept (for as long as the first is).
    Of two of different kinds both are, since who asks for one kind has to be told of it too; who asks for both is given
    the earlier one, and what stands before a cursor counts as given. A live event may be given before a durable one
    that is only then stored: they have the same `happening`, by which a client leaves out the second.
    """

    runtime: Runtime
    epoch: str = field(default_factory=lambda: secrets.token_urlsafe(6))
    live: deque[tuple[int, dict[str, Any]]] = field(default_factory=lambda: deque(maxlen=_LIVE_KEPT))
    windows: dict[str, Window] = field(default_factory=dict[str, Window])
    unsaid: set[str] = field(default_factory=set[str])
    """Events that were emitted by servers that don't say that they emit them."""
    _count: int = 0
    _lost: int = 0
    _bell: anyio.Event | None = None

    @property
    def stream(self) -> str:
        """The name of the durable stream in the store."""
        return f"events:{self.runtime.identity}"

    async def emit(self, event: Event, extras: Sequence[Model], happening: str | None, kept: set[Any]) -> None:
        """What a provider's server emits with; takes what `Profile.emit` takes.

        Args:
            kept: The streams in which the event is kept already: runtimes of one server may share a store.
        """
        name, flags, owner = self._owner(event)
        if name not in owner.emits and name not in self.unsaid:
            # What it tells of has happened: that isn't undone by a fault of the declaration.
            self.unsaid.add(name)
            _log.warning(
                "%s emits %s and doesn't say so, so nobody can count on it: add it to the server's `emits`",
                owner.title,
                name,
            )
        try:
            call: Call | None = current_call()
        except HotplugError:
            call = None
        record = self.record(event, call, extras=extras, happening=happening)
        if flags.replay == "live":
            self.add_live(record)
            return
        store = self.runtime.store
        place = getattr(store, "file", None) or id(store), self.stream
        if place not in kept:
            kept.add(place)
            await store.append_event(self.stream, record)

    def _owner(self, event: Event) -> tuple[str, Flags, Provider]:
        """Which event it is, and whose: a server of several profiles emits with one function.

        Raises:
            HotplugError: It is no event of what is served here.
        """
        flags = type(event).part
        if flags is None or flags.name is None:
            raise HotplugError(f"{type(event).__name__} is no event of a profile", hint="emit one of its event classes")
        for provider in self.runtime.providers:
            if flags.name in provider.definition.all_parts:
                return flags.name, flags, provider
        raise HotplugError(f"{flags.name} is no event of what is served here", hint="emit one of its profiles' events")

    def record(
        self,
        event: Event,
        call: Call | None,
        *,
        extras: Sequence[Model] = (),
        happening: str | None = None,
    ) -> dict[str, Any]:
        """The event as it is kept: with the server's handles, which `shown` seals for whoever reads it."""
        name, flags, owner = self._owner(event)
        payload = cast("dict[str, Any]", owner.definition.all_parts[name].output.write(event))
        if extras:
            payload = {**payload, "ext": _written(extras, _extras_of(owner, name), name)}
        record: dict[str, Any] = {
            "id": f"ev_{secrets.token_urlsafe(12)}",
            "type": name,
            "at": datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "sense": flags.sense or "state",
            "payload": payload,
            "instance": owner.instance,
        }
        if call is not None and call.action_id is not None:
            record["actionId"] = call.action_id
        told_of = happening if happening is not None else event.happening()
        if told_of is not None:
            # A digest: what the server calls it may hold handles of its own.
            named = json.dumps([self.runtime.identity, owner.instance, told_of]).encode()
            digest = hashlib.sha256(named).digest()[:18]
            record["happening"] = f"h_{base64.urlsafe_b64encode(digest).decode()}"
        return record

    def shown(self, record: Mapping[str, Any], principal: str) -> dict[str, Any]:
        """The event as `connection.events` gives it: refs are those of who reads, in the summary too."""
        # A server of ours always says what an event tells of: where it doesn't know, of itself only.
        record = {"happening": record["id"], **record}
        owner = next((one for one in self.runtime.providers if record["type"] in one.definition.all_parts), None)
        if owner is None:  # an older build of the server had this kind
            return {**record, "summary": record["type"]}
        part = owner.definition.all_parts[record["type"]]
        kept = dict(cast("Mapping[str, Any]", record["payload"]))
        ext = cast("Mapping[str, Any]", kept.pop("ext", {}))
        seal = self.runtime.seal(principal)
        payload = cast("dict[str, Any]", part.output.write(part.output.read(kept, strict=False), refs=seal))
        summary = getattr(part.output.read(payload, strict=False), "summary", None)
        shown = {
            id_: extra.shape.write(extra.shape.read(ext[id_], strict=False), refs=seal)
            for id_, extra in _extras_of(owner, part.name).items()
            if id_ in ext
        }
        if shown:
            payload["ext"] = shown
        return {**record, "payload": payload, "summary": str(summary()) if callable(summary) else record["type"]}

    def add_live(self, record: Mapping[str, Any]) -> None:
        """Keep a live event if a window is open; it is nobody's otherwise."""
        if any(_same_kind_and_happening(one, record) for _, one in self.live):
            return
        self._count += 1
        if self.windows:
            if len(self.live) == _LIVE_KEPT:
                self._lost = self.live[0][0]
                for window in self.windows.values():
                    window.lost = window.lost or window.first <= self._lost
            self.live.append((self._count, dict(record)))
        if self._bell is not None:
            self._bell.set()
            self._bell = None

    @property
    def count(self) -> int:
        """How many live events there have been in this process."""
        return self._count

    async def here(self) -> str:
        """The cursor after everything that has happened so far."""
        return self._cursor(await self.runtime.store.end_of_events(self.stream), self._count)

    async def after(
        self,
        cursor: str | None,
        *,
        types: list[str] | None,
        where: Mapping[str, Any] | None,
        wait_ms: int,
        limit: int,
        principal: str = "local",
    ) -> Page:
        """Events after a cursor; without one, durable events from the oldest kept and live ones from now on.

        Raises:
            InvalidArgument: The cursor isn't one of this stream's.
        """
        durable, live, epoch = self._read(cursor)
        # Only who asks for live events can have missed those of a process that is gone.
        gone = epoch not in {"", self.epoch} and self._has_live(types)
        deadline = anyio.current_time() + wait_ms / 1000
        while True:
            kept = await self.runtime.store.events_after(self.stream, durable, limit=limit, types=types)
            fresh = [(at, one) for at, one in self.live if at > live][: max(0, limit - len(kept.events))]
            missed = kept.missed or gone or (live < self._lost and self._has_live(types))
            placed = [(self._cursor(at, live), one) for at, one in zip(kept.cursors, kept.events, strict=True)]
            placed += [(self._cursor(kept.cursor, at), one) for at, one in fresh if not types or one["type"] in types]
            # What was looked at and isn't wanted is not looked at again.
            durable = kept.cursor
            live = fresh[-1][0] if fresh else max(live, self._count if len(kept.events) < limit else live)
            events: list[dict[str, Any]] = []
            for place, one in placed:
                shown = self.shown(one, principal)
                if _fits(shown, where) and not await self._told_before(one, types, where, principal):
                    events.append({**shown, "cursor": place})
            left = deadline - anyio.current_time()
            if events or missed or left <= 0:
                return Page(events, self._cursor(durable, live), missed)
            if len(kept.events) < limit:
                with anyio.move_on_after(left):
                    await self._changed(durable, live, left)

    async def _told_before(
        self, record: Mapping[str, Any], types: list[str] | None, where: Mapping[str, Any] | None, principal: str
    ) -> bool:
        """Whether an earlier event that the asker wants as well tells of the same happening."""
        happening = record.get("happening")
        if happening is None:
            return False
        earlier = [*await self.runtime.store.events_of(self.stream, happening)]
        earlier += [one for _, one in self.live if one.get("happening") == happening]
        for one in earlier:
            if one["id"] == record["id"]:
                return False
            if (not types or one["type"] in types) and _fits(self.shown(one, principal), where):
                return True
        return False

    def _has_live(self, types: list[str] | None) -> bool:
        """Whether kinds that are asked for, or any where none is named, are live ones."""
        return any(
            part.kind == "event" and part.flags.replay == "live" and (types is None or part.name in types)
            for provider in self.runtime.providers
            for part in provider.definition.all_parts.values()
        )

    async def _changed(self, durable: str, live: int, timeout: float) -> None:  # noqa: ASYNC109  # a wait, not a cancellation
        """Wait for anything after a place."""
        if self._count > live:
            return
        bell = self._bell = self._bell or anyio.Event()
        async with anyio.create_task_group() as tasks:

            async def rung() -> None:
                await bell.wait()
                tasks.cancel_scope.cancel()

            async def stored() -> None:
                await self.runtime.store.wait_for_event(self.stream, durable, timeout)
                tasks.cancel_scope.cancel()

            tasks.start_soon(rung)
            tasks.start_soon(stored)

    def _cursor(self, durable: str | None, live: int) -> str:
        return json.dumps([durable, live, self.epoch], separators=(",", ":"))

    def _read(self, cursor: str | None) -> tuple[str | None, int, str]:
        if cursor is None:
            return None, self._count, ""
        try:
            durable, live, epoch = json.loads(cursor)
        except (ValueError, TypeError, RecursionError):
            raise InvalidArgument(f"{cursor[:60]!r} is no cursor of this server", hint="use one that it gave") from None
        if not isinstance(live, int) or not isinstance(epoch, str) or not isinstance(durable, str | None):
            raise InvalidArgument(f"{cursor[:60]!r} is no cursor of this server", hint="use one that it gave")
        return durable, live if epoch == self.epoch else 0, epoch


def _fits(record: Mapping[str, Any], where: Mapping[str, Any] | None) -> bool:
    payload = cast("dict[str, Any]", record["payload"])
    return all(payload.get(key) == value for key, value in (where or {}).items())


def _same_kind_and_happening(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return "happening" in other and one.get("happening") == other["happening"] and one["type"] == other["type"]


def _extras_of(provider: Provider, part: str) -> dict[str, Extra]:
    """What a provider's extensions add to an event, by their ids."""
    return {one.id: one.extras[part] for one in provider.extensions if part in one.extras}


def _written(extras: Iterable[Model], known: Mapping[str, Extra], part: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for one in extras:
        id_ = next((id_ for id_, extra in known.items() if isinstance(one, extra.model)), None)
        if id_ is None:
            raise HotplugError(
                f"{type(one).__name__} is nothing that this server's extensions add to {part}",
                hint=f"they add {', '.join(extra.model.__name__ for extra in known.values()) or 'nothing'}",
            )
        found[id_] = known[id_].shape.write(one)
    return found
