"""A whole server in a line: `run(MyCalendar())`."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Literal

import anyio

from hotplug.profile import Profile
from hotplug.serve.attach import Attached, attach
from hotplug.serve.provider import Provider
from hotplug.store import Store

__all__ = ["build", "run"]


def build(
    *servers: Profile | Provider,
    name: str | None = None,
    version: str = "0.1.0",
    store: Store | None = None,
    identity: str | None = None,
) -> tuple[Any, Attached]:
    """A low-level SDK server with the profiles attached, and what answers behind it.

    Args:
        name: How the server calls itself; by default the first class's name.
    """
    from mcp.server.lowlevel import Server
    from mcp_types import ListToolsResult

    async def no_tools(ctx: Any, params: Any) -> ListToolsResult:
        """The middleware adds ours to this list; registering it declares that there are tools."""
        return ListToolsResult(tools=[])

    called = name or type(servers[0]).__name__
    holder: list[Attached] = []

    @asynccontextmanager
    async def lifespan(server: Any) -> AsyncGenerator[None]:
        async with holder[0].opened():
            yield None

    server: Server[Any] = Server(called, version=version, on_list_tools=no_tools, lifespan=lifespan)
    attached = attach(server, *servers, store=store, identity=identity)
    holder.append(attached)
    return server, attached


def run(
    *servers: Profile | Provider,
    transport: Literal["stdio", "http"] = "stdio",
    host: str = "127.0.0.1",
    port: int = 8000,
    name: str | None = None,
    store: Store | None = None,
    identity: str | None = None,
) -> None:
    """Serve until the client is gone or the process is interrupted.

    Args:
        transport: `stdio`, or `http` for streamable HTTP at `http://<host>:<port>/mcp`.
        host, port: Where to listen over HTTP; loopback by default.
        store: As for `attach`.
    """
    server, attached = build(*servers, name=name, store=store, identity=identity)

    async def stdio() -> None:
        from mcp.server.stdio import stdio_server

        async with attached.runtime.store, stdio_server() as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())

    async def http() -> None:
        import uvicorn

        app = server.streamable_http_app(host=host)
        # h11: httptools keeps trailing blanks of header values, which RFC 9110 strips.
        config = uvicorn.Config(app, host=host, port=port, log_level="warning", http="h11")
        async with attached.runtime.store:
            await uvicorn.Server(config).serve()

    anyio.run(stdio if transport == "stdio" else http)
