"""What a thread sees: the tools, prompts and resources of its servers under names of the gateway's own.

A name belongs to one tool for good, whoever may see it; whether a thread may is asked of `grants` for each request.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from hotplug.declare import CARDS, NOETIC
from hotplug.errors import HotplugError, Unavailable
from hotplug.gateway.book import Book
from hotplug.gateway.catalog import KINDS, Catalog, Item, Listing, ListKind
from hotplug.gateway.config import SearchConfig
from hotplug.gateway.grants import Grants
from hotplug.gateway.instances import Allowed, Instances
from hotplug.gateway.link import Era, Hello, Link, LinkLost
from hotplug.gateway.message import Message, Object, Raw, dumps
from hotplug.gateway.references import unusable_schemas
from hotplug.gateway.sessions import Session
from hotplug.gateway.speaking import Speaker
from hotplug.gateway.toolset import OURS, Shown, Toolset
from hotplug.gateway.uris import fitting, prefixed

__all__ = ["Caller", "Known", "Pinned", "Upstreams", "View"]

_WAIT: Final = 10.0
"""Seconds that a list waits for a server that isn't up yet; one that comes later is announced as a change."""
_ANNOUNCED: Final[tuple[ListKind, ...]] = ("tools", "prompts", "resources")
_NOTHING: Final = Catalog(0, *(Listing(offered=False),) * 4)
_AWARE: Final = frozenset({NOETIC, CARDS})
"""Extensions whose clients know profiles, and see `connection.*`."""
_CONNECTION: Final = "connection."
_WORDLESS: Final = frozenset(
    {
        "notifications/cancelled",
        "notifications/elicitation/complete",
        "notifications/progress",
        "notifications/tools/list_changed",
    }
)
"""Notices that come with operations of profiles too."""
_TOOLSETS: Final = 2_000
_CHECKED: Final = 1_000
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

    @property
    def aware(self) -> bool:
        """Whether the client knows profiles."""
        return not _AWARE.isdisjoint(self.extensions)


@dataclass(slots=True)
class Known:
    """What is known of one server for one caller now.

    Args:
        link: None for a native server in this process.
        closed: Tools that are shut though they are there, each with the reason.
        speaker: Where it speaks profiles.
        mixed: Whether threads share its pipe, so that what names no request can be anybody's.
    """

    server: str
    link: Link | None
    catalog: Catalog = _NOTHING
    closed: Mapping[str, str] = field(default_factory=dict[str, str])
    speaker: Speaker | None = None
    mixed: bool = False


_Key = tuple[str, str, Era, Session | None]
"""A server, and whose link to it is meant."""


class Upstreams(Protocol):
    """Opens links and reads catalogs; the gateway's pool does."""

    def names(self) -> Sequence[str]:
        """All servers, in the order of the file."""
        ...

    def in_process(self, server: str) -> bool:
        """Whether it runs in this process, so that there is no link to it."""
        ...

    def mixed(self, server: str) -> bool:
        """Whether one child serves all threads, over one pipe."""
        ...

    def speaks(self, server: str) -> bool:
        """Whether it speaks a profile, as far as that is known without asking it."""
        ...

    async def link(self, server: str, caller: Caller) -> Link:
        """The caller's link to a server.

        Raises:
            Unavailable: There is none to be had.
        """
        ...

    async def catalog(self, server: str, link: Link) -> Catalog: ...

    async def remembered(self, server: str, era: Era) -> Hello | None:
        """What a server said of itself when it was last up; None where it never was, or has no link."""
        ...

    async def speaker(self, server: str, caller: Caller, link: Link | None, catalog: Catalog) -> Speaker | None:
        """What it speaks of profiles, looked at anew where that may have changed."""
        ...

    @property
    def instances(self) -> Instances:
        """The profile operations of all servers."""
        ...


class Pinned(Protocol):
    """Says which tools changed since their owner accepted them."""

    async def closed(self, server: str, tools: Sequence[Item]) -> Mapping[str, str]: ...


