"""Every method of the odd server, and the message that answers a request."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from hotplug.testing.odd import tools
from hotplug.testing.odd.exchange import (
    HANDSHAKE_VERSIONS,
    MODERN_VERSION,
    Exchange,
    House,
    Listening,
    Refused,
    Request,
    Session,
)
from hotplug.testing.odd.writing import Raw, write

__all__ = ["answer", "take"]

Fields = dict[str, Any]
Method = Callable[[Exchange], Awaitable[Fields | Raw]]

_SERVER: Final = {"name": "hotplug-odd", "title": "Odd", "version": "1.0.0", "vendorField": {"of": "an implementation"}}
_CURSOR: Final = "page 2 / \u2028 ä =="
_PIXEL: Final = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="


async def answer(exchange: Exchange) -> str:
    """The text of the message that answers a request."""
    method = (_MODERN if exchange.is_modern else _LEGACY).get(exchange.request.method or "")
    try:
        if method is None:
            unknown = {"method": exchange.request.method, "vendor": "no such method"}
            raise Refused({"code": -32601, "message": "Method not found", "data": unknown})
        result = await method(exchange)
    except Refused as refused:
        return write({"jsonrpc": "2.0", "id": exchange.request.id, "error": refused.error})
    return write({"jsonrpc": "2.0", "id": exchange.request.id, "result": result})


def take(notice: Request, house: House, session: Session, answering: Mapping[str, asyncio.Task[None]]) -> None:
    """Heed a client's notice.

    Args:
        answering: The exchanges of this client that are going on, by the text of the request's id.
    """
    match notice.method:
        case "notifications/initialized":
            house.sessions.add(session)
        case "notifications/cancelled":
            number = notice.raw("requestId")
            task = answering.get(number.text) if number is not None else None
            if task is not None:
                task.cancel()
        case _:
            session.notices.append(notice.text.strip())


def _complete(exchange: Exchange, fields: Fields, *, cacheable: bool = False) -> Fields:
    """The fields with what every result has: its era's envelope, and oddities."""
    meta: Fields = {
        "vendor.example/seen": exchange.request.raw("_meta"),
        "vendor.example/result": {"null": None, "number": Raw("1e-7")},
        **fields.get("_meta", {}),
    }
    envelope: Fields = {}
    if exchange.is_modern:
        meta["io.modelcontextprotocol/serverInfo"] = _SERVER
        envelope["resultType"] = "complete"
        if cacheable:
            envelope |= {"ttlMs": 60_000, "cacheScope": "private"}
    return {**envelope, **fields, "vendorResult": {"of": exchange.request.method}, "_meta": meta}


def _capabilities(exchange: Exchange) -> Fields:
    modern = exchange.is_modern
    return {
        "tools": {"listChanged": True, "vendorField": 1},
        "prompts": {"listChanged": True},
        "resources": {"listChanged": True, "subscribe": True},
        "completions": {},
        "logging": {},
        "experimental": {"vendor.example/experiment": {"null": None}},
        **({"extensions": {"vendor.example/extension": {"levels": [1, None]}}} if modern else {}),
        "vendorCapability": {"of": "a server"},
    }


async def _initialize(exchange: Exchange) -> Fields:
    asked = exchange.request.params.get("protocolVersion")
    exchange.session.initialize = exchange.request.params
    return {
        "protocolVersion": asked if asked in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[0],
        "capabilities": _capabilities(exchange),
        "serverInfo": _SERVER,
        "instructions": "Everything here is odd on purpose.",
        "vendorField": {"of": "initialize"},
    }


async def _discover(exchange: Exchange) -> Fields:
    fields = {
        "supportedVersions": [MODERN_VERSION],
        "capabilities": _capabilities(exchange),
        "instructions": "Everything here is odd on purpose.",
        "vendorField": {"of": "server/discover"},
    }
    return _complete(exchange, fields, cacheable=True)


async def _ping(_: Exchange) -> Fields:
    return {}


async def _set_level(exchange: Exchange) -> Fields:
    exchange.session.level = str(exchange.request.params.get("level", "debug"))
    return {}


async def _list_tools(exchange: Exchange) -> Fields:
    return _complete(exchange, {"tools": tools.listed(exchange)}, cacheable=True)


async def _call_tool(exchange: Exchange) -> Fields:
    return _complete(exchange, await tools.call(exchange))


async def _list_prompts(exchange: Exchange) -> Fields:
    prompts: list[Fields] = [
        {
            "name": "plain",
            "description": "With an argument that has a field nobody knows.",
            "arguments": [{"name": "topic", "required": False, "vendorField": {"of": "an argument"}}],
            "vendorField": {"of": "a prompt"},
            "_meta": {"vendor.example/prompt": None},
        }
    ]
    if "prompts" in exchange.house.grown:
        prompts.append({"name": "grown", "description": "Is there only after the tool `change`."})
    return _complete(exchange, {"prompts": prompts}, cacheable=True)


