"""What is remembered of an upstream's eras, for how long, and what of a bad record."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from hotplug.connect.target import CommandTarget
from hotplug.gateway.eramemory import SCOPE, EraMemory
from hotplug.gateway.link import Hello
from hotplug.gateway.message import dumps, split
from hotplug.store import memory as memory_store
from hotplug.store import open_store

pytestmark = pytest.mark.anyio
TARGET = CommandTarget(("server",))


def hello(protocol: str, **result: Any) -> Hello:
    fields = split(dumps(result))
    assert fields is not None
    return Hello(fields, protocol)


async def test_a_finding_is_there_after_a_restart_with_what_the_server_said(tmp_path: Path) -> None:
    said = hello("2026-07-28", supportedVersions=["2026-07-28"], odd={"big": 2**70, "null": None})
    async with open_store(f"sqlite:///{tmp_path}/s.db") as store:
        await EraMemory("it", TARGET, store).found("modern", said)
    async with open_store(f"sqlite:///{tmp_path}/s.db") as store:
        memory = EraMemory("it", TARGET, store)
        await memory.load()
        assert (memory.speaks, memory.lacks) == ({"modern"}, set())
        assert memory.hellos == {"modern": said}


async def test_a_server_of_both_eras_says_so_at_discovery() -> None:
    memory = EraMemory("it", TARGET, None)
    await memory.found("modern", hello("2026-07-28", supportedVersions=["2026-07-28", "2025-06-18"]))
    assert (memory.speaks, memory.lacks) == ({"legacy", "modern"}, set())


async def test_discovery_that_names_no_old_revision_says_nothing_of_the_old_era() -> None:
    # The SDK's servers speak both, and name only the new one there.
    memory = EraMemory("it", TARGET, None)
    await memory.found("legacy", hello("2025-11-25"))
    await memory.found("modern", hello("2026-07-28", supportedVersions=["2026-07-28"]))
    assert (memory.speaks, memory.lacks) == ({"legacy", "modern"}, set())
    memory.doubt("legacy")
    await memory.found("modern", hello("2026-07-28", supportedVersions=["2026-07-28"]))
    assert (memory.speaks, memory.lacks) == ({"modern"}, {"legacy"})


async def test_a_handshake_says_nothing_of_the_other_era() -> None:
    memory = EraMemory("it", TARGET, None)
    await memory.found("legacy", hello("2025-11-25"))
    assert (memory.speaks, memory.lacks) == ({"legacy"}, set())


async def test_what_isnt_sure_isnt_kept() -> None:
    async with memory_store() as store:
        memory = EraMemory("it", TARGET, store)
        memory.doubt("modern")
        await memory.found("legacy", hello("2025-11-25"), sure=False)
        assert memory.lacks == {"modern"}
        assert await store.recall(SCOPE, "it") is None
        await memory.found("legacy", hello("2025-11-25"))
        assert await store.recall(SCOPE, "it") is not None
        await memory.forget()
        assert await store.recall(SCOPE, "it") is None
        assert not memory.speaks


@pytest.mark.parametrize(
    "change",
    [
        {"at": (datetime.now(UTC) - timedelta(days=8)).isoformat()},
        {"at": "yesterday"},
        {"at": None},
        {"target": "of another"},
        {"speaks": "modern"},
    ],
)
async def test_what_is_old_of_another_or_unreadable_counts_for_nothing(change: dict[str, Any]) -> None:
    async with memory_store() as store:
        await EraMemory("it", TARGET, store).found("modern", hello("2026-07-28"))
        kept = await store.recall(SCOPE, "it")
        assert kept is not None
        await store.remember(SCOPE, "it", {**kept, **change})
        memory = EraMemory("it", TARGET, store)
        await memory.load()
        assert not memory.speaks


async def test_no_secret_of_an_entry_is_in_what_is_kept() -> None:
    async with memory_store() as store:
        target = CommandTarget(("server", "--token", "abc-secret-1"), {"KEY": "abc-secret-2"})
        await EraMemory("it", target, store).found("modern", hello("2026-07-28"))
        assert "abc-secret" not in str(await store.recall(SCOPE, "it"))


async def test_all_who_want_it_at_once_wait_for_what_is_recalled(monkeypatch: pytest.MonkeyPatch) -> None:
    async with memory_store() as store:
        await EraMemory("s", TARGET, store).found("legacy", hello("2025-11-25"))
        recall = store.recall

        async def slowly(scope: str, name: str) -> dict[str, Any] | None:
            # As where another process writes just now.
            await asyncio.sleep(0)
            return await recall(scope, name)

        monkeypatch.setattr(store, "recall", slowly)
        memory = EraMemory("s", TARGET, store)
        seen: list[frozenset[str]] = []

        async def look() -> None:
            await memory.load()
            seen.append(memory.speaks)

        await asyncio.gather(look(), look(), look())
        assert seen == [{"legacy"}] * 3
