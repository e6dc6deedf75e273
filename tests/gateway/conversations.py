"""A conversation over the SDK's session, for tests of what needs one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from hotplug.connect import McpSession
from hotplug.errors import HotplugError, Unavailable
from hotplug.gateway.message import Message


class SessionConversation:
    """What a pool's link gives, over a session: it is started again where it was lost."""

    def __init__(self, session: McpSession) -> None:
        self.session = session
        self.asked: list[tuple[str, Mapping[str, Any]]] = []
        """Each request that went up."""

    @property
    def target(self) -> str:
        return self.session.name

    @property
    def instance(self) -> str:
        return f"i{self.session.generation}"

    @property
    def lost(self) -> str | None:
        return None if self.session.connected else "it is not connected"

    @property
    def extensions(self) -> Mapping[str, Any]:
        return self.session.capabilities_extensions()

    def mask(self, text: str) -> str:
        return self.session.mask(text)

    async def edition(self) -> str:
        try:
            await self.session.start()
        except HotplugError as error:
            raise Unavailable(f"{self.target} can't be reached: {error.message}") from None
        listed = await self.session.list_tools()
        return f"{self.instance}:{id(listed)}"

    async def tools(self) -> Sequence[Mapping[str, Any]]:
        await self.edition()
        return (await self.session.list_tools()).as_wire()

    async def request(
        self, method: str, params: Mapping[str, Any], *, thread: str = "", timeout: float | None = None
    ) -> Message:
        assert method == "tools/call"
        await self.edition()
        self.asked.append((thread, params))
        result = await self.session.call(
            params["name"], params.get("arguments"), meta=params.get("_meta"), timeout=timeout
        )
        if result.rpc_error is not None:
            return Message.error_of(b"1", result.rpc_error.code, result.rpc_error.message, result.rpc_error.data)
        return Message.result_of(b"1", result.raw)


@asynccontextmanager
async def conversing(target: object, name: str, **options: Any) -> AsyncIterator[SessionConversation]:
    async with McpSession(target, name=name, **options) as session:
        yield SessionConversation(session)
