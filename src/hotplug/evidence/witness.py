"""What looks and what acts: the abstract bases of witnesses and realms.

A witness only observes. A realm acts as well. Neither gives a verdict, and neither can: a class that tries is refused
when it is defined.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, Final, Protocol, final, runtime_checkable

from hotplug.evidence.action import Action, ActionReceipt, Capability, Handle, Refused
from hotplug.evidence.anomaly import Anomaly
from hotplug.evidence.channels import ChannelDescriptor, could_ever_prove
from hotplug.evidence.coverage import Coverage
from hotplug.evidence.determinism import DeterminismProfile
from hotplug.evidence.fixtures import FixtureRef
from hotplug.evidence.mutation import MutationRequest, Reversal
from hotplug.evidence.observation import Observation
from hotplug.evidence.subject import SubjectRef
from hotplug.evidence.vocabulary import ChannelId, ProvenanceClass, RefusalReason
from hotplug.evidence.window import Window, closed_cleanly

__all__ = ["Detects", "Fixtures", "Locates", "Mutates", "Photographs", "Realm", "Witness"]

_JUDGES: Final = ("verify", "verdict", "adjudicate", "assert", "pass", "succeeded")
_ACTS: Final = ("perform", "dispatch", "mutate", "revert", "apply_fixture")
_FINAL: Final = ("observes", "unobserved", "can_prove_anything", "closed_cleanly", "perform", "refuse")


class Witness(ABC):
    """Something that looks at a subject and cannot act on it.

    A look that failed gives no observation and a blind spot `channel-unobserved` that names the channel; it never
    raises for that. Observations keep their ids over repeated looks within one window.

    Raises:
        TypeError: On a subclass with a member that judges or acts, or that replaces a final one.
    """

    name: str
    """Of `a-z 0-9 -`; it names the witness in a run, and its channels where two would collide: `x-NAME-CHANNEL`."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        realm = globals().get("Realm")
        acts = realm is None or issubclass(cls, realm)
        for base in cls.__mro__:
            for member in base.__dict__:
                if member in _JUDGES:
                    raise TypeError(f"{cls.__qualname__}.{member}: what looks gives no verdict; name it otherwise")
                if member in _ACTS and not acts:
                    raise TypeError(f"{cls.__qualname__}.{member}: a witness cannot act; what acts is a Realm")
                if member in _FINAL and base.__module__ != __name__:
                    raise TypeError(f"{cls.__qualname__}.{member} is final: it can't be replaced")

    @abstractmethod
    def identity(self) -> SubjectRef:
        """What it looks at, now. The instance changes when that is replaced; it is never a constant."""

    @abstractmethod
    def channels(self) -> tuple[ChannelDescriptor, ...]:
        """What it can see, each channel once."""

    @abstractmethod
    def provenance(self, channel: ChannelId) -> tuple[str, str, ProvenanceClass]:
        """How its observations on a channel come to be: source, method, class."""

    @abstractmethod
    async def open_window(self, budget_ms: int) -> Window:
        """Look once, for the state before, and open a window.

        Args:
            budget_ms: How long the window may stay open, over 0.
        """

    async def before(self, window: Window) -> tuple[Observation, ...]:
        """The facts at the opening of a window (`name = value`); none where it saw no state."""
        return ()

    @abstractmethod
    async def observe(self, window: Window) -> tuple[Observation, ...]:
        """Look again, and give everything that was seen in this window so far.

        After the close it looks no more, and gives what was seen up to then: so a verdict is made.
        """

    @abstractmethod
    async def coverage(self, window: Window) -> Coverage:
        """What the last look could and could not see, that of the close included."""

    @abstractmethod
    async def close_window(self, window: Window) -> Window:
        """Look for the last time; the window with `closed_at`, and in `closed_by` what really ended it."""

    async def aclose(self) -> None:
        """Let go of what it holds open."""
        return

    @final
    def observes(self, channel: ChannelId) -> bool:
        """Whether a channel is declared."""
        return any(one.id == channel for one in self.channels())

    @final
    def unobserved(self, channels: Iterable[ChannelId]) -> tuple[ChannelId, ...]:
        """Those that are not declared, in their order."""
        known = {one.id for one in self.channels()}
        return tuple(channel for channel in channels if channel not in known)

    @final
    def can_prove_anything(self) -> bool:
        """Whether some channel is independent and of consequence grade: without one no claim ever ends in yes."""
        return could_ever_prove(self.channels())

    @final
    def closed_cleanly(self, window: Window) -> bool:
        """Whether a window ended in a way that can prove something."""
        return closed_cleanly(window)


class Realm(Witness):
    """A witness that also acts. Acting reports acceptance, never success.

    What a realm may have besides, it has or lacks: `Locates`, `Detects`, `Photographs`, `Fixtures`, `Mutates`. Ask with
    `isinstance`; a method that only returns nothing is no substitute for its absence.
    """

    @abstractmethod
    def determinism(self) -> DeterminismProfile:
        """How repeatable it is."""

    @abstractmethod
    def capabilities(self) -> tuple[Capability, ...]:
        """What it can do. Everything else is refused."""

    @abstractmethod
    async def describe(self, query: Any = None) -> Any:
        """The structure of what is here now."""

    @abstractmethod
    async def dispatch(self, action: Action) -> ActionReceipt:
        """Deliver a declared action. For `perform` to call, nobody else."""

    @final
    async def perform(self, action: Action) -> ActionReceipt:
        """Do a declared action; refuse any other without trying."""
        declared = [capability.name for capability in self.capabilities()]
        if action.capability in declared:
            return await self.dispatch(action)
        named = ", ".join(declared) or "nothing"
        return self.refuse(action, "undeclared", f"{action.capability!r} is not declared; declared: {named}")

    @final
    def refuse(self, action: Action, reason: RefusalReason, detail: str) -> ActionReceipt:
        """The receipt of an action that was not tried."""
        return ActionReceipt(
            action=action.id,
            dispatched=False,
            refused=Refused(reason=reason, detail=detail),
            subject=self.identity(),
            at=action.at,
        )

    def satisfies(self, ensures: Any, requires: Any) -> bool | None:
        """Whether one contract meets another; None, the default, is that it can't tell."""
        return None


@runtime_checkable
class Locates(Protocol):
    """A realm that finds what can be acted on."""

    async def locate(self, query: Any) -> tuple[Handle, ...]:
        """All that match, without choosing one."""
        ...


@runtime_checkable
class Detects(Protocol):
    """A realm that notices contradictions."""

    async def detect(self, window: Window, observations: tuple[Observation, ...]) -> tuple[Anomaly, ...]:
        """The anomalies of a window."""
        ...


@runtime_checkable
class Photographs(Protocol):
    """A realm that takes pictures."""

    async def photograph(self, window: Window) -> bytes:
        """A picture of the subject."""
        ...


@runtime_checkable
class Fixtures(Protocol):
    """A realm that puts a state back. Ask `hotplug.evidence.fixtures.fixture_usable` before applying one."""

    async def apply_fixture(self, fixture: FixtureRef) -> None:
        """Put a captured state back."""
        ...

    async def capture_fixture(self) -> FixtureRef:
        """Capture the state."""
        ...


@runtime_checkable
class Mutates(Protocol):
    """A realm that can be broken on purpose. Never production."""

    async def mutate(self, request: MutationRequest) -> Reversal:
        """Break it."""
        ...

    async def revert(self, reversal: Reversal) -> None:
        """Undo it; call it in `finally`."""
        ...
