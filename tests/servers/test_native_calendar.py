"""The field reports of calendars, through the connected client, on both native backends."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hotplug.catalog import Calendar
from hotplug.catalog.calendar import CalendarEvent, EventRef
from hotplug.connect import link_of
from hotplug.errors import Conflict, InvalidArgument, NotFound, Unsupported

from .native import KINDS, content, opened

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("kind", KINDS)]

JERUSALEM: dict[str, Any] = {
    "title": "Planning",
    "start": "2026-06-11T17:00:00",
    "duration": "PT1H",
    "time_zone": "Asia/Jerusalem",
}
WEEKLY: dict[str, Any] = {
    "title": "Standup",
    "start": "2026-10-19T09:00:00",
    "duration": "PT15M",
    "time_zone": "America/New_York",
    "recurrence_rules": [{"frequency": "weekly", "byDay": [{"day": "mo"}], "count": 4}],
}


async def home(calendar: Calendar) -> Any:
    return (await calendar.calendars()).calendars[0].calendar


async def occurrences(calendar: Calendar, from_: str, to: str) -> list[CalendarEvent]:
    return (await calendar.search(from_, to, expand=True)).events


async def test_fr01_a_time_carries_its_zone(kind: str, tmp_path: Path) -> None:
    async with opened(kind, tmp_path) as calendar:
        where = await home(calendar)
        before = content(kind, tmp_path)
        with pytest.raises(InvalidArgument, match="zone"):
            await calendar.create(calendar=where, title="x", start="2026-06-11T17:00:00", duration="PT1H")
        assert content(kind, tmp_path) == before
        made = await calendar.create(calendar=where, **JERUSALEM)
        event = await calendar.get(made.event)
        assert (event.start, event.time_zone) == ("2026-06-11T17:00:00", "Asia/Jerusalem")
        assert event.utc_start == "2026-06-11T14:00:00Z"
        assert event.utc_end == "2026-06-11T15:00:00Z"


async def test_fr02_all_day_events_are_dates_with_an_exclusive_end(kind: str, tmp_path: Path) -> None:
    async with opened(kind, tmp_path) as calendar:
        where = await home(calendar)
        day: dict[str, Any] = {"start": "2026-09-14", "end": "2026-09-15", "show_without_time": True}
        made = await calendar.create(calendar=where, title="Day", **day)
        for _ in range(2):
            event = await calendar.get(made.event)
            assert (event.start, event.end, event.duration) == ("2026-09-14", "2026-09-15", "P1D")
            assert event.show_without_time
            assert event.utc_start is None
            assert event.end is not None
            await calendar.update(made.event, {"start": event.start, "end": event.end, "show_without_time": True})
        for end in ("2026-09-14", "2026-09-13"):
            with pytest.raises(InvalidArgument):
                await calendar.create(calendar=where, title="Day", **{**day, "end": end})


async def test_fr03_a_change_to_a_series_names_its_scope(kind: str, tmp_path: Path) -> None:
    async with opened(kind, tmp_path) as calendar:
        where = await home(calendar)
        rules: Any = [{"frequency": "weekly", "byDay": [{"day": "mo"}]}]
        start: Any = {**WEEKLY, "start": "2026-08-03T09:00:00", "recurrence_rules": rules}
        made = await calendar.create(calendar=where, **start)
        before = content(kind, tmp_path)
        with pytest.raises(InvalidArgument, match="scope"):
            await calendar.update(made.event, {"title": "x"})
        with pytest.raises(InvalidArgument, match="scope"):
            await calendar.delete(made.event)
        with pytest.raises(InvalidArgument, match="occurrence"):
            await calendar.update(made.event, {"title": "x"}, scope="this")
        assert content(kind, tmp_path) == before
        moved = await calendar.update(
            made.event,
            {
                "start": "2026-10-14T09:00:00",
                "time_zone": "America/New_York",
                "recurrence_rules": [{"frequency": "weekly", "byDay": [{"day": "we"}]}],  # type: ignore[list-item]
            },
            scope="following",
            occurrence="2026-10-12T09:00:00",
        )
        assert moved.scope == "following"
        assert moved.event != made.event
        found = await occurrences(calendar, "2026-08-01T00:00:00Z", "2026-10-29T00:00:00Z")
        assert [event.start[:10] for event in found] == [
            *("2026-08-03", "2026-08-10", "2026-08-17", "2026-08-24", "2026-08-31"),
            *("2026-09-07", "2026-09-14", "2026-09-21", "2026-09-28", "2026-10-05"),
            *("2026-10-14", "2026-10-21", "2026-10-28"),
        ]
        one = await calendar.update(made.event, {"title": "Fourth"}, scope="this", occurrence="2026-08-24T09:00:00")
        assert one.scope == "this"
        titles = [event.title for event in await occurrences(calendar, "2026-08-01T00:00:00Z", "2026-09-10T00:00:00Z")]
        assert titles == ["Standup"] * 3 + ["Fourth"] + ["Standup"] * 2


async def test_fr04_a_field_left_out_stays_and_clearing_is_explicit(kind: str, tmp_path: Path) -> None:
    async with opened(kind, tmp_path) as calendar:
        where = await home(calendar)
        given: Any = {**JERUSALEM, "description": "long", "location": "Room 4"}
        if kind == "sqlite":
            guests = [{"email": "a@example.com"}, {"email": "b@example.com"}]
            given |= {"participants": guests, "notify": "none"}
        given |= {"alerts": [{"offset": "-PT15M", "id": "1"}]}
        made = await calendar.create(calendar=where, **given)
        quiet: Any = {"notify": "none"} if kind == "sqlite" else {}
        await calendar.update(made.event, {"start": "2026-06-11T18:00:00"}, **quiet)
        event = await calendar.get(made.event)
        assert (event.title, event.description, event.location) == ("Planning", "long", "Room 4")
        assert event.utc_start == "2026-06-11T15:00:00Z"
        assert [alert.offset for alert in event.alerts or []] == ["-PT15M"]
        await calendar.update(made.event, {}, add_alerts=[{"offset": "-PT1H", "id": "2"}], **quiet)
        assert [alert.id for alert in (await calendar.get(made.event)).alerts or []] == ["1", "2"]
        await calendar.update(made.event, {}, remove_alerts=["1"], **quiet)
        assert [alert.id for alert in (await calendar.get(made.event)).alerts or []] == ["2"]
        with pytest.raises(NotFound):
            await calendar.update(made.event, {}, remove_alerts=["1"], **quiet)
        with pytest.raises(InvalidArgument):
            await calendar.update(made.event, {}, remove_alerts=["2"], replace_alerts=[], **quiet)
        await calendar.update(made.event, {}, replace_alerts=[{"offset": "-P1D", "id": "9"}], **quiet)
        (alert,) = (await calendar.get(made.event)).alerts or []
        assert (alert.offset, alert.action) == ("-P1D", "display")
        await calendar.update(made.event, {}, clear=["description"], **quiet)
        event = await calendar.get(made.event)
        assert (event.description, event.location) == (None, "Room 4")
        with pytest.raises(InvalidArgument):
            await calendar.update(made.event, {}, clear=["nonsense"], **quiet)
        if kind == "folder":
            with pytest.raises(Unsupported, match="invitations"):
                await calendar.update(made.event, {}, add_participants=[{"email": "c@example.com"}])  # type: ignore[list-item]
            return
        add: Any = [{"email": "c@example.com"}]
        await calendar.update(made.event, {}, add_participants=add, notify="none")
        event = await calendar.get(made.event)
        assert [one.email for one in event.participants or []] == ["a@example.com", "b@example.com", "c@example.com"]
        assert len(event.alerts or []) == 1
        await calendar.update(made.event, {}, remove_participants=["a@example.com"], notify="none")
        replace: Any = [{"email": "d@example.com"}]
        with pytest.raises(InvalidArgument):
            await calendar.update(made.event, {}, add_participants=add, replace_participants=replace, notify="none")
        with pytest.raises(NotFound):
            await calendar.update(made.event, {}, remove_participants=["nobody@example.com"], notify="none")
        await calendar.update(made.event, {}, replace_participants=replace, notify="none")
        event = await calendar.get(made.event)
        assert [one.email for one in event.participants or []] == ["d@example.com"]


async def test_fr05_telling_other_people_is_an_explicit_choice(kind: str, tmp_path: Path) -> None:
    async with opened(kind, tmp_path) as calendar:
        where = await home(calendar)
        guests: Any = [{"email": "a@example.com"}]
        before = content(kind, tmp_path)
        if kind == "folder":
            with pytest.raises(Unsupported):
                await calendar.create(calendar=where, **JERUSALEM, participants=guests, notify="none")
            assert content(kind, tmp_path) == before
            return
        with pytest.raises(InvalidArgument, match="notify"):
            await calendar.create(calendar=where, **JERUSALEM, participants=guests)
        with pytest.raises(Unsupported, match="mail"):
            await calendar.create(calendar=where, **JERUSALEM, participants=guests, notify="all")
        assert content(kind, tmp_path) == before
        made = await calendar.create(calendar=where, **JERUSALEM, participants=guests, notify="none")
        before = content(kind, tmp_path)
        with pytest.raises(InvalidArgument, match="notify"):
            await calendar.update(made.event, {"title": "x"})
        with pytest.raises(InvalidArgument, match="notify"):
            await calendar.delete(made.event)
        with pytest.raises(Unsupported, match="mail"):
            await calendar.delete(made.event, notify="all")
        assert content(kind, tmp_path) == before
        await calendar.update(made.event, {"title": "x"}, notify="none")
        await calendar.delete(made.event, notify="none")


async def test_fr06_a_change_based_on_a_revision_that_moved_is_a_conflict(kind: str, tmp_path: Path) -> None:
    async with opened(kind, tmp_path) as ann, opened(kind, tmp_path) as bob:
        made = await ann.create(calendar=await home(ann), **JERUSALEM)
        read = (await bob.get(made.event)).revision
        assert read == made.revision
        assert read is not None
        written = await ann.update(made.event, {"title": "Ann's"}, revision=read)
        with pytest.raises(Conflict) as caught:
            await bob.update(made.event, {"title": "Bob's"}, revision=read)
        assert caught.value.details["current"] == written.revision
        with pytest.raises(Conflict):
            await bob.delete(made.event, revision=read)
        assert (await bob.get(made.event)).title == "Ann's"


async def test_fr07_three_kinds_of_time_stay_apart(kind: str, tmp_path: Path) -> None:
    async with opened(kind, tmp_path) as calendar:
        where = await home(calendar)
        await calendar.create(calendar=where, **WEEKLY)
        found = await occurrences(calendar, "2026-10-01T00:00:00Z", "2026-12-01T00:00:00Z")
        assert [(event.utc_start or "")[11:] for event in found] == ["13:00:00Z", "13:00:00Z", "14:00:00Z", "14:00:00Z"]
        floating = await calendar.create(
            calendar=where, title="Anywhere", start="2026-06-01T15:00:00", duration="PT1H", time_zone="floating"
        )
        instant = await calendar.create(
            calendar=where, title="Once", start="2026-06-01T15:00:00+02:00", duration="PT1H"
        )
        for _ in range(2):
            event = await calendar.get(floating.event)
            assert (event.start, event.time_zone, event.utc_start) == ("2026-06-01T15:00:00", "floating", None)
            await calendar.update(floating.event, {"start": event.start, "time_zone": "floating"})
            event = await calendar.get(instant.event)
            assert (event.start, event.time_zone) == ("2026-06-01T13:00:00Z", None)
            await calendar.update(instant.event, {"start": event.start})
        zoned = await calendar.create(calendar=where, **JERUSALEM)
        await calendar.update(zoned.event, {"start": "2026-06-12T10:00:00"})
        event = await calendar.get(zoned.event)
        assert (event.time_zone, event.utc_start) == ("Asia/Jerusalem", "2026-06-12T07:00:00Z")


async def test_fr08_the_end_of_a_series_is_in_the_form_of_its_start(kind: str, tmp_path: Path) -> None:
    async with opened(kind, tmp_path) as calendar:
        rules: Any = [{"frequency": "weekly", "until": "2026-12-17T10:00:00"}]
        made = await calendar.create(
            calendar=await home(calendar),
            title="Course",
            start="2026-12-03T10:00:00",
            duration="PT1H",
            time_zone="Europe/Madrid",
            recurrence_rules=rules,
        )
        found = await occurrences(calendar, "2026-12-01T00:00:00Z", "2027-02-01T00:00:00Z")
        assert [event.start[8:10] for event in found] == ["03", "10", "17"]
        (rule,) = (await calendar.get(made.event)).recurrence_rules or []
        assert rule.until == "2026-12-17T10:00:00"
        if kind == "folder":
            (text,) = [body for name, body in content(kind, tmp_path).items() if name.endswith(".ics")]
            assert b"UNTIL=20261217T090000Z" in text


async def test_fr09_deleted_means_deleted_and_remembered(kind: str, tmp_path: Path) -> None:
    async with opened(kind, tmp_path) as calendar, opened(kind, tmp_path) as second:
        where = await home(calendar)
        daily: Any = {
            "title": "Daily",
            "start": "2026-06-01T11:00:00",
            "duration": "PT1H",
            "time_zone": "Europe/Berlin",
            "recurrence_rules": [{"frequency": "daily", "count": 5}],
        }
        made = await calendar.create(calendar=where, **daily)
        gone = await calendar.delete(made.event, scope="this", occurrence="2026-06-03T11:00:00")
        assert gone.scope == "this"
        for reader in (calendar, second):
            found = await occurrences(reader, "2026-06-01T00:00:00Z", "2026-07-01T00:00:00Z")
            assert [event.start[8:10] for event in found] == ["01", "02", "04", "05"]
        await calendar.delete(made.event, scope="all")
        for act in (second.get(made.event), second.delete(made.event), second.update(made.event, {"title": "x"})):
            with pytest.raises(NotFound, match="was deleted") as caught:
                await act
            assert caught.value.details["deleted"] is True
        told = await second.deleted()
        assert [one.event for one in told.deleted] == [made.event]
        assert (await second.deleted(told.cursor)).deleted == []


async def test_fr10_ids_are_opaque_text_from_end_to_end(kind: str, tmp_path: Path) -> None:
    if kind == "folder":
        folder = tmp_path / "calendars" / "810234567890123457"
        folder.mkdir(parents=True)
        (folder / "810234567890123458.ics").write_bytes(
            b"BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:x\r\nBEGIN:VEVENT\r\nUID:810234567890123458\r\n"
            b"DTSTAMP:20260101T000000Z\r\nDTSTART:20260611T140000Z\r\nDTEND:20260611T150000Z\r\nSUMMARY:Digits\r\n"
            b"END:VEVENT\r\nEND:VCALENDAR\r\n"
        )
        async with opened(kind, tmp_path) as calendar:
            (found,) = (await calendar.search("2026-06-11T00:00:00Z", "2026-06-12T00:00:00Z")).events
            assert (await calendar.get(found.event)).title == "Digits"
            await calendar.update(found.event, {"title": "Same"})
            assert b"SUMMARY:Same" in (folder / "810234567890123458.ics").read_bytes()
    async with opened(kind, tmp_path) as calendar:
        made = await calendar.create(calendar=await home(calendar), **JERUSALEM)
        assert isinstance(made.event, EventRef)
        for forged in (made.event[:-1], made.event + "x", "810234567890123458", made.event.upper(), " " + made.event):
            with pytest.raises(NotFound):
                await calendar.get(EventRef(forged))
        channel = link_of(calendar).channel
        reply = await channel.call("calendar.get", {"event": 810234567890123457}, meta={})
        assert (reply.content or {})["code"] == "invalid_argument"
    async with opened(kind, tmp_path) as calendar:
        # The ref holds over a restart.
        assert (await calendar.get(made.event)).title == "Planning"


async def test_null_in_an_override_leaves_a_field_out_of_that_occurrence(kind: str, tmp_path: Path) -> None:
    async with opened(kind, tmp_path) as calendar:
        made = await calendar.create(
            calendar=await home(calendar),
            title="Standup",
            location="Room 1",
            start="2026-10-19T09:00:00",
            time_zone="America/New_York",
            duration="PT1H",
            recurrence_rules=[{"frequency": "weekly", "count": 3}],
            recurrence_overrides={"2026-10-26T09:00:00": {"location": None}},
        )
        found = await calendar.search("2026-10-01T00:00:00Z", "2026-12-01T00:00:00Z", expand=True)

        assert [event.location for event in found.events] == ["Room 1", None, "Room 1"]
        assert (await calendar.get(made.event)).recurrence_overrides == {"2026-10-26T09:00:00": {"location": None}}
