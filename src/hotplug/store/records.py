"""Idempotency records and receipts as statements on a connection that is in a transaction."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from hotplug.errors import InvalidArgument, StoreError
from hotplug.store.protocols import Begun, Finished, Fresh, InDoubt, InFlight, Mismatch, StoredReceipt, Token

__all__ = [
    "KEY_LENGTH",
    "Ask",
    "abandon",
    "as_json",
    "begin",
    "finish",
    "forget",
    "identity",
    "look",
    "put_receipt",
    "take_receipt",
]

KEY_LENGTH: Final = 255
"""Characters of an idempotency key, at most (wire page, "Receipts, and doing it once")."""

_ENCODER: Final = json.JSONEncoder(separators=(",", ":"), allow_nan=False)


def as_json(value: Mapping[str, Any], what: str) -> str:
    """JSON for the store: ASCII, so that a lone surrogate from the wire is kept as well.

    Raises:
        StoreError: The value is not JSON; `what` says what it was meant for.
    """
    try:
        return _ENCODER.encode(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise StoreError(f"{what} is not JSON: {error}") from error


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def identity(principal: str, operation: str, key: str) -> bytes:
    """What a record goes by: a digest of the three, each with its length in front, so that they can't run together.

    Raises:
        InvalidArgument: The key is too long.
    """
    if len(key) > KEY_LENGTH:
        raise InvalidArgument(f"the idempotency key has {len(key)} characters", hint=f"at most {KEY_LENGTH}")
    digest = hashlib.sha256()
    for part in (_bytes(principal), _bytes(operation), _bytes(key)):
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return digest.digest()


class Ask(NamedTuple):
    """What a caller of `Store.begin` asks."""

    principal: str
    operation: str
    key: str
    digest: str
    atomic: bool
    identity: bytes


def look(connection: sqlite3.Connection, ask: Ask, is_alive: Callable[[str], bool]) -> Begun | None:
    """How a record stands, without writing; None where a caller may begin it (no record, or one to take over).

    Outside a write transaction `InDoubt` is only a guess: the owner may have finished, and gone, after the snapshot.
    """
    row = connection.execute(
        "SELECT id, digest, outcome, is_error, atomic, owner FROM store_record WHERE identity = ?", (ask.identity,)
    ).fetchone()
    if row is None:
        return None
    record, digest, outcome, is_error, atomic, owner = row
    if digest != ask.digest:
        return Mismatch()
    if outcome is not None:
        return Finished(json.loads(outcome), bool(is_error))
    if owner and is_alive(owner):
        return InFlight(ask.principal, ask.operation, ask.key, ask.digest, ask.atomic, record)
    # Atomic is what the dead one said it was: only then is a missing outcome a missing effect.
    return None if atomic else InDoubt()


def begin(
    connection: sqlite3.Connection, ask: Ask, owner: str, attempt: int, now: float, is_alive: Callable[[str], bool]
) -> Begun:
    """Write a pending record, or take over one whose owner died before an atomic commit; else say how it stands."""
    written = connection.execute(
        "INSERT INTO store_record (identity, principal, operation, digest, owner, attempt, atomic, touched) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (identity) DO NOTHING RETURNING id",
        (ask.identity, _bytes(ask.principal), ask.operation, ask.digest, owner, attempt, ask.atomic, now),
    ).fetchone()
    if written is None:
        begun = look(connection, ask, is_alive)
        if begun is not None:
            return begun
        written = connection.execute(
            "UPDATE store_record SET owner = ?, attempt = ?, atomic = ?, touched = ? WHERE identity = ? RETURNING id",
            (owner, attempt, ask.atomic, now, ask.identity),
        ).fetchone()
    return Fresh(Token(written[0], owner, attempt))


_STALE: Final = "the attempt was ended or taken over before, so it can't be {}"


def finish(connection: sqlite3.Connection, token: Token, outcome: str, is_error: bool, now: float) -> None:
    """Set the outcome, JSON, of the attempt that `token` names."""
    changed = connection.execute(
        "UPDATE store_record SET outcome = ?, is_error = ?, touched = ? "
        "WHERE id = ? AND owner = ? AND attempt = ? AND outcome IS NULL",
        (outcome, is_error, now, token.record, token.owner, token.attempt),
    ).rowcount
    if not changed:
        raise StoreError(_STALE.format("finished"))


def forget(connection: sqlite3.Connection, token: Token) -> None:
    """Delete the record of the attempt that `token` names."""
    changed = connection.execute(
        "DELETE FROM store_record WHERE id = ? AND owner = ? AND attempt = ? AND outcome IS NULL",
        (token.record, token.owner, token.attempt),
    ).rowcount
    if not changed:
        raise StoreError(_STALE.format("forgotten"))


def abandon(connection: sqlite3.Connection, token: Token) -> None:
    """Leave the record pending, owned by nobody."""
    changed = connection.execute(
        "UPDATE store_record SET owner = '' WHERE id = ? AND owner = ? AND attempt = ? AND outcome IS NULL",
        (token.record, token.owner, token.attempt),
    ).rowcount
    if not changed:
        raise StoreError(_STALE.format("abandoned"))


def put_receipt(connection: sqlite3.Connection, receipt: StoredReceipt, details: str, now: float) -> None:
    """Keep a receipt; `details` is its own as JSON."""
    connection.execute(
        "INSERT OR REPLACE INTO store_receipt (action_id, principal, operation, at, stored, details) "
        "VALUES (?, ?, ?, ?, ?, ?)",
        (receipt.action_id, _bytes(receipt.principal), receipt.operation, receipt.at, now, details),
    )


def take_receipt(connection: sqlite3.Connection, action_id: str) -> StoredReceipt | None:
    """The receipt of an action, if it is there."""
    row = connection.execute(
        "SELECT principal, operation, at, details FROM store_receipt WHERE action_id = ?", (action_id,)
    ).fetchone()
    if row is None:
        return None
    principal, operation, at, details = row
    return StoredReceipt(action_id, principal.decode("utf-8", "surrogatepass"), operation, at, json.loads(details))
