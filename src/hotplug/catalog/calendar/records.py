"""An event as a value, how its wire fields make it, how changes are applied to it, and how it is given back.

A field left out of a change stays; what is to go is named in `clear`. The zone, the length and the exceptions of an
event stay with it when only its start is changed. Source: RFC 8984 for names and values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Final, cast
from zoneinfo import ZoneInfo

from hotplug.catalog.calendar.alerts import read_alerts
from hotplug.catalog.calendar.recurrence import Occurrence, Override, Series
from hotplug.catalog.calendar.rules import (
    Rule,
    moved_rules,
    occurrence_id,
    read_occurrence_id,
    read_rule,
    wall_clock,
)
from hotplug.catalog.calendar.times import FLOATING, AllDay, Instant, When, Zoned, read_date_time, read_when
from hotplug.catalog.calendar.zones import format_local, format_utc, format_zoned, place, read_zone
from hotplug.errors import InvalidArgument

__all__ = [
    "CLEARABLE",
    "FIELDS",
    "PLAIN",
    "EventRecord",
    "apply_changes",
    "changed_time",
    "new_record",
    "occurrence_to_wire",
    "override_from_wire",
    "override_to_wire",
    "to_wire",
    "with_time",
]

_TIME: Final = frozenset({"start", "end", "duration", "timeZone", "showWithoutTime"})
PLAIN: Final[Mapping[str, str]] = {
    "title": "title",
    "description": "description",
    "location": "location",
    "status": "status",
    "freeBusyStatus": "free_busy_status",
    "participants": "participants",
    "alerts": "alerts",
}
"""The fields whose value is taken as it stands, and the attribute of each."""

_CHOICES: Final[Mapping[str, tuple[str, ...]]] = {
    "status": ("confirmed", "tentative", "cancelled"),
    "freeBusyStatus": ("free", "busy"),
}
_SERIES: Final = frozenset({"recurrenceRules", "recurrenceOverrides"})

FIELDS: Final = frozenset({"calendar", *_TIME, *PLAIN, *_SERIES})
"""The wire names that a caller can set."""

CLEARABLE: Final = FIELDS - {"calendar", "title", "start", "end", "duration"}
"""Those that an event can be without."""


@dataclass(frozen=True, slots=True)
class EventRecord:
    """An event, or a series of them, as a store keeps it."""

    uid: str
    calendar: str
    title: str
    when: When
    description: str | None = None
    location: str | None = None
    status: str | None = None
    free_busy_status: str | None = None
    rules: tuple[Rule, ...] = ()
    overrides: Mapping[datetime, Override] = field(default_factory=dict[datetime, Override])
    participants: Sequence[Mapping[str, Any]] | Mapping[str, Any] | None = None
    organizer: str | None = None
    """The address of who invites them, where the store tells."""
    alerts: Mapping[str, Any] | None = None
    revision: str | None = None
    created: datetime | None = None
    updated: datetime | None = None
    unknown: tuple[str, ...] = ()
    """Wire names of what its store can't tell of it."""

    @property
    def series(self) -> Series:
        """When it happens."""
        return Series(self.when, self.rules, self.overrides)

    @property
    def recurring(self) -> bool:
        """Whether it is a series, also one whose rules its store can't tell."""
        return bool(self.rules or self.overrides) or "recurrenceRules" in self.unknown


def new_record(uid: str, fields: Mapping[str, Any], now: datetime) -> EventRecord:
    """The event that the fields of a create say.

    Raises:
        InvalidArgument: One is missing, unknown, or has a value that isn't one.
        Unsupported: A rule of a kind that isn't offered.
    """
    _check_names(fields, ())
    for name in ("calendar", "title", "start"):
        if fields.get(name) is None:
            raise InvalidArgument(f"{name} is missing")
    when = read_when(
        fields["start"],
        fields.get("end"),
        fields.get("duration"),
        fields.get("timeZone"),
        fields.get("showWithoutTime"),
    )
    moment = now.astimezone(UTC).replace(microsecond=0)
    record = EventRecord(uid, fields["calendar"], "", when, created=moment, updated=moment)
    record = replace(record, **_plain({name: value for name, value in fields.items() if value is not None}))
    rules = fields.get("recurrenceRules") or ()
    if rules:
        _check_series_start(fields["start"], when)
    overrides: Mapping[str, Any] = fields.get("recurrenceOverrides") or {}
    record = replace(
        record,
        rules=tuple(read_rule(rule, when) for rule in rules),
        overrides=_read_overrides(overrides, when),
    )
    record.series.check()
    return _tidy(record)


