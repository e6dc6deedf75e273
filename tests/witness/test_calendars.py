"""Calendars as witnesses: a real Radicale, folders, tables; and servers that give less than all."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from hotplug.catalog import Calendar
from hotplug.door import connect
from hotplug.errors import ConfigError, ConnectError
from hotplug.evidence.window import closed_cleanly
from hotplug.testing import radicale
from hotplug.witness import CalDav, CalendarFolder, CalendarTables
from hotplug.witness.calendar import StoredCalendars

pytestmark = pytest.mark.anyio


def ical(uid: str, title: str, *, stamp: str = "20261001T000000Z", more: str = "") -> str:
    return "\r\n".join(
        [
            "BEGIN:VCALENDAR",
            "VERSION:2.0",
            "PRODID:-//test//EN",
            "BEGIN:VEVENT",
            f"UID:{uid}",
            f"DTSTAMP:{stamp}",
            "DTSTART;TZID=Europe/Berlin:20261026T140000",
            "DTEND;TZID=Europe/Berlin:20261026T150000",
            f"SUMMARY:{title}",
            *([more] if more else []),
            "END:VEVENT",
            "END:VCALENDAR",
            "",
        ]
    )


@pytest.mark.real
async def test_a_real_caldav_server_is_read_past_whoever_acts(watch: Callable[..., Any]) -> None:
    async with radicale(calendars={"office": "Work", "home": "Home"}) as server:
        await server.put("office", "one.ics", ical("one", "Planning"))
        await server.put("home", "two.ics", ical("two", "Dentist"))
        witness = CalDav(server.user_url, server.username, server.password)
        at = await watch(witness)
        assert [one.summary for one in await witness.before(at.window)] == ["calendar.event.count = 2"]
        await server.put("office", "one.ics", ical("one", "Planning", stamp="20261111T000000Z"))
        assert await at.seen() == ["calendar.event.count = 2"]
        await server.put("office", "three.ics", ical("three", "Lünch 🍜"))
        await server.put("office", "one.ics", ical("one", "Planning II"))
        await server.remove("home", "two.ics")
        seen = await at.observed()
        assert sorted(one.summary for one in seen) == [
            "calendar.event one updated",
            "calendar.event three created",
            "calendar.event two deleted",
            "calendar.event.count = 2",
        ]
        (made,) = [one for one in seen if one.summary.endswith("created")]
        assert made.value == {
            "uid": "three",
            "title": "Lünch 🍜",
            "start": "2026-10-26T13:00:00Z",
            "end": "2026-10-26T14:00:00Z",
            "zone": "Europe/Berlin",
            "location": "",
            "description": "",
            "recurring": False,
            "calendar": "office",
        }
        assert await at.gaps() == []
        assert {event["title"] for event in await witness.stored()} == {"Planning II", "Lünch 🍜"}
        assert closed_cleanly(await at.close())
        assert server.password not in f"{witness.identity()}{witness.provenance('state')}"


@pytest.mark.real
async def test_one_event_in_two_calendars_is_seen_twice(watch: Callable[..., Any]) -> None:
    async with radicale(calendars={"office": "Work", "home": "Home"}) as server:
        at = await watch(CalDav(server.url, server.username, server.password))
        await server.put("office", "one.ics", ical("one", "Planning"))
        await server.put("home", "one.ics", ical("one", "Planning"))
        assert (await at.seen())[:2] == ["calendar.event one created"] * 2


@pytest.mark.real
async def test_a_single_calendar_can_be_looked_at_and_its_end_is_a_blind_spot(watch: Callable[..., Any]) -> None:
    async with radicale(calendars={"office": "Work"}) as server:
        await server.put("office", "one.ics", ical("one", "Planning"))
        witness = CalDav(server.calendar_url("office"), server.username, server.password)
        at = await watch(witness)
        await server.remove_calendar("office")
        assert await at.seen() == []
        assert await at.gaps() == [("channel-unobserved", "state")]
        with pytest.raises(ConnectError, match="could not be looked at"):
            await witness.stored()
    assert await at.seen() == []
    assert await at.gaps() == [("channel-unobserved", "state")]


@pytest.mark.real
async def test_a_wrong_password_is_said_and_not_shown(watch: Callable[..., Any]) -> None:
    async with radicale(calendars={"office": "Work"}) as server:
        at = await watch(CalDav(server.url.replace("//", f"//{server.username}:W0rngPassw0rd@"), timeout=5))
        said = "\n".join(one.detail for one in await at.spots())
        assert "refused the credential (401)" in said
        assert "W0rngPassw0rd" not in said
        assert await at.seen() == []


MULTISTATUS = (
    '<?xml version="1.0"?><d:multistatus xmlns:d="DAV:" xmlns:c="urn:ietf:params:xml:ns:caldav">{}</d:multistatus>'
)
PLACE = (
    "<d:response><d:href>/cal/</d:href><d:propstat><d:prop><d:resourcetype><d:collection/><c:calendar/>"
    "</d:resourcetype></d:prop><d:status>HTTP/1.1 200 OK</d:status></d:propstat></d:response>"
)


def listed(name: str, etag: str = '"1"') -> str:
    return (
        f"<d:response><d:href>/cal/{name}</d:href><d:propstat><d:prop><d:resourcetype/><d:getetag>{etag}</d:getetag>"
        "</d:prop><d:status>HTTP/1.1 200 OK</d:status></d:propstat></d:response>"
    )


def given(name: str, text: str, etag: str = '"1"') -> str:
    return (
        f"<d:response><d:href>/cal/{name}</d:href><d:propstat><d:prop><d:getetag>{etag}</d:getetag>"
        f"<c:calendar-data>{text}</c:calendar-data></d:prop><d:status>HTTP/1.1 200 OK</d:status></d:propstat>"
        "</d:response>"
    )


def refused(name: str, status: str) -> str:
    return f"<d:response><d:href>/cal/{name}</d:href><d:status>HTTP/1.1 {status}</d:status></d:response>"


class Answers:
    """A server that answers as it is told, since no good one gives less than all."""

    def __init__(self) -> None:
        self.listing = PLACE
        self.objects = ""
        self.status = 207
        self.raw: str | None = None
        self.location: str | None = None
        self.authorization: list[str | None] = []
        answers = self

        class Handler(BaseHTTPRequestHandler):
            def answer(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                answers.authorization.append(self.headers.get("Authorization"))
                inner = answers.objects if self.command == "REPORT" else answers.listing
                body = (answers.raw or MULTISTATUS.format(inner)).encode()
                self.send_response(answers.status)
                if answers.location:
                    self.send_header("Location", answers.location)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_PROPFIND = do_REPORT = answer  # noqa: N815

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}/cal/"


@pytest.fixture
def answers() -> Iterator[Answers]:
    made = Answers()
    thread = Thread(target=made.http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield made
    made.http.shutdown()
    thread.join()
    made.http.server_close()


ONE, TWO = given("one.ics", ical("one", "A")), given("two.ics", ical("two", "B"))
BOTH = PLACE + listed("one.ics") + listed("two.ics")


@pytest.mark.parametrize(
    ("listing", "objects", "kind"),
    [
        (BOTH, ONE, "channel-unobserved"),
        (BOTH, ONE + refused("two.ics", "500 Internal Server Error"), "channel-unobserved"),
        (BOTH, ONE + refused("", "507 Insufficient Storage"), "buffer-truncated"),
        (BOTH, ONE + refused("two.ics", "nonsense"), "channel-unobserved"),
        (BOTH, ONE + given("two.ics", "no calendar"), "channel-unobserved"),
        (BOTH, ONE + given("two.ics", ical("two", "B").replace("DTSTART", "X-START")), "channel-unobserved"),
        (BOTH, ONE + listed("two.ics"), "channel-unobserved"),
        (BOTH, ONE + given("two.ics", ical("two", "B"), '"other"'), "channel-unobserved"),
        (PLACE + listed("one.ics"), ONE + TWO, "channel-unobserved"),
        (PLACE + listed("one.ics") + refused("two.ics", "403 Forbidden"), ONE, "channel-unobserved"),
    ],
)
async def test_a_partial_answer_is_a_blind_spot_and_what_lacks_is_not_gone(
    listing: str, objects: str, kind: str, answers: Answers, watch: Callable[..., Any]
) -> None:
    answers.listing, answers.objects = BOTH, ONE + TWO
    witness = CalDav(answers.url, "u", "p")
    at = await watch(witness)
    assert await at.gaps() == []
    answers.listing, answers.objects = listing, objects
    assert [one for one in await at.seen() if "deleted" in one or "created" in one] == []
    assert (kind, "state") in await at.gaps()
    with pytest.raises(ConnectError, match="not everything could be read"):
        await witness.stored()
    answers.listing, answers.objects = PLACE + listed("one.ics"), ONE
    assert await at.seen() == ["calendar.event two deleted", "calendar.event.count = 1"]
    assert await at.gaps() == []


@pytest.mark.parametrize(
    ("raw", "status", "said"),
    [
        (None, 500, "answered PROPFIND with 500"),
        (None, 200, "answered PROPFIND with 200"),
        ("<html>", 207, "no XML"),
        ("<html/>", 207, "no multistatus"),
        ('<!DOCTYPE x [<!ENTITY a "b">]><x>&a;</x>', 207, "document type"),
        (MULTISTATUS.format(""), 207, "nothing about itself"),
        (MULTISTATUS.format(listed("x")), 207, "no calendar is there"),
    ],
)
async def test_a_server_that_answers_something_else_is_a_blind_spot(
    raw: str | None, status: int, said: str, answers: Answers, watch: Callable[..., Any]
) -> None:
    answers.raw, answers.status = raw, status
    at = await watch(CalDav(answers.url, "u", "p"))
    assert await at.seen() == []
    (gap, *_) = await at.spots()
    assert gap.channel == "state"
    assert said in gap.detail


async def test_the_credential_goes_to_one_origin_alone(answers: Answers, watch: Callable[..., Any]) -> None:
    answers.status, answers.location = 302, "http://localhost:1/cal/"
    at = await watch(CalDav(answers.url, "u", "p"))
    assert "leads to another origin, localhost" in (await at.spots())[0].detail
    answers.location = answers.url
    at = await watch(CalDav(answers.url, "u", "p"))
    assert "without end" in (await at.spots())[0].detail


async def test_an_address_that_is_none_of_http_is_refused() -> None:
    with pytest.raises(ConfigError, match="http"):
        CalDav("ftp://h/")


async def test_a_native_calendar_is_witnessed_by_its_tables(tmp_path: Path, watch: Callable[..., Any]) -> None:
    file = tmp_path / "calendar.db"
    witness = CalendarTables(file)
    with pytest.raises(ConnectError, match="unable to open"):
        await witness.stored()
    async with connect(Calendar, f"sqlite:///{file}") as cal:
        (info,) = (await cal.calendars()).calendars
        at = await watch(witness)
        assert await at.seen() == ["calendar.event.count = 0"]
        made = await cal.create(
            calendar=info.calendar, title="Planning", start="2026-10-26T13:00:00Z", duration="PT1H", location="Room 5"
        )
        (seen, fact) = await at.observed()
        assert fact.summary == "calendar.event.count = 1"
        assert seen.summary.endswith(" created")
        assert seen.value["title"] == "Planning"
        assert (seen.value["start"], seen.value["end"]) == ("2026-10-26T13:00:00Z", "2026-10-26T14:00:00Z")
        await cal.update(event=made.event, changes={"title": "Planning II"})
        assert (await at.seen())[1].endswith(" updated")
        await cal.delete(event=made.event)
        assert (await at.seen())[2].endswith(" deleted")
        assert await at.gaps() == []
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("insert into calendar_events values ('x', 'calendar', 1, 'a', null, '{')")
    assert len(await at.seen()) == 3
    assert await at.gaps() == [("channel-unobserved", "state")]
    with pytest.raises(ConnectError, match="not everything could be read"):
        await witness.stored()


async def test_a_folder_of_calendars_is_witnessed_by_its_files(tmp_path: Path, watch: Callable[..., Any]) -> None:
    (tmp_path / "work").mkdir()
    file = tmp_path / "work" / "one.ics"
    file.write_text(ical("one", "Planning", more="RRULE:FREQ=DAILY;COUNT=3"))
    witness: StoredCalendars = CalendarFolder(tmp_path)
    at = await watch(witness)
    assert [event["recurring"] for event in await witness.stored()] == [True]
    file.write_text(ical("one", "Planning", stamp="20270101T000000Z", more="RRULE:FREQ=DAILY;COUNT=3"))
    assert await at.seen() == ["calendar.event.count = 1"]
    file.write_text(ical("one", "Planning", more="RRULE:FREQ=DAILY;COUNT=4"))
    (tmp_path / "work" / "half.ics").write_text(ical("half", "Half")[:90])
    assert await at.seen() == ["calendar.event one updated"]
    assert await at.gaps() == [("channel-unobserved", "state")]
    with pytest.raises(ConnectError, match=r"not everything could be read: work/half\.ics can't be read"):
        await witness.stored()
    file.unlink()
    assert await at.seen() == ["calendar.event one updated"]
    (tmp_path / "work" / "half.ics").unlink()
    assert await at.seen() == ["calendar.event one updated", "calendar.event one deleted", "calendar.event.count = 0"]
    assert await at.gaps() == []


async def test_a_folder_that_is_missing_holds_not_nothing(tmp_path: Path, watch: Callable[..., Any]) -> None:
    witness = CalendarFolder(tmp_path / "no")
    with pytest.raises(ConnectError, match="No such file"):
        await witness.stored()
    at = await watch(witness)
    assert await at.seen() == []
    assert set(await at.gaps()) == {("channel-unobserved", "state")}
