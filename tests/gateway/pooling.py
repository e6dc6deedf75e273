"""What the tests of pool and upstream share: children that write down their starts, calls, and a clock of their own."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from hotplug.connect.target import CommandTarget
from hotplug.gateway.asking import ask
from hotplug.gateway.config import ServerConfig
from hotplug.gateway.link import Link
from hotplug.gateway.message import dumps, loads, split
from hotplug.gateway.upstream import Patience, Upstream

CHILDREN = Path(__file__).parent / "children"
QUICK = Patience(probe=4.0, alive=0.3, page=2.0)
"""For tests whose server is silent on purpose, and dead; one that lives needs time for its answer: `LIVELY`."""
LIVELY = Patience(probe=4.0, alive=10.0, page=10.0)


class Child:
    """A server's entry, and what its processes wrote down."""

    def __init__(self, folder: Path, script: str, *arguments: str, name: str | None = None, **settings: Any) -> None:
        self.name = name or script
        self.record = folder / f"{self.name}.record"
        argv = (sys.executable, str(CHILDREN / f"{script}.py"), str(self.record), *arguments)
        self.config = ServerConfig(self.name, CommandTarget(argv), **settings)

    def lines(self) -> list[str]:
        return self.record.read_text().splitlines() if self.record.exists() else []

    def pids(self) -> list[int]:
        return [int(line.split()[1]) for line in self.lines() if line.startswith("start ")]

    @property
    def starts(self) -> int:
        return len(self.pids())

    def last_start(self) -> list[str]:
        """What was written since the last start, with it."""
        lines = self.lines()
        return lines[max(at for at, line in enumerate(lines) if line.startswith("start ")) :]

    def count(self, method: str) -> int:
        return self.lines().count(method)

    def running(self) -> list[int]:
        return [pid for pid in self.pids() if _runs(pid)]


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def configs(*children: Child) -> dict[str, ServerConfig]:
    return {child.name: child.config for child in children}


async def call(link: Link, tool: str, **arguments: Any) -> str:
    """The text of a tool's answer; an error's message."""
    answer = await ask(link, "tools/call", {"name": tool, "arguments": arguments})
    if answer.kind == "error":
        return loads(answer.fields["error"])["message"]
    return loads(answer.result["content"])[0]["text"]


async def tools(upstream: Upstream, link: Link) -> list[str]:
    return [item.name for item in (await upstream.catalog(link)).tools.items]


async def until(condition: Callable[[], Any], limit: float = 30.0) -> None:
    """Wait until it holds."""
    async with asyncio.timeout(limit):
        while not condition():
            await asyncio.sleep(0.01)


class HandClock:
    """Time that passes when a test says so."""

    def __init__(self) -> None:
        self.now = 1000.0
        self._sleeping: list[tuple[float, asyncio.Future[None]]] = []

    def time(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        woken = asyncio.get_running_loop().create_future()
        self._sleeping.append((self.now + seconds, woken))
        await woken

    @property
    def sleepers(self) -> int:
        return sum(1 for _, woken in self._sleeping if not woken.done())

    async def advance(self, seconds: float) -> None:
        """Let time pass, and who slept go on."""
        self.now += seconds
        for until, woken in self._sleeping:
            if until <= self.now and not woken.done():
                woken.set_result(None)
        self._sleeping = [(until, woken) for until, woken in self._sleeping if not woken.done()]
        for _ in range(20):
            await asyncio.sleep(0)


def initialize(**capabilities: Any) -> dict[str, Any]:
    """A legacy client's params."""

    given: Mapping[str, Any] = {
        "protocolVersion": "2025-11-25",
        "capabilities": capabilities,
        "clientInfo": {"name": "client", "version": "1"},
    }
    fields = split(dumps(given))
    assert fields is not None
    return fields
