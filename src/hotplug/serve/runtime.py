"""The runtime in front of a server's parts: validates, seals refs, does things once, fills receipts, answers errors.

Knows no transport. `Runtime.call` is the way of every call, native or projected, over MCP or in process.
"""

from __future__ import annotations

import logging
import secrets
import sqlite3
import traceback
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Final, cast

import anyio

from hotplug.declare import Card, Declaration
from hotplug.errors import (
    Conflict,
    ConnectionFailed,
    Disconnected,
    Guarded,
    HotplugError,
    InDoubt,
    Internal,
    InvalidArgument,
    StoreError,
    Timeout,
    Undeclared,
    Unsupported,
)
from hotplug.profile import Event, Model, Part, Profile, Receipt, without_nulls
from hotplug.serve.bound import Bound, Tool, bind
from hotplug.serve.call import Call, ended, running
from hotplug.serve.connection import ConnectionParts, without_of
from hotplug.serve.once import argument_digest
from hotplug.serve.provider import Memory, Provider, providers_of
from hotplug.serve.refs import Seal, Seals
from hotplug.store import CoCommitting, Finished, Fresh, InFlight, Mismatch, Store, StoredReceipt, Token
from hotplug.store import InDoubt as StillInDoubt

__all__ = [
    "AUTHORIZED_META",
    "INSTANCE_META",
    "KEY_META",
    "NOTES_META",
    "Answer",
    "Runtime",
]

AUTHORIZED_META: Final = "tools.noetic/authorized"
INSTANCE_META: Final = "tools.noetic/instance"
KEY_META: Final = "tools.noetic/idempotency-key"
NOTES_META: Final = "dev.hotplug/notes"

