"""What the view needs of the servers behind: links of the pool, and speakers of profiles on top of them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from hotplug.connect import NativeTarget, ObjectTarget, PythonTarget
from hotplug.errors import Unavailable
from hotplug.gateway.catalog import Catalog
from hotplug.gateway.config import ServerConfig
from hotplug.gateway.instances import Instances
from hotplug.gateway.link import Era, Hello, Link
from hotplug.gateway.pool import Pool
from hotplug.gateway.raw_channel import LinkConversation
from hotplug.gateway.sessions import Session
from hotplug.gateway.speaking import Speaker, speak
from hotplug.gateway.upstream import LinkKey, Upstream
from hotplug.gateway.view import Caller
from hotplug.store import Store

__all__ = ["Servers", "is_native"]


def is_native(config: ServerConfig) -> bool:
    """Whether a server runs in this process: a native one of the catalog, or a provider of the owner's own."""
    target = config.target
    if isinstance(target, ObjectTarget):
        from hotplug.profile import Profile

        found = target.server
        return isinstance(found, Profile) or (isinstance(found, type) and issubclass(found, Profile))
    return isinstance(target, NativeTarget) or (isinstance(target, PythonTarget) and target.object is not None)


_Edition = tuple[bytes, int] | None
"""What a server said of itself and what it lists, not which child said it; None in this process."""
_EDITIONS: Final = 64


@dataclass(slots=True)
class _Spoken:
    """What was found out of a server's profiles; `seen` are editions of the catalog in which it spoke none."""

    speaker: Speaker | None = None
    seen: dict[_Edition, None] = field(default_factory=dict["_Edition", None])


@dataclass(slots=True)
class _At:
    """The caller's own link, for as long as what is behind it is looked at for the first time."""

    link: Link | None


class Servers:
    """All servers behind the gateway.

    Args:
        configs: Those that are set up, in the order of the file.
        pool: Those of them that are reached over links.
        store: Keeps what speakers have to remember.
    """

    def __init__(self, configs: Mapping[str, ServerConfig], pool: Pool, store: Store) -> None:
        self._configs = {name: config for name, config in configs.items() if not config.disabled}
        self._pool = pool
        self._store = store
        self._spoken: dict[str, _Spoken] = {}
        self._locks: dict[str, asyncio.Lock] = {}
        self._threads: dict[str, str] = {}
        self.instances = Instances()
        """The profile operations of all servers that were looked at."""

    def names(self) -> Sequence[str]:
        """All servers, in the order of the file."""
        return tuple(self._configs)

    async def update(self, configs: Mapping[str, ServerConfig]) -> None:
        """Take a changed configuration; the pool is told by whoever has it.

        What a changed or removed server spoke is let go of; a changed one is looked at anew.
        """
        new = {name: config for name, config in configs.items() if not config.disabled}
        changed = [name for name, config in self._configs.items() if new.get(name) != config]
        left = [self._spoken.pop(name, None) for name in changed]
        self._configs = new
        self._joined()
        for one in left:
            if one is not None and one.speaker is not None:
                await one.speaker.aclose()

    def in_process(self, server: str) -> bool:
        """Whether it runs in this process, so that there is no link to it."""
        config = self._configs.get(server)
        return config is not None and is_native(config)

    def mixed(self, server: str) -> bool:
        """Whether one child serves all threads, over one pipe."""
        return self.upstream(server).shared

    def speaks(self, server: str) -> bool:
        """Whether it speaks a profile, as far as that is known without asking it."""
        config, known = self._configs.get(server), self._spoken.get(server)
        set_up = config is not None and bool(config.profiles or config.projection)
        return set_up or (known is not None and known.speaker is not None)

    def upstream(self, server: str) -> Upstream:
        """The server in the pool.

        Raises:
            Unavailable: It is gone.
        """
        found = self._pool.upstreams.get(server)
        if found is None:
            raise Unavailable(f"there is no server {server!r} any more")
        return found

    async def link(self, server: str, caller: Caller) -> Link:
        """The caller's link to a server."""
        if caller.session is not None:
            return await caller.session.link(server)
        return await self.upstream(server).link(caller.era, LinkKey(caller.thread, None))

    async def session_link(self, session: Session, server: str) -> Link:
        """A link for one session."""
        key = LinkKey(session.thread, session.id)
        return await self.upstream(server).link("legacy", key, initialize=session.initialize)

    async def release(self, session: Session) -> None:
        """A session ended: its links do."""
        key = LinkKey(session.thread, session.id)
        await asyncio.gather(*(upstream.release(key) for upstream in self._pool.upstreams.values()))

    async def release_thread(self, thread: str) -> None:
        """A thread was closed: its links end, and children that only it used."""
        key = LinkKey(thread, None)
        await asyncio.gather(*(upstream.release(key) for upstream in self._pool.upstreams.values()))

    async def catalog(self, server: str, link: Link) -> Catalog:
        """What a server offers on a link."""
        return await self.upstream(server).catalog(link)

    async def remembered(self, server: str, era: Era) -> Hello | None:
        """What a server said of itself when it was last up; None where it never was, or runs in this process."""
        upstream = self._pool.upstreams.get(server)
        return await upstream.remembered(era) if upstream is not None else None

    async def speaker(self, server: str, caller: Caller, link: Link | None, catalog: Catalog) -> Speaker | None:
        """What it speaks of profiles, looked at anew where that may have changed."""
        config = self._configs.get(server)
        if config is None:
            return None
        self._threads[server] = caller.thread
        known = self._spoken.get(server)
        edition = (bytes(link.hello.result.get("capabilities", b"")), catalog.version) if link is not None else None
        if known is not None:
            if known.speaker is not None:
                await known.speaker.settle()
                return known.speaker
            if edition in known.seen:
                return None
        async with self._locks.setdefault(server, asyncio.Lock()):
            known = self._spoken.setdefault(server, _Spoken())
            if known.speaker is None and edition not in known.seen:
                at = _At(link)
                conversation = self._conversation(server, at) if link is not None else None
                speaker = await speak(config, conversation=conversation, store=self._store)
                at.link = None
                if self._configs.get(server) != config:
                    # It was changed meanwhile: whoever asks next gets what it is now.
                    if speaker is not None:
                        await speaker.aclose()
                    raise Unavailable(f"the entry of {server} was just changed")
                known.speaker = speaker
                if len(known.seen) >= _EDITIONS:
                    known.seen.clear()
                known.seen[edition] = None
                self._joined()
        return known.speaker

    def _joined(self) -> None:
        held = (self._spoken.get(name) for name in self._configs)
        self.instances.update(one.speaker for one in held if one is not None and one.speaker is not None)

    def _conversation(self, server: str, at: _At) -> LinkConversation:
        async def reach(thread: str) -> Link:
            if at.link is not None and at.link.lost is None:
                # Most servers speak no profile: to see that, the link that is up will do.
                return at.link
            # Asked for nobody in particular, it is whoever came last: a child of its own would be one too many.
            key = LinkKey(thread or self._threads[server], None)
            return await self.upstream(server).link("modern", key)

        async def catalog(link: Link) -> Catalog:
            return await self.upstream(server).catalog(link)

        def instance(link: Link) -> str:
            return self.upstream(server).instance_of(link)

        def mask(text: str) -> str:
            upstream = self._pool.upstreams.get(server)
            return upstream.mask(text) if upstream is not None else text

        return LinkConversation(server, reach, catalog, instance=instance, mask=mask)

    async def aclose(self) -> None:
        """Let go of what native servers hold."""
        for known in self._spoken.values():
            if known.speaker is not None:
                await known.speaker.aclose()
