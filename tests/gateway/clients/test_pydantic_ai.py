"""Pydantic AI's MCP toolset, as an agent's run uses it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport
from pydantic_ai import Agent, ModelRetry
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel

from .home import CALENDAR, JUNE, ROADS, ZONED, Home, Road, RoadName, child

pytestmark = [pytest.mark.anyio, pytest.mark.real]


def toolset_of(road: Road, **options: Any) -> MCPToolset[Any]:
    if road.command:
        return MCPToolset(StdioTransport(road.command[0], list(road.command[1:]), env=road.env), **options)
    return MCPToolset(StreamableHttpTransport(road.url, headers=road.headers), **options)


@pytest.mark.parametrize("road_name", ROADS)
async def test_it_lists_and_calls(tmp_path: Path, everything: str, road_name: RoadName) -> None:
    home = Home(tmp_path, everything + child("plain", tmp_path) + CALENDAR)
    told: list[tuple[float, float | None, str | None]] = []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        told.append((done, total, message))

    with home.road(road_name) as road:
        async with toolset_of(road, progress_handler=progress) as toolset:
            names = {one.name for one in await toolset.list_tools()}
            assert {"plain.echo", "everything.test_simple_text", "calendar.create", "calendar.search"} <= names

            assert await toolset.direct_call_tool("plain.echo", {"a": 1}) == {"a": 1}
            said = await toolset.direct_call_tool("everything.test_simple_text", {})
            assert said == "This is a simple text response for testing."

            found = await toolset.direct_call_tool("calendar.calendars", {})
            calendar = found["calendars"][0]["calendar"]
            made = await toolset.direct_call_tool(
                "calendar.create", {"calendar": calendar, "title": "Dentist", **ZONED}
            )
            listed = await toolset.direct_call_tool("calendar.search", JUNE)
            assert [one["event"] for one in listed["events"]] == [made["event"]]

            # What the model gets to read, so that it can do better.
            with pytest.raises(ModelRetry, match=r"^This tool intentionally returns an error for testing$"):
                await toolset.direct_call_tool("everything.test_error_handling", {})
            with pytest.raises(ModelRetry, match=r'"code":"not_found".*\'nothing\' is no calendar\.event'):
                await toolset.direct_call_tool("calendar.get", {"event": "nothing"})
            with pytest.raises(ModelRetry, match=r"^Unknown tool: home\.nothing$"):
                await toolset.direct_call_tool("home.nothing", {})

            await toolset.direct_call_tool("everything.test_tool_with_progress", {})
            assert told == [(done, 100, f"Completed step {done} of 100") for done in (0, 50, 100)]


async def test_an_agent_uses_a_calendar_and_reads_what_was_wrong(tmp_path: Path) -> None:
    """The model is a script: it asks for a time that no zone has, reads why that is refused, and does better."""
    home = Home(tmp_path, CALENDAR + '[serve]\nnames = "underscored"\n')
    read: list[str] = []

    def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        names = {one.name for one in info.function_tools}
        last = messages[-1].parts[-1]
        if isinstance(last, UserPromptPart):
            return ModelResponse([ToolCallPart("calendar_calendars", {})])
        if isinstance(last, ToolReturnPart) and last.outcome == "retried":
            read.append(str(last.content))
            assert len(read) == 1
        made = [part for one in messages for part in one.parts if isinstance(part, ToolReturnPart)]
        assert "calendar_create" in names
        if made[-1].tool_name == "calendar_create" and made[-1].outcome == "success":
            return ModelResponse([TextPart("done")])
        calendar = made[0].content["calendars"][0]["calendar"]
        event: dict[str, Any] = {"calendar": calendar, "title": "Dentist", **ZONED}
        if not read:
            event["timeZone"] = "Mars/Olympus_Mons"
        return ModelResponse([ToolCallPart("calendar_create", event)])

    with home.road("stdio") as road:
        agent = Agent(FunctionModel(model), toolsets=[toolset_of(road)])
        result = await agent.run("Put the dentist into my calendar.")
    assert result.output == "done"
    assert ["Mars/Olympus_Mons" in one for one in read] == [True]
