"""Calls that wait for a client's input: each has a signed state, which its owner brings back, once and in time."""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import hmac
import json
import secrets
import time
from collections.abc import Callable
from typing import Any, Final, Generic, Protocol, TypeVar

from hotplug.gateway.message import Message

__all__ = ["Parkable", "Parked", "Unknown"]

_PURPOSE: Final = b"hotplug requestState 1"


class Parkable(Protocol):
    """What can be parked."""

    def expire(self) -> None:
        """Nobody came back: end it."""
        ...


P = TypeVar("P", bound=Parkable)


class Unknown(Exception):
    """No call waits under this state: it isn't ours, another's, changed, used up or too old."""


class Parked(Generic[P]):
    """The calls of one owner that wait.

    Args:
        secret: Signs states.
        owner: Whose they are.
        limit: How many may wait at once.
        wait: Seconds until one expires.
        clock: Seconds since the epoch, for what stands in a state.
    """

    def __init__(
        self, secret: bytes, owner: str, *, limit: int, wait: float, clock: Callable[[], float] = time.time
    ) -> None:
        self._key = hmac.digest(secret, _PURPOSE, hashlib.sha256)
        self._owner = owner
        self._limit = limit
        self._wait = wait
        self._clock = clock
        self._waiting: dict[str, tuple[P, asyncio.TimerHandle]] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def __contains__(self, call: object) -> bool:
        return any(waiting is call for waiting, _ in self._waiting.values())

    @property
    def full(self) -> bool:
        """Whether no more may wait."""
        return len(self._waiting) >= self._limit

    def park(self, call: P, request: Message) -> str:
        """Let a call wait; gives the state for the retry of this request."""
        name = secrets.token_urlsafe(12)
        timer = asyncio.get_running_loop().call_later(self._wait, self._expire, name)
        self._waiting[name] = (call, timer)
        payload = _text(json.dumps({"call": name, "until": self._clock() + self._wait}).encode())
        return f"{payload}.{self._signature(payload, request)}"

    def take(self, state: str, request: Message) -> P:
        """The call that this request goes on with; it waits no longer.

        Raises:
            Unknown: There is none for this request.
        """
        payload, _, signature = state.partition(".")
        if not hmac.compare_digest(signature.encode(errors="replace"), self._signature(payload, request).encode()):
            raise Unknown
        try:
            said: Any = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
            name, until = str(said["call"]), float(said["until"])
        except (binascii.Error, ValueError, KeyError, TypeError):
            raise Unknown from None
        found = self._waiting.get(name)
        if found is None or not self._clock() < until:
            raise Unknown
        del self._waiting[name]
        call, timer = found
        timer.cancel()
        return call

    def clear(self) -> None:
        """End all that wait."""
        for name in tuple(self._waiting):
            self._expire(name)

    def _expire(self, name: str) -> None:
        call, timer = self._waiting.pop(name)
        timer.cancel()
        call.expire()

    def _signature(self, payload: str, request: Message) -> str:
        said = [payload, self._owner, request.method, _essence(request)]
        return _text(hmac.digest(self._key, json.dumps(said).encode(), hashlib.sha256))


def _essence(request: Message) -> str:
    """What has to be the same in a retry: everything but the envelope, the answers and the state."""
    changing = {"_meta", "inputResponses", "requestState"}
    params: dict[str, Any] = {name: request.value(name) for name in sorted(request.params.keys() - changing)}
    return hashlib.sha256(json.dumps(params, sort_keys=True).encode()).hexdigest()


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
