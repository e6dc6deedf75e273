"""Doing it once, across processes that die."""

from __future__ import annotations

import collections
import random
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from hotplug.errors import StoreError
from hotplug.store import Finished, Fresh, InDoubt, InFlight, SqliteStore, memory, open_store

pytestmark = pytest.mark.anyio
WHO = ("p", "calendar.create")


async def make_effects(store: SqliteStore) -> None:
    with store.transaction() as c:
        c.execute("CREATE TABLE effect (key TEXT)")


def count_effects(store: SqliteStore) -> dict[str, int]:
    with store.transaction() as c:
        return dict(c.execute("SELECT key, count(*) FROM effect GROUP BY key").fetchall())


async def test_a_killed_owner_leaves_a_doubt(url: str, start: Callable[..., Any]) -> None:
    worker = start("hold", url, "k", "plain")
    assert worker.read() == "Fresh"
    async with open_store(url) as store:
        assert isinstance(await store.begin(*WHO, "k", "d"), InFlight)
        worker.kill()
        assert await store.begin(*WHO, "k", "d") == InDoubt()
    async with open_store(url) as store:
        assert await store.begin(*WHO, "k", "d") == InDoubt()


async def test_a_killed_owner_of_an_atomic_record_did_nothing(url: str, start: Callable[..., Any]) -> None:
    worker = start("hold", url, "k", "atomic")
    assert worker.read() == "Fresh"
    worker.kill()
    async with open_store(url) as store:
        assert isinstance(await store.begin(*WHO, "k", "d", atomic=True), Fresh)
        assert isinstance(await store.begin(*WHO, "k", "d", atomic=True), InFlight)


@pytest.mark.parametrize(("kind", "expected"), [("plain", InDoubt), ("atomic", Fresh)])
async def test_a_waiter_learns_that_the_owner_was_killed(
    url: str, start: Callable[..., Any], kind: str, expected: type
) -> None:
    worker = start("hold", url, "k", kind)
    assert worker.read() == "Fresh"
    async with open_store(url) as store, anyio.create_task_group() as group:
        flight = await store.begin(*WHO, "k", "d", atomic=kind == "atomic")
        assert isinstance(flight, InFlight)
        group.start_soon(anyio.to_thread.run_sync, worker.kill)
        assert isinstance(await store.wait(flight, 10), expected)


async def test_a_waiter_gets_the_outcome_of_another_process(url: str, start: Callable[..., Any]) -> None:
    worker = start("hold", url, "k", "plain")
    assert worker.read() == "Fresh"
    async with open_store(url) as store:
        flight = await store.begin(*WHO, "k", "d")
        assert isinstance(flight, InFlight)
        worker.go_on()
        assert await store.wait(flight, 10) == Finished({"by": "the other"}, is_error=False)


async def test_an_owner_that_finishes_and_goes_while_it_is_looked_at_leaves_no_doubt(url: str, tmp_path: Path) -> None:
    meanwhile: list[Callable[[], None]] = []

    class Looking(SqliteStore):
        def _is_alive(self, owner: str) -> bool:
            if meanwhile:
                meanwhile.pop()()
            return super()._is_alive(owner)

    async with open_store(url) as other, Looking.open(tmp_path / "store.db") as store:
        begun = await other.begin(*WHO, "k", "d")
        flight = await store.begin(*WHO, "k", "d")
        assert isinstance(begun, Fresh)
        assert isinstance(flight, InFlight)

        def finish_and_go() -> None:
            with other.transaction() as c:
                other.finish_in(c, begun.token, {"n": 1})
            assert other._lease is not None
            other._lease.release()

        meanwhile.append(finish_and_go)
        assert await store.wait(flight, 5) == Finished({"n": 1}, is_error=False)
        assert not meanwhile


async def test_a_closed_store_leaves_a_doubt_as_a_dead_one_does(url: str) -> None:
    async with open_store(url) as other, open_store(url) as store:
        await other.begin(*WHO, "k", "d")
        assert isinstance(await store.begin(*WHO, "k", "d"), InFlight)
        await other.aclose()
        assert await store.begin(*WHO, "k", "d") == InDoubt()


