"""An effect without a key, at a server whose tables stand in the store's file: receipt and event commit with it."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import anyio
import pytest

from hotplug.errors import StoreError
from hotplug.serve import Runtime
from hotplug.servers import native
from hotplug.store import StoredReceipt

pytestmark = pytest.mark.anyio


def event(calendar: str) -> dict[str, Any]:
    return {"calendar": calendar, "title": "Planning", "start": "2026-06-11T15:00:00Z", "duration": "PT1H"}


async def calendar_of(runtime: Runtime) -> str:
    return (await runtime.call("calendar.calendars", {})).content["calendars"][0]["calendar"]


async def test_receipt_and_event_are_there_once_it_is_answered(tmp_path: Path) -> None:
    server, store, identity = native("sqlite", str(tmp_path / "calendar.sqlite3"))
    runtime = Runtime(server, store=store, identity=identity)
    async with store, runtime.opened():
        answer = await runtime.call("calendar.create", event(await calendar_of(runtime)))
        assert not answer.is_error
        action = answer.content["receipt"]["actionId"]
        kept = await store.receipt(action)
        assert kept is not None
        assert kept.operation == "calendar.create"
        page = await runtime.call("connection.events", {"limit": 10})
        assert [one["actionId"] for one in page.content["events"]] == [action]


async def test_a_receipt_that_cannot_be_kept_undoes_the_effect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server, store, identity = native("sqlite", str(tmp_path / "calendar.sqlite3"))
    runtime = Runtime(server, store=store, identity=identity)

    def full(connection: sqlite3.Connection, receipt: StoredReceipt) -> None:
        raise StoreError("the disk is full")

    async with store, runtime.opened():
        monkeypatch.setattr(store, "add_receipt_in", full)
        answer = await runtime.call("calendar.create", event(await calendar_of(runtime)))
        assert answer.is_error
        found = await runtime.call("calendar.search", {"from": "2026-06-01T00:00:00Z", "to": "2026-07-01T00:00:00Z"})
        assert found.content["events"] == []


async def test_who_waits_for_events_is_woken_by_one_that_committed_with_its_effect(tmp_path: Path) -> None:
    server, store, identity = native("sqlite", str(tmp_path / "calendar.sqlite3"))
    runtime = Runtime(server, store=store, identity=identity)
    pages: list[Any] = []
    async with store, runtime.opened():
        calendar = await calendar_of(runtime)

        async def wait() -> None:
            pages.append(await runtime.call("connection.events", {"limit": 10, "waitMs": 20_000}))

        with anyio.fail_after(15):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(wait)
                await anyio.wait_all_tasks_blocked()
                await runtime.call("calendar.create", event(calendar))
    assert [one["type"] for one in pages[0].content["events"]] == ["calendar.event.changed"]
