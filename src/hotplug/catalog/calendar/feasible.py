"""Whether a rule ever gives an occurrence: `dateutil` looks for one that never comes until the year 9999.

A necessary condition is looked for instead, day by day and for a bounded time: 50 periods of the rule, and 50 years at
least, so that the pattern of leap years and weekdays comes round (40 years at most, over 2100).
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from hotplug.catalog.calendar.rules import Rule

__all__ = ["HORIZON", "is_feasible"]

_DAYS: Final = ("mo", "tu", "we", "th", "fr", "sa", "su")
_PERIODS: Final = 50
HORIZON: Final = timedelta(days=50 * 366)


def is_feasible(rule: Rule, anchor: datetime) -> bool:
    """Whether some day of the rule's periods fits everything that the rule says about days."""
    if not (rule.by_month or rule.by_month_day or rule.by_year_day or rule.by_week_no or rule.by_day):
        return True
    try:
        return any(_fits(rule, day) for day in _days(rule, anchor))
    except OverflowError:
        return False


def _days(rule: Rule, anchor: datetime) -> Iterator[date]:
    """The days of the periods that the rule looks at."""
    start = anchor.date()
    if rule.frequency in ("daily", "hourly"):
        by_hours = rule.frequency == "hourly" and rule.interval > 24
        step = timedelta(hours=rule.interval) if by_hours else timedelta(days=1)
        if rule.frequency == "daily":
            step *= rule.interval
        moment = anchor
        number = 0
        while number < _PERIODS or moment.date() - start < HORIZON:
            if not by_hours or not rule.by_hour or moment.hour in rule.by_hour:
                yield moment.date()
            moment += step
            number += 1
        return
    number = 0
    first = _first_of_period(rule, start)
    while number < _PERIODS or first - start < HORIZON:
        following = _next_period(rule, first, 1)
        # a week that isn't whole in its month or year belongs to both
        for offset in range((following - first).days):
            day = first + timedelta(days=offset)
            if day >= start:
                yield day
        first = _next_period(rule, first, rule.interval)
        number += 1


def _first_of_period(rule: Rule, day: date) -> date:
    if rule.frequency == "weekly":
        return day - timedelta(days=(day.weekday() - _week_start(rule)) % 7)
    return day.replace(day=1) if rule.frequency == "monthly" else day.replace(month=1, day=1)


def _next_period(rule: Rule, first: date, number: int) -> date:
    if rule.frequency == "weekly":
        return first + timedelta(days=7 * number)
    months = first.year * 12 + first.month - 1 + (number if rule.frequency == "monthly" else 12 * number)
    if months // 12 > 9999:
        raise OverflowError
    return date(months // 12, months % 12 + 1, 1)


def _week_start(rule: Rule) -> int:
    return _DAYS.index(rule.first_day_of_week or "mo")


def _fits(rule: Rule, day: date) -> bool:
    if rule.by_month and day.month not in rule.by_month:
        return False
    month_length = _month_length(day)
    if rule.by_month_day and not {day.day, day.day - month_length - 1} & set(rule.by_month_day):
        return False
    ordinal = day.timetuple().tm_yday
    year_length = 365 + _is_leap(day.year)
    if rule.by_year_day and not {ordinal, ordinal - year_length - 1} & set(rule.by_year_day):
        return False
    if rule.by_week_no and not _weeks(rule, day) & set(rule.by_week_no):
        return False
    if not rule.by_day:
        return True
    in_month = rule.frequency == "monthly" or bool(rule.by_month)
    at, length = (day.day, month_length) if in_month else (ordinal, year_length)
    places = {0, (at - 1) // 7 + 1, -((length - at) // 7 + 1)}
    return any(day.weekday() == _DAYS.index(name) and nth in places for name, nth in rule.by_day)


def _weeks(rule: Rule, day: date) -> set[int]:
    """The number of its week, from the start and from the end of the year that has four days of it or more."""
    first = day - timedelta(days=(day.weekday() - _week_start(rule)) % 7)
    middle = first + timedelta(days=3)
    number = (middle.timetuple().tm_yday - 1) // 7 + 1
    last = date(middle.year, 12, 31)
    weeks = number + (last - middle).days // 7
    return {number, number - weeks - 1}


def _month_length(day: date) -> int:
    following = date(day.year + day.month // 12, day.month % 12 + 1, 1) if day.year < 9999 or day.month < 12 else None
    return 31 if following is None else (following - day.replace(day=1)).days


def _is_leap(year: int) -> bool:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