async def test_a_forked_child_does_not_keep_its_dead_parent_alive(url: str, start: Callable[..., Any]) -> None:
    worker = start("fork", url, "k")
    assert worker.read() == "Fresh"
    async with open_store(url) as store:
        assert isinstance(await store.begin(*WHO, "k", "d"), InFlight)
        worker.kill()
        with anyio.fail_after(5):
            # A child that was not scheduled yet has still to close its copy.
            while isinstance(begun := await store.begin(*WHO, "k", "d"), InFlight):
                await anyio.sleep(0.01)
        assert begun == InDoubt()


async def test_killed_before_the_commit_neither_effect_nor_outcome_is_there(
    url: str, start: Callable[..., Any]
) -> None:
    async with open_store(url) as store:
        await make_effects(store)
        worker = start("tear", url, "k")
        assert worker.read() == "written"
        worker.kill()
        assert count_effects(store) == {}
        begun = await store.begin(*WHO, "k", "d", atomic=True)
        assert isinstance(begun, Fresh)
        with store.transaction() as c:
            c.execute("INSERT INTO effect (key) VALUES ('k')")
            store.finish_in(c, begun.token, {"did": "k"})
        assert await store.begin(*WHO, "k", "d", atomic=True) == Finished({"did": "k"}, is_error=False)
        assert count_effects(store) == {"k": 1}


async def test_one_taken_over_by_mistake_can_not_commit_its_effect(url: str, tmp_path: Path) -> None:
    async with open_store(url) as slow, open_store(url) as quick:
        await make_effects(slow)
        begun = await slow.begin(*WHO, "k", "d", atomic=True)
        assert isinstance(begun, Fresh)
        (tmp_path / "store.db-owners" / f"{begun.token.owner}.lease").unlink()
        taken = await quick.begin(*WHO, "k", "d", atomic=True)
        assert isinstance(taken, Fresh)

        def do() -> None:
            with slow.transaction() as c:
                c.execute("INSERT INTO effect (key) VALUES ('slow')")
                slow.finish_in(c, begun.token, {})

        with pytest.raises(StoreError, match="taken over"):
            do()
        assert count_effects(quick) == {}


async def test_of_many_at_once_in_three_processes_one_is_fresh(
    url: str, tmp_path: Path, start: Callable[..., Any]
) -> None:
    workers = [start("call", url, "plain", str(tmp_path / "effects"), "17", "1") for _ in range(3)]
    for worker in workers:
        assert worker.read() == "ready"
    for worker in workers:
        worker.go_on()
    said = [line for worker in workers for line in worker.read_all()]
    assert len(said) == 51
    assert sum(first for *_, first in said) == 1
    assert {kind for _, kind, *_ in said} == {"Finished"}
    assert len({str(outcome) for _, _, outcome, _ in said}) == 1
    assert (tmp_path / "effects").read_text() == "key-0\n"


@pytest.mark.parametrize("kind", ["plain", "atomic"])
async def test_with_one_of_three_killed_at_random_nothing_is_done_twice(
    url: str, tmp_path: Path, start: Callable[..., Any], kind: str
) -> None:
    effects = tmp_path / "effects"
    effects.touch()
    atomic = kind == "atomic"
    async with open_store(url) as store:
        await make_effects(store)
        workers = [start("call", url, kind, str(effects), "67", "30") for _ in range(3)]
        for worker in workers:
            assert worker.read() == "ready"
        for worker in workers:
            worker.go_on()
        seed = random.randrange(2**32)
        said = [workers[0].read() for _ in range(random.Random(seed).randrange(30))]
        workers[0].kill()
        said += [line for worker in workers for line in worker.read_all()]
        outcomes: dict[str, set[str]] = collections.defaultdict(set)
        for key, answer, outcome, _ in said:
            assert answer == "Finished" or (answer == "InDoubt" and not atomic), (seed, key, answer)
            if outcome is not None:
                outcomes[key].add(str(outcome))
        done = count_effects(store) if atomic else dict(collections.Counter(effects.read_text().split()))
        for number in range(30):
            key = f"key-{number}"
            begun = await store.begin(*WHO, key, "d", atomic=atomic)
            assert len(outcomes[key]) <= 1, seed
            assert done.get(key, 0) <= 1, (seed, key)
            if isinstance(begun, Finished):
                assert done[key] == 1, (seed, key)
                assert outcomes[key] <= {str(begun.outcome)}
            else:
                assert isinstance(begun, InDoubt), (seed, key, begun)
                assert not atomic, (seed, key)


