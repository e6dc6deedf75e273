"""connection@1: the parts that every server of a profile provides. No author writes them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from hotplug.profile import Determinism, Duration, Model, Profile, operation, read

__all__ = [
    "BlindSpot",
    "BlindSpotKind",
    "CloseCondition",
    "Closed",
    "Connection",
    "Coverage",
    "Described",
    "EventRecord",
    "Events",
    "MissingPart",
    "Opened",
    "SenseWorth",
    "WindowClosed",
    "WindowOpened",
]

CloseCondition = Literal[
    "quiescence", "ticks", "ack", "signal", "settled-physical", "exit", "terminated", "budget-exhausted"
]
"""What ends a window (Open Verification Protocol 1); `terminated` and `budget-exhausted` are not clean ends."""

BlindSpotKind = Literal[
    "channel-unobserved",
    "boundary-uncrossable",
    "buffer-truncated",
    "redacted",
    "still-in-flight",
    "effect-elsewhere",
]


class MissingPart(Model):
    """A part that the server doesn't offer, and what is lost without it."""

    part: str
    without: str | None = None


class SenseWorth(Model):
    """What evidence of a sense is worth there; never more than the table of senses says."""

    independence: Literal["independent", "actuation-derived"]
    grade: Literal["consequence", "presence", "context"]


class Described(Model):
    """What stands behind the connection."""

    surface: str
    instance: str
    """Changes when what it names is replaced."""
    epoch: str | None = None
    senses: dict[str, SenseWorth] | None = None
    """The senses that it watches, by name; an empty table says that it watches none."""
    declaration: dict[str, Any]
    determinism: dict[str, str]
    missing: list[MissingPart]
    notes: dict[str, Any] | None = None


class Opened(Model):
    instance: str


class Closed(Model):
    """Closed; there is nothing more to say."""


class WindowOpened(Model):
    window: str
    cursor: str
    """Where `connection.events` starts for what happens in the window."""


class BlindSpot(Model):
    """Something that couldn't be seen."""

    kind: BlindSpotKind
    sense: str | None = None
    detail: str
    impeaching: bool = False
    """Said of a gap that belongs to no one sense, and that no claim about the window survives."""
    remedy: str | None = None


class Coverage(Model):
    """What was watched in a window and what couldn't be seen."""

    senses: list[str]
    blind_spots: list[BlindSpot] | None = None
    """Absent where the gaps can't be listed; an empty list says that there were none."""


class WindowClosed(Model):
    closed_by: CloseCondition
    unmeasurable: bool | None = None
    opened_at: str
    closed_at: str
    coverage: Coverage


class EventRecord(Model):
    """Something that happened."""

    id: str
    type: str
    at: str
    sense: str
    summary: str
    payload: dict[str, Any]
    window: str | None = None
    action_id: str | None = None
    instance: str
    epoch: str | None = None
    happening: str | None = None
    """What it tells of: events with the same one, of whatever kind, tell of the same happening."""
    cursor: str | None = None
    """Goes on after this event."""


class Events(Model):
    events: list[EventRecord]
    cursor: str
    missed: bool | None = None
    """The cursor has expired: something may have happened that isn't here."""


class Connection(
    Profile,
    name="connection",
    version="1.0.0",
    determinism=Determinism(replay_prefix="free", actions="reversible"),
):
    """What every connection can say of itself: what it is, what it can't do, and what happens.

    Every profile extends it silently. A foreign server that declares profiles without it is used as far as it goes.
    """

    @read("connection.describe", sense="state", look="turn")
    async def describe_connection(self) -> Described:
        """Say what stands behind this connection, what it implements, and what is missing and lost."""
        ...

    @operation("connection.open", required=False, without="There is one instance, shared by all who connect.")
    async def open_instance(self, setup: dict[str, Any]) -> Opened:
        """Open an instance of one's own."""
        ...

    @operation("connection.close", required=False, without="Instances can't be closed by hand.")
    async def close_instance(self, instance: str) -> Closed:
        """Close an instance that was opened."""
        ...

    @operation("connection.window.open")
    async def open_window(self, budget_ms: Duration, closes: list[CloseCondition] | None = None) -> WindowOpened:
        """Open a window: from now on, what happens is kept until the window is closed or its budget is over.

        `closes` names the conditions that may end it; a server that can measure none of them says `unmeasurable`.
        """
        ...

    @operation("connection.window.close")
    async def close_window(self, window: str) -> WindowClosed:
        """Close a window once what was asked for in it has been answered, and say what couldn't be seen in it."""
        ...

    @read("connection.events", sense="state")
    async def poll_events(
        self,
        cursor: str | None = None,
        types: list[str] | None = None,
        where: dict[str, Any] | None = None,
        wait_ms: Annotated[int, Field(ge=0, le=30_000)] = 0,
        limit: Annotated[int, Field(ge=1, le=1000)] = 100,
    ) -> Events:
        """Give events after a cursor, waiting up to waitMs for the first. `where` compares fields of the payload."""
        ...
