"""The channel of an MCP session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from hotplug.connect.channel import Reply
from hotplug.connect.results import RawResult
from hotplug.connect.session import McpSession
from hotplug.errors import ConnectError, Disconnected, Unavailable

__all__ = ["McpChannel", "reply_of"]


def reply_of(result: RawResult) -> Reply:
    """What a channel gives of a tool's result."""
    structured = result.structured
    if structured is None and result.rpc_error is not None and (failed := result.failed()) is not None:
        # An answer too: with its code, which the message alone doesn't say.
        structured = failed.as_wire()
    return Reply(
        content=cast("Mapping[str, Any]", structured) if isinstance(structured, Mapping) else None,
        is_error=result.is_error,
        text="\n".join(result.texts),
        meta=result.meta,
    )


class McpChannel:
    """Carries calls over an MCP session.

    Args:
        session: A started session; the channel closes it.
    """

    def __init__(self, session: McpSession) -> None:
        self.session = session

    @property
    def target(self) -> str:
        return self.session.name

    @property
    def extensions(self) -> Mapping[str, Any]:
        return self.session.capabilities_extensions()

    def mask(self, text: str) -> str:
        """A text without the secrets that the session was started with."""
        return self.session.mask(text)

    async def tools(self) -> Sequence[Mapping[str, Any]]:
        listed = await self.session.list_tools()
        if not listed.complete:
            raise Unavailable(f"the tool list of {self.target} is incomplete: {listed.problem}")
        return [tool.raw for tool in listed.tools]

    async def call(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        *,
        meta: Mapping[str, Any],
        timeout: float | None = None,  # noqa: ASYNC109  # told to the session, which asks the server to stop
    ) -> Reply:
        try:
            result = await self.session.call(tool, arguments, meta=meta or None, timeout=timeout)
        except Disconnected as error:
            if error.details.get("state") != "not_sent":
                raise
            # Nothing was sent, so connecting again and sending is the first try.
            await self.restore()
            result = await self.session.call(tool, arguments, meta=meta or None, timeout=timeout)
        return reply_of(result)

    async def restore(self) -> None:
        if self.session.connected:
            return
        try:
            await self.session.reconnect()
        except ConnectError as error:
            raise Disconnected(
                f"{self.target} can't be reached again: {error}", details={"state": "not_sent"}
            ) from None

    async def aclose(self) -> None:
        await self.session.aclose()
