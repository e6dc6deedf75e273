"""Changes and deletions of one occurrence of a series, of it and what follows, or of all.

What is outside the scope doesn't change: one occurrence gets an exception, and `following` ends the series before the
occurrence and starts another one there. Source: RFC 8984 section 4.3; the seed's words for the scopes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from hotplug.catalog.calendar import records
from hotplug.catalog.calendar.records import EventRecord, apply_changes, changed_time
from hotplug.catalog.calendar.recurrence import Occurrence, Override, Series
from hotplug.catalog.calendar.rules import occurrence_id, rules_after, rules_before, wall_clock
from hotplug.catalog.calendar.times import shift
from hotplug.errors import InvalidArgument, NotFound

__all__ = ["SCOPES", "change_all", "change_following", "change_one", "find", "remove_following", "remove_one"]

SCOPES: Final = ("this", "following", "all")
"""The scopes of an edit of a series."""

_OF_SERIES: Final = frozenset({"calendar", "recurrenceRules", "recurrenceOverrides"})
_TIME: Final = frozenset({"start", "end", "duration", "timeZone", "showWithoutTime"})


def find(record: EventRecord, at: datetime) -> Occurrence:
    """The occurrence of this name.

    Raises:
        NotFound: The series has none, or it was deleted (`details["deleted"]`).
    """
    occurrence = record.series.find(at)
    if occurrence is not None:
        return occurrence
    name = occurrence_id(record.when, at)
    override = record.overrides.get(at)
    if override is not None and override.excluded:
        raise NotFound(f"the occurrence {name!r} of this series was deleted", details={"deleted": True})
    raise NotFound(
        f"the series has no occurrence {name!r}",
        hint="an occurrence is named by the start that its series gives it: search shows it as occurrence",
    )


def change_one(record: EventRecord, at: datetime, changes: Mapping[str, Any], clear: Iterable[str] = ()) -> EventRecord:
    """The series with one occurrence changed.

    Raises:
        InvalidArgument: A change that one occurrence can't have, or a value that isn't one.
        NotFound: There is no such occurrence.
    """
    changes = {name: value for name, value in changes.items() if value is not None}
    clear = tuple(clear)
    if wrong := sorted((set(changes) | set(clear)) & _OF_SERIES):
        raise InvalidArgument(
            f"one occurrence can't have its own {', '.join(map(repr, wrong))}", hint="use the scope following or all"
        )
    # validates names and values, and the event as a whole if it were changed so
    occurrence = find(record, at)
    usual = record.series.at(at)
    single = replace(_single(record, occurrence), rules=(), overrides={})
    changed = apply_changes(single, changes, clear)
    fields: dict[str, Any] = {}
    for name, attribute in records.PLAIN.items():
        value = getattr(changed, attribute)
        if value != getattr(record, attribute):
            fields[name] = value
    override = Override(when=None if changed.when == usual else changed.when, fields=fields)
    overrides = dict(record.overrides)
    if override == Override() and record.series.given(at):
        overrides.pop(at, None)
    else:
        overrides[at] = override
    return replace(record, overrides=overrides)


def _single(record: EventRecord, occurrence: Occurrence) -> EventRecord:
    fields = (occurrence.override or Override()).fields
    attributes = {records.PLAIN[name]: value for name, value in fields.items()}
    return replace(record, when=occurrence.when, **attributes)


def change_all(
    record: EventRecord, at: datetime | None, changes: Mapping[str, Any], clear: Iterable[str] = ()
) -> EventRecord:
    """The whole series changed; a time in the changes is that of the occurrence `at`, or else of the first one.

    Raises:
        InvalidArgument: A value isn't one, or an exception would be lost.
        NotFound: There is no such occurrence.
    """
    if at is None or at == wall_clock(record.when):
        return apply_changes(record, changes, clear)
    find(record, at)
    times = {name: value for name, value in changes.items() if name in _TIME and value is not None}
    times |= {name: None for name in clear if name in _TIME}
    if not times:
        return apply_changes(record, changes, clear)
    moved = changed_time(record.series.at(at), times)
    first = shift(moved, wall_clock(record.when) - at)
    return records.with_time(record, first, changes, clear)


def change_following(
    record: EventRecord, at: datetime, changes: Mapping[str, Any], clear: Iterable[str], uid: str
) -> tuple[EventRecord | None, EventRecord]:
    """The series ended before the occurrence, and a new one (with `uid`) that starts with it, changed.

    If it is the first occurrence there is nothing to keep: None, and the series itself, changed.

    Raises:
        InvalidArgument: A value isn't one; the occurrence was added by itself and no rule goes on from it.
        NotFound: There is no such occurrence.
    """
    clear = tuple(clear)
    find(record, at)
    if at == wall_clock(record.when):
        return None, _reset(record, at, changes, clear)
    if not record.series.given(at):
        raise InvalidArgument(
            f"no rule gives the occurrence {occurrence_id(record.when, at)!r}: it was added by itself",
            hint="use the scope this, or an occurrence that the rules give",
        )
    tail = replace(
        record,
        uid=uid,
        when=record.series.at(at),
        rules=rules_after(record.rules, wall_clock(record.when), at),
        overrides={name: each for name, each in record.overrides.items() if name >= at},
        revision=None,
    )
    return _before(record, at), _reset(tail, at, changes, clear)


def _reset(record: EventRecord, at: datetime, changes: Mapping[str, Any], clear: tuple[str, ...]) -> EventRecord:
    """The change applied, also to what the occurrence that it was made on has of its own."""
    own = record.overrides.get(at)
    if own is not None and not own.excluded and "recurrenceOverrides" not in changes:
        names = {name for name, value in changes.items() if value is not None} | set(clear)
        fields = {name: value for name, value in own.fields.items() if name not in names}
        kept = Override(when=None if names & _TIME else own.when, fields=fields)
        overrides = {name: each for name, each in record.overrides.items() if name != at}
        record = replace(record, overrides=overrides if kept == Override() else {**overrides, at: kept})
    return apply_changes(record, changes, clear)


def _before(record: EventRecord, at: datetime) -> EventRecord:
    return replace(
        record,
        rules=rules_before(record.rules, wall_clock(record.when), at),
        overrides={name: each for name, each in record.overrides.items() if name < at},
    )


def remove_one(record: EventRecord, at: datetime) -> EventRecord | None:
    """The series without one occurrence; None if that was the last.

    Raises:
        NotFound: There is no such occurrence, or it was deleted before.
    """
    find(record, at)
    overrides = dict(record.overrides)
    if record.series.given(at):
        overrides[at] = Override(excluded=True)
    else:
        del overrides[at]
    return _unless_empty(replace(record, overrides=overrides))


def remove_following(record: EventRecord, at: datetime) -> EventRecord | None:
    """The series ended before the occurrence; None if nothing is left.

    Raises:
        NotFound: There is no such occurrence.
    """
    find(record, at)
    return None if at == wall_clock(record.when) else _unless_empty(_before(record, at))


def _unless_empty(record: EventRecord) -> EventRecord | None:
    held = next(Series(record.when, record.rules, record.overrides).occurrences(), None)
    return None if held is None else record
