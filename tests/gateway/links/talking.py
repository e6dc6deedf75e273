"""What the tests of links say to servers, and how they read what comes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

from hotplug.gateway.link import Answer, Era, Link, Outgoing
from hotplug.gateway.message import Message

MODERN = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
}
LEGACY = json.dumps(
    {
        "protocolVersion": "2025-11-25",
        "capabilities": {"elicitation": {}, "roots": {}},
        "clientInfo": {"name": "test", "version": "1"},
    }
).encode()


def request(
    era: Era,
    method: str,
    params: dict[str, Any] | None = None,
    *,
    id: Any = 1,  # noqa: A002
    token: Any = None,
    scope: str = "s",
) -> Outgoing:
    given = dict(params or {})
    meta = dict(MODERN) if era == "modern" else {}
    if token is not None:
        meta["progressToken"] = token
    if meta:
        given["_meta"] = meta
    return Outgoing(Message.request(id, method, given), scope=scope)


def call(era: Era, name: str, arguments: dict[str, Any] | None = None, **options: Any) -> Outgoing:
    return request(era, "tools/call", {"name": name, "arguments": arguments or {}}, **options)


async def all_of(answer: Answer) -> list[Message]:
    """Every message of an answer."""
    if answer.message is not None:
        return [answer.message]
    assert answer.frames is not None, answer
    return [frame.message async for frame in answer.frames if frame.message is not None]


async def ask(link: Link, outgoing: Outgoing) -> Any:
    """The result (or error) of a request, as Python values."""
    async with link.exchange(outgoing) as answer:
        last = (await all_of(answer))[-1]
    fields = json.loads(last.encode())
    return fields.get("result", fields.get("error"))


def text_of(result: Any) -> str:
    return result["content"][0]["text"]


async def until(holds: Callable[[], bool], limit: float = 30.0) -> None:
    """Waits for a condition, with a bound."""
    async with asyncio.timeout(limit):
        while not holds():
            await asyncio.sleep(0.005)
