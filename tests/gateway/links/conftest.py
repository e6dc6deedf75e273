from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from hotplug.connect.launch import StdioLaunch, base_environment

SERVERS = Path(__file__).parent / "servers"


@pytest.fixture
def child() -> Callable[..., StdioLaunch]:
    """How a server of `servers/` is started, by its file's name."""

    def launch(name: str, *arguments: str, secrets: tuple[str, ...] = ()) -> StdioLaunch:
        return StdioLaunch(
            (sys.executable, str(SERVERS / f"{name}.py"), *arguments), base_environment(), secrets=secrets
        )

    return launch


@asynccontextmanager
async def served(app: Any) -> AsyncGenerator[str]:
    import uvicorn

    config = uvicorn.Config(app, port=0, log_level="critical", lifespan="on", http="h11", ws="none")
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve())
    try:
        async with asyncio.timeout(20):
            while not server.started:
                await asyncio.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}"
    finally:
        server.force_exit = True
        server.should_exit = True
        await serving


@pytest.fixture
def serve_http() -> Callable[[Any], AbstractAsyncContextManager[str]]:
    """Serves an ASGI app on a free port while the block runs; gives its base URL."""
    return served