_LONGEST_KEY = 255
_WAIT_FOR_TWIN = 60.0
"""Seconds that a repeat waits for the first call under its key."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Answer:
    """What a call gave: the structured content, and whether it is an error."""

    content: dict[str, Any]
    is_error: bool = False
    meta: Mapping[str, Any] | None = None


class Runtime:
    """Serves profiles from providers.

    Args:
        servers: Native servers (instances of profile subclasses) or other providers.
        store: Keeps idempotency records, receipts, durable events and the sealing key.
        identity: What refs belong to: stable over restarts and different for each server.
        name: How the server calls itself.
    """

    def __init__(self, *servers: Profile | Provider, store: Store, identity: str, name: str = "hotplug") -> None:
        self.providers: tuple[Provider, ...] = tuple(providers_of(servers))
        self.store = store
        self.identity = identity
        self.name = name
        self._seals = Seals(lambda principal: Seal(self.store.sealing_key(), self.identity, principal))
        self.connection = ConnectionParts(self)
        self.bound: dict[str, Bound] = {}
        memory = Memory(store, identity)
        for provider in (*self.providers, self.connection):
            for bound in bind(provider):
                if bound.part.name in self.bound:
                    raise HotplugError(f"two servers both offer {bound.part.name}", hint="serve them as two servers")
                self.bound[bound.part.name] = bound
            provider.join(self.connection.events.emit, memory)
        known: dict[str, Part] = {}
        for provider in (*self.providers, self.connection):
            known.update(provider.definition.all_parts)
            for extension in provider.extensions:
                known.update(extension.parts)
        self.missing = {name: part for name, part in known.items() if name not in self.bound and part.kind != "event"}

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[Runtime]:
        """The runtime with its providers opened; they are closed at the end, the store is not."""
        opened: list[Provider] = []
        try:
            for provider in self.providers:
                await provider.aopen()
                opened.append(provider)
            yield self
        finally:
            with anyio.CancelScope(shield=True):
                for provider in reversed(opened):
                    await provider.aclose()

    @cached_property
    def tools(self) -> Mapping[str, Tool]:
        """The tools by name, in the order of the profiles."""
        return {name: bound.tool for name, bound in self.bound.items()}

    @cached_property
    def declaration(self) -> Declaration:
        """What the server says that it implements."""
        return Declaration.of(
            cards=[
                Card(
                    profile=one.name,
                    version=one.version,
                    digest=one.digest,
                    facets={name: facet.version for name, facet in one.facets.items() if name in provider.facets},
                    via="projected" if provider.projection else "native",
                    projection=provider.projection.document() if provider.projection else None,
                )
                for provider in (*self.providers, self.connection)
                for one in provider.definition.lineage()
            ],
            extensions={one.id: one.version for provider in self.providers for one in provider.extensions},
            senses={name: sense.document() for provider in self.providers for name, sense in provider.senses.items()},
            determinism=self.providers[0].determinism.document() if self.providers else {},
            instances=[
                {"id": provider.instance, "title": provider.title} for provider in self.providers if provider.instance
            ],
        )

    def seal(self, principal: str) -> Seal:
        """The seal of refs for a principal."""
        return self._seals.of(principal)

    async def call(
        self, name: str, arguments: Any, *, meta: Mapping[str, Any] | None = None, principal: str = "local"
    ) -> Answer:
        """Answer a call of a part by its wire name; every failure is an answer too.

        Args:
            meta: The request's `_meta`: instance, idempotency key, authorisations.
            principal: On whose behalf; keys and refs of two principals never meet.
        """
        try:
            return await self._answer(name, arguments, meta or {}, principal)
        except ConnectionFailed as error:
            return Answer(error.as_wire(), is_error=True)
        except Exception as error:
            _log.error("%s failed: %s", name, _without_values(error))
            return Answer(_unexpected(name, error).as_wire(), is_error=True)

    async def _answer(self, name: str, arguments: Any, meta: Mapping[str, Any], principal: str) -> Answer:
        bound = self._find(name)
        part, provider = bound.part, bound.provider
        self._check_instance(provider, meta.get(INSTANCE_META))
        if arguments is None:
            arguments = {}
        if not isinstance(arguments, dict):
            raise InvalidArgument(f"arguments are {type(arguments).__name__}, not an object", hint="give them by name")
        given = cast("dict[str, Any]", without_nulls(arguments, part.patches))
        extras = given.pop("ext", None) if bound.extras else None
        bound.check_facets(given)
        if part.flags.guarded and bound.member not in _members(meta.get(AUTHORIZED_META)):
            raise Guarded(f"{part.name} is destructive or costly, and this call carries no authorisation for it")
        notes: list[str] = []
        seal = self.seal(principal)
        ext = bound.read_extras(extras, seal)
        parsed = cast(
            "Mapping[str, Any]",
            part.input.read(given, refs=seal, notes=notes)
            if provider.takes == "typed"
            else part.input.wire(given, refs=seal, notes=notes),
        )
        if notes:
            given = cast("dict[str, Any]", part.input.settled(given))
            bound.check_facets(given)
        call = Call(
            part=part,
            principal=principal,
            action_id=f"a_{secrets.token_urlsafe(12)}" if part.flags.effects else None,
            at=_now(),
            key=_key(meta.get(KEY_META)) if part.flags.once else None,
            ext=ext,
            notes=notes,
        )
        if call.key is None:
            return await self._unkeyed(bound, call, parsed)
        if extras is not None:
            given = {**given, "ext": extras}
        return await self._once(bound, call, parsed, given)

    def _find(self, name: str) -> Bound:
        bound = self.bound.get(name)
        if bound is not None:
            return bound
        part = self.missing.get(name)
        if part is None:
            raise Undeclared(f"there is no part {name!r} in what this server declares")
        lost = without_of(part, [one.definition for one in (*self.providers, self.connection)])
        raise Unsupported(
            f"this server doesn't offer {name}" + (f": {lost}" if lost else ""),
            details={"part": name, **({"facet": part.flags.facet} if part.flags.facet else {})},
        )

    def _check_instance(self, provider: Provider, instance: Any) -> None:
        if instance is None or provider is self.connection:
            return
        if instance != provider.instance:
            raise InvalidArgument(f"there is no instance {instance!r} here", details={"instances": [provider.instance]})

    async def _unkeyed(self, bound: Bound, call: Call, arguments: Mapping[str, Any]) -> Answer:
        """An intention of its own: done, not remembered."""
        if call.action_id is not None and self._commits_together(bound.provider):
            call.commit = self._commit
        try:
            content = await self._do(bound, call, arguments)
        except ConnectionFailed:
            raise
        except Exception as error:
            if call.action_id is None:
                raise
            _log.error("%s failed: %s", call.part.name, _without_values(error))
            raise _unexpected(call.part.name, error, state="unknown") from None
        if call.outcome is not None:
            self._wake()
        elif call.action_id is not None:
            await self.store.add_receipt(_receipt(call))
        return Answer(content, meta={NOTES_META: call.notes} if call.notes else None)

    async def _do(self, bound: Bound, call: Call, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Do the work and give its outcome as JSON."""
        token = running(call)
        limit = call.part.flags.timeout_ms
        acting = self.connection.acting if call.part.flags.effects else None
        if acting is not None:
            acting.began()
        try:
            if not limit:
                result = await bound.provider.invoke(call.part, arguments)
                return call.outcome or self._outcome(call, result)
            with anyio.move_on_after(limit / 1000):
                result = await bound.provider.invoke(call.part, arguments)
                return call.outcome or self._outcome(call, result)
        finally:
            ended(token)
            if acting is not None:
                acting.ended()
        if call.outcome is not None:
            # It was too late, and yet it was done: it is committed with its outcome.
            return call.outcome
        state = {"state": "unknown"} if call.part.flags.effects else {}
        raise Timeout(f"{call.part.name} took longer than {limit} ms", details=state)

    def _outcome(self, call: Call, result: Any) -> dict[str, Any]:
        if call.action_id is not None:
            receipt = Receipt(action_id=call.action_id, at=call.at)
            if isinstance(result, Model):
                result = result.model_copy(update={"receipt": receipt})
            elif isinstance(result, dict):
                result = {**cast("dict[str, Any]", result), "receipt": receipt.model_dump()}
        if isinstance(result, dict):
            try:
                read = call.part.output.read(result, strict=False)
            except InvalidArgument as error:
                raise Internal(
                    f"{call.part.name} answered what its profile doesn't allow: {error.message}",
                    details={**error.details, **({"state": "unknown"} if call.part.flags.effects else {})},
                ) from None
            return cast("dict[str, Any]", call.part.output.write(read, refs=self.seal(call.principal)))
        try:
            return cast("dict[str, Any]", call.part.output.write(result, refs=self.seal(call.principal)))
        except InvalidArgument as error:
            state = {"state": "unknown"} if call.part.flags.effects else {}
            raise Internal(
                f"{call.part.name} answered what its profile doesn't allow: {error.message}", details=state
            ) from None

    async def _once(self, bound: Bound, call: Call, arguments: Mapping[str, Any], given: Mapping[str, Any]) -> Answer:
        """Do it once: `wire`, "Receipts, and doing it once"."""
        digest = argument_digest(self.store.sealing_key(), bound.sensitive, given, bound.provider.instance)
        key = cast("str", call.key)
        atomic = self._commits_together(bound.provider)
        # Several servers may share a store: a key means something to one of them only.
        begun = await self.store.begin(f"{self.identity}\n{call.principal}", bound.member, key, digest, atomic=atomic)
        if isinstance(begun, InFlight):
            begun = await self.store.wait(begun, _WAIT_FOR_TWIN)
        match begun:
            case Finished(outcome, is_error):
                return Answer(outcome, is_error=is_error)
            case Mismatch():
                raise Conflict(
                    f"the key {key!r} was used for other arguments of {call.part.name}",
                    hint="one key stands for one intention: make a new one",
                )
            case InFlight():
                raise InDoubt(
                    f"the first call under the key {key!r} is still under way after {_WAIT_FOR_TWIN:.0f} s",
                    details={"state": "unknown"},
                )
            case StillInDoubt():
                raise InDoubt(
                    f"an earlier call under the key {key!r} ended in between: it may or may not have been done",
                    hint="read before anything else",
                    details={"state": "unknown"},
                )
            case Fresh(token):
                return await self._attempt(bound, call, arguments, token, atomic=atomic)

    async def _attempt(
        self, bound: Bound, call: Call, arguments: Mapping[str, Any], token: Token, *, atomic: bool
    ) -> Answer:
        if atomic:
            call.commit = lambda call, connection, result, events: self._commit(call, connection, result, events, token)
        content: dict[str, Any] = {}
        # What was begun is brought to its end even if the caller is gone by then: a half-done record would be in doubt.
        with anyio.CancelScope(shield=True):
            try:
                content = await self._do(bound, call, arguments)
            except BaseException as error:
                if await self._was_done(call, error, token):
                    return Answer(cast("dict[str, Any]", call.outcome))
                raise
            if call.outcome is None:
                await self.store.finish(token, content, receipt=_receipt(call))
            else:
                self._wake()
        return Answer(content, meta={NOTES_META: call.notes} if call.notes else None)

    async def _was_done(self, call: Call, error: BaseException, token: Token) -> bool:
        """End the record of an attempt that failed, and say whether it had been ended with the effect already."""
        try:
            await self._end(call, error, token)
        except StoreError:
            if call.outcome is None or not isinstance(error, Exception):
                raise error from None
            return True
        return False

    async def _end(self, call: Call, error: BaseException, token: Token) -> None:
        """End a record whose attempt failed: remember the failure where something may have been done, else forget."""
        if not isinstance(error, Exception):
            await self.store.abandon(token)
            return
        failed = error if isinstance(error, ConnectionFailed) else _unexpected(call.part.name, error, state="unknown")
        if _may_be_done(failed):
            failed.details.setdefault("state", "unknown")
            await self.store.finish(token, failed.as_wire(), is_error=True)
        else:
            await self.store.forget(token)
        if failed is not error:
            _log.error("%s failed: %s", call.part.name, _without_values(error))
            raise failed from None

    def _commits_together(self, provider: Provider) -> bool:
        """Whether a provider's effects can commit in one transaction with the store's records: they share a file."""
        if not provider.atomic or not hasattr(self.store, "finish_in"):
            return False
        file: Path | None = getattr(provider, "file", None)
        if file is None:
            return True
        kept: Path | None = getattr(self.store, "file", None)
        return kept is not None and (kept == file or (kept.exists() and file.exists() and kept.samefile(file)))

    def _commit(
        self,
        call: Call,
        connection: sqlite3.Connection,
        result: Any,
        events: Sequence[Event],
        token: Token | None = None,
    ) -> None:
        """Put what a call leaves into the transaction of its effect: its record (with a token), receipt and events."""
        store = cast("CoCommitting", self.store)
        outcome = self._outcome(call, result)
        for event in events:
            record = self.connection.events.record(event, call)
            store.append_event_in(connection, self.connection.events.stream, record)
        if token is None:
            store.add_receipt_in(connection, _receipt(call))
        else:
            store.finish_in(connection, token, outcome, receipt=_receipt(call))
        call.outcome = outcome

    def _wake(self) -> None:
        """Tell those who wait for events that a call's transaction, which may have had some, has committed."""
        cast("CoCommitting", self.store).wake(self.connection.events.stream)


