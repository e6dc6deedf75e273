"""A calendar over a storage: search, get, create, update, delete, in the wire's words.

Everything about time, series, revisions, paging and refusals stands here, once for all storages. Methods take and give
wire values; blocking work runs in a worker thread and is not abandoned when the caller is cancelled. Reads of one event
or of the calendars run at once where the storage can: for SQLite they take a quarter of what the way to a thread does.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import heapq
import json
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from typing import Any, Final, TypeAlias, TypeVar, cast
from uuid import uuid4

import anyio.lowlevel
import anyio.to_thread

from hotplug.catalog.calendar.records import EventRecord, apply_changes, new_record, occurrence_to_wire, to_wire
from hotplug.catalog.calendar.recurrence import Occurrence, Override
from hotplug.catalog.calendar.rules import occurrence_id, read_occurrence_id, wall_clock
from hotplug.catalog.calendar.scopes import (
    SCOPES,
    change_all,
    change_following,
    change_one,
    find,
    remove_following,
    remove_one,
)
from hotplug.catalog.calendar.times import Range, overlaps, read_range, start_instant
from hotplug.errors import Conflict, InvalidArgument, NotFound, PermissionDenied, Unavailable, Unsupported
from hotplug.servers.calendar.answers import answered
from hotplug.servers.calendar.limits import check_size, check_texts
from hotplug.servers.calendar.storage import Problem, Storage, listed

__all__ = ["Also", "CalendarEngine", "Effect"]

_DEFAULT_LIMIT: Final = 100
_MOST: Final = 1000
_TIME: Final = frozenset({"start", "end", "duration", "timeZone", "showWithoutTime", "recurrenceRules"})

T = TypeVar("T")
_Found: TypeAlias = tuple[tuple[datetime, str, str], EventRecord, Occurrence]


@dataclass(frozen=True, slots=True)
class Effect:
    """What a call did: to which event, of a series in which scope, and the revision it has now (None: deleted)."""

    event: str
    calendar: str
    kind: str
    """`created`, `updated` or `deleted`."""

    scope: str | None = None
    revision: str | None = None
    ended: str | None = None
    """Of a change of `following`: the series that was ended, whose rest `event` is."""


Also: TypeAlias = Callable[[Any, Effect], None]
"""Called inside the transaction, before it commits, with the connection (None: the storage has none) and the effect."""


class CalendarEngine:
    """The calendar operations over one storage.

    Args:
        storage: Where the events are kept; closed by `close`.
        clock: The time of changes, in UTC.
        new_uid: Names new events.
    """

    def __init__(
        self,
        storage: Storage,
        *,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        new_uid: Callable[[], str] = lambda: str(uuid4()),
    ) -> None:
        self.storage = storage
        self._clock = clock
        self._new_uid = new_uid

    async def calendars(self) -> list[dict[str, Any]]:
        """All calendars: `{calendar, name, zone?, writable}`."""
        return [entry.wire() for entry in await self._soon(self.storage.calendars)]

    async def get(self, event: str, occurrence: str | None = None) -> dict[str, Any]:
        """One event (of a series, its first with rules and exceptions), or one occurrence of a series.

        Raises:
            NotFound: There is none, or it was deleted (`details["deleted"]`).
            Unavailable: It isn't found, and may be in what couldn't be read (`details["problems"]`).
        """
        return await self._soon(partial(self._get, event, occurrence))

    async def search(
        self,
        from_: str,
        to: str,
        time_zone: str | None = None,
        calendar: str | None = None,
        query: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        *,
        expand: bool = False,
        unread: Callable[[Sequence[Problem]], None] | None = None,
    ) -> tuple[list[dict[str, Any]], str | None]:
        """The events that overlap `[from_, to)`, by start and then uid, and the cursor to go on with if there are more.

        Args:
            from_: An instant, or with a zone a date or local time. So is `to`.
            to: The exclusive end.
            time_zone: For dates, and to place floating and all-day events; without one those count as inside if they
                are so anywhere.
            calendar: Only this one's.
            query: Only those whose title, description or location has it, whatever its case.
            limit: 1 to 1,000, by default 100.
            cursor: From the search before, with the same other arguments.
            expand: Give each occurrence of a series (with `occurrence`) rather than the series once.
            unread: Called, in the worker thread, with what couldn't be read in the searched calendars, if anything.

        Raises:
            InvalidArgument: A range, limit or cursor that is none.
            NotFound: There is no such calendar.
        """
        return await _in_thread(
            partial(self._search, from_, to, time_zone, calendar, query, limit, cursor, expand=expand, unread=unread)
        )

    async def create(
        self,
        fields: Mapping[str, Any],
        *,
        accept: Iterable[str] = (),
        uid: str | None = None,
        also: Also | None = None,
    ) -> Effect:
        """Make an event of wire fields.

        Raises:
            InvalidArgument: A field isn't one, or a value.
            NotFound: There is no such calendar.
            PermissionDenied: The calendar can't be written.
            Unsupported: Something would be lost that `accept` doesn't name.
            TooLarge: A text or the event is over a limit (`limits`).
            Conflict: The `uid` given is in use, or was deleted (`details["deleted"]`).
        """
        return await _in_thread(partial(self._create, fields, frozenset(accept), uid, also))

    async def update(
        self,
        event: str,
        changes: Mapping[str, Any],
        clear: Iterable[str] = (),
        *,
        scope: str | None = None,
        occurrence: str | None = None,
        revision: str | None = None,
        accept: Iterable[str] = (),
        also: Also | None = None,
    ) -> Effect:
        """Change an event; of a series, what `scope` says, and the effect names the event that has the change.

        Raises:
            InvalidArgument: A series and no scope; no occurrence; a value that isn't one.
            NotFound: No such event or occurrence, or it was deleted (`details["deleted"]`).
            Conflict: The revision has moved (`details["current"]`).
            PermissionDenied: The calendar can't be written.
            Unsupported: Something would be lost that `accept` doesn't name.
            TooLarge: A text or the event is over a limit (`limits`).
        """
        return await _in_thread(
            partial(self._update, event, changes, tuple(clear), scope, occurrence, revision, frozenset(accept), also)
        )

    async def answer(
        self,
        event: str,
        address: str,
        participation: str,
        *,
        scope: str | None = None,
        occurrence: str | None = None,
        revision: str | None = None,
        also: Also | None = None,
    ) -> Effect:
        """Answer an invitation for one of the participants; of a series, what `scope` says, as `update` does it.

        Raises:
            InvalidArgument: It is no answer; nobody or somebody else is invited; a series and no scope.
            Unsupported: `following` in a series that somebody else organizes: it would be split.
            NotFound, Conflict, PermissionDenied: As `update`.
        """
        return await _in_thread(partial(self._answer, event, address, participation, scope, occurrence, revision, also))

    async def delete(
        self,
        event: str,
        *,
        scope: str | None = None,
        occurrence: str | None = None,
        revision: str | None = None,
        also: Also | None = None,
    ) -> Effect:
        """Delete an event; of a series, what `scope` says. A second time is `NotFound`.

        Raises:
            As `update`.
        """
        return await _in_thread(partial(self._delete, event, scope, occurrence, revision, also))

    async def deleted_since(
        self, cursor: str | None = None, limit: int | None = None
    ) -> tuple[list[dict[str, Any]], str]:
        """What was deleted after the cursor (`{event, calendar, deleted}`, oldest first) and the next cursor."""
        found, following = await _in_thread(partial(self.storage.deleted_since, cursor, _limit(limit)))
        return [
            {"event": each.uid, "calendar": each.calendar, "deleted": _stamp(each.deleted)} for each in found
        ], following

    async def problems(self) -> list[Problem]:
        """What the storage holds that couldn't be read."""
        return await _in_thread(self.storage.problems)

    async def close(self) -> None:
        """Let go of files and connections."""
        await _in_thread(self.storage.close)

    async def _soon(self, short: Callable[[], T]) -> T:
        await anyio.lowlevel.checkpoint()
        found = self.storage.at_once(short)
        return await _in_thread(short) if found is None else found[0]

    # the blocking halves

    def _get(self, event: str, occurrence: str | None) -> dict[str, Any]:
        record = self._read(event)
        if occurrence is None:
            return to_wire(record)
        return occurrence_to_wire(record, find(record, read_occurrence_id(occurrence, record.when)))

    def _search(
        self,
        from_: str,
        to: str,
        time_zone: str | None,
        calendar: str | None,
        query: str | None,
        limit: int | None,
        cursor: str | None,
        *,
        expand: bool,
        unread: Callable[[Sequence[Problem]], None] | None,
    ) -> tuple[list[dict[str, Any]], str | None]:
        most = _limit(limit)
        within = read_range(from_, to, time_zone)
        mark = hashlib.sha256(json.dumps([from_, to, time_zone, calendar, query, expand]).encode()).hexdigest()[:12]
        after = None if cursor is None else _read_cursor(cursor, mark)
        if calendar is not None:
            self._calendar(calendar)
        wanted = None if query is None else _folded(query)
        records, problems = self.storage.select(within.start, within.end, calendar)
        found: list[Iterator[_Found]] = [
            islice(_matches(record, within, wanted, after, expand=expand), most + 1) for record in records
        ]
        page = list(islice(heapq.merge(*found, key=lambda each: each[0]), most + 1))
        events = [
            occurrence_to_wire(record, occurrence) if _expands(record, expand) else to_wire(record)
            for _, record, occurrence in page[:most]
        ]
        if problems and unread is not None:
            unread(problems)
        return events, _cursor(page[most - 1][0], mark) if len(page) > most else None

    def _create(self, fields: Mapping[str, Any], accept: frozenset[str], uid: str | None, also: Also | None) -> Effect:
        check_texts(fields if uid is None else {"uid": uid, **fields})
        record = new_record(uid or self._new_uid(), fields, self._clock())
        record = self.storage.fit(record, accept)
        with self.storage.transaction() as connection:
            self._check_writable(record.calendar)
            if uid is not None:
                self._check_free(uid)
            kept = self.storage.insert(record)
            effect = Effect(kept.uid, kept.calendar, "created", revision=kept.revision)
            if also is not None:
                also(connection, effect)
        return effect

    def _check_free(self, uid: str) -> None:
        if self.storage.read(uid) is not None:
            raise Conflict(f"an event {uid!r} exists already", hint="leave the id out to make another event")
        if self.storage.was_deleted(uid):
            raise Conflict(
                f"the event {uid!r} was deleted, and its id is not used again",
                details={"deleted": True},
                hint="leave the id out to make another event",
            )
        self._check_absent(uid)

    def _update(
        self,
        event: str,
        changes: Mapping[str, Any],
        clear: tuple[str, ...],
        scope: str | None,
        occurrence: str | None,
        revision: str | None,
        accept: frozenset[str],
        also: Also | None,
    ) -> Effect:
        check_texts(changes)
        with self.storage.transaction() as connection:
            record = self._read_for_change(event, revision)
            at = _occurrence(record, scope, occurrence)
            if "recurrenceRules" in record.unknown and (set(changes) | set(clear)) & _TIME:
                raise _untold(record)
            target = changes.get("calendar")
            if target is not None:
                self._check_writable(target)
            ended: EventRecord | None = None
            if not record.recurring:
                after, scope = apply_changes(record, changes, clear), None
            elif scope == "this":
                assert at is not None
                after = change_one(record, at, changes, clear)
            elif scope == "following":
                assert at is not None
                ended, after = change_following(record, at, changes, clear, self._new_uid())
            else:
                after = change_all(record, at, changes, clear)
            effect = self._keep(record, ended, after, scope, accept)
            if also is not None:
                also(connection, effect)
        return effect

    def _answer(
        self,
        event: str,
        address: str,
        participation: str,
        scope: str | None,
        occurrence: str | None,
        revision: str | None,
        also: Also | None,
    ) -> Effect:
        with self.storage.transaction() as connection:
            record = self._read_for_change(event, revision)
            at = _occurrence(record, scope, occurrence)
            ended, after = answered(record, address, participation, scope, at, self._new_uid())
            effect = self._keep(record, ended, after, scope if record.recurring else None, frozenset())
            if also is not None:
                also(connection, effect)
        return effect

    def _keep(
        self,
        record: EventRecord,
        ended: EventRecord | None,
        after: EventRecord,
        scope: str | None,
        accept: frozenset[str],
    ) -> Effect:
        """Write an event after a change; `ended` is what is left of a series whose rest `after` is."""
        check_size(after, record)
        moment = self._moment()
        after = self.storage.fit(replace(after, updated=moment), accept)
        if ended is None:
            kept = self.storage.replace(record, after)
        else:
            # the new one first: what fails in between leaves a double rather than a hole
            kept = self.storage.insert(replace(after, created=moment), like=record)
            self.storage.replace(record, replace(ended, updated=moment))
        return Effect(kept.uid, kept.calendar, "updated", scope, kept.revision, None if ended is None else record.uid)

    def _delete(
        self, event: str, scope: str | None, occurrence: str | None, revision: str | None, also: Also | None
    ) -> Effect:
        with self.storage.transaction() as connection:
            record = self._read_for_change(event, revision)
            at = _occurrence(record, scope, occurrence)
            left: EventRecord | None = None
            if not record.recurring:
                scope = None
            elif scope == "this":
                assert at is not None
                left = remove_one(record, at)
            elif scope == "following":
                assert at is not None
                left = remove_following(record, at)
            elif at is not None:
                find(record, at)
            moment = self._moment()
            kept = None
            if left is None:
                self.storage.remove(record, moment)
            else:
                kept = self.storage.replace(record, replace(left, updated=moment))
            effect = Effect(
                record.uid,
                record.calendar,
                "deleted" if kept is None else "updated",
                scope,
                None if kept is None else kept.revision,
            )
            if also is not None:
                also(connection, effect)
        return effect

    def _read(self, event: str) -> EventRecord:
        record = self.storage.read(event)
        if record is not None:
            return record
        if self.storage.was_deleted(event):
            raise NotFound(f"the event {event!r} was deleted", details={"deleted": True})
        self._check_absent(event)
        raise NotFound(f"there is no event {event!r}")

    def _check_absent(self, event: str) -> None:
        """Refuse to say that an event isn't there where something couldn't be read (FR-42)."""
        problems = self.storage.unread(event)
        if problems:
            number = "1 place" if len(problems) == 1 else f"{len(problems)} places"
            raise Unavailable(
                f"the event {event!r} isn't found, and may be in what can't be read here ({number})",
                details={"problems": listed(problems)},
                hint="repair or remove what can't be read, and ask again",
            )

    def _read_for_change(self, event: str, revision: str | None) -> EventRecord:
        record = self._read(event)
        if revision is not None and revision != record.revision:
            raise Conflict(
                f"the event was changed: it is at revision {record.revision!r}, not {revision!r}",
                details={"current": record.revision},
                hint="read it again and decide anew",
            )
        self._check_writable(record.calendar)
        return record

    def _calendar(self, calendar: str) -> bool:
        for entry in self.storage.calendars():
            if entry.id == calendar:
                return entry.writable
        raise NotFound(f"there is no calendar {calendar!r}")

    def _check_writable(self, calendar: str) -> None:
        if not self._calendar(calendar):
            raise PermissionDenied(f"the calendar {calendar!r} can only be read")

    def _moment(self) -> datetime:
        return self._clock().astimezone(UTC).replace(microsecond=0)