async def _get_prompt(exchange: Exchange) -> Fields:
    name = exchange.request.params.get("name")
    if name != "plain" and not (name == "grown" and "prompts" in exchange.house.grown):
        raise Refused({"code": -32602, "message": f"Unknown prompt: {name}", "data": {"vendor": "no such prompt"}})
    messages = [
        {"role": "user", "content": {"type": "text", "text": exchange.request.raw("arguments", "topic") or ""}},
        {"role": "assistant", "content": {"type": "hologram", "null": None}, "vendorField": {"of": "a message"}},
    ]
    return _complete(exchange, {"description": "odd", "messages": messages})


async def _list_resources(exchange: Exchange) -> Fields:
    """In two pages, the cursor of the second one with letters that have to be escaped."""
    if exchange.request.params.get("cursor") == _CURSOR:
        resources: list[Fields] = [{"uri": "odd://bytes", "name": "bytes", "size": Raw(str(2**63))}]
        if "resources" in exchange.house.grown:
            resources.append({"uri": "odd://grown", "name": "grown"})
        return _complete(exchange, {"resources": resources}, cacheable=True)
    first = {
        "uri": "odd://text",
        "name": "text",
        "mimeType": "text/plain; charset=utf-8; vendor=1",
        "annotations": {"lastModified": "2026-11-30T00:00:00Z", "vendorField": None},
        "vendorField": {"of": "a resource"},
    }
    return _complete(exchange, {"resources": [first], "nextCursor": _CURSOR}, cacheable=True)


async def _list_templates(exchange: Exchange) -> Fields:
    template = {
        "uriTemplate": "odd://items/{id}{?detail,more*}",
        "name": "items",
        "description": "Any id; the answer shows the URI as it came.",
        "vendorField": {"of": "a template"},
    }
    return _complete(exchange, {"resourceTemplates": [template]}, cacheable=True)


async def _read(exchange: Exchange) -> Fields:
    uri = str(exchange.request.params.get("uri"))
    as_it_came = exchange.request.raw("uri")
    if uri == "odd://bytes":
        content: Fields = {"uri": as_it_came, "blob": _PIXEL, "mimeType": "image/png"}
    elif uri in ("odd://text", "odd://grown") or uri.startswith("odd://items/"):
        content = {"uri": as_it_came, "text": Raw(r'"\u2028 \ud800"'), "mimeType": "text/plain"}
    else:
        # What the eras say of a resource that isn't there.
        code = -32602 if exchange.is_modern else -32002
        raise Refused({"code": code, "message": "Resource not found", "data": {"uri": uri}})
    odd = {**content, "vendorField": {"of": "contents"}, "_meta": {"vendor.example/contents": None}}
    return _complete(exchange, {"contents": [odd]}, cacheable=True)


async def _subscribe(exchange: Exchange) -> Fields:
    exchange.session.subscriptions.add(str(exchange.request.params.get("uri")))
    return _complete(exchange, {})


async def _unsubscribe(exchange: Exchange) -> Fields:
    exchange.session.subscriptions.discard(str(exchange.request.params.get("uri")))
    return _complete(exchange, {})


async def _listen(exchange: Exchange) -> Fields:
    """Lasts until the client goes or cancels."""
    wanted: Fields = dict(exchange.request.params.get("notifications") or {})
    one = Listening(exchange, wanted)
    acknowledged: Fields = {
        "notifications": exchange.request.raw("notifications") or {},
        "_meta": one.marked(),
        "odd": None,
    }
    exchange.house.listening.add(one)
    try:
        await exchange.notify("notifications/subscriptions/acknowledged", acknowledged)
        await asyncio.get_running_loop().create_future()
    finally:
        exchange.house.listening.discard(one)
    raise AssertionError("a future that nobody keeps was set")


async def _complete_argument(exchange: Exchange) -> Fields:
    values = [f"{exchange.request.params.get('argument', {}).get('value', '')}{end}" for end in ("", "-1", "\u2028")]
    completion = {"values": values, "total": Raw(str(2**53 + 1)), "hasMore": True, "vendorField": None}
    return _complete(exchange, {"completion": completion, "ref": exchange.request.raw("ref")})


async def _vendor_echo(exchange: Exchange) -> Raw:
    """The parameters as they came are the result."""
    return exchange.request.raw() or Raw("{}")


async def _vendor_announce(exchange: Exchange) -> Raw:
    """The parameters as they came are a notice first, then the result."""
    await exchange.notify("notifications/vendor/announced", await _vendor_echo(exchange))
    return await _vendor_echo(exchange)


_BOTH: Final[Mapping[str, Method]] = {
    "completion/complete": _complete_argument,
    "prompts/get": _get_prompt,
    "prompts/list": _list_prompts,
    "resources/list": _list_resources,
    "resources/read": _read,
    "resources/templates/list": _list_templates,
    "tools/call": _call_tool,
    "tools/list": _list_tools,
    "vendor/announce": _vendor_announce,
    "vendor/echo": _vendor_echo,
}

_LEGACY: Final[Mapping[str, Method]] = {
    **_BOTH,
    "initialize": _initialize,
    "logging/setLevel": _set_level,
    "ping": _ping,
    "resources/subscribe": _subscribe,
    "resources/unsubscribe": _unsubscribe,
}

_MODERN: Final[Mapping[str, Method]] = {
    **_BOTH,
    "server/discover": _discover,
    "subscriptions/listen": _listen,
}
