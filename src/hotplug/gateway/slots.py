"""The places of an upstream's links: for whom each is, what is there now, how long is waited for it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Literal, NamedTuple

from hotplug.gateway.backoff import Backoff
from hotplug.gateway.catalog import Catalog
from hotplug.gateway.pooled import PooledLink
from hotplug.gateway.shelf import Shelf
from hotplug.gateway.watching import Watch

__all__ = ["NOBODY", "LinkKey", "Patience", "Slot", "SlotId", "UpstreamState", "session_of"]


@dataclass(frozen=True, slots=True)
class LinkKey:
    """For whom a link is.

    Args:
        thread: The thread.
        session: The client's session in the legacy era; None: no client stands behind it (the gateway's own handshake).
    """

    thread: str
    session: str | None = None


NOBODY: Final = LinkKey("-")
"""Behind whom no client stands: to look what a server says of itself. No thread has such an id."""


@dataclass(frozen=True, slots=True)
class UpstreamState:
    """How an upstream stands, for people.

    Args:
        kind: `stopped` is normal: nobody needs it.
        reason: Of `failed`: what is wrong, masked.
        retry_at: Of `failed`: when it may be tried again.
        running: How many links to it are up; what bridges lead to them isn't counted.
    """

    kind: Literal["stopped", "starting", "up", "failed", "disabled"]
    reason: str | None = None
    retry_at: datetime | None = None
    running: int = 0


@dataclass(frozen=True, slots=True)
class Patience:
    """How long is waited for what no configuration says; seconds.

    Args:
        probe: For an answer to `server/discover` of a server whose eras aren't known.
        alive: For a sign of life of a server that seems to hang.
        page: For each page of a list.
        cancelled: For the answer to what its caller cancelled.
    """

    probe: float = 3.0
    alive: float = 10.0
    page: float = 10.0
    cancelled: float = 2.0


class SlotId(NamedTuple):
    """Which link it is the place of: its era, and for whom; empty for all."""

    era: str
    thread: str
    session: str


@dataclass(slots=True)
class Slot:
    """The place of one link: what is there now, and what was."""

    id: SlotId
    backoff: Backoff
    pooled: PooledLink | None = None
    starting: asyncio.Task[PooledLink] | None = None
    watch: Watch | None = None
    closing: asyncio.Task[None] | None = None
    shelf: Shelf | None = None
    log_level: str | None = None
    last: Catalog | None = field(default=None, repr=False)

    @property
    def up(self) -> bool:
        """Whether a link is there that can be used."""
        return self.pooled is not None and self.pooled.lost is None

    @property
    def bridge(self) -> bool:
        """Whether it leads to another link, and to no server by itself."""
        return self.id.era.startswith("bridged")


def session_of(key: LinkKey) -> str:
    """How a session stands in a `SlotId`."""
    return "own" if key.session is None else f"session {key.session}"
