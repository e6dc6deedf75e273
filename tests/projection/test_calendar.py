"""What projections of calendars share."""

from __future__ import annotations

from typing import Any

import pytest

from hotplug.errors import Internal, InvalidArgument, Unsupported
from hotplug.projection.calendar import (
    Ours,
    cleaned,
    clears,
    in_four_digits,
    lies_in,
    moved,
    not_kept,
    page,
    refuse_losses,
    refuse_series,
    require_kept,
    second_after,
    shown,
    time_of,
)

HOUR = {"start": "2026-10-26T13:00:00Z", "duration": "PT1H"}
DAY = {"from": "2026-10-26T00:00:00Z", "to": "2026-10-27T00:00:00Z"}


def lost(caught: pytest.ExceptionInfo[Unsupported]) -> list[str]:
    return caught.value.details["lost"]


def test_a_loss_passes_only_where_each_name_is_accepted() -> None:
    with pytest.raises(Unsupported) as caught:
        refuse_losses({"accept": ["status"]}, ["timeZone", "status", "timeZone"], "no")
    assert lost(caught) == ["timeZone"]
    refuse_losses({"accept": ["status", "timeZone"]}, ["timeZone", "status"], "no")
    refuse_losses({}, [], "no")


def test_a_series_and_what_may_be_one_are_refused_by_different_names() -> None:
    with pytest.raises(Unsupported) as series:
        refuse_series({}, {"recurring": True}, "deleted")
    with pytest.raises(Unsupported) as perhaps:
        refuse_series({"accept": ["recurrenceRules"]}, {"unknown": ["recurring"]}, "deleted")
    assert (lost(series), lost(perhaps)) == (["recurrenceRules"], ["recurring"])
    refuse_series({}, {"recurring": False}, "deleted")


def test_texts_end_their_lines_as_icalendar_does_and_have_no_other_control_characters() -> None:
    given = {"title": "a\tb", "description": "one\r\ntwo\nthree", "start": "x\ry"}
    assert cleaned(given) == {"title": "a\tb", "description": "one\ntwo\nthree", "start": "x\ry"}
    for text in ("a\rb", "\x00", "\x0b", "\x7f", "a\r\r\nb"):
        with pytest.raises(InvalidArgument, match=r"location has the control character U\+"):
            cleaned({"location": text})


def test_what_can_be_emptied_is_named_once_and_not_set_at_the_same_time() -> None:
    assert clears({"clear": ["location", "location", "status"]}, {}) == ["location", "status"]
    with pytest.raises(InvalidArgument, match="start"):
        clears({"clear": ["start"]}, {})
    with pytest.raises(InvalidArgument, match="both"):
        clears({"clear": ["location"]}, {"location": "x"})


def test_a_kind_of_time_that_is_not_kept_is_refused_with_the_field_that_says_it() -> None:
    zoned = {"start": "2026-10-26T09:00:00", "duration": "PT1H", "timeZone": "Europe/Berlin"}
    with pytest.raises(Unsupported) as caught:
        time_of(zoned, ["instant"], server="x", lost=["status"])
    assert lost(caught) == ["timeZone", "status"]
    kept = time_of({**zoned, "accept": ["timeZone"]}, ["instant"], server="x")
    assert (kept["kind"], kept["start"], kept["end"]) == ("instant", "2026-10-26T08:00:00Z", "2026-10-26T09:00:00Z")
    assert time_of(zoned, ["zoned"], server="x")["timeZone"] == "Europe/Berlin"


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"start": "2026-10-26T09:00:00", "duration": "PT1H", "timeZone": "floating"}, "timeZone"),
        ({"start": "2026-10-26", "duration": "P1D", "showWithoutTime": True}, "showWithoutTime"),
    ],
)
def test_a_time_of_no_instant_is_refused_whatever_is_accepted(given: dict[str, Any], name: str) -> None:
    with pytest.raises(Unsupported) as caught:
        time_of({**given, "accept": [name]}, ["instant"], server="x")
    assert lost(caught) == [name]


def test_a_start_alone_moves_an_event_and_no_time_changes_nothing() -> None:
    event = {"start": "2026-10-26T13:00:00Z", "end": "2026-10-26T14:30:00Z", "duration": "PT1H30M"}
    found = moved({"changes": {"start": "2026-10-27T09:00:00Z"}}, event, ["instant"], server="x")
    assert found is not None
    assert found["end"] == "2026-10-27T10:30:00Z"
    assert moved({"changes": {"title": "t"}}, event, ["instant"], server="x") is None
    with pytest.raises(Unsupported):
        moved({"changes": {"title": "t"}}, event, ["instant"], server="x", lost=["alerts"])
    with pytest.raises(InvalidArgument, match="shows no end"):
        moved({"changes": {"start": "2026-10-27T09:00:00Z"}}, {"start": event["start"]}, ["instant"], server="x")


