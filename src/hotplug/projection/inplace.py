"""What projections share whose upstream edits the stored event in place: what isn't named stays as it is.

So texts of any event can be changed exactly. Times are written as UTC or dates, so those of an event whose zone the
upstream doesn't show are changed only where this projection wrote them last, or where the call accepts the loss.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, ClassVar, Final

from hotplug.catalog.calendar import functions
from hotplug.catalog.calendar.zones import format_utc
from hotplug.errors import (
    Ambiguous,
    ConnectionFailed,
    Internal,
    NotFound,
    Unsupported,
)
from hotplug.projection.calendar import (
    TEXTS,
    Fields,
    Kind,
    Ours,
    accepted,
    around,
    cleaned,
    clears,
    doubted,
    moved,
    not_kept,
    page,
    refuse_losses,
    refuse_series,
    require_kept,
    shown,
    time_of,
)
from hotplug.projection.rereading import reread
from hotplug.projection.runtime import ProjectedProvider

__all__ = ["FIRST_DAY", "LAST_DAY", "InPlaceCalendar", "Seen", "in_range", "padded"]

FIRST_DAY: Final = "1900-01-01T00:00:00Z"
LAST_DAY: Final = "2100-01-01T00:00:00Z"
"""Where looking for the occurrences of a series ends: an upstream that expands them would never come to an end."""

_KEEPS: Final = ("instant", "allDay")
_WINDOWS: Final = (1, 4, 15, 200)
"""Years of the listings that look for further occurrences, one after the other."""
_MANY: Final = 5000
"""Items of one listing that are too many to look through for a series."""
_HOURS: Final = 3600

_ALTERED: Final = re.compile(r"[ \t]\Z|\\['\"]|COMPLETED:\d|CREATED:00001231T000000Z")
"""What Python's `caldav`, which these upstreams are built on, repairs in the iCalendar text it writes, be it right or
not: blanks at the end, backslashes before quotes, what looks like certain wrong dates (`caldav.lib.vcal.fix`)."""


@dataclass(frozen=True)
class Seen:
    """An event as an upstream shows it.

    Args:
        kind: What start and end are.
        placed: False where a shown instant may be a floating time as well.
        doubtful: Names of fields that the upstream's answer doesn't tell apart.
        recurring: Its own sign of a series; False means that there is none, not that it is none.
        mark: Stands for all that is shown: the same mark, the same event.
    """

    kind: Kind
    start: str
    end: str | None
    texts: Mapping[str, str]
    recurring: bool
    mark: str
    placed: bool = True
    doubtful: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Current:
    event: Fields
    seen: Seen
    fact: Fields | None
    """What was remembered of the last write, where the event is still the same."""


def padded(given: Mapping[str, Any]) -> tuple[str, str]:
    """A search's range, wide enough for floating and all-day events in any zone and for those without length."""
    found = functions.bounds(dict(given))
    return functions.plus_seconds(found["from"], -12 * _HOURS - 1), functions.plus_seconds(found["to"], 14 * _HOURS)


