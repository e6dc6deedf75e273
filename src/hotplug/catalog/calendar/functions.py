"""What expressions of projections can ask about calendar times: pure functions, by name without `$`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final, cast
from zoneinfo import ZoneInfo

from hotplug.catalog.calendar import times
from hotplug.catalog.calendar.records import changed_time
from hotplug.catalog.calendar.times import (
    AllDay,
    Floating,
    Instant,
    When,
    Zoned,
    format_utc,
    read_date,
    read_date_time,
    read_range,
    read_when,
)
from hotplug.errors import InvalidArgument

__all__ = ["FUNCTIONS"]

_KINDS: Final[Mapping[type[Any], str]] = {
    Instant: "instant",
    Zoned: "zoned",
    Floating: "floating",
    AllDay: "allDay",
}


_FIRST: Final = datetime(1, 1, 1, tzinfo=UTC)
_LAST: Final = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)


def when(fields: Any) -> dict[str, Any]:
    """`$when($)`: the time in an input: `{kind, start, end, duration, timeZone?, utcStart?, utcEnd?}`.

    Raises:
        InvalidArgument: The fields say no time; the message names the one that is wrong.
    """
    if not isinstance(fields, dict):
        raise InvalidArgument("the times are no object")
    given = _object(fields)
    found = read_when(
        given.get("start", ""),
        given.get("end"),
        given.get("duration"),
        given.get("timeZone"),
        given.get("showWithoutTime"),
    )
    return _told(found)


def changed(fields: Any, event: Any) -> dict[str, Any]:
    """`$changed($.changes, $event)`: the time that an event has after a change of some of it, as `$when` tells it.

    What isn't named stays, by the rule of the native engines: the length when the start moves, the zone, the kind.

    Raises:
        InvalidArgument: The result is no time, or the event shows no length that could stay.
    """
    new = _object(fields)
    old = _object(event)
    days = old.get("showWithoutTime")
    length = old.get("duration")
    if length is None:
        if "end" not in new and "duration" not in new:
            raise InvalidArgument("the event shows no length that could stay", hint="give end or duration too")
        length = "P1D" if days else "PT0S"
    return _told(changed_time(read_when(old.get("start", ""), None, length, old.get("timeZone"), days), new))


def utc(text: Any) -> str:
    """`$utc("2026-10-26T09:00:00+01:00")`: the instant as `…Z`."""
    moment, offset = read_date_time(_text(text, "utc"), "time")
    if offset is None:
        raise InvalidArgument(f"{text!r} has no offset, so it is no instant")
    return format_utc((moment - offset).replace(tzinfo=UTC))


def plus_seconds(text: Any, seconds: Any) -> str:
    """`$plusSeconds("2026-10-26T09:00:00Z", 60)`: a later or an earlier instant, within the years 1 to 9999."""
    moment = datetime.fromisoformat(utc(text)).astimezone(UTC)
    try:
        return format_utc(moment + timedelta(seconds=int(seconds)))
    except OverflowError:
        return format_utc(_FIRST if seconds < 0 else _LAST)


def local(text: Any, zone: Any) -> str:
    """`$local("2026-10-26T08:00:00Z", "Europe/Berlin")`: the wall time there, `2026-10-26T09:00:00`."""
    moment = datetime.fromisoformat(utc(text)).astimezone(ZoneInfo(_text(zone, "local")))
    return moment.replace(tzinfo=None).isoformat(timespec="seconds")


def bounds(fields: Any) -> dict[str, Any]:
    """`$bounds($)`: a search's range as instants, `{from, to}`, the widest reading where only a zone would decide."""
    given = _object(fields)
    found = read_range(given.get("from", ""), given.get("to", ""), given.get("timeZone"))
    return {"from": format_utc(found.start), "to": format_utc(found.end)}


def in_range(event: Any, fields: Any) -> bool:
    """`$inRange($event, $input)`: whether an event lies in a search's [from, to)."""
    given = _object(fields)
    found = read_range(given.get("from", ""), given.get("to", ""), given.get("timeZone"))
    at = _object(event)
    end = at.get("end") if "duration" not in at else None
    placed = read_when(at.get("start", ""), end, at.get("duration"), at.get("timeZone"), at.get("showWithoutTime"))
    return times.overlaps(placed, found)


def mentions(event: Any, query: Any) -> bool:
    """`$mentions($event, $input.query)`: whether title, description or location has the text, whatever its case."""
    if query is None:
        return True
    wanted = str(query).casefold()
    texts = _object(event)
    return any(wanted in str(texts.get(name) or "").casefold() for name in ("title", "description", "location"))


def days_after(text: Any, days: Any) -> str:
    """`$daysAfter("2026-10-26", 1)`: a later (or, negative, an earlier) date."""
    found = read_date(_text(text, "daysAfter"), "date")
    return found.fromordinal(found.toordinal() + int(days)).isoformat()


def _object(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _told(found: When) -> dict[str, Any]:
    return {"kind": _KINDS[type(found)], **found.wire()}


def _text(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise InvalidArgument(f"${name} takes a text, not {value!r}")
    return value


FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "when": when,
    "changed": changed,
    "utc": utc,
    "plusSeconds": plus_seconds,
    "local": local,
    "bounds": bounds,
    "inRange": in_range,
    "mentions": mentions,
    "daysAfter": days_after,
}
"""Bound in every projection of the calendar."""
