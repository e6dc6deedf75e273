"""Times in iCalendar properties: dates, UTC, floating, local with a TZID. Source: RFC 5545 sections 3.3 and 3.8.2."""

from __future__ import annotations

from datetime import UTC, date, datetime, tzinfo
from functools import lru_cache
from typing import Final, TypeAlias, cast
from zoneinfo import ZoneInfo

from hotplug.catalog.calendar.rules import wall_clock
from hotplug.catalog.calendar.times import (
    AllDay,
    Duration,
    Floating,
    Instant,
    When,
    Zoned,
    length_in_zone,
    read_duration,
)
from hotplug.catalog.calendar.zones import is_zone, place, resolve
from hotplug.servers.calendar.lines import Component, FileError, Line, line, parse, unescape

__all__ = [
    "Zones",
    "read_recurrence_ids",
    "read_recurring_time",
    "read_stamp",
    "read_when_of",
    "recurrence_line",
    "time_lines",
    "utc_line",
    "zone_component",
]

_FIRST_YEAR: Final = 1970
_LAST_YEAR: Final = 2038

_Moment: TypeAlias = tuple[datetime, "str | tzinfo | None"]
"""A naive time and where it is: an IANA name, a zone that only the file knows, nothing (floating)."""


class Zones:
    """What the TZIDs of a file mean: an IANA zone by its name, or by the name that Windows or a path gives it."""

    def __init__(self, root: Component) -> None:
        self._root = root
        self._found: dict[str, str | tzinfo | None] = {}

    def find(self, tzid: str) -> str | tzinfo | None:
        """The IANA name, or else the zone that the file describes, or else None."""
        if tzid not in self._found:
            self._found[tzid] = _iana(tzid) or self._described(tzid)
        return self._found[tzid]

    def _described(self, tzid: str) -> tzinfo | None:
        for component in self._root.components("VTIMEZONE"):
            name = component.first("TZID")
            if name is not None and unescape(name.value) == tzid:
                return _zone_of(component.to_bytes())
        return None


def _iana(tzid: str) -> str | None:
    parts = tzid.strip("/").split("/")
    for start in range(len(parts)):
        name = "/".join(parts[start:])
        if is_zone(name):
            return name
    from icalendar.timezone.windows_to_olson import WINDOWS_TO_OLSON

    return WINDOWS_TO_OLSON.get(tzid)


@lru_cache(maxsize=64)
def _zone_of(source: bytes) -> tzinfo | None:
    from icalendar import Timezone

    try:
        component = Timezone.from_ical(source.decode())
        assert isinstance(component, Timezone)
        return cast("tzinfo", component.to_tz(lookup_tzid=False))
    except (ValueError, KeyError, AttributeError, IndexError):
        return None


def _digits(text: str, name: str) -> tuple[datetime, bool, bool]:
    """The naive time of a value, whether it is a date, whether it is in UTC."""
    value = text.strip()
    try:
        if len(value) == 8:
            return datetime.strptime(value, "%Y%m%d"), True, False  # noqa: DTZ007 - wall time
        zulu = value.endswith(("Z", "z"))
        second60 = value[13:15] == "60"
        local = datetime.strptime(value[:13] + "59" if second60 else value.rstrip("Zz"), "%Y%m%dT%H%M%S")  # noqa: DTZ007
        return local, False, zulu
    except ValueError:
        raise FileError(f"{name} {text!r} is neither a date nor a date-time") from None


def _moment(item: Line, zones: Zones) -> tuple[_Moment | date, bool]:
    """The time of a property, and whether its zone is told but unknown."""
    local, is_date, zulu = _digits(item.value, item.name)
    if is_date:
        return local.date(), False
    if zulu:
        return (local, UTC), False
    tzid = item.param("TZID")
    if tzid is None:
        return (local, None), False
    zone = zones.find(tzid)
    return (local, zone), not isinstance(zone, str)


