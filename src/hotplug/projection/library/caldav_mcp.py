"""caldav-mcp: what is ours is known by what is listed, and one tool that is asked in vain tells why others failed."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from time import monotonic
from typing import Any, ClassVar, Final, cast

from hotplug.catalog.calendar import functions
from hotplug.errors import (
    Conflict,
    ConnectionFailed,
    Internal,
    NotFound,
    PermissionDenied,
    Timeout,
    Unavailable,
)
from hotplug.projection.calendar import (
    FOREVER,
    TEXTS,
    Fields,
    Ours,
    accepted,
    around,
    cleaned,
    clears,
    doubted,
    in_four_digits,
    lies_in,
    moved,
    refuse_series,
    require_kept,
    searched,
    second_after,
    shown,
    time_of,
    written_time,
)
from hotplug.projection.runtime import ProjectedProvider

__all__ = ["CaldavMcp"]

_SERVER: Final = "caldav-mcp"
_BEGINNING: Final = "0001-01-01T00:00:00Z"
_UNTITLED: Final = "Untitled Event"
"""What it shows for an empty title."""
_SLOW: Final = 4.5
"""Seconds; it gives up on the CalDAV server after 5, which may still do what it was asked."""
_VAGUE: Final = re.compile(
    r"Failed to (create event|update event|retrieve vevents from the CalDAV server|retrieve ETag for .*)\."
    r"|Event not found"
)
_MAY_BE_SENT: Final = re.compile(r"Failed to (create|update) event")
_NOT_SENT: Final = re.compile(r"connect E|getaddrinfo|status code 400")
_FACT: Final = ("title", "description", "location", "start", "end", "showWithoutTime")


class CaldavMcp:
    """The parts of the calendar that need more than one expression."""

    reading: ClassVar = frozenset({"list-calendars", "list-events"})

    def __init__(self, provider: ProjectedProvider) -> None:
        self._provider = provider
        self._ours = Ours(provider)

    async def get(self, given: Fields) -> Fields:
        """One event, found among all of its calendar, and whether it is the first of a series."""
        return await self._read(given["event"])

    async def search(self, given: Fields) -> Fields:
        """The events in a range, of one calendar or of all that there are."""
        return await searched(self._provider, given, self._listed)

    async def _listed(self, calendar: str, bounds: Mapping[str, str]) -> list[tuple[Fields, bool]]:
        """The events of a range, each with whether it lies there as it is shown, or by an occurrence that isn't."""
        by_uid: dict[str, list[Fields]] = {}
        # The server misses what has no length and starts at the beginning of the range.
        start = functions.plus_seconds(bounds["from"], -1)
        for item in await self._list(calendar, start, bounds["to"]):
            by_uid.setdefault(item["uid"], []).append(item)
        outside = {uid for uid, items in by_uid.items() if not lies_in(*_span(items[0]), bounds)}
        if outside:
            outside &= {item["uid"] for item in await self._list(calendar, bounds["from"], bounds["to"])}
        near = around(bounds)
        found: list[tuple[Fields, bool]] = []
        for uid, items in by_uid.items():
            inside = lies_in(*_span(items[0]), bounds)
            if not inside and uid not in outside:
                continue
            event = await self._event({"calendar": calendar, "uid": uid}, items[0])
            if len(items) > 1 or not lies_in(*_span(items[0]), near):
                event["recurring"] = True
            else:
                event["unknown"] = [*event["unknown"], "recurring"]
            found.append((event, inside))
        return found

    async def create(self, given: Fields) -> Fields:
        """A new event; read back and compared."""
        fields = cleaned(given)
        lost = [name for name in ("status", "freeBusyStatus") if name in fields]
        lost += ["title"] if not fields["title"] else []
        time = in_four_digits(time_of(fields, _keeps(fields), server=_SERVER, lost=lost), server=_SERVER)
        asked = {name: fields[name] for name in TEXTS if name in fields} | written_time(time)
        sent = {"calendarUrl": fields["calendar"], **_texts(fields), **_when(time)}
        # Afterwards the server doesn't tell whether it reached the calendar at all.
        reason = await self._reason(fields["calendar"])
        if reason is not None:
            raise reason
        uid = (await self._act("create-event", sent, fields["calendar"], "the event")).strip()
        if not uid or uid.split() != [uid]:
            raise Internal(
                f"{_SERVER} answered {uid[:200]!r} where a uid was expected",
                details={"upstream": uid[:4096], "state": "unknown"},
            )
        handle = {"calendar": fields["calendar"], "uid": uid}
        await self._written(handle, asked, given)
        return {"event": handle}

    async def update(self, given: Fields) -> Fields:
        """A change of an event; exact where the event looks as we wrote it, else refused with what may be lost."""
        changes = cleaned(given["changes"])
        handle = given["event"]
        event = await self._read(handle)
        cleared = clears(given, changes)
        lost = _may_be_lost(event)
        lost += [name for name in ("status", "freeBusyStatus") if name in changes or name in cleared]
        lost += ["title"] if changes.get("title") == "" or "title" in cleared else []
        time = moved(given | {"changes": changes}, event, _keeps(given, event), server=_SERVER, lost=lost)
        if time is None:
            time = functions.when({name: event[name] for name in ("start", "end", "showWithoutTime") if name in event})
        time = in_four_digits(time, server=_SERVER)
        texts = {name: changes[name] for name in TEXTS if name in changes}
        texts |= dict.fromkeys((name for name in cleared if name in TEXTS), "")
        asked = {name: event[name] for name in TEXTS if name in event} | texts | written_time(time)
        # Left out, an all-day event stays one, and its end moves by a day.
        sent = _upstream(handle) | _texts(texts) | {"wholeDay": False} | _when(time)
        await self._act("update-event", sent, handle["calendar"], "the update")
        await self._written(handle, asked, given, ours=not _foreign(event))
        return {"event": handle}

    async def delete(self, given: Fields) -> Fields:
        """An event removed."""
        handle = given["event"]
        event = await self._read(handle)
        refuse_series(given, event, "deleted")
        try:
            await self._act("delete-event", _upstream(handle), handle["calendar"], "the deletion")
        except Unavailable:
            if not await self._items(handle):
                raise NotFound("the event was deleted by somebody else in between") from None
            raise
        await self._ours.forget(handle)
        if await self._items(handle):
            raise Internal(
                f"{_SERVER} said that the event is deleted, and it is still there", details={"state": "done"}
            )
        return {}

    async def _read(self, handle: Fields, *, series: bool = True) -> Fields:
        items = await self._items(handle)
        if not items:
            raise NotFound("there is no such event any more")
        event = await self._event(handle, items[0])
        if series:
            later = await self._list(handle["calendar"], second_after(items[0]["end"]), FOREVER)
            event["recurring"] = len(items) > 1 or any(item["uid"] == handle["uid"] for item in later)
        return event

    async def _items(self, handle: Fields) -> list[Fields]:
        """The event as it is listed: itself first, then what differs in single occurrences."""
        everything = await self._list(handle["calendar"], _BEGINNING, FOREVER)
        return [item for item in everything if item["uid"] == handle["uid"]]

    async def _event(self, handle: Fields, item: Mapping[str, Any]) -> Fields:
        fact = await self._ours.recall(handle)
        listed = _event(handle, item, whole_days=bool(fact and fact.get("showWithoutTime")))
        if fact is not None and _fact(listed) == fact:
            return {**listed, "unknown": ["status", "freeBusyStatus"]}
        listed = _event(handle, item, whole_days=False)
        # What looks like an instant may be a floating or an all-day event, so nobody knows the instant.
        for name in ("utcStart", "utcEnd"):
            listed.pop(name, None)
        unknown = ["timeZone", "showWithoutTime", "utcStart", "utcEnd", "status", "freeBusyStatus"]
        if listed["title"] == _UNTITLED:
            unknown.append("title")
        return {**listed, "unknown": [*unknown, *listed.get("unknown", ())]}

    async def _written(self, handle: Fields, asked: Fields, given: Fields, *, ours: bool = True) -> None:
        """Read back what was written, and compare it with what was asked; then it is ours, if it may be."""
        try:
            items = await self._items(handle)
        except ConnectionFailed as error:
            raise doubted(error, "the event was written, but can't be read back, so its content") from None
        if not items:
            raise Internal(
                f"{_SERVER} said that the event is written, and it is not there", details={"state": "unknown"}
            )
        event = _event(handle, items[0], whole_days=bool(asked.get("showWithoutTime")))
        require_kept(asked, event, accept=accepted(given), server=_SERVER)
        if ours:
            await self._ours.remember(handle, _fact(event))

    async def _list(self, calendar: str, start: str, end: str) -> list[Fields]:
        arguments = {"calendarUrl": calendar, "start": start, "end": end}
        begun = monotonic()
        try:
            return cast("list[Fields]", await self._provider.ask("list-events", arguments))
        except Internal as error:
            if not _VAGUE.search(str(error.details.get("upstream", ""))):
                raise
            if monotonic() - begun >= _SLOW:
                raise Unavailable("the CalDAV server doesn't answer in time", details=error.details) from None
            raise (await self._reason(calendar)) or Unavailable(
                "the calendar is there, and its events can't be read", details=error.details
            ) from None

    async def _act(self, tool: str, arguments: Fields, calendar: str, what: str) -> str:
        """Call a tool that writes. A failure without a reason is looked into; what stays open is `in_doubt`."""
        begun = monotonic()
        try:
            return cast("str", await self._provider.ask(tool, arguments, codec=None))
        except Conflict as error:
            raise Conflict(
                "the event was changed in between", hint="read it again, then decide", details=error.details
            ) from None
        except (Unavailable, Internal) as error:
            said = str(error.details.get("upstream", ""))
            if monotonic() - begun >= _SLOW:
                raise doubted(error, what) from None
            if isinstance(error, Unavailable):
                if _NOT_SENT.search(said):
                    raise
                raise doubted(error, what) from None
            if not _VAGUE.search(said):
                raise doubted(error, what) from None
            reason = await self._reason(calendar)
            if _MAY_BE_SENT.search(said) and not isinstance(reason, NotFound | PermissionDenied):
                raise doubted(error, what) from None
            if reason is not None:
                raise reason from None
            raise Unavailable(
                "the event is listed, but can't be written: its file isn't named as caldav-mcp expects it of its uid",
                details=error.details,
            ) from None

    async def _reason(self, calendar: str) -> ConnectionFailed | None:
        """Why a calendar can't be used; None where it can.

        Asks to update an event that can't exist, which changes nothing: no other tool says what is wrong.
        """
        uid = f"hotplug-probe-{secrets.token_hex(16)}"
        try:
            await self._provider.ask("update-event", {"calendarUrl": calendar, "uid": uid}, codec=None)
        except Internal as error:
            if "Event not found" in str(error.details.get("upstream", "")):
                return None
            return Unavailable(f"{_SERVER} doesn't say why: {error.message}", details=error.details)
        except NotFound as error:
            return NotFound("there is no such calendar any more", details=error.details)
        except Timeout as error:
            return Unavailable("the CalDAV server doesn't answer", details={"cause": error.message})
        except (PermissionDenied, Unavailable) as error:
            return error
        return Internal(f"{_SERVER} says that it updated an event that doesn't exist")


