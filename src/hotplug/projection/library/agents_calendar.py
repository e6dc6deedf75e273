"""agents-calendar: etags prove which events are ours, and two zones tell floating times from instants."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final, cast
from urllib.parse import urlsplit

from hotplug.catalog.calendar import functions
from hotplug.errors import Conflict, ConnectionFailed, Internal, NotFound, Unavailable, Unsupported
from hotplug.projection.calendar import (
    FOREVER,
    TEXTS,
    Fields,
    Ours,
    accepted,
    around,
    calendars_of,
    cleaned,
    clears,
    doubted,
    in_four_digits,
    lies_in,
    moved,
    not_kept,
    refuse_series,
    require_kept,
    same_revision,
    searched,
    second_after,
    shown,
    time_of,
    written_time,
)
from hotplug.projection.rereading import reread
from hotplug.projection.runtime import ProjectedProvider

__all__ = ["AgentsCalendar"]

_KEEPS: Final = ("instant", "allDay")
_SERVER: Final = "agents-calendar"
_FAR_ZONE: Final = "Pacific/Kiritimati"
_STATUSES: Final = frozenset({"confirmed", "tentative", "cancelled"})
_EARLIEST: Final = "1000-01-01T00:00:00Z"
"""It writes earlier years without their leading zeros, which no server takes."""
_NOT_SENT: Final = re.compile(r"Connection refused|Name or service not known|nodename nor servname|getaddrinfo")
_READS_AT_ONCE: Final = 3


class AgentsCalendar:
    """The parts of the calendar that need more than one expression."""

    reading: ClassVar = frozenset({"calendar_calendars", "calendar_list", "calendar_get"})

    def __init__(self, provider: ProjectedProvider) -> None:
        self._provider = provider
        self._ours = Ours(provider)

    async def get(self, given: Fields) -> Fields:
        """One event, and whether it is the first of a series."""
        return await self._read(given["event"])

    async def search(self, given: Fields) -> Fields:
        """The events in a range, of one calendar or of all that there are."""
        if functions.bounds(given)["from"] < _EARLIEST:
            raise Unsupported(f"{_SERVER} can't search before {_EARLIEST}", details={"lost": ["from"]})
        return await searched(self._provider, given, self._listed)

    async def create(self, given: Fields) -> Fields:
        """A new event; read back and compared."""
        fields = cleaned(given)
        lost = ["freeBusyStatus"] if "freeBusyStatus" in fields else []
        time = in_four_digits(time_of(fields, _KEEPS, server=_SERVER, lost=lost), server=_SERVER)
        asked: Fields = {name: fields[name] for name in (*TEXTS, "status") if name in fields} | written_time(time)
        sent = {
            "calendar": fields["calendar"],
            "summary": fields["title"],
            "location": fields.get("location", ""),
            "description": fields.get("description", ""),
            "status": str(fields.get("status", "")).upper(),
            **_when(time),
        }
        made = await self._act("calendar_add", sent, "the event")
        handle = _path(made["href"])
        return await self._written(handle, made, asked, given, new=True)

    async def update(self, given: Fields) -> Fields:
        """A change of an event; exact where the event is as we wrote it, else refused with what may be lost."""
        changes = cleaned(given["changes"])
        event = await self._read(given["event"], given.get("revision"))
        self._check_revision(given, event)
        unknown = event.get("unknown", ())
        cleared = [name for name in clears(given, changes) if event.get(name) or name in unknown]
        cleared += [name for name in TEXTS if changes.get(name) == "" and event.get(name)]
        if cleared:
            raise Unsupported(
                f"{_SERVER} takes an empty text as no change, so nothing can be cleared",
                details={"lost": list(dict.fromkeys(cleared))},
            )
        lost = [*_may_be_lost(event), *(name for name in ("freeBusyStatus",) if name in changes)]
        time = moved({**given, "changes": changes}, event, _KEEPS, server=_SERVER, lost=lost)
        if time is None:
            if event.get("duration") is None:
                raise Unsupported(
                    f"{_SERVER} shows no end of the event, and needs one to write it",
                    hint="give start and end",
                    details={"lost": ["end"]},
                )
            time = _as_written(event)
        time = in_four_digits(time, server=_SERVER)
        texts = {name: changes[name] for name in (*TEXTS, "status") if name in changes}
        asked = {name: event[name] for name in (*TEXTS, "status") if name in event} | texts | written_time(time)
        sent = {
            "href": given["event"],
            "etag": event["revision"],
            "summary": texts.get("title", ""),
            "location": texts.get("location", ""),
            "description": texts.get("description", ""),
            "status": str(texts.get("status", "")).upper(),
            **_when(time),
        }
        made = await self._act("calendar_update", sent, "the update")
        return await self._written(given["event"], made, asked, given)

    async def delete(self, given: Fields) -> Fields:
        """An event removed, if it is still what was read."""
        event = await self._read(given["event"], given.get("revision"))
        self._check_revision(given, event)
        refuse_series(given, event, "deleted")
        await self._act("calendar_delete", {"href": given["event"], "etag": event["revision"]}, "the deletion")
        await self._ours.forget(given["event"])
        return {}

    def _check_revision(self, given: Fields, event: Fields) -> None:
        if not same_revision(given, event["revision"]):
            raise Conflict(
                f"the event is at revision {event['revision']} by now, and this is based on {given['revision']}",
                hint="read it again, then decide",
                details={"revision": event["revision"]},
            )

    async def _act(self, tool: str, arguments: Fields, what: str) -> Fields:
        """Call a tool that writes; a failure that doesn't tell whether it wrote is `in_doubt`."""
        try:
            return cast("Fields", await self._provider.ask(tool, arguments))
        except NotFound:
            # It says of a calendar that it isn't there, too, where it may not see any; listing them says so.
            await calendars_of(self._provider)
            if "href" not in arguments:
                raise
            # It was read a moment ago: what still shows it by now says that the refusal was of a version.
            now = await self._shown(arguments["href"], "UTC", _other_than(arguments["etag"]), sure=True)
            raise _conflict(now, arguments["etag"]) from None
        except Conflict:
            if "href" not in arguments:
                raise
            try:
                now = await self._shown(arguments["href"], "UTC", _other_than(arguments["etag"]), sure=True)
            except ConnectionFailed:
                # It was refused for its version; that it can't be read now changes nothing about that.
                now = {}
            raise _conflict(now, arguments["etag"]) from None
        except (Unavailable, Internal) as error:
            if _NOT_SENT.search(str(error.details.get("upstream", ""))):
                raise
            raise doubted(error, what) from None

    async def _written(self, handle: str, made: Fields, asked: Fields, given: Fields, *, new: bool = False) -> Fields:
        """Compare what was written with what was asked; it is ours for as long as its etag stays.

        Of an event that is `new` nobody else knows yet: what it shows instead is what the server made of it.
        """
        etag = str(made.get("etag") or "")
        await self._ours.remember(handle, {"etag": etag, "start": asked["start"], "end": asked["end"]})
        try:
            seen = await self._shown(handle, "UTC", _at(etag or None), sure=True)
        except ConnectionFailed as error:
            raise doubted(error, "the event was written, but can't be read back, so its content") from None
        event = _event(seen, _folder(seen), ours=True, floating=False)
        if not new and etag not in ("", seen["etag"]) and not_kept(asked, event):
            raise Conflict(
                f"the event was written as revision {etag}, and is shown as {seen['etag']} with another content",
                hint="it was changed since, or the server still shows an old one: read it again, then decide",
                details={"revision": seen["etag"], "written": etag, "state": "done"},
            )
        require_kept(asked, event, accept=accepted(given), server=_SERVER)
        return {"event": handle, "revision": etag or seen["etag"]}

    async def _read(self, handle: str, revision: str | None = None) -> Fields:
        """An event; where it isn't shown at the revision that a call is based on, or we wrote, looked up once more."""
        fact = await self._ours.recall(handle)
        wanted = revision or (fact or {}).get("etag")
        for _ in range(_READS_AT_ONCE):
            one = await self._shown(handle, "UTC", _at(wanted), sure=wanted is not None)
            ours = await self._is_ours(handle, one)
            other = None
            if not ours and not one.get("all_day"):
                other = await self._shown(handle, _FAR_ZONE, _at(one["etag"]), sure=True)
            if other is None or other["etag"] == one["etag"]:
                break
        else:
            raise Unavailable(f"the event changes faster than {_SERVER} can read it twice")
        event = _event(one, _folder(one), ours=ours, floating=other is not None and other["dtstart"] != one["dtstart"])
        if ours:
            return event
        recurring = await self._is_series(event["calendar"], handle, one)
        if recurring is None:
            event["unknown"] = [*event["unknown"], "recurring"]
        else:
            event["recurring"] = recurring
        return event

    async def _shown(self, handle: str, zone: str, good: Callable[[Fields], bool], *, sure: bool) -> Fields:
        """An event as it is got, or where that isn't good, as it is listed.

        Args:
            sure: It was there a moment ago, so that one answer without it isn't believed.
        """
        if not sure:
            return await self._get(handle, zone)
        return await reread(lambda: self._get(handle, zone), lambda: self._found(handle, zone), good=good)

    async def _found(self, handle: str, zone: str) -> Fields | None:
        """An event in the list of its calendar, where it lay when we wrote it, else anywhere."""
        folder = handle.rpartition("/")[0] + "/"
        calendar = next((one for one in await calendars_of(self._provider) if _path(one) == folder), None)
        if calendar is None:
            return None
        fact = await self._ours.recall(handle)
        ranges = [(_EARLIEST, FOREVER)]
        if fact is not None and "start" in fact:
            near = around({"from": _instant(fact["start"]), "to": second_after(_instant(fact["end"]))})
            ranges.insert(0, (max(near["from"], _EARLIEST), near["to"]))
        for start, end in ranges:
            for item in await self._list(calendar, start, end, zone):
                if _path(item["href"]) == handle:
                    return item
        return None

    async def _get(self, handle: str, zone: str) -> Fields:
        found = cast("Fields", await self._provider.ask("calendar_get", {"href": handle, "timezone": zone}))
        if not found.get("etag"):
            raise Internal(f"{_SERVER} shows no etag", details={"upstream": str(found)[:500]})
        return found

    async def _is_ours(self, handle: str, raw: Mapping[str, Any]) -> bool:
        fact = await self._ours.recall(handle)
        return fact is not None and fact["etag"] == raw["etag"]

    async def _is_series(self, calendar: str, handle: str, raw: Mapping[str, Any]) -> bool | None:
        """Whether it is listed after its own end; None where that can't be found out."""
        end = raw.get("dtend") or raw["dtstart"]
        try:
            later = await self._list(calendar, second_after(_instant(end)), FOREVER, "UTC")
        except Unavailable:
            return None
        listed = any(_path(item["href"]) == handle for item in later)
        # What shows no end may be listed because it still lasts.
        return None if listed and not raw.get("dtend") else listed

    async def _list(self, calendar: str, start: str, end: str, zone: str) -> list[Fields]:
        arguments = {"calendar": calendar, "start": start, "end": end, "timezone": zone}
        try:
            return cast("list[Fields]", await self._provider.ask("calendar_list", arguments))
        except NotFound:
            await calendars_of(self._provider)
            raise

    async def _listed(self, calendar: str, bounds: Fields) -> list[tuple[Fields, bool]]:
        """The events that may lie in a range, each with whether it does so as it is shown, or by what isn't shown."""
        # The server misses what has no length and starts at the beginning of the range; and all-day and floating
        # events lie elsewhere on the time line in other zones.
        near = around(bounds)
        wide = (max(near["from"], _EARLIEST), near["to"])
        raw = {_path(item["href"]): item for item in await self._list(calendar, *wide, "UTC")}
        outside = {handle for handle, item in raw.items() if not lies_in(*_span(item), bounds)}
        if outside:
            exact = await self._list(calendar, bounds["from"], bounds["to"], "UTC")
            outside &= {_path(item["href"]) for item in exact}
        ours = {handle: await self._is_ours(handle, item) for handle, item in raw.items()}
        far: dict[str, Fields] = {}
        if any(not ours[handle] and not item["all_day"] for handle, item in raw.items()):
            far = {_path(item["href"]): item for item in await self._list(calendar, *wide, _FAR_ZONE)}
        found: list[tuple[Fields, bool]] = []
        for handle, item in raw.items():
            other = far.get(handle)
            if other is None or other["etag"] != item["etag"]:
                other = item
            floating = not item["all_day"] and other["dtstart"] != item["dtstart"]
            event = _event(item, calendar, ours=ours[handle], floating=floating)
            placed = not floating and not item["all_day"]
            if handle in outside and item.get("dtend") and (placed or not lies_in(*_span(item), near)):
                event["recurring"] = True
            elif not ours[handle]:
                event["unknown"] = [*event["unknown"], "recurring"]
            found.append((event, handle not in outside))
        return found


