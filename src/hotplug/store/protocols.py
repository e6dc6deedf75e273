"""What a store promises, whatever keeps it: SQLite here, PostgreSQL for several gateways.

Secrets never reach a store. It is given digests of arguments, never the arguments; outcomes, receipts and events are
kept exactly as the runtime hands them over, and masking them first is the runtime's duty.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

from hotplug.errors import ConfigError

__all__ = [
    "Begun",
    "CoCommitting",
    "EventPage",
    "Finished",
    "Fresh",
    "InDoubt",
    "InFlight",
    "Mismatch",
    "Retention",
    "Store",
    "StoredReceipt",
    "Token",
]


@dataclass(frozen=True, slots=True)
class Token:
    """The right to end one attempt at a record. Worth nothing once the record was ended or taken over.

    Args:
        record: Which record, as the store numbers it.
        owner: The random id of the store that began the attempt.
        attempt: The attempt's number within that owner.
    """

    record: int
    owner: str
    attempt: int


@dataclass(frozen=True, slots=True)
class Fresh:
    """Nobody did it yet; the record stands, pending. The caller does the work and ends `token`, whatever happens."""

    token: Token


@dataclass(frozen=True, slots=True)
class Finished:
    """It was done, or failed where something may have been done: answer exactly this."""

    outcome: dict[str, Any]
    is_error: bool


@dataclass(frozen=True, slots=True)
class Mismatch:
    """The key was used with other arguments or on another instance: `conflict`."""


@dataclass(frozen=True, slots=True)
class InFlight:
    """Another caller, in this process or another, is doing it now: give this to `Store.wait`.

    The fields are those of `Store.begin`, and which record it is.
    """

    principal: str
    operation: str
    key: str
    digest: str
    atomic: bool
    record: int


@dataclass(frozen=True, slots=True)
class InDoubt:
    """Whoever was doing it is gone, and what it left behind isn't known: `in_doubt`."""


Begun = Fresh | Finished | Mismatch | InFlight | InDoubt
"""The five answers to `Store.begin`."""


@dataclass(frozen=True, slots=True)
class StoredReceipt:
    """A receipt as it was given out.

    Args:
        action_id: The receipt's `actionId`.
        principal: To whom it was given; whoever reads receipts for a caller compares this first.
        operation: The member, `calendar.create`.
        at: When, as it stands in the receipt (RFC 3339).
        details: Anything else worth keeping, JSON, already masked.
    """

    action_id: str
    principal: str
    operation: str
    at: str
    details: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class EventPage:
    """Some events of a stream, oldest first.

    Args:
        events: As they were appended.
        cursor: Goes on after them, and after those that `types` left out.
        missed: Events after the cursor that was asked for may be gone. What is still there is in the page.
        cursors: For each of the events, the one that goes on after it.
    """

    events: tuple[dict[str, Any], ...]
    cursor: str
    missed: bool
    cursors: tuple[str, ...] = field(default=(), compare=False)


_DAY = timedelta(hours=24)


@dataclass(frozen=True, slots=True)
class Retention:
    """How long things are kept, at least; purging comes now and then, not on the minute.

    Args:
        records: Idempotency records, from their end (in doubt: from their begin). Default and least: 24 hours.
        receipts: Default 7 days.
        events: Default 7 days.

    Raises:
        ConfigError: `records` is under 24 hours, which the wire promises; or another is not positive.
    """

    records: timedelta = _DAY
    receipts: timedelta = timedelta(days=7)
    events: timedelta = timedelta(days=7)

    def __post_init__(self) -> None:
        if self.records < _DAY:
            raise ConfigError(f"records would be kept for {self.records}", hint="24 hours is the least")
        for name in ("receipts", "events"):
            kept: timedelta = getattr(self, name)
            if kept <= timedelta():
                raise ConfigError(f"{name} would be kept for {kept}", hint="give a positive length of time")


