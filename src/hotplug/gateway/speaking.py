"""What a server behind the gateway speaks of profiles: itself, through a projection, or as a native one in here.

A speaker is made once for a server and lives as long as its entry. It reads again whenever the process behind was
replaced or its list of tools changed, and where it can't be used it says why: the others go on.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, Final, cast

from hotplug.catalog import PROFILES, Connection, profile_class
from hotplug.connect import Spoken, Way, speaks
from hotplug.declare import Declaration, Instance, routes
from hotplug.door import account_of, fitting, in_process, listed, projected
from hotplug.errors import ConnectionFailed, HotplugError, Internal, Unavailable, Unsupported
from hotplug.gateway.config import ServerConfig
from hotplug.gateway.offers import Offer
from hotplug.gateway.passing import Passage, RemoteProvider, Sent, ThreadSeal, masked, read_arguments
from hotplug.gateway.raw_channel import Conversation, RawChannel
from hotplug.gateway.voices import Caller, PassedVoice, RuntimeVoice, ThreadRuntime, Voice
from hotplug.profile import Definition, Profile
from hotplug.profile.versions import Range
from hotplug.serve import Answer, Runtime, Seals, result_of
from hotplug.store import Store

if TYPE_CHECKING:
    from hotplug.projection import ProjectedProvider
    from hotplug.projection.fingerprint import Drift

__all__ = ["FindProfile", "Speaker", "find_profile", "speak"]

FindProfile = Callable[[str], type[Profile] | None]

_CONNECTION: Final = "connection"
_ID: Final = re.compile(r"[A-Za-z0-9._:-]{1,64}")
"""An id of an upstream's that may stand in a tool's schema."""
_log = logging.getLogger(__name__)


def find_profile(name: str) -> type[Profile] | None:
    """The profile of that name: of the catalog, or of a package that brings one; None where there is none."""
    if name in PROFILES:
        return profile_class(name)
    for entry in entry_points(group="hotplug.profiles"):
        if entry.name == name:
            found: Any = entry.load()
            return found if isinstance(found, type) and issubclass(found, Profile) else None
    return None


class Speaker:
    """A server's profile operations.

    Args:
        config: The server's entry.
        conversation: With the process or the remote end behind; None for a native server in this process.
        store: The gateway's: keys, receipts, events and the key that seals refs.
        find: Finds a profile by its name.
    """

    def __init__(
        self,
        config: ServerConfig,
        conversation: Conversation | None,
        store: Store,
        *,
        find: FindProfile = find_profile,
    ) -> None:
        self.config = config
        self.server = config.name
        self._conversation = conversation
        self._store = store
        self._find = find
        self._voice: Voice | None = None
        self._projected: dict[str, ProjectedProvider] = {}
        self._unreached: str | None = None
        self._refused: str | None = None
        self._logged: str | None = None
        self._edition: str | None = None
        self._offers: dict[str, Offer] = {}
        self.version = 0
        """Changes whenever what it offers does."""
        self._lock = asyncio.Lock()
        self._stack = AsyncExitStack()

    # What it is

    @property
    def instance(self) -> str:
        """Another one whenever what is behind was replaced."""
        return self._conversation.instance if self._conversation is not None else self.server

    @property
    def title(self) -> str:
        """For a person."""
        return self._voice.title if self._voice is not None else self.server

    @property
    def definitions(self) -> Sequence[Definition]:
        """The definitions of the profiles that it speaks, or should."""
        if self._voice is not None:
            return self._voice.definitions
        found = [self._find(name) for name in self.config.profiles]
        return [one.definition for one in found if one is not None]

    @property
    def profiles(self) -> Mapping[str, str]:
        """The profiles that it speaks, each with its version."""
        cards = {card.profile: card.version for card in self.declaration.cards}
        return {one.name: cards.get(one.name, one.version) for one in self.definitions}

    @property
    def declaration(self) -> Declaration:
        """What it declares: itself, or in here for it."""
        return self._voice.declaration if self._voice is not None else Declaration()

    @property
    def offers(self) -> Mapping[str, Offer]:
        """The parts that it has, by wire name, those of connection@1 too; also while it can't be used."""
        return self._offers

    @property
    def own_instances(self) -> tuple[Instance, ...]:
        """The instances that the server itself tells apart, where it has several."""
        declared = self._voice.declaration.instances if isinstance(self._voice, PassedVoice) else ()
        usable = tuple(one for one in declared if _ID.fullmatch(one.id))
        return usable if len(declared) > 1 else ()

    @property
    def in_here(self) -> bool:
        """Whether it runs in this process, so that its title is no upstream's word."""
        return self._conversation is None

    def opened_instance(self, ref: str, thread: str) -> str | None:
        """The server's own id of an instance that this thread opened; None where it is none of this thread's."""
        passage = self._voice.passage("connection.open") if isinstance(self._voice, PassedVoice) else None
        return passage.opened_instance(ref, thread) if passage is not None else None

    @property
    def hidden(self) -> frozenset[str]:
        """The upstream tools that a profile covers: they aren't offered raw."""
        return self._voice.hidden if self._voice is not None else frozenset()

    @property
    def drift(self) -> str | None:
        """How the server's tools differ from what its projection was tested with, in words, for the owner."""
        words = [_in_words(one.drift) for one in self._projected.values() if one.drift]
        return "; ".join(words) or None

    @property
    def told(self) -> str | None:
        """The problem as callers are told it: in none of the server's own words, and naming none of its tools."""
        if self._conversation is None or self._unreached is not None or self.problem is None:
            return self.problem
        return f"{self.server} isn't what it is set up as, so its operations can't be used: hotplug doctor says more"

    @property
    def drifted(self) -> str | None:
        """The drift as callers are told it: without the tools that it is of."""
        return "its tools differ from those that its projection was tested with" if self.drift else None

    @property
    def problem(self) -> str | None:
        """Why its operations can't be used at the moment, for the owner; None while they can."""
        if self._unreached is not None:
            return self._unreached
        if self._refused is not None:
            return self._refused
        broken = [one.unavailable for one in self._projected.values() if one.unavailable]
        return "; ".join(broken) or None

    # Its life

    async def settle(self) -> None:
        """Look at what is behind now, where that may have changed; never raises for what a server does."""
        async with self._lock:
            if self._conversation is None:
                if self._voice is None:
                    await self._guarded(self._open_native())
                return
            try:
                edition = await self._conversation.edition()
                if edition == self._edition and self._unreached is None:
                    return
                tools = await self._conversation.tools()
            except HotplugError as error:
                self._unreached = self._conversation.mask(str(error))
                if self._voice is None:
                    await self._guarded(self._foresee())
                return
            was, self._unreached = self._unreached, None
            if edition != self._edition:
                self._refused = None
                await self._guarded(self._read(self._conversation, tools))
                self._edition = edition
            elif was is not None:
                self._list()

    async def aclose(self) -> None:
        """Let go of what a native server holds."""
        await self._stack.aclose()

    async def _guarded(self, work: Any) -> None:
        """Do it, and keep what is wrong in words."""
        try:
            await work
        except HotplugError as error:
            self._refused = self._conversation.mask(str(error)) if self._conversation is not None else str(error)
        except Exception as error:
            # What a server says of itself is anybody's invention; its text may repeat any value.
            _log.error("what %s speaks can't be told: %s", self.server, type(error).__name__)
            self._refused = f"what {self.server} speaks can't be told ({type(error).__name__})"
        self._list()

    def _list(self) -> None:
        self.version += 1
        if self.problem != self._logged:
            self._logged = self.problem
            if self.problem is not None:
                _log.warning("%s can't be used by its profile: %s", self.server, self.problem)
        self._offers = self._voice.offers(self.server, self.instance) if self._voice is not None else {}

    # How it speaks

    async def _open_native(self) -> None:
        target = self.config.target
        # A file keeps its own records: they commit together with what is done in it.
        shared = None if getattr(target, "scheme", None) == "sqlite" else self._store
        native = in_process(target, shared)
        if native is None:
            self._refused = f"{self.server} is no server that runs in this process"
            return
        server, own, identity = native
        kept = await self._stack.enter_async_context(own) if own is not None else self._store
        runtime = Runtime(server, store=kept, identity=identity, name=self.server)
        await self._stack.enter_async_context(runtime.opened())
        self._refused = None
        self._voice = RuntimeVoice(runtime)

    async def _foresee(self) -> None:
        """What its entry alone shows of a server that can't be reached."""
        assert self._conversation is not None
        self._present(self._conversation, ())

    async def _read(self, conversation: Conversation, tools: Sequence[Mapping[str, Any]]) -> None:
        if self.config.projection is None and self._pass(conversation, tools):
            return
        if not self._present(conversation, tools):
            self._voice, self._projected = None, {}
            if self.config.profiles or self.config.projection:
                wanted = ", ".join(self.config.profiles)
                self._refused = f"{self.server} speaks no {wanted}, and no shipped projection fits it; {listed(tools)}"
            return
        for provider in self._projected.values():
            await provider.aopen()

    def _pass(self, conversation: Conversation, tools: Sequence[Mapping[str, Any]]) -> bool:
        """Take it at its word, where it declares profiles that are known here."""
        declaration = Declaration.from_extensions(conversation.extensions)
        declared = [card.profile for card in declaration.cards if card.profile != _CONNECTION]
        wanted = [name for name in declared if not self.config.profiles or name in self.config.profiles]
        classes = _leaves(found for name in wanted if (found := self._find(name)) is not None)
        if not classes:
            return False
        spoken: list[Spoken] = []
        for one in classes:
            version = next(card.version for card in declaration.cards if card.profile == one.definition.name)
            major = one.definition.version.partition(".")[0]
            try:
                spoken.append(speaks(one, Range(f"^{major}"), declaration, tools, target=self.server))
            except HotplugError as error:
                self._refused = conversation.mask(str(error))
                if version.partition(".")[0] == major:
                    spoken.append(_unchecked(one, declaration, tools))
        self._projected = {}
        if not spoken:
            self._voice = None
            return True
        members = {way.tool for one in spoken for way in one.ways.values()}
        providers = [RemoteProvider(one.definition, one, conversation, self.server) for one in spoken]
        identity = account_of(f"mcp:{self.server}", self.config.target, self._store)
        if all(one.keeps_keys for one in spoken):
            key = self._store.sealing_key()
            seals = Seals(lambda thread: ThreadSeal(key, identity, thread, lambda: conversation.instance))
            connection = RemoteProvider(Connection.definition, spoken[0], conversation, self.server)
            passages = tuple(
                Passage(one, provider, connection, seals.of, self._store.sealing_key())
                for one, provider in zip(spoken, providers, strict=True)
            )
            title = next((one.title for one in declaration.instances if one.title), None)
            self._voice = PassedVoice(
                passages,
                conversation,
                frozenset(members),
                title or self.server,
                declaration,
                [one.definition for one in spoken],
            )
        else:
            # It remembers no keys, so they are remembered here.
            runtime = ThreadRuntime(
                *providers,
                store=self._store,
                identity=identity,
                name=self.server,
                instance=lambda: conversation.instance,
            )
            self._voice = RuntimeVoice(runtime, frozenset(members), frozenset(members), conversation.mask)
        return True

    def _present(self, conversation: Conversation, tools: Sequence[Mapping[str, Any]]) -> bool:
        """Put projections between, where some fit; those that are there already stay."""
        from hotplug.projection import named, shipped

        names: Iterable[str] = self.config.profiles
        if not names:
            documents = [named(self.config.projection)] if self.config.projection else shipped()
            names = dict.fromkeys(name for one in documents for name in one.source.document.profiles)
        classes = _leaves(found for name in names if (found := self._find(name)) is not None)
        fit = {
            one: loaded
            for one in classes
            if (loaded := fitting(one, self.config.target, self.config.projection, tools)) is not None
        }
        if not fit:
            return False
        chosen = {one.definition.name: loaded.name for one, loaded in fit.items()}
        there = {name: one.document.projection for name, one in self._projected.items()}
        if self._voice is not None and chosen == there:
            return True
        channel = RawChannel(conversation, timeout=self.config.call_timeout or 60.0)
        self._projected = {
            one.definition.name: projected(loaded, one, channel, title=self.server) for one, loaded in fit.items()
        }
        providers = list(self._projected.values())
        kind = f"{self.server}/{'+'.join(sorted(set(chosen.values())))}"
        runtime = ThreadRuntime(
            *providers,
            store=self._store,
            identity=account_of(kind, self.config.target, self._store),
            name=self.server,
            instance=lambda: conversation.instance,
        )
        hidden = frozenset(
            tool
            for one in providers
            for tool, entry in one.document.coverage.items()
            if entry.state in ("mapped", "approximated")
        )
        used = frozenset[str]().union(*(one.used for one in providers))
        self._voice = RuntimeVoice(runtime, hidden, used, conversation.mask)
        return True

    # Calls

    async def call(
        self,
        part: str,
        arguments: Any,
        meta: Mapping[str, Any],
        *,
        thread: str,
        authorized: bool = False,
        instance: str | None = None,
    ) -> dict[str, Any]:
        """Call a part that is offered; every failure is a result too.

        Nobody is asked in between and no progress is told: a front that passes these on sends the call of an offer with
        a route itself, by `outgoing` and `incoming`.

        Args:
            arguments: Raw JSON, or values.
            meta: The caller's `_meta`. What it says of authorisations and instances counts for nothing here.
            thread: On whose behalf: refs and keys of two threads never meet.
            authorized: Whether an access profile or a person allowed it, where it is guarded.
            instance: One of the server's own instances.

        Returns:
            A tool's result, without the `resultType` of the modern era.
        """
        try:
            await self.settle()
            voice = self._voice
            if self.problem is not None or voice is None:
                raise Unavailable(self.told or f"{self.server} speaks no profile any more")
            if part not in self._offers:
                raise Unsupported(f"{self.server} doesn't offer {part}", details={"part": part})
            return await voice.call(part, read_arguments(arguments), meta, Caller(thread, authorized, instance))
        except Exception as error:
            if isinstance(error, ConnectionFailed):
                body = error.as_wire()
            else:
                _log.error("%s at %s failed: %s", part, self.server, type(error).__name__)
                body = Internal(f"{part} failed ({type(error).__name__})", details={"state": "unknown"}).as_wire()
            if self._conversation is not None:
                body = cast("dict[str, Any]", masked(body, self._conversation.mask))
            return result_of(Answer(body, is_error=True))

    async def outgoing(
        self,
        part: str,
        arguments: Any,
        meta: Mapping[str, Any],
        *,
        thread: str,
        authorized: bool = False,
        instance: str | None = None,
    ) -> Sent:
        """For an offer with a route: the params with which its call goes to the server itself; see `Passage.outgoing`.

        Raises:
            ConnectionFailed: It is refused here, and nothing is sent.
        """
        await self.settle()
        if self.problem is not None:
            raise Unavailable(self.told or self.problem)
        return self._passage(part).outgoing(
            part, read_arguments(arguments), meta, thread=thread, authorized=authorized, instance=instance
        )

    def incoming(self, sent: Sent, result: Mapping[str, Any], *, thread: str) -> dict[str, Any]:
        """The result of such a call as the caller gets it; see `Passage.incoming`."""
        return self._passage(sent.part).incoming(sent, result, thread=thread)

    def _passage(self, part: str) -> Passage:
        found = self._voice.passage(part) if isinstance(self._voice, PassedVoice) else None
        if found is None:
            raise Unavailable(f"{self.server} doesn't offer {part} any more")
        return found


