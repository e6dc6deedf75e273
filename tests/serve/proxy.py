"""A real HTTP server behind a TCP proxy that can be cut in the ways in which networks are."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Literal, TypeVar

import anyio
import anyio.abc

from hotplug import connect
from hotplug.profile import Profile
from hotplug.serve import build
from hotplug.store import memory

from .ways import era, listening

__all__ = ["Proxy", "through_a_proxy"]

P = TypeVar("P", bound=Profile)


class Proxy:
    """A TCP proxy that can be cut.

    `closed`: connections end, and none lasts. `frozen`: nothing moves. `lost`: nothing moves ever again on the
    connections that there are, and new ones are well.
    """

    def __init__(self, port: int) -> None:
        self.url = ""
        self._port = port
        self._state: Literal["open", "closed", "frozen", "lost"] = "open"
        self._moves = anyio.Event()
        self._moves.set()
        self._streams: set[anyio.abc.SocketStream] = set()
        self._lost: set[anyio.abc.SocketStream] = set()

    async def cut(self, how: Literal["closed", "frozen", "lost"]) -> None:
        self._state = how
        if how == "frozen":
            self._moves = anyio.Event()
        if how == "lost":
            self._lost |= self._streams
        if how != "closed":
            return
        for stream in list(self._streams):
            await stream.aclose()

    def mend(self) -> None:
        self._state = "open"
        self._moves.set()

    async def serve(self, near: anyio.abc.SocketStream) -> None:
        if self._state == "closed":
            await near.aclose()
            return
        async with near, await anyio.connect_tcp("127.0.0.1", self._port) as far:
            self._streams |= {near, far}
            try:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(self._pump, near, far, tasks.cancel_scope)
                    tasks.start_soon(self._pump, far, near, tasks.cancel_scope)
            finally:
                self._streams -= {near, far}

    async def _pump(self, one: anyio.abc.SocketStream, other: anyio.abc.SocketStream, scope: anyio.CancelScope) -> None:
        try:
            async for chunk in one:
                await self._moves.wait()
                if one not in self._lost:
                    await other.send(chunk)
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            pass
        # An end isn't passed on either while nothing moves.
        await self._moves.wait()
        if one in self._lost:
            await anyio.sleep_forever()
        scope.cancel()


@asynccontextmanager
async def through_a_proxy(profile: type[P], shop: P, kind: str) -> AsyncGenerator[tuple[P, Proxy]]:
    """A connection over HTTP to a real server, through a proxy."""
    async with memory() as store:
        server, _ = build(shop, name="shop", store=store)
        async with (
            listening(server.streamable_http_app()) as url,
            await anyio.create_tcp_listener(local_host="127.0.0.1") as listener,
            anyio.create_task_group() as tasks,
        ):
            proxy = Proxy(int(url.rpartition(":")[2]))
            tasks.start_soon(listener.serve, proxy.serve)
            port = listener.extra(anyio.abc.SocketAttribute.local_port)
            async with connect(profile, f"http://127.0.0.1:{port}/mcp", era=era(kind)) as app:
                yield app, proxy
                proxy.mend()
            tasks.cancel_scope.cancel()
