"""What type checkers have to accept and to refuse of the public API; `test_api.py` asks pyright, strict.

Each `pyright: ignore[...]` is an expectation: where the error doesn't come, the comment itself is one.
"""

from __future__ import annotations

from typing import assert_type

from typing_extensions import Unpack

from hotplug import ConnectionFailed, connect, secret
from hotplug.catalog import Calendar
from hotplug.catalog.calendar import (
    CalendarEvent,
    CalendarRef,
    Calendars,
    Changes,
    Deleted,
    EventRef,
    Found,
    NewEvent,
    RecurrenceRule,
    Written,
)
from hotplug.catalog.calendar.profile import DeleteOptions, SearchOptions, UpdateOptions
from hotplug.profile import (
    Event,
    Health,
    Model,
    Profile,
    Receipt,
    Requirement,
    Sensitive,
    Told,
    operation,
    receipt,
    reveal,
)
from hotplug.serve import run


class Rang(Event):
    """An event of another profile."""

    loud: bool


async def client() -> None:
    async with connect(Calendar, "sqlite:///calendar.db", facets=["recurrence"]) as cal:
        assert_type(cal, Calendar)
        where = (await cal.calendars()).calendars[0].calendar
        assert_type(where, CalendarRef)
        made = await cal.create(
            calendar=where, title="Planning", start="2026-06-11T17:00:00", duration="PT1H", time_zone="Asia/Jerusalem"
        )
        assert_type(made, Written)
        assert_type(made.event, EventRef)
        assert_type(made.receipt.action_id, str)
        await cal.create(
            calendar=where,
            title="Series",
            start="2026-06-11T17:00:00Z",
            duration="PT1H",
            recurrence_rules=[RecurrenceRule(frequency="weekly")],
        )
        await cal.create(calendar=where, title="x", start="2026-06-11", zone="UTC")  # pyright: ignore[reportCallIssue]
        await cal.create(calendar=where, title=5, start="2026-06-11")  # pyright: ignore[reportArgumentType]
        await cal.create(title="x", start="2026-06-11")  # pyright: ignore[reportCallIssue]
        await cal.create(calendar="plain text", title="x", start="x")  # pyright: ignore[reportArgumentType]
        await cal.create(calendar=made.event, title="x", start="x")  # pyright: ignore[reportArgumentType]
        await cal.create(where, title="x", start="x")  # pyright: ignore[reportCallIssue]

        await cal.update(made.event, {"title": "x", "start": "2026-06-12T10:00:00"}, revision=made.revision or "")
        await cal.update(made.event, {"titel": "x"})  # pyright: ignore[reportArgumentType]
        await cal.update(made.event, {}, scope="some")  # pyright: ignore[reportArgumentType]
        await cal.update(where, {})  # pyright: ignore[reportArgumentType]
        assert_type(await cal.delete(made.event, scope="this", occurrence="2026-06-11T17:00:00"), Deleted)

        event = await cal.using(key="k", timeout=5.0, authorized=["calendar@1/calendar.delete"]).get(made.event)
        assert_type(event, CalendarEvent)
        assert_type(event.recurrence_rules, list[RecurrenceRule] | None)
        cal.using(kye="k")  # pyright: ignore[reportCallIssue]

        found = await cal.search("2026-06-01T00:00:00Z", "2026-07-01T00:00:00Z", limit=5)
        assert_type(found, Found)
        await cal.search("2026-06-01T00:00:00Z")  # pyright: ignore[reportCallIssue]
        async for change in cal.events(Calendar.EventChanged):
            assert_type(change, Calendar.EventChanged)
            assert_type(change.event, EventRef)
        async for told in cal.events(Calendar.EventChanged, records=True):
            assert_type(told, Told[Calendar.EventChanged])
            assert_type(told.event.event, EventRef)
            assert_type(told.cursor, str | None)
        async for either in cal.events(Calendar.EventChanged, Rang):
            assert_type(either, Calendar.EventChanged | Rang)
        cal.events()  # pyright: ignore[reportCallIssue]
        cal.events(Model)  # pyright: ignore[reportArgumentType]
        assert_type(cal.health(), Health)
        assert_type(cal.health().up, bool)
        await cal.postpone(made.event)  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]

    assert_type(Calendar.range("^1.0"), Requirement[Calendar])
    async with connect(Calendar.range("^1.0"), "npx -y caldav-mcp@0.10.0") as ranged:
        assert_type(ranged, Calendar)
    connect(Model, "x")  # pyright: ignore[reportArgumentType]
    try:
        pass
    except ConnectionFailed as error:
        assert_type(error.code, str)


class MyCalendar(Calendar):
    """Overrides are checked against the profile."""

    async def calendars(self) -> Calendars:
        return Calendars(calendars=[])

    async def search(self, from_: str, to: str, **range_: Unpack[SearchOptions]) -> Found:
        return Found(events=[])

    async def get(self, event: EventRef) -> CalendarEvent:
        raise NotImplementedError

    async def create(self, **event: Unpack[NewEvent]) -> Written:
        assert_type(event["title"], str)
        event["titel"]  # pyright: ignore[reportGeneralTypeIssues]
        await self.emit(Calendar.EventChanged(event=EventRef("e"), calendar=event["calendar"], change="created"))
        return Written(event=EventRef("e"))

    async def update(self, event: EventRef, changes: Changes, **options: Unpack[UpdateOptions]) -> Written:
        return Written(event=event)

    async def delete(self, event: EventRef, **options: Unpack[DeleteOptions]) -> Deleted:
        return Deleted()


class WrongArgument(Calendar, partial=True):
    async def get(self, event: int) -> CalendarEvent:  # pyright: ignore[reportIncompatibleMethodOverride]
        raise NotImplementedError


class WrongResult(Calendar, partial=True):
    async def get(self, event: EventRef) -> Found:  # pyright: ignore[reportIncompatibleMethodOverride]
        raise NotImplementedError


class MissingArgument(Calendar, partial=True):
    async def search(self, from_: str) -> Found:  # pyright: ignore[reportIncompatibleMethodOverride]
        raise NotImplementedError


def serve() -> None:
    run(MyCalendar(), transport="http", port=8000)
    run(MyCalendar)  # pyright: ignore[reportArgumentType]
    run(MyCalendar(), transport="carrier pigeon")  # pyright: ignore[reportArgumentType]


class Opened(Model):
    receipt: Receipt = receipt()


class Vault(Profile, name="vault", version="1.0.0"):
    """Vaults: they open to who knows the word."""

    @operation(effects=True, once=True)
    async def open(self, word: Sensitive[str]) -> Opened:
        """Open it."""
        ...


class MyVault(Vault):
    async def open(self, word: Sensitive[str]) -> Opened:
        assert_type(reveal(word), str)
        return Opened()


async def unlock(vault: Vault) -> None:
    await vault.open("xyzzy")
    await vault.open(secret("WORD"))
    await vault.open(word=secret("WORD"))
    await vault.open(5)  # pyright: ignore[reportArgumentType]
    async for _ in vault.events(Event):
        break