async def speak(
    config: ServerConfig,
    *,
    conversation: Conversation | None,
    store: Store,
    find: FindProfile = find_profile,
) -> Speaker | None:
    """The speaker of a server that speaks profiles, or should; None where it has only tools of its own.

    Args:
        conversation: With what is behind; None for a native server that runs in this process.
    """
    speaker = Speaker(config, conversation, store, find=find)
    await speaker.settle()
    if speaker.definitions or speaker.problem is not None:
        return speaker
    await speaker.aclose()
    return None


def _leaves(classes: Iterable[type[Profile]]) -> list[type[Profile]]:
    """Those that no other one of them extends."""
    found = list(dict.fromkeys(classes))
    return [one for one in found if not any(other is not one and issubclass(other, one) for other in found)]


def _unchecked(profile: type[Profile], declaration: Declaration, tools: Sequence[Mapping[str, Any]]) -> Spoken:
    """What a server would speak if its tools were what it declares: for the list of what is unavailable."""
    definition = profile.definition
    card = declaration.card(definition.name)
    assert card is not None
    known = {**definition.all_parts, **Connection.definition.all_parts}
    members = {name: definition.member(name) for name in definition.all_parts}
    members |= {name: Connection.definition.member(name) for name in Connection.definition.all_parts}
    found = routes(declaration, members, tools)
    ways = {name: Way(route.tool, dict(route.fixed)) for name, route in found.items()}
    return Spoken(
        profile=definition.name,
        version=card.version,
        facets=frozenset(card.facets),
        extensions=dict(declaration.extensions),
        known=known,
        ways=ways,
        lost={},
        keeps_keys="connection.describe" in ways,
        definition=definition,
        declaration=declaration,
        tools=tools,
    )


def _in_words(drift: Drift | None) -> str:
    if drift is None:
        return ""
    kinds = (("new", drift.added), ("gone", drift.removed), ("different", drift.changed))
    return "; ".join(f"{word}: {', '.join(names)}" for word, names in kinds if names)
