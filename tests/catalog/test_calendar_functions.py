"""The functions that expressions of projections may call."""

from __future__ import annotations

from typing import Any

import pytest

from hotplug.catalog.calendar.functions import FUNCTIONS
from hotplug.errors import InvalidArgument

INSTANT = {"start": "2026-10-26T13:00:00Z", "duration": "PT1H"}


def call(name: str, *arguments: Any) -> Any:
    return FUNCTIONS[name](*arguments)


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        (INSTANT, "instant"),
        ({"start": "2026-10-26T09:00:00", "duration": "PT1H", "timeZone": "Europe/Berlin"}, "zoned"),
        ({"start": "2026-10-26T09:00:00", "end": "2026-10-26T10:00:00", "timeZone": "floating"}, "floating"),
        ({"start": "2026-10-26", "end": "2026-10-27", "showWithoutTime": True}, "allDay"),
    ],
)
def test_when_tells_the_kind_of_time_and_both_end_and_duration(given: dict[str, Any], kind: str) -> None:
    found = call("when", given)
    assert found["kind"] == kind
    assert found["end"]
    assert found["duration"]
    assert ("utcStart" in found) == (kind in {"instant", "zoned"})


@pytest.mark.parametrize(
    "given",
    [
        None,
        {},
        {"start": "2026-10-26T09:00:00", "duration": "PT1H"},
        {"start": "2026-10-26T13:00:00.5Z", "duration": "PT1H"},
        {"start": "2026-10-26T13:00:00Z"},
        {**INSTANT, "end": "2026-10-26T14:00:00Z"},
    ],
)
def test_when_refuses_what_says_no_time(given: Any) -> None:
    with pytest.raises(InvalidArgument):
        call("when", given)


def test_a_changed_start_keeps_the_length_and_a_changed_end_the_start() -> None:
    event = {"start": "2026-10-26T13:00:00Z", "end": "2026-10-26T14:00:00Z", "duration": "PT1H"}
    assert call("changed", {"start": "2026-10-27T08:00:00Z"}, event)["end"] == "2026-10-27T09:00:00Z"
    assert call("changed", {"end": "2026-10-26T15:00:00Z"}, event)["duration"] == "PT2H"
    assert call("changed", {}, event)["start"] == "2026-10-26T13:00:00Z"


def test_a_changed_start_keeps_the_zone_unless_a_new_one_is_given_fr_07() -> None:
    event = {"start": "2026-10-26T09:00:00", "duration": "PT1H", "timeZone": "Europe/Berlin"}
    assert call("changed", {"start": "2026-10-27T10:00:00"}, event)["timeZone"] == "Europe/Berlin"
    floats = call("changed", {"start": "2026-10-27T10:00:00", "timeZone": "floating"}, event)
    assert floats["kind"] == "floating"
    same = call("changed", {"start": "2026-10-27T10:00:00Z"}, event)
    assert (same["start"], same["timeZone"]) == ("2026-10-27T11:00:00", "Europe/Berlin")


def test_a_changed_day_stays_a_day() -> None:
    event = {"start": "2026-10-26", "end": "2026-10-28", "duration": "P2D", "showWithoutTime": True}
    moved = call("changed", {"start": "2026-10-27"}, event)
    assert (moved["kind"], moved["end"]) == ("allDay", "2026-10-29")
    with pytest.raises(InvalidArgument):
        call("changed", {"start": "2026-10-27T09:00:00Z"}, event)
    timed = {"start": "2026-10-27T09:00:00Z", "duration": "PT1H", "showWithoutTime": False}
    assert call("changed", timed, event)["kind"] == "instant"


def test_a_length_that_is_not_shown_has_to_be_given() -> None:
    event = {"start": "2026-10-26T13:00:00Z"}
    assert call("changed", {"end": "2026-10-26T14:00:00Z"}, event)["duration"] == "PT1H"
    with pytest.raises(InvalidArgument, match="no length"):
        call("changed", {"start": "2026-10-26T13:00:00Z"}, event)


def test_a_new_date_for_an_all_day_event_keeps_it_all_day() -> None:
    event = {"start": "2026-10-26", "end": "2026-10-29", "duration": "P3D", "showWithoutTime": True}
    moved = call("changed", {"start": "2026-10-27"}, event)
    assert (moved["kind"], moved["start"], moved["end"]) == ("allDay", "2026-10-27", "2026-10-30")


def test_instants_are_written_in_utc_and_added_to_within_the_years_there_are() -> None:
    assert call("utc", "2026-10-26T09:00:00.000+01:00") == "2026-10-26T08:00:00Z"
    assert call("plusSeconds", "2026-10-26T00:00:00Z", -1) == "2026-10-25T23:59:59Z"
    assert call("plusSeconds", "2026-10-26T00:00:00Z", 90.0) == "2026-10-26T00:01:30Z"
    assert call("plusSeconds", "9999-12-31T23:00:00Z", 7200) == "9999-12-31T23:59:59Z"
    assert call("plusSeconds", "0001-01-01T00:00:00Z", -1) == "0001-01-01T00:00:00Z"
    assert call("local", "2026-10-25T00:30:00Z", "Europe/Berlin") == "2026-10-25T02:30:00"
    with pytest.raises(InvalidArgument, match="no offset"):
        call("utc", "2026-10-26T09:00:00")
    with pytest.raises(InvalidArgument, match="takes a text"):
        call("utc", 5)


def test_bounds_are_the_instants_of_a_range() -> None:
    found = call("bounds", {"from": "2026-10-25", "to": "2026-10-26", "timeZone": "Europe/Berlin"})
    assert found == {"from": "2026-10-24T22:00:00Z", "to": "2026-10-25T23:00:00Z"}
    with pytest.raises(InvalidArgument):
        call("bounds", {"from": "2026-10-25", "to": "2026-10-26"})


def test_an_event_is_in_a_range_by_its_kind_of_time() -> None:
    day = {"from": "2026-10-26T00:00:00Z", "to": "2026-10-27T00:00:00Z"}
    assert call("inRange", INSTANT, day)
    assert not call("inRange", {"start": "2026-10-25T23:00:00Z", "end": "2026-10-26T00:00:00Z"}, day)
    floating = {"start": "2026-10-27T09:00:00", "duration": "PT1H", "timeZone": "floating"}
    assert call("inRange", floating, day)
    berlin = {"from": "2026-10-26", "to": "2026-10-27", "timeZone": "Europe/Berlin"}
    assert not call("inRange", floating, berlin)


def test_a_query_is_found_in_title_description_and_location_without_regard_to_case() -> None:
    event = {"title": "Straße", "description": "b", "location": None}
    assert call("mentions", event, "STRASSE")
    assert call("mentions", event, None)
    assert not call("mentions", event, "berlin")
    assert not call("mentions", event, "none")


def test_days_are_added_to_dates() -> None:
    assert call("daysAfter", "2026-10-31", 1) == "2026-11-01"
    assert call("daysAfter", "2026-11-01", -1) == "2026-10-31"
    with pytest.raises(InvalidArgument):
        call("daysAfter", "2026-10-31T00:00:00Z", 1)
