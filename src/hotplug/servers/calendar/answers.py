"""Answers to invitations: whose calendar it is, and what an answer changes in an event."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, Final, cast

from hotplug.catalog.calendar.records import EventRecord, apply_changes
from hotplug.catalog.calendar.recurrence import Override
from hotplug.catalog.calendar.rules import wall_clock
from hotplug.catalog.calendar.scopes import change_following, change_one, find
from hotplug.errors import ConfigError, InvalidArgument, Unsupported

__all__ = ["ANSWERS", "answered", "read_address", "same_address"]

ANSWERS: Final = ("accepted", "declined", "tentative")
"""What an invitation can be answered with; `needs-action` and `delegated` are no answers of one's own."""

_ADDRESS: Final = re.compile(r"[^\s\x00-\x1f\x7f@<>(),;:\"\\\[\]]+@[^\s\x00-\x1f\x7f@<>(),;:\"\\\[\]]+")


def read_address(text: str) -> str:
    """The mail address of a calendar's owner, `mailto:` taken off.

    Raises:
        ConfigError: It is none: `me@example.org`, without a name before it.
    """
    address = _bare(text.strip())
    if _ADDRESS.fullmatch(address) is None:
        raise ConfigError(
            f"{text!r} is not the mail address of a calendar's owner",
            hint="write one as invitations name it: me@example.org",
        )
    return address


def same_address(one: str, other: str) -> bool:
    """Whether two addresses are of one mailbox: as mail programs do it, whatever their case."""
    return _bare(one.strip()).casefold() == _bare(other.strip()).casefold()


def _bare(address: str) -> str:
    return address[7:] if address[:7].lower() == "mailto:" else address


def answered(
    record: EventRecord, address: str, answer: str, scope: str | None, at: datetime | None, uid: str
) -> tuple[EventRecord | None, EventRecord]:
    """The event with the answer of one of its participants, in the form of `change_following`.

    Args:
        record: A single event, or a series.
        address: Whose answer it is.
        answer: One of `ANSWERS`.
        scope: Of a series: `this`, `following` or `all`; `all` is also the answer for occurrences with their own list.
        at: The occurrence, needed for `this` and `following`.
        uid: For the rest of a series, which `following` makes an event of its own.

    Raises:
        InvalidArgument: It is no answer; nobody is invited, or not this one.
        NotFound: There is no such occurrence.
        Unsupported: A series that somebody else organizes would have to be split.
    """
    if answer not in ANSWERS:
        raise InvalidArgument(f"participation {answer!r} is no answer", hint=f"use {', '.join(ANSWERS)}")
    if not record.recurring:
        return None, _throughout(record, address, answer)
    if scope == "this":
        assert at is not None
        own = (find(record, at).override or Override()).fields
        invited = own.get("participants", record.participants)
        told = _with_answer(invited, address, answer)
        if told is None:
            raise _not_invited(record.uid, address, somebody=bool(invited))
        return None, change_one(record, at, {"participants": told})
    if at is not None:
        find(record, at)
    if scope != "following" or at == wall_clock(record.when):
        return None, _throughout(record, address, answer)
    assert at is not None
    if record.organizer is not None and not same_address(record.organizer, address):
        raise Unsupported(
            f"the series {record.uid!r} is organized by {record.organizer!r}: an answer from one occurrence on would"
            " split it, and what its organizer changes later would be lost",
            details={"lost": ["scope"]},
            hint="answer single occurrences with the scope this, or the whole series with all",
        )
    ended, rest = change_following(record, at, {}, (), uid)
    return ended, _throughout(rest, address, answer)


def _throughout(record: EventRecord, address: str, answer: str) -> EventRecord:
    """The event with the answer wherever the address is invited: also in occurrences that have their own list."""
    overrides: dict[datetime, Override] = {}
    invited = somebody = False
    for at, override in record.overrides.items():
        told = _with_answer(override.fields.get("participants"), address, answer)
        somebody |= bool(override.fields.get("participants"))
        invited |= told is not None
        overrides[at] = (
            override if told is None else replace(override, fields={**override.fields, "participants": told})
        )
    told = _with_answer(record.participants, address, answer)
    if told is None and not invited:
        raise _not_invited(record.uid, address, somebody=somebody or bool(record.participants))
    return apply_changes(replace(record, overrides=overrides), {} if told is None else {"participants": told})


def _with_answer(participants: Any, address: str, answer: str) -> list[dict[str, Any]] | None:
    """The list with the answer in it; None if the address isn't in it."""
    if not isinstance(participants, list):
        return None
    entries = [dict(each) for each in cast("list[Mapping[str, Any]]", participants)]
    own = [each for each in entries if same_address(str(each.get("email", "")), address)]
    for each in own:
        each["participationStatus"] = answer
    return entries if own else None


def _not_invited(uid: str, address: str, *, somebody: bool) -> InvalidArgument:
    if not somebody:
        return InvalidArgument(f"the event {uid!r} invites nobody, so there is no invitation to answer")
    return InvalidArgument(
        f"{address!r}, whose calendar this is, is not among the participants of the event {uid!r}",
        hint="only an invitation to oneself can be answered; a calendar's owner is named by me=ADDRESS in its target",
    )
