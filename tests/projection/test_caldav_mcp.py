"""caldav-mcp 0.10.0 as a calendar: what is its own, beside what test_published_calendars.py asks of several."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import Any

import anyio
import pytest
from anyio.abc import SocketAttribute

from hotplug.catalog.calendar import Calendar
from hotplug.connect import Reply
from hotplug.errors import Conflict, ConnectError, InDoubt, Unavailable
from hotplug.store import Store
from hotplug.testing import RadicaleServer

from .published_calendar import (
    CALDAV,
    DAY,
    EDITS,
    HOUR,
    Meddled,
    Send,
    file_of,
    find,
    foreign,
    lines,
    opened,
    refused,
    stored,
    texts,
)

pytestmark = [pytest.mark.anyio, pytest.mark.real]

SERVER = CALDAV


async def test_texts_can_be_emptied_and_an_event_may_have_no_length(cal: Calendar, home: Any) -> None:
    made = await cal.create(calendar=home, title="kept", description="d", location="l", **HOUR)
    await cal.update(made.event, {"end": HOUR["start"]}, clear=["description", "location"])
    seen = await cal.get(made.event)
    assert (seen.description, seen.location, seen.duration) == (None, None, "PT0S")


async def test_what_only_this_server_has_no_place_for_is_refused_before_anything_is_written(
    cal: Calendar, server: RadicaleServer, home: Any
) -> None:
    day: dict[str, Any] = {"start": "2026-10-26", "duration": "P1D", "show_without_time": True}
    assert await refused(cal.create(calendar=home, title="no", **day)) == ["showWithoutTime"]
    assert await refused(cal.create(calendar=home, title="", **HOUR)) == ["title"]
    several = cal.create(calendar=home, title="no", status="tentative", free_busy_status="free", **HOUR)
    assert await refused(several) == ["status", "freeBusyStatus"]
    alerts: Any = [{"offset": "-PT15M"}]
    assert await refused(cal.create(calendar=home, title="no", alerts=alerts, **HOUR)) == ["alerts"]
    assert await texts(server) == []


async def test_an_all_day_event_is_stored_as_dates_where_the_loss_of_its_mark_is_accepted_fr_02(
    cal: Calendar, server: RadicaleServer, home: Any
) -> None:
    accept = ["showWithoutTime"]
    made = await cal.create(
        calendar=home, title="fair", start="2026-09-14", end="2026-09-15", show_without_time=True, accept=accept
    )
    stored = ["DESCRIPTION:", "DTEND;VALUE=DATE:20260915", "DTSTART;VALUE=DATE:20260914", "LOCATION:", "SUMMARY:fair"]
    assert await lines(server, "fair") == stored
    seen = await cal.get(made.event)
    assert (seen.start, seen.end, seen.show_without_time) == ("2026-09-14", "2026-09-15", True)
    await cal.update(made.event, {"title": "fair 2"})
    await cal.update(made.event, {"title": "fair"})
    kept = [line for line in await lines(server, "fair") or [] if not line.endswith(":")]
    assert kept == [line for line in stored if not line.endswith(":")]
    await cal.update(made.event, {"start": "2026-09-15"})
    assert "DTEND;VALUE=DATE:20260916" in (await lines(server, "fair") or [])
    timed: Any = {"start": "2026-09-14T09:00:00Z", "end": "2026-09-14T10:00:00Z", "show_without_time": False}
    await cal.update(made.event, timed)
    seen = await cal.get(made.event)
    assert (seen.start, seen.duration, seen.show_without_time) == ("2026-09-14T09:00:00Z", "PT1H", None)


async def test_a_day_of_another_client_becomes_its_instants_where_that_is_accepted_and_grows_by_none(
    cal: Calendar, server: RadicaleServer
) -> None:
    await foreign(server, "feast", "DTSTART;VALUE=DATE:20261026", "DTEND;VALUE=DATE:20261027")
    await cal.update((await find(cal, "feast")).event, {"location": "x"}, accept=EDITS[CALDAV])
    times = [line for line in await lines(server, "feast") or [] if line.startswith("DT")]
    assert times == ["DTEND:20261027T000000Z", "DTSTART:20261026T000000Z"]


@pytest.mark.parametrize(
    ("uid", "start", "end"),
    [
        ("zoned", "DTSTART;TZID=Europe/Berlin:20261026T100000", "DTEND;TZID=Europe/Berlin:20261026T110000"),
        ("floats", "DTSTART:20261026T150000", "DTEND:20261026T160000"),
        ("days", "DTSTART;VALUE=DATE:20261026", "DTEND;VALUE=DATE:20261029"),
        ("lasts", "DTSTART:20261026T150000Z", "DURATION:PT90M"),
    ],
)
async def test_what_kind_of_time_another_client_stored_is_unknown_and_not_touched(
    cal: Calendar, server: RadicaleServer, uid: str, start: str, end: str
) -> None:
    await foreign(server, uid, start, end)
    before = await lines(server, uid)
    seen = await cal.get((await find(cal, uid)).event)
    assert {"timeZone", "showWithoutTime", "utcStart"} <= set(seen.unknown or ())
    assert (seen.recurring, seen.utc_start) == (False, None)
    if uid == "days":
        # In the zone that the projection asks for, not in that of this process.
        assert (seen.start, seen.end) == ("2026-10-26T00:00:00Z", "2026-10-29T00:00:00Z")
    assert await refused(cal.update(seen.event, {"title": "mine"})) == EDITS[CALDAV]
    assert await lines(server, uid) == before
    await cal.delete(seen.event)
    assert await lines(server, uid) is None


async def test_our_own_event_that_looks_otherwise_by_now_is_theirs(
    cal: Calendar, server: RadicaleServer, home: Any
) -> None:
    made = await cal.create(calendar=home, title="shared", **HOUR)
    ours = await stored(server, "shared")
    changed = ours.ical.replace("T140000Z", "T150000Z").replace("END:VEVENT", "STATUS:CANCELLED\r\nEND:VEVENT")
    await server.put("home", file_of(ours), changed)
    assert await refused(cal.update(made.event, {"location": "x"})) == EDITS[CALDAV]


async def test_a_series_with_a_moved_occurrence_is_one_event(cal: Calendar, server: RadicaleServer) -> None:
    moved = [
        "BEGIN:VEVENT",
        "UID:moved",
        "DTSTAMP:20261001T000000Z",
        "RECURRENCE-ID:20261026T090000Z",
        "DTSTART:20261026T110000Z",
        "DTEND:20261026T120000Z",
        "SUMMARY:moved later",
    ]
    rule = [
        "SUMMARY:moved",
        "DTSTART:20261019T090000Z",
        "DTEND:20261019T100000Z",
        "RRULE:FREQ=WEEKLY;COUNT=2",
        "END:VEVENT",
        *moved,
    ]
    await foreign(server, "moved", *rule)
    found = [event for event in (await cal.search(*DAY)).events if event.title.startswith("moved")]
    assert [(event.title, event.recurring) for event in found] == [("moved", True)]
    assert (await cal.get(found[0].event)).recurring is True


async def test_a_file_that_another_client_named_otherwise_can_be_read_only(
    cal: Calendar, server: RadicaleServer
) -> None:
    await foreign(server, "odd", "DTSTART:20261026T100000Z", "DTEND:20261026T110000Z", file="another.ics")
    event = (await find(cal, "odd")).event
    with pytest.raises(Unavailable, match="file"):
        await cal.delete(event)
    with pytest.raises(Unavailable, match="file"):
        await cal.update(event, {"location": "x"}, accept=EDITS[CALDAV])
    assert await lines(server, "odd") is not None


async def test_a_uid_that_the_server_cannot_write_into_an_address_leaves_no_doubt(
    cal: Calendar, server: RadicaleServer
) -> None:
    await foreign(server, "salt&pepper", "DTSTART:20261026T100000Z", "DTEND:20261026T110000Z")
    event = (await find(cal, "salt&pepper")).event
    with pytest.raises(Unavailable, match="uid"):
        await cal.update(event, {"location": "x"}, accept=EDITS[CALDAV])
    await cal.delete(event)
    assert await lines(server, "salt&pepper") is None


async def test_a_wrong_password_is_said_at_the_start(server: RadicaleServer, store: Store) -> None:
    with pytest.raises(ConnectError) as caught:
        async with opened(CALDAV, server, store, CALDAV_PASSWORD="wrong"):
            pass
    assert any("401" in line for line in caught.value.log)


async def _lossy(server: RadicaleServer, *, hangs: bool, task_status: Any) -> None:
    """A way to the server on which no answer comes back any more once an event was written.

    Args:
        hangs: The connection stays open; else it ends.
    """
    host, _, port = server.url.removeprefix("http://").rstrip("/").partition(":")
    written = anyio.Event()

    async def forth(client: Any, upstream: Any) -> None:
        async for chunk in client:
            if chunk.startswith(b"PUT "):
                written.set()
            await upstream.send(chunk)

    async def back(client: Any, upstream: Any) -> None:
        async for chunk in upstream:
            if not written.is_set():
                await client.send(chunk)
        if not (written.is_set() and hangs):
            await client.aclose()

    async def serve(client: Any) -> None:
        with suppress(ExceptionGroup):
            async with client, await anyio.connect_tcp(host, int(port)) as upstream, anyio.create_task_group() as both:
                both.start_soon(forth, client, upstream)
                both.start_soon(back, client, upstream)

    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener:
        task_status.started(listener.extra(SocketAttribute.local_port))
        await listener.serve(serve)


@pytest.mark.parametrize("hangs", [True, False], ids=["hangs", "ends"])
async def test_an_answer_that_never_comes_is_in_doubt_for_writes_and_unavailable_for_reads(
    server: RadicaleServer, store: Store, hangs: bool
) -> None:
    title = f"late {hangs}"
    async with anyio.create_task_group() as tasks:
        port = await tasks.start(partial(_lossy, server, hangs=hangs))
        async with opened(CALDAV, server, store, CALDAV_BASE_URL=f"http://127.0.0.1:{port}/") as cal:
            calendar = (await cal.calendars()).calendars[0].calendar
            with pytest.raises(InDoubt) as caught:
                await cal.create(calendar=calendar, title=title, **HOUR)
            assert caught.value.details["state"] == "unknown"
            # The server said that it failed, and it was written all the same.
            assert await lines(server, title) is not None
            with pytest.raises(Unavailable):
                await cal.search(*DAY, calendar=calendar)
        tasks.cancel_scope.cancel()


async def test_a_failed_update_is_a_conflict_or_in_doubt_as_its_words_say(
    server: RadicaleServer, meddled: Meddled
) -> None:
    said = "Event with the specified uid does not match."

    async def instead(tool: str, send: Send) -> Reply:
        return Reply(None, is_error=True, text=said) if tool == "update-event" else await send()

    made = await meddled.invoke("calendar.create", {"calendar": await meddled.home(), "title": "asked", **HOUR})
    meddled.channel.instead = instead
    change = {"event": made["event"], "changes": {"title": "raced"}}
    with pytest.raises(Conflict):
        await meddled.invoke("calendar.update", change)
    said = "Failed to update event."
    with pytest.raises((InDoubt, Unavailable)) as doubt:
        await meddled.invoke("calendar.update", change)
    assert said in str(doubt.value.details)
