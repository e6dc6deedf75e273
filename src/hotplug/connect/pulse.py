"""Whether events can arrive over a connection: what its subscriptions have seen, and when.

Each request of a subscription waits only a short time at the server, so each answer proves that an event could have
arrived, and an answer that is overdue that none can: on every transport, through every proxy, without a second channel.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from hotplug.profile import Health

__all__ = ["GRACE", "WAIT_MS", "Listener", "Pulse"]

WAIT_MS: Final = 2_000
"""How long one request for events waits at the server."""
GRACE: Final = 2.0
"""Seconds that an answer may be late; with `WAIT_MS` it leaves a second of the five in which a cut has to show."""

_OVERDUE: Final = WAIT_MS / 1000 + GRACE
_SEVERITY: Final = {"idle": 0, "up": 1, "reconnecting": 2, "down": 3}


class Listener:
    """What one subscription has seen. All moments are of the pulse's clock.

    Args:
        proof: When the last answer came; None before the first.
        trouble: Since when requests fail; None while they don't.
    """

    def __init__(self, pulse: Pulse) -> None:
        self._pulse = pulse
        self._began = pulse.now()
        self._asked: float | None = None
        self._up_since = self._began
        self.proof: float | None = None
        self.trouble: float | None = None
        self._why = ""

    def ask(self) -> None:
        """A request was sent."""
        self._asked = self._pulse.now()

    def answered(self) -> None:
        """Its answer has come."""
        now = self._pulse.now()
        if self.proof is None or self.trouble is not None or now - (self._asked or now) > _OVERDUE:
            self._up_since = now
        self.proof, self.trouble, self._asked = now, None, None

    def failed(self, why: str) -> None:
        """It failed, and will be tried again."""
        if self.trouble is None:
            self.trouble = self._asked if self._asked is not None else self._pulse.now()
        self._why, self._asked = why, None

    def end(self, why: str | None = None) -> None:
        """The subscription is over; with `why` it was given up."""
        self._pulse.leave(self, why)

    def health(self, now: float) -> Health:
        """How it stands."""
        if self.trouble is not None:
            return Health("reconnecting", self._pulse.instant(self.trouble), self._why)
        if self.proof is None:
            return Health("reconnecting", self._pulse.instant(self._began), "the first answer hasn't come yet")
        if self._asked is not None:
            silent = now - self._asked
            if silent > _OVERDUE:
                return Health(
                    "reconnecting",
                    self._pulse.instant(self._asked),
                    f"no answer for {silent:.0f} s, although it was asked for one within {WAIT_MS / 1000:g} s",
                )
        elif now - self.proof > _OVERDUE:
            return Health(
                "idle",
                self._pulse.instant(self.proof),
                "the subscriber is busy with an event, and nothing is asked meanwhile",
            )
        return Health("up", self._pulse.instant(self._up_since))


class Pulse:
    """The health of a connection, from its subscriptions: the worst of theirs.

    Args:
        clock: Seconds that only go forward.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.now = clock
        self._start = clock()
        self._began = datetime.now(UTC)
        self._listeners: list[Listener] = []
        self._last: Health | None = None

    def listen(self) -> Listener:
        """A new subscription."""
        self._last = None
        listener = Listener(self)
        self._listeners.append(listener)
        return listener

    def leave(self, listener: Listener, why: str | None) -> None:
        """A subscription is over; given up where there is a `why`, which then is the health until another one."""
        if listener not in self._listeners:
            return
        self._listeners.remove(listener)
        now = self.now()
        if why is not None:
            self._last = Health("down", self.instant(now if listener.trouble is None else listener.trouble), why)
        elif not self._listeners and self._last is None:
            self._last = Health("idle", self.instant(now), "nothing listens any more")

    def health(self) -> Health:
        """How it stands now."""
        now = self.now()
        found = [one.health(now) for one in self._listeners]
        if self._last is not None:
            found.append(self._last)
        if not found:
            return Health("idle", self.instant(self._start), "nothing listens yet")
        return max(found, key=lambda one: _SEVERITY[one.state])

    def instant(self, moment: float) -> str:
        """A moment of the clock as it stands in a `Health`."""
        # By this clock's distance, so that a wall clock that is put back changes no order.
        wall = datetime.fromtimestamp(self._began.timestamp() + moment - self._start, UTC)
        return wall.isoformat(timespec="milliseconds").replace("+00:00", "Z")
