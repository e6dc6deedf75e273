"""One request and what may be said while it is answered, whatever carries it."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, cast

from hotplug.testing.odd.writing import Raw, member, write

__all__ = [
    "HANDSHAKE_VERSIONS",
    "MODERN_VERSION",
    "Exchange",
    "House",
    "Listening",
    "Refused",
    "Request",
    "Send",
    "Session",
]

HANDSHAKE_VERSIONS: Final = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
"""The newest first."""
MODERN_VERSION: Final = "2026-07-28"

_VERSION_KEY: Final = "io.modelcontextprotocol/protocolVersion"
_LEVEL_KEY: Final = "io.modelcontextprotocol/logLevel"
_SUBSCRIPTION_KEY: Final = "io.modelcontextprotocol/subscriptionId"

Object = Mapping[str, Any]
Send = Callable[[str], Awaitable[None]]
"""Puts the text of one message on its way."""


class Refused(Exception):
    """An error of the protocol is the answer.

    Args:
        error: The error object, whole: `code`, `message` and what else shall stand in it.
    """

    def __init__(self, error: Object) -> None:
        super().__init__(str(error.get("message")))
        self.error = error


@dataclass(frozen=True, slots=True)
class Request:
    """A request or a notice as it came.

    Args:
        text: The message.
        message: The same, read.
    """

    text: str
    message: Object

    @classmethod
    def read(cls, text: str) -> Request | None:
        """None where it is no JSON object."""
        try:
            message = json.loads(text)
        except ValueError:
            return None
        return cls(text, cast("Object", message)) if isinstance(message, dict) else None

    @property
    def id(self) -> Raw | None:
        """As it came; None of a notice."""
        return member(self.text, "id")

    @property
    def method(self) -> str | None:
        """None of an answer."""
        method = self.message.get("method")
        return method if isinstance(method, str) else None

    @property
    def params(self) -> Object:
        """Read; empty where there are none."""
        return _object(self.message.get("params"))

    @property
    def meta(self) -> Object:
        """The `_meta` of the parameters, read."""
        return _object(self.params.get("_meta"))

    @property
    def arguments(self) -> Object:
        """Of a tool or a prompt, read."""
        return _object(self.params.get("arguments"))

    @property
    def is_modern(self) -> bool:
        """Whether it carries what every request of the newer era carries."""
        return _VERSION_KEY in self.meta

    def raw(self, *path: str) -> Raw | None:
        """A member of the parameters as it came."""
        return member(self.text, "params", *path)


def _object(value: Any) -> Object:
    return cast("Object", value) if isinstance(value, dict) else {}


@dataclass(slots=True, eq=False)
class Session:
    """A legacy client: what it asked for, and what it still owes answers to.

    Args:
        general: Sends what belongs to no request.
    """

    general: Send
    initialize: Object = field(default_factory=dict[str, Any])
    level: str = "debug"
    subscriptions: set[str] = field(default_factory=set[str])
    notices: list[str] = field(default_factory=list[str])
    _asked: dict[str, asyncio.Future[Object]] = field(default_factory=dict[str, "asyncio.Future[Object]"])
    _numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    async def ask(self, send: Send, method: str, params: Object) -> Object:
        """The client's answer, the whole message."""
        # Numbers, which start anew in every session: the ids of two servers meet in a gateway.
        number = next(self._numbers)
        answer: asyncio.Future[Object] = asyncio.get_running_loop().create_future()
        self._asked[str(number)] = answer
        try:
            await send(write({"jsonrpc": "2.0", "id": number, "method": method, "params": params}))
            return await answer
        finally:
            self._asked.pop(str(number), None)

    def answered(self, message: Object) -> None:
        """Take in an answer of the client; one to nothing is dropped."""
        waiting = self._asked.get(str(message.get("id")))
        if waiting is not None and not waiting.done():
            waiting.set_result(message)


@dataclass(slots=True, eq=False)
class Listening:
    """A modern client's subscription: its exchange, and what it wants to hear."""

    exchange: Exchange
    wanted: Object

    def wants(self, method: str, params: Object) -> bool:
        """Whether it asked for that notice."""
        if method == "notifications/resources/updated":
            return params.get("uri") in (self.wanted.get("resourceSubscriptions") or ())
        kind = method.removeprefix("notifications/").removesuffix("/list_changed")
        return self.wanted.get(f"{kind}ListChanged") is True

    def marked(self) -> Object:
        """The `_meta` that says which subscription a notice is of."""
        return {_SUBSCRIPTION_KEY: self.exchange.request.id, "vendor.example/notice": None}


@dataclass(slots=True, eq=False)
class House:
    """What all clients of this process share."""

    sessions: set[Session] = field(default_factory=set[Session])
    listening: set[Listening] = field(default_factory=set[Listening])
    grown: set[str] = field(default_factory=set[str])
    cancelled: int = 0

    async def announce(self, method: str, params: Object) -> None:
        """Send a notice to whoever wants it."""
        odd = {**params, "vendorField": {"of": "a notice"}}
        for session in list(self.sessions):
            if method != "notifications/resources/updated" or params.get("uri") in session.subscriptions:
                await session.general(write({"jsonrpc": "2.0", "method": method, "params": odd}))
        for one in list(self.listening):
            if one.wants(method, params):
                await one.exchange.notify(method, {**odd, "_meta": one.marked()})


@dataclass(slots=True, eq=False)
class Exchange:
    """A request that is being answered.

    Args:
        house: Shared by all.
        session: The client's; a fresh one for each request in the newer era.
        request: What is asked.
        is_modern: Whether the newer era's rules hold.
        send: Sends on the stream of this request.
        headers: Of the HTTP request, as they came; none over standard streams.
    """

    house: House
    session: Session
    request: Request
    is_modern: bool
    send: Send
    headers: tuple[tuple[str, str], ...] = ()

    async def notify(self, method: str, params: Object | Raw) -> None:
        """Send a notice on this request's stream."""
        await self.send(write({"jsonrpc": "2.0", "method": method, "params": params}))

    async def ask(self, method: str, params: Object) -> Object:
        """Ask a legacy client: the result that it gave.

        Raises:
            Refused: Its own error, as it gave it.
        """
        answer = await self.session.ask(self.send, method, params)
        if "error" in answer:
            raise Refused({"code": -32000, "message": "the client refused", "data": answer["error"]})
        return _object(answer.get("result"))

    @property
    def level(self) -> str | None:
        """From where on log entries are wanted; None: none are."""
        if not self.is_modern:
            return self.session.level
        level = self.request.meta.get(_LEVEL_KEY)
        return level if isinstance(level, str) else None
