"""Remembers what was sent on each stream, so that a client that lost one reads on where it was."""

from __future__ import annotations

from itertools import islice

from mcp.server.streamable_http import EventCallback, EventMessage, EventStore
from mcp_types import JSONRPCMessage

__all__ = ["Replay"]

_ROOM = 10_000


class Replay(EventStore):
    """Events in memory, numbered over all streams; the oldest give way to new ones."""

    def __init__(self) -> None:
        self._count = 0
        self._events: dict[str, tuple[str, JSONRPCMessage | None]] = {}

    async def store_event(self, stream_id: str, message: JSONRPCMessage | None) -> str:
        self._count += 1
        event = str(self._count)
        self._events[event] = (stream_id, message)
        if len(self._events) > _ROOM:
            del self._events[next(iter(self._events))]
        return event

    async def replay_events_after(self, last_event_id: str, send_callback: EventCallback) -> str | None:
        known = self._events.get(last_event_id)
        if known is None:
            return None
        stream = known[0]
        position = list(self._events).index(last_event_id)
        for event, (of, message) in list(islice(self._events.items(), position + 1, None)):
            # An event without message only opens a stream.
            if of == stream and message is not None:
                await send_callback(EventMessage(message, event))
        return stream