class InPlaceCalendar(ABC):
    """The code beside a projection; a subclass says how its upstream reads and writes.

    Event handles are `{calendar, uid}`.
    """

    server: ClassVar[str]
    """Its name in messages."""

    reading: ClassVar[frozenset[str]]
    """The tools that change nothing."""

    def __init__(self, provider: ProjectedProvider) -> None:
        self.provider = provider
        self.ours = Ours(provider)

    @abstractmethod
    async def names(self) -> Sequence[tuple[str, str]]:
        """The calendars: handle and name, in the upstream's order."""

    @abstractmethod
    async def read(self, handle: Fields, expected: Mapping[str, Any] | None = None) -> Seen:
        """An event; raises `NotFound`. `expected` helps to tell texts apart: what should be there."""

    async def again(self, handle: Fields, expected: Mapping[str, Any] | None, start: str, end: str) -> Seen | None:
        """An event by another way than `read`, right after a write that `read` doesn't show: in the list of a range."""
        return next(
            (seen for uid, seen in await self.within(handle["calendar"], start, end) if uid == handle["uid"]), None
        )

    @abstractmethod
    async def within(self, calendar: str, start: str, end: str) -> Sequence[tuple[str, Seen]]:
        """The events that a listing of a range gives, with their uids."""

    @abstractmethod
    async def occurring(
        self, calendar: str, listed: Sequence[tuple[str, Seen]], given: Mapping[str, Any]
    ) -> frozenset[str]:
        """The uids among a listing's events that have an occurrence in the range of a search.

        It is asked about series, and about events whose start is in doubt.
        """

    @abstractmethod
    async def starts(self, calendar: str, uid: str, start: str, end: str) -> tuple[int, int]:
        """How many items a listing of a range has, and how many of them are occurrences of the event."""

    @abstractmethod
    async def add(self, calendar: str, event: Mapping[str, Any]) -> str:
        """Write a new event (title, start, end, and texts) and give its uid."""

    @abstractmethod
    async def change(self, handle: Fields, changes: Mapping[str, Any]) -> None:
        """Write the fields given; an empty text clears."""

    @abstractmethod
    async def remove(self, handle: Fields) -> None:
        """Remove an event."""

    @abstractmethod
    async def ready(self, event: Mapping[str, Any]) -> None:
        """Raises where times can't be written exactly as the upstream is set up."""

    @abstractmethod
    def check(self, event: Mapping[str, Any]) -> None:
        """Raises where the upstream couldn't keep a value, before anything is written."""

    # The parts

    async def calendars(self, given: Fields) -> Fields:
        """The calendars; one that the upstream could take for another is not writable."""
        names = await self.names()
        return {
            "calendars": [
                {"calendar": handle, "name": name, "writable": _meant(handle, names) == 1} for handle, name in names
            ]
        }

    async def search(self, given: Fields) -> Fields:
        """The events in a range, of one calendar or of all that there are; a series once."""
        start, end = padded(given)
        if given.get("calendar") is not None:
            await self._calendar(given["calendar"])
            calendars = [given["calendar"]]
        else:
            names = await self.names()
            calendars = [handle for handle, _ in names]
            twice = sorted({handle for handle in calendars if _meant(handle, names) > 1})
            if twice:
                raise Ambiguous(
                    f"{self.server} can't tell apart the calendars that are called {', '.join(map(repr, twice))}",
                    hint="name the calendar to search in, or give them different names",
                    details={"matches": twice},
                )
        single: list[Fields] = []
        series: dict[tuple[str, str], Fields] = {}
        for calendar in calendars:
            listed = await self.within(calendar, start, end)
            within = await self.occurring(calendar, listed, given)
            for uid, seen in listed:
                event = (await self._event({"calendar": calendar, "uid": uid}, seen, recurring=None)).event
                if not seen.recurring and "start" not in seen.doubtful:
                    single.append(event)
                elif uid in within:
                    series.setdefault((calendar, uid), event)
        return page(single, given, always=series.values())

    async def get(self, given: Fields) -> Fields:
        """One event, and whether it is one of a series."""
        return (await self._current(given["event"])).event

    async def create(self, given: Fields) -> Fields:
        """A new event; read back and compared."""
        asked = cleaned(given)
        time = time_of(asked, _KEEPS, server=self.server, lost=_unkept(asked))
        event = {name: asked[name] for name in TEXTS if name in asked}
        event |= {"start": time["start"], "end": time["end"]}
        if time["kind"] == "allDay":
            event["showWithoutTime"] = True
        self.check(event)
        await self._calendar(given["calendar"])
        await self.ready(event)
        handle = {"calendar": given["calendar"], "uid": await self.add(given["calendar"], event)}
        await self._written(handle, event, given, kind=time["kind"], single=True, expected=event, time=event)
        return {"event": handle}

    async def update(self, given: Fields) -> Fields:
        """A change of what is named; read back and compared."""
        handle: Fields = given["event"]
        changes = cleaned(given["changes"])
        cleared = self._cleared(given, changes)
        now = await self._current(handle)
        event = now.event
        time = moved({**given, "changes": changes}, event, _KEEPS, server=self.server, lost=_unkept(changes))
        if event.get("recurring") and time is not None:
            raise Unsupported(
                "the event is the first of a series, and moving it would move every occurrence",
                details={"lost": ["recurrenceRules"]},
            )
        refuse_series(given, event, "changed")
        new = {name: changes[name] for name in TEXTS if name in changes} | dict.fromkeys(cleared, "")
        if time is not None:
            if "timeZone" in (event.get("unknown") or ()):
                refuse_losses(
                    given,
                    ["timeZone"],
                    f"{self.server} writes times as UTC and doesn't show in which zone this event is kept",
                )
            new |= {"start": time["start"], "end": time["end"]}
            if time["kind"] == "allDay":
                new["showWithoutTime"] = True
        if not new:
            return {"event": handle}
        self.check(new)
        await self.ready(new)
        await self.change(handle, new)
        kind = time["kind"] if time is not None else now.fact["kind"] if now.fact else None
        single = event.get("recurring") is False
        texts = {name: event[name] for name in TEXTS if name in event} | new
        known = not (set(event["unknown"]) & set(TEXTS) - set(new))
        await self._written(
            handle,
            new,
            given,
            kind=kind,
            single=single,
            expected=texts if known else None,
            time=new if "start" in new else {"start": now.seen.start, "end": now.seen.end},
        )
        return {"event": handle}

    async def delete(self, given: Fields) -> Fields:
        """An event removed; of a series only if that is accepted."""
        handle: Fields = given["event"]
        now = await self._current(handle)
        refuse_series(given, now.event, "deleted")
        await self.remove(handle)
        await self.ours.forget(handle)
        return {}

    # What they are made of

    def _cleared(self, given: Fields, changes: Mapping[str, Any]) -> list[str]:
        """The texts that a call clears; what else it names is refused or, where that is accepted, left as it is."""
        names = clears(given, changes)
        refuse_losses(
            given, [name for name in names if name not in TEXTS], f"{self.server} clears only {', '.join(TEXTS)}"
        )
        return [name for name in names if name in TEXTS]

    async def _calendar(self, handle: str) -> None:
        """Raises where a calendar isn't there, or isn't the only one that the upstream knows by its handle."""
        names = await self.names()
        if all(handle != found for found, _ in names):
            raise NotFound(f"there is no calendar {handle!r}")
        if _meant(handle, names) > 1:
            raise Ambiguous(
                f"{_meant(handle, names)} calendars are called {handle!r}, and {self.server} would take the first",
                hint="give them different names",
                details={"matches": [name for found, name in names if handle in (found, name)]},
            )

    async def _current(self, handle: Fields) -> _Current:
        await self._calendar(handle["calendar"])
        fact = await self.ours.recall(handle)
        if fact is not None and "start" in fact:
            # We wrote it, so one answer without it isn't believed.
            seen = await self._reread(handle, fact["event"], fact, good=lambda _: True)
        else:
            seen = await self.read(handle, fact["event"] if fact else None)
        single = False if fact and fact["mark"] == seen.mark and fact["single"] else None
        recurring = True if seen.recurring else single
        if recurring is None:
            recurring = await self._series(handle, seen)
        return await self._event(handle, seen, recurring=recurring)

    async def _event(self, handle: Fields, seen: Seen, *, recurring: bool | None) -> _Current:
        """The event's wire form; `recurring` is None where nobody looked, and stays unknown if it isn't ours."""
        fact = await self.ours.recall(handle)
        if fact is not None and fact["mark"] != seen.mark:
            fact = None
        if recurring is None and (seen.recurring or (fact is not None and fact["single"])):
            recurring = seen.recurring
        fields, unknown = shown(seen.kind, seen.start, seen.end)
        if "start" in seen.doubtful or (seen.kind == "instant" and (fact is None or fact["kind"] != "instant")):
            unknown.append("timeZone")
            if not seen.placed or "start" in seen.doubtful:
                unknown += ["utcStart", "utcEnd"]
                fields.pop("utcStart", None)
                fields.pop("utcEnd", None)
        texts = dict(seen.texts)
        if fact is not None and not fact["doubtful"]:
            texts = {name: fact["event"].get(name, "") for name in TEXTS}
        else:
            unknown += seen.doubtful
        unknown += ["status", "freeBusyStatus"]
        event: Fields = {"event": handle, "calendar": handle["calendar"], "title": texts.get("title", "")}
        event |= {name: texts[name] for name in TEXTS[1:] if texts.get(name)} | fields
        if recurring is None:
            unknown.append("recurring")
        else:
            event["recurring"] = recurring
        return _Current({**event, "unknown": unknown}, seen, fact)

    async def _written(
        self,
        handle: Fields,
        asked: Mapping[str, Any],
        given: Mapping[str, Any],
        *,
        kind: str | None,
        single: bool,
        expected: Mapping[str, Any] | None,
        time: Mapping[str, Any],
    ) -> None:
        """Read back what was written, compare it (FR-15), and remember it as ours.

        What isn't there, or isn't as it was written, is read once more by another way (FR-06).

        Args:
            kind: Of the time that was written; None where nobody knows in which zone it is kept.
            expected: All texts that the event should have now, where they are known.
            time: Its start and end now, or what is known of them.
        """
        compared = {"showWithoutTime": False, **asked} if "start" in asked else asked
        try:
            seen = await self._reread(handle, expected, time, good=lambda seen: not not_kept(compared, _plain(seen)))
        except ConnectionFailed as error:
            await self.ours.forget(handle)
            raise doubted(error, "what was written can't be read back; it") from error
        fact: Fields = {
            "mark": seen.mark,
            "event": {name: text for name, text in seen.texts.items() if name not in seen.doubtful},
            "doubtful": bool(seen.doubtful),
            "kind": kind or "unknown",
            "single": single,
            "start": seen.start,
            "end": seen.end,
        }
        await self.ours.remember(handle, fact)
        found = (await self._event(handle, seen, recurring=not single)).event
        if expected is not None:
            # All of its texts are known, so what is there and can't be told apart isn't what should be there.
            found["unknown"] = [name for name in found["unknown"] if name not in seen.doubtful]
        try:
            require_kept(compared, found, accept=accepted(given), server=self.server)
        except Internal:
            await self.ours.forget(handle)
            raise

    async def _reread(
        self,
        handle: Fields,
        expected: Mapping[str, Any] | None,
        time: Mapping[str, Any],
        *,
        good: Callable[[Seen], bool],
    ) -> Seen:
        start = _as_utc(time["start"])
        end = _as_utc(time["end"]) if time.get("end") else start
        near = around({"from": start, "to": functions.plus_seconds(end, 1)})
        return await reread(
            lambda: self.read(handle, expected),
            lambda: self.again(handle, expected, near["from"], near["to"]),
            good=good,
        )

    async def _series(self, handle: Fields, seen: Seen) -> bool | None:
        """Whether there are further occurrences: None where so many events are listed that it can't be looked up."""
        times, hidden = shown(seen.kind, seen.start, seen.end)
        if hidden or "start" in seen.doubtful:
            # Without an end nobody can say whether what is listed later is this occurrence or another.
            return None
        start, end = (_as_utc(times[name]) for name in ("start", "end"))
        later = await self._occurs(handle, functions.plus_seconds(end, 1), LAST_DAY, forward=True)
        if later is not False:
            return later
        return await self._occurs(handle, FIRST_DAY, start, forward=False)

    async def _occurs(self, handle: Fields, start: str, end: str, *, forward: bool) -> bool | None:
        first, last = datetime.fromisoformat(start), datetime.fromisoformat(end)
        density = 0.0
        for years in _WINDOWS:
            if first >= last:
                return False
            days = min(years * 366, (last - first).days + 1)
            if density * days > _MANY:
                return None
            span = min(timedelta(days=days), last - first)
            low, high = (first, first + span) if forward else (last - span, last)
            count, found = await self.starts(handle["calendar"], handle["uid"], format_utc(low), format_utc(high))
            if found:
                return True
            density = count / days
            first, last = (high, last) if forward else (first, low)
        return False