async def test_a_backend_may_commit_on_a_connection_of_its_own(url: str, tmp_path: Path) -> None:
    async with open_store(url) as store:
        await make_effects(store)
        begun = await store.begin(*WHO, "k", "d", atomic=True)
        assert isinstance(begun, Fresh)
        own = sqlite3.connect(tmp_path / "store.db", isolation_level=None)
        own.execute("BEGIN IMMEDIATE")
        own.execute("INSERT INTO effect (key) VALUES ('k')")
        store.finish_in(own, begun.token, {"n": 1})
        cursor = store.append_event_in(own, "s", {"id": "e", "type": "t"})
        own.execute("COMMIT")
        own.close()
        assert await store.begin(*WHO, "k", "d") == Finished({"n": 1}, is_error=False)
        assert (await store.events_after("s")).cursor == cursor


async def test_a_connection_that_can_not_commit_with_the_record_is_refused(url: str, tmp_path: Path) -> None:
    async with open_store(url) as store:
        begun = await store.begin(*WHO, "k", "d", atomic=True)
        assert isinstance(begun, Fresh)
        own = sqlite3.connect(tmp_path / "store.db", isolation_level=None)
        with pytest.raises(StoreError, match="in no transaction"):
            store.finish_in(own, begun.token, {})
        own.execute("ATTACH ? AS calendar", (str(tmp_path / "calendar.db"),))
        own.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="attached: calendar"):
            store.finish_in(own, begun.token, {})
        own.close()
        for name in (str(tmp_path / "calendar.db"), ":memory:"):
            foreign = sqlite3.connect(name, isolation_level=None)
            foreign.execute("BEGIN")
            with pytest.raises(StoreError, match="another file"):
                store.finish_in(foreign, begun.token, {})
            foreign.close()


async def test_an_exception_rolls_the_transaction_back_and_wakes_nobody_wrongly() -> None:
    async with memory() as store:
        await make_effects(store)
        begun = await store.begin(*WHO, "k", "d", atomic=True)
        assert isinstance(begun, Fresh)

        def do() -> None:
            with store.transaction() as c:
                c.execute("INSERT INTO effect (key) VALUES ('k')")
                store.finish_in(c, begun.token, {})
                c.execute("INSERT INTO nowhere (key) VALUES ('k')")

        with pytest.raises(sqlite3.OperationalError, match="nowhere"):
            do()
        assert count_effects(store) == {}
        assert isinstance(await store.begin(*WHO, "k", "d"), InFlight)


async def test_a_waiter_wakes_when_the_transaction_commits() -> None:
    async with memory() as store:
        begun = await store.begin(*WHO, "k", "d", atomic=True)
        flight = await store.begin(*WHO, "k", "d", atomic=True)
        assert isinstance(begun, Fresh)
        assert isinstance(flight, InFlight)

        async def commit() -> None:
            with store.transaction() as c:
                store.finish_in(c, begun.token, {"n": 1})

        async with anyio.create_task_group() as group:
            group.start_soon(commit)
            assert await store.wait(flight, 5) == Finished({"n": 1}, is_error=False)


async def test_a_call_inside_the_stores_own_transaction_is_refused_not_a_deadlock() -> None:
    async with memory() as store:
        with store.transaction():
            with pytest.raises(StoreError, match="inside its own transaction"):
                await store.begin(*WHO, "k", "d")
            with pytest.raises(StoreError, match="inside its own transaction"), store.transaction():
                pass
        assert isinstance(await store.begin(*WHO, "k", "d"), Fresh)


async def test_the_loop_goes_on_while_another_writer_holds_the_file(url: str, tmp_path: Path) -> None:
    async with open_store(url) as store:
        other = sqlite3.connect(tmp_path / "store.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while ticks < 20:
                await anyio.sleep(0.001)
                ticks += 1
            other.execute("COMMIT")

        async with anyio.create_task_group() as group:
            group.start_soon(tick)
            assert isinstance(await store.begin(*WHO, "k", "d"), Fresh)
        assert ticks == 20
        other.close()


async def test_a_busy_stores_log_does_not_grow_without_end(url: str, tmp_path: Path) -> None:
    async with open_store(url) as store:
        for number in range(4000):
            await store.append_event("s", {"id": str(number), "type": "t", "text": "x" * 2000})
        # 4000 writes are about 90 MB; the log begins anew after 1000 to 2000 of them.
        assert (tmp_path / "store.db-wal").stat().st_size < 60_000_000
        assert len((await store.events_after("s", limit=5000)).events) == 4000
