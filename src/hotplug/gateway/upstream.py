"""One server behind the gateway: started when it is needed, watched, stopped when it isn't, replaced when it fails."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from secrets import token_hex
from typing import Final

from hotplug.connect.secrets import Secrets
from hotplug.errors import Unavailable
from hotplug.gateway.asking import ask
from hotplug.gateway.backoff import Backoff
from hotplug.gateway.catalog import Catalog
from hotplug.gateway.clock import Clock
from hotplug.gateway.config import ServerConfig
from hotplug.gateway.eramemory import EraMemory
from hotplug.gateway.link import Era, Hello, Link, LinkLost
from hotplug.gateway.links.handshake import first_request
from hotplug.gateway.message import Object
from hotplug.gateway.opening import Opener, is_remote
from hotplug.gateway.pooled import PooledLink
from hotplug.gateway.shelf import Shelf
from hotplug.gateway.slots import NOBODY, LinkKey, Patience, Slot, SlotId, UpstreamState, session_of
from hotplug.gateway.starting import OtherEra, Starter, why
from hotplug.gateway.tasks import Tasks
from hotplug.gateway.watching import Watch
from hotplug.store import Store

__all__ = ["LinkKey", "Patience", "Upstream", "UpstreamState"]

_logger = logging.getLogger("hotplug.gateway")

_DEBOUNCE: Final = 0.05
_SHORT_WAIT: Final = 1.0
"""A pause after a crash that is no longer than this is waited for; a longer one is told."""


class Upstream:
    """One server, and every link to it.

    **Which link for whom.** Over standard streams a modern link is one child for each thread, a legacy link one child
    for each session of a thread. With `share = "all"` there is one child for everybody, in the modern era where the
    server speaks it: clients of the other era get it over a bridge. Over HTTP everybody shares one modern link, and
    each legacy session has a session of its own. A client's era is spoken to the server where the server speaks it,
    else a bridge stands between.

    **When it is stopped.** A child is stopped after `idle` seconds in which nobody used it; see `PooledLink` for what
    is use. HTTP sessions stay until they are released. A legacy session's state at the server goes with its child, as
    it would if the server crashed; the instance is another one then. Only the log level that it set is set again.

    **When it hangs.** With `call_timeout`, a call that hears nothing for so long is given up, and where the child
    doesn't answer a ping either, it is replaced, and only the calls on it fail. Without it, a child is replaced where a
    caller gave up a call, no other call is on it, and it answers no ping.
    """

    def __init__(
        self,
        config: ServerConfig,
        opener: Opener,
        *,
        secrets: Secrets | None,
        store: Store | None,
        clock: Clock,
        patience: Patience,
    ) -> None:
        self.name = config.name
        self.config = config
        self._opener = opener
        self._store = store
        self._clock = clock
        self._patience = patience
        self._instance = token_hex(8)
        self._slots: dict[SlotId, Slot] = {}
        self._held: dict[Link, Slot] = {}
        self._wanted: dict[tuple[Era, LinkKey], asyncio.Task[PooledLink]] = {}
        self._starts = Tasks()
        self._work = Tasks()
        self._closing = Tasks()
        self._starter = Starter(
            config,
            opener,
            EraMemory(config.name, config.target, store),
            secrets=secrets,
            clock=clock,
            probe=patience.probe,
            told=self._tell,
        )
        self._last: dict[Era, Catalog] = {}
        self._told: list[Callable[[], None]] = []
        self._telling: asyncio.TimerHandle | None = None
        self._numbers = itertools.count(1)
        self._looking = asyncio.Lock()
        self._changing = asyncio.Lock()
        self._changes = 0
        self._gone: str | None = None

    @property
    def instance(self) -> str:
        """Of the server that was started or reached last; of a certain link: `instance_of`."""
        return self._instance

    @property
    def remote(self) -> bool:
        """Whether it is reached over HTTP."""
        return is_remote(self.config)

    @property
    def log(self) -> tuple[str, ...]:
        """The last lines of standard error of the child that was started last, masked."""
        return self._starter.log.tail() if self._starter.log is not None else ()

    def mask(self, text: str) -> str:
        """A text without the secrets that the server was started or is reached with."""
        return self._starter.log.mask(text) if self._starter.log is not None else text

    @property
    def shared(self) -> bool:
        """Whether one child serves everybody."""
        config = self.config
        if config.share is None:
            return bool(config.profiles or config.projection) and not self.remote
        return config.share == "all" and not self.remote

    @property
    def state(self) -> UpstreamState:
        """How it stands now."""
        running = sum(slot.up and not slot.bridge for slot in self._slots.values())
        if self.config.disabled or self._gone is not None:
            return UpstreamState("disabled", self._gone)
        if any(slot.up for slot in self._slots.values()):
            return UpstreamState("up", running=running)
        if self._wanted:
            return UpstreamState("starting")
        starter = self._starter
        if starter.failure is not None:
            retry_at = datetime.now(UTC) + timedelta(seconds=starter.backoff.remaining)
            return UpstreamState("failed", starter.failure, retry_at)
        return UpstreamState("stopped")

    async def link(self, era: Era, key: LinkKey, *, initialize: Object | None = None) -> Link:
        """A link that is up, for a client of this era; starts what is needed.

        Ask for it anew before each exchange: where it is up this costs nothing. All who want the same wait for one
        start; whoever leaves doesn't end it.

        Args:
            initialize: The params of a legacy client's own handshake: passed on where the link is for its session only.

        Raises:
            Unavailable: It is disabled, can't be started or reached, or isn't ready within `start_timeout`.
        """
        if (pooled := self._up(era, key)) is not None:
            pooled.touch()
            return pooled
        try:
            async with asyncio.timeout(self.config.start_timeout):
                return await self._wait_for(era, key, initialize)
        except TimeoutError:
            limit = self.config.start_timeout
            raise Unavailable(f"{self.name} isn't ready after {limit:g} s", details={"server": self.name}) from None

    async def hello(self, era: Era) -> Hello | None:
        """What it said of itself in this era: now, or when it was last up; starts it if nobody ever asked it.

        None where it doesn't speak this era.

        Raises:
            Unavailable: As `link`.
        """
        memory = self._starter.memory
        await memory.load()
        async with self._looking:
            if era not in memory.speaks and era not in memory.lacks:
                await self.link(era, NOBODY)
                await self.release(NOBODY)
        return memory.hellos.get(era) if era in memory.speaks else None

    async def remembered(self, era: Era) -> Hello | None:
        """What it said of itself when it was last up, in this era if it can be; starts nothing."""
        memory = self._starter.memory
        await memory.load()
        return memory.hellos.get(era) or next(iter(memory.hellos.values()), None)

    async def catalog(self, link: Link) -> Catalog:
        """All that it offers on a link of its own making, every page of each list; see `Shelf` for when it is read.

        Raises:
            LinkLost: The link has ended: ask for another. `sent` is False, since reading may be repeated.
        """
        slot = self._held.get(link)
        if slot is None or slot.pooled is None or slot.shelf is None:
            raise LinkLost(link.lost or "it is no link of this server any more", sent=False)
        # Whoever looks is about to use it: it isn't stopped in between.
        slot.pooled.touch()
        try:
            found = await slot.shelf.get()
        except (LinkLost, asyncio.CancelledError):
            task = asyncio.current_task()
            if link.lost is None or (task is not None and task.cancelling()):
                raise
            raise LinkLost(link.lost, sent=False) from None
        before = slot.last
        slot.last = self._last[link.era] = found
        if before is not None and before.version != found.version:
            self._tell()
        return found

    def last_catalog(self, era: Era) -> Catalog | None:
        """What it offered when that was last read, on any link of this era: for showing without starting it."""
        return self._last.get(era)

    def stale(self, link: Link) -> None:
        """Read everything again before its next use."""
        slot = self._held.get(link)
        if slot is not None and slot.shelf is not None:
            slot.shelf.stale()

    def instance_of(self, link: Link) -> str:
        """The id of the server process or session behind a link; another one each time that it is replaced."""
        return link.instance if isinstance(link, PooledLink) else self._instance

    def on_change(self, told: Callable[[], None]) -> Callable[[], None]:
        """Be told, a little later and once for many, that a list changed, or that it failed, came back, or was changed.

        Starting and stopping by need isn't told. Gives what ends it.
        """
        self._told.append(told)

        def end() -> None:
            if told in self._told:
                self._told.remove(told)

        return end

    def threads(self) -> frozenset[str]:
        """The threads that have a link or a child of their own, or wait for one."""
        found = {slot.id.thread for slot in self._slots.values()} | {wanted.thread for _, wanted in self._wanted}
        return frozenset(found) - {"", NOBODY.thread}

    async def release(self, key: LinkKey) -> None:
        """A session has ended (or without `session` a whole thread): its links are closed, its children have ended."""
        for (_, wanted), task in tuple(self._wanted.items()):
            if wanted.thread == key.thread and key.session in (None, wanted.session):
                task.cancel()
        await self._close(
            [
                slot
                for slot in self._slots.values()
                if slot.id.thread == key.thread and (key.session is None or slot.id.session == session_of(key))
            ],
            "its session has ended",
        )

    async def reconfigure(self, config: ServerConfig) -> None:
        """Go on by another entry: where another server has to run for it, what runs is ended at once."""
        shared, before, self.config = self.shared, self.config, config
        same = (before.target, before.oauth, before.oauth_settings, shared) == (
            config.target,
            config.oauth,
            config.oauth_settings,
            self.shared,
        )
        if not same or config.disabled:
            await self._end_all("its entry was changed")
            self._starter.forget()
            if before.target != config.target:
                self._starter.memory = EraMemory(config.name, config.target, self._store)
                self._last.clear()
        self._starter.config = config
        for slot in self._slots.values():
            self._watch(slot)
        self._tell()

    async def aclose(self, reason: str = "the gateway is closing") -> None:
        """End every link, child and task of it. May be called twice."""
        self._gone = reason
        await self._end_all(reason)
        if self._telling is not None:
            self._telling.cancel()
        self._told.clear()

    # --- which link

    def _slot_id(self, era: Era, key: LinkKey) -> SlotId:
        """The place of a link that speaks the client's own era to the server."""
        if self.shared or (self.remote and era == "modern"):
            return SlotId(era, "", "")
        return SlotId(era, key.thread, "" if era == "modern" else session_of(key))

    def _up(self, era: Era, key: LinkKey) -> PooledLink | None:
        for id_ in (self._slot_id(era, key), self._bridge_id(era, key)):
            slot = self._slots.get(id_)
            if slot is not None and slot.pooled is not None:
                if slot.pooled.lost is None:
                    return slot.pooled
                slot.pooled.end(slot.pooled.lost, by_itself=True)
        return None

    def _bridge_id(self, era: Era, key: LinkKey) -> SlotId:
        return SlotId(f"bridged {era}", key.thread, "" if era == "modern" else session_of(key))

    async def _wait_for(self, era: Era, key: LinkKey, initialize: Object | None) -> PooledLink:
        while True:
            async with self._changing:
                # Nothing is begun that would be ended at once.
                pass
            if self._gone is not None or self.config.disabled:
                raise Unavailable(f"{self.name} is {self._gone or 'disabled'}", details={"server": self.name})
            task = self._wanted.get((era, key))
            if task is None or task.done():
                task = self._wanted[era, key] = self._starts.start(self._bring_up(era, key, initialize))
                task.add_done_callback(lambda done: self._arrived((era, key), done))
            changes = self._changes
            await asyncio.wait({task})
            if not task.cancelled():
                return task.result()
            if changes == self._changes:
                raise Unavailable(f"{self.name} isn't needed: the session has ended", details={"server": self.name})
            # Its entry was changed meanwhile: by the new one, then.

    def _arrived(self, wanted: tuple[Era, LinkKey], task: asyncio.Task[PooledLink]) -> None:
        if self._wanted.get(wanted) is task:
            del self._wanted[wanted]

    async def _bring_up(self, era: Era, key: LinkKey, initialize: Object | None) -> PooledLink:
        starter = self._starter
        await starter.memory.load()
        tries: list[tuple[Era, OtherEra]] = []
        while True:
            native = starter.choose(era, tries, shared=self.shared)
            if native is None:
                raise await starter.fail(why(tries))
            try:
                last = len(tries) > 1
                if native != era:
                    return await self._bridged(era, key, initialize, last=last)
                shared = self.shared or era == "modern" or key.session is None
                return await self._native(self._slot_id(era, key), era, initialize, last=last, shared=shared)
            except OtherEra as error:
                tries.append((native, error))

    # --- starting

    async def _native(
        self, id_: SlotId, era: Era, initialize: Object | None, *, last: bool, shared: bool
    ) -> PooledLink:
        slot = self._place(id_)
        if slot.pooled is not None and slot.pooled.lost is None:
            return slot.pooled
        if slot.starting is None or slot.starting.done():
            given = None if shared else initialize
            slot.starting = self._starts.start(self._start(slot, era, given, shared=shared, last=last))
        return await asyncio.shield(slot.starting)

    async def _start(self, slot: Slot, era: Era, initialize: Object | None, *, shared: bool, last: bool) -> PooledLink:
        try:
            if (pause := slot.backoff.remaining) > _SHORT_WAIT:
                raise self._starter.unavailable("it ended by itself again and again", pause)
            if pause:
                await self._clock.sleep(pause)
            link = await self._starter.start(era, initialize, last=last, thread=slot.id.thread or None)
        except BaseException:
            self._let_go(slot)
            raise
        self._instance = token_hex(8)
        pooled = self._hold(slot, link, self._instance, shared=shared, child=not self.remote)
        if shared and era == "legacy":
            self._work.start(pooled.read_shared())
        if slot.log_level is not None:
            await self._set_level(pooled, slot.log_level)
        return pooled

    async def _set_level(self, pooled: PooledLink, level: str) -> None:
        """What the session told the child before this one: it doesn't know that there is another."""
        pooled.log_level = level
        with contextlib.suppress(LinkLost, TimeoutError):
            async with asyncio.timeout(self._patience.page):
                await ask(pooled.link, "logging/setLevel", {"level": level}, aside=pooled.stray)

    async def _bridged(self, era: Era, key: LinkKey, initialize: Object | None, *, last: bool) -> PooledLink:
        """A link for a client of the era that the server doesn't speak."""
        slot_id = self._bridge_id(era, key)
        if era == "legacy":
            native_id = self._slot_id("modern", key)
            native = await self._native(native_id, "modern", None, last=last, shared=True)
            link = self._opener.for_legacy_client(native, initialize or first_request("legacy", None).params)
            alone = key.session is None
            pooled = self._hold(self._place(slot_id), link, native.instance, shared=alone, child=False)
            if alone:
                self._work.start(pooled.read_shared())
            return pooled
        causes: list[Unavailable | OtherEra] = []
        slot = self._place(slot_id)

        async def open_legacy(params: Object) -> Link:
            id_ = self._slot_id("legacy", LinkKey(key.thread, None))
            if not self.shared:
                id_ = id_._replace(session=f"bridge {next(self._numbers)}")
                # Each such child has a place only while it lives: how often they crashed is known here.
                self._place(id_, slot.backoff)
            # Whoever has the bridge already can't be sent to the other era: a child that came up is used, however long
            # it took. The next link finds out whether it was silent in the other only because it was slow.
            final = last or slot.pooled is not None
            try:
                below = await self._native(id_, "legacy", params, last=final, shared=self.shared)
            except (Unavailable, OtherEra) as error:
                causes.append(error)
                raise LinkLost(str(error), sent=False) from None
            if slot.pooled is not None:
                slot.pooled.instance = below.instance
            return below

        try:
            memory = self._starter.memory
            # Where it may just be slow, it has to be seen how long it takes.
            known = "legacy" in memory.speaks and not self._starter.unsure
            hello = memory.hellos.get("legacy") if known else None
            link = await self._opener.for_modern_client(open_legacy, owner=key.thread, hello=hello)
        except LinkLost as error:
            raise causes[-1] if causes else await self._starter.fail(error.reason) from None
        return self._hold(slot, link, self._instance, shared=True, child=False)

    def _place(self, id_: SlotId, backoff: Backoff | None = None) -> Slot:
        slot = self._slots.get(id_)
        if slot is None:
            slot = self._slots[id_] = Slot(id_, backoff or Backoff(self._clock))
        return slot

    def _let_go(self, slot: Slot) -> None:
        """Give up the place of what nobody asks for by name again."""
        if slot.id.session.startswith("bridge "):
            self._slots.pop(slot.id, None)

    # --- while it is up, and after

    def _hold(self, slot: Slot, link: Link, instance: str, *, shared: bool, child: bool) -> PooledLink:
        pooled = PooledLink(
            link,
            instance=instance,
            shared=shared,
            clock=self._clock,
            ended=lambda pooled, by_itself: self._ended(slot, pooled, by_itself),
            suspected=lambda _: slot.watch.suspect() if slot.watch is not None else None,
            cancelled=self._patience.cancelled,
        )
        slot.pooled = pooled
        self._held[pooled] = slot
        slot.backoff.succeeded()
        slot.shelf = Shelf(
            pooled,
            self._work,
            # A pipe brings every notice; HTTP, and a bridge, only while somebody reads the general stream.
            hears=lambda: child or shared or pooled.general_read,
            told=self._tell,
            page_limit=lambda: self._patience.page,
        )
        self._watch(slot)
        if link.lost is not None:
            pooled.end(link.lost, by_itself=True)
        return pooled

    def _ended(self, slot: Slot, pooled: PooledLink, by_itself: bool) -> None:
        if by_itself and not self.remote and not slot.bridge:
            wait = slot.backoff.failed()
            _logger.warning("%s ended by itself (%s); it may start again in %g s", self.name, pooled.lost, wait)
        if slot.watch is not None:
            slot.watch.end()
        slot.watch = slot.pooled = None
        slot.log_level = pooled.log_level
        self._held.pop(pooled, None)
        shelf, slot.shelf = slot.shelf, None
        self._let_go(slot)

        async def close() -> None:
            if shelf is not None:
                await shelf.aclose()
            await pooled.link.aclose()

        slot.closing = self._closing.start(close())

    async def _close(self, slots: list[Slot], reason: str) -> None:
        for slot in slots:
            self._slots.pop(slot.id, None)
            if slot.starting is not None:
                slot.starting.cancel()
            if slot.pooled is not None:
                slot.pooled.end(reason)
        await asyncio.gather(*(slot.starting for slot in slots if slot.starting is not None), return_exceptions=True)
        for slot in slots:
            # A start that was through before it could be cancelled.
            if slot.pooled is not None:
                slot.pooled.end(reason)
        await asyncio.gather(*(slot.closing for slot in slots if slot.closing is not None), return_exceptions=True)

    async def _end_all(self, reason: str) -> None:
        async with self._changing:
            self._changes += 1
            for task in tuple(self._wanted.values()):
                task.cancel()
            await self._starts.aclose()
            await self._close(list(self._slots.values()), reason)
            await self._work.aclose()
            await self._closing.finish()

    def _watch(self, slot: Slot) -> None:
        """Look after what is there; anew where the limits changed. What a bridge stands on is looked after itself."""
        if slot.watch is not None:
            slot.watch.end()
            slot.watch = None
        if slot.pooled is not None and not slot.bridge:
            config = self.config
            slot.watch = Watch(
                slot.pooled,
                self._work,
                child=not self.remote,
                silence=config.call_timeout,
                idle=config.idle,
                alive=self._patience.alive,
            )

    def _tell(self) -> None:
        if self._telling is None and self._told and self._gone is None:
            self._telling = asyncio.get_running_loop().call_later(_DEBOUNCE, self._tell_now)

    def _tell_now(self) -> None:
        self._telling = None
        for told in tuple(self._told):
            try:
                told()
            except Exception:
                # One listener's fault is not the others'.
                _logger.exception("a listener to changes of %s failed", self.name)

    def __repr__(self) -> str:
        return f"<Upstream {self.name}: {self.state.kind}>"
