"""cal-scheduler-mcp 1.1.3 as a calendar: what is its own, beside what test_published_calendars.py asks of several."""

from __future__ import annotations

from typing import Any

import pytest

from hotplug.catalog.calendar import Calendar
from hotplug.connect import Reply
from hotplug.errors import Ambiguous, InDoubt, Internal, InvalidArgument, Unavailable
from hotplug.store import Store
from hotplug.testing import RadicaleServer

from .published_calendar import (
    HOUR,
    SCHEDULER,
    WEEK,
    ZONED,
    Meddled,
    Send,
    foreign,
    only,
    only_lines,
    opened,
    refused,
    texts,
)

pytestmark = [pytest.mark.anyio, pytest.mark.real]

SERVER = SCHEDULER


async def test_an_event_without_a_length_is_refused(cal: Calendar, home: Any, server: RadicaleServer) -> None:
    none = cal.create(calendar=home, title="Z", start="2026-10-26T09:00:00Z", duration="PT0S")
    assert await refused(none) == ["end"]
    assert await texts(server) == []


async def test_texts_round_trip_and_are_cleared(cal: Calendar, home: Any, server: RadicaleServer) -> None:
    title, text = "Ünï – c, d; e\\ | ☕ <b>&amp;</b>", "one\r\ntwo\n\n  three\t,;"
    made = await cal.create(calendar=home, title=title, description=text, location="Room\n4", **HOUR)
    event = await cal.get(made.event)
    assert (event.title, event.description, event.location) == (title, text.replace("\r\n", "\n"), "Room\n4")
    await cal.update(made.event, {"title": "New"}, clear=["description", "location"])
    event = await cal.get(made.event)
    assert (event.title, event.description, event.location) == ("New", None, None)
    with pytest.raises(InvalidArgument):
        await cal.update(made.event, {"title": "a\x07b"})
    assert await refused(cal.update(made.event, {}, clear=["status"])) == ["status"]


async def test_what_another_client_changed_is_no_longer_ours(cal: Calendar, home: Any, server: RadicaleServer) -> None:
    made = await cal.create(calendar=home, title="Mine", **HOUR)
    uid = next(line for line in await only_lines(server) if line.startswith("UID:")).removeprefix("UID:")
    await foreign(server, uid, *ZONED)
    assert await refused(cal.update(made.event, {"start": "2026-10-26T15:00:00Z"})) == ["timeZone"]


async def test_a_floating_event_stays_floating(cal: Calendar, server: RadicaleServer) -> None:
    floating = {"DTSTART:20261026T090000", "DTEND:20261026T100000"}
    await foreign(server, "f", *floating, "SUMMARY:Floating")
    event = await only(cal)
    assert (event.start, event.end, event.time_zone) == ("2026-10-26T09:00:00", "2026-10-26T10:00:00", "floating")
    assert event.utc_start is None
    await cal.update(event.event, {"location": "Anywhere"})
    assert floating | {"LOCATION:Anywhere"} <= await only_lines(server)
    assert await refused(cal.update(event.event, {"start": "2026-10-26T11:00:00"}, accept=["timeZone"])) == ["timeZone"]
    assert floating <= await only_lines(server)
    # It begins on the 25th somewhere, so a search that ends there shows it rather than missing it.
    assert len((await cal.search("2026-10-25T00:00:00Z", "2026-10-25T20:00:00Z")).events) == 1


async def test_an_event_kept_with_a_duration_keeps_its_length_when_it_moves(
    cal: Calendar, server: RadicaleServer
) -> None:
    await foreign(server, "l", "DTSTART:20261026T150000Z", "DURATION:PT90M", "SUMMARY:Long")
    event = await only(cal)
    assert event.end == "2026-10-26T16:30:00Z"
    await cal.update(event.event, {"start": "2026-10-26T16:00:00Z"}, accept=["timeZone"])
    stored = await only_lines(server)
    assert {"DTSTART:20261026T160000Z", "DTEND:20261026T173000Z"} <= stored
    assert not any(line.startswith("DURATION") for line in stored)


async def test_calendars_of_one_name_are_ambiguous_and_none_is_chosen(
    cal: Calendar, home: Any, server: RadicaleServer
) -> None:
    await server.add_calendar("home2", "Home")
    try:
        assert [one.writable for one in (await cal.calendars()).calendars] == [False, False]
        with pytest.raises(Ambiguous):
            await cal.create(calendar=home, title="Where?", **HOUR)
        with pytest.raises(Ambiguous):
            await cal.search(*WEEK)
        assert await texts(server) == []
    finally:
        await server.remove_calendar("home2")


async def test_a_server_that_would_put_instants_into_a_zone_is_refused(server: RadicaleServer, store: Store) -> None:
    async with opened(SCHEDULER, server, store, CAL_DEFAULT_TZ="Pacific/Auckland") as cal:
        [calendar] = (await cal.calendars()).calendars
        with pytest.raises(Unavailable, match="CAL_DEFAULT_TZ=UTC"):
            await cal.create(calendar=calendar.calendar, title="x", **HOUR)
        assert await texts(server) == []


FAILED = Reply(content=None, is_error=True, text="Error executing tool create_event")


async def test_a_failure_after_which_the_event_is_there_is_in_doubt(server: RadicaleServer, meddled: Meddled) -> None:
    async def instead(tool: str, send: Send) -> Reply:
        reply = await send()
        return FAILED if tool == "create_event" else reply

    lunch = {"calendar": await meddled.home(), "title": "Lunch", **HOUR}
    meddled.channel.instead = instead
    with pytest.raises(InDoubt):
        await meddled.invoke("calendar.create", lunch)
    assert len(await server.stored()) == 1


async def test_a_failure_that_wrote_nothing_says_so_with_the_servers_words_fr18(
    server: RadicaleServer, meddled: Meddled
) -> None:
    async def instead(tool: str, send: Send) -> Reply:
        return FAILED if tool == "create_event" else await send()

    lunch = {"calendar": await meddled.home(), "title": "Lunch", **HOUR}
    meddled.channel.instead = instead
    with pytest.raises(Internal, match="wrote nothing") as told:
        await meddled.invoke("calendar.create", lunch)
    assert told.value.details["upstream"] == FAILED.text
    assert "state" not in told.value.details
    assert await texts(server) == []