class Store(Protocol):
    """Idempotency records, receipts, durable events and the sealing key.

    Every method may raise `StoreError` where the store can't be read or written.
    """

    async def begin(self, principal: str, operation: str, key: str, digest: str, *, atomic: bool = False) -> Begun:
        """Ask to do something once. `Fresh` is answered to one caller only, and its record is written by then.

        Args:
            principal: For whom.
            operation: The member, `calendar.create`.
            key: The idempotency key, up to 255 characters.
            digest: Canonical digest of arguments and instance, secrets in it by keyed hash.
            atomic: The caller ends the attempt in the transaction of the effect itself (`CoCommitting`). If it dies,
                nothing was done, so the next caller gets `Fresh` where others get `InDoubt`.

        Raises:
            InvalidArgument: The key is longer than 255 characters.
        """
        ...

    async def wait(self, flight: InFlight, timeout: float) -> Begun:  # noqa: ASYNC109 - an answer, not a cancellation
        """Wait up to `timeout` seconds for another caller's attempt to end.

        Answers what `begin` would then: `Fresh` if the attempt was forgotten, `InDoubt` (atomic: `Fresh`) if its owner
        died, and `InFlight` again if the time is up.
        """
        ...

    async def finish(
        self, token: Token, outcome: Mapping[str, Any], is_error: bool = False, *, receipt: StoredReceipt | None = None
    ) -> None:
        """Record the outcome, and the receipt with it. Repeats get this outcome from now on.

        This, `forget` and `abandon` are done even in a cancelled scope (anyio; not where asyncio cancels the task).

        Raises:
            StoreError: The attempt was ended or taken over before; or the outcome is not JSON.
        """
        ...

    async def forget(self, token: Token) -> None:
        """Drop the record: nothing was done (refused before any effect), so a repeat may try anew.

        Raises:
            StoreError: The attempt was ended or taken over before.
        """
        ...

    async def abandon(self, token: Token) -> None:
        """Let go without knowing, as if this process had died here: repeats get `InDoubt`, or `Fresh` if atomic.

        Raises:
            StoreError: The attempt was ended or taken over before.
        """
        ...

    async def add_receipt(self, receipt: StoredReceipt) -> None:
        """Keep a receipt; one of the same action id is replaced."""
        ...

    async def receipt(self, action_id: str) -> StoredReceipt | None:
        """The receipt of an action, if it is still kept."""
        ...

    async def remember(self, scope: str, name: str, value: Mapping[str, Any] | None) -> None:
        """Keep a small fact until it is replaced, or forgotten (None): what a projection knows of its own writes."""
        ...

    async def recall(self, scope: str, name: str) -> dict[str, Any] | None:
        """The fact that was remembered last, or None."""
        ...

    async def recall_all(self, scope: str) -> dict[str, dict[str, Any] | None]:
        """Every fact of a scope, by name; None for one that can't be read any more."""
        ...

    async def claim(self, scope: str, values: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any] | None]:
        """Keep facts under names that have none yet, and answer what stands under each of them then: all or none.

        Of several who claim one name at once, in this process or another, one gets it.
        """
        ...

    async def exchange(
        self, scope: str, values: Mapping[str, tuple[Mapping[str, Any] | None, Mapping[str, Any]]]
    ) -> bool:
        """Replace facts, each `(old, new)`, if every one is as it was (None: not there, or unreadable): all or none.

        Answers whether it was done.
        """
        ...

    async def forget_all(self, scope: str, names: Collection[str] | None = None) -> int:
        """Forget these facts of a scope, or with None all of them; how many there were."""
        ...

    async def append_event(self, stream: str, event: Mapping[str, Any]) -> str:
        """Append to a stream and answer the cursor after it.

        An event whose `id` is there already is not stored again, nor is one whose `type` and `happening` (a string, if
        it has one) are: the cursor is then that of the one that is there. Events of other types about the same
        happening are stored, because who listens to one type only has to be told too; `events_of` finds them.

        Raises:
            StoreError: The event has no `id` or `type` that are strings, a `happening` that is none, or is not JSON.
        """
        ...

    async def events_of(self, stream: str, happening: str) -> tuple[dict[str, Any], ...]:
        """The events of a stream that tell of a happening, as far as they are kept, oldest first; one a type."""
        ...

    async def events_after(
        self, stream: str, cursor: str | None = None, *, limit: int = 100, types: Collection[str] | None = None
    ) -> EventPage:
        """Up to `limit` events after `cursor`; without a cursor, from the oldest that is kept.

        A cursor that is expired, of a store that is no more, or no cursor at all makes `missed` true and starts at the
        oldest event that may not have been seen.

        Raises:
            InvalidArgument: The cursor is of another stream; or the limit is under 1.
        """
        ...

    async def end_of_events(self, stream: str) -> str:
        """The cursor after all that a stream has now."""
        ...

    async def wait_for_event(self, stream: str, cursor: str | None, timeout: float) -> bool:  # noqa: ASYNC109
        """Wait up to `timeout` seconds until `events_after` would have something to say; whether it has.

        At once for events of this process; other processes' are looked for at least four times a second.

        Raises:
            InvalidArgument: The cursor is of another stream.
        """
        ...

    def sealing_key(self) -> bytes:
        """32 random bytes, made once for the life of the store: keys the hashes of refs and secrets."""
        ...

    async def purge(self) -> int:
        """Drop what is past its retention, as the store does by itself now and then; how much that was."""
        ...

    async def aclose(self) -> None:
        """Close. What is still pending here is in doubt from now on."""
        ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None: ...


