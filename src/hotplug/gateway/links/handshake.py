"""The first words of a link: `initialize` in the old era, `server/discover` in the new one, as raw messages."""

from __future__ import annotations

from typing import Final, cast

from msgspec import Raw

from hotplug.connect.masking import Masker
from hotplug.connect.version import own_version
from hotplug.gateway.link import Era, Hello, LinkLost
from hotplug.gateway.links.refusal import EraRefused
from hotplug.gateway.message import Message, Object, loads

__all__ = ["INITIALIZED", "LEGACY_REVISIONS", "MODERN_REVISIONS", "first_request", "hello_of", "own_meta", "refused_by"]
__all__ += ["refused_status"]

LEGACY_REVISIONS: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""The revisions with a handshake, oldest first."""
MODERN_REVISIONS: Final = ("2026-07-28",)
"""The revisions without one, oldest first."""

INITIALIZED: Final = Message.notification("notifications/initialized")


def own_meta() -> dict[str, object]:
    """The `_meta` that a modern request of the gateway's own carries."""
    return {
        "io.modelcontextprotocol/protocolVersion": MODERN_REVISIONS[-1],
        "io.modelcontextprotocol/clientInfo": _own_name(),
        "io.modelcontextprotocol/clientCapabilities": {},
    }


def _own_name() -> dict[str, str]:
    return {"name": "hotplug", "version": own_version()}


def first_request(era: Era, initialize: Object | None) -> Message:
    """The request that opens a link.

    Args:
        initialize: A legacy client's params, passed on as they are; None: the gateway's own.
    """
    if era == "modern":
        return Message.request("hello", "server/discover", {"_meta": own_meta()})
    return Message.request(
        "hello",
        "initialize",
        initialize
        if initialize is not None
        else {
            "protocolVersion": LEGACY_REVISIONS[-1],
            "capabilities": {},
            "clientInfo": _own_name(),
        },
    )


def hello_of(era: Era, answer: Message, masker: Masker, *, status: int | None = None) -> Hello:
    """What the server said of itself.

    Raises:
        EraRefused: That is an error, or no answer of this era.
    """
    if answer.kind != "result":
        raise refused_by(era, answer, masker, status=status)
    result = answer.result
    if era == "legacy":
        version = _value(result.get("protocolVersion"))
        if version in LEGACY_REVISIONS:
            return Hello(result, version)
        named = (version,) if isinstance(version, str) else ()
        key = "protocolVersion"
    else:
        listed = _value(result.get("supportedVersions"))
        named = (
            tuple(each for each in cast("list[object]", listed) if isinstance(each, str))
            if isinstance(listed, list)
            else ()
        )
        mutual = [each for each in MODERN_REVISIONS if each in named]
        if mutual:
            return Hello(result, mutual[-1])
        key = "supportedVersions"
    if named:
        reason = (
            f"it speaks only protocol revisions that aren't known here as {era}: {masker.line(', '.join(named)[:200])}"
        )
    else:
        reason = f"its answer has no {key}: it is no MCP server of that era"
    raise EraRefused(reason, era=era, answer=answer, status=status, supported=named)


def refused_by(era: Era, answer: Message, masker: Masker, *, status: int | None = None) -> EraRefused:
    """An answer that is an error, as what to raise."""
    error = _value(answer.fields.get("error"))
    code, said, supported = None, "", ()
    if isinstance(error, dict):
        fields = cast("dict[str, object]", error)
        code, said = fields.get("code"), str(fields.get("message") or "")
        given = fields.get("data")
        listed = cast("dict[str, object]", given).get("supported") if isinstance(given, dict) else None
        if isinstance(listed, list):
            supported = tuple(each for each in cast("list[object]", listed) if isinstance(each, str))
    method = "server/discover" if era == "modern" else "initialize"
    reason = f"it answers {method} with error {code}" + (f": {masker.line(said[:300])}" if said else "")
    return EraRefused(reason, era=era, answer=answer, status=status, supported=supported)


def _value(raw: Raw | None) -> object:
    try:
        return loads(raw) if raw is not None else None
    except ValueError:
        return None


_NOT_THE_PATHS: Final = frozenset({401, 403, 429})
"""Statuses whose pages of HTML say nothing of the path."""


def refused_status(era: Era, status: int, media: str) -> LinkLost:
    """An answer of HTTP that is no message, as what to raise: the other era is worth a try unless it is a failure."""
    words = f"HTTP {status}"
    if status == 405:
        words += " (it may speak only the HTTP+SSE transport of 2024-11-05, or the path is wrong)"
    elif status == 404 or (status not in _NOT_THE_PATHS and status < 500 and media.startswith("text/html")):
        words += " (is the path right? it is often /mcp)"
    if status >= 500:
        return LinkLost(words, sent=False)
    return EraRefused(words, era=era, status=status)
