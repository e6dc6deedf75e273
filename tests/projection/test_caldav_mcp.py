"""caldav-mcp 0.10.0 as a calendar: the published server, against a real Radicale that is read past it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.abc import SocketAttribute

from hotplug.catalog.calendar import Calendar
from hotplug.conform.journey import load, play
from hotplug.connect import CommandTarget, McpChannel, McpSession, Reply, link_of
from hotplug.door import connect
from hotplug.errors import (
    Conflict,
    ConnectError,
    InDoubt,
    Internal,
    InvalidArgument,
    NotFound,
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
LOSSES = ["start", "end", "timeZone", "showWithoutTime", "status", "freeBusyStatus", "participants"]
SERIES = ["recurrenceRules", "recurrenceOverrides"]
HOUR: dict[str, Any] = {"start": "2026-10-26T13:00:00Z", "duration": "PT1H"}


@pytest.fixture(scope="module")
async def server(anyio_backend: str) -> AsyncGenerator[RadicaleServer]:
    async with radicale(calendars={"work": "Work", "home": "Home", "num": "2026", "gone": "Gone"}) as running:
        yield running


@pytest.fixture(scope="module")
async def store(anyio_backend: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Store]:
    async with open_store(f"sqlite:///{tmp_path_factory.mktemp('store') / 'store.sqlite3'}") as opened:
        yield opened


def target(server: RadicaleServer, **settings: str) -> CommandTarget:
    upstream = published("caldav-mcp")
    env = upstream.env(server) | settings
    # The projection sets it.
    del env["TZ"]
    return CommandTarget(upstream.command, env=env)


@pytest.fixture(scope="module")
async def cal(server: RadicaleServer, store: Store) -> AsyncGenerator[Calendar]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", "Asia/Tokyo")
        async with connect(Calendar, target(server), store=store, start_timeout=120.0) as connection:
            yield connection


@pytest.fixture
async def home(cal: Calendar) -> Any:
    return next(one.calendar for one in (await cal.calendars()).calendars if one.name == "Home")


async def lines(server: RadicaleServer, title: str) -> list[str] | None:
    """The lines of the stored event with that title, as RFC 5545 unfolds them, without what every write changes."""
    for one in await server.stored():
        text = one.ical.replace("\r\n ", "").split("\r\n")
        if f"SUMMARY:{title}" in text:
            event = text[text.index("BEGIN:VEVENT") + 1 : text.index("END:VEVENT")]
            return sorted(line for line in event if not line.startswith(("DTSTAMP", "UID")))
    return None


async def foreign(server: RadicaleServer, uid: str, *of_event: str, file: str | None = None) -> None:
    body = [f"UID:{uid}", "DTSTAMP:20261001T000000Z", f"SUMMARY:{uid}", *of_event]
    whole = ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//other//EN", "BEGIN:VEVENT", *body, "END:VEVENT"]
    await server.put("home", file or f"{uid}.ics", "\r\n".join([*whole, "END:VCALENDAR", ""]))


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
    async def texts() -> list[str]:
        return [one.ical for one in await server.stored()]

    outcome = await play(load(JOURNEY), link_of(cal), name="caldav-mcp", via="projected", witness=CalDavWitness(texts))
    seen = {cell.step: (cell.status, cell.witnessed) for cell in outcome.cells if cell.status != "passed"}
    assert seen == {
        "be refused on a stale revision": ("absent", None),
        "keep 9 o'clock in Berlin": ("refused", True),
        "keep 7 o'clock anywhere": ("refused", True),
        "keep a whole day": ("refused", True),
    }
    assert not any("Planning" in text for text in await texts())


async def test_a_calendar_whose_name_is_a_number_has_a_name(cal: Calendar) -> None:
    assert {one.name for one in (await cal.calendars()).calendars} == {"Work", "Home", "2026", "Gone"}


async def test_what_is_created_is_stored_as_asked(cal: Calendar, server: RadicaleServer, home: Any) -> None:
    await cal.create(
        calendar=home,
        title='Ünï, \\ | ☕ <b>& "q"',
        start="2026-10-26T09:00:00-04:00",
        end="2026-10-26T10:30:00-04:00",
        description="one\r\ntwo, three; \\four\n\n  five ",
        location="Raum\nHaus; B",
    )
    assert await lines(server, 'Ünï\\, \\\\ | ☕ <b>& "q"') == [
        "DESCRIPTION:one\\ntwo\\, three\\; \\\\four\\n\\n  five ",
        "DTEND:20261026T143000Z",
        "DTSTART:20261026T130000Z",
        "LOCATION:Raum\\nHaus\\; B",
        'SUMMARY:Ünï\\, \\\\ | ☕ <b>& "q"',
    ]


async def test_what_an_update_leaves_out_stays_and_texts_can_be_emptied_fr_04(
    cal: Calendar, server: RadicaleServer, home: Any
) -> None:
    made = await cal.create(calendar=home, title="kept", description="d", location="l", **HOUR)
    await cal.update(made.event, {"start": "2026-10-26T15:00:00Z"})
    await cal.update(made.event, {"location": "m"})
    assert await lines(server, "kept") == [
        "DESCRIPTION:d",
        "DTEND:20261026T160000Z",
        "DTSTART:20261026T150000Z",
        "LOCATION:m",
        "SUMMARY:kept",
    ]
    await cal.update(made.event, {"end": "2026-10-26T15:00:00Z"}, clear=["description", "location"])
    seen = await cal.get(made.event)
    assert (seen.description, seen.location, seen.duration) == (None, None, "PT0S")


async def test_what_the_server_has_no_place_for_is_refused_before_anything_is_written(
    cal: Calendar, server: RadicaleServer, home: Any
) -> None:
    before = len(await server.stored())
    local = {"start": "2026-10-26T09:00:00", "duration": "PT1H"}
    day: dict[str, Any] = {"start": "2026-10-26", "duration": "P1D", "show_without_time": True}
    assert await refused(cal.create(calendar=home, title="no", time_zone="Europe/Berlin", **local)) == ["timeZone"]
    assert await refused(cal.create(calendar=home, title="no", time_zone="floating", **local)) == ["timeZone"]
    assert await refused(cal.create(calendar=home, title="no", **day)) == ["showWithoutTime"]
    assert await refused(cal.create(calendar=home, title="", **HOUR)) == ["title"]
    several = cal.create(calendar=home, title="no", status="tentative", free_busy_status="free", **HOUR)
    assert await refused(several) == ["status", "freeBusyStatus"]
    alerts: Any = [{"offset": "-PT15M"}]
    assert await refused(cal.create(calendar=home, title="no", alerts=alerts, **HOUR)) == ["alerts"]
    with pytest.raises(InvalidArgument, match="U\\+0000"):
        await cal.create(calendar=home, title="a\x00b", **HOUR)
    early = cal.create(calendar=home, title="no", start="0999-10-26T13:00:00Z", duration="PT1H")
    assert await refused(early) == ["start"]
    with pytest.raises(InvalidArgument, match="part of a second"):
        await cal.create(calendar=home, title="no", start="2026-10-26T13:00:00.5Z", duration="PT1H")
    with pytest.raises(InvalidArgument, match="floating"):
        await cal.create(calendar=home, title="no", **local)
    assert len(await server.stored()) == before


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
    await cal.update((await find(cal, "feast")).event, {"location": "x"}, accept=LOSSES)
    times = [line for line in await lines(server, "feast") or [] if line.startswith("DT")]
    assert times == ["DTEND:20261027T000000Z", "DTSTART:20261026T000000Z"]


async def test_a_foreign_event_is_changed_only_where_each_loss_is_accepted(
    cal: Calendar, server: RadicaleServer
) -> None:
    await foreign(server, "theirs", "DTSTART:20261026T100000Z", "DTEND:20261026T110000Z", "STATUS:TENTATIVE")
    before = await lines(server, "theirs")
    event = (await find(cal, "theirs")).event
    seen = await cal.get(event)
    assert (seen.start, seen.duration, seen.recurring, seen.status) == ("2026-10-26T10:00:00Z", "PT1H", False, None)
    assert {"timeZone", "showWithoutTime", "status", "freeBusyStatus", "utcStart"} <= set(seen.unknown or ())
    assert await refused(cal.update(event, {"location": "x"})) == LOSSES
    assert await refused(cal.update(event, {"location": "x"}, accept=LOSSES[1:])) == ["start"]
    assert await lines(server, "theirs") == before
    await cal.update(event, {"location": "x"}, accept=LOSSES)
    assert "LOCATION:x" in (await lines(server, "theirs") or [])
    # Nobody knows what became of its zone, so it is still theirs.
    assert await refused(cal.update(event, {"location": "y"})) == LOSSES


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
    assert await refused(cal.update(seen.event, {"title": "mine"})) == LOSSES
    assert await lines(server, uid) == before
    await cal.delete(seen.event)
    assert await lines(server, uid) is None


async def test_our_own_event_that_looks_otherwise_by_now_is_theirs(
    cal: Calendar, server: RadicaleServer, home: Any
) -> None:
    made = await cal.create(calendar=home, title="shared", **HOUR)
    stored = next(one for one in await server.stored() if "SUMMARY:shared" in one.ical)
    changed = stored.ical.replace("T140000Z", "T150000Z").replace("END:VEVENT", "STATUS:CANCELLED\r\nEND:VEVENT")
    await server.put("home", stored.href.rpartition("/")[2], changed)
    assert await refused(cal.update(made.event, {"location": "x"})) == LOSSES


async def test_a_series_of_another_client_is_recognised_and_not_touched(cal: Calendar, server: RadicaleServer) -> None:
    await foreign(server, "weekly", "DTSTART:20261005T090000Z", "DTEND:20261005T100000Z", "RRULE:FREQ=WEEKLY;COUNT=4")
    listed = await find(cal, "weekly")
    assert (listed.recurring, listed.start) == (True, "2026-10-05T09:00:00Z")
    assert (await cal.get(listed.event)).recurring is True
    first = await find(cal, "weekly", "2026-10-05T00:00:00Z", "2026-10-06T00:00:00Z")
    assert "recurring" in (first.unknown or ())
    assert await find(cal, "weekly", "2026-10-06T00:00:00Z", "2026-10-12T00:00:00Z") is None
    assert await refused(cal.delete(listed.event)) == ["recurrenceRules"]
    assert await refused(cal.update(listed.event, {"location": "x"})) == [*LOSSES, *SERIES]
    assert "RRULE:FREQ=WEEKLY;COUNT=4" in (await lines(server, "weekly") or [])
    await cal.delete(listed.event, accept=["recurrenceRules"])
    assert await lines(server, "weekly") is None


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
    rule = ["DTSTART:20261019T090000Z", "DTEND:20261019T100000Z", "RRULE:FREQ=WEEKLY;COUNT=2", "END:VEVENT", *moved]
    await foreign(server, "moved", *rule)
    found = [event for event in (await cal.search(*DAY)).events if event.title.startswith("moved")]
    assert [(event.title, event.recurring) for event in found] == [("moved", True)]
    assert (await cal.get(found[0].event)).recurring is True


async def test_a_series_whose_first_event_ends_as_the_range_begins_is_found(
    cal: Calendar, server: RadicaleServer
) -> None:
    await foreign(server, "daily", "DTSTART:20270301T090000Z", "DTEND:20270301T100000Z", "RRULE:FREQ=DAILY;COUNT=3")
    found = await find(cal, "daily", "2027-03-01T10:00:00Z", "2027-03-02T10:00:00Z")
    assert found.start == "2027-03-01T09:00:00Z"
    assert await find(cal, "daily", "2027-03-01T10:00:00Z", "2027-03-02T09:00:00Z") is None
    whole = await cal.search("1000-01-01T00:00:00Z", "9999-12-31T23:59:59Z", query="daily")
    assert [event.title for event in whole.events] == ["daily"]


async def test_a_search_gives_pages_in_order(cal: Calendar, home: Any) -> None:
    for hour in (12, 10, 11):
        await cal.create(calendar=home, title=f"paged {hour}", start=f"2027-01-04T{hour}:00:00Z", duration="PT0S")
    day = ("2027-01-04T10:00:00Z", "2027-01-04T12:00:01Z")
    first = await cal.search(*day, query="PAGED", limit=2)
    assert [event.title for event in first.events] == ["paged 10", "paged 11"]
    rest = await cal.search(*day, query="PAGED", limit=2, cursor=first.cursor or "")
    assert ([event.title for event in rest.events], rest.cursor) == (["paged 12"], None)
    with pytest.raises(InvalidArgument, match="cursor"):
        await cal.search(*day, cursor="nonsense")


async def test_a_file_that_another_client_named_otherwise_can_be_read_only(
    cal: Calendar, server: RadicaleServer
) -> None:
    await foreign(server, "odd", "DTSTART:20261026T100000Z", "DTEND:20261026T110000Z", file="another.ics")
    event = (await find(cal, "odd")).event
    with pytest.raises(Unavailable, match="file"):
        await cal.delete(event)
    with pytest.raises(Unavailable, match="file"):
        await cal.update(event, {"location": "x"}, accept=LOSSES)
    assert await lines(server, "odd") is not None


async def test_a_uid_that_the_server_cannot_write_into_an_address_leaves_no_doubt(
    cal: Calendar, server: RadicaleServer
) -> None:
    await foreign(server, "salt&pepper", "DTSTART:20261026T100000Z", "DTEND:20261026T110000Z")
    event = (await find(cal, "salt&pepper")).event
    with pytest.raises(Unavailable, match="uid"):
        await cal.update(event, {"location": "x"}, accept=LOSSES)
    await cal.delete(event)
    assert await lines(server, "salt&pepper") is None


async def test_what_is_not_there_is_not_found(cal: Calendar, server: RadicaleServer, home: Any) -> None:
    gone = next(one.calendar for one in (await cal.calendars()).calendars if one.name == "Gone")
    made = await cal.create(calendar=gone, title="x", **HOUR)
    await server.remove_calendar("gone")
    try:
        for call in (
            cal.get(made.event),
            cal.update(made.event, {"title": "y"}),
            cal.delete(made.event),
            cal.create(calendar=gone, title="x", **HOUR),
            cal.search(*DAY, calendar=gone),
        ):
            with pytest.raises(NotFound):
                await call
    finally:
        await server.add_calendar("gone", "Gone")
    twice = await cal.create(calendar=home, title="once", **HOUR)
    await cal.delete(twice.event)
    with pytest.raises(NotFound):
        await cal.update(twice.event, {"title": "y"})


async def test_a_failure_in_an_event_is_no_failure_fr_18(cal: Calendar, home: Any) -> None:
    made = await cal.create(calendar=home, title="Failed to create event.", description="Event not found: x", **HOUR)
    assert (await cal.get(made.event)).title == "Failed to create event."


async def test_a_wrong_password_is_said_at_the_start(server: RadicaleServer, store: Store) -> None:
    with pytest.raises(ConnectError) as caught:
        async with connect(Calendar, target(server, CALDAV_PASSWORD="wrong"), store=store, start_timeout=120.0):
            pass
    assert any("401" in line for line in caught.value.log)


async def test_a_server_that_is_gone_is_unavailable_and_what_was_written_before_is_still_ours(store: Store) -> None:
    async with AsyncExitStack() as stack:
        async with radicale(calendars={"work": "Work"}) as server:
            cal = await stack.enter_async_context(connect(Calendar, target(server), store=store, start_timeout=120.0))
            calendar = (await cal.calendars()).calendars[0].calendar
            made = await cal.create(calendar=calendar, title="x", **HOUR)
            # Another process, the same store: what we wrote is known.
            async with connect(Calendar, target(server), store=store, start_timeout=120.0) as again:
                await again.update(made.event, {"title": "y"})
        with pytest.raises(Unavailable):
            await cal.get(made.event)
        with pytest.raises(Unavailable):
            await cal.search(*DAY)
        with pytest.raises(Unavailable):
            await cal.create(calendar=calendar, title="x", **HOUR)


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
        slow = target(server, CALDAV_BASE_URL=f"http://127.0.0.1:{port}/")
        async with connect(Calendar, slow, store=store, start_timeout=120.0) as cal:
            calendar = (await cal.calendars()).calendars[0].calendar
            with pytest.raises(InDoubt) as caught:
                await cal.create(calendar=calendar, title=title, **HOUR)
            assert caught.value.details["state"] == "unknown"
            # The server said that it failed, and it was written all the same.
            assert await lines(server, title) is not None
            with pytest.raises(Unavailable):
                await cal.search(*DAY, calendar=calendar)
        tasks.cancel_scope.cancel()


class _Between:
    """The real channel, with what one tool is asked or answers changed on the way."""

    def __init__(self, channel: McpChannel) -> None:
        self._channel = channel
        self.drop: str | None = None
        self.before_update: Any = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._channel, name)

    async def call(self, tool: str, arguments: Any, *, meta: Any, timeout: float | None = None) -> Reply:
        if tool == "update-event" and self.before_update is not None:
            return self.before_update
        sent = {name: value for name, value in arguments.items() if tool != "create-event" or name != self.drop}
        return await self._channel.call(tool, sent, meta=meta, timeout=timeout)


async def test_what_only_a_bad_server_does_is_told_fr_15(server: RadicaleServer) -> None:
    loaded = named("caldav-mcp")
    parts = Calendar.definition.all_parts
    async with McpSession(target(server), start_timeout=120.0) as session:
        between = _Between(McpChannel(session))
        provider = ProjectedProvider(
            loaded.source, Calendar, between, tools=loaded.tools, title="caldav-mcp", path=loaded.path
        )
        listed = await provider.invoke(parts["calendar.calendars"], {})
        event = {"calendar": listed["calendars"][0]["calendar"], "title": "dropped", **HOUR}
        between.drop = "location"
        with pytest.raises(Internal) as caught:
            await provider.invoke(parts["calendar.create"], {**event, "location": "Room 4"})
        assert (caught.value.details["lost"], caught.value.details["state"]) == (["location"], "done")

        between.drop = None
        made = await provider.invoke(parts["calendar.create"], event)
        between.before_update = Reply(None, is_error=True, text="Event with the specified uid does not match.")
        change = {"event": made["event"], "changes": {"title": "raced"}}
        with pytest.raises(Conflict):
            await provider.invoke(parts["calendar.update"], change)
        between.before_update = Reply(None, is_error=True, text="Failed to update event.")
        with pytest.raises((InDoubt, Unavailable)) as doubt:
            await provider.invoke(parts["calendar.update"], change)
        assert "Failed to update event." in str(doubt.value.details)
