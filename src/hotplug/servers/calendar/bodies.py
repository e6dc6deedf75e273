"""Events as JSON, exactly: every value comes back as it was."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, date, datetime
from typing import Any, Final, cast

from hotplug.catalog.calendar.records import EventRecord
from hotplug.catalog.calendar.recurrence import Override
from hotplug.catalog.calendar.rules import Rule, read_rule
from hotplug.catalog.calendar.times import AllDay, Duration, Floating, Instant, When, Zoned
from hotplug.catalog.calendar.zones import read_zone
from hotplug.errors import HotplugError

__all__ = ["BodyError", "read_body", "write_body"]

_PLAIN: Final = ("title", "description", "location", "status", "free_busy_status", "participants", "alerts")
_KINDS: Final[Mapping[str, tuple[type, ...]]] = {"participants": (dict, list), "alerts": (dict,)}
"""Of those that are no text."""


class BodyError(Exception):
    """A body isn't one that `write_body` wrote; the message says why."""


def write_body(record: EventRecord) -> str:
    """All of an event but its uid, calendar and revision."""
    body = {
        **{name: getattr(record, name) for name in _PLAIN if getattr(record, name) is not None},
        "when": _write_when(record.when),
        "rules": [_write_rule(rule, record.when) for rule in record.rules],
        "overrides": {at.isoformat(): _write_override(override) for at, override in record.overrides.items()},
        "created": None if record.created is None else record.created.isoformat(),
        "updated": None if record.updated is None else record.updated.isoformat(),
    }
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"))


def read_body(uid: str, calendar: str, revision: str, text: str) -> EventRecord:
    """The event that `write_body` wrote.

    Raises:
        BodyError: It is none: damaged, or written by something else.
    """
    try:
        return _read(uid, calendar, revision, text)
    except json.JSONDecodeError as error:
        raise BodyError(f"it is no JSON: {error}") from error
    except KeyError as error:
        raise BodyError(f"it has no {error}") from error
    except (ArithmeticError, AttributeError, HotplugError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise BodyError(f"it is no event: {error}") from error


def _read(uid: str, calendar: str, revision: str, text: str) -> EventRecord:
    body: dict[str, Any] = json.loads(text)
    when = _read_when(body["when"])
    overrides: dict[str, Any] = body["overrides"]
    return EventRecord(
        uid=uid,
        calendar=calendar,
        when=when,
        rules=tuple(_read_rule(rule, when) for rule in body["rules"]),
        overrides={datetime.fromisoformat(at): _read_override(override) for at, override in overrides.items()},
        revision=revision,
        created=_moment(body["created"]),
        updated=_moment(body["updated"]),
        **{name: _plain(name, body[name]) for name in _PLAIN if name in body},
    )


def _plain(name: str, value: Any) -> Any:
    if not isinstance(value, _KINDS.get(name, (str,))):
        raise TypeError(f"{name} is {type(value).__name__}")
    return cast("Any", value)


def _moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def _write_when(when: When) -> list[Any]:
    if isinstance(when, Instant):
        return ["instant", when.start.replace(tzinfo=None).isoformat(), when.duration.days, when.duration.seconds]
    if isinstance(when, Floating):
        return ["floating", when.local.isoformat(), when.duration.days, when.duration.seconds]
    if isinstance(when, AllDay):
        return ["all-day", when.first.isoformat(), when.days]
    length = when.duration
    return ["zoned", when.local.isoformat(), length.days, length.seconds, when.zone, when.local.fold]


def _read_when(body: list[Any]) -> When:
    kind, start, days, *rest = body
    if kind == "all-day":
        return AllDay(date.fromisoformat(start), days)
    local, length = datetime.fromisoformat(start), Duration(days, rest[0])
    if kind == "instant":
        return Instant(local.replace(tzinfo=UTC), length)
    if kind == "floating":
        return Floating(local, length)
    read_zone(rest[1])
    return Zoned(local.replace(fold=rest[2]), rest[1], length)


def _write_rule(rule: Rule, when: When) -> dict[str, Any]:
    # the end apart: one that was moved into a gap can be kept, and not read from the wire
    until = None if rule.until is None else rule.until.isoformat()
    return {"rule": replace(rule, until=None).wire(when), "until": until}


def _read_rule(body: Mapping[str, Any], when: When) -> Rule:
    rule = read_rule(body["rule"], when)
    return rule if body["until"] is None else replace(rule, until=datetime.fromisoformat(body["until"]))


def _write_override(override: Override) -> dict[str, Any]:
    when = None if override.when is None else _write_when(override.when)
    return {"excluded": override.excluded, "when": when, "fields": dict(override.fields)}


def _read_override(body: Mapping[str, Any]) -> Override:
    when = cast("list[Any] | None", body["when"])
    return Override(body["excluded"], None if when is None else _read_when(when), body["fields"])
