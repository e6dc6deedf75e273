from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from hotplug.connect.negotiation import forget_eras

SERVERS = Path(__file__).parent / "servers"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True)
def no_remembered_eras() -> None:
    forget_eras()


@pytest.fixture
def child() -> Callable[..., list[str]]:
    """The command of a fake server, by its file's name."""

    def command(name: str, *arguments: str) -> list[str]:
        return [sys.executable, str(SERVERS / f"{name}.py"), *arguments]

    return command


@asynccontextmanager
async def served(app: Any) -> AsyncGenerator[str]:
    import uvicorn

    config = uvicorn.Config(app, port=0, log_level="critical", lifespan="on", http="h11", ws="none")
    server = uvicorn.Server(config)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(server.serve)
        with anyio.fail_after(10):
            while not server.started:
                await anyio.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            server.force_exit = True
            server.should_exit = True


@pytest.fixture
def serve_http() -> Callable[[Any], AbstractAsyncContextManager[str]]:
    """Serves an ASGI app on a free port while the block runs; gives its base URL."""
    return served