def _plain(seen: Seen) -> Fields:
    """An event as it is compared with what was written: what its answer doesn't tell apart isn't."""
    fields, hidden = shown(seen.kind, seen.start, seen.end)
    return {"title": "", **fields, **seen.texts, "unknown": [*hidden, *seen.doubtful]}


def _as_utc(text: str) -> str:
    """An instant, or a date or local time read as if in UTC, which is how servers match them."""
    if len(text) == len("2026-10-26"):
        return f"{text}T00:00:00Z"
    return functions.utc(text if text.endswith("Z") or "+" in text[10:] or "-" in text[10:] else f"{text}Z")


def in_range(event: Mapping[str, Any], given: Mapping[str, Any]) -> bool:
    """Whether an event as `shown` lies in a search's range; one that shows no end counts at its start."""
    timed = dict(event)
    if not timed.get("duration"):
        timed["duration"] = "P1D" if timed.get("showWithoutTime") else "PT0S"
    return functions.in_range(timed, {name: given[name] for name in ("from", "to", "timeZone") if name in given})


def _meant(handle: str, names: Sequence[tuple[str, str]]) -> int:
    """How many calendars an upstream may take for the one with a handle: it looks at handles and names alike."""
    return sum(handle in row for row in names)


def _unkept(fields: Mapping[str, Any]) -> list[str]:
    """The names of the fields that would be lost or altered: those not known upstream, and texts `_ALTERED` finds."""
    lost = [name for name in TEXTS if _ALTERED.search(str(fields.get(name) or ""))]
    return lost + [name for name in ("status", "freeBusyStatus") if name in fields]
