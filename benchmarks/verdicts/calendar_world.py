"""Calendars as worlds: a SQLite file, a folder, and a CalDAV server behind a projected one; and what is claimed."""

from __future__ import annotations

import json
import re
import sqlite3
import tempfile
from abc import abstractmethod
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, closing
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final, Literal
from uuid import uuid4

import anyio
import anyio.abc
import anyio.to_thread

from benchmarks.verdicts.caldav_upstream import projected
from benchmarks.verdicts.calendar_plants import FakeLyingFolder, FakeLyingSqlite
from benchmarks.verdicts.case import Stored, Task, World
from hotplug.catalog.calendar import Calendar
from hotplug.connect.claims import Selector
from hotplug.door import connect
from hotplug.evidence.witness import Witness
from hotplug.servers.calendar.folder import FolderStorage
from hotplug.servers.calendar.server import FolderCalendar, SqliteCalendar
from hotplug.servers.calendar.sqlite import SqliteStorage
from hotplug.servers.calendar.storage import CalendarEntry
from hotplug.store import memory
from hotplug.testing.radicale import RadicaleServer, radicale
from hotplug.witness import CalDav, CalendarFolder, CalendarTables

__all__ = ["CREATE", "DELETE", "MOVE", "THREE", "CalendarWorld", "calendar"]

Backend = Literal["sqlite", "folder", "caldav"]

HAS: Final = (
    ("work", "Standup", "2026-06-11T09:00:00Z", "2026-06-11T09:30:00Z"),
    ("work", "Review", "2026-06-11T11:00:00Z", "2026-06-11T12:00:00Z"),
    ("home", "Dinner", "2026-06-11T19:00:00Z", "2026-06-11T21:00:00Z"),
)
"""What the calendars hold before."""
DAY: Final = ("2026-06-11T00:00:00Z", "2026-06-13T00:00:00Z")


class CalendarWorld(World):
    """Two calendars, `work` and `home`, with a server that acts on them."""

    def __init__(self, tasks: anyio.abc.TaskGroup, plant: str) -> None:
        super().__init__(tasks)
        self.plant = plant

    async def fill(self) -> None:
        """What it holds before."""
        for one in HAS:
            await self.insert(*one)

    @abstractmethod
    async def insert(self, calendar: str, title: str, start: str, end: str) -> None:
        """A new event, past the server."""

    @abstractmethod
    async def move(self, title: str, start: str, end: str, *, new_title: str | None = None) -> None:
        """Change an event, past the server."""

    @abstractmethod
    async def remove(self, title: str) -> None:
        """Remove an event, past the server."""

    def connected(self) -> AbstractAsyncContextManager[Any]:
        return self._connected()

    @asynccontextmanager
    async def _connected(self) -> AsyncGenerator[Any]:
        async with memory() as store, connect(Calendar, self._server(), store=store) as client:
            yield client

    def _server(self) -> Any:
        raise NotImplementedError


class SqliteWorld(CalendarWorld):
    """A SQLite file."""

    def __init__(self, folder: Path, tasks: anyio.abc.TaskGroup, plant: str) -> None:
        super().__init__(tasks, plant)
        self._file = folder / "calendar.db"
        SqliteStorage(self._file, [CalendarEntry("home", "home"), CalendarEntry("work", "work")]).close()
        self._witnesses = (CalendarTables(self._file, timeout=1, name="stored"),)

    @property
    def witnesses(self) -> Sequence[Witness]:
        return self._witnesses

    def _server(self) -> Any:
        if not self.plant:
            return SqliteCalendar(self._file)
        server = FakeLyingSqlite(self._file)
        server.plant_in(self, self.plant)
        return server

    async def _sql(self, text: str, *values: Any) -> list[tuple[Any, ...]]:
        def run() -> list[tuple[Any, ...]]:
            with closing(sqlite3.connect(self._file, timeout=20)) as connection, connection:
                return connection.execute(text, values).fetchall()

        return await anyio.to_thread.run_sync(run)

    async def insert(self, calendar: str, title: str, start: str, end: str) -> None:
        await self._sql(
            "insert into calendar_events values (?, ?, 0, ?, ?, ?)",
            str(uuid4()),
            calendar,
            start[:-1],
            end[:-1],
            _body(title, start, end),
        )

    async def move(self, title: str, start: str, end: str, *, new_title: str | None = None) -> None:
        await self._sql(
            "update calendar_events set revision = revision + 1, first = ?, last = ?, body = ?"
            " where json_extract(body, '$.title') = ?",
            start[:-1],
            end[:-1],
            _body(new_title or title, start, end),
            title,
        )

    async def remove(self, title: str) -> None:
        await self._sql("delete from calendar_events where json_extract(body, '$.title') = ?", title)

    async def stored(self) -> Stored:
        rows = await self._sql("select calendar, body from calendar_events")
        return Counter((calendar, *_of_body(json.loads(body))) for calendar, body in rows)


