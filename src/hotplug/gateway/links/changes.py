"""Who wants to be told that a server's lists changed, or that its link is lost."""

from __future__ import annotations

import logging
from collections.abc import Callable

from hotplug.gateway.message import Message

__all__ = ["Changes"]

_logger = logging.getLogger("hotplug.gateway")


class Changes:
    """Passes on the method of each change notice, and `lost`, once."""

    def __init__(self) -> None:
        self._told: dict[int, Callable[[str], None]] = {}
        self._next = 0

    def add(self, told: Callable[[str], None]) -> Callable[[], None]:
        """One more to be told; gives what ends it."""
        self._next += 1
        key = self._next
        self._told[key] = told
        return lambda: self._told.pop(key, None) and None

    def look(self, message: Message) -> None:
        """Tells of a message if it is a change notice."""
        method = message.method
        if method is not None and method.endswith("/list_changed") and method.startswith("notifications/"):
            self._tell(method)

    def lost(self) -> None:
        """Tells that the link is lost."""
        self._tell("lost")

    def _tell(self, word: str) -> None:
        for told in tuple(self._told.values()):
            try:
                told(word)
            except Exception:
                # One listener's fault is not the others', nor the pipe's.
                _logger.exception("a listener failed on %s", word)
