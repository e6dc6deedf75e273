"""icloud-mcp-server: which events are ours, and what is one of a series."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, ClassVar, Final, cast

from hotplug.catalog.calendar.functions import days_after
from hotplug.catalog.calendar.zones import format_utc
from hotplug.errors import Internal, Unavailable, Unsupported
from hotplug.projection.calendar import Fields, second_after, shown
from hotplug.projection.inplace import InPlaceCalendar, Seen, in_range

__all__ = ["ICloud"]

_MOST: Final = 200
"""Events that the server lists at once."""
_LONGEST: Final = timedelta(days=790)
"""It lists at most 800 days."""
_NO_TITLE: Final = "(no title)"
_NAMES: Final = {"title": "summary", "description": "description", "location": "location"}


class ICloud(InPlaceCalendar):
    """The server edits stored events in place, so everything that it isn't asked to change stays."""

    server: ClassVar = "icloud-mcp-server"
    reading: ClassVar = frozenset({"calendar_list_calendars", "calendar_list_events", "calendar_get_event"})

    async def names(self) -> Sequence[tuple[str, str]]:
        found = await self.provider.run(self.provider.plans["calendar.calendars"], {})
        return [(one["calendar"], one["name"]) for one in found["calendars"]]

    async def read(self, handle: Fields, expected: Mapping[str, Any] | None = None) -> Seen:
        row = await self.provider.ask("calendar_get_event", dict(handle))
        # A series by a rule shows its rule. One by a list of dates shows nothing here, but a listing marks it.
        series = bool(row.get("rrule") or row.get("recurrence_id") or row.get("overridden_instances"))
        if not series:
            series = any(
                one["uid"] == handle["uid"] and "recurrence_id" in one
                for one in await self._list(handle["calendar"], *_around(str(row["start"])))
            )
        return _seen(row, recurring=series)

    async def within(self, calendar: str, start: str, end: str) -> Sequence[tuple[str, Seen]]:
        rows = await self._list(calendar, start, end)
        for row in rows:
            if row.get("description_truncated") and "recurrence_id" not in row:
                whole = await self.provider.ask("calendar_get_event", {"calendar": calendar, "uid": row["uid"]})
                row["description"], row["description_truncated"] = whole["description"], False
        return [(row["uid"], _seen(row, recurring="recurrence_id" in row)) for row in rows]

    async def occurring(
        self, calendar: str, listed: Sequence[tuple[str, Seen]], given: Mapping[str, Any]
    ) -> frozenset[str]:
        # Occurrences are listed with their own times, so they say it themselves.
        return frozenset(uid for uid, one in listed if in_range(shown(one.kind, one.start, one.end)[0], given))

    async def starts(self, calendar: str, uid: str, start: str, end: str) -> tuple[int, int]:
        # Asked about an event that isn't marked as one of a series. `read` has looked: it is none.
        return 0, 0

    async def ready(self, event: Mapping[str, Any]) -> None:
        """Every time is sent in UTC or as a date, so no setting of the server matters."""

    def check(self, event: Mapping[str, Any]) -> None:
        if "start" in event and event["start"] == event["end"]:
            raise Unsupported("the server takes no event without length", details={"lost": ["end"]})
        if event.get("title") in ("", _NO_TITLE):
            raise Unsupported(f"the server shows {_NO_TITLE} for no title", details={"lost": ["title"]})

    async def add(self, calendar: str, event: Mapping[str, Any]) -> str:
        made = await self._write("calendar_create_event", {"calendar": calendar, **_sent(event)})
        return str(made["uid"])

    async def change(self, handle: Fields, changes: Mapping[str, Any]) -> None:
        await self._alone(handle)
        sent = _sent(changes)
        if sent.get("location") == "":
            sent["location_geo"] = ""  # else the map's place stays behind
        await self._write("calendar_update_event", {**handle, **sent})

    async def remove(self, handle: Fields) -> None:
        await self._alone(handle)
        await self._write("calendar_delete_event", dict(handle))

    async def _alone(self, handle: Fields) -> None:
        """Refuse to touch an event with guests: they would get mail, and nobody was asked."""
        row = await self.provider.ask("calendar_get_event", dict(handle))
        if row.get("attendees"):
            raise Unsupported("the event has guests, and the server would mail them", details={"lost": ["notify"]})

    async def _write(self, tool: str, arguments: Fields) -> Fields:
        try:
            return cast("Fields", await self.provider.ask(tool, arguments))
        except (Internal, Unavailable) as error:
            error.details["state"] = "unknown"  # the text doesn't say whether it was done before it failed
            raise

    async def _list(self, calendar: str, start: str, end: str) -> list[Fields]:
        """All of a range: in pieces, as the server lists 800 days and 200 events at most."""
        first, last = datetime.fromisoformat(start), datetime.fromisoformat(end)
        if last - first > _LONGEST:
            return await self._halves(calendar, first, last)
        given = {"calendar": calendar, "start": start, "end": end, "limit": _MOST}
        answer = await self.provider.ask("calendar_list_events", given)
        if not answer["complete"] or answer.get("series_not_expanded"):
            raise Unavailable("the server couldn't list everything in the calendar", details={"upstream": answer})
        if answer["total"] > len(answer["events"]):
            return await self._halves(calendar, first, last)
        return cast("list[Fields]", answer["events"])

    async def _halves(self, calendar: str, first: datetime, last: datetime) -> list[Fields]:
        middle = (first + (last - first) / 2).replace(microsecond=0)
        if middle <= first:
            raise Unavailable(f"more than {_MOST} events lie within a second")
        rows: dict[tuple[str, str], Fields] = {}
        for low, high in ((first, middle), (middle, last)):
            for row in await self._list(calendar, format_utc(low), format_utc(high)):
                rows[row["uid"], row["start"]] = row  # what lies on both sides of the middle is listed twice
        return list(rows.values())


def _seen(row: Mapping[str, Any], *, recurring: bool) -> Seen:
    start = str(row["start"])
    kind = "allDay" if row["all_day"] else "floating" if len(start) == len("2026-10-26T09:00:00") else "instant"
    doubtful = ["title"] if row["summary"] == _NO_TITLE else []
    if row.get("description_truncated"):
        doubtful.append("description")
    told = {name: value for name, value in row.items() if value and name not in ("notice", "now", "recurrence_id")}
    return Seen(
        kind=kind,
        start=start,
        end=row.get("end"),
        texts={name: row.get(theirs) or "" for name, theirs in _NAMES.items()},
        recurring=recurring,
        mark=hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest(),
        doubtful=tuple(doubtful),
    )


def _sent(fields: Mapping[str, Any]) -> Fields:
    sent: Fields = {theirs: fields[name] for name, theirs in _NAMES.items() if name in fields}
    if "start" in fields:
        # Their last day is inclusive, ours is not.
        end = days_after(fields["end"], -1) if fields.get("showWithoutTime") else fields["end"]
        sent |= {"start": fields["start"], "end": end, "timezone": "UTC"}
    return sent


def _around(start: str) -> tuple[str, str]:
    """A range that an event with this start lies in; floating times and dates are matched as if in UTC."""
    moment = datetime.fromisoformat(start)
    text = moment.isoformat() if moment.tzinfo else f"{moment.isoformat()}+00:00"
    after = second_after(text)
    return format_utc(datetime.fromisoformat(after) - timedelta(seconds=2)), after