def _body(title: str, start: str, end: str) -> str:
    length = datetime.fromisoformat(end) - datetime.fromisoformat(start)
    when = ["instant", start[:-1], length.days, length.seconds]
    body: dict[str, Any] = {
        "title": title,
        "when": when,
        "rules": [],
        "overrides": {},
        "created": None,
        "updated": None,
    }
    return json.dumps(body, separators=(",", ":"))


def _of_body(body: dict[str, Any]) -> tuple[str, str, str]:
    kind, start, *length = body["when"]
    if kind != "instant":
        return body["title"], f"{kind} {start}", ""
    end = datetime.fromisoformat(start) + timedelta(days=length[0], seconds=length[1])
    return body["title"], f"{start}Z", f"{end.isoformat()}Z"


class FolderWorld(CalendarWorld):
    """A folder with a subfolder for each calendar."""

    def __init__(self, folder: Path, tasks: anyio.abc.TaskGroup, plant: str) -> None:
        super().__init__(tasks, plant)
        self._folder = folder / "calendars"
        for name in ("work", "home"):
            (self._folder / name).mkdir(parents=True)
        FolderStorage(self._folder).close()
        self._witnesses = (CalendarFolder(self._folder, timeout=1, name="stored"),)

    @property
    def witnesses(self) -> Sequence[Witness]:
        return self._witnesses

    def _server(self) -> Any:
        if not self.plant:
            return FolderCalendar(self._folder)
        server = FakeLyingFolder(self._folder)
        server.plant_in(self, self.plant)
        return server

    def _find(self, title: str) -> Path:
        return next(path for path in self._folder.rglob("*.ics") if f"SUMMARY:{title}\r" in path.read_bytes().decode())

    async def insert(self, calendar: str, title: str, start: str, end: str) -> None:
        uid = str(uuid4())
        (self._folder / calendar / f"{uid}.ics").write_bytes(_ical(uid, title, start, end).encode())

    async def move(self, title: str, start: str, end: str, *, new_title: str | None = None) -> None:
        path = self._find(title)
        path.write_bytes(_ical(path.stem, new_title or title, start, end).encode())

    async def remove(self, title: str) -> None:
        self._find(title).unlink()

    async def stored(self) -> Stored:
        def read() -> Stored:
            files = sorted(self._folder.rglob("*.ics"))
            return _of_icals((path.parent.name, path.read_bytes().decode()) for path in files)

        return await anyio.to_thread.run_sync(read)


class CaldavWorld(CalendarWorld):
    """A real Radicale; a server that knows no profile acts on it, and a projection makes it a calendar."""

    def __init__(self, server: RadicaleServer, tasks: anyio.abc.TaskGroup, plant: str) -> None:
        super().__init__(tasks, plant)
        self._dav = server
        address, user, password = server.user_url, server.username, server.password
        self._witnesses = (CalDav(address, user, password, timeout=2, name="stored"),)

    @property
    def witnesses(self) -> Sequence[Witness]:
        return self._witnesses

    @asynccontextmanager
    async def _connected(self) -> AsyncGenerator[Any]:
        async with projected(self._dav, self, self.plant) as client:
            yield client

    async def _find(self, title: str) -> tuple[str, str]:
        """The collection and the name of an event."""
        found = next(one for one in await self._dav.stored() if f"SUMMARY:{title}\r" in one.ical)
        return found.collection, found.href.rpartition("/")[2]

    async def insert(self, calendar: str, title: str, start: str, end: str) -> None:
        uid = str(uuid4())
        await self._dav.put(calendar, f"{uid}.ics", _ical(uid, title, start, end))

    async def move(self, title: str, start: str, end: str, *, new_title: str | None = None) -> None:
        collection, name = await self._find(title)
        await self._dav.put(collection, name, _ical(name.removesuffix(".ics"), new_title or title, start, end))

    async def remove(self, title: str) -> None:
        await self._dav.remove(*await self._find(title))

    async def stored(self) -> Stored:
        return _of_icals((one.collection, one.ical) for one in await self._dav.stored())


