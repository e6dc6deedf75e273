"""The official SDK's client, in each of its modes."""

from __future__ import annotations

from pathlib import Path

import pytest
from mcp import Client, MCPError

from .home import CALENDAR, JUNE, ROADS, ZONED, Home, RoadName, child, text_of
from .sdk import connected

pytestmark = [pytest.mark.anyio, pytest.mark.real]

MODES = {"legacy": "2025-11-25", "auto": "2026-07-28", "2026-07-28": "2026-07-28"}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("road_name", ROADS)
async def test_it_lists_and_calls(tmp_path: Path, everything: str, road_name: RoadName, mode: str) -> None:
    home = Home(tmp_path, everything + child("plain", tmp_path) + CALENDAR)
    with home.road(road_name) as road:
        async with connected(road, mode) as client:
            assert client.protocol_version == MODES[mode]
            tools = {one.name: one for one in (await client.list_tools()).tools}
            assert {"plain.echo", "everything.test_simple_text", "calendar.create", "calendar.search"} <= tools.keys()
            assert tools["calendar.create"].output_schema is not None

            assert text_of((await client.call_tool("plain.echo", {"a": 1})).content) == '{"a": 1}'
            said = await client.call_tool("everything.test_simple_text", {})
            assert (said.is_error, text_of(said.content)) == (False, "This is a simple text response for testing.")

            await a_calendar_is_used(client)
            await errors_are_shown(client)

            told: list[tuple[float, float | None, str | None]] = []

            async def progress(done: float, total: float | None, message: str | None) -> None:
                told.append((done, total, message))

            slow = await client.call_tool("everything.test_tool_with_progress", {}, progress_callback=progress)
            assert not slow.is_error
            assert told == [(done, 100, f"Completed step {done} of 100") for done in (0, 50, 100)]


async def a_calendar_is_used(client: Client) -> None:
    found = await client.call_tool("calendar.calendars", {})
    assert found.structured_content is not None
    calendar = found.structured_content["calendars"][0]["calendar"]
    made = await client.call_tool("calendar.create", {"calendar": calendar, "title": "Dentist", **ZONED})
    assert made.structured_content is not None
    assert made.structured_content["receipt"]["dispatched"] is True
    listed = await client.call_tool("calendar.search", JUNE)
    assert listed.structured_content is not None
    (event,) = listed.structured_content["events"]
    assert (event["event"], event["utcStart"]) == (made.structured_content["event"], "2026-06-11T15:00:00Z")


async def errors_are_shown(client: Client) -> None:
    failed = await client.call_tool("everything.test_error_handling", {})
    assert (failed.is_error, text_of(failed.content)) == (True, "This tool intentionally returns an error for testing")

    wrong = await client.call_tool("calendar.get", {"event": "nothing"})
    assert wrong.is_error
    assert wrong.structured_content is not None
    assert wrong.structured_content["code"] == "not_found"
    assert "'nothing' is no calendar.event" in text_of(wrong.content)

    with pytest.raises(MCPError, match=r"^Unknown tool: home\.nothing$") as unknown:
        await client.call_tool("home.nothing", {})
    assert unknown.value.error.code == -32602