def _event(handle: Fields, item: Mapping[str, Any], *, whole_days: bool) -> Fields:
    if whole_days:
        time, unknown = shown("allDay", item["start"][:10], item["end"][:10])
    else:
        time, unknown = shown("instant", item["start"], item["end"])
    event: Fields = {"event": dict(handle), "calendar": handle["calendar"], "title": str(item["summary"]), **time}
    for name in ("description", "location"):
        if item.get(name):
            event[name] = item[name]
    if unknown:
        event["unknown"] = unknown
    return event


def _fact(event: Mapping[str, Any]) -> Fields:
    return {name: event[name] for name in _FACT if name in event}


def _may_be_lost(event: Mapping[str, Any]) -> list[str]:
    """What an update would drop of an event that somebody else may have written."""
    lost: list[str] = []
    if _foreign(event):
        # Of a zoned event it writes the digits of UTC under the zone's name.
        lost = ["start", "end", "timeZone", "showWithoutTime", "status", "freeBusyStatus", "participants"]
        lost += ["title"] if "title" in event["unknown"] else []
    if event.get("recurring") is not False:
        lost += ["recurrenceRules", "recurrenceOverrides"]
    return lost


def _foreign(event: Mapping[str, Any]) -> bool:
    """Whether somebody else may have written it, so that even its kind of time is unknown."""
    return "timeZone" in event["unknown"]


def _keeps(given: Mapping[str, Any], event: Mapping[str, Any] | None = None) -> tuple[str, ...]:
    """All-day events are stored well, but not shown as such, so that loss has to be accepted once."""
    known = event is not None and event.get("showWithoutTime")
    return ("instant", "allDay") if known or "showWithoutTime" in accepted(given) else ("instant",)


def _upstream(handle: Mapping[str, Any]) -> Fields:
    return {"calendarUrl": handle["calendar"], "uid": handle["uid"]}


def _texts(fields: Mapping[str, Any]) -> Fields:
    names = {"title": "summary", "description": "description", "location": "location"}
    return {sent: fields[name] for name, sent in names.items() if name in fields}


def _when(time: Mapping[str, Any]) -> Fields:
    if time["kind"] != "allDay":
        return {"start": time["start"], "end": time["end"]}
    last = functions.days_after(time["end"], -1)
    return {"start": f"{time['start']}T00:00:00Z", "end": f"{last}T00:00:00Z", "wholeDay": True}


def _span(item: Mapping[str, Any]) -> tuple[str, str]:
    return functions.utc(item["start"]), functions.utc(item["end"])
