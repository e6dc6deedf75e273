"""agents-calendar 0.1.2 as a calendar: the published server, against a real Radicale that is read past it."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from hotplug.catalog.calendar import Calendar
from hotplug.conform.journey import load, play
from hotplug.connect import CommandTarget, McpChannel, McpSession, Reply, link_of
from hotplug.door import connect
from hotplug.errors import (
    Conflict,
    ConnectionFailed,
    InDoubt,
    Internal,
    InvalidArgument,
    NotFound,
    PermissionDenied,
    Unavailable,
    Unsupported,
)
from hotplug.projection import ProjectedProvider, named
from hotplug.store import Store, open_store
from hotplug.testing.published import published
from hotplug.testing.radicale import RadicaleServer, radicale
from hotplug.witness import CalDavWitness

pytestmark = [pytest.mark.anyio, pytest.mark.real]

JOURNEY = Path(__file__).parents[2] / "examples" / "journeys" / "calendar-day.yaml"
DAY = ("2026-10-26T00:00:00Z", "2026-10-27T00:00:00Z")
EDITED = ["timeZone", "title", "description", "freeBusyStatus", "participants", "alerts"]


@pytest.fixture(scope="module")
async def server(anyio_backend: str) -> AsyncGenerator[RadicaleServer]:
    async with radicale(calendars={"work": "Work", "home": "Home", "twin": "Work"}) as running:
        yield running


@pytest.fixture(scope="module")
async def store(anyio_backend: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Store]:
    async with open_store(f"sqlite:///{tmp_path_factory.mktemp('store') / 'store.sqlite3'}") as opened:
        yield opened


def target(server: RadicaleServer, **settings: str) -> CommandTarget:
    upstream = published("agents-calendar")
    return CommandTarget(upstream.command, env=upstream.env(server) | settings)


@pytest.fixture(scope="module")
async def cal(server: RadicaleServer, store: Store) -> AsyncGenerator[Calendar]:
    async with connect(Calendar, target(server), store=store, start_timeout=120.0) as connection:
        yield connection


@pytest.fixture
async def work(cal: Calendar) -> Any:
    return next(one.calendar for one in (await cal.calendars()).calendars if one.name == "Home")


async def lines(server: RadicaleServer, title: str) -> list[str] | None:
    """The lines of the stored event with that title, as RFC 5545 unfolds them, without what every write changes."""
    for one in await server.stored():
        text = one.ical.replace("\r\n ", "").split("\r\n")
        if f"SUMMARY:{title}" in text:
            event = text[text.index("BEGIN:VEVENT") + 1 : text.index("END:VEVENT")]
            return sorted(line for line in event if not line.startswith(("DTSTAMP", "UID")))
    return None


async def foreign(server: RadicaleServer, uid: str, *of_event: str, collection: str = "home") -> None:
    body = [f"UID:{uid}", "DTSTAMP:20261001T000000Z", f"SUMMARY:{uid}", *of_event]
    whole = ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//other//EN", "BEGIN:VEVENT", *body, "END:VEVENT"]
    await server.put(collection, f"{uid}.ics", "\r\n".join([*whole, "END:VCALENDAR", ""]))


async def find(cal: Calendar, title: str, start: str = DAY[0], end: str = DAY[1]) -> Any:
    found = [one for one in (await cal.search(start, end)).events if one.title == title]
    return found[0] if found else None


async def refused(call: Any) -> list[str]:
    with pytest.raises(Unsupported) as caught:
        await call
    return caught.value.details["lost"]


async def test_the_journey_passes_and_refuses_only_times_that_the_server_loses(
    cal: Calendar, server: RadicaleServer
) -> None:
    witness = CalDavWitness(lambda: _texts(server))
    outcome = await play(load(JOURNEY), link_of(cal), name="agents-calendar", via="projected", witness=witness)
    seen = {cell.step: (cell.status, cell.witnessed) for cell in outcome.cells if cell.status != "passed"}
    assert seen == {
        "keep 9 o'clock in Berlin": ("refused", True),
        "keep 7 o'clock anywhere": ("refused", True),
    }
    assert not any("Planning" in text for text in await _texts(server))


async def _texts(server: RadicaleServer) -> list[str]:
    return [one.ical for one in await server.stored()]


async def test_calendars_of_one_name_are_told_apart(cal: Calendar) -> None:
    found = (await cal.calendars()).calendars
    assert sorted(one.name for one in found) == ["Home", "Work", "Work"]
    assert len({one.calendar for one in found}) == 3


async def test_what_is_created_is_stored_as_asked(cal: Calendar, server: RadicaleServer, work: Any) -> None:
    await cal.create(
        calendar=work,
        title='Ünï, ; \\ | ☕ <b>&amp; "q"',
        start="2026-10-26T09:00:00-04:00",
        end="2026-10-26T10:30:00-04:00",
        description="one\r\ntwo, three; \\four\n\n  five ",
        location="Raum\nHaus; B",
        status="tentative",
    )
    assert await lines(server, 'Ünï\\, \\; \\\\ | ☕ <b>&amp\\; "q"') == [
        "DESCRIPTION:one\\ntwo\\, three\\; \\\\four\\n\\n  five ",
        "DTEND:20261026T143000Z",
        "DTSTART:20261026T130000Z",
        "LOCATION:Raum\\nHaus\\; B",
        "STATUS:TENTATIVE",
        'SUMMARY:Ünï\\, \\; \\\\ | ☕ <b>&amp\\; "q"',
    ]


async def test_an_all_day_event_keeps_its_dates_when_it_is_written_back_fr_02(
    cal: Calendar, server: RadicaleServer, work: Any
) -> None:
    made = await cal.create(calendar=work, title="fair", start="2026-09-14", end="2026-09-15", show_without_time=True)
    stored = ["DTEND;VALUE=DATE:20260915", "DTSTART;VALUE=DATE:20260914", "SUMMARY:fair"]
    assert await lines(server, "fair") == stored
    seen = await cal.get(made.event)
    assert (seen.start, seen.end, seen.duration, seen.show_without_time) == ("2026-09-14", "2026-09-15", "P1D", True)
    await cal.update(made.event, {"start": seen.start, "end": seen.end, "show_without_time": True})
    assert await lines(server, "fair") == stored


async def test_what_an_update_leaves_out_stays_fr_04(cal: Calendar, server: RadicaleServer, work: Any) -> None:
    made = await cal.create(
        calendar=work,
        title="kept",
        start="2026-10-26T13:00:00Z",
        duration="PT1H",
        description="d",
        location="l",
        status="confirmed",
    )
    await cal.update(made.event, {"start": "2026-10-26T15:00:00Z"})
    await cal.update(made.event, {"location": "m"})
    assert await lines(server, "kept") == [
        "DESCRIPTION:d",
        "DTEND:20261026T160000Z",
        "DTSTART:20261026T150000Z",
        "LOCATION:m",
        "STATUS:CONFIRMED",
        "SUMMARY:kept",
    ]


async def test_a_stale_revision_is_a_conflict_that_names_the_current_one_fr_06(cal: Calendar, work: Any) -> None:
    made = await cal.create(calendar=work, title="raced", start="2026-10-26T13:00:00Z", duration="PT1H")
    moved = await cal.update(made.event, {"title": "raced once"}, revision=made.revision)
    with pytest.raises(Conflict) as caught:
        await cal.update(made.event, {"title": "raced twice"}, revision=made.revision)
    assert caught.value.details["revision"] == moved.revision
    with pytest.raises(Conflict):
        await cal.delete(made.event, revision=made.revision)
    assert (await cal.get(made.event)).title == "raced once"


async def test_what_the_server_has_no_place_for_is_refused_before_anything_is_written(
    cal: Calendar, server: RadicaleServer, work: Any
) -> None:
    before = len(await server.stored())
    zoned: dict[str, Any] = {"start": "2026-10-26T09:00:00", "duration": "PT1H", "time_zone": "America/New_York"}
    floating: dict[str, Any] = {"start": "2026-10-26T09:00:00", "duration": "PT1H", "time_zone": "floating"}
    instant: dict[str, Any] = {"start": "2026-10-26T13:00:00Z", "duration": "PT1H"}
    assert await refused(cal.create(calendar=work, title="no", **zoned)) == ["timeZone"]
    assert await refused(cal.create(calendar=work, title="no", **floating)) == ["timeZone"]
    both = cal.create(calendar=work, title="no", free_busy_status="free", **zoned)
    assert await refused(both) == ["timeZone", "freeBusyStatus"]
    assert await refused(cal.create(calendar=work, title="no", free_busy_status="free", **instant)) == [
        "freeBusyStatus"
    ]
    rules: Any = [{"frequency": "weekly"}]
    assert await refused(cal.create(calendar=work, title="no", recurrence_rules=rules, **instant)) == [
        "recurrenceRules"
    ]
    with pytest.raises(InvalidArgument, match="U\\+000D"):
        await cal.create(calendar=work, title="a\rb", **instant)
    early = cal.create(calendar=work, title="no", start="0999-10-26T13:00:00Z", duration="PT1H")
    assert await refused(early) == ["start"]
    with pytest.raises(InvalidArgument, match="part of a second"):
        await cal.create(calendar=work, title="no", start="2026-10-26T13:00:00.5Z", duration="PT1H")
    with pytest.raises(InvalidArgument, match="before"):
        await cal.create(calendar=work, title="no", start="2026-10-26T13:00:00Z", end="2026-10-26T12:00:00Z")
    assert len(await server.stored()) == before


async def test_a_zone_that_is_accepted_as_lost_leaves_the_instant(
    cal: Calendar, server: RadicaleServer, work: Any
) -> None:
    await cal.create(
        calendar=work,
        title="far",
        start="2026-10-26T09:00:00",
        duration="PT1H",
        time_zone="America/New_York",
        accept=["timeZone"],
    )
    assert await lines(server, "far") == ["DTEND:20261026T140000Z", "DTSTART:20261026T130000Z", "SUMMARY:far"]


async def test_nothing_can_be_emptied(cal: Calendar, work: Any) -> None:
    made = await cal.create(calendar=work, title="full", start="2026-10-26T13:00:00Z", duration="PT1H", description="d")
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


async def test_a_foreign_event_is_changed_only_where_each_loss_is_accepted(
    cal: Calendar, server: RadicaleServer
) -> None:
    await foreign(
        server,
        "theirs",
        "DTSTART:20261026T100000Z",
        "DTEND:20261026T110000Z",
        "TRANSP:TRANSPARENT",
        "ATTENDEE;CN=Bob:mailto:bob@example.org",
    )
    before = await lines(server, "theirs")
    event = (await find(cal, "theirs")).event
    assert await refused(cal.update(event, {"location": "x"})) == EDITED
    assert await refused(cal.update(event, {"location": "x"}, accept=EDITED[1:])) == ["timeZone"]
    assert await lines(server, "theirs") == before
    await cal.update(event, {"location": "x"}, accept=EDITED)
    assert await lines(server, "theirs") == [
        "DTEND:20261026T110000Z",
        "DTSTART:20261026T100000Z",
        "LOCATION:x",
        "SUMMARY:theirs",
    ]
    # From now on it is as we wrote it.
    await cal.update(event, {"location": "y"})


async def test_our_own_event_that_somebody_changed_is_theirs(cal: Calendar, server: RadicaleServer, work: Any) -> None:
    made = await cal.create(calendar=work, title="shared", start="2026-10-26T13:00:00Z", duration="PT1H")
    stored = next(one for one in await server.stored() if "SUMMARY:shared" in one.ical)
    alarm = "BEGIN:VALARM\r\nACTION:DISPLAY\r\nTRIGGER:-PT15M\r\nDESCRIPTION:r\r\nEND:VALARM\r\nEND:VEVENT"
    await server.put("home", stored.href.rpartition("/")[2], stored.ical.replace("END:VEVENT", alarm))
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


async def test_a_series_of_another_client_is_recognised_and_not_touched(cal: Calendar, server: RadicaleServer) -> None:
    await foreign(server, "weekly", "DTSTART:20261005T090000Z", "DTEND:20261005T100000Z", "RRULE:FREQ=WEEKLY;COUNT=4")
    listed = await find(cal, "weekly")
    assert (listed.recurring, listed.start) == (True, "2026-10-05T09:00:00Z")
    assert (await cal.get(listed.event)).recurring is True
    first = await find(cal, "weekly", "2026-10-05T00:00:00Z", "2026-10-06T00:00:00Z")
    assert "recurring" in (first.unknown or ())
    assert await refused(cal.delete(listed.event)) == ["recurrenceRules"]
    assert "recurrenceRules" in await refused(cal.update(listed.event, {"location": "x"}))
    assert "RRULE:FREQ=WEEKLY;COUNT=4" in (await lines(server, "weekly") or [])
    await cal.delete(listed.event, accept=["recurrenceRules"])
    assert await lines(server, "weekly") is None


async def test_an_event_without_a_shown_end_says_so(cal: Calendar, server: RadicaleServer) -> None:
    await foreign(server, "long", "DTSTART:20261026T150000Z", "DURATION:PT90M")
    seen = await cal.get((await find(cal, "long")).event)
    assert (seen.end, seen.duration) == (None, None)
    assert {"end", "duration"} <= set(seen.unknown or ())
    assert "recurring" in (seen.unknown or ())
    losses = [*EDITED, "recurrenceRules", "recurrenceOverrides"]
    assert await refused(cal.update(seen.event, {"location": "x"}, accept=losses)) == ["end"]
    assert (await find(cal, "long", "2026-10-26T16:00:00Z", "2026-10-26T16:10:00Z")).recurring is None
    assert await refused(cal.delete(seen.event)) == ["recurring"]
    await cal.delete(seen.event, accept=["recurring"])


async def test_a_series_whose_first_event_ends_as_the_range_begins_is_found(
    cal: Calendar, server: RadicaleServer
) -> None:
    await foreign(server, "daily", "DTSTART:20270301T090000Z", "DTEND:20270301T100000Z", "RRULE:FREQ=DAILY;COUNT=3")
    found = await find(cal, "daily", "2027-03-01T10:00:00Z", "2027-03-02T10:00:00Z")
    assert found.start == "2027-03-01T09:00:00Z"
    assert await find(cal, "daily", "2027-03-01T10:00:00Z", "2027-03-02T09:00:00Z") is None
    whole = await cal.search("1000-01-01T00:00:00Z", "9999-12-31T23:59:59Z", query="daily")
    assert [event.title for event in whole.events] == ["daily"]


async def test_a_search_gives_pages_in_order(cal: Calendar, work: Any) -> None:
    for hour in (12, 10, 11):
        await cal.create(calendar=work, title=f"paged {hour}", start=f"2027-01-04T{hour}:00:00Z", duration="PT0S")
    day = ("2027-01-04T10:00:00Z", "2027-01-04T12:00:01Z")
    first = await cal.search(*day, calendar=work, query="PAGED", limit=2)
    assert [event.title for event in first.events] == ["paged 10", "paged 11"]
    rest = await cal.search(*day, calendar=work, query="PAGED", limit=2, cursor=first.cursor or "")
    assert ([event.title for event in rest.events], rest.cursor) == (["paged 12"], None)
    assert (await cal.search("2027-01-04T11:00:01Z", "2027-01-04T12:00:00Z", calendar=work)).events == []


async def test_what_is_not_there_is_not_found(cal: Calendar, server: RadicaleServer) -> None:
    await server.add_calendar("gone", "Gone")
    gone = next(one.calendar for one in (await cal.calendars()).calendars if one.name == "Gone")
    made = await cal.create(calendar=gone, title="x", start="2026-10-26T13:00:00Z", duration="PT1H")
    await server.remove_calendar("gone")
    with pytest.raises(NotFound):
        await cal.get(made.event)
    with pytest.raises(NotFound):
        await cal.update(made.event, {"title": "y"})
    with pytest.raises(NotFound):
        await cal.delete(made.event)
    with pytest.raises(NotFound):
        await cal.create(calendar=gone, title="x", start="2026-10-26T13:00:00Z", duration="PT1H")
    with pytest.raises(NotFound):
        await cal.search(*DAY, calendar=gone)


async def test_an_error_in_an_event_is_no_failure_fr_18(cal: Calendar, work: Any) -> None:
    text = '{"error": "CalDAV GET 404"}'
    made = await cal.create(
        calendar=work, title=text, start="2026-10-26T13:00:00Z", duration="PT1H", description="error: 404"
    )
    assert (await cal.get(made.event)).title == text


async def test_one_unknown_zone_makes_a_calendar_unavailable_and_not_empty(
    cal: Calendar, server: RadicaleServer
) -> None:
    await server.add_calendar("odd", "Odd")
    odd = next(one.calendar for one in (await cal.calendars()).calendars if one.name == "Odd")
    await foreign(server, "odd", "DTSTART;TZID=Custom Zone:20261026T100000", collection="odd")
    with pytest.raises(Unavailable, match="zone"):
        await cal.search(*DAY, calendar=odd)
    await server.remove_calendar("odd")


async def test_a_wrong_password_is_denied_and_never_an_empty_calendar(server: RadicaleServer, store: Store) -> None:
    wrong = target(server, CALDAV_PASSWORD="wrong")
    async with connect(Calendar, wrong, store=store, start_timeout=120.0) as denied:
        with pytest.raises(PermissionDenied):
            await denied.calendars()
        with pytest.raises(PermissionDenied):
            await denied.search(*DAY)


async def test_a_server_that_is_gone_is_unavailable_and_what_was_written_before_is_still_ours(store: Store) -> None:
    async with AsyncExitStack() as stack:
        async with radicale(calendars={"work": "Work"}) as server:
            cal = await stack.enter_async_context(connect(Calendar, target(server), store=store, start_timeout=120.0))
            calendar = (await cal.calendars()).calendars[0].calendar
            made = await cal.create(calendar=calendar, title="x", start="2026-10-26T13:00:00Z", duration="PT1H")
            # Another process, the same store: what we wrote is known.
            async with connect(Calendar, target(server), store=store, start_timeout=120.0) as again:
                assert (await again.get(made.event)).recurring is False
                await again.update(made.event, {"title": "y"})
        with pytest.raises(Unavailable):
            await cal.get(made.event)
        with pytest.raises(Unavailable):
            await cal.search(*DAY)
        with pytest.raises(Unavailable):
            await cal.create(calendar=calendar, title="x", start="2026-10-26T13:00:00Z", duration="PT1H")


class _Between:
    """The real channel, with answers or arguments of one tool changed on the way."""

    def __init__(self, channel: McpChannel) -> None:
        self._channel = channel
        self.drop: str | None = None
        self.answer: Reply | None = None
        self.before = ""
        self.meanwhile: Callable[[], Awaitable[None]] | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._channel, name)

    async def call(self, tool: str, arguments: Any, *, meta: Any, timeout: float | None = None) -> Reply:
        if tool == "calendar_update" and self.meanwhile is not None:
            await self.meanwhile()
        if tool == "calendar_add":
            reply = await self._channel.call(
                tool, {name: value for name, value in arguments.items() if name != self.drop}, meta=meta
            )
            return self.answer or reply
        reply = await self._channel.call(tool, arguments, meta=meta, timeout=timeout)
        return Reply(reply.content, reply.is_error, self.before + reply.text)


async def test_what_only_a_bad_server_does_is_told_fr_15(server: RadicaleServer) -> None:
    loaded = named("agents-calendar")
    create, calendars = (Calendar.definition.all_parts[f"calendar.{name}"] for name in ("create", "calendars"))
    async with McpSession(target(server), start_timeout=120.0) as session:
        between = _Between(McpChannel(session))
        provider = ProjectedProvider(
            loaded.source, Calendar, between, tools=loaded.tools, title="agents-calendar", path=loaded.path
        )
        # The notice that the server puts before its first answer once a newer version is out.
        between.before = "agents-calendar 9.9.9 available (you have 0.1.2): uvx agents-calendar@latest\n\n"
        calendar = (await provider.invoke(calendars, {}))["calendars"][0]["calendar"]
        event = {"calendar": calendar, "title": "dropped", "start": "2026-10-26T13:00:00Z", "duration": "PT1H"}

        between.drop = "location"
        with pytest.raises(Internal) as caught:
            await provider.invoke(create, {**event, "location": "Room 4"})
        assert caught.value.details["lost"] == ["location"]
        assert caught.value.details["state"] == "done"

        between.answer = Reply(None, text='{"error": "CalDAV PUT 502: bad gateway"}')
        with pytest.raises(InDoubt) as doubt:
            await provider.invoke(create, event)
        assert doubt.value.details["state"] == "unknown"

        between.answer = Reply(None, text="<html>busy</html>")
        with pytest.raises(ConnectionFailed) as unread:
            await provider.invoke(create, event)
        assert unread.value.details["state"] == "unknown"
        assert re.search("html", str(unread.value.details["text"]))

        between.answer = None
        between.drop = None
        made = await provider.invoke(create, {**event, "title": "overtaken"})

        async def overtake() -> None:
            stored = next(one for one in await server.stored() if "SUMMARY:overtaken" in one.ical)
            await server.put(
                stored.collection, stored.href.rpartition("/")[2], stored.ical.replace("T140000Z", "T150000Z")
            )

        between.meanwhile = overtake
        update = Calendar.definition.all_parts["calendar.update"]
        with pytest.raises(Conflict) as overtaken:
            await provider.invoke(update, {"event": made["event"], "changes": {"title": "mine"}})
        assert overtaken.value.details["revision"] not in {None, "", made["revision"]}
        assert "DTEND:20261026T150000Z" in (await lines(server, "overtaken") or [])
