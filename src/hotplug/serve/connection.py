"""The provider of connection@1, in every runtime."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Literal

import anyio

from hotplug.catalog.connection import (
    BlindSpot,
    Connection,
    Coverage,
    Described,
    EventRecord,
    Events,
    MissingPart,
    SenseWorth,
    WindowClosed,
    WindowOpened,
)
from hotplug.errors import NotFound, Unsupported
from hotplug.profile import Definition, Determinism, Extension, Part, Sense
from hotplug.profile.senses import SENSES
from hotplug.serve.call import current_call
from hotplug.serve.events import EventLog, Window
from hotplug.serve.provider import Memory, NativeProvider, ProjectionRef, Provider

if TYPE_CHECKING:
    from hotplug.serve.runtime import Runtime

__all__ = ["Acting", "ConnectionParts", "without_of"]

_LONGEST_BUDGET_MS: Final = 600_000


class ConnectionParts:
    """Describes the runtime, keeps its windows and gives its events."""

    takes: Literal["typed", "wire"] = "typed"
    definition: Definition = Connection.definition
    implemented: frozenset[str] = frozenset(
        {"connection.describe", "connection.window.open", "connection.window.close", "connection.events"}
    )
    facets: frozenset[str] = frozenset()
    extensions: tuple[type[Extension], ...] = ()
    title = "connection"
    instance = ""
    emits: frozenset[str] = frozenset()
    senses: Mapping[str, Sense] = {}  # empty and read only
    determinism: Determinism = Connection.definition.determinism
    projection: ProjectionRef | None = None
    atomic = False
    notes: Mapping[str, Any] = {}  # empty and read only

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self.events = EventLog(runtime)
        self.acting = Acting()

    async def invoke(self, part: Part, arguments: Mapping[str, Any]) -> Any:
        match part.name:
            case "connection.describe":
                return await self._describe()
            case "connection.window.open":
                return await self._open(arguments["budget_ms"], arguments.get("closes"))
            case "connection.window.close":
                return await self._close(arguments["window"])
            case _:
                return await self._poll(arguments)

    def join(self, emit: Any, memory: Memory) -> None:
        """Nothing is emitted here."""

    async def aopen(self) -> None:
        """Nothing to open."""

    async def aclose(self) -> None:
        """Nothing to close."""

    def _check_told(self, name: str) -> None:
        """Refuse to listen for what no provider can tell: silence would read as "nothing happens" (FR-25)."""
        owners = [one for one in self._runtime.providers if name in one.definition.all_parts]
        if not owners or name in self.events.unsaid or any(name in one.emits for one in owners):
            return
        part = owners[0].definition.all_parts[name]
        without = without_of(part, [one.definition for one in owners])
        raise Unsupported(
            f"{owners[0].title} can't tell of {name}" + (f": {without}" if without else ""), details={"part": name}
        )

    async def _describe(self) -> Described:
        providers = self._runtime.providers
        missing = [
            MissingPart(part=part.name, without=without_of(part, [provider.definition]))
            for provider in providers
            for part in provider.definition.all_parts.values()
            if part.kind != "event" and part.name not in provider.implemented
        ]
        notes: dict[str, Any] = {}
        for provider in providers:
            notes.update(provider.notes)
            if isinstance(provider, NativeProvider):
                notes.update(await provider.anotes())
        return Described(
            surface=providers[0].title if providers else self._runtime.name,
            instance=providers[0].instance if providers else "",
            epoch=self.events.epoch,
            senses={name: SenseWorth.model_validate(worth.document()) for name, worth in self._watched().items()},
            declaration=dict(self._runtime.declaration.to_extensions()),
            determinism=providers[0].determinism.document() if providers else {},
            missing=missing,
            notes=notes or None,
        )

    async def _open(self, budget_ms: int, closes: list[str] | None) -> WindowOpened:
        now = anyio.current_time()
        for id_, window in list(self.events.windows.items()):
            if window.deadline + _LONGEST_BUDGET_MS / 1000 < now:
                del self.events.windows[id_]
        window = Window(
            id=f"w_{secrets.token_urlsafe(9)}",
            opened_at=_now(),
            opened=now,
            deadline=now + min(budget_ms, _LONGEST_BUDGET_MS) / 1000,
            first=self.events.count + 1,
            closes=closes,
        )
        self.events.windows[window.id] = window
        return WindowOpened(window=window.id, cursor=await self.events.here())

    async def _close(self, id_: str) -> WindowClosed:
        window = self.events.windows.get(id_)
        if window is None:
            raise NotFound(f"there is no window {id_!r}", hint="it was closed, or its server was restarted")
        # What was asked for in the window is answered, or the window's time is over.
        await self.acting.nothing(until=window.deadline)
        self.events.windows.pop(id_, None)
        spots: list[BlindSpot] = []
        if self.acting.count:
            spots.append(
                BlindSpot(
                    kind="still-in-flight",
                    detail=f"{self.acting.count} operations were still under way when the window was closed",
                    impeaching=True,
                    remedy="give the window a longer budget",
                )
            )
        watched = self._watched()
        if window.lost:
            spots.extend(
                BlindSpot(
                    kind="buffer-truncated",
                    sense=sense,
                    detail="more live events than are kept: the oldest are gone",
                    remedy="read the events while the window is open",
                )
                for sense in sorted(watched)
            )
        unmeasurable = window.closes is not None and "ack" not in window.closes
        if unmeasurable:
            spots.append(
                BlindSpot(
                    kind="channel-unobserved",
                    sense="time",
                    detail=f"none of {', '.join(window.closes or ())} can be measured here; the window ended on ack",
                )
            )
        over = bool(self.acting.count) or anyio.current_time() > window.deadline
        return WindowClosed(
            closed_by="budget-exhausted" if over else "ack",
            unmeasurable=True if unmeasurable else None,
            opened_at=window.opened_at,
            closed_at=_now(),
            coverage=Coverage(senses=sorted(watched), blind_spots=spots or None),
        )

    def _watched(self) -> dict[str, Sense]:
        """The senses that are watched: of events that are emitted, and those that a provider states."""
        found: dict[str, Sense] = {}
        for provider in self._runtime.providers:
            parts = provider.definition.all_parts
            for name in sorted(provider.emits):
                sense = parts[name].flags.sense if name in parts else None
                worth = _worth(provider, sense) if sense else None
                if sense and worth:
                    found[sense] = worth
            found.update(provider.senses)
        return found

    async def _poll(self, arguments: Mapping[str, Any]) -> Events:
        for name in arguments.get("types") or ():
            self._check_told(name)
        page = await self.events.after(
            arguments.get("cursor"),
            types=arguments.get("types"),
            where=arguments.get("where"),
            wait_ms=arguments.get("wait_ms", 0),
            limit=arguments.get("limit", 100),
            principal=current_call().principal,
        )
        return Events(
            events=[EventRecord.model_validate(one) for one in page.events],
            cursor=page.cursor,
            missed=True if page.missed else None,
        )


class Acting:
    """How many effectful operations are under way."""

    def __init__(self) -> None:
        self.count = 0
        self._idle: anyio.Event | None = None

    def began(self) -> None:
        self.count += 1

    def ended(self) -> None:
        self.count -= 1
        if self.count == 0 and self._idle is not None:
            self._idle.set()
            self._idle = None

    async def nothing(self, *, until: float) -> None:
        """Wait until none is, at most until that moment."""
        with anyio.move_on_at(until):
            while self.count:
                self._idle = self._idle or anyio.Event()
                await self._idle.wait()


def _worth(provider: Provider, sense: str) -> Sense | None:
    for definition in provider.definition.lineage():
        if sense in definition.senses:
            return definition.senses[sense]
    return SENSES.get(sense)


def without_of(part: Part, definitions: Sequence[Definition]) -> str | None:
    """What a user loses without a part: as it says itself, or as its facet says."""
    if part.flags.without:
        return part.flags.without
    facets = (one.all_facets.get(part.flags.facet or "") for one in definitions if part.name in one.all_parts)
    return next((facet.without for facet in facets if facet), None)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
