"""agents-calendar 0.1.2 as a calendar: what is its own, beside what test_published_calendars.py asks of several."""

from __future__ import annotations

from typing import Any

import pytest

from hotplug.catalog.calendar import Calendar
from hotplug.connect import Reply
from hotplug.errors import Conflict, ConnectionFailed, InDoubt, InvalidArgument, Unavailable
from hotplug.testing import RadicaleServer

from .published_calendar import (
    AGENTS,
    DAY,
    EDITS,
    HOUR,
    SERIES,
    Meddled,
    Send,
    file_of,
    find,
    foreign,
    lines,
    refused,
    stored,
    texts,
)

pytestmark = [pytest.mark.anyio, pytest.mark.real]

SERVER = AGENTS


async def test_a_stale_revision_is_a_conflict_that_names_the_current_one_fr_06(cal: Calendar, home: Any) -> None:
    made = await cal.create(calendar=home, title="raced", **HOUR)
    moved = await cal.update(made.event, {"title": "raced once"}, revision=made.revision)
    with pytest.raises(Conflict) as caught:
        await cal.update(made.event, {"title": "raced twice"}, revision=made.revision)
    assert caught.value.details["revision"] == moved.revision
    with pytest.raises(Conflict):
        await cal.delete(made.event, revision=made.revision)
    assert (await cal.get(made.event)).title == "raced once"


async def test_a_series_is_refused_before_anything_is_written(cal: Calendar, server: RadicaleServer, home: Any) -> None:
    rules: Any = [{"frequency": "weekly"}]
    assert await refused(cal.create(calendar=home, title="no", recurrence_rules=rules, **HOUR)) == ["recurrenceRules"]
    assert await texts(server) == []


async def test_nothing_can_be_emptied(cal: Calendar, home: Any) -> None:
    made = await cal.create(calendar=home, title="full", **HOUR, description="d")
    assert await refused(cal.update(made.event, {}, clear=["description", "location"])) == ["description"]
    assert await refused(cal.update(made.event, {"title": ""})) == ["title"]
    with pytest.raises(InvalidArgument, match="start"):
        await cal.update(made.event, {}, clear=["start"])
    assert (await cal.get(made.event)).description == "d"


async def test_a_zoned_event_of_another_client_is_shown_as_its_instant_and_its_zone_as_unknown(
    cal: Calendar, server: RadicaleServer
) -> None:
    await foreign(
        server, "zoned", "DTSTART;TZID=Europe/Berlin:20261026T100000", "DTEND;TZID=Europe/Berlin:20261026T110000"
    )
    seen = await cal.get((await find(cal, "zoned")).event)
    assert (seen.start, seen.utc_end, seen.recurring) == ("2026-10-26T09:00:00Z", "2026-10-26T10:00:00Z", False)
    assert set(seen.unknown or ()) == {"timeZone", "title", "description", "freeBusyStatus"}


async def test_our_own_event_that_somebody_changed_is_theirs(cal: Calendar, server: RadicaleServer, home: Any) -> None:
    made = await cal.create(calendar=home, title="shared", **HOUR)
    ours = await stored(server, "shared")
    alarm = "BEGIN:VALARM\r\nACTION:DISPLAY\r\nTRIGGER:-PT15M\r\nDESCRIPTION:r\r\nEND:VALARM\r\nEND:VEVENT"
    await server.put("home", file_of(ours), ours.ical.replace("END:VEVENT", alarm))
    assert "alerts" in await refused(cal.update(made.event, {"location": "x"}))
    assert "description" in ((await cal.get(made.event)).unknown or ())


async def test_a_floating_event_stays_floating_fr_07(cal: Calendar, server: RadicaleServer) -> None:
    await foreign(server, "floats", "DTSTART:20261026T150000", "DTEND:20261026T160000")
    listed = await find(cal, "floats")
    seen = await cal.get(listed.event)
    for event in (listed, seen):
        assert (event.start, event.end, event.time_zone) == ("2026-10-26T15:00:00", "2026-10-26T16:00:00", "floating")
        assert event.utc_start is None
    assert "timeZone" in await refused(cal.update(seen.event, {"location": "x"}))
    assert await lines(server, "floats") == ["DTEND:20261026T160000", "DTSTART:20261026T150000", "SUMMARY:floats"]
    # It is 15:00 wherever one is, so also at 05:00 UTC.
    assert await find(cal, "floats", "2026-10-26T01:30:00Z", "2026-10-26T02:00:00Z") is not None
    there = await cal.search("2026-10-26", "2026-10-27", time_zone="Asia/Tokyo")
    assert "floats" in [event.title for event in there.events]
    assert await find(cal, "floats", "2026-10-25T00:00:00Z", "2026-10-26T00:30:00Z") is None


