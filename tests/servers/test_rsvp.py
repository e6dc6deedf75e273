"""Answering an invitation, through the connected client, on both backends; and what a CalDAV client sees of it."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import anyio
import icalendar
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hotplug import connect
from hotplug.catalog import Calendar
from hotplug.catalog.calendar import CalendarEvent
from hotplug.connect import link_of
from hotplug.errors import (
    ConfigError,
    Conflict,
    ConnectionFailed,
    InvalidArgument,
    NotFound,
    Undeclared,
    Unsupported,
)
from hotplug.servers import native
from hotplug.servers.calendar.answers import read_address

from .native import KINDS, content, opened, target

pytestmark = pytest.mark.anyio

ME = "me@example.org"
PEOPLE: list[Any] = [
    {"email": "boss@example.org", "name": "Boss, The", "participationStatus": "accepted"},
    {"email": "Me@Example.org", "name": "Me", "optional": True, "participationStatus": "needs-action"},
]
MEETING: dict[str, Any] = {
    "title": "Planning",
    "start": "2026-06-11T17:00:00",
    "duration": "PT1H",
    "time_zone": "Asia/Jerusalem",
    "participants": PEOPLE,
    "notify": "none",
}
WEEKLY: dict[str, Any] = {
    **MEETING,
    "start": "2026-06-01T09:00:00",
    "recurrence_rules": [{"frequency": "weekly", "count": 4}],
}
JUNE = ("2026-06-01T00:00:00Z", "2026-07-01T00:00:00Z")


def owned(kind: str, folder: Path, me: str | None = ME) -> AbstractAsyncContextManager[Calendar]:
    return opened(kind, folder, me)


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def calendar(kind: str, tmp_path: Path) -> AsyncGenerator[Calendar]:
    async with owned(kind, tmp_path) as found:
        yield found


async def made(calendar: Calendar, fields: dict[str, Any]) -> Any:
    where = (await calendar.calendars()).calendars[0].calendar
    return await calendar.create(calendar=where, **fields)


def mine(event: CalendarEvent) -> str | None:
    (own,) = [each for each in event.participants or [] if each.email == "Me@Example.org"]
    return own.participation_status


async def by_day(calendar: Calendar) -> list[tuple[str, str | None]]:
    found = (await calendar.search(*JUNE, expand=True)).events
    return [(each.start[8:10], mine(each)) for each in found]


@pytest.mark.parametrize("answer", ["accepted", "declined", "tentative"])
async def test_an_answer_sets_my_status_and_nothing_else(answer: Any, calendar: Calendar) -> None:
    event = (await made(calendar, {**MEETING, "alerts": [{"offset": "-PT15M", "id": "1"}], "location": "Room 4"})).event
    before = await calendar.get(event)
    written = await calendar.rsvp(event, answer, "none")
    assert written.event == event
    assert written.scope is None
    assert written.receipt.action_id != "pending"
    after = await calendar.get(event)
    assert mine(after) == answer
    assert after.revision == written.revision != before.revision
    left = [each.model_dump(exclude={"revision", "participants"}) for each in (before, after)]
    assert left[0] == left[1]
    rest = [each.model_dump(exclude={"participation_status"}) for each in after.participants or []]
    assert rest == [each.model_dump(exclude={"participation_status"}) for each in before.participants or []]
    assert (after.participants or [])[0].participation_status == "accepted"


async def test_an_answer_can_be_changed_and_lasts(kind: str, tmp_path: Path, calendar: Calendar) -> None:
    event = (await made(calendar, MEETING)).event
    await calendar.rsvp(event, "accepted", "none")
    await calendar.rsvp(event, "declined", "none")
    async with owned(kind, tmp_path) as other:
        assert mine(await other.get(event)) == "declined"
    await calendar.update(event, {"title": "New"}, notify="none")
    assert mine(await calendar.get(event)) == "declined"


async def test_a_change_of_guests_keeps_the_answers_of_those_who_stay(calendar: Calendar) -> None:
    event = (await made(calendar, MEETING)).event
    await calendar.rsvp(event, "tentative", "none")
    await calendar.update(event, {}, add_participants=[{"email": "new@example.org"}], notify="none")  # type: ignore[list-item]
    await calendar.update(event, {}, remove_participants=["boss@example.org"], notify="none")
    found = await calendar.get(event)
    assert [each.email for each in found.participants or []] == ["Me@Example.org", "new@example.org"]
    assert mine(found) == "tentative"


async def test_an_answer_tells_the_organizer_only_where_that_can_be_done(
    kind: str, tmp_path: Path, calendar: Calendar
) -> None:
    event = (await made(calendar, MEETING)).event
    before = content(kind, tmp_path)
    with pytest.raises(Unsupported, match="mail") as caught:
        await calendar.rsvp(event, "accepted", "all")
    assert caught.value.details["lost"] == ["notify"]
    with pytest.raises(InvalidArgument, match="notify"):
        await wire(calendar, {"event": event, "participation": "accepted"})
    assert content(kind, tmp_path) == before


async def wire(calendar: Calendar, arguments: dict[str, Any], part: str = "calendar.rsvp") -> Any:
    link = link_of(calendar)
    return await link.call_wire(link.spoken.known[part], arguments)


@pytest.mark.parametrize("answer", ["needs-action", "delegated", "yes", "", "Accepted", None, 1])
async def test_what_is_no_answer_is_refused(answer: Any, kind: str, tmp_path: Path, calendar: Calendar) -> None:
    event = (await made(calendar, MEETING)).event
    before = content(kind, tmp_path)
    with pytest.raises(InvalidArgument, match="participation"):
        await wire(calendar, {"event": event, "participation": answer, "notify": "none"})
    assert content(kind, tmp_path) == before


@pytest.mark.parametrize(
    ("people", "words"),
    [
        ([], "invites nobody"),
        ([{"email": "boss@example.org"}], "'me@example.org', whose calendar this is, is not among the participants"),
        ([{"email": "me@example.org.evil.example"}, {"email": "xme@example.org"}], "not among"),
    ],
)
async def test_only_an_invitation_to_oneself_is_answered(
    people: Any, words: str, kind: str, tmp_path: Path, calendar: Calendar
) -> None:
    event = (await made(calendar, {**MEETING, "participants": people})).event
    before = content(kind, tmp_path)
    with pytest.raises(InvalidArgument, match=words):
        await calendar.rsvp(event, "accepted", "none")
    assert content(kind, tmp_path) == before


async def test_what_is_not_there_cannot_be_answered(calendar: Calendar) -> None:
    event = (await made(calendar, MEETING)).event
    await calendar.delete(event, notify="none")
    with pytest.raises(NotFound) as caught:
        await calendar.rsvp(event, "accepted", "none")
    assert caught.value.details["deleted"] is True


async def test_an_answer_to_what_has_moved_on_is_a_conflict(kind: str, tmp_path: Path, calendar: Calendar) -> None:
    read = await made(calendar, MEETING)
    moved = await calendar.update(read.event, {"start": "2026-06-11T18:00:00"}, notify="none")
    before = content(kind, tmp_path)
    with pytest.raises(Conflict) as caught:
        await calendar.rsvp(read.event, "accepted", "none", revision=read.revision)
    assert caught.value.details["current"] == moved.revision
    assert content(kind, tmp_path) == before
    await calendar.rsvp(read.event, "accepted", "none", revision=moved.revision)
    assert mine(await calendar.get(read.event)) == "accepted"


async def test_an_answer_under_a_key_is_given_once(kind: str, tmp_path: Path, calendar: Calendar) -> None:
    event = (await made(calendar, MEETING)).event
    keyed = calendar.using(key="answer")
    first = await keyed.rsvp(event, "accepted", "none")
    before = content(kind, tmp_path)
    again = await keyed.rsvp(event, "accepted", "none")
    assert again == first
    with pytest.raises(Conflict):
        await keyed.rsvp(event, "declined", "none")
    assert content(kind, tmp_path) == before


async def test_an_answer_is_told_as_a_change(kind: str, tmp_path: Path) -> None:
    async with owned(kind, tmp_path) as calendar:
        async with calendar.window() as window:
            event = (await made(calendar, MEETING)).event
            written = await calendar.rsvp(event, "accepted", "none")
        changes: list[Any] = []
        with anyio.fail_after(20):
            async for change in calendar.events(Calendar.EventChanged, cursor=window.cursor):
                changes.append(change)
                if len(changes) == 2:
                    break
    assert [each.change for each in changes] == ["created", "updated"]
    assert (changes[1].event, changes[1].revision) == (event, written.revision)


async def test_of_a_series_an_answer_says_how_much_it_means(kind: str, tmp_path: Path, calendar: Calendar) -> None:
    event = (await made(calendar, WEEKLY)).event
    before = content(kind, tmp_path)
    with pytest.raises(InvalidArgument, match="scope"):
        await calendar.rsvp(event, "accepted", "none")
    with pytest.raises(InvalidArgument, match="occurrence"):
        await calendar.rsvp(event, "accepted", "none", scope="this")
    with pytest.raises(NotFound, match="2026-06-09"):
        await calendar.rsvp(event, "accepted", "none", scope="this", occurrence="2026-06-09T09:00:00")
    with pytest.raises(NotFound, match="2026-06-09"):
        await calendar.rsvp(event, "accepted", "none", scope="all", occurrence="2026-06-09T09:00:00")
    assert content(kind, tmp_path) == before


async def test_one_occurrence_is_answered_by_itself(calendar: Calendar) -> None:
    event = (await made(calendar, WEEKLY)).event
    written = await calendar.rsvp(event, "declined", "none", scope="this", occurrence="2026-06-08T09:00:00")
    assert (written.event, written.scope) == (event, "this")
    waiting = "needs-action"
    assert await by_day(calendar) == [("01", waiting), ("08", "declined"), ("15", waiting), ("22", waiting)]
    await calendar.rsvp(event, "accepted", "none", scope="all")
    assert [status for _, status in await by_day(calendar)] == ["accepted"] * 4
    assert not (await calendar.get(event)).recurrence_overrides


async def test_an_answer_for_all_reaches_occurrences_with_other_guests_and_times(calendar: Calendar) -> None:
    moved = {"start": "2026-06-09T09:00:00", "participants": [{"email": ME.title()}, {"email": "extra@example.org"}]}
    overrides: Any = {"2026-06-08T09:00:00": moved, "2026-06-15T09:00:00": {"participants": None}}
    event = (await made(calendar, {**WEEKLY, "recurrence_overrides": overrides})).event
    await calendar.rsvp(event, "accepted", "none", scope="all")
    found = (await calendar.search(*JUNE, expand=True)).events
    assert [(each.start[8:10], [one.participation_status for one in each.participants or []]) for each in found] == [
        ("01", ["accepted", "accepted"]),
        ("09", ["accepted", None]),
        ("15", []),
        ("22", ["accepted", "accepted"]),
    ]
    with pytest.raises(InvalidArgument, match="invites nobody"):
        await calendar.rsvp(event, "accepted", "none", scope="this", occurrence="2026-06-15T09:00:00")


async def test_who_is_invited_to_one_occurrence_only_can_answer_for_it(calendar: Calendar) -> None:
    guests: Any = {"2026-06-08T09:00:00": {"participants": [{"email": ME}]}}
    fields = {**WEEKLY, "participants": [{"email": "boss@example.org"}], "recurrence_overrides": guests}
    event = (await made(calendar, fields)).event
    with pytest.raises(InvalidArgument, match="not among"):
        await calendar.rsvp(event, "accepted", "none", scope="this", occurrence="2026-06-15T09:00:00")
    await calendar.rsvp(event, "accepted", "none", scope="this", occurrence="2026-06-08T09:00:00")
    patches = (await calendar.get(event)).recurrence_overrides or {}
    assert patches["2026-06-08T09:00:00"]["participants"] == [{"email": ME, "participationStatus": "accepted"}]


async def test_an_answer_from_one_occurrence_on_makes_the_rest_a_series_of_its_own(calendar: Calendar) -> None:
    event = (await made(calendar, WEEKLY)).event
    written = await calendar.rsvp(event, "declined", "none", scope="following", occurrence="2026-06-15T09:00:00")
    assert written.scope == "following"
    assert written.event != event
    waiting = "needs-action"
    assert await by_day(calendar) == [("01", waiting), ("08", waiting), ("15", "declined"), ("22", "declined")]
    whole = await calendar.rsvp(event, "accepted", "none", scope="following", occurrence="2026-06-01T09:00:00")
    assert whole.event == event
    assert [status for _, status in await by_day(calendar)] == ["accepted"] * 2 + ["declined"] * 2


async def test_without_an_owner_no_answer_is_offered(kind: str, tmp_path: Path) -> None:
    async with owned(kind, tmp_path) as calendar:
        event = (await made(calendar, MEETING)).event
        await calendar.rsvp(event, "accepted", "none")
    before = content(kind, tmp_path)
    async with owned(kind, tmp_path, None) as calendar:
        assert link_of(calendar).spoken.way("calendar.rsvp") is None
        with pytest.raises((Unsupported, Undeclared)):
            await calendar.rsvp(event, "accepted", "none")
        assert (await calendar.get(event)).title == "Planning"  # the same refs
    assert content(kind, tmp_path) == before
    with pytest.raises(Unsupported, match="rsvp"):
        async with connect(Calendar, target(kind, tmp_path), facets=["rsvp"]):
            pass
    async with connect(Calendar, target(kind, tmp_path, ME), facets=["rsvp", "invitations"]):
        pass


@pytest.mark.parametrize("me", ["", "me", "@", "Me <me@example.org>", "a@b, c@d", "me@exa mple", "a@b\n", "me@"])
def test_what_is_no_address_names_no_owner(me: str, kind: str, tmp_path: Path) -> None:
    if me.strip() == "a@b":
        assert read_address(me) == "a@b"
        return
    with pytest.raises(ConfigError, match="mail address"):
        native("sqlite" if kind == "sqlite" else "folder", str(tmp_path / "new"), me=me)
    assert list(tmp_path.iterdir()) == []
    assert read_address("MAILTO:me@example.org") == ME


@pytest.mark.parametrize(
    ("patch", "field"),
    [
        ({"participants": ["x"]}, "participants.0"),
        ({"participants": "x"}, "participants"),
        ({"participants": [{"email": 5}]}, "participants.0.email"),
        ({"participants": [{"email": ME, "participationStatus": "perhaps"}]}, "participants.0.participationStatus"),
        ({"alerts": {"1": {}}}, "alerts"),
        ({"title": 5}, "title"),
        ({"location": ["x"]}, "location"),
        ({"status": {}}, "status"),
        ({"showWithoutTime": "yes"}, "showWithoutTime"),
    ],
)
async def test_what_an_occurrence_has_of_its_own_is_checked_as_that_of_an_event(
    patch: Any, field: str, kind: str, tmp_path: Path, calendar: Calendar
) -> None:
    event = (await made(calendar, WEEKLY)).event
    before = content(kind, tmp_path)
    overrides: Any = {"2026-06-08T09:00:00": patch}
    with pytest.raises(InvalidArgument, match=f"{field} of '2026-06-08T09:00:00'"):
        await made(calendar, {**WEEKLY, "recurrence_overrides": overrides})
    with pytest.raises(InvalidArgument, match=f"{field} of '2026-06-08T09:00:00'"):
        await calendar.update(event, {"recurrence_overrides": overrides}, scope="all", notify="none")
    assert content(kind, tmp_path) == before


async def test_reminders_of_one_occurrence_have_the_form_of_an_events(calendar: Calendar) -> None:
    alerts = [{"id": "1", "offset": "-PT1H", "action": "display"}]
    overrides: Any = {"2026-06-08T09:00:00": {"alerts": alerts}}
    event = (await made(calendar, {**WEEKLY, "recurrence_overrides": overrides})).event
    assert (await calendar.get(event)).recurrence_overrides == overrides
    found = (await calendar.search(*JUNE, expand=True)).events
    assert [[one.offset for one in each.alerts or []] for each in found] == [[], ["-PT1H"], [], []]


async def test_guests_of_one_occurrence_want_a_word_about_notices_too(
    kind: str, tmp_path: Path, calendar: Calendar
) -> None:
    overrides: Any = {"2026-06-08T09:00:00": {"participants": [{"email": ME}]}}
    fields = {**WEEKLY, "recurrence_overrides": overrides}
    del fields["participants"], fields["notify"]
    before = content(kind, tmp_path)
    with pytest.raises(InvalidArgument, match="notify"):
        await made(calendar, fields)
    assert content(kind, tmp_path) == before
    event = (await made(calendar, {**fields, "notify": "none"})).event
    with pytest.raises(InvalidArgument, match="notify"):
        await calendar.delete(event, scope="all")


# what other programs see in the files

INVITED = (
    "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:x\r\n"
    "BEGIN:VEVENT\r\nUID:their@example.com\r\nDTSTAMP:20260101T000000Z\r\nSEQUENCE:3\r\nSUMMARY:Theirs\r\n"
    "DTSTART:20260601T090000Z\r\nDTEND:20260601T100000Z\r\nRRULE:FREQ=WEEKLY\r\n"
    'ORGANIZER;CN="Boss, The":mailto:boss@example.com\r\n'
    "ATTENDEE;CUTYPE=INDIVIDUAL;ROLE=CHAIR;PARTSTAT=ACCEPTED:mailto:boss@example.com\r\n"
    "ATTENDEE;CUTYPE=ROOM;PARTSTAT=ACCEPTED:urn:uuid:0f7a\r\n"
    'attendee;RSVP=TRUE;X-NUM="1;2";CN="Me, myself and a name so long that the line has to be folded";PARTSTAT=NE\r\n'
    ' EDS-ACTION;DELEGATED-FROM="mailto:a@example.com","mailto:b@example.com":MAILTO:Me%40example.org\r\n'
    "X-OTHER:kept\r\n"
    "END:VEVENT\r\nEND:VCALENDAR\r\n"
)


def put(folder: Path, source: str) -> Path:
    path = folder / "calendars" / "calendar" / "their.ics"
    path.write_bytes(source.encode())
    return path


async def theirs(calendar: Calendar) -> CalendarEvent:
    (found,) = (await calendar.search(*JUNE)).events
    return found


def unfolded(path: Path) -> list[str]:
    return path.read_bytes().decode().replace("\r\n ", "").split("\r\n")


async def test_who_takes_part_is_read_from_a_file(tmp_path: Path) -> None:
    async with owned("folder", tmp_path) as calendar:
        put(tmp_path, INVITED)
        event = await theirs(calendar)
    told = [each.model_dump(exclude_none=True) for each in event.participants or []]
    assert told == [
        {"email": "boss@example.com", "participationStatus": "accepted"},
        {
            "email": "Me@example.org",
            "name": "Me, myself and a name so long that the line has to be folded",
            "participationStatus": "needs-action",
        },
    ]
    assert event.unknown == ["participants"]  # a room without an address takes part too


async def test_an_answer_changes_the_partstat_of_my_line_and_no_number_of_the_organizer(tmp_path: Path) -> None:
    async with owned("folder", tmp_path) as calendar:
        path = put(tmp_path, INVITED)
        before = unfolded(path)
        await calendar.rsvp((await theirs(calendar)).event, "accepted", "none", scope="all")
        after = unfolded(path)
    assert [each for each in before if each not in after] == [
        "DTSTAMP:20260101T000000Z",
        next(each for each in before if each.startswith("attendee")),
    ]
    new = [each for each in after if each not in before]
    assert [each.partition(":")[0] for each in new if not each.startswith("attendee")] == ["DTSTAMP", "LAST-MODIFIED"]
    (mine_,) = [each for each in new if each.startswith("attendee")]
    assert mine_ == next(each for each in before if each.startswith("attendee")).replace("NEEDS-ACTION", "ACCEPTED")
    at = path.read_bytes().index(b"attendee")
    assert all(len(each) <= 75 for each in path.read_bytes()[at:].split(b"\r\n"))


async def test_a_caldav_client_reads_the_answer(tmp_path: Path) -> None:
    async with owned("folder", tmp_path) as calendar:
        path = put(tmp_path, INVITED)
        event = (await theirs(calendar)).event
        await calendar.rsvp(event, "tentative", "none", scope="all")
        await calendar.rsvp(event, "declined", "none", scope="this", occurrence="2026-06-08T09:00:00Z")
    found: Any = icalendar.Calendar.from_ical(path.read_bytes())
    series, one = found.walk("VEVENT")
    said = [
        {str(each): each.params["PARTSTAT"] for each in event["ATTENDEE"] if each.params.get("RSVP")}
        for event in (series, one)
    ]
    assert said == [{"MAILTO:Me%40example.org": "TENTATIVE"}, {"MAILTO:Me%40example.org": "DECLINED"}]
    assert str(one["RECURRENCE-ID"].dt) == "2026-06-08 09:00:00+00:00"
    assert (series["SEQUENCE"], one["SEQUENCE"]) == (3, 3)
    assert str(one["ORGANIZER"]) == "mailto:boss@example.com"


async def test_a_series_of_another_organizer_is_not_split_by_an_answer(tmp_path: Path) -> None:
    async with owned("folder", tmp_path) as calendar:
        path = put(tmp_path, INVITED)
        before = path.read_bytes()
        event = (await theirs(calendar)).event
        with pytest.raises(Unsupported, match=r"boss@example\.com") as caught:
            await calendar.rsvp(event, "declined", "none", scope="following", occurrence="2026-06-15T09:00:00Z")
        assert caught.value.details["lost"] == ["scope"]
        assert path.read_bytes() == before
        await calendar.rsvp(event, "declined", "none", scope="following", occurrence="2026-06-01T09:00:00Z")
        assert (await theirs(calendar)).event == event


async def test_what_is_made_here_names_its_organizer_and_has_nobody_else_mailed(tmp_path: Path) -> None:
    people: Any = [
        {"email": "a+b&c;d@example.org", "name": 'He said "no"; ^n,'},
        {"email": "ö@example.org", "name": ""},
    ]
    async with owned("folder", tmp_path) as calendar:
        event = (await made(calendar, {**MEETING, "participants": people})).event
        found = await calendar.get(event)
        assert [each.model_dump(exclude_none=True) for each in found.participants or []] == people
        (path,) = (tmp_path / "calendars" / "calendar").glob("*.ics")
        lines = unfolded(path)
        assert "ORGANIZER:mailto:me@example.org" in lines
        guests = [each for each in lines if each.startswith("ATTENDEE")]
        assert len(guests) == 2
        assert all(";SCHEDULE-AGENT=NONE" in each for each in guests)
        await calendar.update(event, {}, clear=["participants"], notify="none")
        assert (await calendar.get(event)).participants is None
        assert not [each for each in unfolded(path) if each.startswith("ATTENDEE")]


async def test_a_folder_without_an_owner_leaves_attendees_as_they_are(tmp_path: Path) -> None:
    async with owned("folder", tmp_path, None) as calendar:
        path = put(tmp_path, INVITED)
        event = await theirs(calendar)
        assert event.participants is None
        await calendar.update(event.event, {"title": "New"}, scope="this", occurrence="2026-06-08T09:00:00Z")
        assert sum(each.upper().startswith("ATTENDEE") for each in unfolded(path)) == 6


async def test_what_an_older_build_kept_is_still_read_and_answered(tmp_path: Path) -> None:
    async with owned("sqlite", tmp_path) as calendar:
        event = (await made(calendar, {**MEETING, "title": "PLACE"})).event
        file = sqlite3.connect(tmp_path / "calendar.db")
        with file:
            file.execute("update calendar_events set body = replace(body, 'PLACE', 'a\\u0001b')")
        file.close()
        await calendar.rsvp(event, "accepted", "none")
        found = await calendar.get(event)
        assert (found.title, mine(found)) == ("a\x01b", "accepted")
        await calendar.update(event, {"location": "x"}, notify="none")
        with pytest.raises(InvalidArgument, match=r"title .*U\+0001"):
            await calendar.update(event, {"title": "a\x01b"}, notify="none")


EXAMPLES = int(os.environ.get("HOTPLUG_EXAMPLES", "50"))
NAMES = st.text(st.characters(exclude_categories=["Cc", "Cs"]) | st.sampled_from('\t\n";:,^=\\'), max_size=90)
ADDRESSES = st.sampled_from(
    ["me@example.org", "ME@example.org", "a@example.org", "b%41@example.org", "", "ü&=?@x", "a b"]
)
PARTICIPANT = st.fixed_dictionaries(
    {"email": ADDRESSES},
    optional={
        "name": NAMES,
        "optional": st.booleans(),
        "participationStatus": st.sampled_from(["needs-action", "accepted", "declined", "tentative", "delegated"]),
    },
)


async def test_both_backends_keep_and_answer_the_same(tmp_path: Path) -> None:
    """Participants as they come: what one tells after each step, the other tells too."""
    runs: list[tuple[list[Any], str, list[Any], str | None]] = []

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        derandomize=EXAMPLES == 50,
        suppress_health_check=[HealthCheck.function_scoped_fixture],
    )
    @given(
        st.lists(PARTICIPANT, max_size=4),
        st.sampled_from(["accepted", "declined", "tentative"]),
        st.lists(PARTICIPANT, max_size=4),
        st.sampled_from([None, "this", "following", "all"]),
    )
    def collect(people: list[Any], answer: str, others: list[Any], scope: str | None) -> None:
        runs.append((people, answer, others, scope))

    collect()
    async with owned("sqlite", tmp_path) as one, owned("folder", tmp_path) as other:
        for run in runs:
            first, second = [await steps(calendar, *run) for calendar in (one, other)]
            assert first == second, run


async def steps(calendar: Calendar, people: list[Any], answer: str, others: list[Any], scope: str | None) -> list[Any]:
    where = (await calendar.calendars()).calendars[0].calendar
    fields: dict[str, Any] = {
        "calendar": where,
        "title": "x",
        "start": "2026-06-01T09:00:00Z",
        "duration": "PT1H",
        "participants": people,
        "notify": "none",
        **({"recurrenceRules": [{"frequency": "weekly", "count": 3}]} if scope else {}),
    }
    at = {"scope": scope, "occurrence": "2026-06-08T09:00:00Z"} if scope else {}
    event = (await wire(calendar, fields, "calendar.create"))["event"]
    told: list[Any] = []
    for part, arguments in (
        ("calendar.rsvp", {"participation": answer, "notify": "none", **at}),
        ("calendar.update", {"changes": {}, "replaceParticipants": others, "notify": "none", **at}),
        ("calendar.rsvp", {"participation": "accepted", "notify": "none", **at}),
    ):
        try:
            done = await wire(calendar, {"event": event, **arguments}, part)
            told.append(done.get("scope"))
        except ConnectionFailed as error:
            told.append(error.code)
        found = (await wire(calendar, {"from": JUNE[0], "to": JUNE[1], "expand": True}, "calendar.search"))["events"]
        told.append([(each["start"], each.get("occurrence"), each.get("participants")) for each in found])
    for each in (await calendar.search(*JUNE)).events:
        await wire(
            calendar,
            {"event": each.event, "notify": "none", **({"scope": "all"} if each.recurring else {})},
            "calendar.delete",
        )
    return told
