"""URIs of resources in results, where a server's own would lead a client to another server's resource, or nowhere.

Only members that the protocol says to be a resource's URI are looked at; everything else stays as it came.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from hotplug.gateway.bridge.words import items
from hotplug.gateway.message import Object, Raw, dumps, loads, split

__all__ = ["readdressed"]

Address = Callable[[str], str]
_LISTS: Final = ("content", "contents", "messages")


def readdressed(result: Object, address: Address) -> Object:
    """A result of `tools/call`, `resources/read` or `prompts/get`; the same object where nothing has to change.

    Args:
        address: Gives the URI that clients read a server's own one by.
    """
    changed: Object = {}
    for name in _LISTS:
        raw = result.get(name)
        if raw is None or b'"uri"' not in bytes(raw):
            continue
        before = items(raw)
        after = [_block(one, address, direct=name == "contents") for one in before]
        if any(new is not old for new, old in zip(after, before, strict=True)):
            changed[name] = Raw(dumps(after))
    return {**result, **changed} if changed else result


def _block(raw: Raw, address: Address, *, direct: bool) -> Raw:
    """A content block, a resource's contents (`direct`), or a prompt's message."""
    fields = split(raw)
    if fields is None or b'"uri"' not in bytes(raw):
        return raw
    if direct or bytes(fields.get("type", b"")) == b'"resource_link"':
        return _with_uri(raw, fields, address)
    if bytes(fields.get("type", b"")) == b'"resource"':
        return _within(raw, fields, "resource", lambda inner: _block(inner, address, direct=True))
    if "role" in fields:
        return _within(raw, fields, "content", lambda inner: _content(inner, address))
    return raw


def _content(raw: Raw, address: Address) -> Raw:
    """What a message says: one block, or several."""
    blocks = items(raw)
    if not blocks:
        return _block(raw, address, direct=False)
    after = [_block(one, address, direct=False) for one in blocks]
    return Raw(dumps(after)) if any(new is not old for new, old in zip(after, blocks, strict=True)) else raw


def _within(raw: Raw, fields: Object, name: str, change: Callable[[Raw], Raw]) -> Raw:
    held = fields.get(name)
    if held is None:
        return raw
    inner = change(held)
    return raw if inner is held else Raw(dumps({**fields, name: inner}))


def _with_uri(raw: Raw, fields: Object, address: Address) -> Raw:
    own = loads(fields["uri"]) if "uri" in fields else None
    if not isinstance(own, str):
        return raw
    shown = address(own)
    return raw if shown == own else Raw(dumps({**fields, "uri": Raw(dumps(shown))}))
