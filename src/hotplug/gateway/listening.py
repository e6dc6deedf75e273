"""`subscriptions/listen` of the modern era over all servers of a thread: one stream, one acknowledgement.

Every notice carries the caller's own request id as its subscription. What a server isn't asked for, it isn't heard on;
changes of the owner's settings are told as changes of the lists.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import Any, Final, cast

from hotplug.gateway.eras import SUBSCRIPTION_META
from hotplug.gateway.link import Frame, Link, LinkLost, Outgoing
from hotplug.gateway.message import INVALID_PARAMS, Message, Raw
from hotplug.gateway.view import Caller, Known, View

__all__ = ["listen"]

_ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"
_BUFFER: Final = 1_000
_ACK_WAIT: Final = 5.0
LISTS: Final = {
    "toolsListChanged": "notifications/tools/list_changed",
    "promptsListChanged": "notifications/prompts/list_changed",
    "resourcesListChanged": "notifications/resources/list_changed",
}


async def listen(view: View, caller: Caller, message: Message, known: Sequence[Known]) -> AsyncIterator[Frame]:
    """The stream that answers the request: its acknowledgement, then notices until the caller leaves."""
    id_ = message.id or b"null"
    wanted = message.value("notifications")
    if not isinstance(wanted, dict):
        yield Frame(Message.error_of(id_, INVALID_PARAMS, "params.notifications must be an object"))
        return
    wanted = cast("dict[str, Any]", wanted)
    notices: asyncio.Queue[Message | None] = asyncio.Queue(_BUFFER)
    honored: dict[str, Any] = {key: True for key in LISTS if wanted.get(key) is True}
    uris = [uri for uri in cast("list[Any]", wanted.get("resourceSubscriptions") or []) if isinstance(uri, str)]
    others = {key: value for key, value in wanted.items() if key not in (*LISTS, "resourceSubscriptions")}
    if uris:
        honored["resourceSubscriptions"] = uris
    meta = {SUBSCRIPTION_META: Raw(id_)}

    def put(notice: Message | None) -> None:
        # A reader that stopped reading is let go: it listens anew and reads the lists again.
        if notices.full():
            while not notices.empty():
                notices.get_nowait()
            notices.put_nowait(None)
        else:
            notices.put_nowait(notice)

    async def hear(one: Known, link: Link, share: dict[str, Any], ack: asyncio.Future[Message | None]) -> None:
        asked = message.with_param("notifications", {key: share[key] for key in wanted if key in share})
        await _hear(one.server, link, caller, asked, ack, put, view)
        if ack.result() is not None and not share.keys() <= LISTS.keys():
            # Lists are told by the pool too. Of all else nothing is heard any more: the caller has to know, and listens
            # anew.
            put(None)

    tasks: list[asyncio.Task[None]] = []
    acknowledged: list[asyncio.Future[Message | None]] = []
    ends: list[Any] = [view.on_change(caller.thread, lambda method: put(Message.notification(method, {"_meta": meta})))]
    try:
        for one in known:
            if one.link is None:
                continue
            share = _share(one, honored, uris, others, view, caller)
            if not share:
                continue
            ack: asyncio.Future[Message | None] = asyncio.get_running_loop().create_future()
            acknowledged.append(ack)
            tasks.append(asyncio.create_task(hear(one, one.link, share, ack)))
        if acknowledged:
            await asyncio.wait(acknowledged, timeout=_ACK_WAIT)
        said = [told for ack in acknowledged if ack.done() and (told := ack.result()) is not None]
        for told in said:
            for key, value in _honored(told).items():
                if key not in honored and key in others:
                    honored[key] = value
        told = Message.notification(_ACKNOWLEDGED, {"notifications": honored, "_meta": meta})
        if len(known) == 1 and said:
            # The only server's own, with whatever else it says.
            told = said[0] if _honored(said[0]) == honored else said[0].with_param("notifications", honored)
            told = told if bytes(told.meta.get(SUBSCRIPTION_META, b"")) == id_ else told.with_meta(meta)
        yield Frame(told)
        while True:
            notice = await notices.get()
            if notice is None:
                break
            method = notice.method or ""
            if method in LISTS.values() and not any(honored.get(key) for key, name in LISTS.items() if name == method):
                continue
            stamped = bytes(notice.meta.get(SUBSCRIPTION_META, b"")) == id_
            yield Frame(notice if stamped else notice.with_meta(meta))
        yield Frame(Message.result_of(id_, {"resultType": "complete", "_meta": meta}))
    finally:
        for end in ends:
            end()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _honored(told: Message) -> dict[str, Any]:
    given = told.value("notifications")
    return cast("dict[str, Any]", given) if isinstance(given, dict) else {}


def _share(
    known: Known, honored: dict[str, Any], uris: list[str], others: dict[str, Any], view: View, caller: Caller
) -> dict[str, Any]:
    """The part of a filter that one server is asked for."""
    if not view.gives_words(caller.thread, known.server):
        return {key: True for key in ("toolsListChanged",) if honored.get(key)}
    share: dict[str, Any] = {key: True for key in LISTS if honored.get(key)}
    share.update(others)
    mine = [own for uri in uris if (own := view.own_uri(known, uri)) is not None]
    if mine:
        share["resourceSubscriptions"] = mine
    return share


async def _hear(
    server: str,
    link: Link,
    caller: Caller,
    message: Message,
    ack: asyncio.Future[Message | None],
    put: Any,
    view: View,
) -> None:
    """Pass on what one server tells, for as long as the thread has it."""
    headers = {"mcp-method": "subscriptions/listen"}
    if caller.headers is not None and "mcp-protocol-version" in caller.headers:
        headers["mcp-protocol-version"] = caller.headers["mcp-protocol-version"]
    try:
        outgoing = Outgoing(message, headers, caller.scope)
        with contextlib.suppress(LinkLost):
            async with link.exchange(outgoing) as answer:
                if answer.frames is None:
                    return
                async for frame in answer.frames:
                    notice = frame.message
                    if notice is None:
                        continue
                    if notice.is_answer:
                        return
                    if notice.method == _ACKNOWLEDGED:
                        if not ack.done():
                            ack.set_result(notice)
                    elif view.hears(caller.thread, server, notice):
                        put(view.shown(server, notice))
    finally:
        if not ack.done():
            ack.set_result(None)