def _at(etag: str | None) -> Callable[[Fields], bool]:
    """Whether an event is at a revision; at any where there is none."""
    return lambda one: etag is None or one["etag"] == etag


def _other_than(etag: str) -> Callable[[Fields], bool]:
    return lambda one: one["etag"] != etag


def _conflict(now: Mapping[str, Any], sent: str) -> Conflict:
    """What is said where the server refused a change for its version; the current one, where it is shown."""
    current = now.get("etag")
    return Conflict(
        "the event was changed in between",
        hint="read it again, then decide",
        details={"revision": current} if current not in (None, sent) else {},
    )


def _event(raw: Mapping[str, Any], calendar: str, *, ours: bool, floating: bool) -> Fields:
    """The event as the profile has it, without what only a look at the calendar tells."""
    if raw["all_day"]:
        time, unknown = shown("allDay", _day(raw["dtstart_local"]), _day(raw.get("dtend_local")))
    elif floating:
        time, unknown = shown("floating", _wall(raw["dtstart_local"]), _wall(raw.get("dtend_local")))
    else:
        time, unknown = shown("instant", raw["dtstart"], raw.get("dtend"))
        if not ours:
            unknown = ["timeZone", *unknown]
    event: Fields = {
        "event": _path(raw["href"]),
        "calendar": calendar,
        "title": raw.get("summary") or "",
        **time,
        "revision": raw["etag"],
    }
    for name in ("description", "location"):
        if raw.get(name):
            event[name] = raw[name]
    status = str(raw.get("status") or "").lower()
    if status in _STATUSES:
        event["status"] = status
    elif status:
        unknown = [*unknown, "status"]
    if ours:
        event["recurring"] = False
    else:
        # The texts of an alarm are shown in place of the event's own.
        unknown = [*unknown, "title", "description", "freeBusyStatus"]
    if unknown:
        event["unknown"] = unknown
    return event


