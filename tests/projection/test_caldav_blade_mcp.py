"""caldav-blade-mcp 0.4.0 as a calendar: what is its own, beside what test_published_calendars.py asks of several."""

from __future__ import annotations

from typing import Any

import pytest

from hotplug.catalog.calendar import Calendar
from hotplug.errors import Ambiguous, Internal, PermissionDenied, TooLarge
from hotplug.projection.library.caldav_blade_mcp import parse
from hotplug.store import Store
from hotplug.testing import RadicaleServer

from .published_calendar import (
    BLADE,
    HOUR,
    WEEK,
    foreign,
    only,
    only_lines,
    opened,
    refused,
    texts,
)

pytestmark = [pytest.mark.anyio, pytest.mark.real]

SERVER = BLADE


HOSTILE: dict[str, Any] = {
    "title": "  Ünï – | uid=x\n, ; \\ ☕ <b>&amp;</b>",
    "location": "Room\nDescription: of the room",
    "description": "one\r\nTime: 09:00-10:00\nStart: 1999-01-01\n\nUID: other\nSequence: 9\nAttendee: A <a> (B)",
}


async def test_our_own_texts_come_back_exactly_even_where_they_look_like_the_answer(cal: Calendar, home: Any) -> None:
    made = await cal.create(calendar=home, **HOUR, **HOSTILE)
    event = await cal.get(made.event)
    assert (event.title, event.location) == (HOSTILE["title"], HOSTILE["location"])
    assert event.description == HOSTILE["description"].replace("\r\n", "\n")
    assert event.unknown == ["status", "freeBusyStatus"]
    assert await only(cal) == event
    await cal.update(made.event, {"title": "Plain"}, clear=["description", "location"])
    event = await cal.get(made.event)
    assert (event.title, event.description, event.location) == ("Plain", None, None)


async def test_texts_of_others_that_cannot_be_told_apart_are_named_in_unknown(
    cal: Calendar, server: RadicaleServer
) -> None:
    times = ("DTSTART:20261026T090000Z", "DTEND:20261026T100000Z")
    await foreign(server, "a", *times, "SUMMARY:A", "LOCATION:x\\nDescription: y", "DESCRIPTION:z")
    event = await only(cal)
    assert (event.title, event.start) == ("A", "2026-10-26T09:00:00Z")
    assert {"description", "location"} <= set(event.unknown or ())
    await foreign(server, "a", *times, "SUMMARY:A\\nTime: 08:00-09:00\\nStart: 2026-10-26T08:00:00+00:00")
    event = await only(cal)
    assert {"title", "start", "end", "timeZone", "utcStart"} <= set(event.unknown or ())


async def test_a_time_of_another_client_that_may_be_floating_is_no_known_instant(
    cal: Calendar, server: RadicaleServer
) -> None:
    floating = {"DTSTART:20261026T090000", "DTEND:20261026T100000"}
    await foreign(server, "f", *floating, "SUMMARY:Floating")
    found = await only(cal)
    event = await cal.get(found.event)
    assert (event.start, event.utc_start, event.time_zone) == ("2026-10-26T09:00:00Z", None, None)
    assert event.unknown == ["timeZone", "utcStart", "utcEnd", "status", "freeBusyStatus"]
    await cal.update(event.event, {"location": "Anywhere"})
    assert floating | {"LOCATION:Anywhere"} <= await only_lines(server)
    assert "timeZone" in ((await cal.get(found.event)).unknown or ())
    assert await refused(cal.update(event.event, {"start": "2026-10-26T11:00:00Z"})) == ["timeZone"]
    assert floating <= await only_lines(server)
    await cal.update(event.event, {"start": "2026-10-26T11:00:00Z"}, accept=["timeZone"])
    assert {"DTSTART:20261026T110000Z", "DTEND:20261026T120000Z"} <= await only_lines(server)
    assert (await cal.get(found.event)).utc_start == "2026-10-26T11:00:00Z"


async def test_an_event_without_a_shown_end_says_so_and_new_times_for_it_change_nothing(
    cal: Calendar, server: RadicaleServer
) -> None:
    stored = {"DTSTART:20261026T150000Z", "SUMMARY:Long"}
    await foreign(server, "l", *stored, "DURATION:PT90M")
    found = await only(cal)
    assert (found.end, found.duration) == (None, None)
    assert {"end", "duration", "recurring"} <= set(found.unknown or ())
    assert await refused(cal.update(found.event, {"title": "x"})) == ["recurring"]
    with pytest.raises(Internal, match="nothing was changed"):
        await cal.update(
            found.event,
            {"start": "2026-10-26T16:00:00Z", "end": "2026-10-26T17:00:00Z"},
            accept=["recurring", "timeZone"],
        )
    assert stored <= await only_lines(server)


async def test_a_range_with_too_many_events_is_refused_and_not_cut_short(cal: Calendar, server: RadicaleServer) -> None:
    for number in range(61):
        times = (f"DTSTART:20261026T09{number % 60:02d}00Z", "DTEND:20261026T110000Z")
        await foreign(server, f"n{number}", *times, f"SUMMARY:{number}")
    with pytest.raises(TooLarge, match="shorter range"):
        await cal.search(*WEEK)


async def test_texts_over_the_limit_are_too_large_before_anything_is_written(
    cal: Calendar, home: Any, server: RadicaleServer
) -> None:
    with pytest.raises(TooLarge):
        await cal.create(calendar=home, title="x" * 501, **HOUR)
    with pytest.raises(TooLarge):
        await cal.create(calendar=home, title="x", description="x" * 5001, **HOUR)
    assert await texts(server) == []


async def test_a_calendar_whose_identifier_is_the_name_of_another_is_ambiguous(
    cal: Calendar, home: Any, server: RadicaleServer
) -> None:
    await server.add_calendar("aaa", "home")
    try:
        found = {one.name: one.writable for one in (await cal.calendars()).calendars}
        assert found == {"Home": False, "home": True}
        with pytest.raises(Ambiguous):
            await cal.create(calendar=home, title="Where?", **HOUR)
        assert await texts(server) == []
    finally:
        await server.remove_calendar("aaa")


async def test_an_event_may_have_no_length(cal: Calendar, home: Any) -> None:
    made = await cal.create(calendar=home, title="Short", start="2026-10-26T09:00:00Z", duration="PT0S")
    assert (await cal.get(made.event)).duration == "PT0S"


async def test_a_server_that_may_not_write_is_permission_denied(server: RadicaleServer, store: Store) -> None:
    async with opened(BLADE, server, store, CALDAV_WRITE_ENABLED="false") as cal:
        [calendar] = (await cal.calendars()).calendars
        with pytest.raises(PermissionDenied, match="CALDAV_WRITE_ENABLED"):
            await cal.create(calendar=calendar.calendar, title="x", **HOUR)
    assert await texts(server) == []


async def test_an_answer_of_another_event_or_none_is_an_error() -> None:
    text = "Title: x\nTime: 13:00-14:00\nStart: 2026-10-26T13:00:00+00:00\nEnd: 2026-10-26T14:00:00+00:00\nUID: a"
    assert parse(text, "a").texts["title"] == "x"
    for other, uid in ((text, "b"), (text.replace("Start", "Begin"), "a"), ("", "a")):
        with pytest.raises(Internal):
            parse(other, uid)