class View:
    """Lists and looks up."""

    def __init__(
        self, upstreams: Upstreams, grants: Grants, book: Book, pins: Pinned, search: SearchConfig | None = None
    ) -> None:
        self.upstreams = upstreams
        self.grants = grants
        self.book = book
        self._pins = pins
        self._seen: dict[tuple[str, int], Mapping[str, str]] = {}
        self._editions = 0
        self._toolsets: dict[tuple[str, bool], tuple[Any, Toolset]] = {}
        self._search = search or SearchConfig()
        self._listeners: list[tuple[str, Callable[[str], None]]] = []
        self._late: dict[_Key, asyncio.Task[Known]] = {}

    def servers(self, caller: Caller) -> list[str]:
        """The servers of which the caller gets something, in the order of the file."""
        given = set(self.grants.servers(caller.thread))
        return [name for name in self.upstreams.names() if name in given]

    async def known(self, server: str, caller: Caller) -> Known:
        """A server's link and what it offers on it.

        Raises:
            Unavailable: It can't be reached.
        """
        if self.upstreams.in_process(server):
            speaker = await self.upstreams.speaker(server, caller, None, _NOTHING)
            known = Known(server, None, speaker=speaker)
        else:
            link = await self.upstreams.link(server, caller)
            try:
                catalog = await self.upstreams.catalog(server, link)
            except LinkLost as lost:
                raise Unavailable(f"{server} can't be reached: {lost.reason}") from None
            speaker = await self.upstreams.speaker(server, caller, link, catalog)
            closed = await self._closed(server, catalog)
            known = Known(server, link, catalog, closed, speaker, mixed=self.upstreams.mixed(server))
        parts = tuple(speaker.offers) if speaker is not None else ()
        if speaker is not None:
            # Those of its profiles that it doesn't have too: a call to one is answered alike, whoever else has it.
            declared = (part for one in speaker.definitions for part in one.all_parts.values() if part.kind != "event")
            await self.book.learn_parts(tuple(dict.fromkeys((*parts, *(part.name for part in declared)))))
        self.grants.offers(server, (*known.catalog.tools.by_name, *parts))
        return known

    async def _closed(self, server: str, catalog: Catalog) -> Mapping[str, str]:
        # Each thread may have a child of its own, which lists what it likes.
        key = (server, catalog.version)
        closed = self._seen.get(key)
        if closed is None:
            edition = self._editions
            found = dict(await self._pins.closed(server, catalog.tools.items))
            for item in catalog.tools.items:
                reason = unusable_schemas(item.raw)
                if reason is not None:
                    found[item.name] = reason
            for kind in KINDS:
                if (problem := catalog.of(kind).problem) is not None:
                    _logger.warning("what %s lists is incomplete: %s", server, problem)
                await self.book.learn(server, kind, list(catalog.of(kind).by_name))
            closed = found
            if edition == self._editions:
                if len(self._seen) >= _CHECKED:
                    self._seen.clear()
                self._seen[key] = closed
        return closed

    def forget_pins(self) -> None:
        """Look at all definitions anew: an owner accepted some."""
        self._editions += 1
        self._seen.clear()

    def forget(self, thread: str) -> None:
        """Keep nothing of a thread: it was closed."""
        for aware in (False, True):
            self._toolsets.pop((thread, aware), None)

    def renew(self, search: SearchConfig) -> None:
        """Go by another configuration: names and what is listed may be others."""
        self._search = search
        self._seen.clear()
        self._toolsets.clear()

    async def all_known(self, caller: Caller, *, wait: float | None = None) -> list[Known]:
        """Those of the caller's servers that answer in time; a bad one never delays the others for longer.

        What isn't there in time goes on coming, and is announced to the thread when it has.

        Args:
            wait: Seconds; default: 10, and for the only server as long as its start may take.
        """
        servers = self.servers(caller)
        if len(servers) == 1 and wait is None:
            try:
                return [await self.known(servers[0], caller)]
            except Unavailable as error:
                _logger.warning("%s", error)
                return []
        limit = _WAIT if wait is None else wait
        keys: list[_Key] = [(server, caller.thread, caller.era, caller.session) for server in servers]
        tasks = [self._late.get(key) or asyncio.create_task(self.known(key[0], caller)) for key in keys]
        try:
            if tasks:
                await asyncio.wait(tasks, timeout=limit)
        except asyncio.CancelledError:
            for key, task in zip(keys, tasks, strict=True):
                if self._late.get(key) is not task:
                    task.cancel()
            raise
        found: list[Known] = []
        for key, task in zip(keys, tasks, strict=True):
            if not task.done():
                _logger.warning("%s is left out of a list for now: it wasn't ready within %g s", key[0], limit)
                self._expect(key, task)
            elif task.cancelled():
                continue
            elif (error := task.exception()) is None:
                found.append(task.result())
            elif isinstance(error, (HotplugError, LinkLost)):
                _logger.warning("%s", error)
            else:
                raise error
        return found

    def _expect(self, key: _Key, task: asyncio.Task[Known]) -> None:
        """Tell the thread once a server that was late is there."""
        if key in self._late:
            return

        def arrived(task: asyncio.Task[Known]) -> None:
            self._late.pop(key, None)
            if not task.cancelled() and task.exception() is None:
                self.announce(thread=key[1])

        self._late[key] = task
        task.add_done_callback(arrived)

    async def aclose(self) -> None:
        """Wait for nothing any more."""
        late = tuple(self._late.values())
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)

    # Tools

    def may_call(self, known: Known, caller: Caller, tool: str) -> bool:
        """Whether a caller may call a server's own tool: it has to be there, open, and no profile's."""
        return _is_open(known, tool) and self.grants.gives(caller.thread, known.server, tool)

    def allowed(self, caller: Caller) -> Allowed:
        """Says of a part or an event of a server whether the caller may use it, as of this moment."""
        gives = self.grants.now(caller.thread)
        speakers = {one.server: one for one in self.upstreams.instances.speakers}

        def may(server: str, part: str) -> bool:
            offer = speakers[server].offers.get(part) if server in speakers else None
            underlying = offer.underlying if offer is not None else ()
            return gives(server, part, underlying)

        return may

    def toolset(self, known: Sequence[Known], caller: Caller) -> Toolset:
        """Every tool that a caller may use, and which of them are listed. Made anew when anything in it may differ.

        Operations of profiles come first, then raw tools by server.
        """
        stamp = (
            self.grants.access(caller.thread),
            self.book.version,
            tuple((one.server, one.catalog.version, one.closed) for one in known),
            tuple((one.server, one.version) for one in self.upstreams.instances.speakers),
        )
        key = (caller.thread, caller.aware)
        held = self._toolsets.get(key)
        if held is None or held[0] != stamp:
            if len(self._toolsets) >= _TOOLSETS:
                self._toolsets.clear()
            held = self._toolsets[key] = (stamp, Toolset(self._tools(known, caller), self._search, self._ours()))
        return held[1]

    def _ours(self) -> tuple[str, str]:
        search, call = (self.book.exposed("", "tools", name) for name in OURS)
        return search or OURS[0], call or OURS[1]

    def _tools(self, known: Sequence[Known], caller: Caller) -> list[Shown]:
        gives = self.grants.now(caller.thread)
        found: list[Shown] = []
        for merged in self.upstreams.instances.tools(self.allowed(caller), aware=caller.aware):
            exposed = self.book.exposed("", "tools", merged.part)
            if exposed is not None:
                definition = {**merged.tool, "name": Raw(dumps(exposed))}
                always = merged.part.startswith(_CONNECTION)
                found.append(Shown(exposed, "", definition, merged.eager or always, not merged.guarded and not always))
        for one in known:
            for item in one.catalog.tools.items:
                exposed = self.book.exposed(one.server, "tools", item.name)
                if exposed is not None and _is_open(one, item.name) and gives(one.server, item.name, ()):
                    raw = item.raw if exposed == item.name else {**item.raw, "name": Raw(dumps(exposed))}
                    found.append(Shown(exposed, one.server, raw))
        return found

    def has_raw(self, known: Known, caller: Caller) -> bool:
        """Whether a caller may call any of a server's own tools: only with these comes what the server says itself."""
        return any(self.may_call(known, caller, tool) for tool in known.catalog.tools.by_name)

    # What a server says in its own words

    def gives_words(self, thread: str, server: str, tools: Collection[str] | None = None) -> bool:
        """Whether a thread gets a server's prompts, resources and logs.

        They go with its tools: with any of its own, or with all of it. To who has operations of a profile alone,
        everything is said in the profile's words; to who is denied every tool, nothing is said.

        Args:
            tools: Those that it lists for this thread; default: as it listed last, for whomever.
        """
        if not self.grants.gives_server(thread, server):
            return False
        if self.grants.gives_whole(thread, server):
            return True
        speaker = next((one for one in self.upstreams.instances.speakers if one.server == server), None)
        own = set(self.grants.offered(server) if tools is None else tools)
        if speaker is not None:
            own.difference_update(speaker.offers, speaker.hidden)
        if own:
            gives = self.grants.now(thread)
            return any(gives(server, tool, ()) for tool in own)
        return not self.upstreams.speaks(server)

    def hears(self, thread: str, server: str, notice: Message) -> bool:
        """Whether a thread is told a notice of a server's."""
        if notice.method in _WORDLESS:
            return self.grants.gives_server(thread, server)
        return self.gives_words(thread, server)

    # Lists

    def list_of(self, kind: ListKind, known: Sequence[Known], caller: Caller, items: Sequence[Object]) -> Object:
        """The result of a list request, all servers together and whole.

        Args:
            items: What is listed.
        """
        result: Object = {}
        ttl: int | None = None
        for one in known:
            listing = one.catalog.of(kind)
            if self.gives_words(caller.thread, one.server, one.catalog.tools.by_name):
                for name, value in listing.extra.items():
                    result.setdefault(name, value)
            if listing.ttl_ms is not None:
                ttl = listing.ttl_ms if ttl is None else min(ttl, listing.ttl_ms)
        result[KINDS[kind][1]] = Raw(b"[" + b",".join(dumps(item) for item in items) + b"]")
        if caller.era == "modern":
            result.setdefault("resultType", Raw(b'"complete"'))
            result["ttlMs"] = Raw(dumps(ttl or 0))
            result["cacheScope"] = Raw(b'"private"')
        return result

    def others(self, kind: ListKind, known: Sequence[Known]) -> list[Object]:
        """Prompts, resources or templates under their names."""
        identity = KINDS[kind][2]
        found: list[Object] = []
        for one in known:
            for item in one.catalog.of(kind).items:
                exposed = self.book.exposed(one.server, kind, item.name)
                if exposed is not None:
                    found.append(item.raw if exposed == item.name else {**item.raw, identity: Raw(dumps(exposed))})
        return found

    # Resources

    def own_uri(self, known: Known, uri: str) -> str | None:
        """A resource's URI as its server has it, where it may be that server's."""
        meant = self.book.meant("resources", uri)
        if meant is not None:
            return meant[1] if meant[0] == known.server else None
        return uri if known.catalog.resources.offered else None

    def address(self, server: str, uri: str, caller: Caller) -> str:
        """The URI that a caller reads a server's resource by: with the server's name in front, where it has to be."""
        given = set(self.servers(caller))
        if len(given) < 2:
            return uri
        held = {kind: self.book.table(kind) for kind in ("resources", "templates")}
        offering = {holder[0] for table in held.values() for holder in table.values()} & given
        if server not in offering:
            return uri
        listed = held["resources"].get(uri)
        resources = {uri: listed} if listed is not None and listed[0] in given else {}
        templates = {one: holder for one, holder in held["templates"].items() if holder[0] in given}
        found = fitting(uri, resources=resources, templates=templates, offering=offering)
        return uri if found == (server, uri) else prefixed(server, uri)

    def shown(self, server: str, notice: Message) -> Message:
        """A server's notice as a caller reads it: a URI that had to be changed is changed here too."""
        if notice.method != "notifications/resources/updated":
            return notice
        uri = notice.text("uri")
        exposed = self.book.exposed(server, "resources", uri) if uri is not None else None
        return notice if exposed is None or exposed == uri else notice.with_param("uri", exposed)

    # Changes

    def heard(self, session: Session, server: str, message: Message) -> Message | None:
        """What a session is told of what a server says besides answers; None: nothing."""
        if message.kind == "request":
            given = self.grants.gives_server(session.thread, server)
            return message if given and (session.flies_to(server) or self.gives_words(session.thread, server)) else None
        if not self.hears(session.thread, server, message):
            return None
        if message.method == "notifications/resources/updated":
            link = session.links().get(server)
            uri = message.text("uri") or ""
            mine = session.subscribed.get(server, ())
            if getattr(link, "shared", False) and not any(uri.startswith(one) for one in mine):
                # Somebody else's subscription, on the child that all share.
                return None
        return self.shown(server, message)

    def on_change(self, thread: str, told: Callable[[str], None]) -> Callable[[], None]:
        """Be told the method of each notice that a list of a thread changed by our doing; gives what ends it."""
        entry = (thread, told)
        self._listeners.append(entry)

        def end() -> None:
            if entry in self._listeners:
                self._listeners.remove(entry)

        return end

    @property
    def listening(self) -> frozenset[str]:
        """The threads that somebody listens for."""
        return frozenset(thread for thread, _ in self._listeners)

    def announce(
        self, kinds: Sequence[ListKind] = _ANNOUNCED, thread: str | None = None, server: str | None = None
    ) -> None:
        """Tell those who listen that lists changed.

        Args:
            thread: Of this one alone.
            server: Of those that are given something of this one: nobody else hears that there is one.
        """
        for whose, told in tuple(self._listeners):
            if thread not in (None, whose) or (server is not None and not self.grants.gives_server(whose, server)):
                continue
            for kind in kinds:
                told(f"notifications/{kind}/list_changed")


def _is_open(known: Known, tool: str) -> bool:
    """Whether a server's own tool is there, open, and no profile's."""
    return (
        tool in known.catalog.tools.by_name
        and tool not in known.closed
        and (known.speaker is None or tool not in known.speaker.hidden)
    )
