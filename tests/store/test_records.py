"""Doing it once, within a process."""

from __future__ import annotations

import asyncio
import sqlite3
from datetime import timedelta
from pathlib import Path

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hotplug.errors import ConfigError, InvalidArgument, StoreError
from hotplug.store import (
    Finished,
    Fresh,
    InDoubt,
    InFlight,
    Mismatch,
    Retention,
    SqliteStore,
    StoredReceipt,
    memory,
    open_store,
)

pytestmark = pytest.mark.anyio
WHO = ("p", "calendar.create")


async def begin_fresh(store: SqliteStore, key: str = "k", digest: str = "d", *, atomic: bool = False) -> Fresh:
    begun = await store.begin(*WHO, key, digest, atomic=atomic)
    assert isinstance(begun, Fresh)
    return begun


@pytest.mark.parametrize("query", ["", "?durability=full"])
async def test_a_repeat_gets_the_outcome_errors_included(url: str, query: str) -> None:
    async with open_store(url + query) as store:
        await store.finish((await begin_fresh(store, "good")).token, {"event": "e1"})
        await store.finish((await begin_fresh(store, "bad")).token, {"code": "timeout"}, is_error=True)
    async with open_store(url + query) as store:
        assert await store.begin(*WHO, "good", "d") == Finished({"event": "e1"}, is_error=False)
        assert await store.begin(*WHO, "bad", "d") == Finished({"code": "timeout"}, is_error=True)


async def test_other_arguments_are_a_mismatch_pending_and_finished() -> None:
    async with memory() as store:
        fresh = await begin_fresh(store)
        assert await store.begin(*WHO, "k", "other") == Mismatch()
        await store.finish(fresh.token, {})
        assert await store.begin(*WHO, "k", "other") == Mismatch()


async def test_principals_operations_and_keys_keep_apart() -> None:
    async with memory() as store:
        for who in [("a", "bc", "d"), ("ab", "c", "d"), ("a", "b", "cd"), ("", "abc", "d"), ("a", "bc", "\ud800\x00")]:
            assert isinstance(await store.begin(*who, "digest"), Fresh)
            assert isinstance(await store.begin(*who, "digest"), InFlight)


async def test_a_key_is_at_most_255_characters() -> None:
    async with memory() as store:
        assert isinstance(await store.begin(*WHO, "ä" * 255, "d"), Fresh)
        with pytest.raises(InvalidArgument, match="256 characters"):
            await store.begin(*WHO, "ä" * 256, "d")


async def test_a_forgotten_attempt_may_be_tried_anew_with_other_arguments() -> None:
    async with memory() as store:
        await store.forget((await begin_fresh(store)).token)
        await begin_fresh(store, digest="other")


async def test_a_token_ends_its_attempt_once_only() -> None:
    async with memory() as store:
        token = (await begin_fresh(store)).token
        await store.forget(token)
        again = await begin_fresh(store)
        for end in (store.finish(token, {}), store.forget(token), store.abandon(token)):
            with pytest.raises(StoreError, match="ended or taken over"):
                await end
        await store.finish(again.token, {"n": 1})
        with pytest.raises(StoreError):
            await store.finish(again.token, {"n": 2})
        assert await store.begin(*WHO, "k", "d") == Finished({"n": 1}, is_error=False)


async def test_an_abandoned_attempt_is_in_doubt_and_an_atomic_one_is_done_anew() -> None:
    async with memory() as store:
        await store.abandon((await begin_fresh(store, "plain")).token)
        assert await store.begin(*WHO, "plain", "d") == InDoubt()
        assert await store.begin(*WHO, "plain", "d", atomic=True) == InDoubt()
        await store.abandon((await begin_fresh(store, "atomic", atomic=True)).token)
        assert isinstance(await store.begin(*WHO, "atomic", "d"), Fresh)


