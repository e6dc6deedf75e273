"""cal-scheduler-mcp 1.1.3 as a calendar: the real package, a real Radicale, and what Radicale really stored."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from hotplug.catalog.calendar import Calendar
from hotplug.conform.journey import load, play
from hotplug.connect import CommandTarget, McpChannel, McpSession, Reply, link_of
from hotplug.door import connect
from hotplug.errors import Ambiguous, InDoubt, Internal, InvalidArgument, NotFound, Unavailable, Unsupported
from hotplug.projection import ProjectedProvider, named
from hotplug.store import SqliteStore
from hotplug.testing import RadicaleServer, radicale
from hotplug.testing.published import published
from hotplug.witness import CalDavWitness

pytestmark = [pytest.mark.anyio, pytest.mark.real]

NAME = "cal-scheduler-mcp"
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
    with pytest.raises(Unsupported) as refused:
        await cal.create(calendar=work, title="Z", start="2026-10-26T09:00:00Z", duration="PT0S")
    assert refused.value.details["lost"] == ["end"]
    assert await server.stored() == []
    await cal.create(calendar=work, title="Z", accept=["timeZone"], **zoned)  # type: ignore[misc]
    assert "DTSTART:20261026T130000Z" in await lines(server)


async def test_texts_round_trip_and_are_cleared(cal: Calendar, work: Any, server: RadicaleServer) -> None:
    title, text = "Ünï – c, d; e\\ | ☕ <b>&amp;</b>", "one\r\ntwo\n\n  three\t,;"
    made = await cal.create(
        calendar=work, title=title, description=text, location="Room\n4", start="2026-10-26T09:00:00Z", duration="PT1H"
    )
    event = await cal.get(made.event)
    assert (event.title, event.description, event.location) == (title, text.replace("\r\n", "\n"), "Room\n4")
    await cal.update(made.event, {"title": "New"}, clear=["description", "location"])
    event = await cal.get(made.event)
    assert (event.title, event.description, event.location) == ("New", None, None)
    with pytest.raises(InvalidArgument):
        await cal.update(made.event, {"title": "a\x07b"})
    with pytest.raises(Unsupported) as refused:
        await cal.update(made.event, {}, clear=["status"])
    assert refused.value.details["lost"] == ["status"]


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


async def test_a_zoned_event_of_another_client_keeps_its_zone_when_its_text_is_edited_fr07(
    cal: Calendar, server: RadicaleServer
) -> None:
    await server.put("work", "z.ics", ical("z", *ZONED))
    event = await only(cal)
    assert (event.start, event.utc_end) == ("2026-10-26T13:00:00Z", "2026-10-26T14:00:00Z")
    assert event.unknown == ["timeZone", "status", "freeBusyStatus", "recurring"]
    assert (await cal.get(event.event)).recurring is False
    await cal.update(event.event, {"title": "Renamed"})
    assert {*ZONED, "SUMMARY:Renamed"} - {"SUMMARY:Zoned"} <= await lines(server)
    with pytest.raises(Unsupported) as refused:
        await cal.update(event.event, {"start": "2026-10-26T15:00:00Z"})
    assert refused.value.details["lost"] == ["timeZone"]
    assert ZONED[0] in await lines(server)
    await cal.update(event.event, {"start": "2026-10-26T15:00:00Z"}, accept=["timeZone"])
    assert {"DTSTART:20261026T150000Z", "DTEND:20261026T160000Z", *ZONED[3:]} <= await lines(server)
    # From now on its time is known to be an instant: this connection wrote it.
    await cal.update(event.event, {"start": "2026-10-26T16:00:00Z"})
    assert "DTEND:20261026T170000Z" in await lines(server)


async def test_what_another_client_changed_is_no_longer_ours(cal: Calendar, work: Any, server: RadicaleServer) -> None:
    made = await cal.create(calendar=work, title="Mine", start="2026-10-26T13:00:00Z", duration="PT1H")
    [stored] = await server.stored()
    uid = next(line for line in stored.ical.split("\r\n") if line.startswith("UID:")).removeprefix("UID:")
    await server.put("work", f"{uid}.ics", ical(uid, *ZONED))
    with pytest.raises(Unsupported) as refused:
        await cal.update(made.event, {"start": "2026-10-26T15:00:00Z"})
    assert refused.value.details["lost"] == ["timeZone"]


async def test_a_floating_event_stays_floating(cal: Calendar, server: RadicaleServer) -> None:
    floating = {"DTSTART:20261026T090000", "DTEND:20261026T100000"}
    await server.put("work", "f.ics", ical("f", *floating, "SUMMARY:Floating"))
    event = await only(cal)
    assert (event.start, event.end, event.time_zone) == ("2026-10-26T09:00:00", "2026-10-26T10:00:00", "floating")
    assert event.utc_start is None
    await cal.update(event.event, {"location": "Anywhere"})
    assert floating | {"LOCATION:Anywhere"} <= await lines(server)
    with pytest.raises(Unsupported) as refused:
        await cal.update(event.event, {"start": "2026-10-26T11:00:00"}, accept=["timeZone"])
    assert refused.value.details["lost"] == ["timeZone"]
    assert floating <= await lines(server)
    # It begins on the 25th somewhere, so a search that ends there shows it rather than missing it.
    assert len((await cal.search("2026-10-25T00:00:00Z", "2026-10-25T20:00:00Z")).events) == 1


@pytest.mark.parametrize(
    "series",
    [
        ("DTSTART:20261020T090000Z", "DTEND:20261020T100000Z", "RRULE:FREQ=WEEKLY;COUNT=4"),
        ("DTSTART:20261020T090000Z", "DTEND:20261020T100000Z", "RDATE:20261027T090000Z"),
    ],
)
async def test_a_series_is_neither_edited_nor_deleted_by_guess(
    cal: Calendar, server: RadicaleServer, series: tuple[str, ...]
) -> None:
    await server.put("work", "s.ics", ical("s", *series, "SUMMARY:Series"))
    found = await only(cal)
    event = await cal.get(found.event)
    assert event.recurring is True
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
    assert (found.recurring, found.start) == (True, "2026-10-24T09:00:00Z")
    assert (await cal.get(found.event)).start == "2026-10-01T09:00:00Z"
    assert (await cal.search("2026-10-24T10:00:00Z", "2026-10-25T09:00:00Z")).events == []


async def test_an_event_kept_with_a_duration_keeps_its_length_when_it_moves(
    cal: Calendar, server: RadicaleServer
) -> None:
    await server.put("work", "l.ics", ical("l", "DTSTART:20261026T150000Z", "DURATION:PT90M", "SUMMARY:Long"))
    event = await only(cal)
    assert event.end == "2026-10-26T16:30:00Z"
    await cal.update(event.event, {"start": "2026-10-26T16:00:00Z"}, accept=["timeZone"])
    stored = await lines(server)
    assert {"DTSTART:20261026T160000Z", "DTEND:20261026T173000Z"} <= stored
    assert not any(line.startswith("DURATION") for line in stored)


async def test_what_is_gone_is_not_found(cal: Calendar, work: Any, server: RadicaleServer) -> None:
    made = await cal.create(calendar=work, title="Short", start="2026-10-26T09:00:00Z", duration="PT1H")
    await cal.delete(made.event)
    assert await server.stored() == []
    for act in (cal.get(made.event), cal.update(made.event, {"title": "x"}), cal.delete(made.event)):
        with pytest.raises(NotFound):
            await act


async def test_calendars_of_one_name_are_ambiguous_and_none_is_chosen(
    cal: Calendar, work: Any, server: RadicaleServer
) -> None:
    await server.add_calendar("work2", "Work")
    try:
        assert [one.writable for one in (await cal.calendars()).calendars] == [False, False]
        with pytest.raises(Ambiguous):
            await cal.create(calendar=work, title="Where?", start="2026-10-26T09:00:00Z", duration="PT1H")
        with pytest.raises(Ambiguous):
            await cal.search("2026-10-24T00:00:00Z", "2026-10-31T00:00:00Z")
        assert await server.stored() == []
    finally:
        await server.remove_calendar("work2")


async def test_what_was_written_before_a_restart_is_still_ours(
    cal: Calendar, work: Any, server: RadicaleServer, store: SqliteStore
) -> None:
    made = await cal.create(calendar=work, title="Mine", start="2026-10-26T13:00:00Z", duration="PT1H")
    async with opened(server, store) as again:
        await again.update(made.event, {"start": "2026-10-27T13:00:00Z"})
    assert {"DTSTART:20261027T130000Z", "DTEND:20261027T140000Z"} <= await lines(server)


async def test_a_server_that_would_put_instants_into_a_zone_is_refused(
    server: RadicaleServer, store: SqliteStore
) -> None:
    async with opened(server, store, {"CAL_DEFAULT_TZ": "Pacific/Auckland"}) as cal:
        [calendar] = (await cal.calendars()).calendars
        with pytest.raises(Unavailable, match="CAL_DEFAULT_TZ=UTC"):
            await cal.create(
                calendar=calendar.calendar, title="x", start="2026-10-26T13:00:00Z", end="2026-10-26T14:00:00Z"
            )
        assert await server.stored() == []


async def test_a_wrong_password_is_unavailable_and_no_empty_list(server: RadicaleServer, store: SqliteStore) -> None:
    async with opened(server, store, {"CALDAV_PASSWORD": "wrong"}) as cal:
        with pytest.raises(Unavailable):
            await cal.calendars()


class Meddling(McpChannel):
    """A channel on which something happens to a tool call: `instead` is given it, and may send it."""

    instead: Callable[[str, Callable[[], Awaitable[Reply]]], Awaitable[Reply]] | None = None

    async def call(
        self, tool: str, arguments: Mapping[str, Any], *, meta: Mapping[str, Any], timeout: float | None = None
    ) -> Reply:
        async def send() -> Reply:
            return await super(Meddling, self).call(tool, arguments, meta=meta, timeout=timeout)

        return await (self.instead(tool, send) if self.instead else send())


@pytest.fixture(scope="module")
async def meddled(server: RadicaleServer) -> AsyncGenerator[tuple[Meddling, ProjectedProvider]]:
    upstream, loaded = published(NAME), named(NAME)
    session = McpSession(CommandTarget(upstream.command, env=upstream.env(server)))
    async with session:
        channel = Meddling(session)
        yield (
            channel,
            ProjectedProvider(loaded.source, Calendar, channel, tools=loaded.tools, title=NAME, path=loaded.path),
        )


CREATE = Calendar.definition.all_parts["calendar.create"]
LUNCH = {
    "calendar": "Work",
    "title": "Lunch",
    "location": "Here",
    "start": "2026-10-26T13:00:00Z",
    "end": "2026-10-26T14:00:00Z",
}
FAILED = Reply(content=None, is_error=True, text="Error executing tool create_event")


async def test_success_that_kept_something_else_is_no_success_fr15(
    server: RadicaleServer, meddled: tuple[Meddling, ProjectedProvider]
) -> None:
    channel, provider = meddled

    async def instead(tool: str, send: Callable[[], Awaitable[Reply]]) -> Reply:
        reply = await send()
        if tool == "create_event":
            [stored] = await server.stored()
            name = stored.href.rsplit("/", 1)[-1].replace("%40", "@")
            await server.put("work", name, stored.ical.replace("LOCATION:Here", "LOCATION:There"))
        return reply

    channel.instead = instead
    with pytest.raises(Internal) as told:
        await provider.invoke(CREATE, LUNCH)
    assert told.value.details["lost"] == ["location"]


async def test_a_failure_after_which_the_event_is_there_is_in_doubt(
    server: RadicaleServer, meddled: tuple[Meddling, ProjectedProvider]
) -> None:
    channel, provider = meddled

    async def instead(tool: str, send: Callable[[], Awaitable[Reply]]) -> Reply:
        reply = await send()
        return FAILED if tool == "create_event" else reply

    channel.instead = instead
    with pytest.raises(InDoubt):
        await provider.invoke(CREATE, LUNCH)
    assert len(await server.stored()) == 1


async def test_a_failure_that_wrote_nothing_says_so_with_the_servers_words_fr18(
    server: RadicaleServer, meddled: tuple[Meddling, ProjectedProvider]
) -> None:
    channel, provider = meddled

    async def instead(tool: str, send: Callable[[], Awaitable[Reply]]) -> Reply:
        return FAILED if tool == "create_event" else await send()

    channel.instead = instead
    with pytest.raises(Internal, match="wrote nothing") as told:
        await provider.invoke(CREATE, LUNCH)
    assert told.value.details["upstream"] == FAILED.text
    assert "state" not in told.value.details
    assert await server.stored() == []