def _instant(moment: _Moment) -> datetime:
    local, zone = moment
    if isinstance(zone, str):
        return resolve(local, ZoneInfo(zone))
    return local.replace(tzinfo=zone or UTC).astimezone(UTC)


def read_when_of(event: Component, zones: Zones) -> tuple[When, set[str]]:
    """The time of a VEVENT, and the wire names of what can't be told of it.

    Raises:
        FileError: It has no start, or an end that doesn't go with it.
    """
    start = event.first("DTSTART")
    if start is None:
        raise FileError("its event has no DTSTART")
    moment, untold = _moment(start, zones)
    unknown = {"timeZone"} if untold else set[str]()
    end, duration = event.first("DTEND"), event.first("DURATION")
    length = None if duration is None else read_duration(duration.value.strip().lstrip("+"), "DURATION")
    finish = None if end is None else _moment(end, zones)[0]
    if isinstance(moment, date):
        return _all_day(moment, finish, length), unknown
    if isinstance(finish, date):
        raise FileError("DTEND is a date, and DTSTART a date-time")
    local, zone = moment
    if zone is None:
        if finish is None:
            return Floating(local, length or Duration()), unknown
        last = finish[0] if finish[1] is None else _instant(finish).replace(tzinfo=None)
        _check_order(local, last)
        return Floating(local, Duration((last - local).days, (last - local).seconds)), unknown
    if isinstance(zone, str):
        if finish is None:
            return Zoned(local, zone, length or Duration()), unknown
        last = _instant(finish)
        _check_order(resolve(local, ZoneInfo(zone)), last)
        return Zoned(local, zone, length_in_zone(local, last, ZoneInfo(zone))), unknown
    first = _instant(moment)
    if finish is None:
        return Instant(first, length or Duration()), unknown
    _check_order(first, _instant(finish))
    return Instant(first, Duration(0, int((_instant(finish) - first).total_seconds()))), unknown


def _all_day(first: date, finish: _Moment | date | None, length: Duration | None) -> AllDay:
    if finish is not None and not isinstance(finish, date):
        raise FileError("DTEND is a date-time, and DTSTART a date")
    if finish is not None:
        if finish < first:
            raise FileError("DTEND is before DTSTART")
        # an end on the first day, which isn't allowed, is what several programs write for one day
        return AllDay(first, max((finish - first).days, 1))
    if length is not None and length.seconds:
        raise FileError("DURATION is not whole days, and DTSTART is a date")
    return AllDay(first, max(length.days, 1) if length else 1)


def _check_order(first: datetime, last: datetime) -> None:
    if last < first:
        raise FileError("DTEND is before DTSTART")


def read_recurrence_ids(item: Line, when: When, zones: Zones) -> list[datetime]:
    """The names of the occurrences in RECURRENCE-ID or EXDATE, on the clock of the series."""
    return [at for at, _ in read_recurring_time(item, when, zones)]


def read_recurring_time(item: Line, when: When, zones: Zones) -> list[tuple[datetime, When | None]]:
    """The names of the occurrences in RDATE, and the time of each that has its own (a period)."""
    found: list[tuple[datetime, When | None]] = []
    for value in item.value.split(","):
        start, _, end = value.partition("/")
        moment, _ = _moment(Line(b"", item.name, item.params, start), zones)
        at = _name(moment, when)
        own: When | None = None
        if end:
            own = _period(at, end, when, item, zones)
        found.append((at, own))
    return found


def _name(moment: _Moment | date, when: When) -> datetime:
    if isinstance(moment, date):
        # a bare date in a timed series means the occurrence of that day
        return datetime.combine(moment, wall_clock(when).time())
    local, zone = moment
    if isinstance(when, AllDay):
        return local.replace(hour=0, minute=0, second=0)
    if isinstance(when, Floating) or zone is None:
        return local
    if isinstance(when, Zoned):
        return local if zone == when.zone else place(_instant(moment), ZoneInfo(when.zone)).replace(fold=0)
    return _instant(moment).replace(tzinfo=None)


