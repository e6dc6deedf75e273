"""How long to leave something alone after it failed."""

from __future__ import annotations

from typing import Final

from hotplug.gateway.clock import Clock

__all__ = ["Backoff"]

FIRST: Final = 0.5
LONGEST: Final = 60.0
STEADY: Final = 60.0
"""Seconds up after which a failure counts as the first again."""


class Backoff:
    """Half a second after the first failure, doubling to a minute; a minute without failure starts over."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._failures = 0
        self._up_since: float | None = None
        self._retry_at = 0.0

    @property
    def remaining(self) -> float:
        """Seconds until it may be tried again; 0 where it may be now."""
        return max(0.0, self._retry_at - self._clock.time()) if self._failures else 0.0

    def succeeded(self) -> None:
        """It is up: from now on its time up counts."""
        self._up_since = self._clock.time()
        self._retry_at = 0.0

    def failed(self) -> float:
        """It failed to come up, or went down by itself; gives the seconds until it may be tried again."""
        now = self._clock.time()
        if self._up_since is not None and now - self._up_since >= STEADY:
            self._failures = 0
        self._up_since = None
        wait = min(LONGEST, FIRST * 2 ** min(self._failures, 30))
        self._failures += 1
        self._retry_at = now + wait
        return wait

    def forget(self) -> None:
        """As if it had never failed: its entry was changed, or its owner asked."""
        self._failures = 0
        self._up_since = None
        self._retry_at = 0.0
