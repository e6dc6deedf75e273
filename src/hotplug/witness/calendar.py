"""Looking at calendars: a CalDAV server's collections, a folder of `.ics` files, the tables of a SQLite file.

None of this asks the server that is being tried, nor shares its code for times: iCalendar is read with `icalendar`.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import anyio
import anyio.to_thread

from hotplug.errors import ConnectError
from hotplug.evidence.coverage import BlindSpot
from hotplug.evidence.vocabulary import ProvenanceClass
from hotplug.witness.comparing import Comparing, Look, Thing
from hotplug.witness.tree import fitting, walk
from hotplug.witness.watching import CannotLook, spot

__all__ = ["CalendarFolder", "CalendarTables", "Holding", "StoredCalendars", "Unreadable", "holdings_of", "times_of"]

_LIMIT: Final = 100_000
# What a server or a client may write anew without a change of the event.
_STAMPS: Final = frozenset({"DTSTAMP", "LAST-MODIFIED", "CREATED"})


class Unreadable(Exception):
    """A calendar object can't be read; the message says why."""


@dataclass(frozen=True, slots=True)
class Holding:
    """An event as a backend keeps it, with its changed occurrences.

    Args:
        calendar: The collection's last path part, the folder, or the calendar's id.
        fingerprint: Tells its content.
        events: The main event first: `{uid, title, start, end, zone, …}`.
    """

    calendar: str
    uid: str
    fingerprint: str
    events: tuple[dict[str, Any], ...]


@dataclass(slots=True)
class Stored:
    """All that a look found, and the gaps: each may hide an event of any uid."""

    holdings: list[Holding] = field(default_factory=list[Holding])
    gaps: list[BlindSpot] = field(default_factory=list[BlindSpot])

    def gap(self, detail: str, *, is_cut: bool = False) -> None:
        """Note that something couldn't be read."""
        self.gaps.append(spot("buffer-truncated" if is_cut else "channel-unobserved", "state", detail))


class StoredCalendars(Comparing):
    """What a calendar's backend keeps: `calendar.event UID created`, `updated`, `deleted`, and their number.

    The value has `uid`, `title`, `start`, `end`, `zone`, `location`, `description`, `recurring` and `calendar`;
    instants are in UTC (`…Z`), other times as they stand. An event that is kept twice is seen twice. What a server
    writes anew by itself (time stamps) is no change. Where a part can't be read, no absence is concluded from it.

    Its `state` is independent and of consequence: it is read past the server that acts, where that had to store it.
    """

    what = ""

    @property
    def describe(self) -> str:
        """How it looks, for a report."""
        return self.what

    @abstractmethod
    async def _stored(self) -> Stored:
        """All that is kept.

        Raises:
            CannotLook: Nothing can be read.
        """

    async def stored(self) -> list[dict[str, Any]]:
        """The events there are, changed occurrences too: `{uid, title, start, end, …}`.

        Raises:
            ConnectError: Something couldn't be read, so that an absence would mean nothing.
        """
        try:
            with anyio.fail_after(self.timeout):
                found = await self._stored()
        except CannotLook as error:
            raise ConnectError(f"{self.locator} could not be looked at: {error.detail}", hint=error.remedy) from None
        except TimeoutError:
            raise ConnectError(f"{self.locator} did not answer within {self.timeout:g} s") from None
        if found.gaps:
            raise ConnectError(f"not everything could be read: {'; '.join(gap.detail for gap in found.gaps[:3])}")
        return [dict(event) for one in found.holdings for event in one.events]

    async def _read(self) -> Look:
        found = await self._stored()
        things = tuple(
            Thing(
                "calendar.event",
                one.uid or "(none)",
                f"{one.calendar}\n{one.fingerprint}",
                {**one.events[0], "calendar": one.calendar},
            )
            for one in found.holdings
        )
        if found.gaps:
            return Look(things, {}, tuple(found.gaps), lambda ref: True)
        return Look(things, {"calendar.event.count": len(things)})

    def provenance(self, channel: str) -> tuple[str, str, ProvenanceClass]:
        """The backend; events compared by uid."""
        del channel
        return self.locator, f"{self.what}; events compared by uid", "authoritative"


class CalendarFolder(StoredCalendars):
    """What lies in a folder of `.ics` files.

    Args:
        folder: Its calendars are its subfolders, or it is one itself.
    """

    what = "the folder's files, read directly"

    def __init__(self, folder: str | Path, *, timeout: float = 30.0, name: str = "calendar-folder") -> None:
        super().__init__(name, str(folder), timeout=timeout)
        self._folder = Path(folder)

    async def _stored(self) -> Stored:
        return await anyio.to_thread.run_sync(self._in_thread, abandon_on_cancel=True)

    def _in_thread(self) -> Stored:
        try:
            tree = walk(self._folder, fitting("**/*.ics"), _LIMIT)
        except OSError as error:
            raise CannotLook(error.strerror or str(error)) from None
        found = Stored()
        for path, why in tree.unread:
            found.gap(f"{path} can't be read: {why}")
        if tree.is_cut:
            found.gap(f"{self.locator}: only {_LIMIT} files were looked at", is_cut=True)
        for file in tree.files:
            try:
                text = (self._folder / file.path).read_text(encoding="utf-8")
                found.holdings += holdings_of(text, file.path.rpartition("/")[0])
            except FileNotFoundError:
                continue
            except (OSError, UnicodeDecodeError, Unreadable) as error:
                found.gap(f"{file.path} can't be read: {_reason(error)}")
        return found


