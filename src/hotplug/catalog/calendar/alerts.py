"""Reminders as JSCalendar has them (RFC 8984 section 4.5.2): by id, a trigger and what it does.

An offset is a signed duration from the start (or the end), a trigger at a fixed time is in UTC. The form is made the
same for all: the default action (`display`) and side (`start`) are left out, the kind of trigger is always said.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final, cast

from hotplug.catalog.calendar.times import read_date_time, read_duration
from hotplug.catalog.calendar.zones import format_local
from hotplug.errors import InvalidArgument

__all__ = ["read_alerts", "read_offset"]

_ACTIONS: Final = ("display", "email")
_OFFSET: Final = "OffsetTrigger"
_ABSOLUTE: Final = "AbsoluteTrigger"


def read_alerts(alerts: Mapping[str, Any]) -> dict[str, Any]:
    """The reminders in their one form.

    Raises:
        InvalidArgument: One has no trigger, or a member or value that isn't one.
    """
    return {name: _read_alert(name, alert) for name, alert in alerts.items()}


def _read_alert(name: str, alert: Any) -> dict[str, Any]:
    if not name or not name.isprintable():
        raise InvalidArgument(f"the id {name!r} of an alert is empty or not printable")
    members = _members(alert, f"alert {name!r}", {"@type", "trigger", "action", "acknowledged"})
    trigger = _members(
        members.get("trigger"), f"the trigger of alert {name!r}", {"@type", "offset", "relativeTo", "when"}
    )
    kind = trigger.get("@type", _OFFSET if "offset" in trigger else _ABSOLUTE)
    out: dict[str, Any]
    if kind == _OFFSET and isinstance(trigger.get("offset"), str) and "when" not in trigger:
        out = {"@type": _OFFSET, "offset": read_offset(trigger["offset"])}
        side = trigger.get("relativeTo", "start")
        if side not in ("start", "end"):
            raise InvalidArgument(f"relativeTo {side!r} is none", hint="use start or end")
        if side == "end":
            out["relativeTo"] = side
    elif kind == _ABSOLUTE and isinstance(trigger.get("when"), str) and "offset" not in trigger:
        out = {"@type": _ABSOLUTE, "when": _utc(trigger["when"], "when")}
    else:
        raise InvalidArgument(
            f"the trigger of alert {name!r} is none",
            hint='give {"offset": "-PT15M"} or {"when": "2026-06-11T14:00:00Z"}',
        )
    action = members.get("action", "display")
    if action not in _ACTIONS:
        raise InvalidArgument(f"action {action!r} is none", hint=f"use {' or '.join(_ACTIONS)}")
    read: dict[str, Any] = {"trigger": out}
    if action != "display":
        read["action"] = action
    if members.get("acknowledged") is not None:
        read["acknowledged"] = _utc(str(members["acknowledged"]), "acknowledged")
    return read


def _members(value: Any, what: str, known: set[str]) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise InvalidArgument(f"{what} is {value!r}, not an object")
    members = cast("Mapping[str, Any]", value)
    if unknown := sorted(set(members) - known):
        raise InvalidArgument(f"{what} has no {', '.join(map(repr, unknown))}")
    return members


def read_offset(text: str) -> str:
    """A signed duration in its one form (`-PT15M`, `PT0S`, `P1D`)."""
    sign = "-" if text.startswith("-") else ""
    length = read_duration(text.removeprefix("-").removeprefix("+"), "offset")
    return sign + str(length) if length.days or length.seconds else str(length)


def _utc(text: str, name: str) -> str:
    local, offset = read_date_time(text, name)
    if offset is None:
        raise InvalidArgument(f"{name} {text!r} has no offset", hint="reminders at a fixed time are in UTC: add Z")
    return format_local(local - (offset or timedelta())) + "Z"
