"""A client that hears when lists change, in either era."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import anyio
from mcp import Client
from mcp_types import ToolListChangedNotification

from .home import Road
from .sdk import connected


class Hearing:
    """A connected client, and the notices that came."""

    def __init__(self) -> None:
        self.client: Client
        self.bell = anyio.Event()

    def ring(self) -> None:
        bell, self.bell = self.bell, anyio.Event()
        bell.set()

    async def names(self) -> set[str]:
        return {one.name for one in (await self.client.list_tools()).tools}

    async def told(self, change: Callable[[], Any], wanted: Callable[[set[str]], bool]) -> set[str]:
        """Change something, and read the list after each notice until it is as wanted."""
        bell = self.bell
        await anyio.to_thread.run_sync(change)
        with anyio.fail_after(30):
            while True:
                await bell.wait()
                bell = self.bell
                found = await self.names()
                if wanted(found):
                    return found


@asynccontextmanager
async def hearing(road: Road, mode: str) -> AsyncGenerator[Hearing]:
    heard = Hearing()

    async def handle(message: Any) -> None:
        if isinstance(message, ToolListChangedNotification):
            heard.ring()

    async with AsyncExitStack() as stack:
        heard.client = await stack.enter_async_context(connected(road, mode, message_handler=handle))
        if mode != "legacy":
            subscription = await stack.enter_async_context(heard.client.listen(tools_list_changed=True))
            tasks = await stack.enter_async_context(anyio.create_task_group())

            async def listen() -> None:
                async for _ in subscription:
                    heard.ring()

            tasks.start_soon(listen)
            stack.callback(tasks.cancel_scope.cancel)
        yield heard
