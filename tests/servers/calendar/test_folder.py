"""What is particular to a folder of files: other programs' files, names, crashes, other processes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import icalendar
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hotplug.catalog.calendar.records import to_wire
from hotplug.errors import Conflict, InvalidArgument, PermissionDenied, StoreError, Unavailable, Unsupported
from hotplug.servers.calendar import CalendarEngine, FolderStorage
from hotplug.servers.calendar.folder import LARGEST_FILE
from hotplug.servers.calendar.ical import read_file
from hotplug.servers.calendar.lines import FileError

pytestmark = pytest.mark.anyio

JUNE = ("2026-06-01T00:00:00Z", "2026-07-01T00:00:00Z")
MEETING: dict[str, Any] = {
    "calendar": "calendar",
    "title": "Planning",
    "start": "2026-06-11T17:00:00",
    "duration": "PT1H",
    "timeZone": "Asia/Jerusalem",
}

FOREIGN = (
    "\ufeffBEGIN:VCALENDAR\r\n"
    "PRODID:-//Other//Thing 4.2//EN\r\n"
    "VERSION:2.0\r\n"
    "X-WR-CALNAME:Old\\, but kept\r\n"
    'BEGIN:VTIMEZONE\r\nTZID:Europe/Berlin\r\nX-ODD;A="b:c":1\r\n'
    "BEGIN:STANDARD\r\nDTSTART:19701025T030000\r\nRRULE:FREQ=YEARLY;BYMONTH=10;BYDAY=-1SU\r\n"
    "TZOFFSETFROM:+0200\r\nTZOFFSETTO:+0100\r\nEND:STANDARD\r\n"
    "BEGIN:DAYLIGHT\r\nDTSTART:19700329T020000\r\nRRULE:FREQ=YEARLY;BYMONTH=3;BYDAY=-1SU\r\n"
    "TZOFFSETFROM:+0100\r\nTZOFFSETTO:+0200\r\nEND:DAYLIGHT\r\nEND:VTIMEZONE\r\n"
    "BEGIN:VEVENT\r\n"
    "dtstamp:20260101T000000Z\r\n"
    "UID:Foreign/UID with spaces@Example.ORG\r\n"
    "SUMMARY;LANGUAGE=en:Weekly \\; sync\r\n"
    "DTSTART;TZID=Europe/Berlin:20260601T090000\r\n"
    "DTEND;TZID=Europe/Berlin:20260601T100000\r\n"
    "RRULE:FREQ=WEEKLY;UNTIL=20260630T235959Z;BYDAY=MO\r\n"
    "EXDATE;TZID=Europe/Berlin:20260608T090000\r\n"
    "DESCRIPTION:folded h\r\n ere and\r\n\t there\\nnext line\r\n"
    'ATTENDEE;CN="Doe, Jane";PARTSTAT=ACCEPTED;RSVP=TRUE:mailto:jane@example.org\r\n'
    "ORGANIZER;CN=Bob:mailto:bob@example.org\r\n"
    "CONFERENCE;VALUE=URI:https://meet.example/abc\r\n"
    "X-APPLE-TRAVEL-ADVISORY-BEHAVIOR:AUTOMATIC\r\n"
    "a line that is none\r\n"
    "BEGIN:VALARM\r\nACTION:DISPLAY\r\nDESCRIPTION:Reminder\r\nTRIGGER:-PT10M\r\nEND:VALARM\r\n"
    "END:VEVENT\r\n"
    "BEGIN:VEVENT\r\n"
    "UID:Foreign/UID with spaces@Example.ORG\r\n"
    "RECURRENCE-ID;TZID=Europe/Berlin:20260615T090000\r\n"
    "DTSTART;TZID=Europe/Berlin:20260616T110000\r\n"
    "DTEND;TZID=Europe/Berlin:20260616T120000\r\n"
    "SUMMARY:Moved\r\n"
    "DESCRIPTION:folded here and there\\nnext line\r\n"
    "X-ONLY-HERE:yes\r\n"
    "END:VEVENT\r\n"
    "END:VCALENDAR\r\n"
)
UID = "Foreign/UID with spaces@Example.ORG"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "events"


@pytest.fixture
def engine(root: Path) -> CalendarEngine:
    return CalendarEngine(FolderStorage(root), clock=lambda: datetime(2026, 6, 1, 12, tzinfo=UTC))


def put(root: Path, source: str | bytes, name: str = "other.ics") -> Path:
    path = root / "calendar" / name
    path.write_bytes(source if isinstance(source, bytes) else source.encode())
    return path


def event(*lines: str, uid: str = "x") -> str:
    body = "\r\n".join([f"UID:{uid}", "DTSTAMP:20260101T000000Z", *lines])
    return f"BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:x\r\nBEGIN:VEVENT\r\n{body}\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"


def changed_lines(before: bytes, after: bytes) -> tuple[list[str], list[str]]:
    old, new = before.decode().split("\r\n"), after.decode().split("\r\n")
    return [each for each in old if each not in new], [each for each in new if each not in old]


async def test_a_file_of_another_program_is_read(root: Path, engine: CalendarEngine) -> None:
    put(root, FOREIGN)
    wire = await engine.get(UID)
    assert wire["title"] == "Weekly ; sync"
    assert wire["description"] == "folded here and there\nnext line"
    assert wire["recurrenceRules"] == [
        {"frequency": "weekly", "byDay": [{"day": "mo"}], "until": "2026-07-01T01:59:59"}
    ]
    assert wire["recurrenceOverrides"] == {
        "2026-06-08T09:00:00": {"excluded": True},
        "2026-06-15T09:00:00": {"start": "2026-06-16T11:00:00", "title": "Moved", "alerts": None},
    }
    assert wire["alerts"] == {"1": {"trigger": {"@type": "OffsetTrigger", "offset": "-PT10M"}}}
    found, _ = await engine.search(*JUNE, expand=True)
    assert [each["start"] for each in found] == [
        "2026-06-01T09:00:00",
        "2026-06-16T11:00:00",
        "2026-06-22T09:00:00",
        "2026-06-29T09:00:00",
    ]


STAMPS = re.compile(r"(?i)dtstamp|LAST-MODIFIED|SEQUENCE")


async def test_an_edit_touches_no_line_but_its_own(root: Path, engine: CalendarEngine) -> None:
    path = put(root, FOREIGN)
    before = path.read_bytes()
    await engine.update(UID, {"title": "New, title"}, scope="all")
    gone, new = changed_lines(before, path.read_bytes())
    assert [each for each in gone if not STAMPS.match(each)] == ["SUMMARY;LANGUAGE=en:Weekly \\; sync"]
    assert [each for each in new if not STAMPS.match(each)] == ["SUMMARY:New\\, title"]
    assert path.read_bytes().startswith(b"\xef\xbb\xbfBEGIN:VCALENDAR\r\n")


async def test_an_edit_of_one_occurrence_leaves_the_others_their_lines(root: Path, engine: CalendarEngine) -> None:
    path = put(root, FOREIGN)
    before = path.read_bytes()
    await engine.update(UID, {"title": "Own"}, scope="this", occurrence="2026-06-22T09:00:00")
    text = path.read_text(encoding="utf-8")
    gone, _ = changed_lines(before, path.read_bytes())
    assert [each for each in gone if not STAMPS.match(each)] == []
    assert text.count("BEGIN:VEVENT") == 3
    # an occurrence of its own takes along what the series says and we don't know
    assert text.count("CONFERENCE;VALUE=URI:https://meet.example/abc") == 2
    assert text.count("X-ONLY-HERE:yes") == 1
    await engine.update(UID, {"location": "Hall"}, scope="all")
    assert path.read_text(encoding="utf-8").count("LOCATION:Hall") == 3


async def test_deleting_an_occurrence_that_had_its_own_event_removes_that(root: Path, engine: CalendarEngine) -> None:
    path = put(root, FOREIGN)
    await engine.delete(UID, scope="this", occurrence="2026-06-15T09:00:00")
    text = path.read_text(encoding="utf-8")
    assert "X-ONLY-HERE" not in text
    assert "EXDATE;TZID=Europe/Berlin:20260615T090000" in text


async def test_the_rest_of_a_split_series_takes_along_what_we_do_not_know(root: Path, engine: CalendarEngine) -> None:
    path = put(root, FOREIGN)
    effect = await engine.update(
        UID, {"start": "2026-06-23T10:00:00"}, scope="following", occurrence="2026-06-22T09:00:00"
    )
    text = (root / "calendar" / f"{effect.event}.ics").read_text(encoding="utf-8")
    assert 'ATTENDEE;CN="Doe, Jane"' in text
    assert "BEGIN:VALARM" in text
    assert UID not in text
    assert "X-ONLY-HERE" not in text
    old = path.read_text(encoding="utf-8")
    assert "X-ONLY-HERE" in old
    assert "RRULE:FREQ=WEEKLY;UNTIL=20260615T070000Z;BYDAY=MO" in old
    found, _ = await engine.search(*JUNE, expand=True)
    assert [each["start"] for each in found] == [
        "2026-06-01T09:00:00",
        "2026-06-16T11:00:00",
        "2026-06-23T10:00:00",
        "2026-06-30T10:00:00",
    ]


async def test_a_file_that_is_ours_is_one_that_others_read(root: Path, engine: CalendarEngine) -> None:
    rule = {"frequency": "weekly", "until": "2026-12-17T10:00:00"}
    fields = {**MEETING, "start": "2026-12-03T10:00:00", "timeZone": "Europe/Madrid", "recurrenceRules": [rule]}
    text = "a\\Nb; c, d\n" + "ü" * 100
    uid = (await engine.create({**fields, "description": text})).event
    await engine.update(uid, {"title": "Own"}, scope="this", occurrence="2026-12-10T10:00:00")
    await engine.delete(uid, scope="this", occurrence="2026-12-17T10:00:00")
    source = (root / "calendar" / f"{uid}.ics").read_bytes()
    assert b"UNTIL=20261217T090000Z" in source
    assert b"EXDATE;TZID=Europe/Madrid:20261217T100000" in source
    assert max(len(each) for each in source.split(b"\r\n")) <= 75
    assert b"\n" not in source.replace(b"\r\n", b"")
    calendar = icalendar.Calendar.from_ical(source)
    master, own = calendar.events
    assert [str(each["TZID"]) for each in calendar.walk("VTIMEZONE")] == ["Europe/Madrid"]
    assert master.start.isoformat() == "2026-12-03T10:00:00+01:00"
    assert str(own["SUMMARY"]) == "Own"
    assert own["RECURRENCE-ID"].dt == own.start
    assert not list(calendar.errors)


async def test_an_event_of_days_that_becomes_a_series_has_days_in_its_file(root: Path, engine: CalendarEngine) -> None:
    fields = {**MEETING, "start": "2026-10-23T12:00:00", "duration": "P1D", "timeZone": "Europe/Berlin"}
    uid = (await engine.create(fields)).event
    path = root / "calendar" / f"{uid}.ics"
    assert "DTEND;TZID=Europe/Berlin:20261024T120000" in path.read_text(encoding="utf-8")
    await engine.update(uid, {"recurrenceRules": [{"frequency": "daily", "count": 3}]})
    assert "DURATION:P1D" in path.read_text(encoding="utf-8")
    found, _ = await engine.search("2026-10-01T00:00:00Z", "2026-11-01T00:00:00Z", expand=True)
    assert [each["end"] for each in found] == ["2026-10-24T12:00:00", "2026-10-25T12:00:00", "2026-10-26T12:00:00"]


async def test_the_zone_of_a_far_year_goes_with_its_event(root: Path, engine: CalendarEngine) -> None:
    for start in ("1900-06-01T12:00:00", "2100-06-01T12:00:00"):
        uid = (await engine.create({**MEETING, "start": start, "timeZone": "Europe/Berlin"})).event
        source = (root / "calendar" / f"{uid}.ics").read_bytes()
        zone = icalendar.Calendar.from_ical(source).walk("VTIMEZONE")[0].to_tz(lookup_tzid=False)
        expected = (await engine.get(uid))["utcStart"]
        local = datetime.fromisoformat(start).replace(tzinfo=zone)
        assert local.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ").rjust(20, "0") == expected


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("", "empty"),
        ("hello", "doesn't begin"),
        ("BEGIN:VCARD\r\nEND:VCARD\r\n", "VCARD"),
        ("BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\n", "END:VCALENDAR is missing"),
        ("BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nEND:VCALENDAR\r\n", "followed by"),
        ("BEGIN:VCALENDAR\r\nBEGIN:VTODO\r\nUID:x\r\nEND:VTODO\r\nEND:VCALENDAR\r\n", "no VEVENT"),
        (event("DTSTART:20260611T090000Z") * 2, "after the END"),
        (event("SUMMARY:no start"), "no DTSTART"),
        (event("DTSTART:yesterday"), "yesterday"),
        (event("DTSTART:20260611T090000Z", "DTEND:20260611T080000Z"), "before DTSTART"),
        (event("DTSTART:20260611T090000Z", "DTEND;VALUE=DATE:20260612"), "DTEND is a date"),
        (event("DTSTART:20260611T090000Z", "DURATION:-PT1H"), "negative"),
        (event("DTSTART:20260611T090000Z", "RECURRENCE-ID:20260611T090000Z"), "only changed occurrences"),
        (b"\xff\xfe\x00", "UTF-8"),
        (event("DTSTART:20260611T090000Z").replace("UID:x", "UID;X=1"), "no UID"),
    ],
)
async def test_what_cannot_be_read_is_reported_and_left(
    root: Path, engine: CalendarEngine, source: str | bytes, reason: str
) -> None:
    path = put(root, source)
    before = path.read_bytes()
    await engine.create(MEETING)
    assert len((await engine.search(*JUNE))[0]) == 1
    (problem,) = await engine.problems()
    assert problem.place == "calendar/other.ics"
    assert reason in problem.reason
    assert path.read_bytes() == before


async def test_one_uid_in_two_files_is_reported(root: Path, engine: CalendarEngine) -> None:
    put(root, event("DTSTART:20260611T090000Z", "SUMMARY:first"), "a.ics")
    put(root, event("DTSTART:20260611T090000Z", "SUMMARY:second"), "b.ics")
    assert (await engine.get("x"))["title"] == "first"
    (problem,) = await engine.problems()
    assert (problem.place, "a.ics" in problem.reason) == ("calendar/b.ics", True)
    (root / "calendar" / "a.ics").unlink()
    assert (await engine.get("x"))["title"] == "second"
    assert await engine.problems() == []


async def test_times_in_the_forms_of_others_are_read_or_said_to_be_unknown(root: Path, engine: CalendarEngine) -> None:
    zone = (
        "BEGIN:VTIMEZONE\r\nTZID:Our Zone\r\nBEGIN:STANDARD\r\nDTSTART:19700101T000000\r\n"
        "TZOFFSETFROM:+0330\r\nTZOFFSETTO:+0330\r\nTZNAME:OZ\r\nEND:STANDARD\r\nEND:VTIMEZONE\r\n"
    )
    cases = {
        "DTSTART;TZID=W. Europe Standard Time:20260611T090000": ("2026-06-11T09:00:00", "Europe/Berlin", None),
        "DTSTART;TZID=/example.org/2026/Europe/Berlin:20260611T090000": ("2026-06-11T09:00:00", "Europe/Berlin", None),
        'DTSTART;TZID="Our Zone":20260611T090000': ("2026-06-11T05:30:00Z", None, ["timeZone"]),
        "DTSTART;TZID=Nowhere:20260611T090000": ("2026-06-11T09:00:00", "floating", ["timeZone"]),
        "DTSTART:20260611T090000": ("2026-06-11T09:00:00", "floating", None),
        "DTSTART:20260611T090000Z": ("2026-06-11T09:00:00Z", None, None),
        "DTSTART;VALUE=DATE:20260611": ("2026-06-11", None, None),
    }
    for start, expected in cases.items():
        put(root, event(start).replace("BEGIN:VEVENT", zone + "BEGIN:VEVENT"))
        wire = await engine.get("x")
        assert (wire["start"], wire.get("timeZone"), wire.get("unknown")) == expected
        assert wire["duration"] == ("P1D" if "VALUE=DATE" in start else "PT0S")
    put(root, event("DTSTART;VALUE=DATE:20260611", "DTEND;VALUE=DATE:20260611"))
    assert (await engine.get("x"))["end"] == "2026-06-12"
    put(root, event("DTSTART;TZID=America/New_York:20260611T090000", "DTEND;TZID=Europe/Berlin:20260611T170000"))
    assert (await engine.get("x"))["end"] == "2026-06-11T11:00:00"


async def test_a_series_by_rules_of_another_kind_is_shown_and_its_times_are_left(
    root: Path, engine: CalendarEngine
) -> None:
    for rule in (
        "FREQ=SECONDLY;COUNT=3",
        "RSCALE=CHINESE;FREQ=YEARLY",
        "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30",
        "FREQ=NO",
    ):
        path = put(root, event("DTSTART:20260611T090000Z", "DURATION:PT1H", f"RRULE:{rule}", "SUMMARY:odd"))
        for expand in (False, True):
            ((found,), _) = await engine.search("2027-01-01T00:00:00Z", "2027-02-01T00:00:00Z", expand=expand)
            assert (found["recurring"], found["unknown"]) == (True, ["recurrenceRules"])
        for act in (
            lambda: engine.update("x", {"title": "y"}, scope="this", occurrence="2026-06-11T09:00:00Z"),
            lambda: engine.update("x", {"start": "2026-06-12T09:00:00Z"}, scope="all"),
            lambda: engine.update("x", {}, ["recurrenceRules"], scope="all"),
            lambda: engine.delete("x", scope="following", occurrence="2026-06-11T09:00:00Z"),
        ):
            with pytest.raises(Unsupported) as caught:
                await act()
            assert caught.value.details["lost"] == ["recurrenceRules"]
        await engine.update("x", {"title": "plain"}, scope="all")
        text = path.read_bytes().decode()
        assert f"RRULE:{rule}\r\n" in text
        assert "SUMMARY:plain" in text


async def test_rdates_and_periods_are_occurrences(root: Path, engine: CalendarEngine) -> None:
    put(
        root,
        event(
            "DTSTART;TZID=Europe/Berlin:20260601T090000",
            "DURATION:PT1H",
            "RDATE;TZID=Europe/Berlin:20260603T090000,20260604T090000",
            "RDATE;VALUE=PERIOD:20260605T070000Z/PT3H,20260606T070000Z/20260606T080000Z",
            "EXDATE;VALUE=DATE:20260604",
        ),
    )
    found, _ = await engine.search(*JUNE, expand=True)
    assert [(each["start"][8:13], each["duration"]) for each in found] == [
        ("01T09", "PT1H"),
        ("03T09", "PT1H"),
        ("05T09", "PT3H"),
        ("06T09", "PT1H"),
    ]
    await engine.update("x", {"title": "New"}, scope="all")
    assert [each["start"] for each in (await engine.search(*JUNE, expand=True))[0]] == [each["start"] for each in found]


@pytest.mark.parametrize("character", ["\x00", "\x08", "\x1b", "\x7f", "\r", "\x0b"])
async def test_what_icalendar_cannot_hold_is_refused(root: Path, engine: CalendarEngine, character: str) -> None:
    with pytest.raises(InvalidArgument, match=f"description.*U\\+{ord(character):04X}"):
        await engine.create({**MEETING, "description": f"a{character}b"})
    assert list((root / "calendar").glob("*.ics")) == []
    rule = [{"frequency": "daily"}]
    uid = (await engine.create({**MEETING, "recurrenceRules": rule})).event
    with pytest.raises(InvalidArgument, match="title"):
        await engine.update(uid, {"title": character}, scope="this", occurrence="2026-06-12T17:00:00")


async def test_the_second_of_two_equal_times_is_kept_only_as_an_instant(engine: CalendarEngine) -> None:
    fields = {**MEETING, "start": "2026-10-25T02:30:00+01:00", "timeZone": "Europe/Berlin"}
    with pytest.raises(Unsupported) as caught:
        await engine.create(fields)
    assert caught.value.details["lost"] == ["timeZone"]
    wire = await engine.get((await engine.create(fields, accept=["timeZone"])).event)
    assert wire["start"] == "2026-10-25T01:30:00Z"
    assert "timeZone" not in wire


async def test_participants_are_kept_by_no_file_of_ours(engine: CalendarEngine) -> None:
    fields = {**MEETING, "participants": {"a": {"email": "a@example.org"}}}
    with pytest.raises(Unsupported) as caught:
        await engine.create(fields)
    assert caught.value.details["lost"] == ["participants"]
    wire = await engine.get((await engine.create(fields, accept=["participants"])).event)
    assert "participants" not in wire


@pytest.mark.parametrize(
    "uid", ["../../escape", "a/b", "CON", "nul.txt", ".hidden", "Ä" * 300, "UPPER", "a" * 300, "x\ny"]
)
async def test_any_uid_has_a_file_name_that_is_safe(root: Path, engine: CalendarEngine, uid: str) -> None:
    await engine.create(MEETING, uid=uid)
    (path,) = (root / "calendar").iterdir()
    assert re.fullmatch(r"uid-[0-9a-f]{40}\.ics", path.name)
    assert (await engine.get(uid))["event"] == uid
    await engine.delete(uid)
    assert list((root / "calendar").iterdir()) == []
    assert sorted(each.name for each in root.iterdir()) == [".hotplug", "calendar"]


async def test_alerts_are_alarms_that_others_read(root: Path, engine: CalendarEngine) -> None:
    alerts = {
        "a": {"trigger": {"@type": "OffsetTrigger", "offset": "-PT1H30M"}},
        "b": {"trigger": {"@type": "OffsetTrigger", "offset": "P7D", "relativeTo": "end"}},
        "c": {
            "trigger": {"@type": "AbsoluteTrigger", "when": "2026-06-11T13:00:00Z"},
            "acknowledged": "2026-06-11T13:05:00Z",
        },
    }
    uid = (await engine.create({**MEETING, "alerts": alerts})).event
    assert (await engine.get(uid))["alerts"] == alerts
    (read,) = icalendar.Calendar.from_ical((root / "calendar" / f"{uid}.ics").read_bytes()).events
    triggers = sorted(str(each.TRIGGER) for each in read.walk("VALARM"))
    assert triggers == ["-1 day, 22:30:00", "2026-06-11 13:00:00+00:00", "7 days, 0:00:00"]
    mail = {"d": {"trigger": {"@type": "OffsetTrigger", "offset": "PT0S"}, "action": "email"}}
    with pytest.raises(Unsupported) as caught:
        await engine.update(uid, {"alerts": {**alerts, **mail}})
    assert caught.value.details["lost"] == ["alerts"]
    await engine.update(uid, {"alerts": {"a": alerts["a"], **mail}}, accept=["alerts"])
    assert (await engine.get(uid))["alerts"] == {"a": alerts["a"]}


async def test_alarms_of_other_kinds_stay_and_are_said_to_be_unknown(root: Path, engine: CalendarEngine) -> None:
    sound = "BEGIN:VALARM\r\nACTION:AUDIO\r\nTRIGGER:-PT5M\r\nATTACH:Basso\r\nEND:VALARM\r\n"
    path = put(root, FOREIGN.replace("BEGIN:VALARM", sound + "BEGIN:VALARM"))
    wire = await engine.get(UID)
    assert wire["unknown"] == ["alerts"]
    assert list(wire["alerts"]) == ["2"]
    new = {**wire["alerts"], "x": {"trigger": {"@type": "OffsetTrigger", "offset": "PT0S"}}}
    await engine.update(UID, {"alerts": new}, scope="all")
    assert (await engine.get(UID))["alerts"] == new
    assert sound in path.read_bytes().decode()
    await engine.update(UID, {}, ["alerts"], scope="all")
    assert b"VALARM" not in path.read_bytes()


async def test_no_temporary_file_is_left_and_none_is_read(root: Path, engine: CalendarEngine) -> None:
    uid = (await engine.create(MEETING)).event
    (root / "calendar" / ".crashed.tmp").write_bytes(b"half")
    (root / "calendar" / "notes.txt").write_text("not an event")
    await engine.update(uid, {"title": "x"})
    assert await engine.problems() == []
    assert {each.name for each in (root / "calendar").iterdir()} == {f"{uid}.ics", ".crashed.tmp", "notes.txt"}


async def test_a_change_by_another_program_moves_the_revision(root: Path, engine: CalendarEngine) -> None:
    uid = (await engine.create(MEETING)).event
    seen = (await engine.get(uid))["revision"]
    path = root / "calendar" / f"{uid}.ics"
    path.write_bytes(path.read_bytes().replace(b"Planning", b"Elsewhere"))
    with pytest.raises(Conflict):
        await engine.update(uid, {"location": "x"}, revision=seen)
    await engine.update(uid, {"location": "x"})
    assert (await engine.get(uid))["title"] == "Elsewhere"


async def test_an_event_that_another_program_puts_back_is_there_again(root: Path, engine: CalendarEngine) -> None:
    uid = (await engine.create(MEETING)).event
    path = root / "calendar" / f"{uid}.ics"
    source = path.read_bytes()
    await engine.delete(uid)
    path.write_bytes(source)
    assert (await engine.get(uid))["title"] == "Planning"
    assert (await engine.deleted_since())[0] == []


async def test_a_folder_that_cannot_be_written_is_said_to_be_so(
    root: Path, engine: CalendarEngine, monkeypatch: Any
) -> None:
    uid = (await engine.create(MEETING)).event
    # whoever runs the tests may be one who can write everywhere
    monkeypatch.setattr("os.access", lambda *_: False)
    assert (await engine.calendars())[0]["writable"] is False
    for act in (
        lambda: engine.create(MEETING),
        lambda: engine.update(uid, {"title": "x"}),
        lambda: engine.delete(uid),
    ):
        with pytest.raises(PermissionDenied):
            await act()


def test_a_file_where_the_folder_should_be_is_refused(tmp_path: Path) -> None:
    (tmp_path / "events").write_text("x")
    with pytest.raises(StoreError):
        FolderStorage(tmp_path / "events")


WRITER = """
import sys
import time
from pathlib import Path
import anyio
from hotplug.servers.calendar import CalendarEngine, FolderStorage, SqliteStorage

