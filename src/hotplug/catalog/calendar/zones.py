"""Zones by their IANA names, and wall time in them: which instant it is, whether it exists, whether it comes twice.

Sources: RFC 8984, section 4.7.1 (gaps and repeated times); the IANA database of this machine or of `tzdata`.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from difflib import get_close_matches
from functools import lru_cache
from importlib import resources
from typing import Final
from zoneinfo import ZoneInfo, available_timezones

from hotplug.errors import InvalidArgument

__all__ = ["format_local", "format_utc", "format_zoned", "gap", "is_zone", "place", "read_wall", "read_zone", "resolve"]

_ZONE: Final = re.compile(r"[A-Za-z0-9_+-]+(?:/[A-Za-z0-9_+-]+)*", re.ASCII)


@lru_cache(maxsize=1)
def _zone_names() -> frozenset[str]:
    listed = resources.files("tzdata").joinpath("zones").read_text(encoding="utf-8").split()
    return frozenset(listed)


@lru_cache(maxsize=1)
def _machine_zone_names() -> frozenset[str]:
    return frozenset(name for name in available_timezones() if "/" in name)


@lru_cache(maxsize=512)
def is_zone(name: str) -> bool:
    """Whether the IANA database has a zone of this name."""
    # `localtime`, `posix/…` and `right/…` open as files but name no zone that another machine has.
    return name in _zone_names() or (_ZONE.fullmatch(name) is not None and name in _machine_zone_names())


def read_zone(name: str, field: str = "timeZone") -> ZoneInfo:
    """The zone of an IANA name; names are case-sensitive, as the database has them.

    Raises:
        InvalidArgument: No such zone; the message and `details["near"]` name up to three that are like it.
    """
    if is_zone(name):
        return ZoneInfo(name)
    near = _near(name)
    hint = f"did you mean {' or '.join(near)}?" if near else "use an IANA name such as Europe/Berlin"
    raise InvalidArgument(f"{field} {name!r} is not a zone of the IANA database", details={"near": near}, hint=hint)


def _near(name: str) -> list[str]:
    names = sorted(_zone_names())
    wanted = name.strip().replace(" ", "_").casefold()
    if not wanted:
        return []
    folded = {each.casefold(): each for each in names}
    found = [folded[wanted]] if wanted in folded else []
    city = wanted.rpartition("/")[2]
    found += [each for each in names if each.casefold().rpartition("/")[2] == city]
    found += [folded[each] for each in get_close_matches(wanted, folded, n=3, cutoff=0.7)]
    cities = {each.rpartition("/")[2]: whole for each, whole in folded.items()}
    found += [cities[each] for each in get_close_matches(city, cities, n=2, cutoff=0.75)]
    return list(dict.fromkeys(found))[:3]


def resolve(local: datetime, zone: ZoneInfo) -> datetime:
    """The instant, in UTC, of a naive wall time in a zone, by the rule of RFC 8984 where it isn't one.

    In a gap the offset before it holds; of two, `fold` chooses (0: the first).

    Raises:
        InvalidArgument: The instant is outside the years 1 to 9999.
    """
    try:
        return local.replace(tzinfo=zone).astimezone(UTC)
    except OverflowError:
        raise InvalidArgument(
            f"{format_local(local)} in {zone.key} is outside the years 1 to 9999 in UTC",
            hint="use a later or earlier day",
        ) from None


def place(instant: datetime, zone: ZoneInfo) -> datetime:
    """The naive wall time (with `fold`) of an instant in a zone.

    Raises:
        InvalidArgument: It is outside the years 1 to 9999.
    """
    try:
        return instant.astimezone(zone).replace(tzinfo=None)
    except OverflowError:
        raise InvalidArgument(f"{format_utc(instant)} in {zone.key} is outside the years 1 to 9999") from None


def _offsets(local: datetime, zone: ZoneInfo) -> tuple[timedelta, timedelta]:
    first = local.replace(tzinfo=zone, fold=0).utcoffset()
    second = local.replace(tzinfo=zone, fold=1).utcoffset()
    assert first is not None
    assert second is not None
    return first, second


def _is_ambiguous(local: datetime, zone: ZoneInfo) -> bool:
    first, second = _offsets(local, zone)
    return first > second


def gap(local: datetime, zone: ZoneInfo) -> tuple[datetime, datetime] | None:
    """The last wall time before the gap that `local` falls into and the first after it; none if it falls into none."""
    before, after = _offsets(local, zone)
    if before >= after:
        return None
    low, high = local - after, local - before
    while high - low > timedelta(seconds=1):
        middle = low + timedelta(seconds=(high - low) // timedelta(seconds=2))
        if middle.replace(tzinfo=UTC).astimezone(zone).utcoffset() == before:
            low = middle
        else:
            high = middle
    return high + before - timedelta(seconds=1), high + after


def read_wall(local: datetime, offset: timedelta | None, zone: ZoneInfo, field: str, text: str) -> datetime:
    """A wall time that exists exactly once in the zone: naive, `fold` set."""
    skipped = gap(local, zone)
    if skipped is not None:
        before, after = format_local(skipped[0]), format_local(skipped[1])
        raise InvalidArgument(
            f"{field} {text!r} does not exist in {zone.key}: the clock jumps over it",
            details={"nearest": [before, after]},
            hint=f"the nearest times are {before} and {after}",
        )
    first, second = _offsets(local, zone)
    if offset is None:
        if first == second:
            return local.replace(fold=0)
        choices = [format_local(local) + _offset_text(each) for each in (first, second)]
        raise InvalidArgument(
            f"{field} {text!r} happens twice in {zone.key}: the clock is set back",
            details={"choices": choices},
            hint=f"choose one: {choices[0]} or {choices[1]}",
        )
    if offset not in (first, second):
        valid = " or ".join(dict.fromkeys(_offset_text(each) for each in (first, second)))
        raise InvalidArgument(
            f"{field} {text!r} has an offset that {zone.key} hasn't at that time",
            hint=f"it is {valid} there; leave the offset out, or leave timeZone out to mean the instant",
        )
    return local.replace(fold=int(offset != first))


def format_local(local: datetime) -> str:
    """`YYYY-MM-DDTHH:MM:SS` of a naive time."""
    return local.replace(tzinfo=None).isoformat(timespec="seconds")


def format_utc(instant: datetime) -> str:
    """`YYYY-MM-DDTHH:MM:SSZ` of an instant."""
    return format_local(instant.astimezone(UTC)) + "Z"


def _offset_text(offset: timedelta) -> str:
    return datetime(2000, 1, 1, tzinfo=timezone(offset)).isoformat()[19:]


def format_zoned(local: datetime, zone: ZoneInfo) -> str:
    text = format_local(local)
    if not _is_ambiguous(local, zone):
        return text
    offset = local.replace(tzinfo=zone).utcoffset()
    assert offset is not None
    return text + _offset_text(offset)
