"""Records of calls: kept without delaying or failing one.

A call is noted in a queue, in a few microseconds; a task of its own writes what is queued a little later, many in one
go. What was noted in the last moment before a kill is lost, and where the queue is full or the store says no, calls
are counted instead of kept, and the count is recorded. Arguments and results are kept only where the owner turned that
on, and then masked (`keeping`); of arguments there is a digest, keyed with the store's own key, since the values
behind a plain one could be guessed.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import json
import logging
import re
from collections import deque
from collections.abc import Callable
from time import time
from types import TracebackType
from typing import Any, Final, NamedTuple, Self

import msgspec
from msgspec import Raw

from hotplug.errors import CODES, StoreError
from hotplug.gateway.config import RecordsConfig
from hotplug.gateway.keeping import Mask, kept_values
from hotplug.store.calls import CallStore, StoredCall

__all__ = ["DROPPED", "OUTCOMES", "CallRecord", "Records", "argument_digest"]

DROPPED: Final = "dropped"
"""The kind, and the outcome, of a note that calls were not kept."""

_LABEL: Final = b"hotplug: arguments of calls"
_DAY: Final = 86_400.0
_QUEUED: Final = 10_000
_HELD: Final = 16 * 1024 * 1024
_BATCH: Final = 100
_AT_A_STRETCH: Final = 64 * 1024
_LARGEST_READ: Final = 256 * 1024
_SECONDS_PER_PURGE: Final = 3600.0
_LAST_CHANCE: Final = 5.0
_TRIES: Final = 3
OUTCOMES: Final = frozenset(CODES) | {"ok", "tool_error", "cancelled", "lost", "refused", "input_required", DROPPED}
"""How a call may have ended, beside the codes of JSON-RPC."""
_JSON_RPC: Final = re.compile(r"-?\d{1,10}")
_METHOD: Final = re.compile(r"[A-Za-z$][\w.$/-]{0,63}")
_NAME: Final = re.compile(r"[^\x00-\x1f\x7f-\x9f\ud800-\udfff\u2028\u2029]{1,256}")
_TRACE: Final = re.compile(r"[0-9a-f]{32}")

_log: Final = logging.getLogger(__name__)

Json = bytes | Raw


class CallRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One call, as far as it may always be kept: no value that a caller or a server gave.

    Args:
        kind: The method: `tools/call`.
        outcome: `ok`, `tool_error`, a code of ours (`not_found`), a JSON-RPC code (`-32602`), `cancelled`, `lost`,
            `refused`, `input_required`; anything else is kept as `other`.
        duration_ms: From the request to its answer.
        thread: Whose call it was.
        server: Which server got it; None: none did.
        member: The member or tool, as the gateway resolved it. A name that it doesn't know is the caller's: None.
        projection: The projection that was used.
        action_id: The receipt's.
        trace_id: The caller's trace, 32 hexadecimal digits.
        bytes_in: Size of the request.
        bytes_out: Size of the answer.
        at: When it began, seconds since the epoch.
    """

    kind: str
    outcome: str
    duration_ms: float
    thread: str | None
    server: str | None = None
    member: str | None = None
    projection: str | None = None
    action_id: str | None = None
    trace_id: str | None = None
    bytes_in: int | None = None
    bytes_out: int | None = None
    at: float = msgspec.field(default_factory=time)


class _Noted(NamedTuple):
    record: CallRecord
    arguments: Json | None
    result: Json | None
    schemas: tuple[Json | None, Json | None]
    size: int
    with_values: bool


