"""A modern client's `subscriptions/listen` in front of a legacy server."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final, Self, cast

from msgspec import Raw

from hotplug.gateway.bridge.session import Listener, Session
from hotplug.gateway.bridge.stopping import Stop, Stopped
from hotplug.gateway.bridge.words import SUBSCRIPTION
from hotplug.gateway.link import Frame
from hotplug.gateway.message import Message

__all__ = ["Subscription", "Wanted", "subscribed"]

_LISTS: Final = {"toolsListChanged": "tools", "promptsListChanged": "prompts", "resourcesListChanged": "resources"}
_MOST_URIS: Final = 1000


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a client wants to hear of.

    Args:
        lists: By the filter's own words.
        uris: Resources, at most 1000.
    """

    lists: frozenset[str]
    uris: tuple[str, ...]

    @classmethod
    def of(cls, request: Message) -> Self | None:
        """What a request says; None where it says nothing that can be understood."""
        found = request.value("notifications")
        if not isinstance(found, dict):
            return None
        said = cast("dict[str, Any]", found)
        uris: Any = said.get("resourceSubscriptions") or []
        if not isinstance(uris, list):
            return None
        named = [uri for uri in cast("list[Any]", uris) if isinstance(uri, str)]
        return cls(
            frozenset(word for word in _LISTS if said.get(word) is True), tuple(dict.fromkeys(named))[:_MOST_URIS]
        )


@dataclass(frozen=True, slots=True)
class Subscription:
    """What a session hears of for one client, as far as the server tells it."""

    listener: Listener
    wanted: Wanted

    async def frames(self, request: Message, stop: Stop) -> AsyncIterator[Frame]:
        """The acknowledgement, then each notice, until the caller stops or the session is lost.

        Raises:
            LinkLost: The session ended; what happens from now on isn't heard.
        """
        stamp = {SUBSCRIPTION: Raw(request.id or b"null")}
        honored: dict[str, Any] = dict.fromkeys(sorted(self.listener.kinds), True)
        if self.listener.uris:
            honored["resourceSubscriptions"] = [uri for uri in self.wanted.uris if uri in self.listener.uris]
        method = "notifications/subscriptions/acknowledged"
        yield Frame(Message.notification(method, {"notifications": honored}).with_meta(stamp))
        while True:
            try:
                notice = await stop.wait(self.listener.notices.next())
            except Stopped:
                return
            if notice is None:
                return
            yield Frame(notice.with_meta(stamp))


@asynccontextmanager
async def subscribed(session: Session, wanted: Wanted) -> AsyncGenerator[Subscription, None]:
    """Hear of changes on a session; resources are subscribed at the server as long as somebody wants them.

    Raises:
        LinkLost: The server can't be reached.
    """
    kinds = frozenset(word for word in wanted.lists if session.offers(_LISTS[word], "listChanged"))
    listener = Listener(kinds)
    session.listeners[listener] = None
    try:
        if session.offers("resources", "subscribe"):
            for uri in wanted.uris:
                if await session.subscribe(uri):
                    listener.uris.add(uri)
        yield Subscription(listener, wanted)
    finally:
        del session.listeners[listener]
        session.unsubscribe(frozenset(listener.uris))
