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
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Final, Self

from hotplug.gateway.book import Book
from hotplug.gateway.catalog import Item
from hotplug.gateway.config import GatewayConfig
from hotplug.gateway.front.guard import Guard
from hotplug.gateway.front.http import HttpFront
from hotplug.gateway.front.stdio import StandardStreams, StdioFront
from hotplug.gateway.grants import Grants
from hotplug.gateway.link import Frame
from hotplug.gateway.message import Message
from hotplug.gateway.names import PROFILE_PARTS
from hotplug.gateway.names_store import Names
from hotplug.gateway.pins import Pins
from hotplug.gateway.pool import Pool
from hotplug.gateway.records import Records
from hotplug.gateway.router import Router
from hotplug.gateway.sessions import Session, Sessions
from hotplug.gateway.states import StateSeal
from hotplug.gateway.threads import Threads
from hotplug.gateway.threads_api import ThreadsApi
from hotplug.gateway.toolset import OURS
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
    """

    def __init__(
        self,
        config: GatewayConfig,
        *,
        store: Store | None = None,
    ) -> None:
        self.config = config
        self._given_store = store
        self._stack = AsyncExitStack()
        self._told: dict[str, Callable[[], None]] = {}

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
        narrowing = [(one.profile, str(one.path)) for one in config.narrowing]
        self.grants = Grants(self.settings, self.threads, lambda: narrowing)
        for name, server in config.servers.items():
            if not server.disabled:
                self.grants.offers(name, ())
        piped = {name: one for name, one in config.servers.items() if not is_native(one)}
        self.pool = Pool(piped, secrets=config.secrets, store=store)
        await self._stack.enter_async_context(self.pool)
        self.servers = Servers(config.servers, self.pool, store)
        self._stack.push_async_callback(self.servers.aclose)
        names = Names(store, client_prefix=config.client_prefix, reserved=PROFILE_PARTS, collisions="leave_out")
        self.book = Book(names, config)
        await self.book.learn_ours(OURS)
        self.pins = Pins(store)
        self.view = View(self.servers, self.grants, self.book, _Closed(self.pins), config.search)
        key = store.sealing_key()
        self.records = Records(calls_of(store), config.records, sealing_key=key)
        await self._stack.enter_async_context(self.records)
        self.router = Router(self.view, StateSeal(key), records=self.records)
        self.sessions = Sessions(self._released)
        self._stack.push_async_callback(self.sessions.aclose)
        for task in (self._watch(), self._sweep()):
            self._stack.push_async_callback(_ended, asyncio.create_task(task))
        for upstream in self.pool.upstreams.values():
            self._stack.callback(upstream.on_change(self.view.announce))

    # Sessions

    def new_session(self, thread: str, message: Message) -> Session:
        """The session of a client that says `initialize`."""
        session = Session(thread, message.params, self.servers.session_link, shown=self.view.shown)

        def tell(method: str) -> None:
            session.tell(Frame(Message.notification(method)))

        self._told[session.id] = self.view.on_change(thread, tell)
        return session

    async def _released(self, session: Session) -> None:
        end = self._told.pop(session.id, None)
        if end is not None:
            end()
        await self.servers.release(session)

    # What goes on besides

    async def _watch(self) -> None:
        """Announce what the owner changes; each call asks anew anyway."""
        seen, pinned = self.grants.refresh(), await self.pins.versions()
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            try:
                now, pins = self.grants.refresh(), await self.pins.versions()
            except Exception:
                _logger.exception("looking for changes failed")
                continue
            if pins != pinned:
                self.view.forget_pins()
            if (now, pins) != (seen, pinned):
                seen, pinned = now, pins
                self.view.announce()
                await self._end_closed_threads()

    async def _end_closed_threads(self) -> None:
        for session in self.sessions.all():
            if not self.threads.is_open(session.thread):
                await self.sessions.end(session)

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(_SWEEP_SECONDS)
            with contextlib.suppress(Exception):
                await self.sessions.sweep()

    # Fronts

    def http(self) -> HttpFront:
        """The ASGI application of the HTTP endpoint."""
        guard = Guard(self.config.hosts, self.config.origins)
        api = ThreadsApi(self.threads, self.config.threads.openers)
        return HttpFront(self.router, self.sessions, self.threads, self.new_session, guard=guard, api=api)

    async def serve_http(self, *, ready: Callable[[str], None]) -> None:
        """Serve HTTP until cancelled or told to stop by a signal.

        Args:
            ready: Told the base URL once connections are taken.
        """
        import uvicorn

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
        server = uvicorn.Server(config)
        serving = asyncio.create_task(server.serve())
        try:
            while not server.started and not serving.done():  # noqa: ASYNC110 - uvicorn raises no event
                await asyncio.sleep(0.005)
            if server.started:
                host, port = server.servers[0].sockets[0].getsockname()[:2]
                shown = f"[{host}]" if ":" in host else host
                ready(f"http://{shown}:{port}")
            await serving
        finally:
            server.should_exit = True
            with contextlib.suppress(asyncio.CancelledError):
                await serving

    async def serve_stdio(self, thread: str, open_thread: Callable[[], bool]) -> None:
        """Serve one client on this process's standard streams, until it closes them."""
        lines = await StandardStreams.open()
        front = StdioFront(self.router, thread, self.new_session, open_thread, lines)
        await front.serve()


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
