"""This, this and following, all: what is outside the scope doesn't change."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from hotplug.catalog.calendar.records import EventRecord, new_record, to_wire
from hotplug.catalog.calendar.rules import read_occurrence_id
from hotplug.catalog.calendar.scopes import change_all, change_following, change_one, remove_following, remove_one
from hotplug.errors import InvalidArgument, NotFound

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)


def series(rule: dict[str, Any] | None = None, **more: Any) -> EventRecord:
    fields = {
        "calendar": "work",
        "title": "Planning",
        "start": "2026-06-01T09:00:00",
        "duration": "PT1H",
        "timeZone": "Europe/Berlin",
        "recurrenceRules": [rule or {"frequency": "weekly", "byDay": [{"day": "mo"}]}],
    }
    return new_record("e1", {**fields, **more}, NOW)


def starts(record: EventRecord, most: int = 20) -> list[str]:
    return [each.when.wire()["start"] for each, _ in zip(record.series.occurrences(), range(most), strict=False)]


def at(record: EventRecord, text: str) -> datetime:
    return read_occurrence_id(text, record.when)


def test_fr03_this_and_following_keeps_ten_past_mondays() -> None:
    record = series()
    past = starts(record, 10)
    split = at(record, "2026-08-10T09:00:00")
    old, new = change_following(record, split, {"start": "2026-08-12T09:00:00"}, (), "e2")
    assert old is not None
    assert starts(old) == past
    assert starts(new, 3) == ["2026-08-12T09:00:00", "2026-08-19T09:00:00", "2026-08-26T09:00:00"]
    assert (old.uid, new.uid) == ("e1", "e2")
    assert to_wire(old)["recurrenceRules"][0]["until"] == "2026-08-03T09:00:00"


def test_fr03_this_changes_only_the_fourth() -> None:
    record = series({"frequency": "weekly", "count": 6})
    before = starts(record)
    after = change_one(record, at(record, before[3]), {"start": "2026-06-23T11:00:00", "title": "Other"})
    assert starts(after) == [*before[:3], "2026-06-23T11:00:00", *before[4:]]
    wire = to_wire(after)
    assert wire["title"] == "Planning"
    assert wire["recurrenceOverrides"] == {"2026-06-22T09:00:00": {"start": "2026-06-23T11:00:00", "title": "Other"}}


def test_a_change_of_one_occurrence_adds_to_the_one_before() -> None:
    record = series(location="Room 4")
    name = at(record, "2026-06-08T09:00:00")
    moved = change_one(record, name, {"start": "2026-06-09T09:00:00"})
    renamed = change_one(moved, name, {"title": "Other"}, ["location"])
    assert to_wire(renamed)["recurrenceOverrides"]["2026-06-08T09:00:00"] == {
        "start": "2026-06-09T09:00:00",
        "title": "Other",
        "location": None,
    }
    back = change_one(renamed, name, {"start": "2026-06-08T09:00:00", "title": "Planning", "location": "Room 4"})
    assert back == record


def test_one_occurrence_has_no_rules_of_its_own() -> None:
    record = series()
    name = at(record, "2026-06-08T09:00:00")
    for changes in ({"recurrenceRules": []}, {"calendar": "home"}, {"recurrenceOverrides": {}}):
        with pytest.raises(InvalidArgument, match=next(iter(changes))):
            change_one(record, name, changes)
    with pytest.raises(InvalidArgument, match="recurrenceRules"):
        change_one(record, name, {}, ["recurrenceRules"])


def test_what_is_no_occurrence_is_not_found() -> None:
    record = series()
    for wrong in ("2026-06-09T09:00:00", "2026-06-08T10:00:00", "2026-05-25T09:00:00"):
        for act in (
            lambda name: change_one(record, name, {"title": "x"}),
            lambda name: change_all(record, name, {"title": "x"}),
            lambda name: change_following(record, name, {"title": "x"}, (), "e2"),
            lambda name: remove_one(record, name),
            lambda name: remove_following(record, name),
        ):
            with pytest.raises(NotFound):
                act(at(record, wrong))


def test_following_from_the_first_is_all() -> None:
    record = series()
    old, new = change_following(record, at(record, "2026-06-01T09:00:00"), {"title": "Other"}, (), "e2")
    assert old is None
    assert new.uid == "e1"
    assert new.title == "Other"


def test_following_shares_a_count_and_the_exceptions() -> None:
    record = series(
        {"frequency": "weekly", "count": 6},
        recurrenceOverrides={
            "2026-06-08T09:00:00": {"excluded": True},
            "2026-06-22T09:00:00": {"title": "Own", "location": "Hall"},
            "2026-06-29T09:00:00": {"excluded": True},
        },
    )
    whole = starts(record)
    old, new = change_following(record, at(record, "2026-06-22T09:00:00"), {"title": "New"}, (), "e2")
    assert old is not None
    assert starts(old) + starts(new) == whole
    wire = to_wire(new)
    # the occurrence that was edited takes the new title, and keeps what else was its own
    assert wire["recurrenceOverrides"]["2026-06-22T09:00:00"] == {"location": "Hall"}
    assert wire["recurrenceRules"][0]["count"] == 3
    assert to_wire(old)["recurrenceRules"][0]["count"] == 3


def test_all_from_an_occurrence_moves_every_one_by_as_much() -> None:
    record = series({"frequency": "weekly", "count": 3})
    after = change_all(record, at(record, "2026-06-08T09:00:00"), {"start": "2026-06-08T10:30:00", "duration": "PT2H"})
    assert starts(after) == ["2026-06-01T10:30:00", "2026-06-08T10:30:00", "2026-06-15T10:30:00"]
    assert after.when.wire()["end"] == "2026-06-01T12:30:00"
    first = change_all(record, None, {"start": "2026-06-02T09:00:00"})
    assert starts(first) == ["2026-06-02T09:00:00", "2026-06-09T09:00:00", "2026-06-16T09:00:00"]


def test_fr09_a_cancelled_occurrence_is_named_by_the_series_zone_and_start() -> None:
    record = series({"frequency": "daily", "count": 3}, start="2026-10-24T11:00:00")
    gone = remove_one(record, at(record, "2026-10-25T10:00:00Z"))
    assert gone is not None
    assert starts(gone) == ["2026-10-24T11:00:00", "2026-10-26T11:00:00"]
    assert to_wire(gone)["recurrenceOverrides"] == {"2026-10-25T11:00:00": {"excluded": True}}
    with pytest.raises(NotFound, match="was deleted") as caught:
        remove_one(gone, at(gone, "2026-10-25T11:00:00"))
    assert caught.value.details == {"deleted": True}


def test_a_series_without_its_last_occurrence_is_gone() -> None:
    record = series({"frequency": "weekly", "count": 2})
    one = remove_one(record, at(record, "2026-06-01T09:00:00"))
    assert one is not None
    assert starts(one) == ["2026-06-08T09:00:00"]
    assert remove_one(one, at(one, "2026-06-08T09:00:00")) is None
    assert remove_following(record, at(record, "2026-06-01T09:00:00")) is None
    assert remove_following(one, at(one, "2026-06-08T09:00:00")) is None


def test_following_is_removed_from_the_occurrence_on() -> None:
    record = series()
    ended = remove_following(record, at(record, "2026-06-15T09:00:00"))
    assert ended is not None
    assert starts(ended) == ["2026-06-01T09:00:00", "2026-06-08T09:00:00"]


def test_an_occurrence_added_by_itself_has_nothing_that_follows() -> None:
    record = series(recurrenceOverrides={"2026-06-20T12:00:00": {"title": "Extra"}})
    name = at(record, "2026-06-20T12:00:00")
    with pytest.raises(InvalidArgument, match="added by itself"):
        change_following(record, name, {"title": "x"}, (), "e2")
    assert starts(remove_one(record, name) or record, 4) == starts(series(), 4)
