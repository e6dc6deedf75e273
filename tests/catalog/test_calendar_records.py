"""Events as values: what fields make them, what changes do, what is given back."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from hotplug.catalog.calendar.records import EventRecord, apply_changes, new_record, occurrence_to_wire, to_wire
from hotplug.errors import InvalidArgument

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
MEETING = {
    "calendar": "work",
    "title": "Planning",
    "start": "2026-06-11T17:00:00",
    "duration": "PT1H",
    "timeZone": "Asia/Jerusalem",
    "description": "with *notes*",
    "location": "Room 4",
    "participants": {"a": {"email": "a@example.org"}, "b": {"email": "b@example.org"}},
    "alerts": {"1": {"trigger": {"@type": "OffsetTrigger", "offset": "-PT15M"}}},
}
WEEKLY = {**MEETING, "start": "2026-06-01T09:00:00", "recurrenceRules": [{"frequency": "weekly", "count": 10}]}
DAY = {"calendar": "work", "title": "Fair", "start": "2026-09-14", "end": "2026-09-15", "showWithoutTime": True}


def make(fields: dict[str, Any], **more: Any) -> EventRecord:
    return new_record("e1", {**fields, **more}, NOW)


def changed(record: EventRecord, *clear: str, **changes: Any) -> dict[str, Any]:
    return to_wire(apply_changes(record, changes, clear))


def test_an_event_gives_back_what_it_was_made_of() -> None:
    wire = to_wire(make(MEETING))
    assert {name: wire[name] for name in MEETING} == MEETING
    assert wire["event"] == "e1"
    assert wire["recurring"] is False
    assert wire["utcStart"] == "2026-06-11T14:00:00Z"
    assert "status" not in wire


def test_a_create_without_what_an_event_must_have_is_refused() -> None:
    for name in ("calendar", "title", "start"):
        with pytest.raises(InvalidArgument, match=name):
            make({key: value for key, value in MEETING.items() if key != name})


def test_names_and_values_that_are_none_are_refused() -> None:
    for name, value in {"colour": "red", "status": "maybe", "freeBusyStatus": "away", "title": "half \ud83d"}.items():
        with pytest.raises(InvalidArgument, match=name):
            make(MEETING, **{name: value})
        with pytest.raises(InvalidArgument, match=name):
            apply_changes(make(MEETING), {name: value})


def test_fr04_what_is_left_out_of_a_change_stays() -> None:
    before = to_wire(make(MEETING))
    after = changed(make(MEETING), start="2026-06-12T10:00:00")
    assert after["start"] == "2026-06-12T10:00:00"
    assert after["end"] == "2026-06-12T11:00:00"
    for name in ("title", "participants", "alerts", "description", "location", "timeZone", "duration"):
        assert after[name] == before[name]


def test_fr04_clearing_is_explicit() -> None:
    after = changed(make(MEETING), "location", "alerts", title="Other")
    assert "location" not in after
    assert "alerts" not in after
    assert after["description"] == MEETING["description"]
    assert changed(make(MEETING), location=None)["location"] == "Room 4"
    assert changed(make(MEETING), location="")["location"] == ""
    for wrong in ("title", "start", "duration", "colour"):
        with pytest.raises(InvalidArgument, match=wrong):
            apply_changes(make(MEETING), {}, [wrong])
    with pytest.raises(InvalidArgument, match="both"):
        apply_changes(make(MEETING), {"location": "x"}, ["location"])


def test_fr02_an_all_day_event_written_back_unchanged_is_unchanged() -> None:
    wire = to_wire(make(DAY))
    assert (wire["start"], wire["end"], wire["duration"]) == ("2026-09-14", "2026-09-15", "P1D")
    assert changed(make(DAY), start=wire["start"], end=wire["end"]) == wire


def test_fr07_an_edit_keeps_the_zone_unless_a_new_one_is_given() -> None:
    record = make(MEETING)
    assert changed(record, start="2026-06-12T10:00:00")["utcStart"] == "2026-06-12T07:00:00Z"
    # an offset says the instant; the zone stays the event's own
    by_instant = changed(record, start="2026-06-12T07:00:00Z", end="2026-06-12T10:30:00+02:00")
    assert (by_instant["start"], by_instant["timeZone"]) == ("2026-06-12T10:00:00", "Asia/Jerusalem")
    assert by_instant["duration"] == "PT1H30M"
    # a new zone keeps the wall time
    moved = changed(record, timeZone="America/New_York")
    assert (moved["start"], moved["utcStart"]) == ("2026-06-11T17:00:00", "2026-06-11T21:00:00Z")
    # cleared: the instant that it was
    instant = changed(record, "timeZone")
    assert instant["start"] == "2026-06-11T14:00:00Z"
    assert "timeZone" not in instant


def test_fr07_floating_stays_floating() -> None:
    record = make(MEETING, start="2026-06-11T15:00:00", timeZone="floating")
    wire = to_wire(record)
    assert changed(record, start=wire["start"], duration=wire["duration"]) == wire
    assert "utcStart" not in wire
    with pytest.raises(InvalidArgument, match="offset"):
        apply_changes(record, {"start": "2026-06-11T15:00:00Z"})
    with pytest.raises(InvalidArgument, match="neither zone nor offset"):
        apply_changes(record, {}, ["timeZone"])


def test_an_instant_that_gets_a_zone_stays_the_instant() -> None:
    record = new_record(
        "e1", {"calendar": "work", "title": "x", "start": "2026-06-11T14:00:00Z", "duration": "PT1H"}, NOW
    )
    wire = changed(record, timeZone="Asia/Jerusalem")
    assert (wire["start"], wire["utcStart"]) == ("2026-06-11T17:00:00", "2026-06-11T14:00:00Z")


def test_timed_and_all_day_become_each_other_only_with_new_times() -> None:
    with pytest.raises(InvalidArgument, match="needs a start"):
        apply_changes(make(MEETING), {"showWithoutTime": True})
    wire = changed(make(MEETING), showWithoutTime=True, start="2026-06-11", duration="P2D")
    assert (wire["start"], wire["end"]) == ("2026-06-11", "2026-06-13")
    assert "timeZone" not in wire
    with pytest.raises(InvalidArgument, match="needs a start"):
        apply_changes(make(DAY), {}, ["showWithoutTime"])
    timed = changed(
        make(DAY), showWithoutTime=False, start="2026-09-14T10:00:00", duration="PT1H", timeZone="Europe/Berlin"
    )
    assert timed["utcStart"] == "2026-09-14T08:00:00Z"


def test_an_end_before_the_start_that_stays_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="before the start"):
        apply_changes(make(MEETING), {"end": "2026-06-11T16:00:00"})
    with pytest.raises(InvalidArgument, match="exactly one"):
        apply_changes(make(MEETING), {"end": "2026-06-11T19:00:00", "duration": "PT2H"})


def test_a_series_gives_back_its_rules_and_exceptions() -> None:
    overrides = {
        "2026-06-08T09:00:00": {"excluded": True},
        "2026-06-15T09:00:00": {"start": "2026-06-16T10:00:00", "title": "Moved", "location": None},
        "2026-06-20T12:00:00": {},
        "2026-06-22T09:00:00": {"start": "2026-06-22T09:00:00", "timeZone": "Europe/Berlin"},
        "2026-06-29T09:00:00": {"showWithoutTime": True, "start": "2026-06-29", "duration": "P1D"},
        "2026-07-06T09:00:00": {"timeZone": None, "start": "2026-07-06T06:00:00Z"},
    }
    wire = to_wire(make(WEEKLY, recurrenceOverrides=overrides))
    assert wire["recurring"] is True
    assert wire["recurrenceRules"] == WEEKLY["recurrenceRules"]
    assert wire["recurrenceOverrides"] == overrides
    again = make(WEEKLY, recurrenceOverrides=wire["recurrenceOverrides"])
    assert again == make(WEEKLY, recurrenceOverrides=overrides)


@pytest.mark.parametrize(
    "overrides",
    [
        {"2026-06-08": {"excluded": True}},
        {"2026-06-08T09:00:00": {"excluded": True, "title": "x"}},
        {"2026-06-08T09:00:00": {"recurrenceRules": []}},
        {"2026-06-08T09:00:00": {"title": None}},
        {"2026-06-08T09:00:00": {"status": "maybe"}},
        {"2026-06-08T09:00:00": {"end": "2026-06-08T08:00:00"}},
        {"2026-06-08T09:00:00": {}, "2026-06-08T06:00:00Z": {}},
    ],
)
def test_an_exception_that_is_none_is_refused(overrides: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument):
        make(WEEKLY, recurrenceOverrides=overrides)


def test_an_occurrence_has_its_own_time_fields_and_name() -> None:
    record = make(
        WEEKLY,
        recurrenceOverrides={
            "2026-06-08T09:00:00": {"start": "2026-06-09T10:00:00", "title": "Moved", "location": None}
        },
    )
    first, second, *_ = [occurrence_to_wire(record, each) for each in record.series.occurrences()]
    assert (first["occurrence"], first["title"], first["location"]) == ("2026-06-01T09:00:00", "Planning", "Room 4")
    assert (second["occurrence"], second["start"], second["title"]) == (
        "2026-06-08T09:00:00",
        "2026-06-09T10:00:00",
        "Moved",
    )
    assert "location" not in second
    assert "recurrenceRules" not in second
    assert second["event"] == "e1"


def test_exceptions_move_along_with_the_whole_series() -> None:
    record = make(WEEKLY, recurrenceOverrides={"2026-06-08T09:00:00": {"excluded": True}})
    wire = changed(record, start="2026-06-03T10:00:00")
    assert list(wire["recurrenceOverrides"]) == ["2026-06-10T10:00:00"]


def test_new_rules_that_would_lose_a_changed_occurrence_are_refused() -> None:
    record = make(WEEKLY, recurrenceOverrides={"2026-06-08T09:00:00": {"title": "Other"}})
    fortnightly = [{"frequency": "weekly", "interval": 2, "count": 5}]
    with pytest.raises(InvalidArgument) as caught:
        apply_changes(record, {"recurrenceRules": fortnightly})
    assert caught.value.details["occurrence"] == "2026-06-08T09:00:00"
    wire = changed(record, "recurrenceOverrides", recurrenceRules=fortnightly)
    assert "recurrenceOverrides" not in wire


def test_a_rule_that_no_longer_fits_the_start_is_refused() -> None:
    monthly = make(MEETING, start="2026-06-15T09:00:00", recurrenceRules=[{"frequency": "monthly", "byMonthDay": [15]}])
    with pytest.raises(InvalidArgument) as caught:
        apply_changes(monthly, {"start": "2026-06-16T09:00:00"})
    assert caught.value.details["first"] == "2026-07-15T09:00:00"


def test_a_series_that_would_recur_on_no_zones_clock_is_refused() -> None:
    fields = {"calendar": "work", "title": "x", "duration": "PT1H", "recurrenceRules": [{"frequency": "weekly"}]}
    with pytest.raises(InvalidArgument, match="no zone's clock"):
        new_record("e1", {**fields, "start": "2026-06-11T14:00:00+02:00"}, NOW)
    new_record("e1", {**fields, "start": "2026-06-11T14:00:00Z"}, NOW)


def test_an_exception_that_says_what_is_so_anyway_goes() -> None:
    record = make(WEEKLY, recurrenceOverrides={"2026-06-08T09:00:00": {"title": "Other"}, "2026-06-15T09:00:00": {}})
    assert list(to_wire(record)["recurrenceOverrides"]) == ["2026-06-08T09:00:00"]
    assert "recurrenceOverrides" not in changed(record, title="Other")


def test_alerts_have_one_form() -> None:
    alerts = {
        "a": {"@type": "Alert", "trigger": {"offset": "-PT90M", "relativeTo": "start"}, "action": "display"},
        "b": {"trigger": {"@type": "OffsetTrigger", "offset": "+P1W", "relativeTo": "end"}, "action": "email"},
        "c": {"trigger": {"when": "2026-06-11T15:00:00+02:00"}, "acknowledged": "2026-06-11T13:05:00Z"},
    }
    told = {
        "a": {"trigger": {"@type": "OffsetTrigger", "offset": "-PT1H30M"}},
        "b": {"trigger": {"@type": "OffsetTrigger", "offset": "P7D", "relativeTo": "end"}, "action": "email"},
        "c": {
            "trigger": {"@type": "AbsoluteTrigger", "when": "2026-06-11T13:00:00Z"},
            "acknowledged": "2026-06-11T13:05:00Z",
        },
    }
    assert to_wire(make(MEETING, alerts=alerts))["alerts"] == told
    assert to_wire(make(MEETING, alerts=told))["alerts"] == told


@pytest.mark.parametrize(
    "alert",
    [
        {},
        None,
        {"trigger": {}},
        {"trigger": {"offset": "15 minutes"}},
        {"trigger": {"offset": "-PT15M", "when": "2026-06-11T13:00:00Z"}},
        {"trigger": {"when": "2026-06-11T13:00:00"}},
        {"trigger": {"offset": "-PT15M", "relativeTo": "middle"}},
        {"trigger": {"offset": "-PT15M"}, "action": "audio"},
        {"trigger": {"offset": "-PT15M"}, "sound": "x"},
    ],
)
def test_an_alert_that_is_none_is_refused(alert: Any) -> None:
    with pytest.raises(InvalidArgument):
        make(MEETING, alerts={"1": alert})
