"""Clients of one era at a server that speaks only the other, through the whole gateway, with the SDK's own client."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import ResourceUpdated
from mcp.shared.exceptions import MCPDeprecationWarning, MCPError
from mcp_types import CreateMessageResult, ElicitResult, ListRootsResult, PromptReference, Root, TextContent

from hotplug.gateway.link import Era

from .ways import EVERYTHING, WAYS, Place, Way, behind

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(180)]
WATCHED = "test://watched-resource"


@pytest.fixture(
    scope="module",
    params=[(way, era) for way in WAYS for era in ("legacy", "modern")],
    ids=lambda param: f"{param[1]} client, {param[0]}",
)
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Generator[tuple[Place, Era]]:
    """The gateway before a server that speaks only the era that the client doesn't."""
    way: Way
    era: Era
    way, era = request.param
    folder: Path = tmp_path_factory.mktemp("gateway")
    server = (*EVERYTHING, "--only", "modern" if era == "legacy" else "legacy")
    with behind(folder, {"everything": server}, way) as found:
        yield found, era


@asynccontextmanager
async def connected(place: tuple[Place, Era], **options: Any) -> AsyncGenerator[Client]:
    where, era = place
    mode: Any = "legacy" if era == "legacy" else "2026-07-28"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MCPDeprecationWarning)
        if where.command:
            parameters = StdioServerParameters(
                command=where.command[0], args=list(where.command[1:]), env=dict(where.env)
            )
            async with Client(stdio_client(parameters), mode=mode, **options) as client:
                with anyio.fail_after(60):
                    yield client
            return
        headers = {"authorization": f"Bearer {where.token}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=60) as http,
            Client(streamable_http_client(where.url, http_client=http), mode=mode, **options) as client,
        ):
            with anyio.fail_after(60):
                yield client


def text(result: Any) -> str:
    return result.content[0].text


async def test_lists_resources_prompts_and_completions(place: tuple[Place, Era]) -> None:
    async with connected(place) as client:
        tools = {tool.name for tool in (await client.list_tools()).tools}
        assert {"test_simple_text", "test_elicitation", "test_wait"} <= tools
        assert len((await client.list_resources()).resources) == 3
        assert [one.name for one in (await client.list_resource_templates()).resource_templates] == ["template"]
        contents = (await client.read_resource("test://template/7/data")).contents
        assert '"id": "7"' in contents[0].text  # pyright: ignore[reportAttributeAccessIssue]
        prompts = {prompt.name for prompt in (await client.list_prompts()).prompts}
        assert "test_prompt_with_arguments" in prompts
        told = await client.get_prompt("test_prompt_with_arguments", {"arg1": "one", "arg2": "two"})
        assert "one" in told.messages[0].content.text  # pyright: ignore[reportAttributeAccessIssue]
        reference = PromptReference(type="ref/prompt", name="test_prompt_with_arguments")
        assert (await client.complete(reference, {"name": "arg1", "value": "par"})).completion.values[0] == "paris"
        with pytest.raises(MCPError):
            await client.read_resource("test://missing")


async def test_questions_of_every_kind(place: tuple[Place, Era]) -> None:
    asked: list[str] = []

    async def elicited(_: Any, params: Any) -> ElicitResult:
        asked.append(params.message)
        return ElicitResult(
            action="accept", content={"name": "Ada", "response": "r", "username": "u", "email": "e@x.y"}
        )

    async def sampled(_: Any, params: Any) -> CreateMessageResult:
        asked.append("sampling")
        return CreateMessageResult(role="assistant", content=TextContent(type="text", text="Paris"), model="m")

    async def rooted(_: Any) -> ListRootsResult:
        asked.append("roots")
        return ListRootsResult(roots=[Root.model_validate({"uri": "file:///a", "name": "a"})])

    options = {"elicitation_callback": elicited, "sampling_callback": sampled, "list_roots_callback": rooted}
    async with connected(place, **options) as client:
        for tool in (
            "test_elicitation",
            "test_sampling",
            "test_input_required_result_list_roots",
            "test_input_required_result_multiple_inputs",
            "test_input_required_result_multi_round",
        ):
            result = await client.call_tool(tool, {"message": "Who?", "prompt": "Where?"})
            assert not result.is_error, (tool, result)
    assert asked.count("roots") == 2
    assert asked.count("sampling") == 2
    assert len(asked) >= 8


async def test_progress_arrives_before_the_result(place: tuple[Place, Era]) -> None:
    got: list[tuple[float, float | None]] = []

    async def progressed(progress: float, total: float | None, message: str | None) -> None:
        got.append((progress, total))

    async with connected(place) as client:
        result = await client.call_tool("test_tool_with_progress", {}, progress_callback=progressed)
        assert text(result).startswith("Progress was told")
        while len(got) < 3:
            await asyncio.sleep(0.01)
    assert got == [(0, 100), (50, 100), (100, 100)]


async def test_log_entries_arrive(place: tuple[Place, Era]) -> None:
    said: list[Any] = []

    async def logged(params: Any) -> None:
        said.append(params.data)

    options = {"logging_callback": logged, **({"log_level": "info"} if place[1] == "modern" else {})}
    async with connected(place, **options) as client:
        if place[1] == "legacy":
            await client.set_logging_level("info")
        await client.call_tool("test_tool_with_logging", {})
        while len(said) < 3:
            await asyncio.sleep(0.01)
    assert said == ["Tool execution started", "Tool processing data", "Tool execution completed"]


async def test_a_resource_that_changes_is_told(place: tuple[Place, Era]) -> None:
    heard: list[Any] = []
    told = anyio.Event()

    async def hear(message: Any) -> None:
        if getattr(message, "method", "") == "notifications/resources/updated":
            heard.append(str(message.params.uri))
            told.set()

    if place[1] == "modern":
        async with connected(place) as client, client.listen(resource_subscriptions=[WATCHED]) as events:
            assert events.honored.resource_subscriptions == [WATCHED]
            await client.call_tool("test_trigger_resource_change", {})
            assert await anext(events) == ResourceUpdated(WATCHED)
        return
    async with connected(place, message_handler=hear) as client:
        await client.subscribe_resource(WATCHED)
        await client.call_tool("test_trigger_resource_change", {})
        await told.wait()
        await client.unsubscribe_resource(WATCHED)
    assert heard == [WATCHED]


async def test_a_call_that_is_given_up_is_cancelled_at_the_server(place: tuple[Place, Era]) -> None:
    started = anyio.Event()

    async def progressed(progress: float, total: float | None, message: str | None) -> None:
        started.set()

    async with connected(place) as client:
        before = int(text(await client.call_tool("test_cancelled", {})))
        async with anyio.create_task_group() as tasks:

            async def wait() -> None:
                await client.call_tool("test_wait", {}, progress_callback=progressed)

            tasks.start_soon(wait)
            await started.wait()
            tasks.cancel_scope.cancel()
        while int(text(await client.call_tool("test_cancelled", {}))) != before + 1:
            await asyncio.sleep(0.05)
