"""Rules and series: their two forms, their occurrences, their ends."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

import pytest

from hotplug.catalog.calendar.recurrence import Override, Series
from hotplug.catalog.calendar.rules import (
    moved_rules,
    occurrence_id,
    read_occurrence_id,
    read_rule,
    rule_from_text,
    rule_text,
    rules_after,
    rules_before,
    wall_clock,
)
from hotplug.catalog.calendar.times import When, read_range, read_when
from hotplug.errors import InvalidArgument, Unsupported


def zoned(start: str, zone: str, duration: str = "PT1H") -> When:
    return read_when(start, duration=duration, time_zone=zone)


def series(when: When, *rules: dict[str, Any]) -> Series:
    return Series(when, tuple(read_rule(rule, when) for rule in rules))


def wall(text: str) -> datetime:
    return datetime.fromisoformat(text)


def starts(of: Series, *within: str) -> list[str]:
    window = read_range(*within) if within else None
    return [each.when.wire().get("utcStart", each.when.wire()["start"]) for each in of.occurrences(window)]


def test_fr07_a_series_keeps_its_wall_time_over_a_change_of_clocks() -> None:
    weekly = series(zoned("2026-10-19T09:00:00", "America/New_York"), {"frequency": "weekly", "count": 4})
    assert starts(weekly) == [
        "2026-10-19T13:00:00Z",
        "2026-10-26T13:00:00Z",
        "2026-11-02T14:00:00Z",
        "2026-11-09T14:00:00Z",
    ]


def test_fr08_the_end_of_a_zoned_series_is_written_in_utc() -> None:
    when = zoned("2026-12-03T10:00:00", "Europe/Madrid")
    weekly = series(when, {"frequency": "weekly", "until": "2026-12-17T10:00:00"})
    assert rule_text(weekly.rules[0], when) == "FREQ=WEEKLY;UNTIL=20261217T090000Z"
    assert starts(weekly)[-1] == "2026-12-17T09:00:00Z"
    assert len(starts(weekly)) == 3


def test_fr08_the_end_has_the_form_that_the_start_demands() -> None:
    day = read_when("2026-12-03", duration="P1D", show_without_time=True)
    assert rule_text(read_rule({"frequency": "daily", "until": "2026-12-17"}, day), day) == "FREQ=DAILY;UNTIL=20261217"
    instant = read_when("2026-12-03T10:00:00Z", duration="PT1H")
    rule = read_rule({"frequency": "daily", "until": "2026-12-17T10:00:00Z"}, instant)
    assert rule_text(rule, instant) == "FREQ=DAILY;UNTIL=20261217T100000Z"
    floating = zoned("2026-12-03T10:00:00", "floating")
    rule = read_rule({"frequency": "daily", "until": "2026-12-17T10:00:00"}, floating)
    assert rule_text(rule, floating) == "FREQ=DAILY;UNTIL=20261217T100000"


WHENS = [
    zoned("2026-01-05T10:00:00", "Europe/Madrid"),
    zoned("2026-01-05T10:00:00", "floating"),
    read_when("2026-01-05T10:00:00Z", duration="PT1H"),
    read_when("2026-01-05", duration="P1D", show_without_time=True),
]


@pytest.mark.parametrize("when", WHENS, ids=["zoned", "floating", "instant", "all-day"])
@pytest.mark.parametrize(
    "wire",
    [
        {"frequency": "daily"},
        {"frequency": "weekly", "interval": 2, "byDay": [{"day": "mo"}, {"day": "th"}], "firstDayOfWeek": "su"},
        {"frequency": "monthly", "byDay": [{"day": "mo", "nthOfPeriod": 1}], "count": 10},
        {"frequency": "monthly", "byDay": [{"day": "fr", "nthOfPeriod": -1}]},
        {"frequency": "yearly", "byMonth": ["1", "7"], "byMonthDay": [5, -1]},
        {"frequency": "yearly", "byWeekNo": [2], "byDay": [{"day": "mo"}]},
        {"frequency": "monthly", "byDay": [{"day": "mo"}, {"day": "tu"}], "bySetPosition": [1, -1]},
    ],
)
def test_both_forms_of_a_rule_say_the_same(when: When, wire: dict[str, Any]) -> None:
    rule = read_rule(wire, when)
    assert rule.wire(when) == wire
    assert rule_from_text(rule_text(rule, when), when) == rule


def test_the_end_of_a_rule_survives_both_forms_also_at_a_change_of_clocks() -> None:
    when = zoned("2026-10-01T02:30:00", "Europe/Berlin")
    rule = read_rule({"frequency": "daily", "until": "2026-10-25T02:30:00"}, when)
    assert rule_from_text(rule_text(rule, when), when) == rule


def test_ends_that_others_wrote_in_the_wrong_form_are_read_as_meant() -> None:
    when = zoned("2026-12-03T10:00:00", "Europe/Madrid")
    for text in ("20261217", "20261217T100000", "20261217T090000Z", "20261217T225959Z"):
        rule = rule_from_text(f"FREQ=WEEKLY;UNTIL={text}", when)
        assert len(list(Series(when, (rule,)).occurrences())) == 3
    day = read_when("2026-12-03", duration="P1D", show_without_time=True)
    rule = rule_from_text("FREQ=WEEKLY;UNTIL=20261217T000000Z", day)
    assert [each.when.wire()["start"] for each in Series(day, (rule,)).occurrences()][-1] == "2026-12-17"


@pytest.mark.parametrize(
    ("wire", "named"),
    [
        ({"frequency": "fortnightly"}, "fortnightly"),
        ({}, "frequency"),
        ({"frequency": "daily", "every": 2}, "every"),
        ({"frequency": "daily", "interval": 0}, "interval"),
        ({"frequency": "daily", "count": 0}, "count"),
        ({"frequency": "daily", "count": True}, "count"),
        ({"frequency": "daily", "count": 2, "until": "2027-01-01T00:00:00"}, "not by both"),
        ({"frequency": "daily", "until": "2025-01-01T00:00:00"}, "before the start"),
        ({"frequency": "daily", "until": "2027-01-01"}, "until"),
        ({"frequency": "daily", "until": "2027-03-28T02:30:00"}, "does not exist"),
        ({"frequency": "weekly", "byDay": [{"day": "monday"}]}, "monday"),
        ({"frequency": "weekly", "byDay": [{"day": "mo", "nthOfPeriod": 1}]}, "nthOfPeriod"),
        ({"frequency": "monthly", "byMonthDay": [0]}, "byMonthDay"),
        ({"frequency": "monthly", "byDay": [{"day": "mo", "nthOfPeriod": 6}]}, "nthOfPeriod"),
        ({"frequency": "monthly", "byMonthDay": [32]}, "byMonthDay"),
        ({"frequency": "yearly", "byMonth": ["13"]}, "byMonth"),
        ({"frequency": "monthly", "byWeekNo": [2]}, "byWeekNo"),
        ({"frequency": "daily", "bySetPosition": [1]}, "bySetPosition"),
    ],
)
def test_a_rule_that_is_none_is_refused(wire: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidArgument, match=named):
        read_rule(wire, zoned("2026-01-05T10:00:00", "Europe/Berlin"))


@pytest.mark.parametrize(
    "wire",
    [
        {"frequency": "secondly"},
        {"frequency": "yearly", "rscale": "chinese"},
        {"frequency": "monthly", "skip": "forward"},
    ],
)
def test_a_rule_that_is_not_offered_is_said_to_be_lost(wire: dict[str, Any]) -> None:
    with pytest.raises(Unsupported) as caught:
        read_rule(wire, zoned("2026-01-05T10:00:00", "Europe/Berlin"))
    assert caught.value.details["lost"] == ["recurrenceRules"]


def test_a_start_that_the_rule_does_not_give_is_refused_with_the_first_that_it_gives() -> None:
    monday = {"frequency": "weekly", "byDay": [{"day": "mo"}]}
    with pytest.raises(InvalidArgument) as caught:
        series(zoned("2026-06-09T09:00:00", "Europe/Berlin"), monday).check()
    assert caught.value.details["first"] == "2026-06-15T09:00:00"
    series(zoned("2026-06-15T09:00:00", "Europe/Berlin"), monday).check()


def test_a_thousand_occurrences_are_all_there() -> None:
    daily = series(zoned("2026-01-01T09:00:00", "Europe/Berlin"), {"frequency": "daily", "count": 1000})
    found = starts(daily)
    assert len(found) == len(set(found)) == 1000
    assert found[-1] == "2028-09-26T07:00:00Z"


def test_a_series_of_1900_is_found_in_2100_without_waiting() -> None:
    daily = series(zoned("1900-01-01T09:00:00", "America/New_York"), {"frequency": "daily"})
    before = time.monotonic()
    assert starts(daily, "2100-01-01", "2100-01-03", "America/New_York") == [
        "2100-01-01T14:00:00Z",
        "2100-01-02T14:00:00Z",
    ]
    assert time.monotonic() - before < 5
    assert next(iter(daily.occurrences())).when.wire()["start"] == "1900-01-01T09:00:00"


def test_a_series_without_end_stops_at_the_year_9999() -> None:
    yearly = series(zoned("9990-01-01T09:00:00", "America/New_York"), {"frequency": "yearly"})
    assert len(list(islice(yearly.occurrences(), 100))) == 10
    last = series(zoned("9999-12-30T22:00:00", "America/New_York"), {"frequency": "daily"})
    assert len(list(islice(last.occurrences(), 100))) == 1


def test_a_leap_day_recurs_in_leap_years_only() -> None:
    leap = series(read_when("2096-02-29", duration="P1D", show_without_time=True), {"frequency": "yearly", "count": 2})
    assert starts(leap) == ["2096-02-29", "2104-02-29"]


def test_an_occurrence_in_a_gap_happens_after_it_and_keeps_its_name() -> None:
    daily = series(zoned("2027-03-27T02:30:00", "Europe/Berlin"), {"frequency": "daily", "count": 3})
    found = list(daily.occurrences())
    assert [each.when.wire()["start"] for each in found] == [
        "2027-03-27T02:30:00",
        "2027-03-28T03:30:00",
        "2027-03-29T02:30:00",
    ]
    assert occurrence_id(daily.when, found[1].id) == "2027-03-28T02:30:00"
    assert found[1].when.wire()["utcStart"] == "2027-03-28T01:30:00Z"


def test_an_occurrence_at_a_time_that_comes_twice_is_the_first() -> None:
    daily = series(zoned("2026-10-24T02:30:00", "Europe/Berlin"), {"frequency": "daily", "count": 3})
    assert starts(daily) == ["2026-10-24T00:30:00Z", "2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"]
    second = series(
        read_when("2026-10-25T02:30:00+01:00", duration="PT1H", time_zone="Europe/Berlin"),
        {"frequency": "daily", "count": 2},
    )
    assert starts(second) == ["2026-10-25T01:30:00Z", "2026-10-26T01:30:00Z"]


def test_hourly_occurrences_stay_in_order_over_a_gap() -> None:
    hourly = series(zoned("2027-03-28T00:30:00", "Europe/Berlin", "PT30M"), {"frequency": "hourly", "count": 5})
    found = starts(hourly)
    assert found == sorted(found)
    assert len(found) == 5


def test_a_long_event_that_began_before_the_range_is_found() -> None:
    weekly = series(zoned("2026-06-01T09:00:00", "Europe/Berlin", "P3D"), {"frequency": "weekly"})
    assert starts(weekly, "2026-06-11T00:00:00Z", "2026-06-11T01:00:00Z") == ["2026-06-08T07:00:00Z"]
    assert starts(weekly, "2026-06-12T00:00:00Z", "2026-06-14T01:00:00Z") == []


def test_overrides_exclude_move_and_add() -> None:
    when = zoned("2026-06-01T09:00:00", "Europe/Berlin")
    rules = (read_rule({"frequency": "daily", "count": 4}, when),)
    moved = zoned("2026-06-20T09:00:00", "Europe/Berlin")
    changed = Series(
        when,
        rules,
        {
            wall("2026-06-02T09:00:00"): Override(excluded=True),
            wall("2026-06-03T09:00:00"): Override(when=moved),
            wall("2026-06-10T12:00:00"): Override(fields={"title": "extra"}),
        },
    )
    assert starts(changed) == [
        "2026-06-01T07:00:00Z",
        "2026-06-04T07:00:00Z",
        "2026-06-10T10:00:00Z",
        "2026-06-20T07:00:00Z",
    ]
    assert starts(changed, "2026-06-20T00:00:00Z", "2026-06-21T00:00:00Z") == ["2026-06-20T07:00:00Z"]
    assert starts(changed, "2026-06-03T00:00:00Z", "2026-06-04T00:00:00Z") == []
    assert changed.find(wall("2026-06-02T09:00:00")) is None
    assert changed.find(wall("2026-06-05T09:00:00")) is None
    found = changed.find(wall("2026-06-03T09:00:00"))
    assert found is not None
    assert found.when == moved


def test_fr09_an_occurrence_is_named_on_the_series_own_clock() -> None:
    berlin = zoned("2026-06-01T11:00:00", "Europe/Berlin")
    named = wall("2026-06-03T11:00:00")
    for text in ("2026-06-03T11:00:00", "2026-06-03T09:00:00Z", "2026-06-03T05:00:00-04:00"):
        assert read_occurrence_id(text, berlin) == named
    day = read_when("2026-06-01", duration="P1D", show_without_time=True)
    assert read_occurrence_id("2026-06-03", day) == read_occurrence_id("2026-06-03T00:00:00", day)
    instant = read_when("2026-06-01T09:00:00Z", duration="PT1H")
    assert read_occurrence_id("2026-06-03T11:00:00+02:00", instant) == wall("2026-06-03T09:00:00")
    for text, when in [("2026-06-03", berlin), ("2026-06-03T11:00:00", day), ("2026-06-03T11:00:00", instant)]:
        with pytest.raises(InvalidArgument, match="occurrence"):
            read_occurrence_id(text, when)


def test_rules_are_split_without_losing_or_doubling_an_occurrence() -> None:
    when = zoned("2026-06-01T09:00:00", "Europe/Berlin")
    split = wall("2026-06-05T09:00:00")
    for wire in (
        {"frequency": "daily", "count": 10},
        {"frequency": "daily", "until": "2026-06-10T09:00:00"},
        {"frequency": "daily", "interval": 2, "count": 5},
    ):
        whole = series(when, wire)
        old = Series(when, rules_before(whole.rules, wall_clock(when), split))
        later = zoned("2026-06-05T09:00:00", "Europe/Berlin")
        new = Series(later, rules_after(whole.rules, wall_clock(when), split))
        assert starts(old) + starts(new) == starts(whole)
    assert rules_before(series(when, {"frequency": "daily"}).rules, wall_clock(when), wall_clock(when)) == ()


def test_rules_move_with_their_start() -> None:
    monday = zoned("2026-06-01T09:00:00", "Europe/Berlin")
    wednesday = zoned("2026-06-03T10:00:00", "Europe/Berlin")
    rules = series(monday, {"frequency": "weekly", "byDay": [{"day": "mo"}], "until": "2026-06-15T09:00:00"}).rules
    (moved,) = moved_rules(rules, monday, wednesday)
    assert moved.wire(wednesday) == {
        "frequency": "weekly",
        "byDay": [{"day": "we"}],
        "until": "2026-06-17T10:00:00",
    }


def test_the_bounds_hold_everything() -> None:
    when = zoned("2026-06-01T09:00:00", "Europe/Berlin")
    first, last = series(when, {"frequency": "daily", "until": "2026-06-10T09:00:00"}).bounds()
    assert first < datetime(2026, 6, 1, 7, tzinfo=UTC)
    assert last is not None
    assert last > datetime(2026, 6, 10, 8, tzinfo=UTC)
    assert last - first < timedelta(days=20)
    assert series(when, {"frequency": "daily"}).bounds()[1] is None


@pytest.mark.parametrize(
    "rule",
    [
        "FREQ=WEEKLY;BYDAY=MO,WE;COUNT=20",
        "FREQ=MONTHLY;BYDAY=1MO;UNTIL=20270601T070000Z",
        "FREQ=MONTHLY;BYMONTHDAY=-1;COUNT=12",
        "FREQ=YEARLY;BYMONTH=6;BYDAY=1MO;COUNT=5",
        "FREQ=DAILY;INTERVAL=3;COUNT=40",
    ],
)
def test_an_independent_expander_finds_the_same(rule: str) -> None:
    import recurring_ical_events
    from icalendar import Calendar

    first = "20260601T090000" if "-1" not in rule else "20260630T090000"
    text = (
        "BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nUID:x\r\n"
        f"DTSTART;TZID=Europe/Berlin:{first}\r\nDURATION:PT1H\r\nRRULE:{rule}\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"
    )
    other = recurring_ical_events.of(Calendar.from_ical(text)).between((2026, 1, 1), (2036, 1, 1))
    expected = sorted(each.start.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ") for each in other)
    start = f"{first[:4]}-{first[4:6]}-{first[6:8]}T09:00:00"
    when = zoned(start, "Europe/Berlin")
    assert starts(Series(when, (rule_from_text(rule, when),))) == expected


@pytest.mark.parametrize(
    "wire",
    [
        {"frequency": "yearly", "byMonth": ["2"], "byMonthDay": [30]},
        {"frequency": "hourly", "byMonthDay": [-12], "byYearDay": [-180]},
        {"frequency": "hourly", "interval": 2, "byHour": [17]},
        {"frequency": "daily", "interval": 7, "byDay": [{"day": "tu"}]},
        {"frequency": "daily", "byMonth": ["7"], "bySetPosition": [62]},
        {"frequency": "yearly", "byDay": [{"day": "mo"}], "bySetPosition": [-236]},
        {"frequency": "yearly", "byWeekNo": [37], "byMonthDay": [29]},
    ],
)
def test_a_rule_that_never_gives_anything_is_refused_without_a_search_to_the_end_of_time(wire: dict[str, Any]) -> None:
    before = time.monotonic()
    with pytest.raises(InvalidArgument, match="change the rules"):
        series(zoned("2026-01-05T10:00:00", "Europe/Berlin"), wire).check()
    assert time.monotonic() - before < 5


@pytest.mark.parametrize(
    ("start", "wire"),
    [
        ("2026-09-07", {"frequency": "yearly", "byWeekNo": [37], "byDay": [{"day": "mo"}]}),
        ("2028-02-29", {"frequency": "yearly", "byMonth": ["2"], "byMonthDay": [29]}),
        ("2026-12-28", {"frequency": "yearly", "byWeekNo": [-1], "byDay": [{"day": "mo"}]}),
        ("2026-12-31", {"frequency": "yearly", "byYearDay": [-1]}),
        ("2026-10-30", {"frequency": "monthly", "byDay": [{"day": "fr", "nthOfPeriod": 5}]}),
        (
            "2026-11-03",
            {"frequency": "yearly", "interval": 4, "byMonth": ["11"], "byDay": [{"day": "tu", "nthOfPeriod": 1}]},
        ),
        ("2026-06-30", {"frequency": "monthly", "byDay": [{"day": "mo"}, {"day": "tu"}], "bySetPosition": [-1]}),
    ],
)
def test_a_rule_that_seldom_gives_something_is_taken(start: str, wire: dict[str, Any]) -> None:
    series(read_when(start, duration="P1D", show_without_time=True), wire).check()
