"""The published calendar servers, opened through their projections on a real Radicale that is read past them.

A test says with `on(NAME)` which servers it is for, or its module does with `SERVER = NAME`. The fixtures of
conftest.py are then those of that server, started once for all tests of a run; every test begins with empty calendars.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, Final
from urllib.parse import unquote

import pytest

from hotplug.catalog.calendar import Calendar
from hotplug.connect import CommandTarget, McpChannel, McpSession, Reply
from hotplug.door import connect
from hotplug.errors import Unsupported
from hotplug.projection import ProjectedProvider, named
from hotplug.store import SqliteStore, Store
from hotplug.testing import RadicaleServer, StoredEvent, radicale
from hotplug.testing.published import published

AGENTS: Final = "agents-calendar"
BLADE: Final = "caldav-blade-mcp"
CALDAV: Final = "caldav-mcp"
SCHEDULER: Final = "cal-scheduler-mcp"

CALENDARS: Final[Mapping[str, Mapping[str, str]]] = {
    AGENTS: {"work": "Work", "home": "Home", "twin": "Work", "gone": "Gone"},
    # These two name a calendar by its name, and search all of them where none is named.
    BLADE: {"home": "Home"},
    SCHEDULER: {"home": "Home"},
    CALDAV: {"work": "Work", "home": "Home", "num": "2026", "gone": "Gone"},
}
DAY: Final = ("2026-10-26T00:00:00Z", "2026-10-27T00:00:00Z")
WEEK: Final = ("2026-10-24T00:00:00Z", "2026-10-31T00:00:00Z")
HOUR: Final[dict[str, Any]] = {"start": "2026-10-26T13:00:00Z", "duration": "PT1H"}
EDITS: Final[Mapping[str, list[str]]] = {
    AGENTS: ["timeZone", "title", "description", "freeBusyStatus", "participants", "alerts"],
    CALDAV: ["start", "end", "timeZone", "showWithoutTime", "status", "freeBusyStatus", "participants"],
}
"""What a change of another client's event may lose."""
SERIES: Final = ("recurrenceRules", "recurrenceOverrides")

