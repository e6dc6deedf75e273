"""Waking those who wait in this process, so that only news of other processes has to be looked for."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Awaitable, Callable, Generator, Hashable

import anyio

__all__ = ["Bells"]


class Bells:
    """Bells by topic. A bell rung wakes all who listen at that moment, on the thread that rings.

    Listeners on another thread's event loop are left to their next look: to reach into a foreign loop would have to
    wait for it.
    """

    def __init__(self) -> None:
        self._listening: dict[tuple[Hashable, int], tuple[anyio.Event, int]] = {}

    @contextlib.contextmanager
    def listen(self, topic: Hashable) -> Generator[Callable[[float], Awaitable[None]]]:
        """Listen to a topic; what is yielded sleeps until it rings, or for so many seconds at most.

        A ring between two sleeps is not lost as long as listening began before the look that found nothing.
        """
        at = (topic, threading.get_ident())
        event, listeners = self._listening.get(at) or (anyio.Event(), 0)
        self._listening[at] = (event, listeners + 1)
        due = event

        async def sleep(seconds: float) -> None:
            nonlocal due
            with anyio.move_on_after(seconds):
                await due.wait()
            due = self._listening[at][0]

        try:
            yield sleep
        finally:
            event, listeners = self._listening[at]
            if listeners == 1:
                del self._listening[at]
            else:
                self._listening[at] = (event, listeners - 1)

    def ring(self, topic: Hashable) -> None:
        """Wake the listeners of a topic."""
        at = (topic, threading.get_ident())
        found = self._listening.get(at)
        if found is not None:
            event, listeners = found
            self._listening[at] = (anyio.Event(), listeners)
            event.set()
