"""cal-scheduler-mcp: every failure says the same, so its code is found by reading afterwards."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar, Final, cast

from hotplug.catalog.calendar.zones import format_utc
from hotplug.errors import Conflict, ConnectionFailed, InDoubt, Internal, NotFound, Unavailable, Unsupported
from hotplug.projection.calendar import Fields, not_kept, second_after, shown
from hotplug.projection.inplace import FIRST_DAY, LAST_DAY, InPlaceCalendar, Seen, in_range
from hotplug.projection.runtime import ProjectedProvider

__all__ = ["CalScheduler"]

_ZONE_PROBE: Final = "2026-06-01T00:00:00"
_UTC_NOTE: Final = "assumed UTC wall time"
_NAMES: Final[Mapping[str, str]] = {
    "title": "summary",
    "description": "description",
    "location": "location",
    "start": "start",
    "end": "end",
}
_HINTS: Final = 10_000
"""Starts of events that are remembered so that they are found at once."""


class CalScheduler(InPlaceCalendar):
    """The parts of the calendar that need more than one expression."""

    server: ClassVar = "cal-scheduler"
    reading: ClassVar = frozenset({"list_calendars", "list_events", "resolve_datetime"})

    def __init__(self, provider: ProjectedProvider) -> None:
        super().__init__(provider)
        self._hints: dict[tuple[str, str], str] = {}
        self._in_utc = False

    async def names(self) -> Sequence[tuple[str, str]]:
        answer = await self.provider.ask("list_calendars", {})
        return [(name, name) for name in cast("list[str]", answer["calendars"])]

    async def read(self, handle: Fields, expected: Mapping[str, Any] | None = None) -> Seen:
        for start, end in self._where(handle):
            rows = [row for row in await self._list(handle["calendar"], start, end) if row["uid"] == handle["uid"]]
            if rows:
                seen = self._seen(handle["calendar"], rows[0])
                return await self._first(handle, seen) if seen.recurring else seen
        raise NotFound(f"there is no event {handle['uid']!r} in the calendar {handle['calendar']!r}")

    async def within(self, calendar: str, start: str, end: str) -> Sequence[tuple[str, Seen]]:
        return [(row["uid"], self._seen(calendar, row)) for row in await self._list(calendar, start, end)]

    async def occurring(
        self, calendar: str, listed: Sequence[tuple[str, Seen]], given: Mapping[str, Any]
    ) -> frozenset[str]:
        # Occurrences are listed with their own times, so they say it themselves.
        return frozenset(
            uid for uid, seen in listed if seen.recurring and in_range(shown(seen.kind, seen.start, seen.end)[0], given)
        )

    async def starts(self, calendar: str, uid: str, start: str, end: str) -> tuple[int, int]:
        rows = await self._list(calendar, start, end)
        return sum(bool(row.get("recurring")) for row in rows), sum(row["uid"] == uid for row in rows)

    async def ready(self, event: Mapping[str, Any]) -> None:
        """Refuse to write instants where the server would put them into a zone; asked once a connection."""
        if self._in_utc or "start" not in event or event.get("showWithoutTime"):
            return
        answer = await self.provider.ask("resolve_datetime", {"value": _ZONE_PROBE})
        if _UTC_NOTE not in str(answer.get("note")):
            raise Unavailable(
                f"cal-scheduler would keep times in a zone of its own: {answer.get('note')}",
                hint="set CAL_DEFAULT_TZ=UTC for it",
            )
        self._in_utc = True

    def check(self, event: Mapping[str, Any]) -> None:
        if "start" in event and event["start"] == event["end"]:
            raise Unsupported(
                "cal-scheduler takes no event whose end is its start",
                hint="give it a length",
                details={"lost": ["end"]},
            )

    async def add(self, calendar: str, event: Mapping[str, Any]) -> str:
        before = await self._alike(calendar, event)
        try:
            made = await self.provider.ask("create_event", {"calendar": calendar, **_sent(event)})
        except Internal as error:
            raise await self._why_not_added(calendar, event, before, error) from error
        self._hints[calendar, made["uid"]] = event["start"]
        return made["uid"]

    async def change(self, handle: Fields, changes: Mapping[str, Any]) -> None:
        before = await self.read(handle)
        try:
            await self.provider.ask("update_event", {**handle, **_sent(changes)})
        except Internal as error:
            raise await self._why_not_changed(handle, before, changes, error) from error
        if "start" in changes:
            self._hint(handle["calendar"], handle["uid"], changes["start"])

    async def remove(self, handle: Fields) -> None:
        try:
            await self.provider.ask("delete_event", dict(handle))
        except Internal as error:
            # It was there a moment ago: where it is gone now, this or somebody else's act removed it.
            await self.read(handle)
            raise Unavailable(
                "the event can't be deleted, and cal-scheduler doesn't say why", details=error.details
            ) from error

    def _where(self, handle: Fields) -> Sequence[tuple[str, str]]:
        """The ranges in which to look for an event, the likeliest first; in all of time only if need be."""
        places: list[tuple[str, str]] = []
        hint = self._hints.get((handle["calendar"], handle["uid"]))
        if hint is not None:
            places.append(_around(hint))
        now = datetime.now(UTC)
        places.append((format_utc(now - timedelta(days=400)), format_utc(now + timedelta(days=400))))
        return [*places, (FIRST_DAY, LAST_DAY)]

    async def _first(self, handle: Fields, seen: Seen) -> Seen:
        """The first occurrence of a series of which one was found."""
        start = seen.start if seen.kind == "instant" else f"{seen.start[:10]}T00:00:00Z"
        rows = await self._list(handle["calendar"], FIRST_DAY, second_after(start))
        first = next((row for row in rows if row["uid"] == handle["uid"]), None)
        return self._seen(handle["calendar"], first) if first else seen

    async def _list(self, calendar: str, start: str, end: str) -> list[Fields]:
        answer = await self.provider.ask("list_events", {"calendar": calendar, "start": start, "end": end})
        return cast("list[Fields]", answer["events"])

    def _seen(self, calendar: str, row: Mapping[str, Any]) -> Seen:
        self._hint(calendar, row["uid"], row["start"])
        start = str(row["start"])
        kind = "allDay" if row["all_day"] else "floating" if len(start) == len(_ZONE_PROBE) else "instant"
        return Seen(
            kind=kind,
            start=start,
            end=row.get("end"),
            texts={name: row.get(_NAMES[name]) or "" for name in ("title", "description", "location")},
            recurring=bool(row.get("recurring")),
            mark=hashlib.sha256(json.dumps(row, sort_keys=True).encode()).hexdigest(),
        )

    def _hint(self, calendar: str, uid: str, start: str) -> None:
        if len(self._hints) >= _HINTS:
            self._hints.clear()
        self._hints[calendar, uid] = start

    async def _alike(self, calendar: str, event: Mapping[str, Any]) -> set[str]:
        """The uids of the events that look like one about to be written."""
        found: set[str] = set()
        for row in await self._list(calendar, *_around(event["start"])):
            seen = self._seen(calendar, row)
            if not not_kept(event, {**shown(seen.kind, seen.start, seen.end)[0], **seen.texts}):
                found.add(row["uid"])
        return found

    async def _why_not_added(
        self, calendar: str, event: Mapping[str, Any], before: set[str], error: Internal
    ) -> ConnectionFailed:
        details = {**error.details, "state": "unknown"}
        try:
            await self._calendar(calendar)
            new = await self._alike(calendar, event) - before
        except NotFound as missing:
            return missing
        except ConnectionFailed:
            return InDoubt("cal-scheduler failed to write and now can't be asked whether it did", details=details)
        if new:
            return InDoubt("cal-scheduler says that it failed, and the event is there", details=details)
        error.details.pop("state", None)
        return Internal("cal-scheduler wrote nothing and doesn't say why", details=error.details)

    async def _why_not_changed(
        self, handle: Fields, before: Seen, changes: Mapping[str, Any], error: Internal
    ) -> ConnectionFailed:
        details = {**error.details, "state": "unknown"}
        try:
            after = await self.read(handle)
        except NotFound as missing:
            return missing
        except ConnectionFailed:
            return InDoubt("cal-scheduler failed to write and now can't be asked whether it did", details=details)
        if after.mark == before.mark:
            error.details.pop("state", None)
            return Internal("cal-scheduler changed nothing and doesn't say why", details=error.details)
        if not not_kept(changes, {**shown(after.kind, after.start, after.end)[0], **after.texts}):
            return InDoubt("cal-scheduler says that it failed, and the event is as asked", details=details)
        return Conflict("the event was changed in between", hint="read it again, then decide", details=error.details)


def _sent(fields: Mapping[str, Any]) -> Fields:
    return {_NAMES[name]: value for name, value in fields.items() if name in _NAMES}


def _around(start: str) -> tuple[str, str]:
    """A range that an event with this start lies in, whatever kind of time that is."""
    if len(start) <= len(_ZONE_PROBE):
        moment = datetime.fromisoformat(start).replace(tzinfo=UTC)
    else:
        moment = datetime.fromisoformat(start).astimezone(UTC)
    return format_utc(moment - timedelta(seconds=1)), format_utc(moment + timedelta(seconds=1))
