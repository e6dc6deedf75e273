"""Calendars that say one thing and do another, each with one lie; and journeys that catch them."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Any

from hotplug import connect
from hotplug.catalog import Calendar
from hotplug.catalog.calendar import Deleted, EventRef, Written
from hotplug.conform.journey import Journey
from hotplug.errors import Conflict
from hotplug.servers.calendar.server import FolderCalendar
from hotplug.store import Store

__all__ = ["ACTS", "ChangesWhatItRefuses", "CreatesTwice", "NeverDeletes", "NeverStores", "journey", "served"]


class NeverDeletes(FolderCalendar):
    """Says deleted, and deletes nothing."""

    async def delete(self, event: EventRef, **options: Any) -> Deleted:
        return Deleted()


class NeverStores(FolderCalendar):
    """Says created, and stores nothing."""

    async def create(self, **event: Any) -> Written:
        return Written(event=EventRef("u-1"))


class CreatesTwice(FolderCalendar):
    """Stores what it is given twice."""

    async def create(self, **event: Any) -> Written:
        await super().create(**event)
        return await super().create(**event)


class ChangesWhatItRefuses(FolderCalendar):
    """Does a change, and then says that it was refused."""

    async def update(self, event: EventRef, changes: Any, **options: Any) -> Written:
        options.pop("revision", None)
        await super().update(event, changes, **options)
        raise Conflict("the event has another revision")


def served(calendar: FolderCalendar, store: Store) -> AbstractAsyncContextManager[Calendar]:
    """A connection to a calendar in this process."""
    return connect(Calendar, calendar, store=store)


FIND = {"name": "find", "do": "calendar.calendars", "bind": "found"}
CREATE: dict[str, Any] = {
    "name": "create",
    "do": "calendar.create",
    "with": {
        "calendar": "=$found.calendars[0].calendar",
        "title": "Lunch",
        "start": "2026-10-26T13:00:00Z",
        "duration": "PT1H",
    },
    "bind": "made",
}
STORED = {"that": "it is stored", "by": "witness", "state": "calendar.event * created", "exactly": 1}
DELETE: dict[str, Any] = {
    "name": "delete",
    "do": "calendar.delete",
    "with": {"event": "=$made.event"},
    "claims": [{"that": "it is gone", "by": "witness", "state": "calendar.event * deleted", "exactly": 1}],
    "within": "400ms",
}
CHANGE: dict[str, Any] = {
    "name": "change",
    "do": "calendar.update",
    "with": {"event": "=$made.event", "changes": {"title": "Dinner"}},
    "refused": "conflict",
    "constraints": [{"that": "nothing changes", "by": "witness", "state": "calendar.event *", "absent": True}],
}
ACTS = {"find": FIND, "create": CREATE, "delete": DELETE, "change": CHANGE}
"""Steps by their names."""


def journey(*steps: dict[str, Any] | str) -> Journey:
    """A journey of these steps; a word is one of `ACTS`."""
    whole = [ACTS[step] if isinstance(step, str) else step for step in steps]
    body = {"journey": "small", "version": "1.0.0", "title": "Small", "profiles": {"calendar": "^1"}, "steps": whole}
    return Journey.model_validate(body)
