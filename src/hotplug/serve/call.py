"""One call as it runs: what a server's method can ask and tell besides its arguments."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from hotplug.errors import HotplugError
from hotplug.profile import Event, Extension, Model, Part

__all__ = ["Call", "current_call"]

_current: ContextVar[Call | None] = ContextVar("hotplug_call", default=None)

Commit = Callable[["Call", sqlite3.Connection, Any, Sequence[Event]], None]


@dataclass
class Call:
    """A call under way.

    Args:
        action_id: Of an effectful operation, else None; events emitted meanwhile get it.
        key: The idempotency key, if the caller gave one.
        ext: Arguments of extensions, by extension id, checked already.
    """

    part: Part
    principal: str
    action_id: str | None
    at: str
    key: str | None = None
    ext: Mapping[str, Model] = field(default_factory=dict[str, Model])
    notes: list[str] = field(default_factory=list[str])
    outcome: dict[str, Any] | None = None
    commit: Commit | None = field(default=None, repr=False)

    def extra(self, extension: type[Extension]) -> Model | None:
        """What the caller gave for an extension, if anything."""
        return self.ext.get(extension.id)

    def commit_in(self, connection: sqlite3.Connection, result: Any, events: Sequence[Event] = ()) -> None:
        """Put the receipt, the events and under a key the outcome into the transaction of the effect itself.

        For servers whose tables stand in the store's own file: after a crash either all of it is there or nothing.
        Does nothing where they don't. The method still returns `result`.
        """
        if self.commit is not None:
            self.commit(self, connection, result, events)


def current_call() -> Call:
    """The call that the running method serves.

    Raises:
        HotplugError: No call is under way here.
    """
    call = _current.get()
    if call is None:
        raise HotplugError("no call is under way here", hint="ask from inside a part's method")
    return call


def running(call: Call | None) -> Any:
    """Make a call the current one; give the token back to `ended`."""
    return _current.set(call)


def ended(token: Any) -> None:
    _current.reset(token)
