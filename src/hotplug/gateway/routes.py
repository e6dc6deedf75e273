"""Where a request goes, or why it goes nowhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from hotplug.gateway.link import Link
from hotplug.gateway.message import INVALID_PARAMS, METHOD_NOT_FOUND, Message, loads
from hotplug.gateway.view import Known

__all__ = ["Refusal", "Route", "capabilities_of", "link_of", "unknown_tool"]


class Refusal(Exception):
    """A request that isn't passed on, with the error that answers it."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


@dataclass(slots=True)
class Route:
    """Where a request goes.

    Args:
        what: Method and name, for what belongs to this request alone.
        back: Changes the answer on its way back.
        guarded: Whether a person said yes to it: then a state that comes back is good once.
        headers: Of HTTP that repeat arguments, where the caller's own don't; None: the caller's own.
    """

    known: Known
    link: Link
    message: Message
    what: str = ""
    back: Callable[[Message], Message] | None = None
    headers: Mapping[str, str] | None = None
    guarded: bool = False


def link_of(known: Known) -> Link:
    """The link to a server; one in this process has none, and no methods of its own.

    Raises:
        Refusal: It has none.
    """
    if known.link is None:
        raise Refusal(METHOD_NOT_FOUND, "Method not found")
    return known.link


def capabilities_of(known: Known) -> Mapping[str, Any]:
    """What a server said that it can do."""
    raw = known.link.hello.result.get("capabilities") if known.link is not None else None
    held = loads(raw) if raw is not None else None
    return cast("dict[str, Any]", held) if isinstance(held, dict) else {}


def unknown_tool(name: str) -> Refusal:
    """The one answer to whatever a caller can't call, whether it is there or not."""
    return Refusal(INVALID_PARAMS, f"Unknown tool: {name}")
