"""Two hundred repeats of one creation under one key, over three processes of which one is killed: never two events.

CI plays 50 rounds; elsewhere the suite plays a few, and `HOTPLUG_ROUNDS` says how many.
"""

from __future__ import annotations

import json
import os
import random
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import anyio
import pytest
from anyio.abc import Process
from anyio.streams.text import TextReceiveStream

from .native import KINDS, content, opened

pytestmark = pytest.mark.anyio

ROUNDS = int(os.environ.get("HOTPLUG_ROUNDS") or ("50" if os.environ.get("CI") else "5"))
CALLS = (67, 67, 66)


class Worker:
    """A child that takes rounds."""

    def __init__(self, process: Process) -> None:
        self.process = process
        assert process.stdout is not None
        self._out = TextReceiveStream(process.stdout)
        self._left = ""

    @classmethod
    async def start(cls, kind: str, folder: Path) -> Worker:
        script = str(Path(__file__).with_name("rounds.py"))
        worker = cls(await anyio.open_process([sys.executable, script, kind, str(folder)], stderr=None))
        assert await worker.line() == "ready"
        return worker

    async def line(self) -> str:
        while "\n" not in self._left:
            self._left += await self._out.receive()
        line, _, self._left = self._left.partition("\n")
        return line

    async def say(self, key: str, calls: int) -> None:
        assert self.process.stdin is not None
        await self.process.stdin.send(f"{key} {calls}\n".encode())

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            self.process.kill()

    async def end(self) -> None:
        self.kill()
        await self.process.wait()
        await self.process.aclose()


@pytest.mark.timeout(900)
@pytest.mark.parametrize("kind", KINDS)
async def test_two_hundred_repeats_over_three_processes_one_killed_make_never_two_events(
    kind: str, tmp_path: Path
) -> None:
    chance = random.Random(20261130)
    async with opened(kind, tmp_path):
        pass
    started: list[Worker] = []

    async def start() -> Worker:
        started.append(await Worker.start(kind, tmp_path))
        return started[-1]

    try:
        workers = [await start() for _ in CALLS]
        for number in range(ROUNDS):
            with anyio.fail_after(60):
                workers = await play(kind, tmp_path, f"round-{number}", workers, chance, start)
    finally:
        for worker in started:
            await worker.end()


async def play(
    kind: str,
    folder: Path,
    key: str,
    workers: list[Worker],
    chance: random.Random,
    start: Callable[[], Awaitable[Worker]],
) -> list[Worker]:
    """A round; gives the workers of the next, the killed one replaced."""
    victim, *others = workers
    next_: list[Worker] = []

    async def replace() -> None:
        next_.append(await start())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(replace)
        # The victim is mostly the first to begin, so that its death leaves the others something to find out.
        first = chance.random() < 0.7
        for worker, calls in zip(workers if first else [*others, victim], CALLS, strict=True):
            await worker.say(key, calls)
            if worker is victim:
                await anyio.sleep(chance.choice([0, 0.005, 0.01, 0.02, 0.04, 0.1]) * chance.random())
                if first:
                    tasks.start_soon(kill_later, victim, chance.random() * 0.1)
        if not first:
            victim.kill()
        outcomes: dict[str, int] = {}
        for worker in others:
            for outcome, times in json.loads(await worker.line()).items():
                outcomes[outcome] = outcomes.get(outcome, 0) + times
    titles = made(kind, folder).count(key)
    if kind == "sqlite":
        # It commits the record with the event: every survivor has the one outcome, and there is the one event.
        assert titles == 1, outcomes
        assert len(outcomes) == 1, outcomes
        assert " " in next(iter(outcomes)), outcomes
    else:
        assert titles <= 1, outcomes
        told = {outcome for outcome in outcomes if outcome != "in_doubt"}
        assert len(told) <= 1, outcomes
        assert titles == 1 or not told, outcomes
    assert sum(outcomes.values()) == sum(CALLS[:2]) or sum(outcomes.values()) == sum(CALLS[1:]), outcomes
    return [*others, *next_]


async def kill_later(worker: Worker, seconds: float) -> None:
    await anyio.sleep(seconds)
    worker.kill()


def made(kind: str, folder: Path) -> list[str]:
    """The titles of all events."""
    found = content(kind, folder)
    if kind == "sqlite":
        return [json.loads(body)["title"] for *_, body in found["calendar_events"]]
    texts = [body.decode() for name, body in found.items() if name.endswith(".ics")]
    return [
        line.removeprefix("SUMMARY:") for text in texts for line in text.split("\r\n") if line.startswith("SUMMARY:")
    ]
