"""What a thread sees: the tools, prompts and resources of its servers under names of the gateway's own.

A name belongs to one tool for good, whoever may see it; whether a thread may is asked of `grants` for each request.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from hotplug.errors import Unavailable
from hotplug.gateway.book import Book
from hotplug.gateway.catalog import KINDS, Catalog, Item, ListKind
from hotplug.gateway.grants import Grants
from hotplug.gateway.link import Era, Link, LinkLost
from hotplug.gateway.message import Message, Object, Raw, dumps
from hotplug.gateway.sessions import Session

__all__ = ["Caller", "Known", "RawTool", "Upstreams", "View"]

_WAIT: Final = 10.0
"""Seconds that a list waits for a server that isn't up yet; one that comes later is announced as a change."""
_ANNOUNCED: Final[tuple[ListKind, ...]] = ("tools", "prompts", "resources")
_logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Caller:
    """Who makes one request.

    Args:
        thread: The thread, authenticated.
        session: Of the handshake era.
        scope: Ids and progress tokens of two scopes never meet.
        headers: Of HTTP, by lower-case name; None over standard streams.
        extensions: That the client declared.
    """

    thread: str
    era: Era
    scope: str
    session: Session | None = None
    headers: Mapping[str, str] | None = None
    extensions: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class RawTool:
    """A server's own tool."""

    server: str
    name: str


class Upstreams(Protocol):
    """Opens links and reads catalogs; the pool does."""

    def names(self) -> Sequence[str]: ...

    async def link(self, server: str, caller: Caller) -> Link:
        """The caller's link to a server.

        Raises:
            Unavailable: There is none to be had.
        """
        ...

    async def catalog(self, server: str, link: Link) -> Catalog: ...


@dataclass(slots=True)
class Known:
    """What is known of one server for one caller now."""

    server: str
    link: Link
    catalog: Catalog
    closed: Mapping[str, str] = field(default_factory=dict[str, str])
    """Tools that are shut though they are there, each with the reason."""


class Pinned(Protocol):
    """Says which tools changed since their owner accepted them."""

    async def closed(self, server: str, tools: Sequence[Item]) -> Mapping[str, str]: ...


class View:
    """Lists and looks up."""

    def __init__(self, upstreams: Upstreams, grants: Grants, book: Book, pins: Pinned | None = None) -> None:
        self.upstreams = upstreams
        self.grants = grants
        self.book = book
        self._pins = pins
        self._seen: dict[str, tuple[Catalog, Mapping[str, str]]] = {}
        self._listeners: list[tuple[str, Callable[[str], None]]] = []

    def servers(self, caller: Caller) -> list[str]:
        """The servers of which the caller gets something, in the order of the file."""
        given = set(self.grants.servers(caller.thread))
        return [name for name in self.upstreams.names() if name in given]

    async def known(self, server: str, caller: Caller) -> Known:
        """A server's link and what it offers on it.

        Raises:
            Unavailable: It can't be reached.
        """
        link = await self.upstreams.link(server, caller)
        try:
            catalog = await self.upstreams.catalog(server, link)
        except LinkLost as lost:
            raise Unavailable(f"{server} can't be reached: {lost.reason}") from None
        seen = self._seen.get(server)
        if seen is None or seen[0] is not catalog:
            closed: Mapping[str, str] = {}
            if self._pins is not None:
                closed = await self._pins.closed(server, catalog.tools.items)
            seen = self._seen[server] = (catalog, closed)
            for kind in KINDS:
                await self.book.learn(server, kind, list(catalog.of(kind).by_name))
            self.grants.offers(server, [item.name for item in catalog.tools.items])
        return Known(server, link, catalog, seen[1])

    async def all_known(self, caller: Caller) -> list[Known]:
        """Those of the caller's servers that answer in time; a bad one never delays the others for longer."""
        servers = self.servers(caller)
        if len(servers) == 1:
            try:
                return [await self.known(servers[0], caller)]
            except Unavailable as error:
                _logger.warning("%s", error)
                return []
        tasks = [asyncio.create_task(self.known(server, caller)) for server in servers]
        try:
            if tasks:
                await asyncio.wait(tasks, timeout=_WAIT)
        finally:
            for task in tasks:
                if not task.done():
                    task.cancel()
        found: list[Known] = []
        for server, task in zip(servers, tasks, strict=True):
            if not task.done() or task.cancelled():
                _logger.warning("%s is left out of a list: it wasn't ready within %g s", server, _WAIT)
            elif (error := task.exception()) is None:
                found.append(task.result())
            elif isinstance(error, Unavailable):
                _logger.warning("%s", error)
            else:
                raise error
        return found

    def may_call(self, known: Known, caller: Caller, tool: str) -> bool:
        """Whether a caller may call a server's own tool, which has to be there, and open."""
        return (
            tool in known.catalog.tools.by_name
            and tool not in known.closed
            and self.grants.gives(caller.thread, known.server, tool)
        )

    def list_of(self, kind: ListKind, known: Sequence[Known], caller: Caller) -> Object:
        """The result of a list request, all servers together and whole."""
        _, key, identity = KINDS[kind]
        items: list[Raw] = []
        result: Object = {}
        ttl: int | None = None
        for one in known:
            listing = one.catalog.of(kind)
            for name, value in listing.extra.items():
                result.setdefault(name, value)
            if listing.ttl_ms is not None:
                ttl = listing.ttl_ms if ttl is None else min(ttl, listing.ttl_ms)
            for item in listing.items:
                if kind == "tools" and not self.may_call(one, caller, item.name):
                    continue
                exposed = self.book.exposed(one.server, kind, item.name)
                if exposed is not None:
                    raw = item.raw if exposed == item.name else {**item.raw, identity: Raw(dumps(exposed))}
                    items.append(Raw(dumps(raw)))
        result[key] = Raw(b"[" + b",".join(bytes(item) for item in items) + b"]")
        if caller.era == "modern":
            result.setdefault("resultType", Raw(b'"complete"'))
            result["ttlMs"] = Raw(dumps(ttl or 0))
            result["cacheScope"] = Raw(b'"private"')
        return result

    def own_uri(self, known: Known, uri: str) -> str | None:
        """A resource's URI as its server has it, where it may be that server's."""
        meant = self.book.meant("resources", uri)
        if meant is not None:
            return meant[1] if meant[0] == known.server else None
        return uri if known.catalog.resources.offered else None

    def shown(self, server: str, notice: Message) -> Message:
        """A server's notice as a caller reads it: a URI that had to be changed is changed here too."""
        if notice.method != "notifications/resources/updated":
            return notice
        uri = notice.text("uri")
        exposed = self.book.exposed(server, "resources", uri) if uri is not None else None
        return notice if exposed is None or exposed == uri else notice.with_param("uri", exposed)

    def on_change(self, thread: str, told: Callable[[str], None]) -> Callable[[], None]:
        """Be told the method of each notice that a list of a thread changed by our doing; gives what ends it."""
        entry = (thread, told)
        self._listeners.append(entry)

        def end() -> None:
            if entry in self._listeners:
                self._listeners.remove(entry)

        return end

    def announce(
        self, kinds: Sequence[ListKind] = ("tools", "prompts", "resources"), thread: str | None = None
    ) -> None:
        """Tell those who listen that lists changed: of one thread, or of all."""
        for whose, told in tuple(self._listeners):
            if thread is None or whose == thread:
                for kind in kinds:
                    told(f"notifications/{kind}/list_changed")
