"""Recurrence rules: JSCalendar's and RFC 5545's form of them, the times they give, how they are ended and moved.

A rule runs on the clock of its series: wall time in the zone, UTC for an instant, days for all-day. Sources: RFC 8984
section 4.3.3, RFC 5545 section 3.3.10.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import islice, takewhile
from typing import TYPE_CHECKING, Any, Final
from zoneinfo import ZoneInfo

from hotplug.catalog.calendar.feasible import HORIZON, is_feasible
from hotplug.catalog.calendar.times import AllDay, Floating, Instant, When, Zoned, read_date, read_date_time
from hotplug.catalog.calendar.zones import format_local, gap, place, resolve
from hotplug.errors import InvalidArgument, Unsupported

if TYPE_CHECKING:
    from dateutil.rrule import rrule

__all__ = [
    "Rule",
    "first_given",
    "given_by",
    "moved_rules",
    "occurrence_id",
    "read_occurrence_id",
    "read_rule",
    "rule_from_text",
    "rule_text",
    "rules_after",
    "rules_before",
    "wall_clock",
]

_END: Final = datetime(9999, 12, 31)  # noqa: DTZ001 - wall time
_DAYS: Final = ("mo", "tu", "we", "th", "fr", "sa", "su")
_FREQUENCIES: Final = ("yearly", "monthly", "weekly", "daily", "hourly")

_LISTS: Final[Mapping[str, tuple[str, str, int, int]]] = {
    "byMonthDay": ("by_month_day", "BYMONTHDAY", -31, 31),
    "byYearDay": ("by_year_day", "BYYEARDAY", -366, 366),
    "byWeekNo": ("by_week_no", "BYWEEKNO", -53, 53),
    "byHour": ("by_hour", "BYHOUR", 0, 23),
    "byMinute": ("by_minute", "BYMINUTE", 0, 59),
    "bySecond": ("by_second", "BYSECOND", 0, 59),
    "bySetPosition": ("by_set_position", "BYSETPOS", -366, 366),
}
_KEYS: Final = frozenset(
    {
        "@type",
        "frequency",
        "interval",
        "rscale",
        "skip",
        "firstDayOfWeek",
        "byDay",
        "byMonth",
        "count",
        "until",
        *_LISTS,
    }
)


def wall_clock(when: When) -> datetime:
    """The start on the clock that a series recurs by, naive: UTC for an instant, midnight for all-day."""
    if isinstance(when, Instant):
        return when.start.replace(tzinfo=None)
    if isinstance(when, AllDay):
        return datetime(when.first.year, when.first.month, when.first.day)  # noqa: DTZ001 - wall time
    return when.local.replace(fold=0)


def occurrence_id(when: When, wall: datetime) -> str:
    """The name of an occurrence of the series that starts at `when`, in the form of that start."""
    if isinstance(when, Instant):
        return format_local(wall) + "Z"
    return wall.date().isoformat() if isinstance(when, AllDay) else format_local(wall)


def read_occurrence_id(text: str, when: When, field_name: str = "occurrence") -> datetime:
    """The wall time that names an occurrence of the series that starts at `when`.

    Takes the form of the start; of a zoned series, an instant too; of an all-day one, midnight too.

    Raises:
        InvalidArgument: It has another form.
    """
    if isinstance(when, AllDay):
        day = read_date(text.removesuffix("T00:00:00"), field_name)
        return datetime(day.year, day.month, day.day)  # noqa: DTZ001 - wall time
    local, offset = read_date_time(text, field_name)
    if isinstance(when, Instant):
        if offset is None:
            raise InvalidArgument(f"{field_name} {text!r} has no offset, and the series is of instants", hint="add Z")
        return local - offset
    if offset is None:
        return local
    if isinstance(when, Floating):
        raise InvalidArgument(f"{field_name} {text!r} has an offset, and the series floats", hint="leave it out")
    return place((local - offset).replace(tzinfo=UTC), ZoneInfo(when.zone)).replace(fold=0)


@dataclass(frozen=True, slots=True)
class Rule:
    """A recurrence rule of JSCalendar; `until` is naive, inclusive, on the clock of the series."""

    frequency: str
    interval: int = 1
    count: int | None = None
    until: datetime | None = None
    by_day: tuple[tuple[str, int], ...] = ()
    """Days of the week and which of the period (0: every one)."""
    by_month: tuple[int, ...] = ()
    by_month_day: tuple[int, ...] = ()
    by_year_day: tuple[int, ...] = ()
    by_week_no: tuple[int, ...] = ()
    by_hour: tuple[int, ...] = ()
    by_minute: tuple[int, ...] = ()
    by_second: tuple[int, ...] = ()
    by_set_position: tuple[int, ...] = ()
    first_day_of_week: str | None = None

    def wire(self, when: When) -> dict[str, Any]:
        """The rule as JSCalendar has it; what has its default is left out."""
        out: dict[str, Any] = {"frequency": self.frequency}
        if self.interval != 1:
            out["interval"] = self.interval
        if self.first_day_of_week:
            out["firstDayOfWeek"] = self.first_day_of_week
        if self.by_day:
            out["byDay"] = [{"day": day, **({"nthOfPeriod": nth} if nth else {})} for day, nth in self.by_day]
        if self.by_month:
            out["byMonth"] = [str(month) for month in self.by_month]
        for name, (attribute, _, _, _) in _LISTS.items():
            values: tuple[int, ...] = getattr(self, attribute)
            if values:
                out[name] = list(values)
        if self.count is not None:
            out["count"] = self.count
        if self.until is not None:
            out["until"] = self.until.date().isoformat() if isinstance(when, AllDay) else format_local(self.until)
        return out


def read_rule(wire: Mapping[str, Any], when: When) -> Rule:
    """Read a JSCalendar recurrence rule for a series that starts at `when`.

    `until` is local to the series, as RFC 8984 has it (a date for all-day); with an offset, it is that instant.

    Raises:
        InvalidArgument: A member is unknown, out of its range, or doesn't go with the frequency.
        Unsupported: Another calendar than the Gregorian, `skip`, or more often than hourly.
    """
    unknown = sorted(set(wire) - _KEYS)
    if unknown:
        raise InvalidArgument(f"a recurrence rule has no {', '.join(map(repr, unknown))}", hint=f"it has {_listed()}")
    frequency = str(wire.get("frequency", "")).lower()
    if frequency in ("minutely", "secondly"):
        raise Unsupported(f"a series that is {frequency} isn't offered", details={"lost": ["recurrenceRules"]})
    if frequency not in _FREQUENCIES:
        raise InvalidArgument(f"frequency {wire.get('frequency')!r} is none", hint=f"use {', '.join(_FREQUENCIES)}")
    if str(wire.get("rscale", "gregorian")).lower() != "gregorian" or str(wire.get("skip", "omit")).lower() != "omit":
        raise Unsupported(
            "only Gregorian rules that omit invalid days are offered", details={"lost": ["recurrenceRules"]}
        )
    lists = {
        attribute: _read_numbers(name, wire.get(name), low, high) for name, (attribute, _, low, high) in _LISTS.items()
    }
    first = wire.get("firstDayOfWeek")
    rule = Rule(
        frequency,
        interval=_read_count("interval", wire.get("interval", 1), 10_000),
        count=None if wire.get("count") is None else _read_count("count", wire["count"], 1_000_000),
        until=None if wire.get("until") is None else _read_until(str(wire["until"]), when),
        by_day=tuple(_read_day(each) for each in wire.get("byDay") or ()),
        by_month=_read_months(wire.get("byMonth")),
        first_day_of_week=None if first is None else _read_day_name("firstDayOfWeek", first),
        **lists,
    )
    _check_rule(rule, when)
    return rule


def _listed() -> str:
    return ", ".join(sorted(_KEYS - {"@type"}))


def _read_count(name: str, value: Any, most: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
        raise InvalidArgument(f"{name} {value!r} is not a number from 1 to {most}")
    return value


def _read_numbers(name: str, values: Any, low: int, high: int) -> tuple[int, ...]:
    for value in values or ():
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high or (low < 0 and not value):
            raise InvalidArgument(f"{name} {value!r} is not a number from {low} to {high}{' but 0' if low < 0 else ''}")
    return tuple(values or ())


def _read_months(values: Any) -> tuple[int, ...]:
    months: list[int] = []
    for value in values or ():
        if not str(value).isdecimal() or not 1 <= int(value) <= 12:
            raise InvalidArgument(f"byMonth {value!r} is not a month from 1 to 12")
        months.append(int(value))
    return tuple(months)


def _read_day_name(name: str, value: Any) -> str:
    day = str(value).lower()
    if day not in _DAYS:
        raise InvalidArgument(f"{name} {value!r} is not a day", hint=f"use {', '.join(_DAYS)}")
    return day


def _read_day(value: Mapping[str, Any]) -> tuple[str, int]:
    if set(value) - {"@type", "day", "nthOfPeriod"}:
        raise InvalidArgument(f"byDay {dict(value)!r} is none", hint='write {"day": "mo", "nthOfPeriod": 1}')
    nth = value.get("nthOfPeriod")
    return _read_day_name("day", value.get("day")), 0 if nth is None else _read_numbers("nthOfPeriod", [nth], -53, 53)[
        0
    ]


def _read_until(text: str, when: When) -> datetime:
    if isinstance(when, AllDay):
        return read_occurrence_id(text, when, "until")
    local, offset = read_date_time(text, "until")
    if isinstance(when, Instant):
        return local - (offset or timedelta(0))
    if isinstance(when, Floating) and offset is not None:
        raise InvalidArgument(f"until {text!r} has an offset, and the series floats", hint="leave the offset out")
    if isinstance(when, Zoned):
        zone = ZoneInfo(when.zone)
        if offset is not None:
            return place((local - offset).replace(tzinfo=UTC), zone).replace(fold=0)
        if gap(local, zone):
            raise InvalidArgument(f"until {text!r} does not exist in {when.zone}", hint="take the last start itself")
    return local


def _check_rule(rule: Rule, when: When) -> None:
    if rule.count is not None and rule.until is not None:
        raise InvalidArgument("a rule ends by count or by until, not by both")
    if rule.until is not None and rule.until < wall_clock(when):
        raise InvalidArgument(f"until {rule.wire(when)['until']!r} is before the start")
    wrong = {
        "byWeekNo": bool(rule.by_week_no) and rule.frequency != "yearly",
        "byYearDay": bool(rule.by_year_day) and rule.frequency not in ("yearly", "hourly"),
        "byMonthDay": bool(rule.by_month_day) and rule.frequency == "weekly",
        "nthOfPeriod": any(nth for _, nth in rule.by_day)
        and (rule.frequency not in ("monthly", "yearly") or bool(rule.by_week_no)),
    }
    for name, is_wrong in wrong.items():
        if is_wrong:
            raise InvalidArgument(f"{name} doesn't go with frequency {rule.frequency!r}")
    if (rule.frequency == "monthly" or rule.by_month) and any(abs(nth) > 5 for _, nth in rule.by_day):
        raise InvalidArgument("nthOfPeriod counts in a month here, and no month has more than five of a day")
    timed = rule.by_hour or rule.by_minute or rule.by_second or rule.frequency == "hourly"
    if isinstance(when, AllDay) and timed:
        raise InvalidArgument("an all-day event recurs by days: no hourly, byHour, byMinute, bySecond")
    others = (
        rule.by_day
        or rule.by_month
        or any(getattr(rule, attribute) for name, (attribute, _, _, _) in _LISTS.items() if name != "bySetPosition")
    )
    if rule.by_set_position and not others:
        raise InvalidArgument("bySetPosition chooses among what another by… gives, and there is none")


def rule_text(rule: Rule, when: When) -> str:
    """The value of RRULE; its end in UTC for zoned and instant starts, a date for all-day, local for floating."""
    until = None
    if rule.until is not None:
        if isinstance(when, AllDay):
            until = f"{rule.until:%Y%m%d}".rjust(8, "0")
        elif isinstance(when, Zoned):
            until = _compact(resolve(rule.until, ZoneInfo(when.zone))) + "Z"
        else:
            until = _compact(rule.until) + ("Z" if isinstance(when, Instant) else "")
    return _rule_text(rule, until)


def _compact(moment: datetime) -> str:
    return moment.replace(tzinfo=None).isoformat(timespec="seconds").replace("-", "").replace(":", "")


def _rule_text(rule: Rule, until: str | None) -> str:
    parts = [f"FREQ={rule.frequency.upper()}"]
    if until is not None:
        parts.append(f"UNTIL={until}")
    if rule.count is not None:
        parts.append(f"COUNT={rule.count}")
    if rule.interval != 1:
        parts.append(f"INTERVAL={rule.interval}")
    if rule.by_day:
        parts.append("BYDAY=" + ",".join(f"{nth or ''}{day.upper()}" for day, nth in rule.by_day))
    if rule.by_month:
        parts.append("BYMONTH=" + ",".join(map(str, rule.by_month)))
    for attribute, name, _, _ in _LISTS.values():
        values: tuple[int, ...] = getattr(rule, attribute)
        if values:
            parts.append(f"{name}=" + ",".join(map(str, values)))
    if rule.first_day_of_week:
        parts.append(f"WKST={rule.first_day_of_week.upper()}")
    return ";".join(parts)


def rule_from_text(text: str, when: When) -> Rule:
    """Read the value of an RRULE for a series that starts at `when`.

    An `until` that others wrote in another form than the start demands is read as they meant it: a bare date includes
    that day, a local time is local to the series.

    Raises:
        InvalidArgument: It is no rule.
        Unsupported: It is a rule that isn't offered here.
    """
    wire: dict[str, Any] = {}
    until: str | None = None
    names = {name: (key, low) for key, (_, name, low, _) in _LISTS.items()}
    try:
        for part in filter(None, text.strip().split(";")):
            name, _, value = part.partition("=")
            name = name.strip().upper()
            if name == "FREQ":
                wire["frequency"] = value.lower()
            elif name in ("INTERVAL", "COUNT"):
                wire[name.lower()] = int(value)
            elif name == "UNTIL":
                until = value.strip()
            elif name == "BYDAY":
                wire["byDay"] = [_day_from_text(each) for each in value.split(",")]
            elif name == "BYMONTH":
                wire["byMonth"] = value.split(",")
            elif name == "WKST":
                wire["firstDayOfWeek"] = value
            elif name in names:
                wire[names[name][0]] = [int(each) for each in value.split(",")]
            elif name in ("RSCALE", "SKIP"):
                wire[name.lower()] = value
            else:
                raise Unsupported(f"the rule {text!r} has {name}", details={"lost": ["recurrenceRules"]})
    except ValueError as error:
        raise InvalidArgument(f"{text!r} is not a recurrence rule: {error}") from None
    rule = read_rule(wire, when)
    return rule if until is None else replace(rule, until=_until_from_text(until, when))


def _day_from_text(text: str) -> dict[str, Any]:
    day = {"day": text.strip()[-2:].lower()}
    nth = text.strip()[:-2]
    return {**day, "nthOfPeriod": int(nth)} if nth else day


def _until_from_text(text: str, when: When) -> datetime:
    digits = text.rstrip("Zz")
    try:
        if len(digits) == 8:
            day = datetime.strptime(digits, "%Y%m%d")  # noqa: DTZ007 - wall time
            return day if isinstance(when, AllDay) else day.replace(hour=23, minute=59, second=59)
        local = datetime.strptime(digits, "%Y%m%dT%H%M%S")  # noqa: DTZ007 - wall time
    except ValueError:
        raise InvalidArgument(f"UNTIL={text} is neither a date nor a date-time") from None
    if isinstance(when, AllDay):
        return local.replace(hour=0, minute=0, second=0)
    if isinstance(when, Zoned) and digits != text:
        return place(local.replace(tzinfo=UTC), ZoneInfo(when.zone)).replace(fold=0)
    return local


def given_by(rule: Rule, anchor: datetime) -> rrule:
    """The starts that a rule gives from `anchor` on, naive and in order, computed as they are asked for."""
    # dateutil itself rather than recurring-ical-events, which rests on it: that restarts the rule from its first
    # occurrence for each window, half a minute for a daily series of 1900 asked about 2100
    from dateutil.rrule import rrule, rrulestr

    text = _rule_text(rule, None if rule.until is None else _compact(rule.until))
    expander = rrulestr(text, dtstart=anchor.replace(fold=0))
    assert isinstance(expander, rrule)
    return expander


def first_given(rule: Rule, anchor: datetime) -> datetime | None:
    """The first start that a rule gives from `anchor` on; none if it gives none for a lifetime."""
    if not is_feasible(rule, anchor):
        return None
    try:
        if rule.by_set_position and not _has_positions(rule, anchor):
            return None
        return next(iter(given_by(rule, anchor)), None)
    except ValueError:
        return None  # an interval that never meets the hours it names


def _has_positions(rule: Rule, anchor: datetime) -> bool:
    """Whether a period ever gives as many starts as the nearest position counts."""
    plain = replace(rule, by_set_position=(), count=None, until=None)
    last = anchor + min(HORIZON, _END - anchor)
    starts = takewhile(lambda each: each <= last, islice(given_by(plain, anchor), 20_000))
    sizes = Counter(_period(rule, each) for each in starts)
    return max(sizes.values(), default=0) >= min(map(abs, rule.by_set_position))


def _period(rule: Rule, moment: datetime) -> tuple[int, ...]:
    if rule.frequency == "weekly":
        return ((moment.toordinal() - 1 - _DAYS.index(rule.first_day_of_week or "mo")) // 7,)
    parts = {"yearly": 1, "monthly": 2, "daily": 3, "hourly": 4}[rule.frequency]
    return moment.timetuple()[:parts]


def rules_before(rules: Sequence[Rule], anchor: datetime, split: datetime) -> tuple[Rule, ...]:
    """The rules, ended so that they give nothing at `split` or after it."""
    ended: list[Rule] = []
    for rule in rules:
        given = given_by(rule, anchor)
        if rule.count is not None:
            number = sum(1 for _ in takewhile(lambda each: each < split, given))
            if number:
                ended.append(replace(rule, count=number))
        elif (last := given.before(split)) is not None:
            ended.append(replace(rule, until=last))
    return tuple(ended)


def rules_after(rules: Sequence[Rule], anchor: datetime, split: datetime) -> tuple[Rule, ...]:
    """The rules for a series that goes on at `split`: what their count leaves, none of those that have ended."""
    left: list[Rule] = []
    for rule in rules:
        if rule.count is not None:
            number = sum(1 for _ in takewhile(lambda each: each < split, given_by(rule, anchor)))
            if rule.count > number:
                left.append(replace(rule, count=rule.count - number))
        elif rule.until is None or rule.until >= split:
            left.append(rule)
    return tuple(left)


def moved_rules(rules: Sequence[Rule], old: When, new: When) -> tuple[Rule, ...]:
    """The rules for a series whose start is moved: ends move along, and so does the one day of a weekly rule.

    Anything else that names days or hours stays; `Series.check` refuses it then if it no longer fits the start.
    """
    before, after = wall_clock(old), wall_clock(new)
    days = (after.date() - before.date()).days
    moved: list[Rule] = []
    for rule in rules:
        until = None if rule.until is None else rule.until + (after - before)
        if until is not None and isinstance(new, AllDay):
            until = until.replace(hour=0, minute=0, second=0)
        by_day = rule.by_day
        if rule.frequency == "weekly" and len(by_day) == 1 and by_day[0] == (_DAYS[before.weekday()], 0):
            by_day = ((_DAYS[(before.weekday() + days) % 7], 0),)
        moved.append(replace(rule, until=until, by_day=by_day))
    return tuple(moved)
