"""A calendar server that knows nothing of profiles: a few tools, instants only, everything in memory.

`tiny_calendar.py` runs it on standard streams; `tiny_calendar.py:server` is it in process. The other functions are
the same server after somebody worked on it.
"""

from __future__ import annotations

from typing import Any

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError


def server() -> MCPServer:
    made = MCPServer("tiny-calendar", instructions="Keeps events.")
    events: dict[str, dict[str, Any]] = {}

    def known(uid: str) -> dict[str, Any]:
        if uid not in events:
            raise ToolError(f"no event {uid}")
        return events[uid]

    @made.tool()
    def list_calendars() -> dict[str, Any]:
        """List all calendars."""
        return {"calendars": [{"id": "home", "name": "Home"}]}

    @made.tool()
    def list_events(calendar: str, start: str, end: str) -> dict[str, Any]:
        """List the events of a calendar between two instants."""
        return {"events": [event for event in events.values() if event["start"] < end and event["end"] > start]}

    @made.tool()
    def get_event(uid: str) -> dict[str, Any]:
        """Get one event by its id."""
        return known(uid)

    @made.tool()
    def create_event(
        calendar: str, title: str, start: str, end: str, description: str = "", location: str = ""
    ) -> dict[str, Any]:
        """Create an event in a calendar."""
        uid = f"e{len(events) + 1}-{title[:3]}"
        events[uid] = {
            "id": uid,
            "calendar": calendar,
            "title": title,
            "start": start,
            "end": end,
            "description": description,
            "location": location,
        }
        return {"id": uid}

    @made.tool()
    def update_event(
        uid: str,
        title: str | None = None,
        start: str | None = None,
        end: str | None = None,
        description: str | None = None,
        location: str | None = None,
    ) -> dict[str, Any]:
        """Update an event."""
        changes = {"title": title, "start": start, "end": end, "description": description, "location": location}
        known(uid).update({name: value for name, value in changes.items() if value is not None})
        return {"id": uid}

    @made.tool()
    def delete_event(uid: str) -> dict[str, Any]:
        """Delete an event."""
        known(uid)
        del events[uid]
        return {"deleted": True}

    @made.tool()
    def wipe(confirm: bool) -> str:
        """Forget everything."""
        events.clear()
        return "gone"

    return made


def grown() -> MCPServer:
    """It has one tool more, and other words."""
    made = server()

    @made.tool()
    def export(kind: str) -> str:
        """Export everything."""
        return ""

    return made


def changed() -> MCPServer:
    """Its `delete_event` now wants to know why."""
    made = server()
    made.remove_tool("delete_event")

    @made.tool()
    def delete_event(uid: str, reason: str) -> dict[str, Any]:
        """Delete an event."""
        return {"deleted": False}

    return made


if __name__ == "__main__":
    server().run("stdio")
