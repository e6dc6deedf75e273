"""The tools of the odd server. Each says what it provokes in its docstring, which is its description on the wire."""

from __future__ import annotations

import asyncio
import inspect
import os
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from hotplug.testing.odd.exchange import Exchange, Refused
from hotplug.testing.odd.writing import Raw

__all__ = ["LONG_NAME", "call", "listed"]

LONG_NAME: Final = "long_" + "x" * 123
"""128 characters, the most that a tool's name may have."""

_STATE: Final = 'not yours: "\\ \u2028 ä \U0001f50c =='
_PIXEL: Final = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
_SILENCE: Final = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="
_LEVELS: Final = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")

Fields = dict[str, Any]


def _text(content: str | Raw) -> Fields:
    return {"type": "text", "text": content}


async def echo(exchange: Exchange) -> Fields:
    """Gives its arguments back as they came, character for character, and the parameters' `_meta` too."""
    request = exchange.request
    return {
        "content": [_text("echo")],
        "structuredContent": {"arguments": request.raw("arguments"), "meta": request.raw("_meta")},
    }


async def contents(_: Exchange) -> Fields:
    """Gives contents of types that nobody knows, and known ones with fields that nobody knows; nulls among them."""
    return {
        "content": [
            {
                "type": "hologram",
                "layers": [{"depth": Raw("1.50")}, None],
                "_meta": {"vendor.example/kind": "unknown type"},
            },
            {
                "type": "text",
                "text": "known, but not all of it",
                "language": "en",
                "annotations": {"audience": ["user", "robot"], "priority": 0.25, "mood": {"calm": True}},
                "_meta": {"vendor.example/nothing": None},
            },
            {"type": "text", "text": "", "null": None},
        ],
        "vendorField": {"at": "the result", "null": None},
    }


async def nulls(_: Exchange) -> Fields:
    """Gives nulls in every place where one can stand."""
    return {
        "content": [_text("nulls")],
        "structuredContent": {"null": None, "in": [None, {"deep": None}]},
        "vendorField": None,
        "_meta": {"vendor.example/null": None},
    }


async def numbers(_: Exchange) -> Fields:
    """Gives numbers beyond 64 bits and in unusual spellings, each as text beside it."""
    spellings = (
        str(2**70), str(-(2**70)), str(2**53 + 1), "1e-7", "1E-07", "1.0", "1.10", "-0", "-0.0", "1e400", "1E+2",
        "0.1", "3.141592653589793238462643383279", "100000000000000000000000.0",
    )  # fmt: skip
    return {
        "content": [_text("numbers")],
        "structuredContent": {"numbers": {spelling: Raw(spelling) for spelling in spellings}},
    }


async def strings(_: Exchange) -> Fields:
    """Gives every escape that JSON has, lone surrogates, U+2028 and U+2029 unescaped, and a name that needs escapes."""
    escapes = {
        "short": Raw(r'"\" \\ \/ \b \f \n \r \t"'),
        "controls": Raw('"' + "".join(f"\\u{code:04x}" for code in range(0x20)) + '"'),
        "separators": Raw(r'"\u2028\u2029"'),
        "separatorsUnescaped": Raw('"\u2028\u2029\u0085"'),
        "pair": Raw(r'"\ud83d\udd0c"'),
        "pairUnescaped": Raw('"\U0001f50c"'),
        "loneHigh": Raw(r'"\ud800"'),
        "loneLow": Raw(r'"\udfff rest"'),
        "reversed": Raw(r'"\udc00\ud800"'),
        "upperCase": Raw(r'"\u00E4\u00e4"'),
        "byteOrderMark": Raw('"\ufeff"'),
        "noncharacter": Raw('"\uffff"'),
        "delete": Raw('"\x7f"'),
        'a "name" \\ with\u2028escapes': "kept",
        "": "the empty name",
    }
    return {"content": [_text(Raw(r'"lone \ud800 in a text"'))], "structuredContent": escapes}


async def deep(exchange: Exchange) -> Fields:
    """Gives an array in an array, `depth` levels of it (100)."""
    depth = int(exchange.request.arguments.get("depth", 100))
    return {"content": [_text("deep")], "structuredContent": {"deep": Raw("[" * depth + "]" * depth)}}


