"""What can be wrong with a calendar, each as one small function; and the calendars that do so."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import anyio
import anyio.abc
from typing_extensions import Unpack

from benchmarks.verdicts.case import AFTERWARDS, LATE, SLOW
from hotplug.catalog.calendar import (
    Calendar,
    CalendarEvent,
    CalendarRef,
    Changes,
    Deleted,
    EventRef,
    Found,
    NewEvent,
    Written,
)
from hotplug.catalog.calendar.profile import DeleteOptions, SearchOptions, UpdateOptions
from hotplug.errors import Disconnected, InDoubt, PermissionDenied, Timeout
from hotplug.servers.calendar.server import FolderCalendar, NativeCalendar, SqliteCalendar

__all__ = ["PLANTS", "Deed", "FakeLyingFolder", "FakeLyingSqlite", "Plant", "Stage"]

_UNKNOWN: Final = {"state": "unknown"}


class Stage(Protocol):
    """The world of a calendar, as a plant reaches into it, past the server."""

    tasks: anyio.abc.TaskGroup

    def record(self, what: str) -> None: ...

    async def insert(self, calendar: str, title: str, start: str, end: str) -> None: ...

    async def move(self, title: str, start: str, end: str, *, new_title: str | None = None) -> None: ...

    async def remove(self, title: str) -> None: ...


@dataclass
class Deed:
    """One effectful call: what was asked, how it is done honestly, and what the server will show.

    Args:
        honest: Does it; keywords stand in the place of what was asked.
        title: Which event it is about.
    """

    stage: Stage
    honest: Callable[..., Awaitable[Any]]
    title: str
    calendar: str
    start: str = ""
    end: str = ""
    tell: Callable[[], Awaitable[None]] | None = None
    ghosts: list[tuple[str, str, str, str]] = field(default_factory=list[tuple[str, str, str, str]])
    hidden: set[str] = field(default_factory=set[str])

    def later(self, seconds: float, do: Callable[[], Awaitable[Any]]) -> None:
        """Do something after the answer."""

        async def wait() -> None:
            await anyio.sleep(seconds)
            await do()

        self.stage.tasks.start_soon(wait)

    async def insert(self) -> None:
        """What was asked, put into the store past the server."""
        await self.stage.insert(self.calendar, self.title, self.start, self.end)


Plant = Callable[[Deed], Awaitable[Any]]
"""What is done in the place of the deed; None for an answer that says that it was done."""


async def nothing(deed: Deed) -> Any:
    return None


async def tells_of_it(deed: Deed) -> Any:
    if deed.tell:
        await deed.tell()


async def shows_it(deed: Deed) -> Any:
    deed.ghosts.append((deed.calendar, deed.title, deed.start, deed.end))


async def hides_it(deed: Deed) -> Any:
    deed.hidden.add(deed.title)


async def twice(deed: Deed) -> Any:
    await deed.honest()
    return await deed.honest()


async def takes_back(deed: Deed) -> Any:
    done = await deed.honest()
    deed.later(0.15, lambda: deed.stage.remove(deed.title))
    return done


async def takes_back_later(deed: Deed) -> Any:
    done = await deed.honest()
    deed.later(AFTERWARDS, lambda: deed.stage.remove(deed.title))
    return done


async def moves_a_neighbour_later(deed: Deed) -> Any:
    deed.later(AFTERWARDS, lambda: deed.stage.move("Review", "2026-06-12T11:00:00Z", "2026-06-12T12:00:00Z"))
    return await deed.honest()


async def late(deed: Deed) -> Any:
    deed.later(LATE, deed.insert)


async def slow(deed: Deed) -> Any:
    deed.later(SLOW, deed.insert)


async def breaks_off_before(deed: Deed) -> Any:
    raise Disconnected("the calendar broke off", details=_UNKNOWN)


async def breaks_off_after(deed: Deed) -> Any:
    await deed.honest()
    raise Disconnected("the calendar broke off", details=_UNKNOWN)


async def hangs_after(deed: Deed) -> Any:
    await deed.honest()
    raise Timeout("no answer", details=_UNKNOWN)


async def in_doubt(deed: Deed) -> Any:
    raise InDoubt("nobody knows")


async def in_doubt_and_slow(deed: Deed) -> Any:
    deed.later(SLOW, deed.insert)
    raise InDoubt("nobody knows")


async def in_doubt_and_late(deed: Deed) -> Any:
    deed.later(LATE, deed.insert)
    raise InDoubt("nobody knows")


async def refuses(deed: Deed) -> Any:
    raise PermissionDenied("the calendar is read-only")


async def fails_after(deed: Deed) -> Any:
    await deed.honest()
    raise RuntimeError("the notification could not be sent")


async def moves_a_neighbour(deed: Deed) -> Any:
    await deed.stage.move("Review", "2026-06-12T11:00:00Z", "2026-06-12T12:00:00Z")
    return await deed.honest()


async def moves_a_neighbour_instead(deed: Deed) -> Any:
    await deed.stage.move("Review", deed.start, deed.end)


async def deletes_another(deed: Deed) -> Any:
    await deed.stage.remove("Review")
    return await deed.honest()


async def deletes_another_instead(deed: Deed) -> Any:
    await deed.stage.remove("Review")


async def overwrites_another(deed: Deed) -> Any:
    await deed.stage.move("Review", deed.start, deed.end, new_title=deed.title)


async def copies(deed: Deed) -> Any:
    await deed.insert()


async def moves_back(deed: Deed) -> Any:
    done = await deed.honest()
    deed.later(0.15, lambda: deed.stage.move("Standup", "2026-06-11T09:00:00Z", "2026-06-11T09:30:00Z"))
    return done


async def moves_late(deed: Deed) -> Any:
    deed.later(LATE, lambda: deed.stage.move(deed.title, deed.start, deed.end))


async def moves_slowly(deed: Deed) -> Any:
    deed.later(SLOW, lambda: deed.stage.move(deed.title, deed.start, deed.end))


async def removes(deed: Deed) -> Any:
    await deed.stage.remove(deed.title)


async def removes_late(deed: Deed) -> Any:
    deed.later(LATE, lambda: deed.stage.remove(deed.title))


async def removes_slowly(deed: Deed) -> Any:
    deed.later(SLOW, lambda: deed.stage.remove(deed.title))


async def restores(deed: Deed) -> Any:
    done = await deed.honest()
    deed.later(0.15, lambda: deed.stage.insert("work", deed.title, "2026-06-11T09:00:00Z", "2026-06-11T09:30:00Z"))
    return done


async def into_home(deed: Deed) -> Any:
    done = await deed.honest()
    await deed.stage.insert("home", deed.title, "2026-06-11T09:00:00Z", "2026-06-11T09:30:00Z")
    return done


def instead(**other: str) -> Plant:
    """Honest, and with another value."""

    async def do(deed: Deed) -> Any:
        return await deed.honest(**other)

    return do


PLANTS: Final[Mapping[str, Plant]] = {
    "does nothing": nothing,
    "does nothing, and tells of the event": tells_of_it,
    "does nothing, and shows the event": shows_it,
    "hides it and keeps it": hides_it,
    "writes to another calendar": instead(calendar="home"),
    "writes it an hour late": instead(start="2026-06-11T16:00:00Z", end="2026-06-11T17:00:00Z"),
    "writes half its length": instead(end="2026-06-11T15:30:00Z"),
    "cuts the title": instead(title="Plan"),
    "writes it twice": twice,
    "takes it back after the answer": takes_back,
    "takes it back a while later": takes_back_later,
    "moves a neighbour a while later": moves_a_neighbour_later,
    "writes too late": late,
    "writes slowly": slow,
    "breaks off before it writes": breaks_off_before,
    "breaks off after it wrote": breaks_off_after,
    "hangs after it wrote": hangs_after,
    "in doubt, and never done": in_doubt,
    "in doubt, and done in time": in_doubt_and_slow,
    "in doubt, and done too late": in_doubt_and_late,
    "refuses": refuses,
    "fails after it was done": fails_after,
    "moves a neighbour too": moves_a_neighbour,
    "moves a neighbour instead": moves_a_neighbour_instead,
    "deletes another too": deletes_another,
    "deletes another instead": deletes_another_instead,
    "overwrites another": overwrites_another,
    "keeps the old end": instead(end="2026-06-11T09:30:00Z"),
    "moves it to another day": instead(start="2026-06-12T09:15:00Z", end="2026-06-12T09:45:00Z"),
    "copies it": copies,
    "moves it, and back": moves_back,
    "moves it too late": moves_late,
    "moves it slowly": moves_slowly,
    "removes it": removes,
    "removes it too late": removes_late,
    "removes it slowly": removes_slowly,
    "removes it, and restores it": restores,
    "puts it into another calendar": into_home,
}


class _Lying(NativeCalendar, partial=True):
    """A calendar that does what is planted in the place of what is asked."""

    stage: Stage
    plant: str
    _ghosts: list[tuple[str, str, str, str]]
    _hidden: set[str]

    def plant_in(self, stage: Stage, plant: str) -> None:
        """Say what is wrong with it."""
        self.stage, self.plant = stage, plant
        self._ghosts, self._hidden = [], set()
        # What is planted answers without a commit of its own.
        self.commits_with_store = False

    async def _done(self, deed: Deed, answer: Any) -> Any:
        deed.ghosts, deed.hidden = self._ghosts, self._hidden
        self.stage.record(self.plant)
        found = await PLANTS[self.plant](deed)
        return answer if found is None else found

    async def create(self, **event: Unpack[NewEvent]) -> Written:
        create = super().create

        async def honest(**other: str) -> Written:
            return await create(**_refs({**event, **other}))

        async def tell() -> None:
            await self.emit(
                Calendar.EventChanged(event=EventRef("ghost"), calendar=event["calendar"], change="created")
            )

        deed = Deed(
            self.stage, honest, event["title"], str(event["calendar"]), event["start"], str(event.get("end")), tell
        )
        return await self._done(deed, Written(event=EventRef("ghost")))

    async def update(self, event: EventRef, changes: Changes, **options: Unpack[UpdateOptions]) -> Written:
        update = super().update
        title = (await self.get(event)).title

        async def honest(**other: str) -> Written:
            return await update(event, _refs({**changes, **other}), **options)

        deed = Deed(self.stage, honest, title, "work", str(changes.get("start")), str(changes.get("end")))
        return await self._done(deed, Written(event=event))

    async def delete(self, event: EventRef, **options: Unpack[DeleteOptions]) -> Deleted:
        delete = super().delete
        title = (await self.get(event)).title

        async def honest() -> Deleted:
            return await delete(event, **options)

        return await self._done(Deed(self.stage, honest, title, "work"), Deleted())

    async def search(self, from_: str, to: str, **range_: Unpack[SearchOptions]) -> Found:
        found = await super().search(from_, to, **range_)
        kept = [one for one in found.events if one.title not in self._hidden]
        ghosts = [
            CalendarEvent(event=EventRef("ghost"), calendar=CalendarRef(calendar), title=title, start=start, end=end)
            for calendar, title, start, end in self._ghosts
        ]
        return Found(events=[*kept, *ghosts], cursor=found.cursor)


def _refs(fields: Mapping[str, Any]) -> Any:
    given = dict(fields)
    if "calendar" in given:
        given["calendar"] = CalendarRef(str(given["calendar"]))
    return given


class FakeLyingSqlite(_Lying, SqliteCalendar):
    """A calendar in a SQLite file that lies."""


class FakeLyingFolder(_Lying, FolderCalendar):
    """A calendar in a folder that lies."""
