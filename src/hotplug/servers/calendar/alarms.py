"""Reminders as VALARM components (RFC 5545 section 3.6.6, RFC 9074 for their UID)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hotplug.catalog.calendar.alerts import read_alerts, read_offset
from hotplug.errors import InvalidArgument
from hotplug.servers.calendar.lines import Component, Line, escape, line, unescape

__all__ = ["edit_alarms", "fits_alarm", "read_alarms"]


def fits_alarm(alert: Mapping[str, Any]) -> bool:
    """Whether a VALARM can say it here: one that mails has to name to whom."""
    return alert.get("action", "display") == "display"


def read_alarms(event: Component) -> tuple[dict[str, Any] | None, bool]:
    """The reminders of an event by id, and whether all of them were told exactly."""
    found: dict[str, Any] = {}
    exact = True
    for number, alarm in enumerate(event.components("VALARM"), 1):
        action = alarm.first("ACTION")
        if action is None or action.value.strip().upper() != "DISPLAY":
            exact = False
            continue
        try:
            found |= read_alerts({_name(alarm, number): _alert(alarm)})
        except InvalidArgument:
            exact = False
    return found or None, exact


def _name(alarm: Component, number: int) -> str:
    uid = alarm.first("UID") or alarm.first("X-WR-ALARMUID")
    return str(number) if uid is None else unescape(uid.value)


def _alert(alarm: Component) -> dict[str, Any]:
    trigger = alarm.first("TRIGGER")
    if trigger is None or alarm.first("REPEAT") is not None:
        raise InvalidArgument("the alarm has no trigger, or repeats")
    alert: dict[str, Any] = {"trigger": _trigger(trigger)}
    acknowledged = alarm.first("ACKNOWLEDGED")
    if acknowledged is not None:
        alert["acknowledged"] = _stamp(acknowledged.value)
    return alert


def _trigger(trigger: Line) -> dict[str, Any]:
    value = trigger.value.strip()
    if value.lstrip("+-").startswith("P"):
        side = "end" if (trigger.param("RELATED") or "").upper() == "END" else "start"
        return {"offset": read_offset(value), "relativeTo": side}
    return {"when": _stamp(value)}


def _stamp(value: str) -> str:
    text = value.strip()
    if len(text) != 16 or not text.endswith("Z"):
        raise InvalidArgument(f"{value!r} is not a time in UTC")
    return f"{text[:4]}-{text[4:6]}-{text[6:11]}:{text[11:13]}:{text[13:]}"


def edit_alarms(event: Component, before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> None:
    """Bring the VALARMs of an event to what it says after a change; those that stay keep their lines."""
    before, after = before or {}, after or {}
    kept: list[Line | Component] = []
    there: set[str] = set()
    number = 0
    for item in event.items:
        if isinstance(item, Component) and item.name == "VALARM":
            number += 1
            name = _name(item, number)
            if not after or (name in before and before.get(name) != after.get(name)):
                continue
            there.add(name)
        kept.append(item)
    event.items = [*kept, *(_alarm(name, alert) for name, alert in after.items() if name not in there)]


def _alarm(name: str, alert: Mapping[str, Any]) -> Component:
    trigger = alert["trigger"]
    if "offset" in trigger:
        related = {"RELATED": "END"} if trigger.get("relativeTo") == "end" else {}
        shown = line("TRIGGER", trigger["offset"], **related)
    else:
        shown = line("TRIGGER", _compact(trigger["when"]), VALUE="DATE-TIME")
    items: list[Line | Component] = [
        line("UID", escape(name)),
        line("ACTION", "DISPLAY"),
        line("DESCRIPTION", "Reminder"),
        shown,
    ]
    if "acknowledged" in alert:
        items.append(line("ACKNOWLEDGED", _compact(alert["acknowledged"])))
    return Component("VALARM", b"BEGIN:VALARM\r\n", items, b"END:VALARM\r\n")


def _compact(text: str) -> str:
    return text.replace("-", "").replace(":", "")
