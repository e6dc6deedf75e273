"""What the gateway says of itself: the word of the only server behind it, or that of several as one."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, cast

from hotplug.connect.version import own_version
from hotplug.gateway.eras import HANDSHAKE_VERSIONS, MODERN_VERSIONS, SERVER_META
from hotplug.gateway.link import Era, Hello
from hotplug.gateway.message import Object, Raw, dumps, loads

__all__ = ["OUR_NAME", "joined_hello", "negotiated"]

OUR_NAME: Final = "hotplug"

_LISTS: Final = ("tools", "prompts", "resources")


def negotiated(asked: Any) -> str:
    """The handshake revision that is spoken with a client that asks for one."""
    return asked if asked in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[-1]


def joined_hello(
    era: Era,
    hellos: Sequence[tuple[str, Hello]],
    *,
    alone: bool,
    protocol: str,
    extensions: Mapping[str, Any],
    own_tools: bool,
    late: bool = False,
    silent: Collection[str] = (),
) -> Object:
    """The result of `initialize` or `server/discover`.

    Args:
        hellos: What those servers said whose prompts and resources the thread gets, by name.
        alone: The thread sees one server and nothing else: what that server said is passed on, unknown fields included.
        protocol: The revision spoken with a client of the handshake era.
        extensions: What the gateway itself declares.
        own_tools: Whether tools are offered that are no server's.
        silent: Servers that are spoken to through profiles alone: their own prose reaches nobody.
        late: Something that was never seen before is still starting: it may have anything that can be listed.
    """
    result: Object = dict(hellos[0][1].result) if alone and hellos else {}
    capabilities = _capabilities([hello for _, hello in hellos], own_tools=own_tools, late=late)
    if extensions:
        keys = ("extensions", "experimental") if era == "legacy" else ("extensions",)
        for key in keys:
            held = cast("dict[str, Any]", capabilities.get(key) or {})
            capabilities[key] = {**held, **extensions}
    result["capabilities"] = Raw(dumps(capabilities))
    if era == "legacy":
        result["protocolVersion"] = Raw(dumps(protocol))
        if not alone:
            result["serverInfo"] = Raw(dumps(_ourselves()))
    else:
        result["supportedVersions"] = Raw(dumps(list(MODERN_VERSIONS)))
        result.setdefault("resultType", Raw(b'"complete"'))
        # What one thread gets isn't for another's cache.
        result["cacheScope"] = Raw(b'"private"')
        result.setdefault("ttlMs", Raw(b"0"))
        if not alone:
            result["_meta"] = Raw(dumps({SERVER_META: _ourselves()}))
    if not alone:
        told = _instructions([one for one in hellos if one[0] not in silent])
        if told:
            result["instructions"] = Raw(dumps(told))
    return result


def _ourselves() -> dict[str, str]:
    return {"name": OUR_NAME, "title": "Hotplug", "version": own_version()}


def _capabilities(hellos: Sequence[Hello], *, own_tools: bool, late: bool) -> dict[str, Any]:
    joined: dict[str, Any] = {}
    for hello in hellos:
        held = _said(hello, "capabilities")
        if isinstance(held, dict):
            _merge(joined, cast("dict[str, Any]", held))
    if own_tools or not joined:
        joined.setdefault("tools", {})
    for kind in _LISTS if late else ():
        joined.setdefault(kind, {})
    for kind in _LISTS:
        if isinstance(joined.get(kind), dict):
            # The owner's settings can change any list, whether its server ever changes it or not.
            joined[kind]["listChanged"] = True
    return joined


def _said(hello: Hello, key: str) -> Any:
    """What a server said; None where that is nothing, or can't be read: it costs the others nothing."""
    raw = hello.result.get(key)
    try:
        return loads(raw) if raw is not None else None
    except ValueError:
        return None


def _merge(into: dict[str, Any], more: Mapping[str, Any]) -> None:
    for key, value in more.items():
        mine = into.get(key)
        if isinstance(mine, dict) and isinstance(value, dict):
            _merge(cast("dict[str, Any]", mine), cast("dict[str, Any]", value))
        elif key not in into:
            into[key] = dict(cast("dict[str, Any]", value)) if isinstance(value, dict) else value
        elif isinstance(mine, bool) and isinstance(value, bool):
            into[key] = mine or value


def _instructions(hellos: Sequence[tuple[str, Hello]]) -> str:
    parts: list[str] = []
    for name, hello in hellos:
        text = _said(hello, "instructions")
        if isinstance(text, str) and text.strip():
            parts.append(f"## {name}\n\n{text.strip()}")
    return "\n\n".join(parts)
