"""All that may differ between what a client gets at a server and what it gets behind the gateway, and why.

Each rule is applied to what came at the server and to what came behind the gateway alike, and makes only what it is
about the same. Nothing else may differ by a character.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from hotplug.testing.odd.tools import LONG_NAME
from hotplug.testing.odd.writing import Raw, member, write

LISTS: Mapping[str, str] = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}
GONE = ("ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe")
SEEN = "vendor.example/seen"
"""What the odd server shows of the `_meta` that it saw."""


def changed(text: str, path: tuple[str, ...], change: Callable[[str], str | None]) -> str:
    """A JSON text with another member, where it has that; None takes it out."""
    if member(text, *path) is None:
        return text
    found: dict[str, Any] = {name: member(text, name) for name in json.loads(text)}
    inner = found[path[0]].text
    new = change(inner) if len(path) == 1 else changed(inner, path[1:], change)
    if new is None:
        del found[path[0]]
    else:
        found[path[0]] = Raw(new)
    return write(found)


def of_the_gateway(notice: str) -> bool:
    """Whether a notice that a list changed is the gateway's own: what the owner sets changes lists too.

    It tells all who listen whenever what it lists has changed, beside the server's own notices.
    """
    fields = set(json.loads(notice).get("params") or ()) - {"_meta"}
    return json.loads(notice)["method"].endswith("/list_changed") and not fields


def ordered(text: str) -> str:
    """An object with its members by name: their order says nothing."""
    return write({name: member(text, name) for name in sorted(json.loads(text))})


def settled(method: str, texts: list[str]) -> list[Any]:
    """The messages of an exchange, with what may differ made the same."""
    # The progress token that a server sees is the gateway's own where several callers share a connection.
    texts = [changed(text, ("result", "_meta", SEEN, "progressToken"), lambda _: '"-"') for text in texts]
    texts = [changed(text, ("result", "structuredContent", "meta", "progressToken"), lambda _: '"-"') for text in texts]
    if method in LISTS:
        return _list(LISTS[method], texts)
    if method in ("initialize", "server/discover"):
        return [_hello(text) for text in texts]
    if method in GONE:
        # What an era doesn't have is answered by the gateway: the server's `data` isn't there.
        texts = [changed(text, ("error", "data"), lambda _: None) for text in texts]
    return [_unknown(text) for text in texts]


def _unknown(text: str) -> str:
    """What isn't there is answered by the gateway, as what a thread may not have: the server's `data` isn't there."""
    found = re.fullmatch(r'"(Unknown (?:tool|prompt): .*|Resource not found.*)"', _raw(text, "error", "message"))
    return text if found is None else changed(text, ("error",), lambda _: _raw(text, "error", "code"))


def _hello(text: str) -> str:
    text = _cache(changed(text, ("result", "_meta", SEEN), lambda _: None))
    text = changed(text, ("result", "capabilities"), ordered)
    return changed(text, ("result",), ordered)


def _cache(text: str) -> str:
    """What one thread gets is for no other's cache; a result that the gateway makes is as fresh as what it is of."""
    text = changed(text, ("result", "cacheScope"), lambda _: '"private"')
    return changed(text, ("result", "ttlMs"), lambda _: "0")


def _list(key: str, pages: list[str]) -> list[Any]:
    """All servers' lists are read by the gateway itself, whole, and joined: pages are gone, and it is who was seen."""
    items = ",".join(inner for page in pages if (inner := _raw(page, "result", key)[1:-1]))
    if key == "tools":
        # A name that is too long for clients has an end of its own.
        items = re.sub(rf'"name":"{LONG_NAME[:20]}[\w-]*"', '"name":"long"', items)
    rest = _cache(changed(pages[0], ("result", "_meta", SEEN), lambda _: None))
    for gone in (key, "nextCursor"):
        rest = changed(rest, ("result", gone), lambda _: None)
    return [items, changed(rest, ("result",), ordered)]


def _raw(text: str, *path: str) -> str:
    found = member(text, *path)
    return found.text if found is not None else ""
