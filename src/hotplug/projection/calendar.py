"""What projections of calendars share in Python: refusals by name, times as upstreams show them, own writes, pages.

No projection can keep apart what its upstream mixes up, so each refuses before it writes, says what it can't know, and
compares what came out with what was asked.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias, cast

from hotplug.catalog.calendar import functions, times
from hotplug.catalog.calendar.times import AllDay, Floating, Instant, Zoned, read_when
from hotplug.catalog.calendar.zones import format_utc
from hotplug.errors import ConnectionFailed, InDoubt, Internal, InvalidArgument, Unsupported

if TYPE_CHECKING:
    from hotplug.projection.runtime import ProjectedProvider

__all__ = [
    "FOREVER",
    "TEXTS",
    "TIMES",
    "Fields",
    "Kind",
    "Ours",
    "accepted",
    "around",
    "calendars_of",
    "cleaned",
    "clears",
    "doubted",
    "in_four_digits",
    "lies_in",
    "moved",
    "not_kept",
    "page",
    "refuse_losses",
    "refuse_series",
    "require_kept",
    "same_revision",
    "searched",
    "second_after",
    "shown",
    "time_of",
    "written_time",
]

Fields: TypeAlias = dict[str, Any]
"""Fields of an event in their wire names."""

Kind: TypeAlias = Literal["instant", "floating", "allDay"]

TEXTS: Final = ("title", "description", "location")
TIMES: Final = ("start", "end", "duration", "timeZone", "showWithoutTime")
FOREVER: Final = "9999-12-31T23:59:59Z"

_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_AHEAD: Final = 14 * 3600
"""Seconds of the zone furthest from UTC."""
_PAGE: Final = 1000
"""Events that a search gives when it names no limit."""
_CLEARABLE: Final = frozenset({"title", "description", "location", "status", "freeBusyStatus"})
_SERIES: Final = "recurrenceRules"


class _Memory(Protocol):
    async def put(self, name: str, value: Mapping[str, Any] | None) -> None: ...

    async def get(self, name: str) -> dict[str, Any] | None: ...


class _Remembers(Protocol):
    @property
    def memory(self) -> _Memory | None: ...


def accepted(given: Mapping[str, Any]) -> frozenset[str]:
    """The losses that a call accepts by name."""
    return frozenset(cast("Iterable[str]", given.get("accept") or ()))


def refuse_losses(given: Mapping[str, Any], lost: Iterable[str], why: str) -> None:
    """Refuse a call that would lose something, unless it accepts each loss by name.

    Raises:
        Unsupported: `details["lost"]` has the names that the call doesn't accept yet.
    """
    names = list(dict.fromkeys(lost))
    left = [name for name in names if name not in accepted(given)]
    if left:
        raise Unsupported(why, hint=f"accept: {json.dumps(names)} lets it through all the same", details={"lost": left})


def refuse_series(given: Mapping[str, Any], event: Mapping[str, Any], act: str) -> None:
    """Refuse an act on a series, or on what may be one, unless the call accepts that.

    Args:
        act: What would happen, in the passive: `"deleted"`.

    Raises:
        Unsupported: It is a series (lost `recurrenceRules`), or nobody knows whether it is (lost `recurring`).
    """
    if event.get("recurring"):
        refuse_losses(given, [_SERIES], f"the event is the first of a series, and the whole series would be {act}")
    elif "recurring" in (event.get("unknown") or ()):
        refuse_losses(given, ["recurring"], f"the event may be one of a series, and the whole series would be {act}")


def cleaned(fields: Mapping[str, Any]) -> Fields:
    """The fields with their texts as iCalendar can carry them: line ends are `\\n`.

    Raises:
        InvalidArgument: A text has a control character other than tab and line end (RFC 5545, 3.3.11).
    """
    found = dict(fields)
    for name in TEXTS:
        text = found.get(name)
        if not isinstance(text, str):
            continue
        text = text.replace("\r\n", "\n")
        control = _CONTROL.search(text)
        if control is not None:
            raise InvalidArgument(
                f"{name} has the control character U+{ord(control[0]):04X} at position {control.start()}",
                hint="texts of events carry tabs and line ends, and no other control characters",
            )
        found[name] = text
    return found


def clears(given: Mapping[str, Any], changes: Mapping[str, Any]) -> list[str]:
    """The names in an update's `clear`, each once.

    Raises:
        InvalidArgument: A name of something that no event can be without, or that the same call sets.
    """
    names = list(dict.fromkeys(cast("Iterable[str]", given.get("clear") or ())))
    for name in names:
        if name not in _CLEARABLE:
            raise InvalidArgument(
                f"clear names {name!r}, which can't be emptied", details={"choices": sorted(_CLEARABLE)}
            )
        if name in changes:
            raise InvalidArgument(f"{name} is both changed and cleared", hint="do one of the two")
    return names


def time_of(given: Mapping[str, Any], keeps: Iterable[str], *, server: str, lost: Sequence[str] = ()) -> Fields:
    """The time in the input of a create, told by `$when`, where the upstream keeps that kind of time.

    A kind that it doesn't keep is refused with the field that says it (`timeZone` or `showWithoutTime`), or, where the
    call accepts that loss, given as the instants that it means; a floating time means none and is refused in any case.

    Args:
        keeps: Of `instant`, `zoned`, `floating`, `allDay`.
        server: Its name, for the message.
        lost: What else would be lost, so that one refusal names everything.

    Raises:
        InvalidArgument: The fields say no time.
        Unsupported: As above.
    """
    return _kept_kind(given, functions.when(dict(given)), keeps, server, lost)


def moved(
    given: Mapping[str, Any],
    event: Mapping[str, Any],
    keeps: Iterable[str],
    *,
    server: str,
    lost: Sequence[str] = (),
) -> Fields | None:
    """The time that an update gives an event, as `time_of`; None where it changes no time.

    Raises:
        InvalidArgument: The change and the event together say no time.
        Unsupported: The upstream doesn't keep that kind of time, or shows no end that the change could be counted from.
    """
    changes = cast("Fields", given.get("changes") or {})
    if not any(name in changes for name in TIMES):
        refuse_losses(given, lost, f"{server} would lose {', '.join(lost)}")
        return None
    bare = not any(name in changes for name in ("end", "duration"))
    if bare and event.get("duration") is None:
        raise InvalidArgument(
            "the event shows no end, so a new start alone doesn't say how long it lasts",
            hint="give end or duration too",
        )
    return _kept_kind(given, functions.changed(changes, dict(event)), keeps, server, lost)


def _kept_kind(
    given: Mapping[str, Any], found: Fields, keeps: Iterable[str], server: str, lost: Sequence[str]
) -> Fields:
    kind = found["kind"]
    if kind in keeps:
        refuse_losses(given, lost, f"{server} would lose {', '.join(lost)}")
        return found
    name, said = {
        "allDay": ("showWithoutTime", "all-day events"),
        "zoned": ("timeZone", "zones"),
        "floating": ("timeZone", "floating times"),
    }.get(kind, ("start", "instants"))
    if kind != "zoned":
        # Nobody says which instants these mean, so there is nothing that could be accepted.
        raise Unsupported(
            f"{server} doesn't keep {said}",
            hint="give start and end with an offset",
            details={"lost": [name, *lost]},
        )
    refuse_losses(
        given,
        [name, *lost],
        f"{server} doesn't keep {said}: it would store the instants {found['utcStart']} to {found['utcEnd']}",
    )
    return functions.when({"start": found["utcStart"], "end": found["utcEnd"]})


def in_four_digits(time: Fields, *, server: str) -> Fields:
    """The time, where its start lies in the years from 1000 on; some upstreams write earlier ones without their zeros.

    Raises:
        Unsupported: It lies before.
    """
    if time["start"] < "1000":
        raise Unsupported(
            f"{server} can't write the year of {time['start']}",
            hint="it takes the years from 1000 on",
            details={"lost": ["start"]},
        )
    return time


def shown(kind: Kind, start: str, end: str | None) -> tuple[Fields, list[str]]:
    """The time fields of an event as an upstream shows it, and the names of those that it doesn't show.

    Args:
        kind: What the two texts are: instants with an offset, local times, dates (the end exclusive).
        end: None or empty where the upstream shows none; one before the start counts as not shown.

    Raises:
        Internal: The start is no time of that kind.
    """
    extra: Fields = {"floating": {"time_zone": times.FLOATING}, "allDay": {"show_without_time": True}}.get(kind, {})
    if end:
        try:
            return read_when(start, end, None, **extra).wire(), []
        except InvalidArgument:
            pass
    try:
        found = read_when(start, None, "P1D" if kind == "allDay" else "PT0S", **extra).wire()
    except InvalidArgument as error:
        raise Internal(f"the server shows a start that is none: {error.message}", details={"text": start}) from None
    for name in ("end", "duration", "utcEnd"):
        found.pop(name, None)
    return found, ["end", "duration"]


def second_after(text: str) -> str:
    """The instant a second later, `…Z`; the end of the year 9999 where there is none."""
    return functions.plus_seconds(text, 1)


def around(bounds: Mapping[str, Any]) -> Fields:
    """A range as far as zones widen it: where else floating and all-day events may be placed, taken as UTC."""
    return {
        "from": functions.plus_seconds(bounds["from"], -_AHEAD),
        "to": functions.plus_seconds(bounds["to"], _AHEAD),
    }


def lies_in(start: str, end: str, bounds: Mapping[str, Any]) -> bool:
    """Whether instants overlap a range `{from, to}`, by its rule: what has no length counts at its start.

    All four are `…Z`; they compare as texts.
    """
    return bounds["from"] <= start < bounds["to"] if start >= end else start < bounds["to"] and end > bounds["from"]


_Key: TypeAlias = "Callable[[Any], Any]"


def _same_time(text: Any) -> Any:
    try:
        return functions.utc(text)
    except InvalidArgument:
        return text


_COMPARED: Final[Mapping[str, _Key]] = {
    "start": _same_time,
    "end": _same_time,
    "timeZone": lambda value: value or None,
    "showWithoutTime": bool,
    "title": lambda value: value or "",
    "description": lambda value: value or "",
    "location": lambda value: value or "",
    "status": lambda value: value,
    "freeBusyStatus": lambda value: value,
}


def not_kept(asked: Mapping[str, Any], found: Mapping[str, Any]) -> list[str]:
    """The names of the fields asked for that an event doesn't have so.

    What the event says to be unknown isn't compared; an empty text and none are the same.
    """
    unknown = frozenset(cast("Iterable[str]", found.get("unknown") or ()))
    return [
        name
        for name, key in _COMPARED.items()
        if name in asked and name not in unknown and key(asked[name]) != key(found.get(name))
    ]


def require_kept(asked: Mapping[str, Any], found: Mapping[str, Any], *, accept: Iterable[str], server: str) -> None:
    """Compare what was written with what was asked (FR-15).

    Raises:
        Internal: The server said that it was done and kept something else; `details["lost"]` has the names,
            `details["state"]` is `done`.
    """
    lost = [name for name in not_kept(asked, found) if name not in set(accept)]
    if lost:
        raise Internal(
            f"{server} wrote the event and did not keep {', '.join(lost)}",
            details={
                "lost": lost,
                "state": "done",
                "asked": {name: asked[name] for name in lost},
                "found": {name: found.get(name) for name in lost},
            },
        )


def doubted(error: ConnectionFailed, what: str) -> InDoubt:
    """The error of an act of which nobody can say whether it was done."""
    return InDoubt(
        f"{what} may or may not have been done: {error.message}",
        hint="read before anything else",
        details={**error.details, "state": "unknown"},
    )


def written_time(time: Mapping[str, Any]) -> Fields:
    """The fields of a time, as `time_of` gives it, that an event read back is compared with."""
    return {name: time[name] for name in ("start", "end", "showWithoutTime") if name in time}


def same_revision(given: Mapping[str, Any], current: str) -> bool:
    """Whether a call is based on no revision, or on the current one."""
    return given.get("revision") in (None, current)


class Ours:
    """What is known of the events that were written last by this projection, by their handles, over restarts."""

    def __init__(self, provider: _Remembers) -> None:
        self._provider = provider
        self._here: dict[str, Fields] = {}

    async def remember(self, handle: Any, fact: Mapping[str, Any]) -> None:
        """Keep a fact of an event just written."""
        name = _name(handle)
        if self._provider.memory is None:
            self._here[name] = dict(fact)
        else:
            await self._provider.memory.put(name, fact)

    async def recall(self, handle: Any) -> Fields | None:
        """The fact of the last write; None for an event that this projection never wrote."""
        name = _name(handle)
        if self._provider.memory is None:
            return self._here.get(name)
        return await self._provider.memory.get(name)

    async def forget(self, handle: Any) -> None:
        """Drop the fact, of an event that was deleted or may have been changed."""
        name = _name(handle)
        self._here.pop(name, None)
        if self._provider.memory is not None:
            await self._provider.memory.put(name, None)


def _name(handle: Any) -> str:
    return f"event:{handle if isinstance(handle, str) else json.dumps(handle, sort_keys=True, ensure_ascii=False)}"


def page(events: Iterable[Fields], given: Mapping[str, Any], *, always: Iterable[Fields] = ()) -> Fields:
    """What a search answers: the events that lie in its range and mention its query, in order, and a cursor if more.

    Events are ordered by start and then by handle, and the cursor is the last one's place: no state is kept for it.

    Args:
        events: What may lie in the range.
        always: What does so by an occurrence that isn't shown.

    Raises:
        InvalidArgument: The cursor isn't one of ours.
    """
    wanted = {name: given[name] for name in ("from", "to", "timeZone") if name in given}
    after = _read_cursor(given.get("cursor"))
    zone = given.get("timeZone")
    inside = [*(event for event in events if functions.in_range(_timed(event), wanted)), *always]
    placed = sorted(
        ((_place(event, zone), event) for event in inside if functions.mentions(event, given.get("query"))),
        key=lambda item: item[0],
    )
    left = [item for item in placed if after is None or item[0] > after]
    limit = int(given.get("limit") or _PAGE)
    found: Fields = {"events": [event for _, event in left[:limit]]}
    if len(left) > limit:
        found["cursor"] = _cursor(left[limit - 1][0])
    return found


async def calendars_of(provider: ProjectedProvider) -> list[str]:
    """The handles of all calendars, as the projection lists them."""
    listed = await provider.run(provider.plans["calendar.calendars"], {})
    return [one["calendar"] for one in listed["calendars"]]


async def searched(
    provider: ProjectedProvider,
    given: Mapping[str, Any],
    listed: Callable[[str, Fields], Awaitable[Iterable[tuple[Fields, bool]]]],
) -> Fields:
    """What a search answers, as `page`, of one calendar or of all that there are.

    Args:
        listed: The events of a calendar that may lie in a range `{from, to}`, each with whether it does so as it is
            shown, or by an occurrence that isn't shown.
    """
    bounds = functions.bounds(dict(given))
    calendars = [given["calendar"]] if "calendar" in given else await calendars_of(provider)
    found: list[Fields] = []
    hidden: list[Fields] = []
    for calendar in calendars:
        for event, shown_inside in await listed(calendar, bounds):
            (found if shown_inside else hidden).append(event)
    return page(found, given, always=hidden)


def _timed(event: Mapping[str, Any]) -> Fields:
    """The event with a length to place it by: what shows no end counts at its start, a day for dates."""
    if event.get("end") or event.get("duration"):
        return dict(event)
    return {**event, "duration": "P1D" if event.get("showWithoutTime") else "PT0S"}


def _place(event: Mapping[str, Any], zone: str | None) -> tuple[str, str]:
    timed = _timed(event)
    found = read_when(
        timed["start"],
        None if timed.get("duration") else timed.get("end"),
        timed.get("duration"),
        timed.get("timeZone"),
        timed.get("showWithoutTime"),
    )
    assert isinstance(found, Instant | Zoned | Floating | AllDay)
    return format_utc(times.start_instant(found, zone)), _name(event["event"])


def _cursor(place: Sequence[str]) -> str:
    return base64.urlsafe_b64encode(json.dumps(list(place)).encode()).decode().rstrip("=")


def _read_cursor(cursor: str | None) -> tuple[str, str] | None:
    if cursor is None:
        return None
    try:
        place = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except (ValueError, binascii.Error):
        place = None
    if isinstance(place, list):
        parts = cast("list[Any]", place)
        if len(parts) == 2 and all(isinstance(part, str) for part in parts):
            return parts[0], parts[1]
    raise InvalidArgument(f"the cursor {cursor!r} is none of this server", hint="leave it out to start anew")
