"""The places that look in one window: the subject and its witnesses, and which of them a condition is held against."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import anyio
import anyio.lowlevel

from hotplug.connect.claims.conditions import Condition, Selector
from hotplug.connect.claims.realm import Closing, Realm
from hotplug.connect.claims.redaction import Redactor
from hotplug.connect.claims.translation import witness_channel
from hotplug.errors import InvalidArgument
from hotplug.evidence import (
    CHANNEL_TABLE,
    BlindSpot,
    ChannelDescriptor,
    Coverage,
    Observation,
    Provenance,
    SubjectRef,
    Window,
    closed_cleanly,
    could_ever_prove,
    declared,
    weaker_grade,
)
from hotplug.evidence.vocabulary import ProvenanceClass
from hotplug.evidence.witness import Witness

__all__ = ["Sources", "WitnessView"]


_MANY: Final = 500
"""Observations that are read at one go."""


@dataclass
class WitnessView:
    """One witness in one window, its channels renamed where another place has one of that name.

    A witness may be anybody's code: whatever one of its methods raises is a look that failed, told as a gap on all its
    channels. It never ends the window.
    """

    witness: Witness
    declared: tuple[ChannelDescriptor, ...] = ()
    """Its channels under its own names, as it said when it was met; never worth more than the table says."""
    names: Mapping[str, str] = field(default_factory=dict[str, str])
    """Its own names of channels to those of the window."""
    window: Window | None = None
    failed: str | None = None
    covered: Coverage | None = None
    _ended: bool = False
    _identity: SubjectRef | None = None
    _known: Mapping[str, tuple[str, str, ProvenanceClass]] = field(
        default_factory=dict[str, tuple[str, str, ProvenanceClass]]
    )
    _places: dict[int, tuple[Observation, Observation]] = field(
        default_factory=dict[int, tuple[Observation, Observation]]
    )
    """The observations as it gave them, by their identity in memory, and as they stand in the window."""

    @property
    def name(self) -> str:
        return self.witness.name

    @property
    def _prefix(self) -> str:
        return f"{self.window.id if self.window else self.name}/{self.name}:"

    @property
    def subject(self) -> SubjectRef:
        """What it looks at."""
        if self.window is not None:
            return self.window.subject
        return self._identity or SubjectRef(surface="service", instance=f"{self.name}-{id(self)}-unknown")

    @property
    def channels(self) -> tuple[ChannelDescriptor, ...]:
        """What it declares, under the names of the window."""
        return tuple(one.model_copy(update={"id": self.names.get(one.id, one.id)}) for one in self.declared)

    def meet(self) -> None:
        """Ask what it sees, and how: once in a window."""
        try:
            self.declared = tuple(map(_within_table, self.witness.channels()))
            names = [one.id for one in self.declared]
            if doubled := sorted({name for name in names if names.count(name) > 1}):
                self.declared = tuple(declared(self.declared).values())
                self.failed = f"it declares {', '.join(doubled)} twice, and which one holds can't be told"
                return
            self._known = {name: self.witness.provenance(name) for name in names}
            self._identity = self.witness.identity()
        except Exception as error:
            self.failed = f"{type(error).__name__} when it was asked what it sees"

    async def open(self, budget_ms: int) -> None:
        if self.failed is not None:
            return
        try:
            self.window = await self.witness.open_window(budget_ms)
        except Exception as error:
            # Another's code: whatever it raises, the witness couldn't look, and the action goes on.
            self.failed = f"{type(error).__name__} at the opening of its window"

    async def before(self) -> tuple[Observation, ...]:
        return await self._looked(self.witness.before)

    async def observe(self) -> tuple[Observation, ...]:
        return await self._looked(self.witness.observe)

    async def _looked(self, look: Callable[[Window], Awaitable[Iterable[Observation]]]) -> tuple[Observation, ...]:
        if self.window is None or self.failed is not None:
            return ()
        try:
            return tuple(map(self._placed, await look(self.window)))
        except Exception as error:
            self.failed = f"{type(error).__name__} while it looked"
            return ()

    def _placed(self, one: Observation) -> Observation:
        known = self._places.get(id(one))
        if known is not None and known[0] is one:
            return known[1]
        placed = one.model_copy(
            update={"id": f"{self._prefix}{one.id}", "channel": self.names.get(one.channel, one.channel)}
        )
        self._places[id(one)] = one, placed
        return placed

    def provenance(self, one: Observation) -> Provenance:
        """How one of its observations came to be known."""
        base = next((own for own, name in self.names.items() if name == one.channel), one.channel)
        source, method, class_ = self._known.get(base, (self.name, "a channel that it doesn't declare", "observed"))
        return Provenance(class_=class_, source=source, method=method, subject=self.subject, at=one.at)

    async def end(self, patience: float | None = None) -> None:
        """Let it look for the last time, and end its window.

        Args:
            patience: Seconds that it may take.
        """
        if self.window is None or self._ended:
            return
        try:
            with anyio.fail_after(patience):
                self.window = await self.witness.close_window(self.window)
            self._ended = True
        except Exception as error:
            self.failed = self.failed or f"{type(error).__name__} at the closing of its window"

    async def close(self) -> Closing:
        """What it could see up to its end, which comes first; as blind spots where that wasn't a clean one."""
        if self.window is not None and self.failed is None:
            try:
                return self._closing(self.window, await self.witness.coverage(self.window))
            except Exception as error:
                self.failed = f"{type(error).__name__} when it was asked what it couldn't see"
        return Closing(
            None,
            self._everywhere(f"the witness {self.name} could not look: {self.failed or 'it opened no window'}"),
            (),
        )

    def _closing(self, window: Window, covered: Coverage) -> Closing:
        spots = None if covered.blind_spots is None else tuple(map(self._renamed, covered.blind_spots))
        if not closed_cleanly(window):
            ended = window.closed_by or "nothing"
            spots = (*(spots or ()), *self._everywhere(f"the window of the witness {self.name} ended by {ended}"))
        observed = tuple(self.names.get(one, one) for one in covered.observed)
        self.covered = covered.model_copy(update={"window": window.id, "blind_spots": spots, "observed": observed})
        return Closing(None, spots, tuple(one.id for one in self.channels if one.id in observed))

    def _renamed(self, spot: BlindSpot) -> BlindSpot:
        if spot.channel is None:
            return spot
        return spot.model_copy(update={"channel": self.names.get(spot.channel, spot.channel)})

    def _everywhere(self, detail: str) -> tuple[BlindSpot, ...]:
        spots = tuple(
            BlindSpot(kind="channel-unobserved", channel=one.id, detail=detail, impeaching=False)
            for one in self.channels
        )
        return spots or (BlindSpot(kind="channel-unobserved", detail=detail, impeaching=False),)


