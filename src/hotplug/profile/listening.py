"""What who listens is told: events with where they stand, and whether more can arrive."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeAlias, TypeVar

from hotplug.errors import HotplugError
from hotplug.profile.extras import EXTENSION
from hotplug.profile.fields import Model
from hotplug.profile.parts import Event
from hotplug.profile.shape import TypedShape

__all__ = ["Health", "HealthState", "Told"]

E = TypeVar("E", bound=Event)
M = TypeVar("M", bound=Model)

HealthState: TypeAlias = Literal["up", "reconnecting", "down", "idle"]


@dataclass(frozen=True, kw_only=True)
class Told(Generic[E]):
    """An event with its record: what it is, where it stands, and what extensions added.

    Args:
        event: The payload.
        happening: What it tells of: the same for each event that tells of it. Its id where the server doesn't know.
        cursor: Goes on after this event: `events(..., cursor=told.cursor)`. From a server that gives a cursor only
            with a page, one before the last of a page has that of the page's start: then some of the page come again,
            and none is lost. None where there is none yet.
        ext: What extensions added, by their ids, as JSON; `extra` reads it.
    """

    event: E
    id: str
    type: str
    at: str
    sense: str
    summary: str
    instance: str
    happening: str
    cursor: str | None
    action_id: str | None = None
    window: str | None = None
    epoch: str | None = None
    ext: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def extra(self, model: type[M]) -> M | None:
        """What an extension added, by its `@extends` model: `told.extra(SlackBlocks.Created)`; None if nothing.

        Raises:
            HotplugError: The model is none of an extension.
            InvalidArgument: What the server sent isn't of the model's form.
        """
        id_ = getattr(model, EXTENSION, None)
        if not isinstance(id_, str):
            raise HotplugError(
                f"{model.__name__} is nothing that an extension adds", hint="give a model decorated with @extends(…)"
            )
        found = self.ext.get(id_)
        return None if found is None else TypedShape(model).read(found, strict=False)


@dataclass(frozen=True)
class Health:
    """Whether events can arrive now.

    Args:
        state: `up`: the subscriptions are answered. `reconnecting`: one is not, and it is being tried. `down`: it was
            given up. `idle`: nothing is asked, because nothing listens or who listens is busy, so nobody knows.
        since: From when on it is so (RFC 3339, UTC).
        why: A sentence for all but `up`.
    """

    state: HealthState
    since: str
    why: str | None = None

    @property
    def up(self) -> bool:
        """Whether events can arrive."""
        return self.state == "up"

    def __str__(self) -> str:
        return f"{self.state} since {self.since}" + (f": {self.why}" if self.why else "")
