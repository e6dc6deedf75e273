"""Facts of one scope, many at once."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from hotplug.errors import StoreError
from hotplug.store import SqliteStore, memory, open_store

pytestmark = pytest.mark.anyio


async def test_what_was_claimed_first_stands() -> None:
    async with memory() as store:
        assert await store.claim("s", {"a": {"of": 1}}) == {"a": {"of": 1}}
        assert await store.claim("s", {"a": {"of": 2}, "b": {"of": 2}}) == {"a": {"of": 1}, "b": {"of": 2}}
        assert await store.claim("other", {"a": {"of": 3}}) == {"a": {"of": 3}}
        assert await store.recall_all("s") == {"a": {"of": 1}, "b": {"of": 2}}
        assert await store.recall("s", "b") == {"of": 2}


async def test_an_exchange_is_whole_or_not_at_all() -> None:
    async with memory() as store:
        await store.claim("s", {"a": {"v": 1}, "b": {"v": 1}})
        assert not await store.exchange("s", {"a": ({"v": 1}, {"v": 2}), "b": ({"v": 0}, {"v": 2})})
        assert await store.recall_all("s") == {"a": {"v": 1}, "b": {"v": 1}}
        assert await store.exchange("s", {"a": ({"v": 1}, {"v": 2}), "c": (None, {"v": 2})})
        assert await store.recall_all("s") == {"a": {"v": 2}, "b": {"v": 1}, "c": {"v": 2}}


async def test_facts_are_forgotten_by_name_or_all() -> None:
    async with memory() as store:
        await store.claim("s", {"a": {}, "b": {}, "c": {}})
        assert await store.forget_all("s", ["a", "x"]) == 1
        assert await store.forget_all("s") == 2
        assert await store.recall_all("s") == {}


async def test_a_fact_that_cannot_be_read_is_there_and_says_nothing(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    async with SqliteStore.open(path) as store:
        await store.claim("s", {"a": {"v": 1}, "b": {"v": 1}})
        for body in ("{", "[]", "[" * 100_000):
            with sqlite3.connect(path) as connection:
                connection.execute("UPDATE store_memory SET body = ? WHERE name = 'a'", (body,))
            connection.close()
            assert await store.recall_all("s") == {"a": None, "b": {"v": 1}}
            assert await store.claim("s", {"a": {"v": 2}}) == {"a": None}
        assert await store.exchange("s", {"a": (None, {"v": 3})})
        assert await store.recall("s", "a") == {"v": 3}


async def test_what_is_no_json_is_refused_and_nothing_of_it_kept() -> None:
    async with memory() as store:
        with pytest.raises(StoreError, match="not JSON"):
            await store.claim("s", {"a": {}, "b": {"v": object()}})
        assert await store.recall_all("s") == {}


async def test_one_of_two_processes_wins(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'store.db'}"
    async with open_store(url) as one, open_store(url) as two:
        assert await one.claim("s", {"a": {"by": 1}}) == await two.claim("s", {"a": {"by": 2}}) == {"a": {"by": 1}}
        assert await two.exchange("s", {"a": ({"by": 1}, {"by": 2})})
        assert not await one.exchange("s", {"a": ({"by": 1}, {"by": 3})})
