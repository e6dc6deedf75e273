"""Reminders between the profile's list (id, offset from the start, action) and JSCalendar's map of the engine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast
from uuid import uuid4

from hotplug.errors import InvalidArgument, NotFound

__all__ = ["alert_map", "changed_alerts", "shown"]


def alert_map(alerts: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The engine's form of alerts; one without an id gets one.

    Raises:
        InvalidArgument: Two have the same id.
    """
    found: dict[str, Any] = {}
    for alert in alerts:
        id_ = str(alert.get("id") or uuid4())
        if id_ in found:
            raise InvalidArgument(f"two alerts have the id {id_!r}")
        action = {"action": alert["action"]} if alert.get("action") else {}
        found[id_] = {"trigger": {"@type": "OffsetTrigger", "offset": alert["offset"]}, **action}
    return found


def shown(event: Mapping[str, Any]) -> dict[str, Any]:
    """The engine's event with its alerts in the profile's form; those of a kind that it hasn't make them `unknown`."""
    alerts = event.get("alerts")
    if not isinstance(alerts, Mapping):
        return dict(event)
    found: list[dict[str, Any]] = []
    untold = False
    for id_, alert in cast("Mapping[str, Mapping[str, Any]]", alerts).items():
        trigger = cast("Mapping[str, Any]", alert.get("trigger") or {})
        if "offset" in trigger and trigger.get("relativeTo", "start") == "start" and "acknowledged" not in alert:
            found.append({"id": id_, "offset": trigger["offset"], "action": alert.get("action", "display")})
        else:
            untold = True
    unknown = {"unknown": sorted({*event.get("unknown", ()), "alerts"})} if untold else {}
    return {**event, "alerts": found, **unknown}


def changed_alerts(before: Mapping[str, Any] | None, given: Mapping[str, Any]) -> dict[str, Any] | None:
    """The engine's alerts after what a call says of them; None where it says nothing. Others stay exactly as they are.

    Raises:
        InvalidArgument: They are replaced and changed at once.
        NotFound: What is to be removed isn't there.
    """
    added, removed, replaced = (given.get(f"{verb}Alerts") for verb in ("add", "remove", "replace"))
    if added is None and removed is None and replaced is None:
        return None
    if replaced is not None:
        if added is not None or removed is not None:
            raise InvalidArgument("replaceAlerts stands beside addAlerts or removeAlerts", hint="do one or the other")
        return alert_map(replaced)
    found = dict(before or {})
    for id_ in removed or ():
        if found.pop(id_, None) is None:
            raise NotFound(f"there is no {id_!r} among the alerts")
    return {**found, **alert_map(added or ())}
