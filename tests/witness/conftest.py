"""What the tests of witnesses share."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from typing import Any

import anyio
import pytest

from hotplug.errors import Disconnected
from hotplug.evidence.coverage import BlindSpot
from hotplug.evidence.observation import Observation
from hotplug.evidence.window import Window
from hotplug.evidence.witness import Witness
from hotplug.profile.summaries import summary_fault
from hotplug.testing import PostgresServer, postgres


class Watched:
    """A witness and a window of it, with what it says in short."""

    def __init__(self, witness: Witness, window: Window) -> None:
        self.witness = witness
        self.window = window

    async def seen(self) -> list[str]:
        """The summaries of what was seen so far."""
        return [one.summary for one in await self.observed()]

    async def observed(self) -> tuple[Observation, ...]:
        found = await self.witness.observe(self.window)
        assert len({one.id for one in found}) == len(found)
        for one in found:
            assert one.window == self.window.id
            assert summary_fault(one.channel, one.summary) is None
            assert self.witness.observes(one.channel)
        return found

    async def spots(self) -> tuple[BlindSpot, ...]:
        return (await self.witness.coverage(self.window)).blind_spots or ()

    async def gaps(self) -> list[tuple[str, str | None]]:
        """The kinds of the blind spots, with their channels."""
        return [(one.kind, one.channel) for one in await self.spots()]

    async def close(self) -> Window:
        return await self.witness.close_window(self.window)


@pytest.fixture(autouse=True)
def _state(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers keep their stores away from the user's own."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))


@pytest.fixture
async def watch() -> AsyncGenerator[Callable[[Witness], Any]]:
    """Opens a window of a witness."""
    used: list[Witness] = []

    async def opened(witness: Witness) -> Watched:
        used.append(witness)
        return Watched(witness, await witness.open_window(5_000))

    yield opened
    for witness in used:
        await witness.aclose()


@pytest.fixture
def until() -> Callable[..., Any]:
    """Waits for a condition, at most 10 s."""

    async def met(condition: Callable[[], Any]) -> Any:
        with anyio.fail_after(10):
            while True:
                found = condition()
                if hasattr(found, "__await__"):
                    found = await found
                if found:
                    return found
                await anyio.sleep(0.01)

    return met


@pytest.fixture(scope="module")
async def server() -> AsyncGenerator[PostgresServer]:
    async with postgres(database="shop") as running:
        yield running


class Broken:
    """A channel that can be cut, as a server can't be asked to."""

    def __init__(self, channel: Any) -> None:
        self._channel = channel
        self.is_broken = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._channel, name)

    async def call(self, *args: Any, **kwargs: Any) -> Any:
        if self.is_broken:
            raise Disconnected("the connection was cut")
        return await self._channel.call(*args, **kwargs)

    async def restore(self) -> None:
        raise Disconnected("the connection was cut")


@pytest.fixture
def cut() -> Callable[[Any], Broken]:
    """A channel that can be cut."""
    return Broken
