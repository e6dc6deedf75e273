"""caldav-blade-mcp: answers are texts that don't escape what is in them, read with care."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final, cast

from hotplug.catalog.calendar import functions
from hotplug.errors import Internal, NotFound, TooLarge, Unavailable, failure
from hotplug.projection.calendar import TEXTS, Fields, doubted
from hotplug.projection.inplace import InPlaceCalendar, Seen

__all__ = ["CaldavBlade"]

_MAX_TITLE: Final = 500
_MAX_DESCRIPTION: Final = 5000
_MAX_FOUND: Final = 60
"""Events of a calendar that a search reads; for each one the server goes through the whole calendar."""

_HEAD: Final = (
    r"\nTime: (?:All day|\d\d:\d\d-(?:\d\d:\d\d|\?))"
    r"\nStart: (?P<start>\d{4}-\d\d-\d\d(?:T[^\n]*)?)"
    r"(?:\nEnd: (?P<end>\d{4}-\d\d-\d\d(?:T[^\n]*)?))?"
)
_PEOPLE: Final = r"(?:\nAttendee: [^\n]* <[^\n]*> \([^\n]*\))*"
_TAIL: Final = r"(?:\nRecurrence: (?P<recurrence>[^\n]+))?\nUID: {uid}(?:\nSequence: \d+)?"
_TEXTS: Final = r"(?:\nLocation: (?P<location>.+?))?(?:\nDescription: (?P<description>.+?))?"

_UID: Final = re.compile(r"\nUID: (?P<uid>[^\n]+)(?:\nSequence: \d+)?\Z")
_META: Final = "\n\n_meta: "
_ITEM: Final = " | uid="

_NOT_SENT: Final = re.compile(r"NewConnectionError|NameResolutionError|Connection refused")
_REFUSED: Final = re.compile(r"PutError at '4\d\d|DeleteError at '4\d\d")


class CaldavBlade(InPlaceCalendar):
    """The parts of the calendar."""

    server: ClassVar = "caldav-blade"
    reading: ClassVar = frozenset({"cal_calendars", "cal_event", "cal_events"})

    async def names(self) -> Sequence[tuple[str, str]]:
        text = await self.provider.ask("cal_calendars", {}, codec=None)
        body, meta = _parted(text)
        for note in cast("list[str]", meta.get("error_notes") or ()):
            rule = next((rule for rule in self.provider.document.errors if rule.found(note)), None)
            raise failure(rule.code if rule else "unavailable", f"caldav-blade lists no calendars: {note}")
        found: list[tuple[str, str]] = []
        rest = ""
        for line in body.split("\n"):
            rest = f"{rest}\n{line}" if rest else line
            name, mark, handle = rest.rpartition(_ITEM)
            # A name may go over several lines; its row ends where its uid stands.
            if mark and "\n" not in handle:
                found.append((handle, name))
                rest = ""
        if len(found) != meta["matched_total"]:
            raise Internal("caldav-blade's list of calendars can't be read", details={"text": text})
        return found

    async def read(self, handle: Fields, expected: Mapping[str, Any] | None = None) -> Seen:
        asked = {"event_uid": handle["uid"], "calendar": handle["calendar"]}
        return parse(await self.provider.ask("cal_event", asked, codec=None), handle["uid"], expected)

    async def again(self, handle: Fields, expected: Mapping[str, Any] | None, start: str, end: str) -> Seen | None:
        # Lists show no texts and no dates: one that has it says that it is there, and it is read by itself once more.
        _, uids = await self._listed(handle["calendar"], start, end)
        if handle["uid"] not in uids:
            return None
        try:
            return await self.read(handle, expected)
        except NotFound as error:
            raise Unavailable(
                "caldav-blade lists the event and doesn't show it", hint="read it again later", details=error.details
            ) from error

    async def within(self, calendar: str, start: str, end: str) -> Sequence[tuple[str, Seen]]:
        uids = list(dict.fromkeys((await self._listed(calendar, start, end))[1]))
        if len(uids) > _MAX_FOUND:
            raise TooLarge(
                f"about {len(uids)} events lie in the range, and caldav-blade shows the date of each only by itself",
                hint=f"search a shorter range, with up to {_MAX_FOUND} events in it and half a day on either side",
            )
        found: list[tuple[str, Seen]] = []
        for uid in uids:
            handle = {"calendar": calendar, "uid": uid}
            fact = await self.ours.recall(handle)
            try:
                found.append((uid, await self.read(handle, fact["event"] if fact else None)))
            except NotFound:
                # Gone since it was listed, or what looks like an item inside a text.
                continue
        return found

    async def occurring(
        self, calendar: str, listed: Sequence[tuple[str, Seen]], given: Mapping[str, Any]
    ) -> frozenset[str]:
        if not any(seen.recurring or "start" in seen.doubtful for _, seen in listed):
            return frozenset()
        bounds = functions.bounds(dict(given))
        return frozenset((await self._listed(calendar, bounds["from"], bounds["to"]))[1])

    async def starts(self, calendar: str, uid: str, start: str, end: str) -> tuple[int, int]:
        count, uids = await self._listed(calendar, start, end)
        return count, uids.count(uid)

    async def ready(self, event: Mapping[str, Any]) -> None:
        """Times that end in Z are kept as they are, whatever the zone of the process is."""

    def check(self, event: Mapping[str, Any]) -> None:
        if len(event.get("title", "")) > _MAX_TITLE:
            raise TooLarge(f"caldav-blade takes titles of up to {_MAX_TITLE} characters")

    async def add(self, calendar: str, event: Mapping[str, Any]) -> str:
        if len(event.get("description", "")) > _MAX_DESCRIPTION:
            raise TooLarge(f"caldav-blade takes descriptions of up to {_MAX_DESCRIPTION} characters")
        text = await self._write("cal_create", {"calendar": calendar, **_sent(event)})
        made = _UID.search(text)
        if not text.startswith("Created: ") or made is None:
            raise Internal("caldav-blade's answer can't be read", details={"text": text, "state": "unknown"})
        return made["uid"]

    async def change(self, handle: Fields, changes: Mapping[str, Any]) -> None:
        await self._write("cal_update", {"event_uid": handle["uid"], "calendar": handle["calendar"], **_sent(changes)})

    async def remove(self, handle: Fields) -> None:
        asked = {"event_uid": handle["uid"], "calendar": handle["calendar"], "confirm": True}
        await self._write("cal_delete", asked)

    async def _write(self, tool: str, arguments: Fields) -> str:
        try:
            return await self.provider.ask(tool, arguments, codec=None)
        except Unavailable as error:
            if _NOT_SENT.search(str(error.details.get("upstream"))):
                raise
            raise doubted(error, "it") from error
        except Internal as error:
            if _REFUSED.search(str(error.details.get("upstream"))):
                raise Internal(
                    f"the calendar server refused what caldav-blade wrote, so nothing was changed: {error.message}",
                    details=error.details,
                ) from error
            raise doubted(error, "it") from error

    async def _listed(self, calendar: str, start: str, end: str) -> tuple[int, list[str]]:
        """How many items a range has, and what looks like their uids: texts inside may look so too."""
        text = await self.provider.ask("cal_events", {"calendar": calendar, "start": start, "end": end}, codec=None)
        body, meta = _parted(text)
        uids = [line.rpartition(_ITEM)[2] for line in body.split("\n") if _ITEM in line]
        if len(uids) < meta["matched_total"]:
            raise Internal("caldav-blade lists events without a UID", details={"text": text[:4096]})
        return meta["matched_total"], uids


def parse(text: str, uid: str, expected: Mapping[str, Any] | None = None) -> Seen:
    """An event as `cal_event` shows it.

    Args:
        expected: The texts that should be there: where they are, they are known even if they look like the answer's
            own lines.

    Raises:
        Internal: It is none, or one of another uid.
    """
    tail = _TAIL.format(uid=re.escape(uid))
    if expected is not None:
        known = {name: str(expected.get(name) or "") for name in TEXTS}
        named = [
            f"\n{key}: {known[name]}"
            for key, name in (("Location", "location"), ("Description", "description"))
            if known[name]
        ]
        exact = re.fullmatch(
            re.escape(f"Title: {known['title']}") + _HEAD + re.escape("".join(named)) + _PEOPLE + tail, text
        )
        if exact is not None:
            return _seen(exact, known, text, ())
    heads = list(re.finditer(_HEAD, text))
    found = re.fullmatch(rf"Title: (?P<title>.*?){_HEAD}{_TEXTS}{_PEOPLE}{tail}", text, re.DOTALL)
    if not heads or found is None:
        raise Internal("caldav-blade's answer can't be read", details={"text": text[:4096], "uid": uid})
    doubtful: tuple[str, ...] = ()
    if len(heads) > 1:
        doubtful = (*TEXTS, "start", "end", "duration")
    elif any(len(re.findall(rf"\n{key}: ", text[heads[0].end() :])) > 1 for key in ("Location", "Description")):
        doubtful = TEXTS[1:]
    return _seen(found, {name: found[name] or "" for name in TEXTS}, text, doubtful)


def _seen(found: re.Match[str], texts: Mapping[str, str], text: str, doubtful: tuple[str, ...]) -> Seen:
    start = found["start"]
    return Seen(
        kind="allDay" if "T" not in start else "instant",
        start=start,
        end=found["end"],
        texts=texts,
        recurring=found["recurrence"] is not None,
        mark=hashlib.sha256(text.encode()).hexdigest(),
        # A floating time is shown as if it were in UTC.
        placed=not start.endswith("+00:00"),
        doubtful=doubtful,
    )


def _parted(text: str) -> tuple[str, Fields]:
    """The body of a list and the object at its end."""
    body, mark, meta = text.rpartition(_META)
    try:
        found: Any = json.loads(meta)
    except ValueError:
        found = None
    if not mark or not isinstance(found, dict) or not isinstance(cast("Fields", found).get("matched_total"), int):
        raise Internal("caldav-blade's list can't be read", details={"text": text[:4096]})
    return body, cast("Fields", found)


def _sent(fields: Mapping[str, Any]) -> Fields:
    return {name: fields[name] for name in (*TEXTS, "start", "end") if name in fields}
