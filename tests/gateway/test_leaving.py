"""Nothing is kept of threads that were closed, however many there were."""

from __future__ import annotations

import asyncio
import gc
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from .roads import Hall, hall
from .upstreams import Fake

pytestmark = pytest.mark.anyio

THREADS = 6
BOUNDED = {"hotplug.serve.refs.Seal"}
"""Kept for the threads that called last, up to a bound that has a test of its own."""
SERVER = str(Path(__file__).parent / "soak" / "server.py")


async def lived(h: Hall) -> None:
    """A thread that uses everything in both eras, and is closed."""
    thread = await h.thread()
    for aware in (False, True):
        assert await thread.tools(aware=aware)
    session = await thread.session(elicitation={})
    for asked in (thread, session):
        for tool in ("fake.echo", "own.echo", "shared.echo"):
            assert not (await asked.call(tool, {"mark": "m"})).get("isError")
        assert (await asked.call("calendar.calendars"))["structuredContent"]["calendars"]
    assert (await thread.modern("prompts/get", {"name": "say"})).status == 200
    assert (await session.request("resources/subscribe", {"uri": "fake://a"})).status == 200
    async with thread.listening(toolsListChanged=True, resourceSubscriptions=["fake://a"]), session.general() as wire:
        await wire.head()
    await h.gateway.threads.close(thread.id)


def held() -> Counter[str]:
    """How many objects of ours there are, by kind."""
    gc.collect()
    kinds = (type(one) for one in gc.get_objects())
    return Counter(f"{kind.__module__}.{kind.__qualname__}" for kind in kinds if str(kind.__module__)[:7] == "hotplug")


async def test_nothing_is_kept_of_threads_that_were_closed(tmp_path: Path) -> None:
    servers = {
        "fake": Fake(["echo", "add"], ["say"], ["fake://a"]),
        "own": [sys.executable, "-I", "-S", SERVER, "own", str(tmp_path)],
        "shared": [sys.executable, "-I", "-S", SERVER, "all", str(tmp_path)],
        "cal": f"sqlite:///{tmp_path}/calendar.db",
    }
    async with hall(tmp_path, servers, entries={"shared": {"share": "all"}}) as h:
        for _ in range(2):
            await lived(h)
        await until_left(h)
        before = held()
        for _ in range(THREADS):
            await lived(h)
        await until_left(h)
        kept: list[str] = ["unknown"]
        deadline = time.monotonic() + 30
        while kept and time.monotonic() < deadline:
            # The last answers' tasks may still be about to end.
            await asyncio.sleep(0.1)
            left = held() - before
            kept = [f"{count} {kind}" for kind, count in left.items() if count >= THREADS and kind not in BOUNDED]
        assert not kept


async def until_left(h: Hall) -> None:
    async with asyncio.timeout(30):
        while h.gateway.router.served:
            await asyncio.sleep(0.05)