async def _in_thread(work: Callable[[], T]) -> T:
    return await anyio.to_thread.run_sync(work)


def _stamp(moment: datetime) -> str:
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="seconds") + "Z"


def _limit(limit: int | None) -> int:
    if limit is None:
        return _DEFAULT_LIMIT
    if not 1 <= limit <= _MOST:
        raise InvalidArgument(f"limit {limit} is not a number from 1 to {_MOST}")
    return limit


def _occurrence(record: EventRecord, scope: str | None, occurrence: str | None) -> datetime | None:
    """The name of the occurrence that an edit means, once scope and occurrence go together."""
    if scope is not None and scope not in SCOPES:
        raise InvalidArgument(f"scope {scope!r} is none", hint=f"use {', '.join(SCOPES)}")
    at = None if occurrence is None else read_occurrence_id(occurrence, record.when)
    if not record.recurring:
        if at is not None and at != wall_clock(record.when):
            raise NotFound(f"the event {record.uid!r} is no series and has no occurrence {occurrence!r}")
        return None
    if scope is None:
        raise InvalidArgument(
            f"the event {record.uid!r} is a series, and no scope says how much of it is meant",
            details={"scope": list(SCOPES)},
            hint="give scope: this or following, with occurrence, or all",
        )
    if scope != "all":
        if at is None:
            raise InvalidArgument(f"scope {scope!r} needs the occurrence that it starts from")
        if "recurrenceRules" in record.unknown:
            raise _untold(record)
    return at


