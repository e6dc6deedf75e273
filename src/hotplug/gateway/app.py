"""The gateway put together: store, threads, settings, upstreams and fronts, opened and closed as one.

```python
async with Gateway(config) as gateway:
    await gateway.serve_http()
```
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Generator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final, Self

from hotplug.access import Access, Profile, Refused
from hotplug.connect import Target
from hotplug.errors import HotplugError
from hotplug.gateway.binding import bound
from hotplug.gateway.book import Book
from hotplug.gateway.catalog import Item
from hotplug.gateway.config import GatewayConfig, ServerConfig
from hotplug.gateway.front.guard import Guard
from hotplug.gateway.front.http import HttpFront
from hotplug.gateway.front.stdio import Lines, StandardStreams, StdioFront
from hotplug.gateway.grants import Grants
from hotplug.gateway.link import Frame, LinkLost
from hotplug.gateway.message import Message
from hotplug.gateway.names import PROFILE_PARTS, Collisions, Wanted
from hotplug.gateway.names_store import Names
from hotplug.gateway.oauth import OAuthCredentials
from hotplug.gateway.pins import Pins
from hotplug.gateway.pool import Pool
from hotplug.gateway.records import Records
from hotplug.gateway.reloading import LiveSecrets
from hotplug.gateway.router import Router
from hotplug.gateway.sessions import Session, Sessions
from hotplug.gateway.states import StateSeal
from hotplug.gateway.threads import Threads, forget_picks
from hotplug.gateway.threads_api import ThreadsApi
from hotplug.gateway.toolset import OURS
from hotplug.gateway.upstream import LinkKey, Upstream
from hotplug.gateway.upstreams import Servers, is_native
from hotplug.gateway.view import View
from hotplug.store import SettingsFile, Store, default_settings_path, default_store, open_store
from hotplug.store.calls import calls_of

__all__ = ["Gateway"]

_LOOK_SECONDS: Final = 0.5
_SWEEP_SECONDS: Final = 30.0
_logger = logging.getLogger(__name__)


class Gateway:
    """One gateway.

    Args:
        config: What it is set up with.
        store: Kept open by the caller; None: the one that the configuration names is opened and closed here.
        reload: Looks for changes of the configuration; None: it stays as it is.
    """

    def __init__(
        self,
        config: GatewayConfig,
        *,
        store: Store | None = None,
        reload: Callable[[], GatewayConfig | None] | None = None,
    ) -> None:
        self.config = config
        self._reload = reload
        self._secrets = LiveSecrets(config.secrets)
        self._narrowing = _narrowing(config)
        self._openers = dict(config.threads.openers)
        self._given_store = store
        self._stack = AsyncExitStack()
        self._fronts: list[HttpFront | StdioFront] = []
        self._announcing: set[str] = set()
        self._named: tuple[object, ...] | None = _naming(config)

    async def __aenter__(self) -> Self:
        try:
            await self._open()
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    async def _open(self) -> None:
        config = self.config
        store = self._given_store
        if store is None:
            store = open_store(config.store_url) if config.store_url else default_store("gateway")
            await self._stack.enter_async_context(store)
        self.store: Store = store
        self.threads = Threads.over(store)
        self.settings = SettingsFile(config.settings or default_settings_path())
        self.grants = Grants(self.settings, self.threads, lambda: self._narrowing)
        for name in _offered(config):
            self.grants.offers(name, ())
        credentials = OAuthCredentials(self._secrets)
        self.pool = Pool(_piped(config), secrets=self._secrets, store=store, credentials=credentials)
        await self._stack.enter_async_context(self.pool)
        self.servers = Servers(config.servers, self.pool, store)
        self._stack.push_async_callback(self.servers.aclose)
        self.book = Book(_names(store, config), config)
        await self.book.learn_ours(OURS)
        self.pins = Pins(store)
        self.view = View(self.servers, self.grants, self.book, _Closed(self.pins), config.search)
        self._stack.push_async_callback(self.view.aclose)
        key = store.sealing_key()
        self.records = Records(calls_of(store), config.records, sealing_key=key, mask=self.pool.mask)
        await self._stack.enter_async_context(self.records)
        self.router = Router(self.view, StateSeal(key), secrets=self._secrets, records=self.records)
        self.sessions = Sessions(self._released)
        self._stack.push_async_callback(self.sessions.aclose)
        for task in (self._watch(), self._sweep(), self._follow_closings()):
            self._stack.push_async_callback(_ended, asyncio.create_task(task))
        for name in self.pool.upstreams:
            self._announced(name)

    def _announced(self, server: str) -> None:
        """Announce what changes at a server, to those who are given something of it."""
        if server in self._announcing:
            return
        self._announcing.add(server)
        self.pool.upstreams[server].on_change(lambda: self.view.announce(server=server))

    async def check(self, thread: str) -> None:
        """See that no two tools that keep their own names have the same. Starts the servers without a prefix, if any.

        Args:
            thread: Whose links are opened for it: with its own, nothing is started twice.

        Raises:
            NamesCollide: Two have.
        """
        bare = [name for name in _offered(self.config) if self.config.servers[name].prefix == ""]
        found = [self.pool.upstreams[name] for name in bare if name in self.pool.upstreams]
        if len(found) < 2:
            return

        async def tools(upstream: Upstream) -> list[Wanted]:
            try:
                catalog = await upstream.catalog(await upstream.link("modern", LinkKey(thread)))
            except (HotplugError, LinkLost) as error:
                _logger.warning("whether names of %s collide can't be seen: %s", upstream.name, error)
                return []
            return [Wanted(upstream.name, name) for name in catalog.tools.by_name]

        wanted = [one for of_one in await asyncio.gather(*map(tools, found)) for one in of_one]
        await _names(self.store, self.config, collisions="refuse").tools(wanted, self.config.names)

    async def reconfigure(self, config: GatewayConfig) -> None:
        """Go on by another configuration. What it leaves as it was isn't touched; what is gone ends at once.

        The store, the settings' file, the records and where HTTP is served stay until the next start. Where something
        fails on the way, the same once more does what is left.
        """
        before = self.config
        self._secrets.current = config.secrets
        if config.narrowing != before.narrowing:
            self._narrowing = _narrowing(config)
        self._openers.clear()
        self._openers.update(config.threads.openers)
        # By what holds now, not by what was to hold: the last change may have failed on the way.
        old, new = self.grants.host.servers, _offered(config)
        for name in old:
            if name not in new:
                self.grants.offers(name, None)
        await self.pool.update(_piped(config))
        await self.servers.update(config.servers)
        for name in new:
            if name not in old or name not in before.servers or _target(config, name) != _target(before, name):
                self.grants.offers(name, ())
        if _naming(config) != self._named:
            self._named = None
            await self.book.renew(_names(self.store, config), config)
            await self.book.learn_ours(OURS)
            self._named = _naming(config)
        self.view.renew(config.search)
        self._announcing &= self.pool.upstreams.keys()
        for name in self.pool.upstreams:
            self._announced(name)
        if (config.names, config.client_prefix, config.search) != (before.names, before.client_prefix, before.search):
            self.view.announce()
        # Of servers that came or went, those are told whose access it is.
        for name in new:
            if name in old and config.servers[name] != before.servers.get(name):
                self.view.announce(server=name)
        self.config = config
        _logger.info("the configuration was read again: %s", ", ".join(new) or "no server")

    # Sessions

    def new_session(self, thread: str, message: Message) -> Session:
        """The session of a client that says `initialize`."""
        session = Session(thread, message.params, self.servers.session_link, heard=self.view.heard)

        def tell(method: str) -> None:
            session.tell(Frame(Message.notification(method)))

        session.ends.append(self.view.on_change(thread, tell))
        return session

    async def _released(self, session: Session) -> None:
        await self.servers.release(session)

    # What goes on besides

    async def _watch(self) -> None:
        """Announce what the owner changes, and end what closed threads have open; each call asks anew anyway."""
        seen = _Seen()
        due: GatewayConfig | None = None
        while True:
            try:
                due = (self._reload() if self._reload is not None else None) or due
                if due is not None:
                    # Once more at the next look, where it fails: half of it may take something away that is still used.
                    await self.reconfigure(due)
                    due = None
                await self._look(seen)
            except Exception:
                _logger.exception("looking for changes failed")
            await asyncio.sleep(_LOOK_SECONDS)

    async def _look(self, seen: _Seen) -> None:
        pins, version = await self.pins.versions(), self.grants.refresh()
        if seen.pins not in (None, pins):
            self.view.forget_pins()
            self.view.announce()
        seen.pins = pins
        if version == seen.version:
            # Nothing can have changed but for those who began to listen just now.
            seen.given.update({one: self.grants.access(one) for one in self.view.listening - seen.given.keys()})
            return
        seen.version = version
        for thread in self.router.served.difference(self.threads.lineage()):
            await self._end_thread(thread)
        given = {one: self.grants.access(one) for one in self.view.listening}
        for thread, access in given.items():
            # What another thread gets is nobody's business, not even that it changed.
            if thread in seen.given and seen.given[thread] != access:
                self.view.announce(thread=thread)
        seen.given = given

    async def _end_thread(self, thread: str) -> None:
        for front in self._fronts:
            if isinstance(front, HttpFront):
                front.end(thread)
            elif front.thread == thread:
                await front.end()
        for session in self.sessions.of(thread):
            await self.sessions.end(session)
        await self.servers.release_thread(thread)
        self.view.forget(thread)
        self.router.served.discard(thread)

    async def _follow_closings(self) -> None:
        """End what is held for threads that are closed, and forget what was picked for them."""
        while True:
            try:
                async for closed in self.threads.closings(every=_LOOK_SECONDS):
                    await asyncio.gather(*map(self._end_thread, closed))
                    await asyncio.to_thread(forget_picks, self.settings, closed)
            except Exception:
                _logger.exception("looking for closed threads failed")
            await asyncio.sleep(_LOOK_SECONDS)

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(_SWEEP_SECONDS)
            with contextlib.suppress(Exception):
                await self.sessions.sweep()
                # Once more for what a request began that was under way when its thread was closed.
                held = frozenset[str]().union(*(one.threads() for one in self.pool.upstreams.values()))
                await asyncio.gather(*(self._end_thread(one) for one in held if not self.threads.is_open(one)))

    # Fronts

    def http(self) -> HttpFront:
        """The ASGI application of the HTTP endpoint."""
        guard = Guard(self.config.hosts, self.config.origins)
        api = ThreadsApi(self.threads, self._openers)
        front = HttpFront(self.router, self.sessions, self.threads, self.new_session, guard=guard, api=api)
        self._fronts.append(front)
        return front

    async def serve_http(self, *, ready: Callable[[str], None]) -> None:
        """Serve HTTP until cancelled.

        Args:
            ready: Told the base URL once connections are taken.

        Raises:
            ConfigError: The address can't be had.
        """
        import uvicorn

        sockets = await asyncio.to_thread(bound, self.config.host, self.config.port)

        config = uvicorn.Config(
            self.http(),
            host=self.config.host,
            port=self.config.port,
            log_level="warning",
            access_log=False,
            lifespan="off",
            timeout_graceful_shutdown=5,
            server_header=False,
        )

        class Server(uvicorn.Server):
            """Leaves signals to whoever runs this: uvicorn would raise them again after it has ended in order."""

            @contextlib.contextmanager
            def capture_signals(self) -> Generator[None]:
                yield

        server = Server(config)
        serving = asyncio.create_task(server.serve(sockets))
        try:
            while not server.started and not serving.done():  # noqa: ASYNC110 - uvicorn raises no event
                await asyncio.sleep(0.005)
            if server.started:
                host, port = server.servers[0].sockets[0].getsockname()[:2]
                shown = f"[{host}]" if ":" in host else host
                ready(f"http://{shown}:{port}")
            await asyncio.wait({serving})
        finally:
            server.should_exit = True
            await asyncio.wait({serving})
        serving.result()

    async def serve_stdio(self, thread: str, open_thread: Callable[[], bool]) -> None:
        """Serve one client on this process's standard streams, until it closes them."""
        await self.serve_lines(thread, open_thread, await StandardStreams.open())

    async def serve_lines(self, thread: str, open_thread: Callable[[], bool], lines: Lines) -> None:
        """Serve one client on lines, until it closes them."""
        front = StdioFront(self.router, thread, self.new_session, open_thread, lines, self._released)
        self._fronts.append(front)
        try:
            await front.serve()
        finally:
            self._fronts.remove(front)


