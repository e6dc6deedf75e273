"""Participants as ATTENDEE and ORGANIZER lines (RFC 5545 section 3.8.4), edited without touching what they also say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, cast
from urllib.parse import quote, unquote

from hotplug.servers.calendar.answers import same_address
from hotplug.servers.calendar.lines import Component, Line, line, with_param

__all__ = ["add_organizer", "edit_attendees", "fits_attendees", "read_attendees", "read_organizer"]

_STATUSES: Final = ("needs-action", "accepted", "declined", "tentative", "delegated")
_ROLES: Final[Mapping[bool, str]] = {True: "OPT-PARTICIPANT", False: "REQ-PARTICIPANT"}
_PARAMS: Final[Mapping[str, str]] = {"name": "CN", "optional": "ROLE", "participationStatus": "PARTSTAT"}
_PLAIN: Final = "@+!$'*"
"""What of an address a `mailto:` URI has as it is (RFC 6068), besides letters, digits and `-._~`."""


def fits_attendees(participants: object) -> bool:
    """Whether ATTENDEE lines can say it: a list of participants with an address each."""
    return isinstance(participants, list) and all(
        isinstance(each, Mapping) and isinstance(cast("Mapping[str, Any]", each).get("email"), str)
        for each in cast("list[Any]", participants)
    )


def read_attendees(event: Component) -> tuple[list[dict[str, Any]] | None, bool]:
    """The participants of an event, and whether all of them were told: one without a mail address isn't."""
    read = [_read(each) for each in event.lines("ATTENDEE")]
    found = [each for each in read if each is not None]
    return found or None, len(found) == len(read)


def read_organizer(event: Component) -> str | None:
    """The address of who invites; what stands there, if it is no mail address."""
    organizer = event.first("ORGANIZER")
    return None if organizer is None else _address(organizer) or organizer.value


def add_organizer(event: Component, address: str) -> None:
    """Say who invites, where that isn't said: attendees are only told of an event that has an organizer."""
    if event.first("ORGANIZER") is None:
        event.put(("ORGANIZER",), [line("ORGANIZER", f"mailto:{quote(address, safe=_PLAIN)}")])


def edit_attendees(event: Component, after: list[dict[str, Any]] | None) -> None:
    """Bring the ATTENDEE lines of an event to what it says after a change.

    A line of somebody who stays is kept, with only those of its parameters changed that differ; so are lines of
    attendees without a mail address. New ones have SCHEDULE-AGENT=NONE (RFC 6638 section 7.1): a CalDAV server that
    the file comes to would else send mail, and here only `notify: "none"` is obeyed.
    """
    standing = [(each, was) for each in event.lines("ATTENDEE") if (was := _read(each)) is not None]
    new = iter([_line(each, standing) for each in after or ()])
    items: list[Line | Component] = []
    end = None
    for item in event.items:
        if isinstance(item, Line) and item.name == "ATTENDEE":
            kept = item if _read(item) is None else next(new, None)
            items += [] if kept is None else [kept]
            end = len(items)
        else:
            items.append(item)
    if end is None:
        end = next((at for at, item in enumerate(items) if isinstance(item, Component)), len(items))
    event.items = [*items[:end], *new, *items[end:]]


def _line(wanted: Mapping[str, Any], standing: list[tuple[Line, dict[str, Any]]]) -> Line:
    """The line of a participant; one that stands is used up."""
    for index, (found, was) in enumerate(standing):
        if same_address(was["email"], wanted["email"]):
            del standing[index]
            for key, name in _PARAMS.items():
                if wanted.get(key) != was.get(key):
                    found = with_param(found, name, _param(key, wanted.get(key)))
            return found if was["email"] == wanted["email"] else _readdressed(found, wanted["email"])
    params = {name: text for key, name in _PARAMS.items() if (text := _param(key, wanted.get(key))) is not None}
    return line("ATTENDEE", _uri(wanted["email"]), **params, **{"SCHEDULE-AGENT": "NONE"})


def _readdressed(old: Line, email: str) -> Line:
    new = line("ATTENDEE", _uri(email))
    for name, values in old.params:
        if name != "EMAIL" and values:
            new = with_param(new, name, *values)
    return new


def _uri(email: str) -> str:
    return f"mailto:{quote(email, safe=_PLAIN)}"


def _param(key: str, value: Any) -> str | None:
    if value is None:
        return None
    if key == "optional":
        return _ROLES[bool(value)]
    return str(value).upper() if key == "participationStatus" else str(value)


def _read(attendee: Line) -> dict[str, Any] | None:
    email = _address(attendee)
    return None if email is None else {"email": email, **dict(_told(attendee))}


def _told(attendee: Line) -> Iterator[tuple[str, Any]]:
    name = attendee.param("CN")
    if name is not None:
        yield "name", name
    role = (attendee.param("ROLE") or "").upper()
    for optional, word in _ROLES.items():
        if role == word:
            yield "optional", optional
    status = (attendee.param("PARTSTAT") or "").lower()
    if status in _STATUSES:
        yield "participationStatus", status


def _address(person: Line) -> str | None:
    value = person.value.strip()
    return unquote(value[7:]) if value[:7].lower() == "mailto:" else person.param("EMAIL")
