"""connection@1: the parts that every server of a profile provides. No author writes them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from hotplug.profile import Determinism, Duration, Model, Profile, operation, read

__all__ = [
    "CloseReason",
    "Closed",
    "Connection",
    "Coverage",
    "Described",
    "EventRecord",
    "Events",
    "MissingPart",
    "Opened",
    "WindowClosed",
    "WindowOpened",
]

CloseReason = Literal["caller", "budget", "quiescence", "instance-replaced"]


class MissingPart(Model):
    """A part that the server doesn't offer, and what is lost without it."""

    part: str
    without: str | None = None


class Described(Model):
    """What stands behind the connection."""

    surface: str
    instance: str
    """Changes when what it names is replaced."""
    epoch: str | None = None
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


class Coverage(Model):
    """What couldn't be seen in a window; a list that is absent can't be made, an empty one is a claim."""

    blind_spots: list[str] | None = None
    senses: list[str]


class WindowClosed(Model):
    closed_by: CloseReason
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
    async def open_window(self, budget_ms: Duration, closes: list[str] | None = None) -> WindowOpened:
        """Open a window: from now on, what happens is kept until the window is closed or its budget is over."""
        ...

    @operation("connection.window.close")
    async def close_window(self, window: str) -> WindowClosed:
        """Close a window, and say what couldn't be seen in it."""
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