def _may_be_lost(event: Mapping[str, Any]) -> list[str]:
    """What an update would drop of an event that somebody else may have written."""
    unknown = cast("list[str]", event.get("unknown") or [])
    if "freeBusyStatus" not in unknown:
        return []
    lost = [name for name in ("timeZone", "title", "description", "status") if name in unknown]
    if event.get("timeZone"):
        lost.insert(0, "timeZone")
    lost.append("freeBusyStatus")
    if event.get("recurring") is not False:
        lost += ["recurrenceRules", "recurrenceOverrides"]
    return [*lost, "participants", "alerts"]


def _as_written(event: Mapping[str, Any]) -> Fields:
    """The time of an event that stays where it is, as the server would write it."""
    if event.get("showWithoutTime"):
        return functions.when({"start": event["start"], "end": event["end"], "showWithoutTime": True})
    if event.get("timeZone"):
        return functions.when({"start": f"{event['start']}Z", "end": f"{event['end']}Z"})
    return functions.when({"start": event["start"], "end": event["end"]})


def _when(time: Mapping[str, Any]) -> Fields:
    return {
        "dtstart": time["start"],
        "dtend": time["end"],
        "all_day": time["kind"] == "allDay",
        "timezone": "UTC",
    }


def _span(raw: Mapping[str, Any]) -> tuple[str, str]:
    """Start and end as shown, taken as UTC."""
    return _instant(raw["dtstart"]), _instant(raw.get("dtend") or raw["dtstart"])


def _instant(text: str) -> str:
    return functions.utc(text if len(text) > 10 else f"{text}T00:00:00Z")


def _day(text: str | None) -> str:
    return (text or "")[:10]


def _wall(text: str | None) -> str:
    return (text or "")[:19]


def _folder(raw: Mapping[str, Any]) -> str:
    return raw["href"].rpartition("/")[0] + "/"


def _path(href: str) -> str:
    return urlsplit(href).path
