"""Witnesses that see change by comparing looks: what is there now, what was there before."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hotplug.evidence.channels import ChannelDescriptor
from hotplug.evidence.coverage import BlindSpot
from hotplug.evidence.observation import Observation
from hotplug.evidence.vocabulary import Independence
from hotplug.profile.summaries import state_change, state_fact
from hotplug.witness.watching import CannotLook, Session, Watching

__all__ = ["Comparing", "Look", "Thing", "changes"]


@dataclass(frozen=True, slots=True)
class Thing:
    """One thing that is there.

    Args:
        ref: What it is known by; several things may share one, and then are counted.
        fingerprint: Tells its content; None where that couldn't be read, and then nothing is said of a change.
        value: What is shown of it.
    """

    kind: str
    ref: str
    fingerprint: str | None
    value: Any = None


@dataclass(frozen=True, slots=True)
class Look:
    """What one look saw.

    Args:
        hidden: Whether a thing of this ref could have been there unseen: then its absence says nothing. None where
            everything was seen.
        spots: What the look could not see.
    """

    things: tuple[Thing, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])
    spots: tuple[BlindSpot, ...] = ()
    hidden: Callable[[str], bool] | None = None

    def hides(self, ref: str) -> bool:
        """Whether a thing of this ref could have been there unseen."""
        return self.hidden is not None and self.hidden(ref)


def _by_ref(things: Iterable[Thing]) -> dict[tuple[str, str], list[Thing]]:
    found: dict[tuple[str, str], list[Thing]] = {}
    for thing in things:
        found.setdefault((thing.kind, thing.ref), []).append(thing)
    return found


def changes(before: Look, after: Look) -> Iterator[tuple[Thing, str]]:
    """What happened between two looks: each thing with its change word. What a look couldn't see isn't guessed."""
    old, new = _by_ref(before.things), _by_ref(after.things)
    for key in {**old, **new}:
        was, now = old.get(key, []), new.get(key, [])
        if len(was) == len(now) == 1:
            first, last = was[0].fingerprint, now[0].fingerprint
            if first is not None and last is not None and first != last:
                yield now[0], "updated"
            continue
        gone, come = _unpaired(was, now), _unpaired(now, was)
        # What comes may have been there unseen, what is gone may be there unseen.
        unsure = (before.hides(key[1]) and come) or (after.hides(key[1]) and gone)
        if unsure:
            continue
        paired = min(len(gone), len(come))
        yield from ((thing, "updated") for thing in come[:paired] if thing.fingerprint is not None)
        yield from ((thing, "created") for thing in come[paired:])
        yield from ((thing, "deleted") for thing in gone[paired:])


def _unpaired(these: list[Thing], those: list[Thing]) -> list[Thing]:
    """What has no counterpart of the same content on the other side."""
    left = Counter(thing.fingerprint for thing in those)
    found: list[Thing] = []
    for thing in these:
        if left[thing.fingerprint] > 0:
            left[thing.fingerprint] -= 1
        else:
            found.append(thing)
    return found


def merged(before: Look, after: Look) -> Look:
    """What is known after the second look: things that it couldn't see stay as they were."""
    here = {(thing.kind, thing.ref) for thing in after.things}
    carried = tuple(thing for thing in before.things if (thing.kind, thing.ref) not in here and after.hides(thing.ref))
    unread = {(thing.kind, thing.ref): thing for thing in before.things}
    things = tuple(
        unread.get((thing.kind, thing.ref), thing) if thing.fingerprint is None else thing for thing in after.things
    )
    # What a whole look showed to be absent stays known as absent until then.
    hidden = None if after.hidden is None else before.hidden
    return Look((*things, *carried), after.facts, after.spots, hidden)


class Comparing(Watching):
    """Looks at the opening and at every `observe`, and tells what changed in between; facts are those of the last look.

    Args:
        independent: Whether the action's own code path doesn't decide what is seen.
    """

    channel = "state"

    def __init__(self, name: str, locator: str, *, independent: bool = True, timeout: float = 10.0) -> None:
        super().__init__(name, locator, timeout=timeout)
        self._independence: Independence = "independent" if independent else "actuation-derived"

    def channels(self) -> tuple[ChannelDescriptor, ...]:
        """The one channel that it looks at."""
        return (ChannelDescriptor(id=self.channel, independence=self._independence, grade="consequence"),)

    @abstractmethod
    async def _read(self) -> Look:
        """What is there now.

        Raises:
            CannotLook: It can't be read.
        """

    def _summary(self, thing: Thing, word: str) -> str:
        return state_change(thing.kind, thing.ref, word)

    async def _begin(self, session: Session) -> None:
        found = await self._read()
        session.state = found
        session.lasting += [_at_opening(one) for one in found.spots if one.kind != "redacted"]
        session.before = self._told(session, found.facts, ())

    async def _look(self, session: Session) -> Sequence[BlindSpot]:
        found = await self._read()
        before: Look | None = session.state
        if before is not None:
            try:
                told = [(self._summary(thing, word), thing.value) for thing, word in changes(before, found)]
            except ValueError as error:
                raise CannotLook(f"something that changed has no name to be told by: {error}") from None
            session.seen += [session.observation(self.channel, summary, value) for summary, value in told]
            session.state = merged(before, found)
        session.facts = self._told(session, found.facts, session.facts)
        return found.spots

    def _told(self, session: Session, facts: Mapping[str, Any], last: Sequence[Observation]) -> tuple[Observation, ...]:
        known = {one.summary: one for one in last}
        made: list[Observation] = []
        for name, value in facts.items():
            summary = state_fact(name, value)
            made.append(known.get(summary) or session.observation(self.channel, summary, value))
        return tuple(made)


def _at_opening(one: BlindSpot) -> BlindSpot:
    return one.model_copy(update={"detail": f"at the opening: {one.detail}"})
