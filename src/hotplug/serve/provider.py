"""What stands behind a runtime: something that does the parts of one profile."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, cast

from hotplug.profile import Definition, Determinism, Extension, Part, Profile, Sense
from hotplug.store import Store

__all__ = ["Memory", "NativeProvider", "ProjectionRef", "Provider", "providers_of"]


@dataclass(frozen=True)
class ProjectionRef:
    """Which projection stands between, by id, version and digest."""

    id: str
    version: str
    digest: str

    def document(self) -> dict[str, str]:
        return {"id": self.id, "version": self.version, "digest": self.digest}


class Memory:
    """What a provider knows of its own earlier writes, kept in the store over restarts."""

    def __init__(self, store: Store, identity: str) -> None:
        self._store = store
        self._scope = f"provider:{identity}"

    async def put(self, name: str, value: Mapping[str, Any] | None) -> None:
        """Remember a small fact; None forgets it."""
        await self._store.remember(self._scope, name, value)

    async def get(self, name: str) -> dict[str, Any] | None:
        """The fact remembered last."""
        return await self._store.recall(self._scope, name)


class Provider(Protocol):
    """Does the parts of one profile; the runtime in front validates, seals, records and answers.

    `takes` says in which form arguments arrive: `typed` values for a method of a class, or `wire` JSON.
    """

    @property
    def definition(self) -> Definition: ...

    @property
    def implemented(self) -> frozenset[str]: ...

    @property
    def facets(self) -> frozenset[str]: ...

    @property
    def extensions(self) -> tuple[type[Extension], ...]: ...

    @property
    def takes(self) -> Literal["typed", "wire"]: ...

    @property
    def title(self) -> str: ...

    @property
    def instance(self) -> str:
        """Changes when what it names is replaced."""
        ...

    @property
    def emits(self) -> frozenset[str]:
        """The events that it really tells of."""
        ...

    @property
    def senses(self) -> Mapping[str, Sense]:
        """Senses that it watches besides those of its events, or with less weight than they have by default."""
        ...

    @property
    def determinism(self) -> Determinism: ...

    @property
    def projection(self) -> ProjectionRef | None: ...

    @property
    def atomic(self) -> bool:
        """Whether effects commit in the store's own transaction (see `Call.commit_in`)."""
        ...

    @property
    def notes(self) -> Mapping[str, Any]:
        """What `connection.describe` says besides: coverage, reasons."""
        ...

    async def invoke(self, part: Part, arguments: Mapping[str, Any]) -> Any: ...

    def join(self, emit: Any, memory: Memory) -> None:
        """Take the function to which events are given, and the memory."""
        ...

    async def aopen(self) -> None: ...

    async def aclose(self) -> None: ...


@dataclass
class NativeProvider:
    """A native server's instance, one profile of it.

    The instance may have `title`, `instance`, `emits`, `senses`, `determinism`, `commits_with_store`, `file`, and async
    `aopen`, `aclose` and `anotes` (a mapping: what `connection.describe` says besides, looked up anew each time).
    """

    server: Profile
    profile: type[Profile]
    takes: Literal["typed", "wire"] = field(default="typed", init=False)
    projection: ProjectionRef | None = field(default=None, init=False)
    _emit: Any = field(default=None, init=False, repr=False)

    @property
    def definition(self) -> Definition:
        return self.profile.definition

    @property
    def implemented(self) -> frozenset[str]:
        return type(self.server).implemented

    @property
    def facets(self) -> frozenset[str]:
        return type(self.server).facets & frozenset(self.definition.all_facets)

    @property
    def extensions(self) -> tuple[type[Extension], ...]:
        return type(self.server).extensions()

    @property
    def title(self) -> str:
        return str(getattr(self.server, "title", type(self.server).__name__))

    @property
    def instance(self) -> str:
        return str(getattr(self.server, "instance", "default"))

    @property
    def emits(self) -> frozenset[str]:
        """The events that the server says it emits, else those that every server of the profile has."""
        said = getattr(self.server, "emits", None)
        if said is not None:
            return frozenset(cast("frozenset[str]", said))
        events = (one for one in self.definition.all_parts.values() if one.kind == "event" and one.flags.required)
        return frozenset(one.name for one in events)

    @property
    def senses(self) -> Mapping[str, Sense]:
        return cast("Mapping[str, Sense]", getattr(self.server, "senses", {}))

    @property
    def determinism(self) -> Determinism:
        return cast("Determinism", getattr(self.server, "determinism", self.definition.determinism))

    @property
    def atomic(self) -> bool:
        return bool(getattr(self.server, "commits_with_store", False))

    @property
    def file(self) -> Path | None:
        """The database file with the server's tables, where it says one: effects commit together with a store in it."""
        return cast("Path | None", getattr(self.server, "file", None))

    @property
    def notes(self) -> Mapping[str, Any]:
        return {}

    async def anotes(self) -> Mapping[str, Any]:
        """What the server says now of itself, where it does."""
        return cast("Mapping[str, Any]", await _maybe(self.server, "anotes") or {})

    async def invoke(self, part: Part, arguments: Mapping[str, Any]) -> Any:
        method = getattr(self.server, part.method)
        return await method(**arguments)

    def join(self, emit: Any, memory: Memory) -> None:
        self._emit = emit
        self.server._emitter = emit  # pyright: ignore[reportPrivateUsage]  # the profile's half of the same mechanism

    async def aopen(self) -> None:
        await _maybe(self.server, "aopen")
        self._listen(self._emit)

    async def aclose(self) -> None:
        self._listen(None)
        await _maybe(self.server, "aclose")

    def _listen(self, emit: Any) -> None:
        """Be told by the server, or with None not any more; the profiles of one server are told together."""
        others = tuple(one for one in self.server._emitters if one != self._emit)  # pyright: ignore[reportPrivateUsage]  # as in `join`
        self.server._emitters = (*others, emit) if emit is not None else others  # pyright: ignore[reportPrivateUsage]


async def _maybe(server: Profile, name: str) -> Any:
    method = getattr(server, name, None)
    if method is None:
        return None
    found = method()
    return await found if inspect.isawaitable(found) else found


def providers_of(servers: Sequence[Profile | Provider]) -> list[Provider]:
    """A provider for each profile of each server."""
    found: list[Provider] = []
    for server in servers:
        if isinstance(server, Profile):
            found.extend(NativeProvider(server, profile) for profile in type(server).profiles())
        else:
            found.append(server)
    return found
