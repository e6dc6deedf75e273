"""Series: when an event happens, once or by rules, with exceptions; its occurrences in a range.

A series keeps its hour over a change of clocks. An occurrence is named by the wall time that the rule gave it (its
recurrence id), whatever was changed about it since; one that falls into a gap of its zone happens after the gap, by the
offset before it. Sources: RFC 8984 sections 4.3 and 4.7.1, RFC 5545 section 3.8.5.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import chain, takewhile
from typing import Any, Final

from hotplug.catalog.calendar.rules import Rule, first_given, given_by, occurrence_id, wall_clock
from hotplug.catalog.calendar.times import Range, When, Zoned, overlaps, shift, start_instant
from hotplug.errors import InvalidArgument

__all__ = ["Occurrence", "Override", "Series"]

_LATEST: Final = datetime.max.replace(tzinfo=UTC).replace(tzinfo=None)
_REORDER: Final = 32
"""How many occurrences a gap in a zone can put out of order: those of a day, at one an hour."""


@dataclass(frozen=True, slots=True)
class Override:
    """What is different about one occurrence: not held, at another time, other fields (None: without that field)."""

    excluded: bool = False
    when: When | None = None
    fields: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class Occurrence:
    """One occurrence: the wall time that names it, when it is, and what is different about it."""

    id: datetime
    when: When
    override: Override | None = None


@dataclass(frozen=True, slots=True)
class Series:
    """When an event happens: once, or by rules, with exceptions by the wall time that names the occurrence.

    An override that no rule gives adds an occurrence, as RFC 8984 has it.
    """

    when: When
    rules: tuple[Rule, ...] = ()
    overrides: Mapping[datetime, Override] = field(default_factory=dict[datetime, Override])

    @property
    def recurring(self) -> bool:
        """Whether it is a series."""
        return bool(self.rules or self.overrides)

    def check(self) -> None:
        """Refuse a start that no rule gives: whether it counts is read differently from server to server.

        Raises:
            InvalidArgument: `details["first"]` is the first start from there on that the rules give, if any.
        """
        anchor = wall_clock(self.when)
        firsts = [first for rule in self.rules if (first := first_given(rule, anchor)) is not None]
        if anchor in firsts or not self.rules:
            return
        first = occurrence_id(self.when, min(firsts)) if firsts else None
        raise InvalidArgument(
            f"the start {occurrence_id(self.when, anchor)!r} is not one that recurrenceRules give",
            details={"first": first} if first else {},
            hint=f"start at {first}, or change the rules" if first else "change the rules",
        )

    def given(self, at: datetime) -> bool:
        """Whether the rules (or the start) give an occurrence of this name, held or not."""
        anchor = wall_clock(self.when)
        return at == anchor or any(
            next(given_by(rule, anchor).xafter(at, count=1, inc=True), None) == at for rule in self.rules
        )

    def given_among(self, names: Iterable[datetime]) -> set[datetime]:
        """Those of the names that the rules (or the start) give, held or not."""
        wanted = set(names)
        if not wanted:
            return set()
        anchor, latest = wall_clock(self.when), max(wanted)
        starts = (takewhile(lambda each: each <= latest, given_by(rule, anchor)) for rule in self.rules)
        return wanted & {anchor, *chain.from_iterable(starts)}

    def at(self, at: datetime) -> When:
        """When the occurrence of this name is, or would be, if nothing is different about it."""
        delta = at - wall_clock(self.when)
        return shift(self.when, delta) if delta else self.when

    def find(self, at: datetime) -> Occurrence | None:
        """The occurrence of this name, if it is held."""
        override = self.overrides.get(at)
        if override is None:
            return self._plain(at) if self.given(at) else None
        return None if override.excluded else Occurrence(at, override.when or self.at(at), override)

    def occurrences(self, within: Range | None = None) -> Iterator[Occurrence]:
        """Those that overlap the range, in order of start and name; all of them without one (it may never end)."""
        zone = None if within is None else within.zone

        def key(each: Occurrence) -> tuple[datetime, datetime]:
            return start_instant(each.when, zone), each.id

        changed = sorted(
            (
                Occurrence(at, override.when or self.at(at), override)
                for at, override in self.overrides.items()
                if not override.excluded
            ),
            key=key,
        )
        for occurrence in heapq.merge(self._in_order(within, key), changed, key=key):
            if within is None or overlaps(occurrence.when, within):
                yield occurrence

    def bounds(self) -> tuple[datetime, datetime | None]:
        """Instants between which all of it surely lies, in UTC; no second one where it may go on for ever."""
        whens = [self.when, *(each.when for each in self.overrides.values() if each.when)]
        walls = [wall_clock(each) for each in whens] + list(self.overrides)
        first = _moved(min(walls), -timedelta(days=2))
        if any(rule.until is None for rule in self.rules):
            return first, None
        walls += [rule.until for rule in self.rules if rule.until is not None]
        longest = max((each.duration for each in whens), key=lambda each: each.days * 86400 + each.seconds)
        return first, _moved(max(walls), timedelta(days=longest.days + 2, seconds=longest.seconds))

    def _in_order(self, within: Range | None, key: Any) -> Iterator[Occurrence]:
        plain = self._by_rule(within)
        if not isinstance(self.when, Zoned) or not any(
            rule.frequency == "hourly" or len(rule.by_hour) > 1 or len(rule.by_minute) > 1 for rule in self.rules
        ):
            yield from plain
            return
        waiting: list[tuple[tuple[datetime, datetime], Occurrence]] = []
        for each in plain:
            heapq.heappush(waiting, (key(each), each))
            if len(waiting) > _REORDER:
                yield heapq.heappop(waiting)[1]
        while waiting:
            yield heapq.heappop(waiting)[1]

    def _by_rule(self, within: Range | None) -> Iterator[Occurrence]:
        anchor = wall_clock(self.when)
        if within is None:
            earliest, latest = anchor, _LATEST
        else:
            length = self.when.duration
            # two days cover every offset of a zone; `overlaps` decides
            earliest = _moved(within.start, -timedelta(days=length.days + 2, seconds=length.seconds)).replace(
                tzinfo=None
            )
            latest = _moved(within.end, timedelta(days=2)).replace(tzinfo=None)
        starts = [iter([anchor]), *(given_by(rule, anchor).xafter(earliest, inc=True) for rule in self.rules)]
        previous: datetime | None = None
        for at in heapq.merge(*starts):
            if at > latest:
                return
            if at == previous or at < earliest or at in self.overrides:
                previous = at
                continue
            previous = at
            try:
                yield self._plain(at)
            except InvalidArgument:
                return  # past the year 9999

    def _plain(self, at: datetime) -> Occurrence:
        return Occurrence(at, self.at(at))


def _moved(moment: datetime, by: timedelta) -> datetime:
    try:
        return moment.replace(tzinfo=UTC) + by
    except OverflowError:
        return (datetime.min if by < timedelta(0) else datetime.max).replace(tzinfo=UTC)  # noqa: DTZ901 - it gets one
