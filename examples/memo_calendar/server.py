"""A calendar in one JSON file: the server of the guide "Build a server".

Small enough to read in one go, and right about time: the four kinds stay apart. It is for one process at a time; for
work, take the SQLite server of the catalog.
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

from typing_extensions import Unpack

from hotplug.catalog.calendar import (
    Calendar,
    CalendarEvent,
    CalendarInfo,
    CalendarRef,
    Calendars,
    Changes,
    Deleted,
    EventRef,
    Found,
    NewEvent,
    Written,
)
from hotplug.catalog.calendar.profile import DeleteOptions, SearchOptions, UpdateOptions
from hotplug.catalog.calendar.records import changed_time
from hotplug.catalog.calendar.times import When, overlaps, read_range, read_when, start_instant, time_fields
from hotplug.errors import Conflict, NotFound, Unsupported
from hotplug.profile import wire_name
from hotplug.serve import run

TEXTS = ("title", "description", "location", "status", "freeBusyStatus")
TIMES = ("start", "end", "duration", "timeZone", "showWithoutTime")
MEMO = CalendarRef("memo")


class MemoCalendar(Calendar, facets=["revisions"]):
    """The core of calendar@1, and the facet revisions."""

    emits = frozenset({"calendar.event.changed"})

    def __init__(self, file: str | Path = "memo.json") -> None:
        self.file = Path(file)

    async def calendars(self) -> Calendars:
        return Calendars(calendars=[CalendarInfo(calendar=MEMO, name="Memo", writable=True)])

    async def search(self, from_: str, to: str, **range_: Unpack[SearchOptions]) -> Found:
        _check_calendar(range_.get("calendar", MEMO))
        zone = range_.get("time_zone")
        within = read_range(from_, to, zone)
        query = range_.get("query", "").casefold()
        found = sorted(
            (start_instant(when, zone).isoformat(), uid)
            for uid, kept in self._load().items()
            if overlaps(when := _when(kept), within) and _mentions(kept, query)
        )
        rest = [key for key in found if " ".join(key) > range_.get("cursor", "")]
        page = rest[: range_.get("limit", 100)]
        return Found(
            events=[self._shown(uid) for _, uid in page],
            cursor=" ".join(page[-1]) if len(rest) > len(page) else None,
        )

    async def get(self, event: EventRef) -> CalendarEvent:
        return self._shown(event)

    async def create(self, **event: Unpack[NewEvent]) -> Written:
        _check_calendar(event["calendar"])
        given = _wire(event)
        texts = {name: given[name] for name in TEXTS if name in given}
        kept = {**texts, **time_fields(_when(given))}
        return await self._write(EventRef(str(uuid4())), kept, "created")

    async def update(self, event: EventRef, changes: Changes, **options: Unpack[UpdateOptions]) -> Written:
        kept = self._read(event)
        _check_revision(kept, options.get("revision"))
        given = _wire(changes)
        when = changed_time(_when(kept), {name: given[name] for name in TIMES if name in given})
        texts = {name: kept[name] for name in TEXTS if name in kept} | {n: given[n] for n in TEXTS if n in given}
        for name in options.get("clear", []):
            if name == "title" or name not in TEXTS:
                raise Unsupported(f"{name} can't be cleared here", details={"lost": [name]})
            texts.pop(name, None)
        return await self._write(event, {**texts, **time_fields(when)}, "updated", int(kept["revision"]) + 1)

    async def delete(self, event: EventRef, **options: Unpack[DeleteOptions]) -> Deleted:
        _check_revision(self._read(event), options.get("revision"))
        events = self._load()
        del events[event]
        self._save(events)
        await self.emit(Calendar.EventChanged(event=event, calendar=MEMO, change="deleted"))
        return Deleted()

    async def _write(self, event: EventRef, kept: dict[str, Any], change: Any, revision: int = 1) -> Written:
        self._save(self._load() | {event: kept | {"revision": str(revision)}})
        await self.emit(Calendar.EventChanged(event=event, calendar=MEMO, change=change, revision=str(revision)))
        return Written(event=event, revision=str(revision))

    def _shown(self, event: str) -> CalendarEvent:
        kept = self._read(event)
        return CalendarEvent.model_validate({"event": event, "calendar": MEMO, **kept, **_when(kept).wire()})

    def _read(self, event: str) -> dict[str, Any]:
        kept = self._load().get(event)
        if kept is None:
            raise NotFound(f"there is no event {event!r}")
        return kept

    def _load(self) -> dict[str, dict[str, Any]]:
        return json.loads(self.file.read_text("utf-8")) if self.file.exists() else {}

    def _save(self, events: dict[str, dict[str, Any]]) -> None:
        new = self.file.with_suffix(".new")
        new.write_text(json.dumps(events, indent=2, ensure_ascii=False), "utf-8")
        new.replace(self.file)  # a crash leaves the old file or the new one, never half of one


def _wire(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Python's names as the wire has them: `time_zone` is `timeZone`."""
    return {wire_name(name): value for name, value in fields.items()}


def _when(fields: dict[str, Any]) -> When:
    return read_when(fields["start"], *(fields.get(name) for name in TIMES[1:]))


def _mentions(kept: dict[str, Any], query: str) -> bool:
    return any(query in kept.get(name, "").casefold() for name in ("title", "description", "location"))


def _check_calendar(calendar: str) -> None:
    if calendar != MEMO:
        raise NotFound(f"there is no calendar {calendar!r}")


def _check_revision(kept: dict[str, Any], revision: str | None) -> None:
    if revision not in (None, kept["revision"]):
        raise Conflict(
            f"the event is at revision {kept['revision']}, not {revision}",
            details={"current": kept["revision"]},
            hint="read it again and decide anew",
        )


if __name__ == "__main__":
    run(MemoCalendar(*sys.argv[1:]), name="memo-calendar")