class CalendarTables(StoredCalendars):
    """What stands in the tables of a calendar's SQLite file.

    Args:
        path: The file; it is opened for reading alone.
    """

    what = "the tables, read by SQL"

    def __init__(self, path: str | Path, *, timeout: float = 10.0, name: str = "calendar-tables") -> None:
        super().__init__(name, str(path), timeout=timeout)
        self._path = Path(path)

    async def _stored(self) -> Stored:
        return await anyio.to_thread.run_sync(self._in_thread, abandon_on_cancel=True)

    def _in_thread(self) -> Stored:
        found = Stored()
        try:
            address = f"file:{quote(str(self._path.absolute()))}?mode=ro"
            with closing(sqlite3.connect(address, uri=True, timeout=self.timeout)) as connection:
                # As bytes: of text that isn't UTF-8 sqlite3 would give no row at all.
                rows = connection.execute(
                    "select uid, calendar, cast(body as blob) from calendar_events order by rowid"
                ).fetchall()
        except sqlite3.Error as error:
            raise CannotLook(str(error)) from None
        for uid, calendar, body in rows:
            try:
                event = {"uid": uid, **_row(json.loads(bytes(body)))}
            except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
                found.gap(f"the event {uid!r} can't be read: {_reason(error)}")
                continue
            found.holdings.append(Holding(str(calendar), uid, hashlib.sha256(_lasting(body)).hexdigest(), (event,)))
        return found


def holdings_of(text: str, calendar: str) -> list[Holding]:
    """The events of a calendar object, each with its changed occurrences; tasks and others are left out.

    Raises:
        Unreadable: It is no iCalendar, or an event has no start.
    """
    try:
        import icalendar

        found: Any = icalendar.Calendar.from_ical(text)
        by_uid: dict[str, list[Any]] = {}
        for event in found.walk("VEVENT"):
            by_uid.setdefault(str(event.get("UID", "")), []).append(event)
        return [
            Holding(
                calendar,
                uid,
                hashlib.sha256(b"".join(sorted(map(_content, events)))).hexdigest(),
                tuple(map(_event, sorted(events, key=lambda event: "RECURRENCE-ID" in event))),
            )
            for uid, events in by_uid.items()
        ]
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise Unreadable(f"it is no event: {_reason(error)}") from error


def times_of(text: str) -> list[dict[str, Any]]:
    """The events of an iCalendar text: `{uid, title, start, end, location, description, zone, recurring}`."""
    import icalendar

    calendar: Any = icalendar.Calendar.from_ical(text)
    return [_event(event) for event in calendar.walk("VEVENT")]


def _event(event: Any) -> dict[str, Any]:
    start = event["DTSTART"].dt
    if "DTEND" in event:
        end = event["DTEND"].dt
    else:
        end = start + (event["DURATION"].dt if "DURATION" in event else timedelta())
    return {
        "uid": str(event.get("UID", "")),
        "title": str(event.get("SUMMARY", "")),
        "location": str(event.get("LOCATION", "")),
        "description": str(event.get("DESCRIPTION", "")),
        "start": _shown(start),
        "end": _shown(end),
        "zone": _zone(event["DTSTART"]),
        "recurring": "RRULE" in event or "RDATE" in event,
    }


def _content(event: Any) -> bytes:
    """An event without its time stamps, in an order of its own."""
    lines: Iterable[str] = event.to_ical().decode().replace("\r\n ", "").split("\r\n")
    kept = [line for line in lines if line.partition(":")[0].partition(";")[0].upper() not in _STAMPS]
    return "\n".join(sorted(kept)).encode() + b"\n"


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


def _row(body: Mapping[str, Any]) -> dict[str, Any]:
    kind, start, *rest = body["when"]
    found = {"title": body.get("title"), "location": body.get("location"), "description": body.get("description")}
    if kind != "instant":
        zone = {"all-day": "date", "floating": "floating"}.get(kind) or str(rest[2])
        return {**found, "start": start, "end": None, "zone": zone}
    days, seconds = rest
    first = datetime.fromisoformat(start).replace(tzinfo=UTC)
    end = first + timedelta(days=days, seconds=seconds)
    return {**found, "start": _shown(first), "end": _shown(end), "zone": "utc"}


def _lasting(body: bytes) -> bytes:
    kept = {name: value for name, value in json.loads(body).items() if name not in ("created", "updated")}
    return json.dumps(kept, sort_keys=True).encode()


def _reason(error: BaseException) -> str:
    if isinstance(error, OSError):
        return error.strerror or str(error)
    first = next(iter(str(error).splitlines()), "")
    return first[:200] or type(error).__name__
