"""The four kinds of time, kept apart: an instant, zoned wall time, floating, all-day.

Wire strings come in through `read_when` and `read_range`; a value's `wire()` gives them back. Nothing is guessed: a
local time that names neither zone nor floating, a wall time that a zone skips, one that it has twice, are refused with
the way out. Precision is a second, years are 1 to 9999. Sources: RFC 3339, RFC 8984 (duration, local times), RFC 5545.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final, TypeAlias
from zoneinfo import ZoneInfo

from hotplug.catalog.calendar.zones import format_local, format_utc, format_zoned, place, read_wall, read_zone, resolve
from hotplug.errors import InvalidArgument

__all__ = [
    "FLOATING",
    "AllDay",
    "Duration",
    "Floating",
    "Instant",
    "Range",
    "When",
    "Zoned",
    "bounded",
    "length_in_zone",
    "overlaps",
    "read_date",
    "read_date_time",
    "read_duration",
    "read_range",
    "read_when",
    "shift",
    "span",
    "start_instant",
    "time_fields",
]

FLOATING: Final = "floating"
"""The value of `timeZone` that says outright: the same wall time wherever one is."""

_EARLIEST: Final = timedelta(hours=14)
"""The zone furthest ahead of UTC; a floating start can come this much before the same digits in UTC."""
_LATEST: Final = timedelta(hours=12)
"""The zone furthest behind UTC."""

_FIRST: Final = datetime.min.replace(tzinfo=UTC)
_LAST: Final = datetime.max.replace(tzinfo=UTC)

_DATE: Final = re.compile(r"(\d{4})-(\d{2})-(\d{2})", re.ASCII)
_DATE_TIME: Final = re.compile(
    r"(\d{4}-\d{2}-\d{2})[Tt](\d{2}):(\d{2}):(\d{2})(?:\.(\d+))?(?:([Zz])|([+-])(\d{2}):(\d{2})(?::(\d{2}))?)?",
    re.ASCII,
)
_DURATION: Final = re.compile(
    r"P(?:(\d+)W)?(?:(\d+)D)?(T(?=\d)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)(?:\.(\d+))?S)?)?", re.ASCII
)


@dataclass(frozen=True, slots=True)
class Duration:
    """A length: nominal days (a day is as long as the zone makes it) and then exact seconds, as RFC 8984 adds them.

    `P1D` and `PT24H` are different lengths; `P1W` and `P7D`, `PT90M` and `PT1H30M` are the same one.
    """

    days: int = 0
    seconds: int = 0

    def __str__(self) -> str:
        """The form of RFC 8984 that is also one of RFC 5545 (`PT1H0M30S`, never `PT1H30S`)."""
        hours, rest = divmod(self.seconds, 3600)
        minutes, seconds = divmod(rest, 60)
        parts = f"{hours}H" if hours else ""
        if minutes or (hours and seconds):
            parts += f"{minutes}M"
        if seconds or not (self.days or self.seconds):
            parts += f"{seconds}S"
        return "P" + (f"{self.days}D" if self.days else "") + (f"T{parts}" if parts else "")


def read_duration(text: str, field: str = "duration") -> Duration:
    """Read an ISO 8601 duration of weeks, days, hours, minutes and seconds.

    Raises:
        InvalidArgument: It isn't one, it is negative, has months or years (no fixed length) or parts of a second.
    """
    match = _DURATION.fullmatch(text)
    if match is None or len(text) < 3:
        if text.startswith("-"):
            raise InvalidArgument(f"{field} {text!r} is negative", hint="an event ends after it starts")
        if re.fullmatch(r"P\d*Y?\d*M?.*", text) and re.search(r"\d[YM]", text.partition("T")[0]):
            raise InvalidArgument(f"{field} {text!r} has years or months", hint="they have no fixed length; use days")
        raise InvalidArgument(
            f"{field} {text!r} is not an ISO 8601 duration", hint="write PT1H30M, P1D, P1W or P1DT12H, for example"
        )
    weeks, days, _, hours, minutes, seconds, fraction = match.groups()
    if fraction and fraction.strip("0"):
        raise InvalidArgument(f"{field} {text!r} has a part of a second", hint="times here are whole seconds")
    if max(len(part or "") for part in (weeks, days, hours, minutes, seconds)) > 12:
        raise InvalidArgument(f"{field} {text!r} is longer than the years 1 to 9999")
    return Duration(
        int(weeks or 0) * 7 + int(days or 0), int(hours or 0) * 3600 + int(minutes or 0) * 60 + int(seconds or 0)
    )


def read_date(text: str, field: str) -> date:
    """Read `YYYY-MM-DD`.

    Raises:
        InvalidArgument: It has a time, another form, or names no day.
    """
    match = _DATE.fullmatch(text)
    if match is None:
        raise InvalidArgument(f"{field} {text!r} is not a date", hint="write YYYY-MM-DD")
    try:
        return date(*map(int, match.groups()))
    except ValueError as error:
        raise InvalidArgument(f"{field} {text!r} is no day of the calendar: {error}") from None


def read_date_time(text: str, field: str) -> tuple[datetime, timedelta | None]:
    """Read an RFC 3339 date-time, its offset left out or not: the naive time and the offset.

    Lower-case `t` and `z`, and a fraction of zeros, are taken; everything else must be as RFC 3339 has it.

    Raises:
        InvalidArgument: Another form, no such day or time, a leap second, a part of a second.
    """
    match = _DATE_TIME.fullmatch(text)
    if match is None:
        raise InvalidArgument(f"{field} {text!r} is not a date-time", hint=_form_hint(text))
    day_text, hour, minute, second, fraction, zulu, sign, offset_hour, offset_minute, offset_second = match.groups()
    day = read_date(day_text, field)
    if second == "60":
        raise InvalidArgument(f"{field} {text!r} is a leap second", hint="calendars have none; use second 59")
    if fraction and fraction.strip("0"):
        raise InvalidArgument(f"{field} {text!r} has a part of a second", hint="times here are whole seconds")
    try:
        local = datetime(day.year, day.month, day.day, int(hour), int(minute), int(second))  # noqa: DTZ001 - wall time
    except ValueError as error:
        raise InvalidArgument(
            f"{field} {text!r} is no time of the day: {error}", hint="24:00 is 00:00 of the next day"
        ) from None
    if zulu:
        return local, timedelta(0)
    if not sign:
        return local, None
    if int(offset_hour) > 23 or int(offset_minute) > 59 or int(offset_second or 0) > 59:
        raise InvalidArgument(f"{field} {text!r} has an offset that is none", hint="offsets are -23:59 to +23:59")
    offset = timedelta(hours=int(offset_hour), minutes=int(offset_minute), seconds=int(offset_second or 0))
    return local, offset if sign == "+" else -offset


def _form_hint(text: str) -> str:
    if _DATE.fullmatch(text):
        return "a date alone is for all-day events: set showWithoutTime, or add the time"
    if re.match(r"\d{4}-\d{2}-\d{2} ", text):
        return "put a T between date and time"
    if re.fullmatch(r"\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}(?:[Zz]|[+-]\d{2}:\d{2})?", text):
        return f"add the seconds: {text[:16]}:00{text[16:]}"
    return "write 2026-06-11T17:00:00, with Z or an offset such as +02:00 for an instant"


def _instant(local: datetime, offset: timedelta, field: str, text: str) -> datetime:
    try:
        return (local - offset).replace(tzinfo=UTC)
    except OverflowError:
        raise InvalidArgument(f"{field} {text!r} is outside the years 1 to 9999 in UTC") from None


@dataclass(frozen=True, slots=True)
class Instant:
    """A point on the time line and a length; `start` is in UTC and days are 24 hours."""

    start: datetime
    duration: Duration

    @property
    def end(self) -> datetime:
        """The end, in UTC."""
        return self.start + timedelta(days=self.duration.days, seconds=self.duration.seconds)

    def wire(self) -> dict[str, Any]:
        """The fields of an event; `start` in the form `…Z`."""
        start, end = format_utc(self.start), format_utc(self.end)
        return {"start": start, "end": end, "duration": str(self.duration), "utcStart": start, "utcEnd": end}


@dataclass(frozen=True, slots=True)
class Zoned:
    """Wall time in a zone: `local` is naive (its `fold` chooses where the clock is set back), `zone` an IANA name."""

    local: datetime
    zone: str
    duration: Duration

    def __eq__(self, other: object) -> bool:
        # datetime's own comparison ignores fold, and here it tells two instants apart
        return isinstance(other, Zoned) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple[datetime, int, str, Duration]:
        return self.local, self.local.fold, self.zone, self.duration

    @property
    def start(self) -> datetime:
        """The start, in UTC."""
        return resolve(self.local, ZoneInfo(self.zone))

    @property
    def end(self) -> datetime:
        """The end, in UTC: days added to the wall time, then seconds to the instant."""
        zone = ZoneInfo(self.zone)
        if not self.duration.days:
            return self.start + timedelta(seconds=self.duration.seconds)
        return resolve(self.local + timedelta(days=self.duration.days), zone) + timedelta(seconds=self.duration.seconds)

    def wire(self) -> dict[str, Any]:
        """The fields of an event; a start or end that the zone has twice carries its offset."""
        zone = ZoneInfo(self.zone)
        start, end = self.start, self.end
        return {
            "start": format_zoned(place(start, zone), zone),
            "end": format_zoned(place(end, zone), zone),
            "duration": str(self.duration),
            "timeZone": self.zone,
            "utcStart": format_utc(start),
            "utcEnd": format_utc(end),
        }


@dataclass(frozen=True, slots=True)
class Floating:
    """The same wall time wherever one is: no zone, no instant."""

    local: datetime
    duration: Duration

    @property
    def local_end(self) -> datetime:
        """The end, naive."""
        return self.local + timedelta(days=self.duration.days, seconds=self.duration.seconds)

    def wire(self) -> dict[str, Any]:
        """The fields of an event."""
        return {
            "start": format_local(self.local),
            "end": format_local(self.local_end),
            "duration": str(self.duration),
            "timeZone": FLOATING,
        }


@dataclass(frozen=True, slots=True)
class AllDay:
    """Whole days by their dates, at least one."""

    first: date
    days: int

    @property
    def after(self) -> date:
        """The first day after it (the exclusive end)."""
        return self.first + timedelta(days=self.days)

    @property
    def duration(self) -> Duration:
        """As long as its days."""
        return Duration(self.days)

    def wire(self) -> dict[str, Any]:
        """The fields of an event."""
        return {
            "start": self.first.isoformat(),
            "end": self.after.isoformat(),
            "duration": str(self.duration),
            "showWithoutTime": True,
        }


When: TypeAlias = Instant | Zoned | Floating | AllDay
"""The time of an event."""


def read_when(
    start: str,
    end: str | None = None,
    duration: str | None = None,
    time_zone: str | None = None,
    show_without_time: bool | None = None,
) -> When:
    """The time that an event's fields say, or a refusal that names the field, the value and the way out.

    Args:
        start: A date-time with an offset (an instant), a local one (with `time_zone`), or a date (all-day).
        end: The exclusive end, in the form of the start. Exactly one of `end` and `duration`.
        duration: ISO 8601; `PT0S` is allowed, except for all-day events, which have at least a day.
        time_zone: An IANA name, or `floating`.
        show_without_time: True for all-day.

    Raises:
        InvalidArgument: See the module; `details` carry `near`, `nearest` or `choices` where there are some.
    """
    if (end is None) == (duration is None):
        seen = "both are given" if end is not None else "neither is given"
        raise InvalidArgument(f"an event takes end or duration, exactly one; {seen}")
    if show_without_time:
        return _read_all_day(start, end, duration, time_zone)
    if _DATE.fullmatch(start):
        raise InvalidArgument(
            f"start {start!r} is a date without a time",
            hint="set showWithoutTime for an all-day event, or add the time",
        )
    local, offset = read_date_time(start, "start")
    if time_zone == FLOATING:
        return bounded(_read_floating(start, local, offset, end, duration), start)
    if time_zone is not None:
        zone = read_zone(time_zone)
        local = read_wall(local, offset, zone, "start", start)
        return bounded(_read_zoned(local, zone, end, duration), start)
    if offset is None:
        raise InvalidArgument(
            f"start {start!r} says neither zone nor offset",
            hint='add timeZone (an IANA name), an offset, or timeZone: "floating" to mean any place\'s wall clock',
        )
    return bounded(_read_instant(_instant(local, offset, "start", start), end, duration), start)


def bounded(when: When, start: str) -> When:
    """The event, if all of it lies in the years 1 to 9999.

    Raises:
        InvalidArgument: It doesn't; the message names it by `start`.
    """
    try:
        if isinstance(when, Zoned):
            zone = ZoneInfo(when.zone)
            _ = place(when.start, zone), place(when.end, zone)
        else:
            _ = when.local_end if isinstance(when, Floating) else when.after if isinstance(when, AllDay) else when.end
    except OverflowError:
        raise InvalidArgument(f"the event that starts {start!r} ends after the year 9999") from None
    return when


def _read_all_day(start: str, end: str | None, duration: str | None, time_zone: str | None) -> When:
    if time_zone is not None:
        raise InvalidArgument(
            f"an all-day event has no timeZone, and {time_zone!r} is given",
            hint="leave timeZone out; for a day in one zone only, give start and end with times",
        )
    if _DATE_TIME.fullmatch(start):
        raise InvalidArgument(
            f"start {start!r} has a time, and showWithoutTime is set",
            hint=f"write {start[:10]}, or leave showWithoutTime out",
        )
    first = read_date(start, "start")
    if end is not None:
        after = read_date(end, "end")
        if after <= first:
            raise InvalidArgument(
                f"end {end!r} is not after start {start!r}",
                hint="the end of an all-day event is exclusive: one day ends on the next",
            )
        return AllDay(first, (after - first).days)
    assert duration is not None
    length = read_duration(duration)
    if length.seconds or not length.days:
        raise InvalidArgument(
            f"duration {duration!r} is not whole days", hint="an all-day event lasts P1D or more, in days or weeks"
        )
    return bounded(AllDay(first, length.days), start)


def _read_floating(
    start: str, local: datetime, offset: timedelta | None, end: str | None, duration: str | None
) -> Floating:
    if offset is not None:
        raise InvalidArgument(
            f'start {start!r} has an offset, and timeZone is "floating"',
            hint="leave the offset out, or leave timeZone out to mean the instant",
        )
    if end is None:
        assert duration is not None
        return Floating(local, read_duration(duration))
    local_end, end_offset = read_date_time(end, "end")
    if end_offset is not None:
        raise InvalidArgument(f"end {end!r} has an offset, and the start floats", hint="leave the offset out")
    _check_order(local, local_end, end)
    return Floating(local, _whole(local_end - local))


def _read_zoned(local: datetime, zone: ZoneInfo, end: str | None, duration: str | None) -> Zoned:
    if end is None:
        assert duration is not None
        return Zoned(local, zone.key, read_duration(duration))
    local_end, end_offset = read_date_time(end, "end")
    local_end = read_wall(local_end, end_offset, zone, "end", end)
    _check_order(resolve(local, zone), resolve(local_end, zone), end)
    return Zoned(local, zone.key, length_in_zone(local, resolve(local_end, zone), zone))


def length_in_zone(local: datetime, end: datetime, zone: ZoneInfo) -> Duration:
    """The length from a wall time to an instant: as many days as fit on the wall clock, then exact seconds.

    So noon to noon is `P1D` also over a change of clocks, and what is shorter than a day is exact.
    """
    start = resolve(local, zone)
    days = max((end - start).days + 1, 0)
    while days and (moved := _later(local, days, zone)) is not None and moved > end:
        days -= 1
    if days == 0:
        return _whole(end - start, days=False)
    moved = _later(local, days, zone)
    assert moved is not None
    return Duration(days, int((end - moved).total_seconds()))


def _later(local: datetime, days: int, zone: ZoneInfo) -> datetime | None:
    try:
        return resolve(local + timedelta(days=days), zone)
    except (OverflowError, InvalidArgument):
        return _LAST


def _read_instant(start: datetime, end: str | None, duration: str | None) -> Instant:
    if end is None:
        assert duration is not None
        return Instant(start, read_duration(duration))
    local, offset = read_date_time(end, "end")
    if offset is None:
        raise InvalidArgument(
            f"end {end!r} has no offset, and the start is an instant", hint="give the end an offset too, or a timeZone"
        )
    finish = _instant(local, offset, "end", end)
    _check_order(start, finish, end)
    return Instant(start, _whole(finish - start, days=False))


def _whole(length: timedelta, *, days: bool = True) -> Duration:
    if days:
        return Duration(length.days, length.seconds)
    return Duration(0, int(length.total_seconds()))


def _check_order(start: datetime, end: datetime, text: str) -> None:
    if end < start:
        raise InvalidArgument(f"end {text!r} is before the start", hint="swap them, or correct the day")


def shift(when: When, by: timedelta) -> When:
    """The same event, its start moved on its own clock: wall time for zoned and floating, whole days for all-day.

    In a gap the offset before it holds (RFC 8984); of a wall time that comes twice, the first is taken.

    Raises:
        InvalidArgument: It would leave the years 1 to 9999.
    """
    try:
        if isinstance(when, Instant):
            moved: When = Instant(when.start + by, when.duration)
        elif isinstance(when, Zoned):
            moved = Zoned((when.local + by).replace(fold=0), when.zone, when.duration)
        elif isinstance(when, Floating):
            moved = Floating(when.local + by, when.duration)
        else:
            moved = AllDay(when.first + by, when.days)
    except OverflowError:
        raise InvalidArgument("the time would leave the years 1 to 9999") from None
    return bounded(moved, "then")


@dataclass(frozen=True, slots=True)
class Range:
    """A stretch of the time line, `[start, end)` in UTC, and the zone in which floating and all-day events are placed.

    Without a zone, an event whose place on the time line nobody can know counts as inside if it is so in any zone
    (UTC-12 to UTC+14): it is shown rather than missed.
    """

    start: datetime
    end: datetime
    zone: str | None = None


def read_range(from_: str, to: str, time_zone: str | None = None) -> Range:
    """The range of a search: instants with offsets, or, with a zone, dates (from midnight there) or local times.

    Raises:
        InvalidArgument: A date or a local time without a zone, an unknown zone, `from` not before `to`.
    """
    if time_zone == FLOATING:
        raise InvalidArgument(
            'timeZone "floating" places nothing on the time line', hint="name a zone, or leave it out"
        )
    zone = None if time_zone is None else read_zone(time_zone)
    start, end = _read_bound(from_, "from", zone), _read_bound(to, "to", zone)
    if start >= end:
        raise InvalidArgument(f"from {from_!r} is not before to {to!r}", hint="the range includes from and excludes to")
    return Range(start, end, time_zone)


def _read_bound(text: str, field: str, zone: ZoneInfo | None) -> datetime:
    if _DATE.fullmatch(text):
        day = read_date(text, field)
        if zone is None:
            raise InvalidArgument(f"{field} {text!r} is a date, and no timeZone says whose", hint="add timeZone")
        # Where midnight is skipped the day starts when the gap ends, which is what resolve gives.
        return resolve(datetime(day.year, day.month, day.day), zone)  # noqa: DTZ001 - wall time
    local, offset = read_date_time(text, field)
    if offset is not None:
        return _instant(local, offset, field, text)
    if zone is None:
        raise InvalidArgument(f"{field} {text!r} says neither zone nor offset", hint="add an offset or timeZone")
    return resolve(read_wall(local, None, zone, field, text), zone)


def span(when: When, zone: str | None) -> tuple[datetime, datetime]:
    """The stretch of the time line that it may take, in UTC; floating and all-day placed in `zone`, or in any zone."""
    if isinstance(when, Instant | Zoned):
        return when.start, when.end
    if isinstance(when, Floating):
        first, last = when.local, when.local_end
    else:
        first, last = _midnight(when.first), _midnight(when.after)
    if zone is None:
        return _clamped(first, -_EARLIEST), _clamped(last, _LATEST)
    place_ = ZoneInfo(zone)
    return _settled(first, place_), _settled(last, place_)


def _settled(local: datetime, zone: ZoneInfo) -> datetime:
    try:
        return resolve(local, zone)
    except InvalidArgument:
        return local.replace(tzinfo=UTC)


def _midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day)  # noqa: DTZ001 - wall time


def _clamped(local: datetime, by: timedelta) -> datetime:
    try:
        return (local + by).replace(tzinfo=UTC)
    except OverflowError:
        return _FIRST if by < timedelta(0) else _LAST


def overlaps(when: When, within: Range) -> bool:
    """Whether some of it lies in the range; what has no length counts at its start."""
    start, end = span(when, within.zone)
    if start == end:
        return within.start <= start < within.end
    return start < within.end and end > within.start


def start_instant(when: When, zone: str | None = None) -> datetime:
    """The start as an instant, for ordering: floating and all-day in `zone`, or as if in UTC."""
    if isinstance(when, Instant | Zoned):
        return when.start
    return span(when, zone or "Etc/UTC")[0]


def time_fields(when: When) -> Mapping[str, Any]:
    """What `read_when` needs to give the same value again: start, duration, timeZone, showWithoutTime."""
    wire = when.wire()
    return {name: wire[name] for name in ("start", "duration", "timeZone", "showWithoutTime") if name in wire}
