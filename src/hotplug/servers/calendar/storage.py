"""What the engine asks of the place that keeps events."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol, TypeVar

from hotplug.catalog.calendar.records import EventRecord

__all__ = ["CalendarEntry", "Problem", "Storage", "Tombstone", "listed"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class CalendarEntry:
    """A calendar: its id, the name people see, its zone if it has one."""

    id: str
    name: str
    zone: str | None = None
    writable: bool = True

    def wire(self) -> dict[str, Any]:
        """As the profile gives it."""
        zone = {} if self.zone is None else {"zone": self.zone}
        return {"calendar": self.id, "name": self.name, **zone, "writable": self.writable}


@dataclass(frozen=True, slots=True)
class Tombstone:
    """What was deleted, and when (UTC)."""

    uid: str
    calendar: str
    deleted: datetime


@dataclass(frozen=True, slots=True)
class Problem:
    """Something in the store that isn't an event that can be read; it is left as it is."""

    place: str
    reason: str
    calendar: str
    hides: bool = True
    """Whether it may be an event that nothing else tells of; a second copy of one isn't."""

    def __str__(self) -> str:
        said = "can't be read" if self.hides else "isn't shown"
        return f"{self.place} {said}: {self.reason}; it is left as it is"


def listed(problems: Sequence[Problem], most: int = 20) -> list[str]:
    """A sentence for each problem, and one for those beyond `most`."""
    more = len(problems) - most
    rest = [f"{more} more can't be read"] if more > 0 else []
    return [*map(str, problems[:most]), *rest]


class Storage(Protocol):
    """Events by uid. Methods block; the engine calls them in a worker thread, changes inside `transaction`."""

    def at_once(self, short: Callable[[], T]) -> tuple[T] | None:
        """What a short read gives, in this thread; None, nothing done, where it might have to wait for something."""
        ...

    def transaction(self) -> AbstractContextManager[Any]:
        """Exclusive over threads and processes; what it gives is the connection to commit with, or None.

        Not to be held while awaiting the engine, which works in another thread: give the engine an `also` instead.
        """
        ...

    def calendars(self) -> list[CalendarEntry]:
        """All calendars, by id."""
        ...

    def read(self, uid: str) -> EventRecord | None:
        """The event, its revision set."""
        ...

    def was_deleted(self, uid: str) -> bool:
        """Whether an event of this uid was deleted here."""
        ...

    def select(
        self, start: datetime, end: datetime, calendar: str | None
    ) -> tuple[Sequence[EventRecord], Sequence[Problem]]:
        """At least the events that may overlap `[start, end)` in any zone, of one calendar or of all.

        And what there couldn't be read while looking for them.
        """
        ...

    def unread(self, uid: str) -> Sequence[Problem]:
        """What an event of this uid may be in though `read` does not find it; absent it is only if this is empty."""
        ...

    def fit(self, record: EventRecord, accept: frozenset[str]) -> EventRecord:
        """The event as it can be kept.

        Raises:
            Unsupported: Something would be lost (`details["lost"]`) that `accept` doesn't name.
            InvalidArgument: Something can't be kept in any form.
        """
        ...

    def insert(self, record: EventRecord, like: EventRecord | None = None) -> EventRecord:
        """Keep a new event; `like` is the one that it was split from, whose other properties it takes over."""
        ...

    def replace(self, before: EventRecord, after: EventRecord) -> EventRecord:
        """Keep the event as it is after a change."""
        ...

    def remove(self, record: EventRecord, now: datetime) -> None:
        """Delete the event and remember that."""
        ...

    def deleted_since(self, cursor: str | None, limit: int) -> tuple[list[Tombstone], str]:
        """What was deleted after the cursor, oldest first, and the cursor to go on from."""
        ...

    def problems(self) -> list[Problem]:
        """What couldn't be read."""
        ...

    def close(self) -> None:
        """Let go of files and connections."""
        ...
