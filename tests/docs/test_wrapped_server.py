"""The projection that the guide writes, on events that others put into the calendar."""

from __future__ import annotations

import shutil
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from hotplug import connect
from hotplug.catalog import Calendar
from hotplug.connect import CommandTarget
from hotplug.errors import Unsupported
from hotplug.store import memory
from hotplug.testing.radicale import RadicaleServer, radicale

ROOT = Path(__file__).resolve().parents[2]
PROJECTION = ROOT / "docs" / "guides" / "wrap-a-server" / "icloud-mcp-server.yaml"
pytestmark = [pytest.mark.anyio, pytest.mark.real]

DAY = {"from_": "2026-10-24T00:00:00Z", "to": "2026-10-31T00:00:00Z"}


def ical(uid: str, *lines: str) -> str:
    body = ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//test//EN", "BEGIN:VEVENT", f"UID:{uid}"]
    return "\r\n".join([*body, "DTSTAMP:20261001T000000Z", *lines, "END:VEVENT", "END:VCALENDAR", ""])


@asynccontextmanager
async def _calendar(server: RadicaleServer) -> AsyncGenerator[Any]:
    uvx = shutil.which("uvx") or str(Path(sys.executable).with_name("uvx"))
    env = {
        "CALDAV_URL": server.url,
        "ICLOUD_USERNAME": server.username,
        "ICLOUD_APP_PASSWORD": server.password,
        "CALDAV_REQUIRE_TLS": "false",
    }
    target = CommandTarget((uvx, "icloud-mcp-server@0.12.1", "--local"), env=env)
    async with memory() as store, connect(Calendar, target, projection=PROJECTION, store=store) as calendar:
        yield calendar


async def test_what_the_server_would_alter_is_refused_and_the_event_stays_as_it_was() -> None:
    async with radicale(calendars={"work": "Work"}) as server:
        hour = ("DTSTART;TZID=Europe/London:20261026T090000", "DTEND;TZID=Europe/London:20261026T100000")
        await server.put("work", "zoned.ics", ical("zoned", *hour, "SUMMARY:zoned"))
        utc = ("DTSTART:20261026T170000Z", "DTEND:20261026T180000Z")
        await server.put("work", "dates.ics", ical("dates", *utc, "RDATE:20261028T170000Z", "SUMMARY:dates"))
        guest = ("ORGANIZER:mailto:o@example.org", "ATTENDEE:mailto:g@example.org")
        await server.put("work", "guests.ics", ical("guests", *utc, *guest, "SUMMARY:guests"))
        before = [event.ical for event in await server.stored()]
        async with _calendar(server) as calendar:
            found = {event.title: event for event in (await calendar.search(**DAY)).events}
            assert set(found) == {"zoned", "dates", "guests"}
            assert "timeZone" in found["zoned"].unknown
            assert found["dates"].recurring is True
            for title, changes, lost in (
                ("zoned", {"start": "2026-10-27T09:00:00Z", "end": "2026-10-27T10:00:00Z"}, "timeZone"),
                ("dates", {"title": "other"}, "recurrenceRules"),
                ("guests", {"title": "other"}, "notify"),
            ):
                with pytest.raises(Unsupported) as refused:
                    await calendar.update(found[title].event, changes)
                assert lost in refused.value.details["lost"], title
            for title in ("dates", "guests"):
                with pytest.raises(Unsupported):
                    await calendar.delete(found[title].event)
        assert [event.ical for event in await server.stored()] == before


async def test_texts_change_in_place_and_a_cleared_location_leaves_nothing_behind() -> None:
    async with radicale(calendars={"work": "Work"}) as server:
        hour = ("DTSTART;TZID=Europe/Berlin:20261026T090000", "DTEND;TZID=Europe/Berlin:20261026T100000")
        await server.put("work", "zoned.ics", ical("zoned", *hour, "SUMMARY:zoned", "TRANSP:TRANSPARENT"))
        async with _calendar(server) as calendar:
            (event,) = (await calendar.search(**DAY)).events
            await calendar.update(event.event, {"location": "Room 4; left, then up", "description": "x" * 3000})
            (stored,) = await server.stored()
            assert "DTSTART;TZID=Europe/Berlin:20261026T090000" in stored.ical
            assert "TRANSP:TRANSPARENT" in stored.ical
            (found,) = (await calendar.search(query="XXX", **DAY)).events
            assert found.location == "Room 4; left, then up"
            assert found.description == "x" * 3000
            await calendar.update(event.event, {}, clear=["location", "description"])
            (stored,) = await server.stored()
            assert "LOCATION" not in stored.ical
            assert "DESCRIPTION" not in stored.ical