async def test_a_waiter_wakes_with_the_outcome() -> None:
    async with memory() as store, anyio.create_task_group() as group:
        fresh = await begin_fresh(store)
        flight = await store.begin(*WHO, "k", "d")
        assert isinstance(flight, InFlight)
        group.start_soon(store.finish, fresh.token, {"n": 1})
        assert await store.wait(flight, 5) == Finished({"n": 1}, is_error=False)


async def test_waiting_is_bounded() -> None:
    async with memory() as store:
        await begin_fresh(store)
        flight = await store.begin(*WHO, "k", "d")
        assert isinstance(flight, InFlight)
        with anyio.fail_after(5):
            assert isinstance(await store.wait(flight, 0.02), InFlight)


@pytest.mark.parametrize("query", ["", "?durability=full"])
async def test_of_many_waiters_one_takes_a_forgotten_attempt_over(url: str, query: str) -> None:
    answers: list[object] = []
    waiting = 0
    all_wait = anyio.Event()

    async def repeat(store: SqliteStore) -> None:
        nonlocal waiting
        begun = await store.begin(*WHO, "k", "d")
        assert isinstance(begun, InFlight)
        waiting += 1
        if waiting == 20:
            all_wait.set()
        begun = await store.wait(begun, 10)
        answers.append(begun)
        if isinstance(begun, Fresh):
            await anyio.sleep(0)
            await store.finish(begun.token, {"n": 1})

    async with open_store(url + query) as store:
        fresh = await begin_fresh(store)
        async with anyio.create_task_group() as group:
            for _ in range(20):
                group.start_soon(repeat, store)
            await all_wait.wait()
            await store.forget(fresh.token)
    assert sum(isinstance(answer, Fresh) for answer in answers) == 1
    assert answers.count(Finished({"n": 1}, is_error=False)) == 19


async def test_a_cancelled_begin_leaves_nothing_in_flight(url: str) -> None:
    async with open_store(url + "?durability=full") as store:
        for number in range(20):
            key = str(number)
            task = asyncio.create_task(store.begin(*WHO, key, "d"))
            for _ in range(number):
                await asyncio.sleep(0.0002)
            task.cancel()
            answer = (await asyncio.gather(task, return_exceptions=True))[0]
            if isinstance(answer, Fresh):
                continue
            assert isinstance(answer, asyncio.CancelledError)
            begun = await store.begin(*WHO, key, "d")
            if isinstance(begun, InFlight):
                begun = await store.wait(begun, 5)
            assert isinstance(begun, Fresh)


@pytest.mark.parametrize("query", ["", "?durability=full"])
async def test_an_attempt_is_ended_in_a_cancelled_scope_while_another_writes(
    url: str, tmp_path: Path, query: str
) -> None:
    async with open_store(url + query) as store:
        fresh = await begin_fresh(store)
        other = sqlite3.connect(tmp_path / "store.db", isolation_level=None, check_same_thread=False)
        other.execute("BEGIN IMMEDIATE")
        with anyio.CancelScope() as scope:
            scope.cancel()
            asyncio.get_running_loop().call_later(0.02, other.rollback)
            await store.finish(fresh.token, {"n": 1})
        other.close()
        assert await store.begin(*WHO, "k", "d") == Finished({"n": 1}, is_error=False)


async def test_an_outcome_that_is_no_json_is_refused_and_the_attempt_stays_open() -> None:
    async with memory() as store:
        fresh = await begin_fresh(store)
        for bad in ({"x": float("nan")}, {"x": object()}):
            with pytest.raises(StoreError, match="the outcome is not JSON"):
                await store.finish(fresh.token, bad)
        await store.finish(fresh.token, {"lone": "\ud800"})
        assert await store.begin(*WHO, "k", "d") == Finished({"lone": "\ud800"}, is_error=False)


async def test_a_receipt_is_kept_with_the_outcome_or_by_itself(url: str) -> None:
    one = StoredReceipt("a1", "p", "calendar.create", "2026-06-11T15:00:00Z", {"key": "k"})
    two = StoredReceipt("a2", "p", "chat.send", "2026-06-11T15:00:01Z")
    async with open_store(url) as store:
        await store.finish((await begin_fresh(store)).token, {}, receipt=one)
        await store.add_receipt(two)
    async with open_store(url) as store:
        assert await store.receipt("a1") == one
        assert await store.receipt("a2") == two
        assert await store.receipt("a3") is None