_INSTALLED: Final = {"UV_OFFLINE": "1"}
"""What ran once is on this machine, so uv needn't ask the registry again: that takes it a second."""
_NEW_YORK: Final = (
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
ZONED: Final = (
    "DTSTART;TZID=America/New_York:20261026T090000",
    "DTEND;TZID=America/New_York:20261026T100000",
    "SUMMARY:Zoned",
    "STATUS:TENTATIVE",
    "TRANSP:TRANSPARENT",
    "ATTENDEE;CN=Bob;PARTSTAT=ACCEPTED:mailto:bob@example.org",
)


def on(*names: str) -> pytest.MarkDecorator:
    """The published servers that a test is for."""
    return pytest.mark.parametrize("running", names, indirect=True, scope="session")


@dataclass(frozen=True, slots=True)
class Running:
    """A published server that runs, with what it runs on.

    Args:
        name: Of the package.
        server: The Radicale behind it.
        store: Holds what its projection knows of its own writes.
        cal: A connection to it.
        home: The calendar `Home`.
    """

    name: str
    server: RadicaleServer
    store: Store
    cal: Calendar
    home: Any

    def again(self) -> AbstractAsyncContextManager[Calendar]:
        """The same in another process: refs are known only where it is started with the very same settings."""
        return _opened(self.name, self.server, self.store, {})


_published = cache(published)


def target(name: str, server: RadicaleServer, **settings: str) -> CommandTarget:
    """What starts a published server, with settings of its own."""
    upstream = _published(name)
    env = {**upstream.env(server), **settings}
    if name == CALDAV:
        # The projection sets it.
        del env["TZ"]
    return CommandTarget(upstream.command, env=env)


def opened(name: str, server: RadicaleServer, store: Store, **settings: str) -> AbstractAsyncContextManager[Calendar]:
    """A process of its own of a published server that ran before, through its projection."""
    return _opened(name, server, store, _INSTALLED | settings)


def _opened(
    name: str, server: RadicaleServer, store: Store, settings: Mapping[str, str]
) -> AbstractAsyncContextManager[Calendar]:
    at = target(name, server, **settings)
    return connect(Calendar, at, projection=_published(name).projection, store=store, start_timeout=120.0)


@asynccontextmanager
async def run(name: str) -> AsyncGenerator[Running]:
    """A published server on a Radicale of its own."""
    async with radicale(calendars=CALENDARS[name]) as server, SqliteStore.open(None) as store:
        connecting = _opened(name, server, store, {})
        with pytest.MonkeyPatch.context() as patch:
            # Where this process is doesn't matter to any of them.
            patch.setenv("TZ", "Asia/Tokyo")
            cal = await connecting.__aenter__()
        try:
            home = next(one.calendar for one in (await cal.calendars()).calendars if one.name == "Home")
            yield Running(name, server, store, cal, home)
        finally:
            await connecting.__aexit__(None, None, None)


def file_of(event: StoredEvent) -> str:
    """The name of the file that holds a stored event."""
    return unquote(event.href.rpartition("/")[2])


async def texts(server: RadicaleServer) -> list[str]:
    """All that is stored, as iCalendar."""
    return [event.ical for event in await server.stored()]


async def stored(server: RadicaleServer, title: str) -> StoredEvent:
    """The stored event with that title."""
    return next(event for event in await server.stored() if f"SUMMARY:{title}" in event.ical)


async def lines(server: RadicaleServer, title: str) -> list[str] | None:
    """The lines of the stored event with that title, as RFC 5545 unfolds them, without what every write changes."""
    for ical in await texts(server):
        event = _lines(ical)
        if f"SUMMARY:{title}" in event:
            return sorted(line for line in event if not line.startswith(("DTSTAMP", "UID")))
    return None


async def only_lines(server: RadicaleServer) -> set[str]:
    """The lines of the only stored event, its zone left out."""
    [ical] = await texts(server)
    return set(_lines(ical))


def _lines(ical: str) -> list[str]:
    text = ical.replace("\r\n ", "").split("\r\n")
    return text[text.index("BEGIN:VEVENT") + 1 : text.index("END:VEVENT")]


async def foreign(
    server: RadicaleServer, uid: str, *of_event: str, collection: str = "home", file: str | None = None
) -> None:
    """An event of another client, or a new content for one; its title is its uid where no line says one."""
    titled = any(line.startswith("SUMMARY") for line in of_event)
    event = (f"UID:{uid}", "DTSTAMP:20261001T000000Z", *(() if titled else (f"SUMMARY:{uid}",)), *of_event)
    zone = _NEW_YORK if any("America/New_York" in line for line in of_event) else ()
    whole = ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//other//EN", *zone, "BEGIN:VEVENT", *event, "END:VEVENT"]
    await server.put(collection, file or f"{uid}.ics", "\r\n".join([*whole, "END:VCALENDAR", ""]))


async def find(cal: Calendar, title: str, start: str = DAY[0], end: str = DAY[1]) -> Any:
    """The event of that title that a search of the range gives; None where there is none."""
    found = [event for event in (await cal.search(start, end)).events if event.title == title]
    return found[0] if found else None


async def only(cal: Calendar) -> Any:
    """The only event that a search of the week gives."""
    [event] = (await cal.search(*WEEK)).events
    return event


async def refused(call: Awaitable[Any]) -> list[str]:
    """The losses for which a call is refused."""
    with pytest.raises(Unsupported) as caught:
        await call
    return caught.value.details["lost"]


Send = Callable[[], Awaitable[Reply]]


class Meddling(McpChannel):
    """The real channel, on which something happens to a tool call: `instead` is given it, and may send it."""

    instead: Callable[[str, Send], Awaitable[Reply]] | None = None

    async def call(
        self, tool: str, arguments: Mapping[str, Any], *, meta: Mapping[str, Any], timeout: float | None = None
    ) -> Reply:
        async def send() -> Reply:
            return await super(Meddling, self).call(tool, arguments, meta=meta, timeout=timeout)

        return await (self.instead(tool, send) if self.instead else send())


@dataclass(frozen=True, slots=True)
class Meddled:
    """The projection over a channel on which a test changes what is sent and answered."""

    channel: Meddling
    provider: ProjectedProvider

    async def invoke(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """Have the projection answer a call, its handles as they are."""
        return await self.provider.invoke(Calendar.definition.all_parts[name], dict(arguments))

    async def home(self) -> Any:
        """The handle of the calendar `Home`."""
        listed = (await self.invoke("calendar.calendars", {}))["calendars"]
        return next(one["calendar"] for one in listed if one["name"] == "Home")


@asynccontextmanager
async def meddle(name: str, server: RadicaleServer) -> AsyncGenerator[Meddled]:
    """A process of its own of a published server that ran before, with a channel that a test can meddle with."""
    loaded = named(name)
    async with McpSession(target(name, server, **_INSTALLED), start_timeout=120.0) as session:
        channel = Meddling(session)
        yield Meddled(
            channel,
            ProjectedProvider(loaded.source, Calendar, channel, tools=loaded.tools, title=name, path=loaded.path),
        )
