"""The headers that repeat a modern request's body over HTTP (SEP-2243): a legacy client sends none of them.

Held to the SDK's `mcp.shared.inbound` by tests; its own import costs a second.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Final, cast

from hotplug.gateway.bridge.words import MODERN
from hotplug.gateway.message import Message

__all__ = ["encoded", "mirrored", "routing"]

_NAMES: Final = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_PLAIN: Final = re.compile(r"[\x20-\x7E]*")
_ENCODED: Final = re.compile(r"=\?base64\?.*\?=")
_TOKEN: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_KEY: Final = "x-mcp-header"


def routing(message: Message) -> dict[str, str]:
    """What goes with every request: the revision, the method, and what the method names."""
    headers = {"mcp-protocol-version": MODERN, "mcp-method": message.method or ""}
    name = message.text(_NAMES[message.method]) if message.method in _NAMES else None
    if name is not None:
        headers["mcp-name"] = encoded(name)
    return headers


def encoded(value: str) -> str:
    """A header's value: as it is where it survives in one, else in base64."""
    if _PLAIN.fullmatch(value) and value == value.strip() and not _ENCODED.fullmatch(value):
        return value
    return f"=?base64?{base64.b64encode(value.encode(errors='replace')).decode('ascii')}?="


def mirrored(schema: Any, arguments: Any) -> dict[str, str]:
    """The `mcp-param-…` headers of a call, by the tool's input schema."""
    headers: dict[str, str] = {}
    for path, token in _marked(schema):
        value = arguments
        for key in path:
            value = cast("Mapping[str, Any]", value).get(key) if isinstance(value, Mapping) else None
        if isinstance(value, bool):
            headers[f"mcp-param-{token}".lower()] = "true" if value else "false"
        elif isinstance(value, str | int | float):
            # An integer of thousands of digits has no text.
            with suppress(ValueError):
                headers[f"mcp-param-{token}".lower()] = encoded(str(value))
    return headers


def _marked(schema: Any) -> Iterator[tuple[tuple[str, ...], str]]:
    left: list[tuple[tuple[str, ...], Any]] = [((), schema)]
    while left:
        path, found = left.pop()
        if not isinstance(found, dict):
            continue
        node = cast("dict[str, Any]", found)
        token = node.get(_KEY)
        if path and isinstance(token, str) and _TOKEN.fullmatch(token):
            yield path, token
        properties: Any = node.get("properties")
        if isinstance(properties, dict):
            left.extend(((*path, name), inner) for name, inner in cast("dict[str, Any]", properties).items())
