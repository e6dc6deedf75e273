"""What holds for several published calendar servers: asked through the profile, and read past them in Radicale."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hotplug.catalog.calendar import Calendar
from hotplug.conform.journey import load, play
from hotplug.connect import link_of
from hotplug.errors import ConnectionFailed, Internal, InvalidArgument, NotFound, PermissionDenied, Unavailable
from hotplug.store import Store
from hotplug.testing import RadicaleServer, radicale
from hotplug.witness import CalDav

from .published_calendar import (
    AGENTS,
    BLADE,
    CALDAV,
    CALENDARS,
    DAY,
    EDITS,
    HOUR,
    SCHEDULER,
    SERIES,
    ZONED,
    Meddled,
    Running,
    file_of,
    find,
    foreign,
    lines,
    on,
    only,
    only_lines,
    opened,
    refused,
    stored,
    texts,
)

pytestmark = [pytest.mark.anyio, pytest.mark.real]

JOURNEY = Path(__file__).parents[2] / "examples" / "journeys" / "calendar-day.yaml"
everyone = on(AGENTS, BLADE, CALDAV, SCHEDULER)

REFUSED = {"keep 9 o'clock in Berlin": ("refused", True), "keep 7 o'clock anywhere": ("refused", True)}
UNREVISED = {"be refused on a stale revision": ("absent", None)}
NOT_PASSED: dict[str, dict[str, Any]] = {
    AGENTS: REFUSED,
    BLADE: REFUSED | UNREVISED,
    CALDAV: REFUSED | UNREVISED | {"keep a whole day": ("refused", True)},
    SCHEDULER: REFUSED | UNREVISED,
}


@everyone
async def test_the_journey_of_a_day_passes_and_refuses_only_what_the_server_loses(
    running: Running, cal: Calendar, server: RadicaleServer
) -> None:
    witness = CalDav(server.user_url, server.username, server.password)
    outcome = await play(load(JOURNEY), link_of(cal), name=running.name, via="projected", witness=witness)
    seen = {cell.step: (cell.status, cell.witnessed) for cell in outcome.cells if cell.status != "passed"}
    assert seen == NOT_PASSED[running.name]
    acts = 8 if running.name == AGENTS else 7
    assert [cell.witnessed for cell in outcome.cells if cell.witnessed is not None] == [True] * acts
    assert not any("Planning" in text for text in await texts(server))


@everyone
async def test_each_calendar_has_its_name_and_can_be_written(running: Running, cal: Calendar) -> None:
    found = (await cal.calendars()).calendars
    assert sorted(one.name for one in found) == sorted(CALENDARS[running.name].values())
    assert len({one.calendar for one in found}) == len(found)
    assert all(one.writable for one in found)


@everyone
async def test_what_the_server_has_no_place_for_is_refused_by_name_before_anything_is_written(
    running: Running, cal: Calendar, server: RadicaleServer, home: Any
) -> None:
    local: dict[str, Any] = {"start": "2026-10-26T09:00:00", "duration": "PT1H"}
    zoned: dict[str, Any] = {**local, "time_zone": "America/New_York"}
    unplaced: str = "freeBusyStatus"
    named: Any = {"free_busy_status": "free"}
    if running.name != AGENTS:
        unplaced, named = "status", {"status": "tentative"}
    assert await refused(cal.create(calendar=home, title="no", **zoned)) == ["timeZone"]
    assert await refused(cal.create(calendar=home, title="no", **local, time_zone="floating")) == ["timeZone"]
    assert await refused(cal.create(calendar=home, title="no", **zoned, **named)) == ["timeZone", unplaced]
    assert await refused(cal.create(calendar=home, title="no", **HOUR, **named)) == [unplaced]
    for sign in ("\r", "\x00", "\x07"):
        with pytest.raises(InvalidArgument, match=f"U\\+00{ord(sign):02X}"):
            await cal.create(calendar=home, title=f"a{sign}b", **HOUR)
    with pytest.raises(InvalidArgument, match="floating"):
        await cal.create(calendar=home, title="no", **local)
    with pytest.raises(InvalidArgument, match="before"):
        await cal.create(calendar=home, title="no", start="2026-10-26T13:00:00Z", end="2026-10-26T12:00:00Z")
    assert await texts(server) == []
    await cal.create(calendar=home, title="far", accept=["timeZone"], **zoned)
    assert {"DTSTART:20261026T130000Z", "DTEND:20261026T140000Z"} <= await only_lines(server)
    if running.name == AGENTS:
        # It writes nothing of its own.
        assert len(await lines(server, "far") or []) == 3


@on(AGENTS, CALDAV)
async def test_times_that_the_server_cannot_write_are_refused(cal: Calendar, server: RadicaleServer, home: Any) -> None:
    early = cal.create(calendar=home, title="no", start="0999-10-26T13:00:00Z", duration="PT1H")
    assert await refused(early) == ["start"]
    with pytest.raises(InvalidArgument, match="part of a second"):
        await cal.create(calendar=home, title="no", start="2026-10-26T13:00:00.5Z", duration="PT1H")
    assert await texts(server) == []


@on(AGENTS, CALDAV)
async def test_what_is_created_is_stored_as_asked(
    running: Running, cal: Calendar, server: RadicaleServer, home: Any
) -> None:
    # caldav-mcp has no place for a status, and keeps no semicolon in a title.
    title = 'Ünï, \\ | ☕ <b>& "q"'
    extra: Any = {}
    if running.name == AGENTS:
        title, extra = 'Ünï, ; \\ | ☕ <b>&amp; "q"', {"status": "tentative"}
    await cal.create(
        calendar=home,
        title=title,
        start="2026-10-26T09:00:00-04:00",
        end="2026-10-26T10:30:00-04:00",
        description="one\r\ntwo, three; \\four\n\n  five ",
        location="Raum\nHaus; B",
        **extra,
    )
    written = title.replace("\\", "\\\\").replace(",", "\\,").replace(";", "\\;")
    assert await lines(server, written) == [
        "DESCRIPTION:one\\ntwo\\, three\\; \\\\four\\n\\n  five ",
        "DTEND:20261026T143000Z",
        "DTSTART:20261026T130000Z",
        "LOCATION:Raum\\nHaus\\; B",
        *(["STATUS:TENTATIVE"] if extra else []),
        f"SUMMARY:{written}",
    ]


@on(BLADE, SCHEDULER)
async def test_an_instant_is_kept_as_it_is_whatever_its_offset(
    cal: Calendar, home: Any, server: RadicaleServer
) -> None:
    made = await cal.create(
        calendar=home, title="Kept", start="2026-10-26T09:00:00+01:00", end="2026-10-26T10:30:00+01:00"
    )
    assert {"DTSTART:20261026T080000Z", "DTEND:20261026T093000Z"} <= await only_lines(server)
    event = await cal.get(made.event)
    assert (event.start, event.end, event.duration) == ("2026-10-26T08:00:00Z", "2026-10-26T09:30:00Z", "PT1H30M")
    assert (event.utc_start, event.recurring) == ("2026-10-26T08:00:00Z", False)
    assert event.unknown == ["status", "freeBusyStatus"]
    assert await only(cal) == event


@on(AGENTS, BLADE, SCHEDULER)
async def test_an_all_day_event_keeps_its_dates_also_when_it_is_written_back_fr02(
    running: Running, cal: Calendar, home: Any, server: RadicaleServer
) -> None:
    made = await cal.create(calendar=home, title="Fair", start="2026-10-26", end="2026-10-29", show_without_time=True)
    dates = ["DTEND;VALUE=DATE:20261029", "DTSTART;VALUE=DATE:20261026"]
    assert set(dates) <= await only_lines(server)
    event = await cal.get(made.event)
    assert (event.start, event.end, event.duration, event.show_without_time) == (
        "2026-10-26",
        "2026-10-29",
        "P3D",
        True,
    )
    await cal.update(made.event, {"start": event.start, "end": str(event.end), "show_without_time": True})
    assert set(dates) <= await only_lines(server)
    if running.name == AGENTS:
        # It writes nothing of its own, and the event has another revision.
        assert await lines(server, "Fair") == [*dates, "SUMMARY:Fair"]
    else:
        assert await cal.get(made.event) == event
    await cal.update(made.event, {"start": "2026-10-27"})
    assert {"DTSTART;VALUE=DATE:20261027", "DTEND;VALUE=DATE:20261030"} <= await only_lines(server)


@on(AGENTS, CALDAV)
async def test_what_an_update_leaves_out_stays_fr_04(
    running: Running, cal: Calendar, server: RadicaleServer, home: Any
) -> None:
    status: Any = {"status": "confirmed"} if running.name == AGENTS else {}
    made = await cal.create(calendar=home, title="kept", description="d", location="l", **HOUR, **status)
    await cal.update(made.event, {"start": "2026-10-26T15:00:00Z"})
    await cal.update(made.event, {"location": "m"})
    assert await lines(server, "kept") == [
        "DESCRIPTION:d",
        "DTEND:20261026T160000Z",
        "DTSTART:20261026T150000Z",
        "LOCATION:m",
        *(["STATUS:CONFIRMED"] if status else []),
        "SUMMARY:kept",
    ]


@on(BLADE, SCHEDULER)
async def test_texts_that_the_server_would_alter_are_refused_by_name(
    cal: Calendar, home: Any, server: RadicaleServer
) -> None:
    altered = cal.create(calendar=home, title="blank ", location='C:\\"x"', description="fine", **HOUR)
    assert await refused(altered) == ["title", "location"]
    assert await texts(server) == []
    made = await cal.create(calendar=home, title="blank ", accept=["title"], **HOUR)
    assert (await cal.get(made.event)).title == "blank"
    assert await refused(cal.update(made.event, {"description": "tab\t"})) == ["description"]


@on(AGENTS, CALDAV)
async def test_what_looks_like_a_failure_in_an_event_is_none_fr_18(cal: Calendar, home: Any) -> None:
    for title, text in (
        ('{"error": "CalDAV GET 404"}', "error: 404"),
        ("Failed to create event.", "Event not found: x"),
    ):
        made = await cal.create(calendar=home, title=title, description=text, **HOUR)
        assert (await cal.get(made.event)).title == title


@on(BLADE, SCHEDULER)
async def test_a_zoned_event_of_another_client_keeps_its_zone_when_its_text_is_edited_fr07(
    cal: Calendar, server: RadicaleServer
) -> None:
    await foreign(server, "z", *ZONED)
    event = await only(cal)
    assert (event.start, event.utc_end) == ("2026-10-26T13:00:00Z", "2026-10-26T14:00:00Z")
    assert event.unknown == ["timeZone", "status", "freeBusyStatus", "recurring"]
    assert (await cal.get(event.event)).recurring is False
    await cal.update(event.event, {"title": "Renamed"})
    assert {*ZONED, "SUMMARY:Renamed"} - {"SUMMARY:Zoned"} <= await only_lines(server)
    assert await refused(cal.update(event.event, {"start": "2026-10-26T15:00:00Z"})) == ["timeZone"]
    assert ZONED[0] in await only_lines(server)
    await cal.update(event.event, {"start": "2026-10-26T15:00:00Z"}, accept=["timeZone"])
    assert {"DTSTART:20261026T150000Z", "DTEND:20261026T160000Z", *ZONED[3:]} <= await only_lines(server)
    # From now on its time is known to be an instant: this connection wrote it.
    await cal.update(event.event, {"start": "2026-10-26T16:00:00Z"})
    assert "DTEND:20261026T170000Z" in await only_lines(server)


@on(AGENTS, CALDAV)
async def test_an_event_of_another_client_is_changed_only_where_each_loss_is_accepted(
    running: Running, cal: Calendar, server: RadicaleServer
) -> None:
    edits = EDITS[running.name]
    more = (
        ("TRANSP:TRANSPARENT", "ATTENDEE;CN=Bob:mailto:bob@example.org")
        if running.name == AGENTS
        else ("STATUS:TENTATIVE",)
    )
    await foreign(server, "theirs", "DTSTART:20261026T100000Z", "DTEND:20261026T110000Z", *more)
    before = await lines(server, "theirs")
    event = (await find(cal, "theirs")).event
    seen = await cal.get(event)
    assert (seen.start, seen.duration, seen.recurring, seen.status) == ("2026-10-26T10:00:00Z", "PT1H", False, None)
    assert await refused(cal.update(event, {"location": "x"})) == edits
    assert await refused(cal.update(event, {"location": "x"}, accept=edits[1:])) == edits[:1]
    assert await lines(server, "theirs") == before
    await cal.update(event, {"location": "x"}, accept=edits)
    if running.name == AGENTS:
        kept = ["DTEND:20261026T110000Z", "DTSTART:20261026T100000Z", "LOCATION:x", "SUMMARY:theirs"]
        assert await lines(server, "theirs") == kept
        # From now on it is as we wrote it.
        await cal.update(event, {"location": "y"})
    else:
        assert {"timeZone", "showWithoutTime", "status", "freeBusyStatus", "utcStart"} <= set(seen.unknown or ())
        assert "LOCATION:x" in (await lines(server, "theirs") or [])
        # Nobody knows what became of its zone, so it is still theirs.
        assert await refused(cal.update(event, {"location": "y"})) == edits


@on(BLADE, SCHEDULER)
@pytest.mark.parametrize("rule", ["RRULE:FREQ=WEEKLY;COUNT=4", "RDATE:20261027T090000Z"])
async def test_a_series_is_neither_edited_nor_deleted_by_guess(
    running: Running, cal: Calendar, server: RadicaleServer, rule: str
) -> None:
    # caldav-blade-mcp doesn't list a date of its own of a series that began before the range.
    began = "20261020" if running.name == SCHEDULER else "20261026"
    series = {f"DTSTART:{began}T090000Z", f"DTEND:{began}T100000Z", rule}
    await foreign(server, "s", *series)
    found = await only(cal)
    assert (await cal.get(found.event)).recurring is True
    assert await refused(cal.update(found.event, {"title": "One"})) == ["recurrenceRules"]
    assert await refused(cal.delete(found.event)) == ["recurrenceRules"]
    assert {*series, "SUMMARY:s"} <= await only_lines(server)
    await cal.delete(found.event, accept=["recurrenceRules"])
    assert await texts(server) == []


@on(BLADE, SCHEDULER)
async def test_a_series_shows_once_in_a_search_and_only_where_it_occurs(
    running: Running, cal: Calendar, server: RadicaleServer
) -> None:
    await foreign(server, "d", "DTSTART:20261001T090000Z", "DTEND:20261001T100000Z", "RRULE:FREQ=DAILY")
    found = await only(cal)
    # cal-scheduler-mcp shows the occurrence, the other the first one.
    shown = "2026-10-24T09:00:00Z" if running.name == SCHEDULER else "2026-10-01T09:00:00Z"
    assert (found.recurring, found.start) == (True, shown)
    assert (await cal.get(found.event)).start == "2026-10-01T09:00:00Z"
    assert (await cal.search("2026-10-24T10:00:00Z", "2026-10-25T09:00:00Z")).events == []


@on(AGENTS, CALDAV)
async def test_a_series_of_another_client_is_recognised_and_not_touched(
    running: Running, cal: Calendar, server: RadicaleServer
) -> None:
    await foreign(server, "weekly", "DTSTART:20261005T090000Z", "DTEND:20261005T100000Z", "RRULE:FREQ=WEEKLY;COUNT=4")
    listed = await find(cal, "weekly")
    assert (listed.recurring, listed.start) == (True, "2026-10-05T09:00:00Z")
    assert (await cal.get(listed.event)).recurring is True
    first = await find(cal, "weekly", "2026-10-05T00:00:00Z", "2026-10-06T00:00:00Z")
    assert "recurring" in (first.unknown or ())
    assert await find(cal, "weekly", "2026-10-06T00:00:00Z", "2026-10-12T00:00:00Z") is None
    assert await refused(cal.delete(listed.event)) == ["recurrenceRules"]
    lost = await refused(cal.update(listed.event, {"location": "x"}))
    assert sorted(lost) == sorted([*EDITS[running.name], *SERIES])
    assert "RRULE:FREQ=WEEKLY;COUNT=4" in (await lines(server, "weekly") or [])
    await cal.delete(listed.event, accept=["recurrenceRules"])
    assert await lines(server, "weekly") is None


@on(AGENTS, CALDAV)
async def test_a_series_whose_first_event_ends_as_the_range_begins_is_found(
    cal: Calendar, server: RadicaleServer
) -> None:
    await foreign(server, "daily", "DTSTART:20270301T090000Z", "DTEND:20270301T100000Z", "RRULE:FREQ=DAILY;COUNT=3")
    found = await find(cal, "daily", "2027-03-01T10:00:00Z", "2027-03-02T10:00:00Z")
    assert found.start == "2027-03-01T09:00:00Z"
    assert await find(cal, "daily", "2027-03-01T10:00:00Z", "2027-03-02T09:00:00Z") is None
    whole = await cal.search("1000-01-01T00:00:00Z", "9999-12-31T23:59:59Z", query="daily")
    assert [event.title for event in whole.events] == ["daily"]


@on(AGENTS, CALDAV)
async def test_a_search_gives_pages_in_order(cal: Calendar, home: Any) -> None:
    for hour in (12, 10, 11):
        await cal.create(calendar=home, title=f"paged {hour}", start=f"2027-01-04T{hour}:00:00Z", duration="PT0S")
    day = ("2027-01-04T10:00:00Z", "2027-01-04T12:00:01Z")
    within: Any
    for within in ({"calendar": home}, {}):
        first = await cal.search(*day, query="PAGED", limit=2, **within)
        assert [event.title for event in first.events] == ["paged 10", "paged 11"]
        rest = await cal.search(*day, query="PAGED", limit=2, cursor=first.cursor or "", **within)
        assert ([event.title for event in rest.events], rest.cursor) == (["paged 12"], None)
    assert (await cal.search("2027-01-04T11:00:01Z", "2027-01-04T12:00:00Z", calendar=home)).events == []
    with pytest.raises(InvalidArgument, match="cursor"):
        await cal.search(*day, cursor="nonsense")


@everyone
async def test_what_is_gone_is_not_found(cal: Calendar, home: Any, server: RadicaleServer) -> None:
    made = await cal.create(calendar=home, title="Short", **HOUR)
    await cal.delete(made.event)
    assert await texts(server) == []
    for act in (cal.get(made.event), cal.update(made.event, {"title": "x"}), cal.delete(made.event)):
        with pytest.raises(NotFound):
            await act


@on(AGENTS, CALDAV)
async def test_what_is_in_a_calendar_that_is_gone_is_not_found_nor_is_the_calendar(
    cal: Calendar, server: RadicaleServer
) -> None:
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


@everyone
async def test_what_was_written_before_a_restart_is_still_ours(
    running: Running, cal: Calendar, home: Any, server: RadicaleServer
) -> None:
    made = await cal.create(calendar=home, title="Mine", **HOUR)
    async with running.again() as again:
        assert (await again.get(made.event)).recurring is False
        await again.update(made.event, {"start": "2026-10-27T13:00:00Z"})
        await again.update(made.event, {"title": "Still mine"})
    assert {"DTSTART:20261027T130000Z", "DTEND:20261027T140000Z", "SUMMARY:Still mine"} <= await only_lines(server)


@on(AGENTS, BLADE, SCHEDULER)
async def test_a_wrong_password_is_an_error_and_no_empty_list(
    running: Running, server: RadicaleServer, store: Store
) -> None:
    denied: type[ConnectionFailed] = Unavailable if running.name == SCHEDULER else PermissionDenied
    async with opened(running.name, server, store, CALDAV_PASSWORD="wrong") as cal:
        with pytest.raises(denied):
            await cal.calendars()
        with pytest.raises(denied):
            await cal.search(*DAY)


@on(AGENTS, BLADE, CALDAV)
async def test_a_calendar_server_that_is_gone_is_unavailable(running: Running, store: Store) -> None:
    async with radicale(calendars={"home": "Home"}) as server:
        connecting = opened(running.name, server, store)
        cal = await connecting.__aenter__()
        [calendar] = (await cal.calendars()).calendars
        made = await cal.create(calendar=calendar.calendar, title="x", **HOUR)
    try:
        for call in (
            cal.get(made.event),
            cal.search(*DAY),
            cal.search(*DAY, calendar=calendar.calendar),
            cal.create(calendar=calendar.calendar, title="x", **HOUR),
        ):
            with pytest.raises(Unavailable):
                await call
        if running.name != CALDAV:
            # It knows its calendars from its start.
            with pytest.raises(Unavailable):
                await cal.calendars()
    finally:
        await connecting.__aexit__(None, None, None)


@on(AGENTS, CALDAV, SCHEDULER)
async def test_success_that_kept_something_else_is_no_success_fr15(server: RadicaleServer, meddled: Meddled) -> None:
    async def instead(tool: str, send: Any) -> Any:
        reply = await send()
        if tool in {"calendar_add", "create-event", "create_event"}:
            event = await stored(server, "Lunch")
            other = event.ical.replace("LOCATION:Here", "LOCATION:There")
            await server.put(event.collection, file_of(event), other)
        return reply

    event = {"calendar": await meddled.home(), "title": "Lunch", "location": "Here", **HOUR}
    meddled.channel.instead = instead
    with pytest.raises(Internal) as told:
        await meddled.invoke("calendar.create", event)
    assert (told.value.details["lost"], told.value.details["state"]) == (["location"], "done")
