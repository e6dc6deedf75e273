"""A calendar as one would write it with the SDK alone: the same engine behind typed tools of an `MCPServer`.

`python -m benchmarks.plain_calendar FILE` serves it over stdio.
"""

from __future__ import annotations

import sys
from typing import Annotated, Any, Literal

import anyio
from mcp.server import MCPServer
from pydantic import BaseModel, Field

from hotplug.servers.calendar.engine import CalendarEngine
from hotplug.servers.calendar.sqlite import SqliteStorage

__all__ = ["plain_calendar"]


class Participant(BaseModel):
    email: str
    name: str | None = None
    optional: bool | None = None
    participationStatus: Literal["needs-action", "accepted", "declined", "tentative", "delegated"] | None = None  # noqa: N815


class Alert(BaseModel):
    id: str | None = None
    offset: str
    action: Literal["display", "email"] = "display"


class Event(BaseModel):
    event: str
    calendar: str
    title: str
    description: str | None = None
    location: str | None = None
    start: str
    end: str | None = None
    duration: str | None = None
    timeZone: str | None = None  # noqa: N815
    showWithoutTime: bool | None = None  # noqa: N815
    utcStart: str | None = None  # noqa: N815
    utcEnd: str | None = None  # noqa: N815
    status: Literal["confirmed", "tentative", "cancelled"] | None = None
    freeBusyStatus: Literal["free", "busy"] | None = None  # noqa: N815
    recurring: bool | None = None
    unknown: list[str] | None = None
    recurrenceRules: list[dict[str, Any]] | None = None  # noqa: N815
    recurrenceOverrides: dict[str, dict[str, Any]] | None = None  # noqa: N815
    occurrence: str | None = None
    participants: list[Participant] | None = None
    alerts: list[Alert] | None = None
    revision: str | None = None


class Found(BaseModel):
    events: list[Event]
    cursor: str | None = None


class Written(BaseModel):
    event: str
    revision: str | None = None


def plain_calendar(path: str) -> MCPServer:
    """The server over the SQLite file at `path`."""
    engine = CalendarEngine(SqliteStorage(path))
    server = MCPServer("plain-calendar")

    @server.tool()
    async def get(event: str) -> Event:
        """Show one event with everything that is known of it."""
        return Event.model_validate(await engine.get(event))

    @server.tool()
    async def search(
        from_: str,
        to: str,
        time_zone: str | None = None,
        calendar: str | None = None,
        query: str | None = None,
        limit: Annotated[int, Field(ge=1, le=1000)] | None = None,
        cursor: str | None = None,
        expand: bool = False,
    ) -> Found:
        """Find the events that overlap [from, to)."""
        events, following = await engine.search(from_, to, time_zone, calendar, query, limit, cursor, expand=expand)
        return Found(events=[Event.model_validate(one) for one in events], cursor=following)

    @server.tool()
    async def create(
        calendar: str,
        title: str,
        start: str,
        end: str | None = None,
        duration: str | None = None,
        time_zone: str | None = None,
        show_without_time: bool | None = None,
        description: str | None = None,
        location: str | None = None,
        status: Literal["confirmed", "tentative", "cancelled"] | None = None,
        free_busy_status: Literal["free", "busy"] | None = None,
        participants: list[Participant] | None = None,
        alerts: list[Alert] | None = None,
    ) -> Written:
        """Put a new event into a calendar."""
        fields = {
            "calendar": calendar,
            "title": title,
            "start": start,
            "end": end,
            "duration": duration,
            "timeZone": time_zone,
            "showWithoutTime": show_without_time,
            "description": description,
            "location": location,
            "status": status,
            "freeBusyStatus": free_busy_status,
            "participants": participants and [one.model_dump(exclude_none=True) for one in participants],
            "alerts": alerts and [one.model_dump(exclude_none=True) for one in alerts],
        }
        effect = await engine.create({name: value for name, value in fields.items() if value is not None})
        return Written(event=effect.event, revision=effect.revision)

    return server


if __name__ == "__main__":
    anyio.run(plain_calendar(sys.argv[1]).run_stdio_async)
