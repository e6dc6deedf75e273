"""Every way to the same server: in process, in memory through each kind of server object, stdio and HTTP."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import uvicorn
from mcp.server import MCPServer

from hotplug import connect
from hotplug.serve import attach, build
from hotplug.store import Store, memory

from .shop import MyShop, Shop

OBJECTS = ["mcpserver modern", "mcpserver legacy", "fastmcp", "lowlevel modern", "lowlevel legacy"]
WIRES = ["http modern", "http legacy"]
ALL = ["process", *OBJECTS, *WIRES]


def mcpserver() -> MCPServer:
    """An author's server with a tool of its own."""
    server = MCPServer("shop")

    @server.tool()
    async def own(a: int, b: int) -> int:
        """The author's own."""
        return a + b

    return server


def fastmcp() -> Any:
    from fastmcp import FastMCP

    server = FastMCP("shop")

    @server.tool
    async def own(a: int, b: int) -> int:
        """The author's own."""
        return a + b

    return server


def served(kind: str, shop: MyShop, store: Store) -> Any:
    """A server object that speaks the shop."""
    name = kind.split()[0]
    if name == "mcpserver":
        server = mcpserver()
        attach(server, shop, store=store)
        return server
    if name == "fastmcp":
        server = fastmcp()
        attach(server, shop, store=store)
        return server
    return build(shop, name="shop", store=store)[0]


def era(kind: str) -> Any:
    return "legacy" if kind.endswith("legacy") else "auto"


@asynccontextmanager
async def listening(app: Any) -> AsyncGenerator[str]:
    """An ASGI app behind a real uvicorn on a free port; gives its base URL."""
    config = uvicorn.Config(
        app, port=0, log_level="critical", lifespan="on", http="h11", ws="none", timeout_graceful_shutdown=1
    )
    server = uvicorn.Server(config)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(server.serve)
        with anyio.fail_after(10):
            while not server.started:
                await anyio.sleep(0.01)
        try:
            yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
        finally:
            server.should_exit = True


@asynccontextmanager
async def target_of(kind: str, shop: MyShop, store: Store) -> AsyncGenerator[Any]:
    """What to connect to for a way."""
    if kind == "process":
        yield shop
    elif kind.startswith("http"):
        server, _ = build(shop, name="shop", store=store)
        async with listening(server.streamable_http_app()) as url:
            yield f"{url}/mcp"
    else:
        yield served(kind, shop, store)


@asynccontextmanager
async def connected(kind: str, shop: MyShop) -> AsyncGenerator[Shop]:
    """The shop through one of the ways."""
    async with memory() as store, target_of(kind, shop, store) as target:
        options: dict[str, Any] = {"store": store} if kind == "process" else {"era": era(kind)}
        async with connect(Shop, target, **options) as client:
            yield client


def stdio(store: Path) -> list[str]:
    """The command of the shop as a child."""
    return [sys.executable, str(Path(__file__).with_name("shop_server.py")), str(store)]
