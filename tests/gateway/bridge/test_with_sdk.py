"""The SDK's clients, each through the bridge to a server that speaks only the other era: what they offer works."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Literal

import anyio
import pytest
from mcp import Client
from mcp.client.subscriptions import ResourceUpdated, ToolsListChanged
from mcp.shared.exceptions import MCPDeprecationWarning
from mcp_types import ElicitResult, PromptReference

from hotplug.gateway.bridge import for_legacy_client, for_modern_client
from hotplug.testing.everything.server import everything_server

from .changing import ChangingServer
from .wire import front, handshake, linked, sessions

pytestmark = pytest.mark.anyio

CAN = {"elicitation": {"form": {}, "url": {}}}


@asynccontextmanager
async def legacy(server: Any, **options: Any) -> AsyncGenerator[Client]:
    """A legacy client before a modern server."""
    async with linked(server, "modern") as below:
        bridge = for_legacy_client(below, handshake(CAN))
        try:
            async with front(bridge) as transport, Client(transport, mode="legacy", **options) as client:
                with anyio.fail_after(30):
                    yield client
        finally:
            await bridge.aclose()


@asynccontextmanager
async def modern(server: Any, **options: Any) -> AsyncGenerator[Client]:
    """A modern client before a legacy server."""
    async with sessions(server) as below:
        bridge = await for_modern_client(below.open, b"secret", wait=2.0)
        try:
            async with front(bridge) as transport, Client(transport, mode="2026-07-28", **options) as client:
                with anyio.fail_after(30):
                    yield client
        finally:
            await bridge.aclose()


def through(era: Literal["legacy", "modern"]) -> Any:
    return legacy if era == "legacy" else modern


ERAS = pytest.mark.parametrize("era", ["legacy", "modern"])


async def visiting(context: Any, params: Any) -> ElicitResult:
    assert params.mode == "url"
    assert params.url == "https://a.example/b"
    return ElicitResult(action="accept")


@ERAS
async def test_a_url_is_visited(era: Any) -> None:
    async with through(era)(ChangingServer(), elicitation_callback=visiting) as client:
        result = await client.call_tool("visit", {})
        assert "action='accept'" in result.content[0].text


async def test_a_url_that_a_legacy_server_requires_first_is_visited() -> None:
    async with modern(ChangingServer(), elicitation_callback=visiting) as client:
        result = await client.call_tool("require", {})
        assert result.content[0].text == "done"  # pyright: ignore


@ERAS
async def test_a_call_that_its_caller_gives_up_is_cancelled_at_the_server(era: Any) -> None:
    server = ChangingServer()
    for options in ({}, {"elicitation_callback": visiting}):
        server.waiting.clear()
        server.stopped.clear()
        async with through(era)(server, **options) as client, anyio.create_task_group() as tasks:
            tasks.start_soon(client.call_tool, "wait", {})
            await server.waiting.wait()
            tasks.cancel_scope.cancel()
            with anyio.CancelScope(shield=True), anyio.fail_after(30):
                await server.stopped.wait()


@ERAS
async def test_progress_reaches_its_callback(era: Any) -> None:
    got: list[float] = []

    async def progressed(done: float, total: float | None, message: str | None) -> None:
        got.append(done)

    async with through(era)(ChangingServer()) as client:
        await client.call_tool("count", {}, progress_callback=progressed)
        while len(got) < 3:
            await asyncio.sleep(0)
        assert got == [1, 2, 3]


@ERAS
async def test_a_completion_is_given(era: Any) -> None:
    async with through(era)(everything_server()) as client:
        ref = PromptReference(type="ref/prompt", name="test_prompt_with_arguments")
        result = await client.complete(ref, {"name": "arg1", "value": "par"})
        assert result.completion.values == ["paris", "park", "party"]


async def test_a_modern_client_listens_to_a_legacy_server() -> None:
    server = ChangingServer()
    async with modern(server) as client:
        async with client.listen(tools_list_changed=True, resource_subscriptions=["x://a"]) as heard:
            assert heard.honored.tools_list_changed
            assert heard.honored.resource_subscriptions == ["x://a"]
            assert server.subscribed == ["x://a"]
            await client.call_tool("change", {})
            assert isinstance(await anext(heard), ToolsListChanged)
            await client.call_tool("touch", {})
            assert await anext(heard) == ResourceUpdated("x://a")
        while server.subscribed:
            await asyncio.sleep(0)


async def test_a_legacy_client_hears_of_changes_at_a_modern_server() -> None:
    heard: list[str] = []

    async def hear(message: Any) -> None:
        heard.append(getattr(message, "method", ""))

    server = ChangingServer()
    async with legacy(server, message_handler=hear) as client:
        with pytest.warns(MCPDeprecationWarning):
            await client.subscribe_resource("x://a")
        await client.call_tool("change", {})
        await client.call_tool("touch", {})
        while len(heard) < 2:
            await asyncio.sleep(0)
        assert heard == ["notifications/tools/list_changed", "notifications/resources/updated"]
        with pytest.warns(MCPDeprecationWarning):
            await client.unsubscribe_resource("x://a")
        with pytest.warns(MCPDeprecationWarning):
            await client.send_ping()


@ERAS
async def test_what_is_logged_reaches_its_callback(era: Any) -> None:
    said: list[Any] = []

    async def logged(params: Any) -> None:
        said.append(params.data)

    options = {"logging_callback": logged, **({"log_level": "info"} if era == "modern" else {})}
    async with through(era)(everything_server(), **options) as client:
        if era == "legacy":
            with pytest.warns(MCPDeprecationWarning):
                await client.set_logging_level("info")
        await client.call_tool("test_tool_with_logging", {})
        while len(said) < 3:
            await asyncio.sleep(0)
        assert said == ["Tool execution started", "Tool processing data", "Tool execution completed"]


@ERAS
async def test_nothing_is_left_of_many_calls_of_which_some_were_given_up(era: Any) -> None:
    server = everything_server()
    tools = (
        "test_input_required_result_multi_round",
        "test_tool_with_progress",
        "test_elicitation",
        "test_simple_text",
    )
    answer = ElicitResult(action="accept", content={"name": "Ada", "color": "red", "response": "r"})

    async def elicited(context: Any, params: Any) -> ElicitResult:
        await asyncio.sleep(0.001)
        return answer

    async with through(era)(server, elicitation_callback=elicited) as client:

        async def call(number: int) -> None:
            with anyio.move_on_after(0.03 if number % 3 == 0 else None) as scope:
                result = await client.call_tool(tools[number % len(tools)], {})
                assert not result.is_error
            assert number % 3 == 0 or not scope.cancelled_caught

        async with anyio.create_task_group() as tasks:
            for number in range(100):
                tasks.start_soon(call, number)
        bridge: Any = client.server.link  # pyright: ignore
        while bridge.busy:
            await asyncio.sleep(0.001)
        await client.call_tool("test_simple_text", {})
