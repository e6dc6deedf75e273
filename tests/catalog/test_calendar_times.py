"""The four kinds of time: what is read, what is refused, what comes back."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotplug.catalog.calendar.times import (
    AllDay,
    Duration,
    Floating,
    Instant,
    Zoned,
    overlaps,
    read_duration,
    read_range,
    read_when,
    shift,
    start_instant,
    time_fields,
)
from hotplug.catalog.calendar.zones import place
from hotplug.errors import InvalidArgument

ZONES = ["Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "Pacific/Apia", "Etc/UTC"]


def wire(**fields: Any) -> dict[str, Any]:
    return read_when(**fields).wire()


def refusal(**fields: Any) -> InvalidArgument:
    with pytest.raises(InvalidArgument) as caught:
        read_when(**fields)
    return caught.value


def test_fr01_a_local_start_that_says_neither_zone_nor_floating_is_refused() -> None:
    error = refusal(start="2026-06-11T17:00:00", duration="PT1H")
    assert "2026-06-11T17:00:00" in str(error)
    assert "timeZone" in str(error)


def test_fr01_a_zoned_start_says_its_wall_time_its_zone_and_its_instant() -> None:
    assert wire(start="2026-06-11T17:00:00", duration="PT1H", time_zone="Asia/Jerusalem") == {
        "start": "2026-06-11T17:00:00",
        "end": "2026-06-11T18:00:00",
        "duration": "PT1H",
        "timeZone": "Asia/Jerusalem",
        "utcStart": "2026-06-11T14:00:00Z",
        "utcEnd": "2026-06-11T15:00:00Z",
    }


def test_an_instant_keeps_the_point_and_not_the_spelling() -> None:
    expected = wire(start="2026-06-11T14:00:00Z", end="2026-06-11T15:30:00Z")
    assert expected["start"] == "2026-06-11T14:00:00Z"
    assert expected["duration"] == "PT1H30M"
    assert "timeZone" not in expected
    for start, end in [
        ("2026-06-11T17:00:00+03:00", "2026-06-11T15:30:00+00:00"),
        ("2026-06-11t14:00:00z", "2026-06-11T15:30:00-00:00"),
        ("2026-06-11T14:00:00.000Z", "2026-06-11T21:00:00+05:30"),
    ]:
        assert wire(start=start, end=end) == expected


def test_fr02_an_all_day_event_on_one_day_ends_on_the_next() -> None:
    fields = wire(start="2026-09-14", end="2026-09-15", show_without_time=True)
    assert fields == {"start": "2026-09-14", "end": "2026-09-15", "duration": "P1D", "showWithoutTime": True}
    assert wire(start="2026-09-14", duration="P1D", show_without_time=True) == fields
    assert wire(start="2026-09-14", duration="P1W", show_without_time=True)["end"] == "2026-09-21"


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"start": "2026-09-14", "end": "2026-09-14"}, "exclusive"),
        ({"start": "2026-09-14", "end": "2026-09-13"}, "not after"),
        ({"start": "2026-09-14", "duration": "PT24H"}, "whole days"),
        ({"start": "2026-09-14", "duration": "PT0S"}, "whole days"),
        ({"start": "2026-09-14", "duration": "P1DT1H"}, "whole days"),
        ({"start": "2026-09-14T00:00:00", "duration": "P1D"}, "write 2026-09-14"),
        ({"start": "2026-09-14", "end": "2026-09-15T00:00:00"}, "not a date"),
        ({"start": "2026-09-14", "duration": "P1D", "time_zone": "Europe/Berlin"}, "no timeZone"),
        ({"start": "2026-09-31", "duration": "P1D"}, "no day"),
        ({"start": "9999-12-31", "duration": "P1D"}, "9999"),
    ],
)
def test_an_all_day_event_of_anything_but_dates_is_refused(fields: dict[str, Any], named: str) -> None:
    assert named in str(refusal(show_without_time=True, **fields))


def test_a_floating_event_has_no_zone_and_no_instant() -> None:
    assert wire(start="2026-06-11T15:00:00", end="2026-06-12T16:00:00", time_zone="floating") == {
        "start": "2026-06-11T15:00:00",
        "end": "2026-06-12T16:00:00",
        "duration": "P1DT1H",
        "timeZone": "floating",
    }


def test_a_time_in_a_gap_is_refused_with_the_nearest_two() -> None:
    error = refusal(start="2027-03-28T02:30:00", duration="PT1H", time_zone="Europe/Berlin")
    assert error.details["nearest"] == ["2027-03-28T01:59:59", "2027-03-28T03:00:00"]
    assert "03:00:00" in str(error)
    # an offset doesn't make it exist
    refusal(start="2027-03-28T02:30:00+01:00", duration="PT1H", time_zone="Europe/Berlin")
    assert "end" in str(refusal(start="2027-03-28T01:30:00", end="2027-03-28T02:30:00", time_zone="Europe/Berlin"))


def test_a_day_that_a_zone_skipped_is_a_gap_of_a_day() -> None:
    error = refusal(start="2011-12-30T10:00:00", duration="PT1H", time_zone="Pacific/Apia")
    assert error.details["nearest"] == ["2011-12-29T23:59:59", "2011-12-31T00:00:00"]


def test_a_time_that_comes_twice_needs_an_offset() -> None:
    error = refusal(start="2026-10-25T02:30:00", duration="PT1H", time_zone="Europe/Berlin")
    assert error.details["choices"] == ["2026-10-25T02:30:00+02:00", "2026-10-25T02:30:00+01:00"]
    first = wire(start="2026-10-25T02:30:00+02:00", duration="PT1H", time_zone="Europe/Berlin")
    second = wire(start="2026-10-25T02:30:00+01:00", duration="PT1H", time_zone="Europe/Berlin")
    assert (first["start"], first["utcStart"]) == ("2026-10-25T02:30:00+02:00", "2026-10-25T00:30:00Z")
    assert (first["end"], first["utcEnd"]) == ("2026-10-25T02:30:00+01:00", "2026-10-25T01:30:00Z")
    assert (second["end"], second["utcEnd"]) == ("2026-10-25T03:30:00", "2026-10-25T02:30:00Z")
    refusal(start="2026-10-25T02:30:00+03:00", duration="PT1H", time_zone="Europe/Berlin")


def test_the_two_readings_of_one_wall_time_are_not_equal() -> None:
    first = read_when("2026-10-25T02:30:00+02:00", duration="PT1H", time_zone="Europe/Berlin")
    second = read_when("2026-10-25T02:30:00+01:00", duration="PT1H", time_zone="Europe/Berlin")
    assert first != second
    assert len({first, second}) == 2


def test_an_offset_with_a_zone_must_be_the_zones_own() -> None:
    fields = wire(start="2026-06-11T17:00:00+02:00", duration="PT1H", time_zone="Europe/Berlin")
    assert fields["start"] == "2026-06-11T17:00:00"
    assert "+02:00" in str(refusal(start="2026-06-11T17:00:00+01:00", duration="PT1H", time_zone="Europe/Berlin"))
    assert "+02:00" in str(refusal(start="2026-06-11T17:00:00Z", duration="PT1H", time_zone="Europe/Berlin"))


@pytest.mark.parametrize(
    ("name", "near"),
    [("Jerusalem", "Asia/Jerusalem"), ("europe/berlin", "Europe/Berlin"), ("America/NewYork", "America/New_York")],
)
def test_an_unknown_zone_is_refused_with_near_names(name: str, near: str) -> None:
    error = refusal(start="2026-06-11T17:00:00", duration="PT1H", time_zone=name)
    assert near in error.details["near"]
    assert repr(name) in str(error)


@pytest.mark.parametrize(
    "name", ["", "../etc/passwd", "/etc/localtime", "localtime", "posix/Europe/Berlin", "W. Europe", "é"]
)
def test_a_name_that_opens_a_file_is_still_no_zone(name: str) -> None:
    refusal(start="2026-06-11T17:00:00", duration="PT1H", time_zone=name)


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"start": "2026-06-11T17:00:00Z"}, "neither"),
        ({"start": "2026-06-11T17:00:00Z", "end": "2026-06-11T18:00:00Z", "duration": "PT1H"}, "both"),
        ({"start": "2026-06-11 17:00:00Z", "duration": "PT1H"}, "put a T"),
        ({"start": "2026-06-11T17:00Z", "duration": "PT1H"}, "2026-06-11T17:00:00Z"),
        ({"start": "2026-06-11", "duration": "PT1H"}, "showWithoutTime"),
        ({"start": "tomorrow", "duration": "PT1H"}, "tomorrow"),
        ({"start": "2016-12-31T23:59:60Z", "duration": "PT1H"}, "leap second"),
        ({"start": "2026-06-11T17:00:00.5Z", "duration": "PT1H"}, "whole seconds"),
        ({"start": "2026-06-11T24:00:00Z", "duration": "PT1H"}, "next day"),
        ({"start": "2026-06-11T17:00:00+24:00", "duration": "PT1H"}, "offset"),
        ({"start": "2026-06-11T17:00:00Z", "end": "2026-06-11T16:59:59Z"}, "before"),
        ({"start": "2026-06-11T17:00:00Z", "end": "2026-06-11T18:00:00"}, "no offset"),
        ({"start": "2026-06-11T17:00:00Z", "end": "2026-06-12"}, "showWithoutTime"),
        ({"start": "2026-06-11T17:00:00Z", "duration": "PT1H", "time_zone": "floating"}, "offset"),
        ({"start": "2026-06-11T17:00:00", "end": "2026-06-11T18:00:00Z", "time_zone": "floating"}, "offset"),
        ({"start": "2026-06-11T17:00:00", "end": "2026-06-11T16:00:00", "time_zone": "floating"}, "before"),
        ({"start": "9999-12-31T23:00:00Z", "duration": "PT2H"}, "9999"),
        ({"start": "9999-12-31T23:00:00-05:00", "duration": "PT1H"}, "9999"),
        ({"start": "0001-01-01T00:00:00", "duration": "PT1H", "time_zone": "Asia/Tokyo"}, "9999"),
        ({"start": "2026-06-11T17:00:00Z", "duration": "P99999999999D"}, "9999"),
        ({"start": "２０２６-06-11T17:00:00Z", "duration": "PT1H"}, "not a date-time"),
    ],
)
def test_what_says_no_time_is_refused_and_named(fields: dict[str, Any], named: str) -> None:
    assert named in str(refusal(**fields))


def test_no_length_is_allowed_and_an_end_at_the_start_too() -> None:
    assert wire(start="2026-06-11T17:00:00Z", duration="PT0S")["end"] == "2026-06-11T17:00:00Z"
    assert wire(start="2026-06-11T17:00:00Z", end="2026-06-11T17:00:00Z")["duration"] == "PT0S"


@pytest.mark.parametrize(
    ("text", "duration"),
    [
        ("P1D", Duration(1)),
        ("P2W", Duration(14)),
        ("PT90M", Duration(0, 5400)),
        ("PT1H30M", Duration(0, 5400)),
        ("P1DT12H", Duration(1, 43200)),
        ("PT24H", Duration(0, 86400)),
        ("PT0S", Duration()),
        ("PT1H30S", Duration(0, 3630)),
    ],
)
def test_durations_are_days_and_exact_seconds(text: str, duration: Duration) -> None:
    assert read_duration(text) == duration
    assert read_duration(str(duration)) == duration


def test_a_duration_is_written_as_rfc_5545_has_it_too() -> None:
    assert str(Duration(0, 3630)) == "PT1H0M30S"
    assert str(Duration()) == "PT0S"
    assert str(Duration(7)) == "P7D"


@pytest.mark.parametrize(
    "text", ["-PT1H", "P", "PT", "P1M", "P1Y", "P1Y2M3D", "PT1.5H", "PT0.5S", "1H", "P1DT", "", "PT1H "]
)
def test_other_durations_are_refused(text: str) -> None:
    with pytest.raises(InvalidArgument, match="duration"):
        read_duration(text)


def test_days_are_nominal_and_hours_exact_over_a_change_of_clocks() -> None:
    day = wire(start="2026-10-24T12:00:00", duration="P1D", time_zone="Europe/Berlin")
    hours = wire(start="2026-10-24T12:00:00", duration="PT24H", time_zone="Europe/Berlin")
    assert (day["end"], day["utcEnd"]) == ("2026-10-25T12:00:00", "2026-10-25T11:00:00Z")
    assert (hours["end"], hours["utcEnd"]) == ("2026-10-25T11:00:00", "2026-10-25T10:00:00Z")
    assert wire(start="2026-10-24T12:00:00", end="2026-10-25T12:00:00", time_zone="Europe/Berlin")["duration"] == "P1D"
    assert (
        wire(start="2026-10-24T12:00:00", end="2026-10-25T11:00:00", time_zone="Europe/Berlin")["duration"] == "PT24H"
    )


@pytest.mark.parametrize(
    ("start", "zone", "utc"),
    [
        ("1900-01-01T12:00:00", "America/New_York", "1900-01-01T17:00:00Z"),
        ("2100-07-01T12:00:00", "Europe/Berlin", "2100-07-01T10:00:00Z"),
        ("2100-02-28T23:30:00", "Etc/UTC", "2100-02-28T23:30:00Z"),
        ("1850-01-01T00:00:00", "Europe/Berlin", "1849-12-31T23:06:32Z"),
        ("0001-01-02T00:00:00", "Etc/UTC", "0001-01-02T00:00:00Z"),
        ("9999-12-30T00:00:00", "America/New_York", "9999-12-30T05:00:00Z"),
    ],
)
def test_far_years_are_read_and_given_back(start: str, zone: str, utc: str) -> None:
    fields = wire(start=start, duration="PT1H", time_zone=zone)
    assert (fields["start"], fields["utcStart"]) == (start, utc)


def test_2100_has_no_29th_of_february() -> None:
    refusal(start="2100-02-29T12:00:00Z", duration="PT1H")


naive = st.integers(-2_200_000_000, 4_133_000_000).map(
    lambda seconds: datetime(1970, 1, 1, tzinfo=UTC).replace(tzinfo=None) + timedelta(seconds=seconds)
)
lengths = st.builds(Duration, st.integers(0, 40), st.integers(0, 200_000))
whens = st.one_of(
    st.builds(Instant, naive.map(lambda each: each.replace(tzinfo=UTC)), lengths),
    st.builds(Floating, naive, lengths),
    st.builds(AllDay, st.dates(date(1900, 1, 1), date(2100, 12, 31)), st.integers(1, 400)),
    st.builds(
        lambda instant, zone, length: Zoned(
            # through the instant, so that the wall time exists, twice or once
            place(instant.replace(tzinfo=UTC), ZoneInfo(zone)),
            zone,
            length,
        ),
        naive,
        st.sampled_from(ZONES),
        lengths,
    ),
)


def given_back(fields: dict[str, Any], *names: str) -> Any:
    arguments = {"timeZone": "time_zone", "showWithoutTime": "show_without_time"}
    return read_when(**{arguments.get(name, name): fields[name] for name in names if name in fields})


@given(whens)
def test_what_is_given_back_is_read_as_the_same(when: Any) -> None:
    fields = when.wire()
    try:
        assert given_back(fields, "start", "duration", "timeZone", "showWithoutTime") == when
    except InvalidArgument:
        # RFC 3339 can't write an offset with seconds that isn't a whole minute: none after 1972
        assert isinstance(when, Zoned)
        assert when.local.year < 1973
    assert given_back(dict(time_fields(when)), "start", "duration", "timeZone", "showWithoutTime") == when
    by_end = given_back(fields, "start", "end", "timeZone", "showWithoutTime")
    assert by_end.wire() == {**fields, "duration": by_end.wire()["duration"]}


def test_a_shift_keeps_the_wall_time() -> None:
    when = read_when("2026-10-24T09:00:00", duration="PT1H", time_zone="Europe/Berlin")
    assert shift(when, timedelta(days=1)).wire()["utcStart"] == "2026-10-25T08:00:00Z"
    instant = read_when("2026-10-24T07:00:00Z", duration="PT1H")
    assert shift(instant, timedelta(days=1)).wire()["start"] == "2026-10-25T07:00:00Z"
    # what a series yields inside a gap happens after it (RFC 8984)
    gap = shift(read_when("2027-03-27T02:30:00", duration="PT1H", time_zone="Europe/Berlin"), timedelta(days=1))
    assert gap.wire()["start"] == "2027-03-28T03:30:00"


def test_a_range_is_of_instants_or_of_dates_with_a_zone() -> None:
    assert read_range("2026-06-11", "2026-06-12", "Asia/Jerusalem") == read_range(
        "2026-06-10T21:00:00Z", "2026-06-12T00:00:00+03:00", "Asia/Jerusalem"
    )
    for from_, to, zone in [
        ("2026-06-11", "2026-06-12", None),
        ("2026-06-11T00:00:00", "2026-06-12T00:00:00", None),
        ("2026-06-11T00:00:00Z", "2026-06-11T00:00:00Z", None),
        ("2026-06-12T00:00:00Z", "2026-06-11T00:00:00Z", None),
        ("2026-06-11", "2026-06-12", "floating"),
        ("2026-06-11", "2026-06-12", "Jerusalem"),
    ]:
        with pytest.raises(InvalidArgument):
            read_range(from_, to, zone)


def test_a_day_that_starts_in_a_gap_starts_when_the_gap_ends() -> None:
    # Santiago sets its clocks ahead at midnight
    assert read_range("2026-09-06", "2026-09-07", "America/Santiago").start == datetime(2026, 9, 6, 4, tzinfo=UTC)


def test_what_touches_the_range_only_at_its_edge_is_outside() -> None:
    within = read_range("2026-06-11T10:00:00Z", "2026-06-11T12:00:00Z")
    inside = [("09:00:00", "10:00:01"), ("11:59:59", "13:00:00"), ("08:00:00", "14:00:00"), ("10:00:00", "10:00:00")]
    outside = [("09:00:00", "10:00:00"), ("12:00:00", "13:00:00"), ("12:00:00", "12:00:00"), ("09:00:00", "09:00:00")]
    for (start, end), expected in [*((each, True) for each in inside), *((each, False) for each in outside)]:
        assert overlaps(read_when(f"2026-06-11T{start}Z", f"2026-06-11T{end}Z"), within) is expected


def test_floating_and_all_day_events_are_placed_in_the_zone_of_the_search() -> None:
    day = read_when("2026-06-11", duration="P1D", show_without_time=True)
    evening = read_when("2026-06-11T22:00:00", duration="PT1H", time_zone="floating")
    tokyo = read_range("2026-06-10T15:00:00Z", "2026-06-11T15:00:00Z", "Asia/Tokyo")
    assert overlaps(day, tokyo)
    assert overlaps(evening, tokyo)
    later = read_range("2026-06-11T15:00:00Z", "2026-06-12T15:00:00Z", "Asia/Tokyo")
    assert not overlaps(day, later)
    assert not overlaps(evening, later)
    assert start_instant(day, "Asia/Tokyo") == datetime(2026, 6, 10, 15, tzinfo=UTC)


def test_without_a_zone_they_are_inside_if_they_are_so_anywhere() -> None:
    day = read_when("2026-06-11", duration="P1D", show_without_time=True)
    assert overlaps(day, read_range("2026-06-10T10:00:00Z", "2026-06-10T10:30:00Z"))  # Kiritimati
    assert overlaps(day, read_range("2026-06-12T11:00:00Z", "2026-06-12T11:30:00Z"))  # Baker Island
    assert not overlaps(day, read_range("2026-06-10T09:00:00Z", "2026-06-10T10:00:00Z"))
    assert not overlaps(day, read_range("2026-06-12T12:00:00Z", "2026-06-12T13:00:00Z"))
