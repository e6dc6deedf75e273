"""The store on SQLite, for the processes of one machine.

Statements run on the event loop's own thread. Measured on a development machine (2 cores, ext4, Python 3.11), with
tens of thousands of earlier records and other work on both cores, medians of several runs: `begin` 100 to 120 µs,
`finish` 65 to 105 µs; a thread hop that does nothing 130 to 310 µs, `begin` by such a hop (one run) 500 µs. The
statements take no longer than the way to a thread alone.
So the loop never sleeps in SQLite either: while another process writes, a call gets `SQLITE_BUSY` at once and tries
again after an `await`. Checkpoints, which do call `fsync`, and purges run in a thread with connections of their own.

Durability `process` (WAL, `synchronous=NORMAL`): what was answered survives the death of every process, not always that
of the machine: after a power cut the last moments may be missing, consistently. `full` waits for the disk at each
commit, in a worker thread.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import random
import sqlite3
import threading
import time
from collections.abc import Callable, Collection, Generator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Literal, Self, TypeVar

import anyio
import anyio.to_thread

from hotplug.errors import InvalidArgument, StoreError
from hotplug.store import events, facts, records
from hotplug.store.bells import Bells
from hotplug.store.files import (
    PATIENCE,
    PATIENCE_MS,
    as_store_errors,
    broken,
    checkpoint,
    connect,
    is_busy,
    open_file,
    open_memory,
    owners,
    transaction,
)
from hotplug.store.lease import Lease, is_alive
from hotplug.store.protocols import Begun, EventPage, InDoubt, InFlight, Retention, StoredReceipt, Token
from hotplug.store.records import Ask, as_json
from hotplug.store.upkeep import Cutoffs, purge

__all__ = ["Durability", "SqliteStore"]

T = TypeVar("T")

Durability = Literal["process", "full"]
"""What a committed write survives: the death of processes, or of the machine too."""

_WRITES_PER_UPKEEP: Final = 1000
_SECONDS_PER_PURGE: Final = 3600.0
_BATCHES_PER_CHECKPOINT: Final = 50
_LONGEST_POLL: Final = 0.25
_LONGEST_RECORD_POLL: Final = 0.1


class _BusyError(Exception):
    """Somebody else is writing; try again."""


class SqliteStore:
    """A `CoCommitting` store in one SQLite file, or in memory; make it with `open`.

    Beside `FILE` lie SQLite's `FILE-wal` and `FILE-shm`, and a folder `FILE-owners` (see `lease`). All of it is
    readable by its owner only, because the sealing key is in it.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        path: Path | None,
        lease: Lease | None,
        sealing_key: bytes,
        durability: Durability,
        retention: Retention,
        clock: Callable[[], float],
    ) -> None:
        self._connection = connection
        self._path = path
        self._lease = lease
        self._owner = lease.owner if lease else "memory"
        self._sealing_key = sealing_key
        self._in_thread = durability == "full" and path is not None
        self._retention = retention
        self._clock = clock
        self._lock = threading.Lock()
        self._holder: int | None = None
        self._closed = False
        self._attempts = itertools.count(1)
        self._dead: set[str] = set()
        self._bells = Bells()
        self._unrung: list[object] = []
        self._writes = 0
        self._purged_at = float("-inf")
        self._upkeep: threading.Thread | None = None
        self._copying = False

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str] | None,
        *,
        durability: Durability = "process",
        retention: Retention | None = None,
        clock: Callable[[], float] = time.time,
    ) -> Self:
        """Open a file, made with its folder if it isn't there, or with None a store in memory.

        Args:
            path: The database file.
            durability: `process` or `full`, see the module.
            retention: How long things are kept.
            clock: Seconds since the epoch; only retention goes by it.

        Raises:
            StoreError: It can't be opened, is of a newer build (nothing is changed then), or is another program's.
        """
        retention = retention or Retention()
        if path is None:
            connection, sealing_key = open_memory()
            return cls(connection, None, None, sealing_key, durability, retention, clock)
        # One file, one folder of leases, by whatever links it is reached.
        path = Path(path).resolve()
        connection, lease, sealing_key = open_file(path, full=durability == "full")
        # On the loop's thread SQLite itself never waits; see `_soon`.
        connection.execute(f"PRAGMA busy_timeout = {PATIENCE_MS if durability == 'full' else 0}")
        store = cls(connection, path, lease, sealing_key, durability, retention, clock)
        store._keep_up()
        return store

    # One at a time

    def _enter(self, *, wait: bool) -> None:
        if self._holder == threading.get_ident():
            raise StoreError("the store was called inside its own transaction", hint="end the transaction first")
        if not (self._lock.acquire(timeout=PATIENCE) if wait else self._lock.acquire(blocking=False)):
            if wait:
                raise StoreError(f"another thread kept the store in a transaction for {PATIENCE:.0f} seconds")
            raise _BusyError
        if self._closed or (self._lease is not None and self._lease.forked):
            self._lock.release()
            raise StoreError("the store is closed" if self._closed else "a store can't be used in a forked child")

    def _now(self, work: Callable[[sqlite3.Connection], T], *, write: bool, wait: bool) -> T:
        if write and not wait and self._copying and self._writes >= _WRITES_PER_UPKEEP:
            raise _BusyError  # Writing without a pause would keep the checkpoint from ever having its turn.
        self._enter(wait=wait)
        try:
            with transaction(self._connection, write=write):
                answer = work(self._connection)
        except (sqlite3.Error, OSError, UnicodeEncodeError) as error:
            if is_busy(error) and not wait:
                raise _BusyError from error
            raise broken(self._path, error) from error
        finally:
            self._lock.release()
        if write:
            self._count_write()
        return answer

    async def _soon(self, work: Callable[[sqlite3.Connection], T], *, write: bool) -> T:
        """Run statements as soon as nobody else writes. Suspends only before that moment, never after it."""
        pause, deadline = 0.0005, 0.0
        while True:
            try:
                return self._now(work, write=write, wait=False)
            except _BusyError:
                deadline = deadline or time.monotonic() + PATIENCE
                if time.monotonic() > deadline:
                    raise StoreError(f"others kept the store locked for {PATIENCE:.0f} seconds") from None
                await anyio.sleep(pause * (0.5 + random.random()))  # noqa: S311 - spreads the tries, guards nothing
                pause = min(pause * 1.7, 0.02)

    async def _write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        if not self._in_thread:
            return await self._soon(work, write=True)
        return await anyio.to_thread.run_sync(lambda: self._now(work, write=True, wait=True))

    async def run(self, work: Callable[[sqlite3.Connection], T], *, write: bool) -> T:
        """Run statements of the store's other modules in one transaction, as soon as nobody else writes."""
        return await (self._write(work) if write else self._soon(work, write=False))

    async def _end(self, token: Token, work: Callable[[sqlite3.Connection], None]) -> None:
        # A cancelled call has still to say what became of it, or its repeats would wait for this process to end.
        with anyio.CancelScope(shield=True):
            await self._write(work)
        self._bells.ring(("record", token.record))

    # Idempotency

    async def begin(self, principal: str, operation: str, key: str, digest: str, *, atomic: bool = False) -> Begun:
        """See `Store.begin`."""
        ask = Ask(principal, operation, key, digest, atomic, records.identity(principal, operation, key))
        return await self._begin(ask)

    async def _begin(self, ask: Ask) -> Begun:
        attempt = next(self._attempts)
        unwanted = False

        def work(connection: sqlite3.Connection) -> Begun:
            if unwanted:
                raise StoreError("nobody waits for this attempt any more")
            return records.begin(connection, ask, self._owner, attempt, self._clock(), self._is_alive)

        try:
            return await self._write(work)
        except BaseException as error:
            if self._in_thread and not isinstance(error, Exception):
                # Cancelled while the worker may still commit: a record whose token nobody has would stay in flight.
                unwanted = True
                threading.Thread(target=self._disown, args=(attempt,), name="hotplug-store-disown").start()
            raise

    def _disown(self, attempt: int) -> None:
        def work(connection: sqlite3.Connection) -> None:
            connection.execute("DELETE FROM store_record WHERE owner = ? AND attempt = ?", (self._owner, attempt))

        with contextlib.suppress(StoreError):
            self._now(work, write=True, wait=True)

    async def wait(self, flight: InFlight, timeout: float) -> Begun:  # noqa: ASYNC109
        """See `Store.wait`."""
        ask = Ask(
            flight.principal,
            flight.operation,
            flight.key,
            flight.digest,
            flight.atomic,
            records.identity(flight.principal, flight.operation, flight.key),
        )
        deadline, pause = time.monotonic() + timeout, 0.002
        while True:
            begun = await self._soon(lambda c: records.look(c, ask, self._is_alive), write=False)
            if begun is None or isinstance(begun, InDoubt):
                # The owner may have finished and gone between the look at its record and the one at its lease. Where
                # nobody can write in between, a dead owner's record is what it left.
                begun = await self._begin(ask)
            left = deadline - time.monotonic()
            if not isinstance(begun, InFlight) or left <= 0:
                return begun
            with self._bells.listen(("record", begun.record)) as sleep:
                await sleep(min(pause, left))
            pause = min(pause * 1.5, _LONGEST_RECORD_POLL)

    async def finish(
        self, token: Token, outcome: Mapping[str, Any], is_error: bool = False, *, receipt: StoredReceipt | None = None
    ) -> None:
        """See `Store.finish`."""
        await self._end(token, self._finishing(token, outcome, is_error, receipt))

    def _finishing(
        self, token: Token, outcome: Mapping[str, Any], is_error: bool, receipt: StoredReceipt | None
    ) -> Callable[[sqlite3.Connection], None]:
        text = as_json(outcome, "the outcome")
        details = as_json(receipt.details, "the receipt") if receipt else ""

        def work(connection: sqlite3.Connection) -> None:
            now = self._clock()
            records.finish(connection, token, text, is_error, now)
            if receipt is not None:
                records.put_receipt(connection, receipt, details, now)

        return work

    async def forget(self, token: Token) -> None:
        """See `Store.forget`."""
        await self._end(token, lambda c: records.forget(c, token))

    async def abandon(self, token: Token) -> None:
        """See `Store.abandon`."""
        await self._end(token, lambda c: records.abandon(c, token))

    def _is_alive(self, owner: str) -> bool:
        if owner == self._owner:
            return True
        if self._path is None or owner in self._dead:
            return False
        alive = is_alive(owners(self._path), owner)
        if not alive:
            self._dead.add(owner)
        return alive

    # Receipts

    async def add_receipt(self, receipt: StoredReceipt) -> None:
        """See `Store.add_receipt`."""
        details = as_json(receipt.details, "the receipt")
        await self._write(lambda c: records.put_receipt(c, receipt, details, self._clock()))

    async def receipt(self, action_id: str) -> StoredReceipt | None:
        """See `Store.receipt`."""
        return await self._soon(lambda c: records.take_receipt(c, action_id), write=False)

    # Memory

    async def remember(self, scope: str, name: str, value: Mapping[str, Any] | None) -> None:
        """See `Store.remember`."""
        if value is None:
            await self._write(lambda c: _run(c, "DELETE FROM store_memory WHERE scope = ? AND name = ?", (scope, name)))
            return
        text = as_json(value, "what is to be remembered")
        await self._write(
            lambda c: _run(
                c,
                "INSERT INTO store_memory (scope, name, body, stored) VALUES (?, ?, ?, ?)"
                " ON CONFLICT (scope, name) DO UPDATE SET body = excluded.body, stored = excluded.stored",
                (scope, name, text, self._clock()),
            )
        )

    async def recall(self, scope: str, name: str) -> dict[str, Any] | None:
        """See `Store.recall`."""

        def work(connection: sqlite3.Connection) -> dict[str, Any] | None:
            found = connection.execute(
                "SELECT body FROM store_memory WHERE scope = ? AND name = ?", (scope, name)
            ).fetchone()
            return json.loads(found[0]) if found else None

        return await self._soon(work, write=False)

    async def recall_all(self, scope: str) -> dict[str, dict[str, Any] | None]:
        """See `Store.recall_all`."""
        return await self._soon(lambda c: facts.take_all(c, scope), write=False)

    async def claim(self, scope: str, values: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any] | None]:
        """See `Store.claim`."""
        texts = {name: as_json(value, "what is to be remembered") for name, value in values.items()}
        return await self._write(lambda c: facts.claim(c, scope, texts, self._clock()))

    async def exchange(
        self, scope: str, values: Mapping[str, tuple[Mapping[str, Any] | None, Mapping[str, Any]]]
    ) -> bool:
        """See `Store.exchange`."""
        texts = {name: (old, as_json(new, "what is to be remembered")) for name, (old, new) in values.items()}
        return await self._write(lambda c: facts.exchange(c, scope, texts, self._clock()))

    async def forget_all(self, scope: str, names: Collection[str] | None = None) -> int:
        """See `Store.forget_all`."""
        return await self._write(lambda c: facts.drop(c, scope, names))

    # Events

    async def append_event(self, stream: str, event: Mapping[str, Any]) -> str:
        """See `Store.append_event`."""
        named = events.names(event)
        body = as_json(event, "the event")
        cursor, new = await self._write(lambda c: events.append(c, stream, named, body, self._clock()))
        if new:
            self._bells.ring(("stream", stream))
        return cursor

    async def events_of(self, stream: str, happening: str) -> tuple[dict[str, Any], ...]:
        """See `Store.events_of`."""
        return await self._soon(lambda c: events.telling_of(c, stream, happening), write=False)

    async def events_after(
        self, stream: str, cursor: str | None = None, *, limit: int = 100, types: Collection[str] | None = None
    ) -> EventPage:
        """See `Store.events_after`."""
        if limit < 1:
            raise InvalidArgument(f"limit is {limit}", hint="1 is the least")

        def work(connection: sqlite3.Connection) -> EventPage | None:
            place = events.locate(connection, stream, cursor)
            return None if place is None else events.page(connection, place, limit, types)

        return await self._in_stream(stream, work)

    async def end_of_events(self, stream: str) -> str:
        """See `Store.end_of_events`."""

        def work(connection: sqlite3.Connection) -> str | None:
            place = events.locate(connection, stream, None)
            return None if place is None else events.cursor_at(place.tag, place.last)

        return await self._in_stream(stream, work)

    async def _in_stream(self, stream: str, work: Callable[[sqlite3.Connection], T | None]) -> T:
        while True:
            answer = await self._soon(work, write=False)
            if answer is not None:
                return answer
            await self._write(lambda c: events.ensure(c, stream))

    async def wait_for_event(self, stream: str, cursor: str | None, timeout: float) -> bool:  # noqa: ASYNC109
        """See `Store.wait_for_event`."""

        def work(connection: sqlite3.Connection) -> bool | None:
            place = events.locate(connection, stream, cursor)
            return None if place is None else place.missed or place.last > place.seq

        deadline, pause = time.monotonic() + timeout, 0.01
        with self._bells.listen(("stream", stream)) as sleep:
            while True:
                if await self._in_stream(stream, work):
                    return True
                left = deadline - time.monotonic()
                if left <= 0:
                    return False
                await sleep(min(pause, left))
                pause = min(pause * 1.5, _LONGEST_POLL)

    # Together with a backend's own tables

    @contextlib.contextmanager
    def transaction(self) -> Generator[sqlite3.Connection]:
        """See `CoCommitting.transaction`."""
        self._enter(wait=True)
        self._holder = threading.get_ident()
        try:
            with self._patiently():
                self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
            finally:
                rung, self._unrung = self._unrung, []
            with as_store_errors(self._path):
                self._connection.execute("COMMIT")
        finally:
            # Nothing is left to roll back after a commit.
            self._connection.rollback()
            self._holder = None
            self._lock.release()
        self._count_write()
        for topic in rung:
            self._bells.ring(topic)

    @contextlib.contextmanager
    def _patiently(self) -> Generator[None]:
        with as_store_errors(self._path):
            self._connection.execute(f"PRAGMA busy_timeout = {PATIENCE_MS}")
            try:
                yield
            finally:
                self._connection.execute(f"PRAGMA busy_timeout = {PATIENCE_MS if self._in_thread else 0}")

    def finish_in(
        self,
        connection: sqlite3.Connection,
        token: Token,
        outcome: Mapping[str, Any],
        is_error: bool = False,
        *,
        receipt: StoredReceipt | None = None,
    ) -> None:
        """See `CoCommitting.finish_in`."""
        self._check_shared(connection)
        with as_store_errors(self._path):
            self._finishing(token, outcome, is_error, receipt)(connection)
        self._ring_later(connection, ("record", token.record))

    def add_receipt_in(self, connection: sqlite3.Connection, receipt: StoredReceipt) -> None:
        """See `CoCommitting.add_receipt_in`."""
        self._check_shared(connection)
        details = as_json(receipt.details, "the receipt")
        with as_store_errors(self._path):
            records.put_receipt(connection, receipt, details, self._clock())

    def wake(self, stream: str) -> None:
        """See `CoCommitting.wake`."""
        self._bells.ring(("stream", stream))

    def append_event_in(self, connection: sqlite3.Connection, stream: str, event: Mapping[str, Any]) -> str:
        """See `CoCommitting.append_event_in`."""
        self._check_shared(connection)
        named = events.names(event)
        with as_store_errors(self._path):
            cursor, _ = events.append(connection, stream, named, as_json(event, "the event"), self._clock())
        self._ring_later(connection, ("stream", stream))
        return cursor

    def _check_shared(self, connection: sqlite3.Connection) -> None:
        if not connection.in_transaction:
            raise StoreError("the connection is in no transaction", hint="begin one, and write the effect in it")
        if connection is self._connection:
            return
        files = {name: file for _, name, file in connection.execute("PRAGMA database_list")}
        files.pop("temp", None)
        if self._path is None or not (files["main"] == str(self._path) or _same(self._path, files["main"])):
            raise StoreError("the connection is to another file than the store's", hint="use `transaction()`")
        if len(files) > 1:
            raise StoreError(
                f"the connection has other files attached: {', '.join(sorted(files.keys() - {'main'}))}",
                hint="SQLite doesn't commit several files as one; keep the tables in the store's file",
            )

    def _ring_later(self, connection: sqlite3.Connection, topic: object) -> None:
        # A foreign connection's commit can't be seen from here; its listeners look for themselves.
        if connection is self._connection:
            self._unrung.append(topic)

    # The store itself

    @property
    def file(self) -> Path | None:
        """See `CoCommitting.file`."""
        return self._path

    def sealing_key(self) -> bytes:
        """See `Store.sealing_key`."""
        return self._sealing_key

    async def purge(self) -> int:
        """See `Store.purge`."""
        if self._path is None:
            return self._purge_here(self._cutoffs())
        return await anyio.to_thread.run_sync(self._purge_aside, self._cutoffs())

    def _cutoffs(self) -> Cutoffs:
        return Cutoffs.at(self._clock(), self._retention)

    def _purge_here(self, cutoffs: Cutoffs) -> int:
        self._enter(wait=True)
        try:
            with as_store_errors(None):
                return sum(purge(self._connection, cutoffs, self._is_alive))
        finally:
            self._lock.release()

    def _purge_aside(self, cutoffs: Cutoffs) -> int:
        assert self._path is not None
        dropped = 0
        with as_store_errors(self._path), contextlib.closing(connect(self._path)) as connection:
            for number, batch in enumerate(purge(connection, cutoffs, self._is_alive), start=1):
                dropped += batch
                if self._closed:
                    break
                if number % _BATCHES_PER_CHECKPOINT == 0:
                    checkpoint(self._path)
        return dropped

    def _count_write(self) -> None:
        self._writes += 1
        if self._writes >= _WRITES_PER_UPKEEP:
            self._keep_up()

    def _keep_up(self) -> None:
        """Checkpoint, and purge if it is time: in memory here, for a file in a thread, one at a time."""
        if self._upkeep is not None and self._upkeep.is_alive():
            return
        self._writes = 0
        cutoffs = None
        if time.monotonic() - self._purged_at > _SECONDS_PER_PURGE:
            self._purged_at = time.monotonic()
            cutoffs = self._cutoffs()
        if self._path is None:
            if cutoffs is not None:
                self._purge_here(cutoffs)
            return
        thread = threading.Thread(
            target=self._keep_up_aside, args=(self._path, cutoffs), name="hotplug-store-upkeep", daemon=True
        )
        # A write is committed by now, and its caller must learn so, whether or not there is a thread to be had.
        with contextlib.suppress(RuntimeError):
            self._copying = True
            try:
                thread.start()
            except BaseException:
                self._copying = False
                raise
            self._upkeep = thread

    def _keep_up_aside(self, path: Path, cutoffs: Cutoffs | None) -> None:
        # What fails here is tried again at the next upkeep, and a call that meets the same fault reports it.
        with contextlib.suppress(StoreError):
            try:
                with as_store_errors(path):
                    checkpoint(path)
            finally:
                self._copying = False
            if cutoffs is not None:
                self._purge_aside(cutoffs)

    async def aclose(self) -> None:
        """See `Store.aclose`."""
        if self._closed:
            return
        if self._holder == threading.get_ident():
            raise StoreError("the store was closed inside its own transaction", hint="end the transaction first")
        self._closed = True
        if self._upkeep is not None:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(self._upkeep.join)
        with self._lock:
            self._connection.close()
            if self._lease is not None:
                self._lease.release()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()


def _same(path: Path, other: str) -> bool:
    return bool(other) and path.samefile(other)


def _run(connection: sqlite3.Connection, statement: str, values: tuple[object, ...]) -> None:
    connection.execute(statement, values)