async def large(exchange: Exchange) -> Fields:
    """Gives a text of `size` characters (20,000)."""
    size = int(exchange.request.arguments.get("size", 20_000))
    return {"content": [_text("0123456789abcdef" * (size // 16) + "x" * (size % 16))]}


async def burst(exchange: Exchange) -> Fields:
    """Sends `count` notices of progress (3,000) as fast as they are taken, each with a field that nobody knows."""
    count = int(exchange.request.arguments.get("count", 3_000))
    token = exchange.request.raw("_meta", "progressToken")
    if token is not None:
        for number in range(1, count + 1):
            progress = {"progressToken": token, "progress": number, "total": count, "message": f"note {number}"}
            odd = {"vendorField": [number], "_meta": {"vendor.example/note": number}}
            await exchange.notify("notifications/progress", {**progress, **odd})
    return {"content": [_text(f"{count if token is not None else 0} notices were sent")]}


async def refuse(exchange: Exchange) -> Fields:
    """Answers with an error of the protocol: `code` (-32050), with data, and fields of the error that nobody knows."""
    code = exchange.request.raw("arguments", "code") or Raw("-32050")
    data = {"why": ["asked to", None], "number": Raw(str(2**70)), "lone": Raw(r'"\udead"')}
    raise Refused({"code": code, "message": "refused, as asked", "data": data, "vendorField": {"of": "an error"}})


async def fail(_: Exchange) -> Fields:
    """Gives a result with `isError`, structured content, and fields that nobody knows."""
    return {
        "content": [_text("failed, as asked")],
        "isError": True,
        "structuredContent": {"code": "vendor_failure", "details": {"null": None}},
        "vendorField": "of a failed result",
    }


async def media(_: Exchange) -> Fields:
    """Gives a picture, a sound, a link, and resources embedded as text and as bytes, each with a field nobody knows."""
    return {
        "content": [
            {"type": "image", "data": _PIXEL, "mimeType": "image/png", "width": 1},
            {"type": "audio", "data": _SILENCE, "mimeType": "audio/wav", "seconds": 0.0},
            {
                "type": "resource_link",
                "uri": "odd://text",
                "name": "text",
                "size": Raw(str(2**63)),
                "icons": [{"src": "data:image/png;base64,", "sizes": ["1x1"], "theme": "dark"}],
                "vendorField": {},
            },
            {"type": "resource", "resource": {"uri": "odd://text", "text": "embedded", "etag": 'W/"1"'}},
            {"type": "resource", "resource": {"uri": "odd://bytes", "blob": _PIXEL, "mimeType": "image/png"}, "x": []},
        ]
    }


async def long_name(_: Exchange) -> Fields:
    """Has a name of 128 characters."""
    return {"content": [_text("called by its whole name")]}


async def ask(exchange: Exchange) -> Fields:
    """Asks the user for a colour: of a legacy client at once, of a modern one by a result that requires input."""
    form = {
        "message": "Which colour?",
        "requestedSchema": {
            "type": "object",
            "properties": {"color": {"type": "string", "x-vendor": {"palette": None}}},
            "required": ["color"],
        },
        "vendorField": {"of": "a question"},
    }
    if not exchange.is_modern:
        answer: Any = await exchange.ask("elicitation/create", form)
        return {"content": [_text("asked at once")], "structuredContent": {"answer": answer}}
    request = exchange.request
    answered = request.raw("inputResponses", "color")
    if answered is None:
        question = {"method": "elicitation/create", "params": {"mode": "form", **form}}
        return {
            "resultType": "input_required",
            "inputRequests": {"color": question},
            "requestState": _STATE,
            "vendorField": {"of": "a round"},
        }
    kept = request.params.get("requestState") == _STATE
    return {
        "content": [_text("asked in rounds")],
        "structuredContent": {"answer": answered, "state": "as it was given out" if kept else "changed"},
    }


async def log(exchange: Exchange) -> Fields:
    """Sends a log entry of each level that the client wants to hear, with data of each JSON type."""
    values = (None, True, 1, Raw("1e-7"), "text", ["a", None], {"a": {"b": None}}, Raw(str(2**70)))
    wanted = _LEVELS.index(exchange.level) if exchange.level in _LEVELS else len(_LEVELS)
    for level, value in list(zip(_LEVELS, values, strict=True))[wanted:]:
        entry = {"level": level, "logger": "odd.log", "data": value, "vendorField": {"of": "a log entry"}}
        await exchange.notify("notifications/message", entry)
    return {"content": [_text("logged")]}


async def change(exchange: Exchange) -> Fields:
    """Says that `what` changed: tools, prompts or resources, of which one comes or goes, or the URI of a resource."""
    what = str(exchange.request.arguments.get("what", "tools"))
    house = exchange.house
    if what in ("tools", "prompts", "resources"):
        house.grown ^= {what}
        await house.announce(f"notifications/{what}/list_changed", {})
    else:
        await house.announce("notifications/resources/updated", {"uri": what})
    return {"content": [_text(f"changed: {what}")]}


async def grown(_: Exchange) -> Fields:
    """Is there only after `change`, and gone after the next one."""
    return {"content": [_text("here for now")]}


async def wait(exchange: Exchange) -> Fields:
    """Tells that it started, and answers after `seconds` (3,600), unless it is cancelled (`cancelled` counts those)."""
    if (token := exchange.request.raw("_meta", "progressToken")) is not None:
        await exchange.notify("notifications/progress", {"progressToken": token, "progress": 0})
    try:
        await asyncio.sleep(float(exchange.request.arguments.get("seconds", 3_600)))
    except asyncio.CancelledError:
        exchange.house.cancelled += 1
        raise
    return {"content": [_text("waited")]}


async def cancelled(exchange: Exchange) -> Fields:
    """Says how many calls of `wait` were cancelled since the start."""
    return {"content": [_text(str(exchange.house.cancelled))], "structuredContent": {"n": exchange.house.cancelled}}


async def seen(exchange: Exchange) -> Fields:
    """Says what arrived: the headers of this request, what `initialize` said, and the client's own notices."""
    return {
        "content": [_text("seen")],
        "structuredContent": {
            "headers": [list(header) for header in exchange.headers],
            "initialize": exchange.session.initialize,
            "meta": exchange.request.raw("_meta"),
            "notices": [Raw(notice) for notice in exchange.session.notices],
        },
    }


async def process(_: Exchange) -> Fields:
    """Says the number of its process, which tells a restart."""
    return {"content": [_text(str(os.getpid()))], "structuredContent": {"pid": os.getpid()}}


async def crash(_: Exchange) -> Fields:
    """Ends the process at once, without an answer."""
    os._exit(70)


Tool = Callable[[Exchange], Awaitable[Fields]]

_TOOLS: Final[Mapping[str, Tool]] = {
    **{
        tool.__name__: tool
        for tool in (
            echo, contents, nulls, numbers, strings, deep, large, burst, refuse, fail, media, ask, log, change, wait,
            cancelled, seen, process, crash,
        )
    },
    LONG_NAME: long_name,
}  # fmt: skip

_ARGUMENTS: Final[Mapping[str, Fields]] = {
    "deep": {"depth": {"type": "integer"}},
    "large": {"size": {"type": "integer"}},
    "burst": {"count": {"type": "integer"}},
    "refuse": {"code": {"type": "integer"}},
    "change": {"what": {"type": "string"}},
    "wait": {"seconds": {"type": "number"}},
}


def listed(exchange: Exchange) -> list[Fields]:
    """As `tools/list` shows them."""
    return [_listed(name, tool) for name, tool in _present(exchange).items()]


async def call(exchange: Exchange) -> Fields:
    """The result of a call.

    Raises:
        Refused: There is no such tool, or it refuses.
    """
    name = exchange.request.params.get("name")
    tool = _present(exchange).get(str(name))
    if tool is None:
        raise Refused({"code": -32602, "message": f"Unknown tool: {name}", "data": {"vendor": "no such tool"}})
    return await tool(exchange)


def _present(exchange: Exchange) -> Mapping[str, Tool]:
    return {**_TOOLS, "grown": grown} if "tools" in exchange.house.grown else _TOOLS


def _listed(name: str, tool: Tool) -> Fields:
    return {
        "name": name,
        "title": f"Odd: {name[:20]}",
        "description": inspect.getdoc(tool),
        "inputSchema": {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": _ARGUMENTS.get(name, {}),
            "additionalProperties": True,
            "x-vendor": {"null": None, "number": Raw("1.0")},
        },
        "annotations": {"readOnlyHint": name != "crash", "vendorHint": {"of": "annotations", "null": None}},
        "icons": [{"src": "data:image/svg+xml,%3Csvg/%3E", "mimeType": "image/svg+xml", "vendorField": 1}],
        "_meta": {"vendor.example/tool": {"name": name, "null": None}},
        "vendorField": {"of": "a tool", "big": Raw(str(2**70))},
    }
