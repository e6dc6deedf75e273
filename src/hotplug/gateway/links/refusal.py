"""Why a link can't be had though the server may live: it is of the other era, or wants somebody to log in."""

from __future__ import annotations

from hotplug.gateway.link import Era, LinkLost
from hotplug.gateway.message import Message

__all__ = ["EraRefused", "LoginNeeded"]


class LoginNeeded(LinkLost):
    """Nothing helps before somebody has logged in; a try costs nothing, and finds out whether somebody has."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason, sent=False)


class EraRefused(LinkLost):
    """The server lives and answered the handshake, but doesn't speak this era: the other one is worth a try.

    Args:
        era: The one that was tried.
        answer: What it said; None where HTTP said it without a message.
        status: HTTP's, over HTTP.
        supported: The revisions that it names as its own; empty where it names none.
    """

    def __init__(
        self,
        reason: str,
        *,
        era: Era,
        answer: Message | None = None,
        status: int | None = None,
        supported: tuple[str, ...] = (),
    ) -> None:
        super().__init__(reason, sent=False)
        self.era = era
        self.answer = answer
        self.status = status
        self.supported = supported