def _within_table(channel: ChannelDescriptor) -> ChannelDescriptor:
    """A witness's channel: its independence is its own to say, its grade never above the table's."""
    limit = CHANNEL_TABLE.get(channel.id)
    if limit is None:
        return channel
    return channel.model_copy(update={"grade": weaker_grade(channel.grade, limit.grade)})


@dataclass
class Sources:
    """Everything that looks in one window."""

    realm: Realm
    witnesses: tuple[WitnessView, ...]
    redactor: Redactor
    _facts: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    """The names of the facts that each channel showed when the window was opened."""
    _origins: dict[int, tuple[Observation, Provenance]] = field(
        default_factory=dict[int, tuple[Observation, Provenance]]
    )

    def name_channels(self) -> None:
        """Give each channel of the window one name: a witness's is renamed where another place has it already."""
        for view in self.witnesses:
            view.meet()
        own = {one.id for one in self.realm.channels}
        every = Counter([*own, *(one.id for view in self.witnesses for one in view.declared)])
        taken = set(every)
        for view in self.witnesses:
            names: dict[str, str] = {}
            for one in view.declared:
                name = one.id
                if every[name] > 1:
                    name = witness_channel(view.name, one.id)
                    while name in taken:
                        name += "-again"
                    taken.add(name)
                names[one.id] = name
            view.names = names

    @property
    def channels(self) -> tuple[ChannelDescriptor, ...]:
        """What is declared, by whomever."""
        return (*self.realm.channels, *(one for view in self.witnesses for one in view.channels))

    def channel_of(self, selector: Selector) -> str:
        """The channel that a condition reads: its witness's, else where the sense has the most weight.

        Of a fact that some place showed at the opening, only among those that did.

        Raises:
            InvalidArgument: There is no such witness, or two witnesses show the sense with equal weight.
        """
        if selector.witness is not None:
            view = next((one for one in self.witnesses if one.name == selector.witness), None)
            if view is None:
                named = ", ".join(one.name for one in self.witnesses) or "none"
                raise InvalidArgument(
                    f"{selector} is held against the witness {selector.witness!r}, and it isn't one here",
                    hint=f"add it with with_witness(); witnesses: {named}",
                )
            return view.names.get(selector.sense, witness_channel(view.name, selector.sense))
        if selector.own:
            return selector.sense
        found: list[tuple[int, str, str | None]] = []
        found.extend((_weight(one), one.id, None) for one in self.realm.channels if one.id == selector.sense)
        for view in self.witnesses:
            seen = (one for one in view.declared if one.id == selector.sense)
            found.extend((_weight(one), view.names[one.id], view.name) for one in seen)
        if not found:
            return selector.sense
        if selector.fact is not None:
            # Who doesn't show a fact of that name doesn't look at it: its silence says nothing.
            found = [one for one in found if selector.fact in self._facts.get(one[1], ())] or found
        best = max(weight for weight, _, _ in found)
        strongest = [(channel, witness) for weight, channel, witness in found if weight == best]
        # The subject's own comes first among equals.
        if len(strongest) > 1 and strongest[0][1] is not None:
            names = " or ".join(f"{witness}.{selector.sense}(…)" for _, witness in strongest)
            raise InvalidArgument(f"{selector} can be seen by several witnesses alike", hint=f"say which: {names}")
        return strongest[0][0]

    @property
    def renamed(self) -> dict[str, tuple[str, str]]:
        """The channels that have another name here than at their witness: witness and sense."""
        return {name: (view.name, own) for view in self.witnesses for own, name in view.names.items() if name != own}

    async def before(self, conditions: Sequence[Condition] | None) -> tuple[Observation, ...]:
        """Facts as they stood when the window was opened.

        Args:
            conditions: All that the window will be asked for; None where that isn't known yet. The subject is only
                looked at where one of them is about a fact of its own.
        """
        found: list[Observation] = []
        own = {one.id for one in self.realm.channels}
        if conditions is None or any(
            one.is_fact and one.selector.witness is None and one.selector.sense in own for one in conditions
        ):
            found += await self.realm.before()
        for view in self.witnesses:
            found += await view.before()
        for one in found:
            self._facts.setdefault(one.channel, set()).add(one.summary.partition(" = ")[0])
        return tuple(map(self.redactor.observation, found))

    async def observe(self, *, looks: bool = False, last: bool = False) -> tuple[Observation, ...]:
        """Everything that was seen so far, without credentials.

        Args:
            looks: Whether the subject's facts are read again even where nothing was done since.
            last: Whether this is what is judged.
        """
        found = [*await self.realm.observe(looks=looks)]
        for view in self.witnesses:
            found += await view.observe()
        self.redactor.forget(anew=last)
        shown: list[Observation] = []
        for number, one in enumerate(found):
            if number % _MANY == _MANY - 1:
                await anyio.lowlevel.checkpoint()  # others have to get their turn
            shown.append(self.redactor.observation(one))
        return tuple(shown)

    def provenance(self, one: Observation) -> Provenance:
        """How an observation came to be known."""
        known = self._origins.get(id(one))
        if known is None or known[0] is not one:
            view = next((view for view in self.witnesses if view.window and view.window.id == one.window), None)
            made = self.realm.provenance(one) if view is None else view.provenance(one)
            known = self._origins[id(one)] = one, made
        return known[1]


def _weight(channel: ChannelDescriptor) -> int:
    """What a channel can carry: proof above all."""
    if could_ever_prove([channel]):
        return 3
    return {"consequence": 2, "presence": 1, "context": 0}[channel.grade]
