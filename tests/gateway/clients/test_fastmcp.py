"""FastMCP's client."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fastmcp import Client
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport
from fastmcp.exceptions import ToolError
from mcp import MCPError

from .home import CALENDAR, JUNE, ROADS, ZONED, Home, Road, RoadName, child

pytestmark = [pytest.mark.anyio, pytest.mark.real]


def client_of(road: Road, **options: Any) -> Client[Any]:
    if road.command:
        transport = StdioTransport(road.command[0], list(road.command[1:]), env=road.env, keep_alive=False)
        return Client(transport, **options)
    return Client(StreamableHttpTransport(road.url, headers=road.headers), **options)


@pytest.mark.parametrize("road_name", ROADS)
async def test_it_lists_and_calls(tmp_path: Path, everything: str, road_name: RoadName) -> None:
    home = Home(tmp_path, everything + child("plain", tmp_path) + CALENDAR)
    with home.road(road_name) as road:
        async with client_of(road) as client:
            names = {one.name for one in await client.list_tools()}
            assert {"plain.echo", "everything.test_simple_text", "calendar.create", "calendar.search"} <= names

            assert (await client.call_tool("plain.echo", {"a": 1})).content[0].text == '{"a": 1}'
            said = await client.call_tool("everything.test_simple_text", {})
            assert said.content[0].text == "This is a simple text response for testing."

            found = await client.call_tool("calendar.calendars", {})
            calendar = found.structured_content["calendars"][0]["calendar"]
            made = await client.call_tool("calendar.create", {"calendar": calendar, "title": "Dentist", **ZONED})
            listed = await client.call_tool("calendar.search", JUNE)
            (event,) = listed.structured_content["events"]
            assert event["event"] == made.structured_content["event"]

            with pytest.raises(ToolError, match=r"^This tool intentionally returns an error for testing$"):
                await client.call_tool("everything.test_error_handling", {})
            with pytest.raises(ToolError, match=r'"code":"not_found".*\'nothing\' is no calendar\.event'):
                await client.call_tool("calendar.get", {"event": "nothing"})
            wrong = await client.call_tool("calendar.get", {"event": "nothing"}, raise_on_error=False)
            assert wrong.structured_content["code"] == "not_found"
            with pytest.raises(MCPError, match=r"^Unknown tool: home\.nothing$") as unknown:
                await client.call_tool("home.nothing", {})
            assert unknown.value.error.code == -32602

            told: list[tuple[float, float | None, str | None]] = []

            async def progress(done: float, total: float | None, message: str | None) -> None:
                told.append((done, total, message))

            await client.call_tool("everything.test_tool_with_progress", {}, progress_handler=progress)
            assert told == [(done, 100, f"Completed step {done} of 100") for done in (0, 50, 100)]
