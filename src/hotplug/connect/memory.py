"""A server object in this process, brought up as a session."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, cast

from hotplug.connect.negotiation import Era, EraChoice
from hotplug.errors import ConfigError

if TYPE_CHECKING:
    from mcp import ClientSession
    from mcp.client.session import MessageHandlerFnT
    from mcp_types import Implementation

__all__ = ["open_object"]


async def open_object(
    stack: AsyncExitStack, server: object, era: EraChoice, client: Implementation, on_message: MessageHandlerFnT
) -> tuple[ClientSession, Era | None]:
    """A session with an `MCPServer`, a low-level `Server` or a `FastMCP`, and its era where that is settled.

    Raises:
        ConfigError: It is none of these.
    """
    from mcp import Client
    from mcp.server import MCPServer, Server

    if isinstance(server, MCPServer | Server):
        mode = "legacy" if era == "legacy" else "auto"
        known = cast("MCPServer | Server[Any]", server)
        opened = await stack.enter_async_context(
            Client(known, mode=mode, cache=None, client_info=client, message_handler=on_message)
        )
        return opened.session, ("modern" if opened.session.discover_result is not None else "legacy")
    if _is_fastmcp(server):
        from fastmcp.client.transports import FastMCPTransport

        transport = FastMCPTransport(cast("Any", server))
        session = await stack.enter_async_context(
            transport.connect_session(client_info=client, message_handler=on_message)
        )
        return session, None
    cls = type(server)
    raise ConfigError(
        f"{cls.__module__}.{cls.__qualname__} is not an MCP server object",
        hint="give an MCPServer, a low-level Server or a FastMCP",
    )


def _is_fastmcp(server: object) -> bool:
    """By its class's name: fastmcp is optional and slow to import."""
    return any(cls.__name__ == "FastMCP" and cls.__module__.startswith("fastmcp.") for cls in type(server).__mro__)