def _period(at: datetime, end: str, when: When, item: Line, zones: Zones) -> When | None:
    if isinstance(when, AllDay):
        return None
    if end.lstrip("+").startswith("P"):
        length = read_duration(end.lstrip("+"), item.name)
    else:
        moment, _ = _moment(Line(b"", item.name, item.params, end), zones)
        length = Duration(0, int((_name(moment, when) - at).total_seconds()))
    if isinstance(when, Zoned):
        return Zoned(at, when.zone, length)
    return Floating(at, length) if isinstance(when, Floating) else Instant(at.replace(tzinfo=UTC), length)


def read_stamp(item: Line | None) -> datetime | None:
    """A time in UTC that a property tells, if it does."""
    if item is None:
        return None
    try:
        return _digits(item.value, item.name)[0].replace(tzinfo=UTC)
    except FileError:
        return None


def _compact(local: datetime) -> str:
    return local.replace(tzinfo=None).isoformat(timespec="seconds").replace("-", "").replace(":", "")


def utc_line(name: str, moment: datetime) -> Line:
    """A property in UTC."""
    return line(name, _compact(moment.astimezone(UTC)) + "Z")


def _local_line(name: str, local: datetime, when: When) -> Line:
    if isinstance(when, AllDay):
        return line(name, local.date().isoformat().replace("-", ""), VALUE="DATE")
    if isinstance(when, Zoned):
        return line(name, _compact(local), TZID=when.zone)
    return line(name, _compact(local) + ("Z" if isinstance(when, Instant) else ""))


def recurrence_line(name: str, at: datetime, when: When) -> Line:
    """RECURRENCE-ID, EXDATE or RDATE of the occurrence, in the form of the start of its series."""
    return _local_line(name, at, when)


def time_lines(when: When, *, recurring: bool) -> list[Line]:
    """DTSTART, and DTEND where it says the length exactly, else DURATION.

    DTEND is an exact length for each occurrence of a series, DURATION has days that are as long as the zone makes them.
    """
    start = _local_line("DTSTART", wall_clock(when), when)
    end = _end_line(when, recurring=recurring)
    return [start, end or line("DURATION", str(when.duration))]


def _end_line(when: When, *, recurring: bool) -> Line | None:
    length = when.duration
    if isinstance(when, AllDay):
        return _local_line("DTEND", datetime.combine(when.after, datetime.min.time()), when)
    if length == Duration() or (recurring and length.days):
        return None
    if isinstance(when, Floating):
        span = when.local_end - when.local
        exact = Duration(span.days, span.seconds) == length
        return _local_line("DTEND", when.local_end, when) if exact else None
    if isinstance(when, Instant):
        return None if length.days else _local_line("DTEND", when.end.replace(tzinfo=None), when)
    zone = ZoneInfo(when.zone)
    end = place(when.end, zone)
    if resolve(end.replace(fold=0), zone) != when.end or length_in_zone(when.local, when.end, zone) != length:
        return None
    return _local_line("DTEND", end, when)


def zone_component(name: str, first_year: int, last_year: int) -> Component:
    """The VTIMEZONE of an IANA zone, for the years from the first to the last, and 1970 to 2037 at least."""
    source = _zone_source(name, min(first_year - 1, _FIRST_YEAR), max(last_year + 2, _LAST_YEAR))
    return next(parse(source).components("VTIMEZONE"))


@lru_cache(maxsize=64)
def _zone_source(name: str, first_year: int, last_year: int) -> bytes:
    from icalendar import Timezone

    first, last = date(max(first_year, 1), 1, 2), date(min(last_year, 9999), 1, 1)
    body = Timezone.from_tzinfo(ZoneInfo(name), name, first, last).to_ical()
    return b"BEGIN:VCALENDAR\r\n" + body + b"END:VCALENDAR\r\n"
