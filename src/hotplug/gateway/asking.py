"""Requests of the gateway's own to a server: for its lists, for a sign of life."""

from __future__ import annotations

import itertools
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import Any, Final

from hotplug.gateway.link import Answer, Frame, Link, LinkLost, Outgoing
from hotplug.gateway.links.handshake import own_meta
from hotplug.gateway.message import Message

__all__ = ["ask", "listen_to", "request"]

_numbers: Final = itertools.count(1)


def request(link: Link, method: str, params: Mapping[str, Any] | None = None) -> Outgoing:
    """A request of ours as this link's era writes it."""
    given = dict(params or {})
    headers: dict[str, str] = {}
    if link.era == "modern":
        given["_meta"] = own_meta()
        headers = {"mcp-method": method, "mcp-protocol-version": link.hello.protocol}
    return Outgoing(Message.request(f"hotplug-{next(_numbers)}", method, given or None), headers)


async def ask(
    link: Link,
    method: str,
    params: Mapping[str, Any] | None = None,
    *,
    aside: Callable[[Frame], None] | None = None,
    refuse: Callable[[Message], Any] | None = None,
) -> Message:
    """Ask, and give the answer: a result or an error.

    Args:
        aside: Takes notifications that come before the answer; default: they are dropped.
        refuse: Awaited for each request of the server's that comes before the answer; default: they go to `aside`.

    Raises:
        LinkLost: As the link's, or it answered with what is no message.
    """
    async with link.exchange(request(link, method, params)) as answer:
        if answer.message is not None:
            return answer.message
        if answer.frames is None:
            raise LinkLost(f"{method} was answered with HTTP {answer.status} and no message", sent=True)
        async for frame in answer.frames:
            message = frame.message
            if message is None:
                continue
            if message.is_answer:
                return message
            if message.kind == "request" and refuse is not None:
                await refuse(message)
            elif aside is not None:
                aside(frame)
    raise LinkLost(f"the stream that should have answered {method} ended without an answer", sent=True)


@asynccontextmanager
async def listen_to(link: Link, kinds: Mapping[str, bool]) -> AsyncGenerator[AsyncGenerator[Message]]:
    """The messages of a `subscriptions/listen` of ours (modern), its answer last.

    Args:
        kinds: The filter: `toolsListChanged` and the like.

    Raises:
        LinkLost: As the link's.
    """
    async with (
        link.exchange(request(link, "subscriptions/listen", {"notifications": dict(kinds)})) as answer,
        aclosing(_messages(answer)) as messages,
    ):
        yield messages


async def _messages(answer: Answer) -> AsyncGenerator[Message]:
    if answer.message is not None:
        yield answer.message
    if answer.frames is not None:
        async for frame in answer.frames:
            if frame.message is not None:
                yield frame.message