async def test_days_of_another_client_are_days(cal: Calendar, server: RadicaleServer) -> None:
    await foreign(server, "days", "DTSTART;VALUE=DATE:20261026", "DTEND;VALUE=DATE:20261029")
    seen = await cal.get((await find(cal, "days")).event)
    assert (seen.start, seen.end, seen.show_without_time, seen.recurring) == ("2026-10-26", "2026-10-29", True, False)
    there = await cal.search("2026-10-29", "2026-10-30", time_zone="Pacific/Kiritimati")
    assert "days" not in [event.title for event in there.events]
    west = await cal.search("2026-10-28T23:00:00-10:00", "2026-10-29T00:00:00-10:00")
    assert "days" in [event.title for event in west.events]


async def test_an_event_without_a_shown_end_says_so(cal: Calendar, server: RadicaleServer) -> None:
    await foreign(server, "long", "DTSTART:20261026T150000Z", "DURATION:PT90M")
    seen = await cal.get((await find(cal, "long")).event)
    assert (seen.end, seen.duration) == (None, None)
    assert {"end", "duration"} <= set(seen.unknown or ())
    assert "recurring" in (seen.unknown or ())
    losses = [*EDITS[AGENTS], *SERIES]
    assert await refused(cal.update(seen.event, {"location": "x"}, accept=losses)) == ["end"]
    assert (await find(cal, "long", "2026-10-26T16:00:00Z", "2026-10-26T16:10:00Z")).recurring is None
    assert await refused(cal.delete(seen.event)) == ["recurring"]
    await cal.delete(seen.event, accept=["recurring"])


async def test_one_unknown_zone_makes_a_calendar_unavailable_and_not_empty(
    cal: Calendar, server: RadicaleServer
) -> None:
    await server.add_calendar("odd", "Odd")
    odd = next(one.calendar for one in (await cal.calendars()).calendars if one.name == "Odd")
    await foreign(server, "odd", "DTSTART;TZID=Custom Zone:20261026T100000", collection="odd")
    with pytest.raises(Unavailable, match="zone"):
        await cal.search(*DAY, calendar=odd)
    await server.remove_calendar("odd")


async def test_what_only_a_bad_server_does_is_told(server: RadicaleServer, meddled: Meddled) -> None:
    # The notice that the server puts before its answers once a newer version is out.
    notice = "agents-calendar 9.9.9 available (you have 0.1.2): uvx agents-calendar@latest\n\n"
    answer: Reply | None = Reply(None, text='{"error": "CalDAV PUT 502: bad gateway"}')

    async def instead(tool: str, send: Send) -> Reply:
        if tool == "calendar_update":
            theirs = await stored(server, "overtaken")
            await server.put(theirs.collection, file_of(theirs), theirs.ical.replace("T140000Z", "T150000Z"))
        reply = await send()
        if tool == "calendar_add" and answer is not None:
            return answer
        return Reply(reply.content, reply.is_error, notice + reply.text)

    meddled.channel.instead = instead
    event = {"calendar": await meddled.home(), "title": "asked", **HOUR}
    with pytest.raises(InDoubt) as doubt:
        await meddled.invoke("calendar.create", event)
    assert doubt.value.details["state"] == "unknown"

    answer = Reply(None, text="<html>busy</html>")
    with pytest.raises(ConnectionFailed) as unread:
        await meddled.invoke("calendar.create", event)
    assert unread.value.details["state"] == "unknown"
    assert "html" in str(unread.value.details["text"])

    answer = None
    made = await meddled.invoke("calendar.create", {**event, "title": "overtaken"})
    with pytest.raises(Conflict) as overtaken:
        await meddled.invoke("calendar.update", {"event": made["event"], "changes": {"title": "mine"}})
    assert overtaken.value.details["revision"] not in {None, "", made["revision"]}
    assert "DTEND:20261026T150000Z" in (await lines(server, "overtaken") or [])
