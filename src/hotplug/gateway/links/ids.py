"""Ids and progress tokens of many scopes on one conversation: each request gets one of its own, and its own back.

Two callers that both count from 1 would meet in a shared pipe or session; so what goes up has ids of ours, a progress
token is that id, and everything that names one of them is given back as the caller wrote it.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

from msgspec import Raw

from hotplug.gateway.link import Outgoing
from hotplug.gateway.message import Message, Object, split

__all__ = ["SUBSCRIPTION", "Ids", "Ticket"]

SUBSCRIPTION: Final = "io.modelcontextprotocol/subscriptionId"
"""The key of `_meta` by which a message names the `subscriptions/listen` that it belongs to."""

_PARKED: Final = 1000


@dataclass(slots=True, eq=False)
class Ticket:
    """One request that went up.

    Args:
        own: Its id on the wire, raw.
        scope: Who asked.
        id: The caller's id, raw.
        token: The caller's progress token, raw; None where it wants no progress.
        listens: Whether it is a `subscriptions/listen`.
        cancelled: Whether its caller has cancelled it.
    """

    own: bytes
    scope: str
    id: bytes
    token: bytes | None
    listens: bool = False
    cancelled: bool = False

    def restored(self, message: Message) -> Message:
        """A message for this request, as its caller shall see it."""
        if message.is_answer:
            given = message.with_id(self.id)
            return self._subscribed(given, message.result) if self.listens and message.kind == "result" else given
        if message.method == "notifications/progress":
            return message.with_param("progressToken", self.token) if self.token is not None else message
        if self.listens and bytes(message.meta.get(SUBSCRIPTION, b"")) == self.own:
            return message.with_meta({SUBSCRIPTION: self.id})
        return message

    def _subscribed(self, message: Message, result: Object) -> Message:
        raw = result.get("_meta")
        meta = (split(raw) if raw is not None else None) or {}
        if bytes(meta.get(SUBSCRIPTION, b"")) != self.own:
            return message
        return message.with_result({**result, "_meta": {**meta, SUBSCRIPTION: Raw(self.id)}})


class Ids:
    """The requests in flight on one conversation, and those that ended before their answer came."""

    def __init__(self) -> None:
        self._count = 0
        self._flying: dict[bytes, Ticket] = {}
        self._asked: dict[tuple[str, bytes], Ticket] = {}
        self._parked: OrderedDict[bytes, Ticket] = OrderedDict()

    def issue(self, outgoing: Outgoing) -> tuple[Ticket, Message]:
        """A request's ticket, and the request as it goes on the wire."""
        message = outgoing.message
        self._count += 1
        own = b'"h%d"' % self._count
        token = message.meta.get("progressToken")
        ticket = Ticket(
            own,
            outgoing.scope,
            message.id or b"null",
            bytes(token) if token is not None else None,
            message.method == "subscriptions/listen",
        )
        self._flying[own] = ticket
        self._asked[(ticket.scope, ticket.id)] = ticket
        if token is not None:
            message = message.with_meta({"progressToken": own})
        return ticket, message.with_id(own)

    def find(self, own: bytes | Raw | None) -> Ticket | None:
        """The request with this id on the wire: in flight, or parked."""
        if own is None:
            return None
        own = bytes(own)
        return self._flying.get(own) or self._parked.get(own)

    def named_by(self, message: Message) -> Ticket | None:
        """The request that a message from the server names: as its answer, its progress, or by its subscription."""
        if message.is_answer:
            return self.find(message.id)
        if message.method == "notifications/progress":
            return self.find(message.params.get("progressToken"))
        if message.kind == "notification" and "params" in message.fields:
            return self.find(message.meta.get(SUBSCRIPTION))
        return None

    def upward(self, message: Message, scope: str) -> Message | None:
        """What a caller sends besides requests, in the ids of the wire; None where it names nothing that is known."""
        if message.method != "notifications/cancelled":
            return message
        raw = message.params.get("requestId")
        ticket = self._asked.get((scope, bytes(raw))) if raw is not None else None
        if ticket is None:
            return None
        ticket.cancelled = True
        return message.with_param("requestId", ticket.own)

    def park(self, ticket: Ticket) -> None:
        """Its exchange ended, and more may come for it: its answer on another stream, the progress of its task."""
        self.forget(ticket)
        self._parked[ticket.own] = ticket
        while len(self._parked) > _PARKED:
            self._parked.popitem(last=False)

    def forget(self, ticket: Ticket) -> None:
        """Nothing more comes for it, or nobody wants it."""
        self._flying.pop(ticket.own, None)
        self._parked.pop(ticket.own, None)
        if self._asked.get((ticket.scope, ticket.id)) is ticket:
            del self._asked[(ticket.scope, ticket.id)]
