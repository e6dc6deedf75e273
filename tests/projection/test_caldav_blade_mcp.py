"""caldav-blade-mcp 0.4.0 as a calendar: the real package, a real Radicale, and what Radicale really stored."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from hotplug.catalog.calendar import Calendar
from hotplug.conform.journey import load, play
from hotplug.connect import CommandTarget, link_of
from hotplug.door import connect
from hotplug.errors import (
    Ambiguous,
    Internal,
    NotFound,
    PermissionDenied,
    TooLarge,
    Unavailable,
    Unsupported,
)
from hotplug.projection.library.caldav_blade_mcp import parse
from hotplug.store import SqliteStore
from hotplug.testing import RadicaleServer, radicale
from hotplug.testing.published import published
from hotplug.witness import CalDavWitness

pytestmark = [pytest.mark.anyio, pytest.mark.real]

NAME = "caldav-blade-mcp"
JOURNEY = Path(__file__).parents[2] / "examples" / "journeys" / "calendar-day.yaml"
NEW_YORK = (
    "BEGIN:VTIMEZONE",
    "TZID:America/New_York",
    "BEGIN:DAYLIGHT",
    "DTSTART:20070311T020000",
    "RRULE:FREQ=YEARLY;BYMONTH=3;BYDAY=2SU",
    "TZOFFSETFROM:-0500",
    "TZOFFSETTO:-0400",
    "END:DAYLIGHT",
    "BEGIN:STANDARD",
    "DTSTART:20071104T020000",
    "RRULE:FREQ=YEARLY;BYMONTH=11;BYDAY=1SU",
    "TZOFFSETFROM:-0400",
    "TZOFFSETTO:-0500",
    "END:STANDARD",
    "END:VTIMEZONE",
)
ZONED = (
    "DTSTART;TZID=America/New_York:20261026T090000",
    "DTEND;TZID=America/New_York:20261026T100000",
    "SUMMARY:Zoned",
    "STATUS:TENTATIVE",
    "TRANSP:TRANSPARENT",
    "ATTENDEE;CN=Bob;PARTSTAT=ACCEPTED:mailto:bob@example.org",
)


def ical(uid: str, *lines: str) -> str:
    zone = NEW_YORK if any("TZID=" in line for line in lines) else ()
    event = ("BEGIN:VEVENT", f"UID:{uid}", "DTSTAMP:20261001T000000Z", *lines, "END:VEVENT")
    return "\r\n".join(
        ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//another client//EN", *zone, *event, "END:VCALENDAR", ""]
    )


def opened(
    server: RadicaleServer, store: SqliteStore, env: Mapping[str, str] | None = None
) -> AbstractAsyncContextManager[Calendar]:
    upstream = published(NAME)
    target = CommandTarget(upstream.command, env={**upstream.env(server), **(env or {})})
    return connect(Calendar, target, projection=upstream.projection, store=store)


@pytest.fixture(scope="module")
async def server() -> AsyncGenerator[RadicaleServer]:
    async with radicale(calendars={"work": "Work"}) as running:
        yield running


@pytest.fixture(scope="module")
async def store() -> AsyncGenerator[SqliteStore]:
    async with SqliteStore.open(None) as kept:
        yield kept


@pytest.fixture(scope="module")
async def cal(server: RadicaleServer, store: SqliteStore) -> AsyncGenerator[Calendar]:
    async with opened(server, store) as connection:
        yield connection


@pytest.fixture(autouse=True)
async def emptied(server: RadicaleServer) -> None:
    for event in await server.stored():
        await server.remove(event.collection, event.href.rsplit("/", 1)[-1].replace("%40", "@"))


@pytest.fixture
async def work(cal: Calendar) -> Any:
    [only] = (await cal.calendars()).calendars
    assert (only.name, only.writable) == ("Work", True)
    return only.calendar


async def lines(server: RadicaleServer) -> set[str]:
    """The lines of the only stored event, its zone left out."""
    [event] = await server.stored()
    return set(event.ical.partition("BEGIN:VEVENT")[2].split("\r\n"))


async def only(cal: Calendar, **options: Any) -> Any:
    [event] = (await cal.search("2026-10-24T00:00:00Z", "2026-10-31T00:00:00Z", **options)).events
    return event


async def test_the_journey_of_a_day_goes_through_with_every_write_witnessed(
    cal: Calendar, server: RadicaleServer
) -> None:
    async def read() -> list[str]:
        return [event.ical for event in await server.stored()]

    outcome = await play(load(JOURNEY), link_of(cal), name=NAME, via="projected", witness=CalDavWitness(read))
    by_status: dict[str, list[str]] = {}
    for cell in outcome.cells:
        by_status.setdefault(cell.status, []).append(cell.step)
    assert by_status.pop("absent") == ["be refused on a stale revision"]
    assert by_status.pop("refused") == ["keep 9 o'clock in Berlin", "keep 7 o'clock anywhere"]
    assert list(by_status) == ["passed"]
    witnessed = [cell.witnessed for cell in outcome.cells if cell.witnessed is not None]
    assert witnessed == [True] * 7


async def test_an_instant_is_kept_as_it_is_whatever_its_offset(
    cal: Calendar, work: Any, server: RadicaleServer
) -> None:
    made = await cal.create(
        calendar=work, title="Kept", start="2026-10-26T09:00:00+01:00", end="2026-10-26T10:30:00+01:00"
    )
    assert {"DTSTART:20261026T080000Z", "DTEND:20261026T093000Z"} <= await lines(server)
    event = await cal.get(made.event)
    assert (event.start, event.end, event.duration) == ("2026-10-26T08:00:00Z", "2026-10-26T09:30:00Z", "PT1H30M")
    assert (event.utc_start, event.recurring) == ("2026-10-26T08:00:00Z", False)
    assert event.unknown == ["status", "freeBusyStatus"]
    assert await only(cal) == event


async def test_an_all_day_event_keeps_its_dates_also_when_it_is_written_back_fr02(
    cal: Calendar, work: Any, server: RadicaleServer
) -> None:
    made = await cal.create(calendar=work, title="Fair", start="2026-10-26", end="2026-10-29", show_without_time=True)
    assert {"DTSTART;VALUE=DATE:20261026", "DTEND;VALUE=DATE:20261029"} <= await lines(server)
    event = await cal.get(made.event)
    assert (event.start, event.end, event.show_without_time) == ("2026-10-26", "2026-10-29", True)
    await cal.update(made.event, {"start": event.start, "end": str(event.end), "show_without_time": True})
    assert await cal.get(made.event) == event
    await cal.update(made.event, {"start": "2026-10-27"})
    assert {"DTSTART;VALUE=DATE:20261027", "DTEND;VALUE=DATE:20261030"} <= await lines(server)


async def test_what_would_be_lost_is_named_before_anything_is_written(
    cal: Calendar, work: Any, server: RadicaleServer
) -> None:
    zoned = {"start": "2026-10-26T09:00:00", "duration": "PT1H", "time_zone": "America/New_York"}
    with pytest.raises(Unsupported) as refused:
        await cal.create(calendar=work, title="Z", status="tentative", **zoned)  # type: ignore[misc]
    assert refused.value.details["lost"] == ["timeZone", "status"]
    with pytest.raises(Unsupported) as refused:
        await cal.create(calendar=work, title="Z", **{**zoned, "time_zone": "floating"})  # type: ignore[misc]
    assert refused.value.details["lost"] == ["timeZone"]
    assert await server.stored() == []
    await cal.create(calendar=work, title="Z", accept=["timeZone"], **zoned)  # type: ignore[misc]
    assert "DTSTART:20261026T130000Z" in await lines(server)


HOSTILE = {
    "title": "  Ünï – | uid=x\n, ; \\ ☕ <b>&amp;</b>",
    "location": "Room\nDescription: of the room",
    "description": "one\r\nTime: 09:00-10:00\nStart: 1999-01-01\n\nUID: other\nSequence: 9\nAttendee: A <a> (B)",
}


async def test_our_own_texts_come_back_exactly_even_where_they_look_like_the_answer(cal: Calendar, work: Any) -> None:
    made = await cal.create(calendar=work, start="2026-10-26T09:00:00Z", duration="PT1H", **HOSTILE)  # type: ignore[misc]
    event = await cal.get(made.event)
    assert (event.title, event.location) == (HOSTILE["title"], HOSTILE["location"])
    assert event.description == HOSTILE["description"].replace("\r\n", "\n")
    assert event.unknown == ["status", "freeBusyStatus"]
    assert await only(cal) == event
    await cal.update(made.event, {"title": "Plain"}, clear=["description", "location"])
    event = await cal.get(made.event)
    assert (event.title, event.description, event.location) == ("Plain", None, None)


async def test_texts_that_the_server_would_alter_are_refused_by_name(
    cal: Calendar, work: Any, server: RadicaleServer
) -> None:
    times = {"start": "2026-10-26T09:00:00Z", "duration": "PT1H"}
    with pytest.raises(Unsupported) as refused:
        await cal.create(calendar=work, title="blank ", location='C:\\"x"', description="fine", **times)  # type: ignore[misc]
    assert refused.value.details["lost"] == ["title", "location"]
    assert await server.stored() == []
    made = await cal.create(calendar=work, title="blank ", accept=["title"], **times)  # type: ignore[misc]
    assert (await cal.get(made.event)).title == "blank"
    with pytest.raises(Unsupported) as refused:
        await cal.update(made.event, {"description": "tab\t"})
    assert refused.value.details["lost"] == ["description"]


async def test_texts_of_others_that_cannot_be_told_apart_are_named_in_unknown(
    cal: Calendar, server: RadicaleServer
) -> None:
    times = ("DTSTART:20261026T090000Z", "DTEND:20261026T100000Z")
    await server.put("work", "a.ics", ical("a", *times, "SUMMARY:A", "LOCATION:x\\nDescription: y", "DESCRIPTION:z"))
    event = await only(cal)
    assert (event.title, event.start) == ("A", "2026-10-26T09:00:00Z")
    assert {"description", "location"} <= set(event.unknown or ())
    await server.put(
        "work", "a.ics", ical("a", *times, "SUMMARY:A\\nTime: 08:00-09:00\\nStart: 2026-10-26T08:00:00+00:00")
    )
    event = await only(cal)
    assert {"title", "start", "end", "timeZone", "utcStart"} <= set(event.unknown or ())


async def test_a_time_of_another_client_that_may_be_floating_is_no_known_instant(
    cal: Calendar, server: RadicaleServer
) -> None:
    floating = {"DTSTART:20261026T090000", "DTEND:20261026T100000"}
    await server.put("work", "f.ics", ical("f", *floating, "SUMMARY:Floating"))
    found = await only(cal)
    event = await cal.get(found.event)
    assert (event.start, event.utc_start, event.time_zone) == ("2026-10-26T09:00:00Z", None, None)
    assert event.unknown == ["timeZone", "utcStart", "utcEnd", "status", "freeBusyStatus"]
    await cal.update(event.event, {"location": "Anywhere"})
    assert floating | {"LOCATION:Anywhere"} <= await lines(server)
    assert "timeZone" in ((await cal.get(found.event)).unknown or ())
    with pytest.raises(Unsupported) as refused:
        await cal.update(event.event, {"start": "2026-10-26T11:00:00Z"})
    assert refused.value.details["lost"] == ["timeZone"]
    assert floating <= await lines(server)
    await cal.update(event.event, {"start": "2026-10-26T11:00:00Z"}, accept=["timeZone"])
    assert {"DTSTART:20261026T110000Z", "DTEND:20261026T120000Z"} <= await lines(server)
    assert (await cal.get(found.event)).utc_start == "2026-10-26T11:00:00Z"


async def test_a_zoned_event_of_another_client_keeps_its_zone_when_its_text_is_edited_fr07(
    cal: Calendar, server: RadicaleServer
) -> None:
    await server.put("work", "z.ics", ical("z", *ZONED))
    event = await only(cal)
    assert (event.start, event.utc_end) == ("2026-10-26T13:00:00Z", "2026-10-26T14:00:00Z")
    assert event.unknown == ["timeZone", "status", "freeBusyStatus", "recurring"]
    await cal.update(event.event, {"title": "Renamed"})
    assert {*ZONED, "SUMMARY:Renamed"} - {"SUMMARY:Zoned"} <= await lines(server)
    with pytest.raises(Unsupported) as refused:
        await cal.update(event.event, {"start": "2026-10-26T15:00:00Z"})
    assert refused.value.details["lost"] == ["timeZone"]
    assert ZONED[0] in await lines(server)


@pytest.mark.parametrize(
    "series",
    [
        ("DTSTART:20261026T090000Z", "DTEND:20261026T100000Z", "RRULE:FREQ=WEEKLY;COUNT=4"),
        ("DTSTART:20261026T090000Z", "DTEND:20261026T100000Z", "RDATE:20261030T090000Z"),
    ],
)
async def test_a_series_is_neither_edited_nor_deleted_by_guess(
    cal: Calendar, server: RadicaleServer, series: tuple[str, ...]
) -> None:
    await server.put("work", "s.ics", ical("s", *series, "SUMMARY:Series"))
    found = await only(cal)
    assert (await cal.get(found.event)).recurring is True
    for act in (cal.update(found.event, {"title": "One"}), cal.delete(found.event)):
        with pytest.raises(Unsupported) as refused:
            await act
        assert refused.value.details["lost"] == ["recurrenceRules"]
    assert {*series, "SUMMARY:Series"} <= await lines(server)
    await cal.delete(found.event, accept=["recurrenceRules"])
    assert await server.stored() == []


async def test_a_series_shows_once_in_a_search_and_only_where_it_occurs(cal: Calendar, server: RadicaleServer) -> None:
    series = ("DTSTART:20261001T090000Z", "DTEND:20261001T100000Z", "RRULE:FREQ=DAILY", "SUMMARY:Daily")
    await server.put("work", "d.ics", ical("d", *series))
    found = await only(cal)
    assert (found.recurring, found.start) == (True, "2026-10-01T09:00:00Z")
    assert (await cal.search("2026-10-24T10:00:00Z", "2026-10-25T09:00:00Z")).events == []


async def test_an_event_without_a_shown_end_says_so_and_new_times_for_it_change_nothing(
    cal: Calendar, server: RadicaleServer
) -> None:
    stored = {"DTSTART:20261026T150000Z", "SUMMARY:Long"}
    await server.put("work", "l.ics", ical("l", *stored, "DURATION:PT90M"))
    found = await only(cal)
    assert (found.end, found.duration) == (None, None)
    assert {"end", "duration", "recurring"} <= set(found.unknown or ())
    with pytest.raises(Unsupported) as refused:
        await cal.update(found.event, {"title": "x"})
    assert refused.value.details["lost"] == ["recurring"]
    with pytest.raises(Internal, match="nothing was changed"):
        await cal.update(
            found.event,
            {"start": "2026-10-26T16:00:00Z", "end": "2026-10-26T17:00:00Z"},
            accept=["recurring", "timeZone"],
        )
    assert stored <= await lines(server)


async def test_a_range_with_too_many_events_is_refused_and_not_cut_short(cal: Calendar, server: RadicaleServer) -> None:
    for number in range(61):
        times = (f"DTSTART:20261026T09{number % 60:02d}00Z", "DTEND:20261026T110000Z")
        await server.put("work", f"n{number}.ics", ical(f"n{number}", *times, f"SUMMARY:{number}"))
    with pytest.raises(TooLarge, match="shorter range"):
        await cal.search("2026-10-24T00:00:00Z", "2026-10-31T00:00:00Z")


async def test_what_is_gone_is_not_found(cal: Calendar, work: Any, server: RadicaleServer) -> None:
    made = await cal.create(calendar=work, title="Short", start="2026-10-26T09:00:00Z", duration="PT0S")
    assert (await cal.get(made.event)).duration == "PT0S"
    await cal.delete(made.event)
    assert await server.stored() == []
    for act in (cal.get(made.event), cal.update(made.event, {"title": "x"}), cal.delete(made.event)):
        with pytest.raises(NotFound):
            await act


async def test_texts_over_the_limit_are_too_large_before_anything_is_written(
    cal: Calendar, work: Any, server: RadicaleServer
) -> None:
    times = {"start": "2026-10-26T09:00:00Z", "duration": "PT1H"}
    with pytest.raises(TooLarge):
        await cal.create(calendar=work, title="x" * 501, **times)  # type: ignore[misc]
    with pytest.raises(TooLarge):
        await cal.create(calendar=work, title="x", description="x" * 5001, **times)  # type: ignore[misc]
    assert await server.stored() == []


async def test_a_calendar_whose_identifier_is_the_name_of_another_is_ambiguous(
    cal: Calendar, work: Any, server: RadicaleServer
) -> None:
    await server.add_calendar("aaa", "work")
    try:
        found = {one.name: one.writable for one in (await cal.calendars()).calendars}
        assert found == {"Work": False, "work": True}
        with pytest.raises(Ambiguous):
            await cal.create(calendar=work, title="Where?", start="2026-10-26T09:00:00Z", duration="PT1H")
        assert await server.stored() == []
    finally:
        await server.remove_calendar("aaa")


async def test_a_server_that_may_not_write_is_permission_denied_and_one_that_is_gone_unavailable(
    store: SqliteStore,
) -> None:
    async with AsyncExitStack() as stack:
        own = await stack.enter_async_context(AsyncExitStack())
        server = await own.enter_async_context(radicale(calendars={"work": "Work"}))
        cal = await stack.enter_async_context(opened(server, store, {"CALDAV_WRITE_ENABLED": "false"}))
        [calendar] = (await cal.calendars()).calendars
        with pytest.raises(PermissionDenied, match="CALDAV_WRITE_ENABLED"):
            await cal.create(
                calendar=calendar.calendar, title="x", start="2026-10-26T13:00:00Z", end="2026-10-26T14:00:00Z"
            )
        assert await server.stored() == []
        await own.aclose()
        with pytest.raises(Unavailable):
            await cal.calendars()
        with pytest.raises(Unavailable):
            await cal.search("2026-10-24T00:00:00Z", "2026-10-31T00:00:00Z", calendar=calendar.calendar)


async def test_a_wrong_password_is_permission_denied_and_no_empty_list(
    server: RadicaleServer, store: SqliteStore
) -> None:
    async with opened(server, store, {"CALDAV_PASSWORD": "wrong"}) as cal:
        with pytest.raises(PermissionDenied):
            await cal.calendars()


async def test_an_answer_of_another_event_or_none_is_an_error() -> None:
    text = "Title: x\nTime: 13:00-14:00\nStart: 2026-10-26T13:00:00+00:00\nEnd: 2026-10-26T14:00:00+00:00\nUID: a"
    assert parse(text, "a").texts["title"] == "x"
    for other, uid in ((text, "b"), (text.replace("Start", "Begin"), "a"), ("", "a")):
        with pytest.raises(Internal):
            parse(other, uid)
