"""Looking after one link while it is up: who hears nothing for too long, whether its child hangs, when it is idle."""

from __future__ import annotations

import asyncio
from typing import Final

from hotplug.gateway.asking import ask
from hotplug.gateway.link import LinkLost
from hotplug.gateway.pooled import PooledLink, Wait
from hotplug.gateway.tasks import Tasks

__all__ = ["Watch"]

_LOOK_AGAIN: Final = 60.0


class Watch:
    """Watches one link until `end`.

    Args:
        child: Whether a child stands behind it: it is replaced when it hangs, and stopped when it is idle.
        silence: Seconds without any message of the server after which a call is given up; None: never.
        idle: Seconds without use after which a child is stopped; None: never.
        alive: Seconds for a sign of life.
    """

    def __init__(
        self, pooled: PooledLink, tasks: Tasks, *, child: bool, silence: float | None, idle: float | None, alive: float
    ) -> None:
        self._pooled = pooled
        self._tasks = tasks
        self._child = child
        self._silence = silence
        self._idle = idle if child else None
        self._alive_limit = alive
        self._checking: asyncio.Task[None] | None = None
        self._looking: asyncio.Task[None] | None = None
        if (self._silence, self._idle) != (None, None):
            self._looking = tasks.start(self._look_after())

    def end(self) -> None:
        """Watch no more. May be called by what it watches with."""
        for task in (self._looking, self._checking):
            if task is not None and task is not asyncio.current_task():
                task.cancel()

    def suspect(self) -> None:
        """A caller waited in vain: see whether the child gives a sign of life."""
        if self._child and (self._checking is None or self._checking.done()):
            self._checking = self._tasks.start(self._check())

    async def _look_after(self) -> None:
        pooled, silence, idle = self._pooled, self._silence, self._idle
        while pooled.lost is None:
            now = pooled.clock.time()
            if idle is not None and not pooled.in_use and now >= pooled.last_use + idle:
                pooled.end(f"it was stopped after {idle:g} s without use")
                return
            if silence is not None and self._unheard(silence):
                await self._silent(silence)
                continue
            looks = [now + _LOOK_AGAIN]
            if idle is not None:
                looks.append(now + idle if pooled.in_use else pooled.last_use + idle)
            if silence is not None:
                looks.append(now + silence)
                looks.extend(self._since(wait) + silence for wait in pooled.waits if not wait.patient)
            await pooled.clock.sleep(max(0.001, min(looks) - now))

    def _since(self, wait: Wait) -> float:
        """Since when somebody hears nothing: a child that talks to another lives."""
        return max(wait.since, self._pooled.heard) if self._child else wait.since

    def _unheard(self, silence: float) -> list[Wait]:
        now = self._pooled.clock.time()
        return [wait for wait in self._pooled.waits if not wait.patient and now >= self._since(wait) + silence]

    async def _silent(self, silence: float) -> None:
        pooled = self._pooled
        waits = self._unheard(silence)
        if self._child and not await self._alive(min(self._alive_limit, silence)):
            pooled.end(f"it said nothing for {silence:g} s and gives no sign of life", by_itself=True)
            return
        for wait in waits:
            pooled.waits.discard(wait)
            wait.give_up(f"it said nothing for {silence:g} s")

    async def _check(self) -> None:
        pooled = self._pooled
        # Somebody else's call may rightly keep it busy: then it is left alone.
        if not await self._alive(self._alive_limit) and not pooled.uses:
            pooled.end(f"it gave no sign of life for {self._alive_limit:g} s", by_itself=True)

    async def _alive(self, limit: float) -> bool:
        """Whether it says anything within `limit` seconds, asked for the least that it can say."""
        pooled = self._pooled
        before = pooled.heard
        try:
            async with asyncio.timeout(limit):
                await ask(pooled.link, "ping" if pooled.era == "legacy" else "server/discover")
        except (TimeoutError, LinkLost):
            return pooled.heard > before
        pooled.hear()
        return True
