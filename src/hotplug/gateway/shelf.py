"""What one link's server offers, read when it is needed and kept while it holds."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from hotplug.gateway.asking import ask, listen_to
from hotplug.gateway.catalog import KINDS, Catalog, Listing, ListKind
from hotplug.gateway.link import LinkLost
from hotplug.gateway.message import Message, split
from hotplug.gateway.pooled import PooledLink
from hotplug.gateway.reading import catalog_of, declared, notifies, read_listing
from hotplug.gateway.tasks import Tasks

__all__ = ["Shelf"]

AGAIN: Final = 1.0
"""Seconds for which a list may be used whose server neither tells of changes nor says how long it holds."""
_ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"
_ACK_LIMIT: Final = 2.0
_FIRST_PAUSE: Final = 0.5
_LONGEST_PAUSE: Final = 60.0
_STEADY: Final = 20.0
"""Seconds for which a stream has to last to be opened again without a longer pause: each time all lists are read."""
_OF_NOTICE: Final[Mapping[str, tuple[ListKind, ...]]] = {
    "notifications/tools/list_changed": ("tools",),
    "notifications/prompts/list_changed": ("prompts",),
    "notifications/resources/list_changed": ("resources", "templates"),
}
_FILTER: Final[Mapping[ListKind, str]] = {
    "tools": "toolsListChanged",
    "prompts": "promptsListChanged",
    "resources": "resourcesListChanged",
    "templates": "resourcesListChanged",
}
_ROUNDS: Final = 3
"""How often a list is read for one caller while it changes under the reading."""


class Shelf:
    """The catalog of one link.

    Each list is read when it is first needed and again before its next use: after a notice; when its `ttlMs` is over;
    a second later where neither is there, or where its reading failed. One reading runs at a time, and all wait for it.
    In the modern era a `subscriptions/listen` is kept open for notices from the first reading on, where the server
    declares them; while it is down they count as not declared, and after a gap everything is read anew.

    Args:
        hears: Whether list notices of a legacy server reach this link.
        told: Called when a list may have changed: a notice came, or some may have been missed.
        page_limit: Seconds for each page.
    """

    def __init__(
        self,
        pooled: PooledLink,
        tasks: Tasks,
        *,
        hears: Callable[[], bool],
        told: Callable[[], None],
        page_limit: Callable[[], float],
    ) -> None:
        self._pooled = pooled
        self._tasks = tasks
        self._hears = hears
        self._told = told
        self._page_limit = page_limit
        self._read: dict[ListKind, tuple[Listing, float]] = {}
        self._stale: set[ListKind] = set()
        self._catalog: Catalog | None = None
        self._reading: asyncio.Task[None] | None = None
        self._listening: asyncio.Task[None] | None = None
        self._acknowledged = asyncio.Event()
        self._honored: frozenset[str] = frozenset()
        self._declared = frozenset(kind for kind in KINDS if declared(pooled.hello, kind))
        self._notifies = frozenset(kind for kind in KINDS if notifies(pooled.hello, kind))
        self._unregister = pooled.on_change(self._notice)

    async def get(self) -> Catalog:
        """The catalog, read as far as that is due.

        Raises:
            LinkLost: The link ended; nothing is known on it.
        """
        await self._listen()
        for _ in range(_ROUNDS):
            if self._reading is None:
                due = self._due()
                if not due and self._catalog is not None:
                    break
                self._reading = self._tasks.start(self._read_all(due))
            await asyncio.shield(self._reading)
        assert self._catalog is not None
        return self._catalog

    def stale(self, kinds: Iterable[ListKind] = tuple(KINDS)) -> None:
        """These lists are read before their next use."""
        self._stale.update(kinds)

    async def aclose(self) -> None:
        """Ends what it does in the background."""
        self._unregister()
        for task in (self._listening, self._reading):
            if task is not None:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

    def _due(self) -> tuple[ListKind, ...]:
        now = self._pooled.clock.time()
        return tuple(kind for kind in KINDS if self._is_due(kind, now))

    def _is_due(self, kind: ListKind, now: float) -> bool:
        if kind not in self._read or kind in self._stale:
            return True
        listing, at = self._read[kind]
        if not listing.offered and listing.problem is None:
            return False
        age = now - at
        if listing.problem is not None and listing.offered:
            return age >= AGAIN
        if listing.ttl_ms:
            return age * 1000 >= listing.ttl_ms
        return not self._is_told(kind) and age >= AGAIN

    def _is_told(self, kind: ListKind) -> bool:
        if kind not in self._notifies:
            return False
        return _FILTER[kind] in self._honored if self._pooled.era == "modern" else self._hears()

    async def _read_all(self, due: tuple[ListKind, ...]) -> None:
        pooled = self._pooled
        pooled.uses += 1
        try:
            # What is told from here on may not be in what is read now.
            self._stale.difference_update(due)
            try:
                found = await asyncio.gather(*(self._read_one(kind) for kind in due))
            except BaseException:
                self._stale.update(due)
                raise
            now = pooled.clock.time()
            self._read.update({kind: (listing, now) for kind, listing in zip(due, found, strict=True)})
            self._catalog = catalog_of({kind: self._read[kind][0] for kind in KINDS})
        finally:
            pooled.uses -= 1
            pooled.touch()
            self._reading = None

    async def _read_one(self, kind: ListKind) -> Listing:
        if kind not in self._declared:
            return Listing(offered=False)
        try:
            return await read_listing(self._ask, kind, page_limit=self._page_limit())
        except LinkLost as error:
            if self._pooled.lost is not None:
                raise
            return Listing(problem=f"{KINDS[kind][0]} failed: {error.reason}")

    async def _ask(self, method: str, params: Mapping[str, Any] | None) -> Message:
        pooled = self._pooled
        refuse = pooled.refuse if pooled.shared else None
        try:
            answer = await pooled.wait(ask(pooled.link, method, params, aside=pooled.stray, refuse=refuse))
        except LinkLost as error:
            raise pooled.told(error) from None
        except asyncio.CancelledError:
            # The page's time was over.
            pooled.suspect()
            raise
        pooled.hear()
        return answer

    def _notice(self, what: str) -> None:
        kinds = _OF_NOTICE.get(what)
        if kinds is not None:
            self.stale(kinds)
            self._told()

    async def _listen(self) -> None:
        if self._pooled.era != "modern":
            return
        if self._listening is None:
            wanted = {_FILTER[kind]: True for kind in KINDS if kind in self._notifies}
            if not wanted:
                return
            self._listening = self._tasks.start(self._keep_listening(wanted))
        elif self._catalog is not None:
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_ACK_LIMIT):
                await self._acknowledged.wait()

    async def _keep_listening(self, wanted: Mapping[str, bool]) -> None:
        pooled = self._pooled
        pause = _FIRST_PAUSE
        while pooled.lost is None:
            began = pooled.clock.time()
            try:
                async with listen_to(pooled.link, wanted) as messages:
                    async for message in messages:
                        if message.kind == "error":
                            # It declares notices and doesn't give them: it won't learn to.
                            return
                        if message.method == _ACKNOWLEDGED:
                            # The notices themselves are told by the link (`on_change`).
                            self._honor(message)
            except LinkLost:
                pass
            finally:
                self._honored = frozenset()
                self._acknowledged.set()
            if pooled.clock.time() - began >= _STEADY:
                pause = _FIRST_PAUSE
            await pooled.clock.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _honor(self, message: Message) -> None:
        raw = message.params.get("notifications")
        fields = (split(raw) if raw is not None else None) or {}
        self._honored = frozenset(name for name, value in fields.items() if bytes(value) == b"true")
        # What changed before this moment was told to nobody.
        if self._catalog is not None:
            self.stale()
            self._told()
        self._acknowledged.set()
