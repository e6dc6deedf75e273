"""Names that were once given, kept over restarts and shared by the processes of one store."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final, Literal, TypeAlias

import anyio

from hotplug.errors import StoreError
from hotplug.gateway.config import NameStyle
from hotplug.gateway.names import PROFILE_PARTS, Assigned, Collisions, Holder, Wanted, assign, assign_prompts
from hotplug.gateway.uris import assign_uris
from hotplug.store import Store

__all__ = ["Names"]

_Sort: TypeAlias = Literal["tools", "prompts", "resources", "templates"]

_TRIES: Final = 20
_UNREADABLE: Final[Holder] = ("", "")
"""Holds a name whose entry can't be read: nothing has this holder, so nothing gets the name."""


class Names:
    """Gives names (see `assign`, `assign_prompts`, `assign_uris`), and remembers them before it says them.

    What was given in one style is known in that style only. One of these serves any number of callers at once; what
    another process gave is noticed when it matters.

    Args:
        store: Where they are kept.
        client_prefix: Characters of the 64 that clients put before each name.
        reserved: Parts of every profile that is known here: those of the catalog, and the owner's own.
        collisions: As of `assign`.
    """

    def __init__(
        self,
        store: Store,
        *,
        client_prefix: int,
        reserved: Collection[str] = PROFILE_PARTS,
        collisions: Collisions = "refuse",
    ) -> None:
        self._store = store
        self._client_prefix = client_prefix
        self._reserved = frozenset(reserved)
        self._collisions: Collisions = collisions
        self._known: dict[str, dict[str, Holder]] = {}
        self._lock = anyio.Lock()

    async def tools(self, wanted: Iterable[Wanted], style: NameStyle) -> Assigned:
        """Names of tools, in a style.

        Raises:
            NamesCollide: As `assign`.
            StoreError: They can't be remembered; then nobody has to see them.
        """
        items = tuple(wanted)

        def give(known: Mapping[str, Holder]) -> Assigned:
            return assign(
                items,
                style=style,
                client_prefix=self._client_prefix,
                known=known,
                reserved=self._reserved,
                collisions=self._collisions,
            )

        return await self._settle(_scope("tools", style), give)

    async def prompts(self, wanted: Iterable[Wanted], style: NameStyle) -> Assigned:
        """Names of prompts, in a style. Raises `StoreError`."""
        items = tuple(wanted)

        def give(known: Mapping[str, Holder]) -> Assigned:
            return assign_prompts(items, style=style, client_prefix=self._client_prefix, known=known)

        return await self._settle(_scope("prompts", style), give)

    async def uris(self, wanted: Iterable[Holder], sort: Literal["resources", "templates"]) -> Assigned:
        """Forms of URIs or templates. Raises `StoreError`."""
        items = tuple(wanted)
        return await self._settle(_scope(sort), lambda known: assign_uris(items, known=known))

    async def forget(self, server: str) -> int:
        """Free every name of a server, by the owner's wish alone: whoever was granted one may find another tool there.

        Answers how many there were. Raises `StoreError`.
        """
        freed = 0
        async with self._lock:
            for scope in (
                *(_scope(sort, style) for sort in ("tools", "prompts") for style in ("dotted", "underscored")),
                *(_scope(sort) for sort in ("resources", "templates")),
            ):
                known = _read(await self._store.recall_all(scope))
                mine = [name for name, holder in known.items() if holder[0] == server and server]
                freed += await self._store.forget_all(scope, mine)
            self._known.clear()
        return freed

    async def _settle(self, scope: str, give: Callable[[Mapping[str, Holder]], Assigned]) -> Assigned:
        known = self._known.get(scope)
        if known is not None and not (found := give(known)).new:
            return found
        async with self._lock:
            for _ in range(_TRIES):
                known = self._known.get(scope)
                if known is None:
                    known = self._known[scope] = _read(await self._store.recall_all(scope))
                found = give(known)
                if not found.new:
                    return found
                stands = await self._store.claim(scope, {name: _entry(one) for name, one in found.new.items()})
                now = _read(stands)
                known.update(now)
                if all(now[name] == holder for name, holder in found.new.items()):
                    return found
                # Another process gave some of these names meanwhile, and maybe more.
                del self._known[scope]
        raise StoreError("other processes took names faster than this one could")


def _scope(sort: _Sort, style: NameStyle | None = None) -> str:
    return f"names:{sort}:{style}" if style else f"names:{sort}"


def _entry(holder: Holder) -> dict[str, Any]:
    return {"server": holder[0], "own": holder[1]}


def _read(entries: Mapping[str, Mapping[str, Any] | None]) -> dict[str, Holder]:
    return {name: _UNREADABLE if entry is None else _holder(entry) for name, entry in entries.items()}


def _holder(entry: Mapping[str, Any]) -> Holder:
    server, own = entry.get("server"), entry.get("own")
    return (server, own) if isinstance(server, str) and isinstance(own, str) else _UNREADABLE
