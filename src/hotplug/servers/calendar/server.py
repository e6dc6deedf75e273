"""Native calendars: calendar@1 over the engine."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, cast

from typing_extensions import Unpack

from hotplug.catalog.calendar import (
    Calendar,
    CalendarEvent,
    CalendarInfo,
    CalendarRef,
    Calendars,
    Changes,
    Deleted,
    DeletedEvent,
    DeletedEvents,
    EventRef,
    Found,
    NewEvent,
    Written,
)
from hotplug.catalog.calendar.profile import Answer, AnswerOptions, DeleteOptions, Notify, SearchOptions, UpdateOptions
from hotplug.errors import InvalidArgument, Unsupported
from hotplug.profile import Event, Part
from hotplug.serve import current_call
from hotplug.servers.calendar.answers import read_address
from hotplug.servers.calendar.engine import CalendarEngine, Effect
from hotplug.servers.calendar.folder import FolderStorage
from hotplug.servers.calendar.lists import changed_list
from hotplug.servers.calendar.patches import read_patches, shown_patches
from hotplug.servers.calendar.reminders import alert_map, changed_alerts
from hotplug.servers.calendar.sqlite import SqliteStorage
from hotplug.servers.calendar.storage import Problem, Storage, listed

__all__ = ["FolderCalendar", "NativeCalendar", "OwnedFolderCalendar", "OwnedSqliteCalendar", "SqliteCalendar"]

_LONGEST_CURSOR: Final = 18
"""Digits of a place in a list, which fit the integers of every storage."""

_PARTS: Mapping[str, Part] = Calendar.definition.parts


class NativeCalendar(Calendar, facets=["revisions", "recurrence", "tombstones"], partial=True):
    """A calendar of our own over a storage.

    It has no mail: `notify` is asked for wherever people are invited, and only `none` can be obeyed.
    """

    _me: str | None = None
    """The mail address of the calendar's owner."""

    title = "calendar"
    instance = "calendar"
    emits = frozenset({"calendar.event.changed"})
    commits_with_store = False

    def __init__(self, storage: Storage) -> None:
        self._engine = CalendarEngine(storage)

    async def anotes(self) -> dict[str, Any]:
        """For `connection.describe`: what the calendars hold that couldn't be read, a sentence each."""
        problems = await self._engine.problems()
        return {"calendar.unread": listed(problems)} if problems else {}

    async def aclose(self) -> None:
        """Let go of files and connections."""
        await self._engine.close()

    async def calendars(self) -> Calendars:
        return Calendars(calendars=[CalendarInfo.model_validate(one) for one in await self._engine.calendars()])

    async def search(self, from_: str, to: str, **range_: Unpack[SearchOptions]) -> Found:
        events, cursor = await self._engine.search(
            from_,
            to,
            range_.get("time_zone"),
            range_.get("calendar"),
            range_.get("query"),
            range_.get("limit"),
            range_.get("cursor"),
            expand=range_.get("expand", False),
            unread=_note,
        )
        return Found(events=[CalendarEvent.model_validate(shown_patches(one)) for one in events], cursor=cursor)

    async def get(self, event: EventRef) -> CalendarEvent:
        return CalendarEvent.model_validate(shown_patches(await self._engine.get(event)))

    async def create(self, **event: Unpack[NewEvent]) -> Written:
        fields = _wire("calendar.create", event)
        _check_notify(fields, told=_invites(fields))
        fields.pop("notify", None)
        accept = fields.pop("accept", ())
        if "alerts" in fields:
            fields["alerts"] = alert_map(fields["alerts"])
        if "recurrenceOverrides" in fields:
            fields["recurrenceOverrides"] = read_patches(fields["recurrenceOverrides"])
        done = _Done()
        await self._engine.create(fields, accept=accept, also=done.commit)
        return await self._finish(done)

    async def update(self, event: EventRef, changes: Changes, **options: Unpack[UpdateOptions]) -> Written:
        given = _wire("calendar.update", {"event": event, "changes": changes, **options})
        fields: dict[str, Any] = given["changes"]
        if fields.get("recurrenceOverrides") is not None:
            fields["recurrenceOverrides"] = read_patches(fields["recurrenceOverrides"])
        lists = {name: value for name, value in given.items() if name.endswith(("Participants", "Alerts"))}
        revision = given.get("revision")
        before = await self._engine.get(event) if lists or "invitations" in self.facets else {}
        if lists:
            # What is added to is what was read: an edit in between moves the revision, and is refused.
            revision = revision or before.get("revision")
        participants = changed_list("participants", "email", before.get("participants"), lists)
        if participants is not None:
            fields["participants"] = participants
        alerts = changed_alerts(before.get("alerts"), lists)
        if alerts is not None:
            fields["alerts"] = alerts
        told = any("Participants" in name for name in lists) or _invites(before) or _invites(fields)
        _check_notify(given, told=told)
        done = _Done()
        await self._engine.update(
            event,
            fields,
            given.get("clear", ()),
            scope=given.get("scope"),
            occurrence=given.get("occurrence"),
            revision=revision,
            accept=given.get("accept", ()),
            also=done.commit,
        )
        return await self._finish(done)

    async def delete(self, event: EventRef, **options: Unpack[DeleteOptions]) -> Deleted:
        if "invitations" in self.facets:
            _check_notify(dict(options), told=_invites(await self._engine.get(event)))
        done = _Done(deleting=True)
        await self._engine.delete(
            event,
            scope=options.get("scope"),
            occurrence=options.get("occurrence"),
            revision=options.get("revision"),
            also=done.commit,
        )
        await self._finish(done)
        return Deleted(scope=cast("Any", done.effect.scope) if done.effect else None)

    async def deleted(self, cursor: str | None = None, limit: int | None = None) -> DeletedEvents:
        if cursor is not None and len(cursor) > _LONGEST_CURSOR:
            raise InvalidArgument(f"the cursor {cursor[:_LONGEST_CURSOR]!r}… is none that was given here")
        found, following = await self._engine.deleted_since(cursor, limit)
        return DeletedEvents(
            deleted=[
                DeletedEvent(event=EventRef(one["event"]), calendar=CalendarRef(one["calendar"]), at=one["deleted"])
                for one in found
            ],
            cursor=following,
        )

    async def _finish(self, done: _Done) -> Written:
        """Tell the events that didn't commit with the effect, and give the result."""
        effect = done.effect
        if effect is None:
            raise RuntimeError("the engine ended without an effect")
        if not done.told:
            for event in _events(effect):
                await self.emit(event)
        return done.written or _written(effect)