def test_years_that_would_lose_their_zeros_are_refused() -> None:
    assert in_four_digits({"start": "1000-01-01"}, server="x") == {"start": "1000-01-01"}
    with pytest.raises(Unsupported):
        in_four_digits({"start": "0999-12-31T23:59:59Z"}, server="x")


def test_an_end_that_is_not_shown_or_cannot_be_is_unknown() -> None:
    fields, unknown = shown("instant", "2026-10-26T13:00:00.000Z", "2026-10-26T14:00:00+00:00")
    assert (fields["start"], fields["duration"], unknown) == ("2026-10-26T13:00:00Z", "PT1H", [])
    for end in (None, "", "2026-10-26T12:00:00Z"):
        fields, unknown = shown("instant", "2026-10-26T13:00:00Z", end)
        assert fields == {"start": "2026-10-26T13:00:00Z", "utcStart": "2026-10-26T13:00:00Z"}
        assert unknown == ["end", "duration"]
    assert shown("allDay", "2026-10-26", None)[0] == {"start": "2026-10-26", "showWithoutTime": True}
    assert shown("floating", "2026-10-26T09:00:00", None)[0]["timeZone"] == "floating"
    with pytest.raises(Internal):
        shown("instant", "tomorrow", None)


def test_what_was_not_kept_is_named_fr_15() -> None:
    asked = {
        "title": "t",
        "start": "2026-10-26T14:00:00+01:00",
        "location": "l",
        "description": "",
        "status": "confirmed",
    }
    found = {"title": "t", "start": "2026-10-26T13:00:00Z", "unknown": ["status"]}
    assert not_kept(asked, found) == ["location"]
    with pytest.raises(Internal) as caught:
        require_kept(asked, found, accept=[], server="x")
    assert caught.value.details["lost"] == ["location"]
    require_kept(asked, found, accept=["location"], server="x")


async def _memory_of_a_runtime(ours: Ours) -> list[Any]:
    await ours.remember({"calendar": "c", "uid": "u"}, {"etag": "1"})
    seen = [await ours.recall({"uid": "u", "calendar": "c"}), await ours.recall("other")]
    await ours.forget({"calendar": "c", "uid": "u"})
    return [*seen, await ours.recall({"calendar": "c", "uid": "u"})]


@pytest.mark.anyio
async def test_our_own_writes_are_known_by_their_handles_until_they_are_forgotten() -> None:
    class Provider:
        memory = None

    assert await _memory_of_a_runtime(Ours(Provider())) == [{"etag": "1"}, None, None]


def test_a_range_includes_its_beginning_and_excludes_its_end() -> None:
    assert lies_in("2026-10-25T23:00:00Z", "2026-10-26T00:00:01Z", DAY)
    assert not lies_in("2026-10-25T23:00:00Z", "2026-10-26T00:00:00Z", DAY)
    assert lies_in("2026-10-26T00:00:00Z", "2026-10-26T00:00:00Z", DAY)
    assert not lies_in("2026-10-27T00:00:00Z", "2026-10-27T00:00:00Z", DAY)
    assert second_after("9999-12-31T23:59:59Z") == "9999-12-31T23:59:59Z"


def event(name: str, start: str, **fields: Any) -> dict[str, Any]:
    return {"event": name, "title": name, "start": start, "duration": "PT1H", **fields}


def test_pages_are_in_order_and_stay_so_while_events_come_and_go() -> None:
    events = [event(name, f"2026-10-26T{hour}:00:00Z") for name, hour in (("c", 12), ("a", 10), ("b", 12), ("d", 13))]
    outside = event("before", "2026-10-25T10:00:00Z")
    first = page([*events, outside], {**DAY, "limit": 2})
    assert [one["event"] for one in first["events"]] == ["a", "b"]
    later = [*events[:1], *events[3:], event("new", "2026-10-26T09:00:00Z")]
    rest = page(later, {**DAY, "limit": 2, "cursor": first["cursor"]})
    assert ([one["event"] for one in rest["events"]], "cursor" in rest) == (["c", "d"], False)
    always = page([], DAY, always=[outside])
    assert always["events"] == [outside]
    assert page([], {**DAY, "query": "AFTER"}, always=[outside])["events"] == []


@pytest.mark.parametrize("cursor", ["", "x", "bm9uc2Vuc2U", "W10", "WzEsMl0"])
def test_a_cursor_of_somebody_else_is_refused(cursor: str) -> None:
    with pytest.raises(InvalidArgument, match="cursor"):
        page([], {**DAY, "cursor": cursor})


def test_what_shows_no_end_lies_at_its_start() -> None:
    endless = {"event": "e", "title": "e", "start": "2026-10-26T23:59:59Z", "unknown": ["end", "duration"]}
    assert page([endless], DAY)["events"] == [endless]
