"""Tools that send notices while they run: log entries, progress, changed lists; and one that closes its stream."""

from __future__ import annotations

from typing import Final

import anyio
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    PromptsListChanged,
    ResourceUpdated,
    ServerEvent,
    ToolsListChanged,
)

from hotplug.testing.everything.call import Call
from hotplug.testing.everything.tool import Content, EverythingTool

__all__ = ["notice_tools"]

_BETWEEN: Final = 0.05
"""Seconds between two notices, so that a client sees them arrive one by one."""
_WATCHED: Final = "test://watched-resource"
_AWAY: Final = 0.2
"""Seconds that a client is given to come back after its stream was closed."""


async def _logging(call: Call) -> Content:
    for step in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await call.log(step)
        await anyio.sleep(_BETWEEN)
    return "Three log entries were sent to a client that wants them."


async def _progress(call: Call) -> Content:
    for done in (0, 50, 100):
        await call.progress(done, 100, f"Completed step {done} of 100")
        await anyio.sleep(_BETWEEN)
    return f"Progress was told for the token {call.progress_token!r}."


async def _reconnection(call: Call) -> Content:
    await call.log("Before the stream is closed")
    if call.context.close_sse_stream is not None:
        await call.context.close_sse_stream()
        await anyio.sleep(_AWAY)
    await call.log("After the stream was closed")
    return "The call outlived its stream."


def notice_tools(bus: InMemorySubscriptionBus) -> tuple[EverythingTool, ...]:
    """The tools, of which some publish on that bus."""

    def announcing(event: ServerEvent, what: str) -> EverythingTool:
        async def announce(_: Call) -> Content:
            await bus.publish(event)
            return f"Whoever listens was told that the list of {what}s changed."

        return EverythingTool(f"test_trigger_{what}_change", f"Says that the list of {what}s changed.", announce)

    cancelled = 0

    async def resource(call: Call) -> Content:
        if call.is_modern:
            await bus.publish(ResourceUpdated(_WATCHED))
        else:
            await call.context.session.send_resource_updated(_WATCHED)
        return f"Whoever subscribed to {_WATCHED} was told that it changed."

    async def wait(call: Call) -> Content:
        nonlocal cancelled
        await call.progress(0, 1, "Waiting")
        try:
            await anyio.sleep_forever()
        finally:
            cancelled += 1
        return "Nobody can wait for this."

    async def count(_: Call) -> Content:
        return str(cancelled)

    return (
        EverythingTool("test_trigger_resource_change", "Says that the watched resource changed.", resource),
        EverythingTool("test_wait", "Tells its progress once, and then waits until it is cancelled.", wait),
        EverythingTool("test_cancelled", "Says how often test_wait was cancelled.", count),
        EverythingTool("test_tool_with_logging", "Sends log entries before its result.", _logging),
        EverythingTool("test_logging_tool", "Sends log entries where the client wants them.", _logging),
        EverythingTool("test_tool_with_progress", "Tells its progress before its result.", _progress),
        EverythingTool("test_reconnection", "Closes the client's stream in the middle of the call.", _reconnection),
        announcing(ToolsListChanged(), "tool"),
        announcing(PromptsListChanged(), "prompt"),
    )