def _untold(record: EventRecord) -> Unsupported:
    return Unsupported(
        f"the rules of the series {record.uid!r} are of a kind that isn't offered here, so its times can't be changed",
        details={"lost": ["recurrenceRules"]},
    )


def _expands(record: EventRecord, expand: bool) -> bool:
    return expand and record.recurring and "recurrenceRules" not in record.unknown


def _matches(
    record: EventRecord, within: Range, wanted: str | None, after: tuple[datetime, str, str] | None, *, expand: bool
) -> Iterator[_Found]:
    if not _expands(record, expand):
        key = (start_instant(record.when, within.zone), record.uid, "")
        if (after is None or key > after) and _happens(record, within) and _any_says(record, wanted):
            yield key, record, Occurrence(wall_clock(record.when), record.when)
        return
    for occurrence in record.series.occurrences(within):
        name = occurrence_id(record.when, occurrence.id)
        key = (start_instant(occurrence.when, within.zone), record.uid, name)
        if (after is None or key > after) and _says(record, occurrence, wanted):
            yield key, record, occurrence


def _happens(record: EventRecord, within: Range) -> bool:
    if "recurrenceRules" in record.unknown:
        # nobody here knows when it recurs: shown rather than missed
        return start_instant(record.when, within.zone) < within.end
    if not record.recurring:
        return overlaps(record.when, within)
    return next(record.series.occurrences(within), None) is not None