async def main():
    kind, place, uid, mark = sys.argv[1:]
    engine = CalendarEngine(FolderStorage(place) if kind == "folder" else SqliteStorage(place))
    for number in range(10):
        day = f"2026-06-{number * 2 + (1 if mark == 'a' else 2):02}T09:00:00"
        await engine.update(uid, {"title": mark}, scope="this", occurrence=day)

anyio.run(main)
"""


@pytest.mark.parametrize("kind", ["folder", "sqlite"])
async def test_changes_of_two_processes_are_all_kept(tmp_path: Path, kind: str) -> None:
    from hotplug.servers.calendar import SqliteStorage

    place = tmp_path / kind
    engine = CalendarEngine(FolderStorage(place) if kind == "folder" else SqliteStorage(place))
    fields = {
        **MEETING,
        "start": "2026-06-01T09:00:00",
        "timeZone": "Europe/Berlin",
        "recurrenceRules": [{"frequency": "daily", "count": 20}],
    }
    uid = (await engine.create(fields)).event
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, kind, str(place), uid, mark],
            env={"PYTHONPATH": str(Path(__file__).parents[3] / "src")},
        )
        for mark in ("a", "b")
    ]
    assert [writer.wait(60) for writer in writers] == [0, 0]
    found, _ = await engine.search(*JUNE, expand=True)
    assert [each["title"] for each in found] == ["a", "b"] * 10
    await engine.close()


@given(cuts=st.lists(st.tuples(st.integers(0, len(FOREIGN)), st.integers(0, 40), st.binary(max_size=4)), max_size=4))
@settings(max_examples=150, deadline=None)
def test_a_damaged_file_is_read_or_refused_and_never_altered(cuts: list[tuple[int, int, bytes]]) -> None:
    source = FOREIGN.encode()
    for at, length, put_in in cuts:
        source = source[:at] + put_in + source[at + length :]
    try:
        record, root = read_file(source, "calendar")
    except FileError:
        return
    assert root.to_bytes() == source
    assert to_wire(record)["event"] == record.uid


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
async def test_what_is_no_regular_file_is_reported_and_not_opened(root: Path, engine: CalendarEngine) -> None:
    folder = root / "calendar"
    os.mkfifo(folder / "pipe.ics")
    (folder / "device.ics").symlink_to("/dev/zero")
    (folder / "folder.ics").mkdir()
    (folder / "gone.ics").symlink_to(root / "nowhere")
    with anyio.fail_after(10):
        await engine.create(MEETING)
        assert len((await engine.search(*JUNE))[0]) == 1
        problems = {each.place: each.reason for each in await engine.problems()}
    assert problems == {
        "calendar/device.ics": "it is no regular file",
        "calendar/folder.ics": "it is no regular file",
        "calendar/gone.ics": "it is a link to a file that isn't there",
        "calendar/pipe.ics": "it is no regular file",
    }


async def test_a_huge_file_is_reported_and_not_read(root: Path, engine: CalendarEngine) -> None:
    path = put(root, event("DTSTART:20260611T090000Z"))
    assert (await engine.get("x"))["start"] == "2026-06-11T09:00:00Z"
    os.truncate(path, LARGEST_FILE + 1)
    (problem,) = await engine.problems()
    assert problem.reason == f"it has {LARGEST_FILE + 1} bytes, and at most {LARGEST_FILE} are read"
    with pytest.raises(Unavailable):
        await engine.get("x")


async def test_a_link_to_a_file_elsewhere_is_read(root: Path, engine: CalendarEngine, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text(event("DTSTART:20260611T090000Z"))
    (root / "calendar" / "link.ics").symlink_to(tmp_path / "elsewhere")
    assert (await engine.get("x"))["start"] == "2026-06-11T09:00:00Z"


async def test_a_link_to_a_calendar_that_is_there_is_not_another_one(root: Path, engine: CalendarEngine) -> None:
    uid = (await engine.create(MEETING)).event
    (root / "a").symlink_to(root / "calendar")
    (root / "b").symlink_to(root)
    (root / "c").symlink_to(root / "nowhere")
    assert [each["calendar"] for each in await engine.calendars()] == ["calendar"]
    assert [each["event"] for each in (await engine.search(*JUNE))[0]] == [uid]
    assert await engine.problems() == []


async def test_a_link_to_a_calendar_elsewhere_is_one(root: Path, engine: CalendarEngine, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (root / "linked").symlink_to(tmp_path / "elsewhere")
    assert [each["calendar"] for each in await engine.calendars()] == ["calendar", "linked"]


async def test_the_ending_of_a_name_may_be_in_capitals(root: Path, engine: CalendarEngine) -> None:
    put(root, event("DTSTART:20260611T090000Z"), "OTHER.ICS")
    assert (await engine.get("x"))["start"] == "2026-06-11T09:00:00Z"


def test_a_line_of_very_many_folds_is_read_in_one_go() -> None:
    folds = "x\r\n " * 1_000_000
    source = event("DTSTART:20260611T090000Z", f"SUMMARY:{folds}").encode()
    started = time.process_time()
    record, _ = read_file(source, "calendar", "1")
    assert record.title == "x" * 1_000_000
    assert time.process_time() - started < 30  # with each fold copied anew it would be hours


async def test_components_nested_without_end_are_reported(root: Path, engine: CalendarEngine) -> None:
    inside = "BEGIN:X\r\n" * 100_000 + "END:X\r\n" * 100_000
    put(root, event("DTSTART:20260611T090000Z", inside.strip()))
    (problem,) = await engine.problems()
    assert problem.reason == "its components are nested more than 20 deep"