async def test_a_receipt_of_a_stale_token_is_not_kept() -> None:
    async with memory() as store:
        token = (await begin_fresh(store)).token
        await store.forget(token)
        with pytest.raises(StoreError):
            await store.finish(token, {}, receipt=StoredReceipt("a1", "p", "o", "t"))
        assert await store.receipt("a1") is None


async def test_records_outlive_a_day_and_purging_spares_those_still_under_way(url: str) -> None:
    now = 1_000_000.0
    async with open_store(url, clock=lambda: now) as store:
        await store.finish((await begin_fresh(store, "done")).token, {})
        await store.abandon((await begin_fresh(store, "doubt")).token)
        slow = await begin_fresh(store, "slow")
        now += 24 * 3600
        assert await store.purge() == 0
        assert isinstance(await store.begin(*WHO, "done", "d"), Finished)
        assert await store.begin(*WHO, "doubt", "d") == InDoubt()
        now += 1
        assert await store.purge() == 2
        assert isinstance(await store.begin(*WHO, "done", "d"), Fresh)
        assert isinstance(await store.begin(*WHO, "doubt", "d"), Fresh)
        await store.finish(slow.token, {"n": 1})
        assert await store.begin(*WHO, "slow", "d") == Finished({"n": 1}, is_error=False)


async def test_receipts_have_a_retention_of_their_own() -> None:
    now = 0.0
    async with memory(clock=lambda: now, retention=Retention(receipts=timedelta(hours=1))) as store:
        await store.add_receipt(StoredReceipt("a1", "p", "o", "t"))
        now = 3601.0
        assert await store.purge() == 1
        assert await store.receipt("a1") is None


def test_less_than_a_day_for_records_is_refused() -> None:
    with pytest.raises(ConfigError, match="23:00:00"):
        Retention(records=timedelta(hours=23))
    with pytest.raises(ConfigError, match="events"):
        Retention(events=timedelta())


ACTS = st.lists(
    st.tuples(
        st.sampled_from(["begin", "begin atomic", "finish", "forget", "abandon"]),
        st.sampled_from(["k1", "k2"]),
        st.sampled_from(["d1", "d2"]),
    ),
    max_size=30,
)


@settings(max_examples=60, deadline=None)
@given(ACTS)
def test_any_order_of_acts_answers_as_the_rules_say(acts: list[tuple[str, str, str]]) -> None:
    async def play() -> None:
        kept: dict[str, tuple[str, str, bool]] = {}
        tokens: dict[str, Fresh] = {}
        async with memory() as store:
            for number, (act, key, digest) in enumerate(acts):
                if act.startswith("begin"):
                    begun = await store.begin(*WHO, key, digest, atomic=act == "begin atomic")
                    state = kept.get(key)
                    if state is None or (state[0] == digest and state[1] == "abandoned" and state[2]):
                        assert isinstance(begun, Fresh)
                        tokens[key] = begun
                        kept[key] = (digest, "pending", act == "begin atomic")
                    elif state[0] != digest:
                        assert begun == Mismatch()
                    elif state[1] == "pending":
                        assert isinstance(begun, InFlight)
                    elif state[1] == "abandoned":
                        assert begun == InDoubt()
                    else:
                        assert begun == Finished({"n": state[1]}, is_error=False)
                elif key in tokens:
                    token = tokens.pop(key).token
                    if act == "finish":
                        await store.finish(token, {"n": str(number)})
                        kept[key] = (kept[key][0], str(number), kept[key][2])
                    elif act == "forget":
                        await store.forget(token)
                        del kept[key]
                    else:
                        await store.abandon(token)
                        kept[key] = (kept[key][0], "abandoned", kept[key][2])

    anyio.run(play)
