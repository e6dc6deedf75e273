"""Looking at calendars: a CalDAV server's collections, a folder of `.ics` files, the tables of a SQLite file.

None of this asks the server that is being tried, nor shares its code for times: iCalendar is read with `icalendar`.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Awaitable, Callable, Iterable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio.to_thread

__all__ = ["CalDavWitness", "FolderWitness", "SqliteWitness", "times_of"]


class CalDavWitness:
    """What a CalDAV server has stored.

    Args:
        read: Gives the iCalendar text of every object, read over CalDAV itself.
        describe: How it looks, for a report.
    """

    def __init__(self, read: Callable[[], Awaitable[Iterable[str]]], describe: str = "CalDAV, read directly") -> None:
        self._read = read
        self.describe = describe

    async def stored(self) -> list[dict[str, Any]]:
        """The events: `{uid, title, start, end}`, instants as `…Z`, others as they stand."""
        return [event for text in await self._read() for event in times_of(text)]


class FolderWitness:
    """What lies in a folder of `.ics` files."""

    describe = "the folder's files, read directly"

    def __init__(self, folder: str | Path) -> None:
        self._folder = Path(folder)

    async def stored(self) -> list[dict[str, Any]]:
        """The events of every `.ics` file below the folder."""

        def read() -> list[dict[str, Any]]:
            return [
                event
                for path in sorted(self._folder.rglob("*.ics"))
                for event in times_of(path.read_text(encoding="utf-8"))
            ]

        return await anyio.to_thread.run_sync(read)


class SqliteWitness:
    """What stands in the tables of a calendar's SQLite file."""

    describe = "the tables, read by SQL"

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)

    async def stored(self) -> list[dict[str, Any]]:
        """The events: `{uid, title, location, description, start, end}`; only instants as `…Z`, with an end."""

        def read() -> list[dict[str, Any]]:
            if not self._path.exists():
                return []
            connection = sqlite3.connect(f"file:{self._path}?mode=ro", uri=True)
            try:
                rows = connection.execute("select uid, body from calendar_events").fetchall()
            finally:
                connection.close()
            return [{"uid": uid, **_row(json.loads(body))} for uid, body in rows]

        return await anyio.to_thread.run_sync(read)


def times_of(text: str) -> list[dict[str, Any]]:
    """The events of an iCalendar text: `{uid, title, start, end, location, description}`."""
    import icalendar

    found: list[dict[str, Any]] = []
    calendar: Any = icalendar.Calendar.from_ical(text)
    for event in calendar.walk("VEVENT"):
        start = event["DTSTART"].dt
        if "DTEND" in event:
            end = event["DTEND"].dt
        else:
            end = start + (event["DURATION"].dt if "DURATION" in event else timedelta())
        found.append(
            {
                "uid": str(event.get("UID", "")),
                "title": str(event.get("SUMMARY", "")),
                "location": str(event.get("LOCATION", "")),
                "description": str(event.get("DESCRIPTION", "")),
                "start": _shown(start),
                "end": _shown(end),
                "zone": _zone(event["DTSTART"]),
                "recurring": "RRULE" in event or "RDATE" in event,
            }
        )
    return found


def _zone(start: Any) -> str:
    """`date`, `utc`, `floating`, or the zone that the start names."""
    if not isinstance(start.dt, datetime):
        return "date"
    named = start.params.get("TZID")
    return str(named) if named else "floating" if start.dt.tzinfo is None else "utc"


def _shown(moment: date | datetime) -> str:
    if isinstance(moment, datetime):
        if moment.tzinfo is None:
            return moment.isoformat(timespec="seconds")
        return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    return moment.isoformat()


def _row(body: dict[str, Any]) -> dict[str, Any]:
    kind, start, *rest = body["when"]
    found = {"title": body.get("title"), "location": body.get("location"), "description": body.get("description")}
    if kind != "instant":
        zone = {"all-day": "date", "floating": "floating"}.get(kind) or str(rest[2])
        return {**found, "start": start, "end": None, "zone": zone}
    days, seconds = rest
    first = datetime.fromisoformat(start).replace(tzinfo=UTC)
    end = first + timedelta(days=days, seconds=seconds)
    return {**found, "start": _shown(first), "end": _shown(end), "zone": "utc"}
