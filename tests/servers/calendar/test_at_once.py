"""Short reads run on the caller's thread, and never make it wait for a transaction of another."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import anyio
import pytest

from hotplug.servers.calendar import CalendarEngine, FolderStorage, SqliteStorage

pytestmark = pytest.mark.anyio

EVENT: dict[str, Any] = {
    "calendar": "calendar",
    "title": "Planning",
    "start": "2026-06-11T15:00:00Z",
    "duration": "PT1H",
}


async def test_a_read_during_a_transaction_of_another_thread_lets_the_loop_run_on(tmp_path: Path) -> None:
    storage = SqliteStorage(tmp_path / "calendar.sqlite3")
    engine = CalendarEngine(storage)
    made = (await engine.create(EVENT)).event
    held, release = threading.Event(), threading.Event()

    def hold() -> None:
        with storage.transaction():
            held.set()
            release.wait(10)

    holder = threading.Thread(target=hold)
    holder.start()
    assert held.wait(10)
    found: list[Any] = []

    async def read() -> None:
        found.append(await engine.get(made))

    try:
        with anyio.fail_after(10):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(read)
                await anyio.wait_all_tasks_blocked()
                assert found == []
                release.set()
    finally:
        release.set()
        holder.join()
    assert found[0]["title"] == "Planning"
    await engine.close()


async def test_a_read_that_is_cancelled_reads_nothing(tmp_path: Path) -> None:
    engine = CalendarEngine(SqliteStorage(tmp_path / "calendar.sqlite3"))
    made = (await engine.create(EVENT)).event
    found: list[Any] = []
    with anyio.CancelScope() as scope:
        scope.cancel()
        found.append(await engine.get(made))
    assert scope.cancelled_caught
    assert found == []
    await engine.close()


def test_files_are_never_read_at_once(tmp_path: Path) -> None:
    storage = FolderStorage(tmp_path)
    assert storage.at_once(storage.calendars) is None