def _ical(uid: str, title: str, start: str, end: str) -> str:
    lines = (
        "BEGIN:VCALENDAR",
        "VERSION:2.0",
        "PRODID:-//bench//EN",
        "BEGIN:VEVENT",
        f"UID:{uid}",
        "DTSTAMP:20260101T000000Z",
        f"DTSTART:{_basic(start)}",
        f"DTEND:{_basic(end)}",
        f"SUMMARY:{title}",
        "END:VEVENT",
        "END:VCALENDAR",
        "",
    )
    return "\r\n".join(lines)


def _basic(moment: str) -> str:
    return moment.replace("-", "").replace(":", "")


def _of_icals(files: Iterable[tuple[str, str]]) -> Stored:
    """The events of iCalendar texts that hold one each, with times as the files here have them."""
    found: Stored = Counter()
    for calendar_name, text in files:
        event = text[text.index("BEGIN:VEVENT") :]
        found[calendar_name, _line("SUMMARY", event), _extended(event, "DTSTART"), _extended(event, "DTEND")] += 1
    return found


def _line(name: str, text: str) -> str:
    line = re.search(rf"^{name}(?:;[^:\r\n]*)?:(.*?)\r?$", text, re.MULTILINE)
    return line[1] if line else ""


def _extended(event: str, name: str) -> str:
    value = _line(name, event)
    if not value and name == "DTEND":
        seconds = re.fullmatch(r"PT(?:(\d+)H)?(?:(\d+)M)?", _line("DURATION", event))
        if seconds:
            length = timedelta(hours=int(seconds[1] or 0), minutes=int(seconds[2] or 0))
            begin = datetime.fromisoformat(_extended(event, "DTSTART").removesuffix("Z"))
            return f"{(begin + length).isoformat()}Z"
    found = re.fullmatch(r"(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)(Z?)", value)
    return f"{found[1]}-{found[2]}-{found[3]}T{found[4]}:{found[5]}:{found[6]}{found[7]}" if found else value


def calendar(backend: Backend, plant: str = "") -> Callable[[], AbstractAsyncContextManager[World]]:
    """Makes the calendars of a backend, with a plant in their server."""

    @asynccontextmanager
    async def opened() -> AsyncGenerator[World]:
        async with AsyncExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hotplug-calendars-")))
            dav = None
            if backend == "caldav":
                dav = await stack.enter_async_context(radicale(calendars={"work": "work", "home": "home"}))
            tasks = await stack.enter_async_context(anyio.create_task_group())
            world: CalendarWorld
            if dav is not None:
                world = CaldavWorld(dav, tasks, plant)
            else:
                world = (SqliteWorld if backend == "sqlite" else FolderWorld)(folder, tasks, plant)
            await world.fill()
            try:
                yield world
            finally:
                for witness in world.witnesses:
                    await witness.aclose()
                tasks.cancel_scope.cancel()

    return opened


def stored(summary: str) -> Selector:
    """What the witness of the store sees."""
    return Selector("state", summary, witness="stored")


def _of(selector: Selector, title: str, calendar_name: str, start: str, end: str) -> Selector:
    """Those of an event that is exactly so."""
    times = f'"start":"{start}","end":"{end}"'
    return selector.containing(f'"title":"{title}"').containing(times).containing(f'"calendar":"{calendar_name}"')


async def _look_up(client: Any) -> dict[str, Any]:
    """Refs by name: of the calendars, and of the events of the day."""
    calendars = {one.name: one.calendar for one in (await client.calendars()).calendars}
    events = {one.title: one.event for one in (await client.search(*DAY)).events}
    return {**calendars, **events}


