"""Events as iCalendar: a file read as an `EventRecord`, and a record written into a file that may hold more.

An edit touches the properties whose value it changes and no other line. A zone goes with its VTIMEZONE. What iCalendar
can't say is refused by `check`. Sources: RFC 5545, RFC 8984 for what the fields mean.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, Final, cast

from hotplug.catalog.calendar.records import EventRecord
from hotplug.catalog.calendar.recurrence import Override
from hotplug.catalog.calendar.rules import Rule, first_given, rule_from_text, rule_text, wall_clock
from hotplug.catalog.calendar.times import Instant, Zoned, bounded
from hotplug.catalog.calendar.zones import is_zone
from hotplug.errors import HotplugError, InvalidArgument, Unsupported
from hotplug.servers.calendar.alarms import edit_alarms, fits_alarm, read_alarms
from hotplug.servers.calendar.attendees import (
    add_organizer,
    edit_attendees,
    fits_attendees,
    read_attendees,
    read_organizer,
)
from hotplug.servers.calendar.icaltimes import (
    Zones,
    read_recurrence_ids,
    read_recurring_time,
    read_stamp,
    read_when_of,
    recurrence_line,
    time_lines,
    utc_line,
    zone_component,
)
from hotplug.servers.calendar.lines import Component, FileError, Line, escape, line, parse, unescape

__all__ = ["check", "edit", "new_file", "read_file"]

_PRODUCT: Final = "-//Hotplug//Calendar//EN"

_TEXTS: Final[Mapping[str, tuple[str, str]]] = {
    "title": ("SUMMARY", "title"),
    "description": ("DESCRIPTION", "description"),
    "location": ("LOCATION", "location"),
}
"""Attributes that are text: the property of each, and its wire name."""

_WORDS: Final[Mapping[str, tuple[str, str, Mapping[str, str]]]] = {
    "status": (
        "STATUS",
        "status",
        {"confirmed": "CONFIRMED", "tentative": "TENTATIVE", "cancelled": "CANCELLED"},
    ),
    "free_busy_status": ("TRANSP", "freeBusyStatus", {"free": "TRANSPARENT", "busy": "OPAQUE"}),
}
_TIME_LINES: Final = ("DTSTART", "DTEND", "DURATION")


def check(record: EventRecord, accept: frozenset[str], owner: str | None = None) -> EventRecord:
    """The event as iCalendar can hold it.

    Args:
        record: The event; its texts are checked already.
        accept: The losses that are accepted.
        owner: The address of the calendar's owner; without one there is no organizer, and nobody can be invited.

    Raises:
        Unsupported: It would lose something that `accept` doesn't name: participants, alerts that send mail, or the
            second of two equal wall times (`timeZone`: accepted, it is kept as an instant).
    """
    invited = _told(record, "participants")
    lost = ["participants"] if invited and (owner is None or not all(map(fits_attendees, invited))) else []
    if not all(fits_alarm(alert) for alerts in _told(record, "alerts") for alert in alerts.values()):
        lost.append("alerts")
    whens = [record.when, *(override.when for override in record.overrides.values() if override.when)]
    second = any(isinstance(when, Zoned) and _is_second(when) for when in whens)
    if second and (record.rules or record.overrides or "timeZone" not in accept):
        lost.append("timeZone")
    if missing := [name for name in lost if name not in accept or name == "timeZone"]:
        raise Unsupported(
            f"an .ics file here can't keep {', '.join(missing)} as it is given",
            details={"lost": missing},
            hint="of a wall time that comes twice it can name the first only" if "timeZone" in missing else None,
        )
    if second:
        assert isinstance(record.when, Zoned)
        record = replace(record, when=Instant(record.when.start, record.when.duration))
    for name in lost:
        if name != "timeZone":
            record = _without(record, name)
    return record


def _told(record: EventRecord, name: str) -> list[Mapping[str, Any]]:
    """What the event and its changed occurrences say of participants or alerts."""
    told = [getattr(record, name), *(override.fields.get(name) for override in record.overrides.values())]
    return [each for each in told if each]


def _without(record: EventRecord, name: str) -> EventRecord:
    """The event without participants, or without the alerts that no VALARM can say."""

    def left(value: Any) -> Any:
        if name != "alerts" or not value:
            return None
        return {key: alert for key, alert in value.items() if fits_alarm(alert)} or None

    overrides = {
        at: replace(each, fields={key: left(value) if key == name else value for key, value in each.fields.items()})
        for at, each in record.overrides.items()
    }
    return replace(record, overrides=overrides, **{name: left(getattr(record, name))})


def _is_second(when: Zoned) -> bool:
    return when.local.fold == 1 and when != replace(when, local=when.local.replace(fold=0))


def read_file(
    source: bytes, calendar: str, revision: str | None = None, *, people: bool = False
) -> tuple[EventRecord, Component]:
    """The event of a file, and the file as its lines; who takes part only with `people`.

    Raises:
        FileError: It holds no event, several, or one that can't be read.
    """
    root = parse(source)
    try:
        return _read_events(root, calendar, revision, people=people), root
    except HotplugError as error:
        raise FileError(str(error)) from error


def _read_events(root: Component, calendar: str, revision: str | None, *, people: bool) -> EventRecord:
    events = list(root.components("VEVENT"))
    uids = {_text(event, "UID") for event in events}
    if not events:
        raise FileError("it holds no VEVENT")
    if len(uids) > 1 or None in uids:
        raise FileError("its events have no UID" if uids == {None} else "it holds events of more than one UID")
    masters = [event for event in events if event.first("RECURRENCE-ID") is None]
    if len(masters) != 1:
        raise FileError("it holds only changed occurrences" if not masters else "it holds an event twice")
    zones = Zones(root)
    master = masters[0]
    record = replace(_read_event(master, calendar, zones, people=people), revision=revision)
    when, unknown = record.when, set(record.unknown)
    rules: tuple[Rule, ...] = ()
    try:
        rules = tuple(rule_from_text(each.value, when) for each in master.lines("RRULE"))
    except (InvalidArgument, Unsupported):
        unknown.add("recurrenceRules")
    if any(first_given(rule, wall_clock(when)) is None for rule in rules):
        # looking for what a rule never gives takes until the year 9999
        unknown.add("recurrenceRules")
        rules = ()
    if master.first("EXRULE"):
        unknown.add("recurrenceRules")
    record = replace(record, rules=rules)
    overrides: dict[datetime, Override] = {}
    given = record.series.given_among
    for each in master.lines("RDATE"):
        for at, own in read_recurring_time(each, when, zones):
            overrides[at] = Override(when=own)
    for event in events:
        name = event.first("RECURRENCE-ID")
        if name is None:
            continue
        if name.param("RANGE"):
            unknown.add("recurrenceRules")
        (at,) = read_recurrence_ids(name, when, zones)
        overrides[at] = _read_override(record, at, _read_event(event, calendar, zones, people=people))
    for each in master.lines("EXDATE"):
        for at in read_recurrence_ids(each, when, zones):
            overrides[at] = Override(excluded=True)
    plain = given(at for at, override in overrides.items() if override == Override())
    return replace(
        record,
        overrides={at: override for at, override in overrides.items() if at not in plain},
        unknown=tuple(sorted(unknown)),
    )


def _read_override(record: EventRecord, at: datetime, own: EventRecord) -> Override:
    usual = record.series.at(at)
    fields = {
        name: getattr(own, attribute)
        for attribute, name in _plain_names()
        if getattr(own, attribute) != getattr(record, attribute)
    }
    return Override(when=None if own.when == usual else own.when, fields=fields)


def _plain_names() -> Iterator[tuple[str, str]]:
    yield from ((attribute, name) for attribute, (_, name) in _TEXTS.items())
    yield from ((attribute, name) for attribute, (_, name, _) in _WORDS.items())
    yield "alerts", "alerts"
    yield "participants", "participants"


def _read_event(event: Component, calendar: str, zones: Zones, *, people: bool) -> EventRecord:
    when, unknown = read_when_of(event, zones)
    bounded(when, "then")
    status, free_busy_status = (_word(event, attribute, unknown) for attribute in _WORDS)
    alerts, exact = read_alarms(event)
    if not exact:
        unknown.add("alerts")
    participants, exact = read_attendees(event) if people else (None, True)
    if not exact:
        unknown.add("participants")
    return EventRecord(
        uid=_text(event, "UID") or "",
        calendar=calendar,
        title=_text(event, "SUMMARY") or "",
        when=when,
        description=_text(event, "DESCRIPTION"),
        location=_text(event, "LOCATION"),
        created=read_stamp(event.first("CREATED")),
        updated=read_stamp(event.first("LAST-MODIFIED")),
        status=status,
        free_busy_status=free_busy_status,
        alerts=alerts,
        participants=participants,
        organizer=read_organizer(event) if people else None,
        unknown=tuple(sorted(unknown)),
    )


def _word(event: Component, attribute: str, unknown: set[str]) -> str | None:
    name, wire_name, values = _WORDS[attribute]
    shown = (_text(event, name) or "").strip().upper()
    value = next((value for value, word in values.items() if word == shown), None)
    if shown and value is None:
        unknown.add(wire_name)
    return value


def _text(event: Component, name: str) -> str | None:
    found = event.first(name)
    return None if found is None else unescape(found.value)


def new_file(record: EventRecord, now: datetime, owner: str | None = None) -> Component:
    """A file that holds the event, `owner` its organizer if it has participants."""
    root = Component("VCALENDAR", b"BEGIN:VCALENDAR\r\n", end=b"END:VCALENDAR\r\n")
    root.items += [line("VERSION", "2.0"), line("PRODID", _PRODUCT)]
    event = _vevent()
    event.items += [line("UID", escape(record.uid)), utc_line("DTSTAMP", now)]
    event.items += [utc_line("CREATED", record.created or now), utc_line("LAST-MODIFIED", record.updated or now)]
    event.items.append(line("SEQUENCE", "0"))
    root.items.append(event)
    edit(root, None, record, now, owner)
    return root


def _vevent() -> Component:
    return Component("VEVENT", b"BEGIN:VEVENT\r\n", end=b"END:VEVENT\r\n")


def edit(
    root: Component, before: EventRecord | None, after: EventRecord, now: datetime, owner: str | None = None
) -> None:
    """Bring a file from what `before` says (None: nothing yet) to what `after` says, in place.

    Args:
        root: The file.
        before: The event as it was read from it, with its participants if there is an `owner`.
        after: The event as it is to be.
        now: The time of the change.
        owner: Who organizes what has participants and no organizer; without one, participants are left as they are.
    """
    events = list(root.components("VEVENT"))
    if before is not None and before.uid != after.uid:
        for event in events:
            event.put(("UID",), [line("UID", escape(after.uid))])
    master = next(event for event in events if event.first("RECURRENCE-ID") is None)
    _edit_event(master, before, after, now, owner)
    moved = before is None or before.when != after.when
    # rules that can't be told here are not touched
    if before is None or before.rules != after.rules or (moved and after.rules):
        master.put(("RRULE",), [line("RRULE", rule_text(rule, after.when)) for rule in after.rules])
    _edit_overrides(root, master, before, after, now, owner)
    _add_zones(root)


def _edit_event(
    event: Component, before: EventRecord | None, after: EventRecord, now: datetime, owner: str | None
) -> None:
    """The time and the plain fields of one VEVENT."""
    changed = answered = False
    for attribute, (name, _) in _TEXTS.items():
        value: str | None = getattr(after, attribute)
        if before is None or getattr(before, attribute) != value:
            event.put((name,), [] if value is None else [line(name, escape(value))])
            changed = True
    for attribute, (name, _, values) in _WORDS.items():
        word: str | None = getattr(after, attribute)
        if before is None or getattr(before, attribute) != word:
            event.put((name,), [] if word is None else [line(name, values[word])])
            changed = True
    if before is None or before.alerts != after.alerts:
        edit_alarms(event, before.alerts if before else None, after.alerts)
        changed = True
    if owner is not None and (before is None or before.participants != after.participants):
        edit_attendees(event, cast("list[dict[str, Any]] | None", after.participants))
        if after.participants:
            add_organizer(event, owner)
        answered = True
    recurring = bool(after.rules or after.overrides)
    # the end of a series is in days where its length is: DTEND would make each occurrence as long as the first
    nominal = (
        before is not None and bool(after.when.duration.days) and recurring != bool(before.rules or before.overrides)
    )
    if before is None or before.when != after.when or nominal:
        event.put(_TIME_LINES, time_lines(after.when, recurring=recurring))
        changed = True
    if before is None:
        return
    series = (before.rules, before.overrides, before.uid) != (after.rules, after.overrides, after.uid)
    if changed or series or answered:
        # the organizer's number of the plan: an answer is none of its own (RFC 5546 section 2.1.4)
        if changed or (before.rules, _plans(before), before.uid) != (after.rules, _plans(after), after.uid):
            sequence = event.first("SEQUENCE")
            number = int(sequence.value) if sequence and sequence.value.strip().isdecimal() else 0
            event.put(("SEQUENCE",), [line("SEQUENCE", str(number + 1))])
        event.put(("LAST-MODIFIED",), [utc_line("LAST-MODIFIED", now)])
        event.put(("DTSTAMP",), [utc_line("DTSTAMP", now)])


def _plans(record: EventRecord) -> dict[datetime, Override]:
    """The exceptions of a series but for who takes part in them."""
    plans = {
        at: replace(each, fields={name: value for name, value in each.fields.items() if name != "participants"})
        for at, each in record.overrides.items()
    }
    usual = record.series.given_among(at for at, each in plans.items() if each == Override())
    return {at: each for at, each in plans.items() if at not in usual}


def _edit_overrides(
    root: Component,
    master: Component,
    before: EventRecord | None,
    after: EventRecord,
    now: datetime,
    owner: str | None,
) -> None:
    moved = before is None or before.when != after.when
    for name, given in (("EXDATE", _excluded), ("RDATE", _added)):
        # as they stand if they say the same: others may write them in another form
        if moved or before is None or given(before) != given(after):
            master.put((name,), [recurrence_line(name, at, after.when) for at in given(after)])
    standing = _standing(root, before, people=owner is not None)
    for at, override in sorted(after.overrides.items()):
        if override.excluded or override == Override():
            continue
        own = _single(after, at, override)
        earlier = _earlier(before, after, at)
        found = standing.pop(earlier, None)
        if found is None:
            event, was = _fresh(master), replace(after, when=after.series.at(at), rules=(), overrides={})
            event.put(_TIME_LINES, time_lines(own.when, recurring=False))
            root.items.append(event)
        else:
            event, was = found
        if found is None or moved:
            event.put(("RECURRENCE-ID",), [recurrence_line("RECURRENCE-ID", at, after.when)])
        _edit_event(event, was, own, now, owner)
    gone = [event for event, _ in standing.values()]
    root.items = [item for item in root.items if not any(item is event for event in gone)]


def _excluded(record: EventRecord) -> list[datetime]:
    return sorted(at for at, override in record.overrides.items() if override.excluded)


def _added(record: EventRecord) -> list[datetime]:
    """Those that no rule gives; where the rules can't be told, those that say nothing else."""
    if "recurrenceRules" in record.unknown:
        return sorted(at for at, override in record.overrides.items() if override == Override())
    given = record.series.given_among(record.overrides)
    return sorted(at for at, override in record.overrides.items() if not override.excluded and at not in given)


