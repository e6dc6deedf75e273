"""MCP Inspector's command line: each run is a client of its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from .home import CALENDAR, JUNE, ZONED, Home, RoadName, child
from .inspector import Inspected, inspect

pytestmark = pytest.mark.real


@pytest.mark.parametrize(("road_name", "era"), [("stdio", "legacy"), ("http", "legacy"), ("http", "modern")])
def test_it_lists_and_calls(tmp_path: Path, everything: str, road_name: RoadName, era: str) -> None:
    home = Home(tmp_path, everything + child("plain", tmp_path) + CALENDAR)
    with home.road(road_name) as road:

        def call(tool: str, arguments: dict[str, Any]) -> Inspected:
            given = json.dumps(arguments)
            return inspect(home, road, era, "tools/call", "--tool-name", tool, "--tool-args-json", given)

        listed = inspect(home, road, era, "tools/list")
        names = {one["name"] for one in listed.result["tools"]}
        assert {"plain.echo", "everything.test_simple_text", "calendar.create", "calendar.search"} <= names

        said = call("everything.test_simple_text", {})
        assert said.code == 0
        assert said.result["content"] == [{"type": "text", "text": "This is a simple text response for testing."}]

        found = call("calendar.calendars", {})
        calendar = found.result["structuredContent"]["calendars"][0]["calendar"]
        made = call("calendar.create", {"calendar": calendar, "title": "Dentist", **ZONED})
        searched = call("calendar.search", JUNE)
        (event,) = searched.result["structuredContent"]["events"]
        assert event["event"] == made.result["structuredContent"]["event"]

        failed = call("everything.test_error_handling", {})
        assert (failed.code, failed.error["code"]) == (5, "tool_is_error")
        assert failed.result["content"][0]["text"] == "This tool intentionally returns an error for testing"
        wrong = call("calendar.get", {"event": "nothing"})
        assert (wrong.code, wrong.error["code"]) == (5, "tool_is_error")
        assert wrong.result["structuredContent"]["code"] == "not_found"
        unknown = call("home.nothing", {})
        assert (unknown.code, unknown.error["code"]) == (5, "tool_not_found")

        # It asks for no progress, and shows none.
        slow = call("everything.test_tool_with_progress", {})
        assert (slow.code, slow.result["content"][0]["text"]) == (0, "Progress was told for the token None.")