class CoCommitting(Store, Protocol):
    """A store whose database file also holds a backend's own tables, so that record and effect commit together.

    ```python
    begun = await store.begin(principal, "calendar.create", key, digest, atomic=True)
    with store.transaction() as c:
        c.execute("INSERT INTO calendar_event ...")
        store.append_event_in(c, "calendar", event)
        store.finish_in(c, begun.token, outcome)
    ```

    After a crash either all of it is there, and a repeat gets `Finished`, or none is, and a repeat gets `Fresh`.
    If the attempt was ended or taken over meanwhile, `finish_in` raises and the effect is rolled back with it.

    The tables must stand in the store's own file. An ATTACHed file won't do: SQLite commits attached WAL databases one
    after the other, so a kill in between keeps one half.
    """

    @property
    def file(self) -> Path | None:
        """The database file, None in memory: where a backend's tables have to stand."""
        ...

    def transaction(self) -> AbstractContextManager[sqlite3.Connection]:
        """A write transaction on the store's own connection: commits at the end, rolls back on an exception.

        Blocks its thread while another process writes. Don't await inside it: other calls of this store wait, and from
        the same thread they are refused.

        Raises:
            StoreError: Inside another one of the same thread; or the database stayed locked for 10 seconds.
        """
        ...

    def finish_in(
        self,
        connection: sqlite3.Connection,
        token: Token,
        outcome: Mapping[str, Any],
        is_error: bool = False,
        *,
        receipt: StoredReceipt | None = None,
    ) -> None:
        """`Store.finish` in a transaction that is open on `connection`: this store's, or another to the same file.

        Raises:
            StoreError: As `finish`; or the connection is to another file, has files attached, or is in no transaction.
        """
        ...

    def add_receipt_in(self, connection: sqlite3.Connection, receipt: StoredReceipt) -> None:
        """`Store.add_receipt` in a transaction that is open on `connection`; raises as `finish_in` does."""
        ...

    def append_event_in(self, connection: sqlite3.Connection, stream: str, event: Mapping[str, Any]) -> str:
        """`Store.append_event` in a transaction that is open on `connection`; raises as `finish_in` does."""
        ...

    def wake(self, stream: str) -> None:
        """Wake those who wait in this thread for an event of a stream, once another connection has committed one."""
        ...