class SqliteCalendar(NativeCalendar, facets=["invitations", "reminders"]):
    """A calendar in one SQLite file, which also holds the store: an effect and its record commit together.

    Args:
        path: The file, made if it isn't there; it has one calendar then.
    """

    def __init__(self, path: str | Path) -> None:
        super().__init__(SqliteStorage(path))
        self.commits_with_store = str(path) != ":memory:"
        self.file = Path(path).resolve()
        self.title = f"SQLite · {Path(path).name}"
        self.instance = f"sqlite:{Path(path).name}"


class FolderCalendar(NativeCalendar, facets=["reminders"]):
    """A folder with a folder for each calendar and an `.ics` file for each event.

    Args:
        root: The folder, made if it isn't there; it has one calendar then.
    """

    def __init__(self, root: str | Path) -> None:
        super().__init__(FolderStorage(root, self._me))
        self.title = f"folder · {Path(root).name}"
        self.instance = f"folder:{Path(root).name}"


class _Answering(NativeCalendar, partial=True):
    """Answers the owner's invitations."""

    async def rsvp(
        self, event: EventRef, participation: Answer, notify: Notify, **options: Unpack[AnswerOptions]
    ) -> Written:
        assert self._me is not None
        _check_notify({"notify": notify}, told=True)
        done = _Done()
        await self._engine.answer(
            event,
            self._me,
            participation,
            scope=options.get("scope"),
            occurrence=options.get("occurrence"),
            revision=options.get("revision"),
            also=done.commit,
        )
        return await self._finish(done)


class OwnedSqliteCalendar(_Answering, SqliteCalendar, facets=["invitations", "reminders", "rsvp"]):
    """A calendar in one SQLite file whose owner is known, so that invitations can be answered.

    Args:
        path: As `SqliteCalendar`.
        me: The owner's mail address, by which participants name them.

    Raises:
        ConfigError: `me` is no address.
    """

    def __init__(self, path: str | Path, me: str) -> None:
        self._me = read_address(me)
        super().__init__(path)


class OwnedFolderCalendar(_Answering, FolderCalendar, facets=["invitations", "reminders", "rsvp"]):
    """A folder of calendars whose owner is known: who takes part is in the files, as ATTENDEE and ORGANIZER.

    It tells nobody by itself. A program that brings the folder to a CalDAV server may: that server tells the organizer
    of an answer; those who were invited here are marked as not to be told (`SCHEDULE-AGENT=NONE`).

    Args:
        root: As `FolderCalendar`.
        me: The owner's mail address, by which attendees name them; the organizer of what is made with participants.

    Raises:
        ConfigError: `me` is no address.
    """

    def __init__(self, root: str | Path, me: str) -> None:
        self._me = read_address(me)
        super().__init__(root)


class _Done:
    """What the engine did, noted inside its transaction, with the call's record where the store is in the same file."""

    def __init__(self, *, deleting: bool = False) -> None:
        self._call = current_call()
        self._deleting = deleting
        self.effect: Effect | None = None
        self.written: Written | None = None
        self.told = False

    def commit(self, connection: Any, effect: Effect) -> None:
        self.effect = effect
        if isinstance(connection, sqlite3.Connection) and self._call.commit is not None:
            if not self._deleting:
                self.written = _written(effect)
            result = self.written or Deleted(scope=cast("Any", effect.scope))
            self._call.commit_in(connection, result, _events(effect))
            self.told = True


def _note(problems: Sequence[Problem]) -> None:
    current_call().notes.extend(listed(problems))


def _written(effect: Effect) -> Written:
    return Written(event=EventRef(effect.event), revision=effect.revision, scope=cast("Any", effect.scope))


def _events(effect: Effect) -> Sequence[Event]:
    return [
        Calendar.EventChanged(
            event=EventRef(effect.event),
            calendar=CalendarRef(effect.calendar),
            change=cast("Any", effect.kind),
            revision=effect.revision,
        )
    ]


def _wire(part: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    return cast("dict[str, Any]", _PARTS[part].input.write(dict(arguments)))


def _invites(event: Mapping[str, Any]) -> bool:
    """Whether somebody takes part in an event, or in one of its changed occurrences."""
    patches = cast("Mapping[str, Mapping[str, Any] | None]", event.get("recurrenceOverrides") or {})
    return any((each or {}).get("participants") for each in (event, *patches.values()))


def _check_notify(given: Mapping[str, Any], *, told: bool) -> None:
    """Refuse an act that could tell others without a word about it, and one that we can't obey (FR-05)."""
    notify = given.get("notify")
    if notify is None and told:
        raise InvalidArgument(
            "notify is missing: this event has participants", hint='say notify: "none" or "all"; there is no default'
        )
    if notify == "all":
        raise Unsupported(
            "this calendar can't send mail, so nobody can be notified",
            details={"lost": ["notify"]},
            hint='use notify: "none" and tell them yourself',
        )
