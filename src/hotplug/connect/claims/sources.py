"""The places that look in one window: the subject and its witnesses, and which of them a condition is held against."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from hotplug.connect.claims.conditions import Condition, Selector
from hotplug.connect.claims.realm import Closing, Realm
from hotplug.connect.claims.redaction import Redactor
from hotplug.connect.claims.translation import witness_channel
from hotplug.errors import InvalidArgument
from hotplug.evidence import (
    BlindSpot,
    ChannelDescriptor,
    Coverage,
    Observation,
    Provenance,
    SubjectRef,
    Window,
    closed_cleanly,
    could_ever_prove,
)
from hotplug.evidence.witness import Witness

__all__ = ["Sources", "WitnessView"]


@dataclass
class WitnessView:
    """One witness in one window, its channels renamed where another place has one of that name."""

    witness: Witness
    names: Mapping[str, str] = field(default_factory=dict[str, str])
    """Its own names of channels to those of the window."""
    window: Window | None = None
    failed: str | None = None
    covered: Coverage | None = None

    @property
    def name(self) -> str:
        return self.witness.name

    @property
    def _prefix(self) -> str:
        return f"{self.window.id if self.window else self.name}/{self.name}:"

    @property
    def channels(self) -> tuple[ChannelDescriptor, ...]:
        """What it declares, under the names of the window."""
        return tuple(one.model_copy(update={"id": self.names.get(one.id, one.id)}) for one in self.witness.channels())

    async def open(self, budget_ms: int) -> None:
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
            found = await look(self.window)
        except Exception as error:
            self.failed = f"{type(error).__name__} while it looked"
            return ()
        return tuple(self._placed(one) for one in found)

    def _placed(self, one: Observation) -> Observation:
        return one.model_copy(
            update={"id": f"{self._prefix}{one.id}", "channel": self.names.get(one.channel, one.channel)}
        )

    async def end(self) -> None:
        """Close its window: it looks for the last time, and what it saw can be asked afterwards."""
        if self.window is not None and self.failed is None:
            try:
                self.window = await self.witness.close_window(self.window)
            except Exception as error:
                self.failed = f"{type(error).__name__} at the closing of its window"

    async def close(self) -> Closing:
        """What its last look could and couldn't see; its end as blind spots, where it wasn't a clean one."""
        if self.window is not None and self.failed is None:
            try:
                covered = await self.witness.coverage(self.window)
            except Exception as error:
                self.failed = f"{type(error).__name__} when it was asked what it couldn't see"
            else:
                return self._closing(covered, tuple(one.id for one in self.channels))
        detail = f"the witness {self.name} could not look: {self.failed}"
        return Closing(None, self._everywhere(detail), ())

    def _closing(self, covered: Coverage, observed: tuple[str, ...]) -> Closing:
        spots = None if covered.blind_spots is None else tuple(map(self._renamed, covered.blind_spots))
        assert self.window is not None
        if not closed_cleanly(self.window):
            ended = self.window.closed_by or "nothing"
            spots = (*(spots or ()), *self._everywhere(f"the window of the witness {self.name} ended by {ended}"))
        self.covered = covered.model_copy(
            update={
                "blind_spots": spots,
                "observed": tuple(self.names.get(one, one) for one in covered.observed),
            }
        )
        return Closing(None, spots, tuple(one for one in observed if one in self.covered.observed))

    def _renamed(self, spot: BlindSpot) -> BlindSpot:
        if spot.channel is None:
            return spot
        return spot.model_copy(update={"channel": self.names.get(spot.channel, spot.channel)})

    def _everywhere(self, detail: str) -> tuple[BlindSpot, ...]:
        return tuple(
            BlindSpot(kind="channel-unobserved", channel=one.id, detail=detail, impeaching=False)
            for one in self.channels
        )


@dataclass
class Sources:
    """Everything that looks in one window."""

    realm: Realm
    witnesses: tuple[WitnessView, ...]
    redactor: Redactor

    def name_channels(self) -> None:
        """Give each channel of the window one name: a witness's is renamed where another place has it already."""
        own = {one.id for one in self.realm.channels}
        for view in self.witnesses:
            others = {one.id for other in self.witnesses if other is not view for one in other.witness.channels()}
            view.names = {
                one.id: witness_channel(view.name, one.id) if one.id in own | others else one.id
                for one in view.witness.channels()
            }

    @property
    def channels(self) -> tuple[ChannelDescriptor, ...]:
        """What is declared, by whomever."""
        return (*self.realm.channels, *(one for view in self.witnesses for one in view.channels))

    def channel_of(self, selector: Selector) -> str:
        """The channel that a condition reads: its witness's, else where the sense has the most weight.

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
            seen = (one for one in view.witness.channels() if one.id == selector.sense)
            found.extend((_weight(one), view.names[one.id], view.name) for one in seen)
        if not found:
            return selector.sense
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
        if conditions is None or any(one.is_fact and self.channel_of(one.selector) in own for one in conditions):
            found += await self.realm.before()
        for view in self.witnesses:
            found += await view.before()
        return tuple(map(self.redactor.observation, found))

    async def observe(self) -> tuple[Observation, ...]:
        """Everything that was seen so far, without credentials."""
        found = [*await self.realm.observe()]
        for view in self.witnesses:
            found += await view.observe()
        self.redactor.found.clear()
        return tuple(map(self.redactor.observation, found))

    def provenance(self, one: Observation) -> Provenance:
        """How an observation came to be known."""
        view = next((view for view in self.witnesses if view.window and view.window.id == one.window), None)
        if view is None or view.window is None:
            source, method, class_ = self.realm.link.channel.target, "connection.events", "observed"
            if "/look:" in one.id:
                method = one.id.split(":")[1]
            subject: SubjectRef = self.realm.identity
        else:
            base = next((own for own, name in view.names.items() if name == one.channel), one.channel)
            source, method, class_ = view.witness.provenance(base)
            subject = view.window.subject
        body = {"class": class_, "source": source, "method": method, "subject": subject.document(), "at": one.at}
        return Provenance.read(body)


def _weight(channel: ChannelDescriptor) -> int:
    """What a channel can carry: proof above all."""
    if could_ever_prove([channel]):
        return 3
    return {"consequence": 2, "presence": 1, "context": 0}[channel.grade]