@dataclass
class _Seen:
    """What was there at the last look."""

    pins: dict[str, str] | None = None
    version: int | None = None
    given: dict[str, Access | Refused] = field(default_factory=dict[str, "Access | Refused"])


def _offered(config: GatewayConfig) -> tuple[str, ...]:
    return tuple(name for name, one in config.servers.items() if not one.disabled)


def _piped(config: GatewayConfig) -> dict[str, ServerConfig]:
    """Those that are reached over links."""
    return {name: one for name, one in config.servers.items() if not is_native(one)}


def _target(config: GatewayConfig, name: str) -> Target:
    return config.servers[name].target


def _narrowing(config: GatewayConfig) -> tuple[tuple[Profile, str], ...]:
    return tuple((one.profile, str(one.path)) for one in config.narrowing)


def _naming(config: GatewayConfig) -> tuple[object, ...]:
    """All that names are made of, but for the tools."""
    return config.names, config.client_prefix, {name: one.prefix for name, one in config.servers.items()}


def _names(store: Store, config: GatewayConfig, collisions: Collisions = "leave_out") -> Names:
    return Names(store, client_prefix=config.client_prefix, reserved=PROFILE_PARTS, collisions=collisions)


async def _ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


class _Closed:
    """The pins, as the view asks for them."""

    def __init__(self, pins: Pins) -> None:
        self._pins = pins

    async def closed(self, server: str, tools: Sequence[Item]) -> dict[str, str]:
        """Tools that are shut until their owner accepts what changed, each with the reason."""
        checked = await self._pins.check(server, tools)
        return {name: state.reason or state.state for name, state in checked.closed.items()}