class Records:
    """Writes records of calls behind them. One event loop uses it, as an async context manager.

    Args:
        store: Where they are kept.
        config: For how long, and whether with arguments.
        sealing_key: The store's; the key of the digests comes from it.
        mask: Replaces secrets that are known in text that is kept.
        queued: How many may wait to be written.
        every: Seconds for which they are gathered.
        clock: Seconds since the epoch.
    """

    def __init__(
        self,
        store: CallStore,
        config: RecordsConfig,
        *,
        sealing_key: bytes,
        mask: Mask = str,
        queued: int = _QUEUED,
        every: float = 0.25,
        clock: Callable[[], float] = time,
    ) -> None:
        self._store = store
        self._days = config.days
        self._with_values = config.arguments
        self._key = hmac.new(sealing_key, _LABEL, hashlib.sha256).digest()
        self._mask = mask
        self._most = queued
        self._every = every
        self._clock = clock
        self._queue: deque[_Noted] = deque()
        self._held = 0
        self._dropped = 0
        self._unwritten: list[StoredCall] = []
        self._tries = 0
        self._due = asyncio.Event()
        self._ending = asyncio.Event()
        self._draining = asyncio.Lock()
        self._writing: asyncio.Task[None] | None = None
        self._purging: asyncio.Task[None] | None = None
        self._failing = False

    @property
    def dropped(self) -> int:
        """Calls that were not kept, and whose count isn't on record yet."""
        return self._dropped + sum(one.dropped for one in self._unwritten)

    def add(
        self,
        record: CallRecord,
        *,
        arguments: Json | None = None,
        result: Json | None = None,
        input_schema: Json | None = None,
        output_schema: Json | None = None,
    ) -> None:
        """Note a call; it is written a little later. Raises nothing, waits for nothing.

        Args:
            arguments: Raw JSON: for the digest, and to be kept where that is on.
            result: Raw JSON, to be kept where that is on.
            input_schema: The tool's, raw JSON: says which arguments are sensitive.
            output_schema: The same of the result.
        """
        try:
            if self._days <= 0 or self._ending.is_set():
                return
            if len(self._queue) >= self._most:
                self._dropped += 1
                return
            if not self._with_values:
                result = input_schema = output_schema = None
            size = (0 if arguments is None else len(arguments)) + (0 if result is None else len(result))
            if self._held + size > _HELD:
                # Rather without its values than not at all.
                arguments, result, size = None, None, 0
            self._held += size
            self._queue.append(
                _Noted(record, arguments, result, (input_schema, output_schema), size, self._with_values)
            )
            self._due.set()
        except Exception:
            self._dropped += 1

    async def flush(self) -> None:
        """Write everything that is noted now."""
        await self._drain()

    async def purge(self) -> int:
        """Drop what is past its retention, as is done every hour by itself; how much that was.

        Raises:
            StoreError: The store can't be written.
        """
        return await self._store.purge_calls(self._clock() - self._days * _DAY)

    def configure(self, config: RecordsConfig) -> None:
        """Keep what another configuration says, from the next call on."""
        self._days = config.days
        self._with_values = config.arguments

    async def __aenter__(self) -> Self:
        self._writing = asyncio.create_task(self._write(), name="hotplug-records")
        self._purging = asyncio.create_task(self._purge_now_and_then(), name="hotplug-records-purge")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._ending.set()
        if self._purging is not None:
            self._purging.cancel()
            await asyncio.wait({self._purging})
        if self._writing is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LAST_CHANCE):
                    await self._writing

    async def _write(self) -> None:
        while not self._ending.is_set():
            await self._first(self._due, None)
            if not await self._first(self._ending, self._every):
                await self._drain()
        await self._drain()

    async def _purge_now_and_then(self) -> None:
        while not self._ending.is_set():
            try:
                await self.purge()
            except StoreError as error:
                self._complain(error)
            await self._first(self._ending, _SECONDS_PER_PURGE)

    async def _first(self, event: asyncio.Event, seconds: float | None) -> bool:
        """Wait for an event, the end, or so many seconds; whether the event came."""
        waiting = {asyncio.ensure_future(one.wait()) for one in {event, self._ending}}
        try:
            await asyncio.wait(waiting, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in waiting:
                one.cancel()
        return event.is_set()

    async def _drain(self) -> None:
        async with self._draining:
            self._due.clear()
            while self._unwritten or self._queue or self._dropped:
                if not self._unwritten:
                    self._fill()
                try:
                    await self._store.add_calls(self._unwritten)
                except Exception as error:
                    self._complain(error)
                    self._tries += 1
                    if self._tries >= _TRIES:
                        # One that can't be written must not keep all others out.
                        self._dropped += sum(one.dropped or 1 for one in self._unwritten)
                        self._unwritten, self._tries = [], 0
                    self._due.set()
                    return
                self._unwritten, self._tries, self._failing = [], 0, False
                # Calls have the loop in between.
                await asyncio.sleep(0)

    def _fill(self) -> None:
        size = 0
        while self._queue and len(self._unwritten) < _BATCH and size < _AT_A_STRETCH:
            noted = self._queue.popleft()
            self._held -= noted.size
            size += noted.size
            self._unwritten.append(self._stored(noted))
        if self._dropped:
            note = StoredCall(at=self._clock(), kind=DROPPED, outcome=DROPPED, dropped=self._dropped)
            self._unwritten.append(note)
            self._dropped = 0

    def _complain(self, error: Exception) -> None:
        if not self._failing:
            self._failing = True
            # Only an error of the store's is made to be shown: another's text may hold a value.
            what = error.message if isinstance(error, StoreError) else type(error).__name__
            _log.warning("calls can't be recorded for now: %s", what)

    def _stored(self, noted: _Noted) -> StoredCall:
        record = noted.record
        digest: str | None = None
        arguments: str | None = None
        result: str | None = None
        raw = None if noted.arguments is None else bytes(noted.arguments)
        if raw is not None:
            digest = argument_digest(self._key, raw)
        # One that was noted while they were not kept came without its schemas.
        if self._with_values and noted.with_values:
            try:
                arguments, result = kept_values(
                    raw,
                    None if noted.result is None else bytes(noted.result),
                    schemas=[bytes(one) for one in noted.schemas if one is not None],
                    mask=self._mask,
                )
            except Exception as error:
                _log.warning("a call is recorded without its arguments: %s", type(error).__name__)
        return StoredCall(
            at=record.at,
            kind=_fitting(_METHOD, record.kind) or "other",
            outcome=_outcome(record.outcome),
            thread=_fitting(_NAME, record.thread),
            server=_fitting(_NAME, record.server),
            member=_fitting(_NAME, record.member),
            projection=_fitting(_NAME, record.projection),
            action_id=_fitting(_NAME, record.action_id),
            trace_id=_fitting(_TRACE, record.trace_id),
            duration_ms=round(record.duration_ms, 3),
            bytes_in=record.bytes_in,
            bytes_out=record.bytes_out,
            digest=digest,
            arguments=arguments,
            result=result,
        )


def argument_digest(key: bytes, raw: bytes) -> str | None:
    """`hmac-sha256:` and 32 hexadecimal digits over the canonical form of some JSON; None where it is none.

    Canonical: members sorted by name, no white space, 1.0 as 1. Written by the standard library, whose every number
    and string has a form, in place of RFC 8785, which refuses some that a caller may send. What is larger than 256 KiB
    is taken as it came.
    """
    if len(raw) <= _LARGEST_READ:
        try:
            raw = _encode(_decode(raw.decode())).encode()
        except (ValueError, RecursionError):
            return None
    return f"hmac-sha256:{hmac.digest(key, raw, 'sha256').hex()[:32]}"


def _number(text: str) -> Any:
    number = float(text)
    return int(number) if number.is_integer() and abs(number) < 2**53 else number


_decode: Final = json.JSONDecoder(parse_float=_number).decode
_encode: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode


def _outcome(outcome: str) -> str:
    return outcome if outcome in OUTCOMES or _JSON_RPC.fullmatch(outcome) else "other"


def _fitting(pattern: re.Pattern[str], text: str | None) -> str | None:
    return text if text is not None and pattern.fullmatch(text) else None