def _earlier(before: EventRecord | None, after: EventRecord, at: datetime) -> datetime:
    """The name that an occurrence had before its series was moved."""
    return at if before is None else at - (wall_clock(after.when) - wall_clock(before.when))


def _standing(
    root: Component, before: EventRecord | None, *, people: bool
) -> dict[datetime, tuple[Component, EventRecord]]:
    """The changed occurrences of a file by name, each with the event that it says."""
    if before is None:
        return {}
    zones = Zones(root)
    found: dict[datetime, tuple[Component, EventRecord]] = {}
    for event in root.components("VEVENT"):
        name = event.first("RECURRENCE-ID")
        if name is not None:
            (at,) = read_recurrence_ids(name, before.when, zones)
            found[at] = event, replace(_read_event(event, before.calendar, zones, people=people), uid=before.uid)
    return found


def _single(record: EventRecord, at: datetime, override: Override) -> EventRecord:
    attributes = {name: attribute for attribute, name in _plain_names()}
    fields = {attributes[name]: value for name, value in override.fields.items() if name in attributes}
    return replace(record, when=override.when or record.series.at(at), rules=(), overrides={}, **fields)


def _fresh(master: Component) -> Component:
    """A changed occurrence to be: all that its series says, but when and how often."""
    event = master.copy()
    event.put((*_TIME_LINES, "RRULE", "RDATE", "EXDATE", "EXRULE"), [])
    return event


def _add_zones(root: Component) -> None:
    """Each zone that an event names goes with a VTIMEZONE, for the years that the file is about."""
    there = {_text(zone, "TZID") for zone in root.components("VTIMEZONE")}
    named = [each for event in root.components("VEVENT") for each in event.items if isinstance(each, Line)]
    years = [int(each.value[:4]) for each in named if each.param("TZID") and each.value[:4].isdecimal()]
    for name in dict.fromkeys(zone for each in named if (zone := each.param("TZID"))):
        if name not in there and is_zone(name):
            at = next(index for index, item in enumerate(root.items) if isinstance(item, Component))
            root.items.insert(at, zone_component(name, min(years, default=2000), max(years, default=2000)))