def _any_says(record: EventRecord, wanted: str | None) -> bool:
    usual = Occurrence(wall_clock(record.when), record.when)
    return _says(record, usual, wanted) or any(
        _says(record, Occurrence(at, record.when, override), wanted) for at, override in record.overrides.items()
    )


def _says(record: EventRecord, occurrence: Occurrence, wanted: str | None) -> bool:
    if wanted is None:
        return True
    own = (occurrence.override or Override()).fields
    texts = {"title": record.title, "description": record.description, "location": record.location, **own}
    return any(
        isinstance(texts[name], str) and wanted in _folded(cast("str", texts[name]))
        for name in ("title", "description", "location")
    )


def _folded(text: str) -> str:
    return unicodedata.normalize("NFC", text).casefold()


def _cursor(key: tuple[datetime, str, str], mark: str) -> str:
    body = json.dumps([mark, key[0].isoformat(), key[1], key[2]])
    return base64.urlsafe_b64encode(body.encode()).decode()


def _read_cursor(cursor: str, mark: str) -> tuple[datetime, str, str]:
    try:
        body: Any = json.loads(base64.urlsafe_b64decode(cursor.encode()))
        marked, moment, uid, name = cast("Sequence[str]", body)
        key = datetime.fromisoformat(moment), uid, name
    except (binascii.Error, ValueError, TypeError):
        raise InvalidArgument("the cursor is none that a search gave") from None
    if marked != mark:
        raise InvalidArgument("the cursor is of another search", hint="repeat the other arguments as they were")
    return key