def _may_be_done(error: ConnectionFailed) -> bool:
    """Whether something may have been done although the call failed."""
    state = error.details.get("state")
    if state is not None:
        return state != "not_sent"
    return isinstance(error, Internal | InDoubt | Timeout | Disconnected)


def _members(value: Any) -> frozenset[str]:
    if not isinstance(value, list):
        return frozenset()
    return frozenset(one for one in cast("list[Any]", value) if isinstance(one, str))


def _key(value: Any) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or not 0 < len(value) <= _LONGEST_KEY:
        raise InvalidArgument(
            f"the idempotency key is {type(value).__name__} of length {len(str(value))}",
            hint=f"a text of 1 to {_LONGEST_KEY} characters",
        )
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidArgument("the idempotency key holds half of a surrogate pair") from None
    return value


def _receipt(call: Call) -> StoredReceipt:
    return StoredReceipt(
        action_id=cast("str", call.action_id), principal=call.principal, operation=call.part.name, at=call.at
    )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _unexpected(name: str, error: Exception, **details: Any) -> Internal:
    if isinstance(error, HotplugError):
        return Internal(str(error), details=details)
    # The text of an unforeseen exception may repeat any value, secrets too: only its kind is told.
    return Internal(f"{name} failed inside the server ({type(error).__name__})", details=details)


def _without_values(error: Exception) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    where = "; ".join(f"{frame.filename.rpartition('/')[2]}:{frame.lineno} {frame.name}" for frame in frames[-4:])
    return f"{type(error).__name__} at {where}"