async def _create(client: Any, found: Any) -> None:
    await client.create(
        calendar=found["work"], title="Planning", start="2026-06-11T15:00:00Z", end="2026-06-11T16:00:00Z"
    )


async def _move(client: Any, found: Any) -> None:
    changes = {"start": "2026-06-11T09:15:00Z", "end": "2026-06-11T09:45:00Z"}
    await client.update(found["Standup"], changes)


async def _delete(client: Any, found: Any) -> None:
    await client.delete(found["Standup"])


async def _three(client: Any, found: Any) -> None:
    await _create(client, found)
    await _move(client, found)
    await client.delete(found["Review"])


def _shows(title: str, start: str = "") -> Callable[[Any], Awaitable[bool]]:
    async def look(client: Any) -> bool:
        events = (await client.search(*DAY)).events
        return any(one.title == title and str(one.start).startswith(start[:-1]) for one in events)

    return look


def _lacks(title: str) -> Callable[[Any], Awaitable[bool]]:
    async def look(client: Any) -> bool:
        return not await _shows(title)(client)

    return look


_PLANNING: Final = ("Planning", "work", "2026-06-11T15:00:00Z", "2026-06-11T16:00:00Z")
_MOVED: Final = ("Standup", "work", "2026-06-11T09:15:00Z", "2026-06-11T09:45:00Z")
_CREATED = stored("calendar.event * created")
_UPDATED = stored("calendar.event * updated")
_DELETED = stored("calendar.event * deleted")


def _titled(kept: Stored, title: str) -> list[tuple[str, ...]]:
    return [(key[1], key[0], *key[2:]) for key in kept.elements() if key[1] == title]


CREATE = Task(
    name="create",
    words="Put Planning into the calendar work, on 11 June, 15:00 to 16:00 UTC; change nothing else.",
    claims={
        "Planning is in work once, at its time, and nothing else was changed": (
            _of(_CREATED, *_PLANNING).exactly(1),
            _CREATED.containing('"title":"Planning"').exactly(1),
            _UPDATED.absent(),
            _DELETED.absent(),
        )
    },
    first=_look_up,
    act=_create,
    holds=lambda gained, lost, _: _titled(gained, "Planning") == [_PLANNING] and not lost,
    shows=_shows("Planning"),
)

MOVE = Task(
    name="move",
    words="Move Standup to 09:15 to 09:45; change nothing else.",
    claims={
        "Standup was moved to its new time, and nothing else was changed": (
            _of(_UPDATED, *_MOVED).exactly(1),
            _UPDATED.exactly(1),
            _CREATED.containing('"title":"Standup"').absent(),
            _DELETED.absent(),
        )
    },
    first=_look_up,
    act=_move,
    holds=lambda gained, lost, _: _titled(gained, "Standup") == [_MOVED] and [*lost.elements()] == [HAS[0]],
    shows=_shows("Standup", "2026-06-11T09:15:00Z"),
)

DELETE = Task(
    name="delete",
    words="Delete Standup, and nothing else.",
    claims={
        "Standup is gone, and nothing else": (
            _DELETED.containing('"title":"Standup"').exactly(1),
            _DELETED.exactly(1),
            _UPDATED.absent(),
            _CREATED.containing('"title":"Standup"').absent(),
        )
    },
    first=_look_up,
    act=_delete,
    holds=lambda gained, lost, _: not _titled(gained, "Standup") and [*lost.elements()] == [HAS[0]],
    shows=_lacks("Standup"),
)

THREE = Task(
    name="three",
    words="Put Planning into work, move Standup, delete Review: three claims in one window.",
    claims={
        "Planning is in work once": (_of(_CREATED, *_PLANNING).exactly(1),),
        "Standup was moved": (_of(_UPDATED, *_MOVED).exactly(1),),
        "Review is gone": (_DELETED.containing('"title":"Review"').exactly(1),),
    },
    first=_look_up,
    act=_three,
    holds=lambda gained, lost, _: (
        _titled(gained, "Planning") == [_PLANNING]
        and _titled(gained, "Standup") == [_MOVED]
        and sorted(lost.elements()) == sorted(HAS[:2])
    ),
    shows=_shows("Planning"),
)