def _tidy(record: EventRecord) -> EventRecord:
    """Without exceptions that say what is so anyway: iCalendar, which has whole events for them, couldn't tell."""
    if not record.overrides:
        return record
    series = record.series
    overrides = {
        at: Override(
            override.excluded,
            None if override.when == series.at(at) else override.when,
            {name: value for name, value in override.fields.items() if value != getattr(record, PLAIN[name])},
        )
        for at, override in record.overrides.items()
    }
    given = series.given_among(at for at, override in overrides.items() if override == Override())
    return replace(record, overrides={at: each for at, each in overrides.items() if at not in given})


def _check_series_start(start: str, when: When) -> None:
    if isinstance(when, Instant) and read_date_time(start, "start")[1]:
        raise InvalidArgument(
            f"a series that starts at {start!r} would recur on no zone's clock",
            hint="give timeZone to keep the wall time, or write the start in UTC (…Z) to recur in UTC",
        )


def _check_names(changes: Iterable[str], clear: Iterable[str]) -> None:
    names = set(changes)
    if unknown := sorted(names - FIELDS):
        raise InvalidArgument(f"an event has no {', '.join(map(repr, unknown))}", hint=f"it has {_listed(FIELDS)}")
    if fixed := sorted(set(clear) - CLEARABLE):
        raise InvalidArgument(
            f"{', '.join(map(repr, fixed))} can't be cleared", hint=f"what can be is {_listed(CLEARABLE)}"
        )
    if both := sorted(names & set(clear)):
        raise InvalidArgument(f"{', '.join(map(repr, both))} is both changed and cleared")


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes that values of plain fields set, by attribute; None for what is cleared."""
    out: dict[str, Any] = {}
    for name, value in values.items():
        if name in _CHOICES and value is not None and value not in _CHOICES[name]:
            raise InvalidArgument(f"{name} {value!r} is none", hint=f"use {' or '.join(_CHOICES[name])}")
        if name in PLAIN:
            _check_text(name, value)
            out[PLAIN[name]] = _read_plain(name, value)
    if values.get("calendar") is not None:
        out["calendar"] = values["calendar"]
    return out


def _read_plain(name: str, value: Any) -> Any:
    if value is None or name not in ("alerts", "participants"):
        return value
    # none of them is the same as no list
    return (read_alerts(value) if name == "alerts" else value) or None


def _check_text(name: str, value: Any) -> None:
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise InvalidArgument(f"{name} has half of a character at position {error.start}: not Unicode") from None
    elif isinstance(value, Mapping):
        for key, each in cast("Mapping[str, Any]", value).items():
            _check_text(name, key)
            _check_text(name, each)
    elif isinstance(value, list | tuple):
        for each in cast("list[Any]", value):
            _check_text(name, each)


def changed_time(when: When, changes: Mapping[str, Any]) -> When:
    """The time of an event after a change of some of start, end, duration, timeZone, showWithoutTime.

    What isn't named stays: the length when the start moves, the zone when a start or an end is given with an offset,
    the wall time when the zone changes. A `timeZone` of None makes a zoned time the instant that it is.

    Raises:
        InvalidArgument: The result is no time, or the change needs a start or a length that isn't given.
    """
    if not _TIME & set(changes):
        return when
    was_all_day = isinstance(when, AllDay)
    all_day = bool(changes["showWithoutTime"]) if "showWithoutTime" in changes else was_all_day
    length = changes.get("end") is not None or changes.get("duration") is not None
    if all_day != was_all_day and (changes.get("start") is None or not length):
        raise InvalidArgument(
            f"a change of showWithoutTime to {str(all_day).lower()} needs a start, and end or duration"
        )
    zone = changes["timeZone"] if "timeZone" in changes else None if all_day else when.wire().get("timeZone")
    start = changes.get("start")
    end, duration = changes.get("end"), changes.get("duration")
    if "timeZone" not in changes and isinstance(when, Zoned) and not all_day:
        start, end = (None if each is None else _on_the_wall(each, when.zone) for each in (start, end))
    if start is None:
        start = _start_in(when, zone)
    if end is None and duration is None:
        duration = str(when.duration)
    return read_when(start, end, duration, zone, all_day)


def _on_the_wall(text: str, zone: str) -> str:
    try:
        local, offset = read_date_time(text, "start")
    except InvalidArgument:
        return text  # read_when names the field
    if offset is None:
        return text
    place_ = ZoneInfo(zone)
    return format_zoned(place((local - offset).replace(tzinfo=UTC), place_), place_)


def _start_in(when: When, zone: str | None) -> str:
    """The start that stays when the zone becomes another: the wall time, or the instant where there is no other."""
    if isinstance(when, Zoned):
        if zone == when.zone:
            return str(when.wire()["start"])
        return format_utc(when.start) if zone is None else format_local(when.local)
    if isinstance(when, Instant) and zone is not None and zone != FLOATING:
        return _on_the_wall(format_utc(when.start), read_zone(zone).key)
    return str(when.wire()["start"])


def apply_changes(record: EventRecord, changes: Mapping[str, Any], clear: Iterable[str] = ()) -> EventRecord:
    """The event (all of a series) after a change; `start` is that of the event, of a series its first.

    `recurrenceOverrides` replaces all exceptions; otherwise they move along with the series. Revision and times of
    change are the store's to set.

    Raises:
        InvalidArgument: A value isn't one, or an exception would no longer belong to an occurrence.
        Unsupported: A rule of a kind that isn't offered.
    """
    changes = {name: value for name, value in changes.items() if value is not None}
    _check_names(changes, clear := tuple(clear))
    when = changed_time(record.when, {**changes, **{name: None for name in clear if name in _TIME}})
    return with_time(record, when, changes, clear)


def with_time(record: EventRecord, when: When, changes: Mapping[str, Any], clear: Iterable[str] = ()) -> EventRecord:
    """As `apply_changes`, the new time of the event given rather than read from the changes."""
    changes = {name: value for name, value in changes.items() if value is not None}
    clear = tuple(clear)
    _check_names(changes, clear)
    rules, overrides = record.rules, record.overrides
    if when != record.when:
        delta = wall_clock(when) - wall_clock(record.when)
        rules = moved_rules(rules, record.when, when)
        old, new = record.series, Series(when)
        overrides = {
            at + delta: _moved_along(override, old.at(at), new.at(at + delta)) for at, override in overrides.items()
        }
    if "recurrenceRules" in changes:
        if "start" in changes and changes["recurrenceRules"]:
            _check_series_start(changes["start"], when)
        rules = tuple(read_rule(rule, when) for rule in changes["recurrenceRules"])
    elif "recurrenceRules" in clear:
        rules = ()
    if "recurrenceOverrides" in changes:
        overrides = _read_overrides(changes["recurrenceOverrides"], when)
    elif "recurrenceOverrides" in clear:
        overrides = {}
    elif (rules, when) != (record.rules, record.when):
        overrides = _still_given(record, Series(when, rules, overrides))
    changed = replace(
        record, when=when, rules=rules, overrides=overrides, **_plain({**dict.fromkeys(clear), **changes})
    )
    if (rules, when) != (record.rules, record.when):
        known = {"timeZone"} if when != record.when else set[str]()
        known |= {"recurrenceRules"} & {*changes, *clear}
        changed = replace(changed, unknown=tuple(name for name in record.unknown if name not in known))
        changed.series.check()
    return _tidy(changed)


def _moved_along(override: Override, old: When, new: When) -> Override:
    """The exception of a series that is moved: one that has another length only moves with it, others stay in place."""
    own = override.when
    if own is None or type(own) is not type(old) or own != replace(old, **_length(own)):
        return override
    moved = new if isinstance(own, AllDay) is not isinstance(new, AllDay) else replace(new, **_length(own))
    return replace(override, when=None if moved == new else moved)


def _length(when: When) -> dict[str, Any]:
    return {"days": when.days} if isinstance(when, AllDay) else {"duration": when.duration}


def _still_given(record: EventRecord, series: Series) -> dict[datetime, Override]:
    """The exceptions of a series that has moved: those that exclude nothing any more go, others must not be lost."""
    delta = wall_clock(series.when) - wall_clock(record.when)
    given_before = record.series.given_among(record.overrides)
    given_now = series.given_among(series.overrides)
    kept: dict[datetime, Override] = {}
    for at, override in series.overrides.items():
        orphan = at - delta in given_before and at not in given_now
        if orphan and not override.excluded:
            name = occurrence_id(record.when, at - delta)
            raise InvalidArgument(
                f"the occurrence {name!r} was changed by itself, and the new rules don't give it",
                details={"occurrence": name},
                hint="give recurrenceOverrides too, or clear them",
            )
        if not orphan:
            kept[at] = override
    return kept


_OVERRIDABLE: Final = frozenset({*PLAIN, *_TIME})


def _read_overrides(wire: Mapping[str, Any], when: When) -> dict[datetime, Override]:
    overrides: dict[datetime, Override] = {}
    for name, patch in wire.items():
        at = read_occurrence_id(name, when, "recurrenceOverrides")
        if at in overrides:
            raise InvalidArgument(f"recurrenceOverrides names the occurrence {name!r} twice")
        overrides[at] = override_from_wire(cast("Mapping[str, Any]", patch or {}), Series(when).at(at))
    return overrides


def override_from_wire(patch: Mapping[str, Any], usual: When) -> Override:
    """Read a patch of one occurrence, whose time is `usual` if the patch doesn't change it.

    Raises:
        InvalidArgument: It changes what an occurrence can't have by itself, or has a value that isn't one.
    """
    if patch.get("excluded"):
        if len(patch) > 1:
            raise InvalidArgument("an occurrence that is excluded has nothing else to change")
        return Override(excluded=True)
    patch = {name: value for name, value in patch.items() if name != "excluded"}
    if wrong := sorted(set(patch) - _OVERRIDABLE):
        raise InvalidArgument(
            f"one occurrence can't have its own {', '.join(map(repr, wrong))}",
            hint=f"it can have {_listed(_OVERRIDABLE)}",
        )
    if "title" in patch and patch["title"] is None:
        raise InvalidArgument("'title' can't be cleared")
    when = changed_time(usual, patch)
    attributes = _plain({name: value for name, value in patch.items() if name in PLAIN})
    fields = {name: attributes[attribute] for name, attribute in PLAIN.items() if attribute in attributes}
    return Override(when=None if when == usual else when, fields=fields)


def override_to_wire(override: Override, usual: When) -> dict[str, Any]:
    """The patch of one occurrence; a None in it says that the occurrence is without the field."""
    if override.excluded:
        return {"excluded": True}
    out: dict[str, Any] = {}
    if override.when is not None:
        new, old = override.when.wire(), usual.wire()
        for name in ("start", "duration"):
            if new[name] != old[name]:
                out[name] = new[name]
        if new.get("timeZone") != old.get("timeZone"):
            if "timeZone" in new or "showWithoutTime" not in new:
                out["timeZone"] = new.get("timeZone")
            out["start"] = new["start"]
        if new.get("showWithoutTime") != old.get("showWithoutTime"):
            out |= {"showWithoutTime": "showWithoutTime" in new, "start": new["start"], "duration": new["duration"]}
    return {**out, **override.fields}


def to_wire(record: EventRecord) -> dict[str, Any]:
    """The event as the profile gives it; of a series, the first occurrence with its rules and exceptions."""
    out = _base(record)
    if record.rules:
        out["recurrenceRules"] = [rule.wire(record.when) for rule in record.rules]
    if record.overrides:
        series = record.series
        out["recurrenceOverrides"] = {
            occurrence_id(record.when, at): override_to_wire(override, series.at(at))
            for at, override in sorted(record.overrides.items())
        }
    return out


def _base(record: EventRecord) -> dict[str, Any]:
    out: dict[str, Any] = {"event": record.uid, "calendar": record.calendar}
    for name, attribute in PLAIN.items():
        value = getattr(record, attribute)
        if value is not None:
            out[name] = value
    out |= record.when.wire()
    out["recurring"] = record.recurring
    if record.revision is not None:
        out["revision"] = record.revision
    if record.unknown:
        out["unknown"] = list(record.unknown)
    return out


def occurrence_to_wire(record: EventRecord, occurrence: Occurrence) -> dict[str, Any]:
    """One occurrence of a series: as the event, with its own time and fields, and the name to edit it by."""
    out = _base(record)
    for name in _TIME | {"utcStart", "utcEnd"}:
        out.pop(name, None)
    out |= occurrence.when.wire()
    for name, value in (occurrence.override or Override()).fields.items():
        if value is None:
            out.pop(name, None)
        else:
            out[name] = value
    out["occurrence"] = occurrence_id(record.when, occurrence.id)
    return out
