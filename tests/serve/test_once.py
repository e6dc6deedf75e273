"""Doing a thing once: keys, repeats, crashes, cancelled callers, principals, secrets."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import anyio
import pytest

from hotplug.errors import InDoubt, Internal, Timeout
from hotplug.profile import secret
from hotplug.serve import KEY_META, Answer, Runtime
from hotplug.serve.once import argument_digest
from hotplug.store import memory, open_store

from .shop import SECRET, Bought, Item, MyShop, PointsShop

pytestmark = pytest.mark.anyio


def runtime_of(shop: MyShop, store: Any) -> Runtime:
    return Runtime(shop, store=store, identity="shop")


async def buy(runtime: Runtime, key: str | None, principal: str = "local", **arguments: Any) -> Answer:
    item = runtime.seal(principal).seal("shop.item", "apple")
    meta = {} if key is None else {KEY_META: key}
    return await runtime.call("shop.buy", {"item": item, "count": 1, **arguments}, meta=meta, principal=principal)


async def test_a_repeat_gives_the_original_outcome_and_other_arguments_conflict() -> None:
    async with memory() as store:
        shop = MyShop()
        runtime = runtime_of(shop, store)
        first = await buy(runtime, "k")
        assert (await buy(runtime, "k")).content == first.content
        assert (await buy(runtime, "k", card=None)).content == first.content
        assert (await buy(runtime, "k", count=2)).content["code"] == "conflict"
        assert (await buy(runtime, "k", tags=[])).content["code"] == "conflict"
        assert shop.done("buy") == 1


async def test_arguments_that_came_as_json_text_are_the_same_arguments() -> None:
    async with memory() as store:
        shop = MyShop()
        runtime = runtime_of(shop, store)
        first = await buy(runtime, "k", lines=[{"text": "a"}])
        assert (await buy(runtime, "k", lines='[{"text": "a", "size": null}]')).content == first.content
        assert shop.done("buy") == 1


async def test_a_call_without_a_key_is_not_remembered() -> None:
    async with memory() as store:
        shop = MyShop()
        runtime = runtime_of(shop, store)
        ids = {(await buy(runtime, None)).content["receipt"]["actionId"] for _ in range(3)}
        assert len(ids) == 3
        assert shop.done("buy") == 3


@pytest.mark.parametrize("key", ["\ud83d", "", "x" * 256, 5, [], True])
async def test_a_key_that_is_none_is_refused(key: Any) -> None:
    async with memory() as store:
        shop = MyShop()
        assert (await buy(runtime_of(shop, store), key)).content["code"] == "invalid_argument"
        assert shop.done("buy") == 0


@pytest.mark.parametrize(
    "failure",
    [
        RuntimeError(SECRET),
        ExceptionGroup(SECRET, [ValueError(SECRET)]),
        Internal("odd"),
        Timeout("late", details={"state": "unknown"}),
        Internal("location was not kept", details={"state": "done", "lost": ["location"]}),
        Timeout("late"),
        InDoubt("upstream doesn't know"),
    ],
    ids=lambda failure: type(failure).__name__,
)
async def test_an_error_after_which_something_may_be_done_is_the_outcome_for_good(failure: Exception) -> None:
    async with memory() as store:
        shop = MyShop()
        shop.after = failure
        runtime = runtime_of(shop, store)
        first = await buy(runtime, "k")
        shop.after = None
        again = await buy(runtime, "k")
        assert first.is_error
        assert again.is_error
        assert again.content == first.content
        assert first.content["details"]["state"] in {"unknown", "done"}
        assert SECRET not in str(first)
        assert shop.done("buy") == 1


@pytest.mark.parametrize("code", ["not_found", "conflict", "unavailable", "unsupported", "permission_denied"])
async def test_a_refusal_before_any_effect_is_forgotten(code: str) -> None:
    from hotplug.errors import failure

    async with memory() as store:
        shop = MyShop()
        shop.failure = failure(code, "no")
        runtime = runtime_of(shop, store)
        assert (await buy(runtime, "k")).content["code"] == code
        shop.failure = None
        assert not (await buy(runtime, "k")).is_error
        assert shop.done("buy") == 2


async def test_concurrent_repeats_wait_for_the_first_and_get_its_outcome() -> None:
    async with memory() as store:
        shop = MyShop()
        shop.gate = anyio.Event()
        runtime = runtime_of(shop, store)
        answers: list[Answer] = []

        async def one() -> None:
            answers.append(await buy(runtime, "k"))

        with anyio.fail_after(20):
            async with anyio.create_task_group() as tasks:
                for _ in range(20):
                    tasks.start_soon(one)
                await shop.entered.wait()
                await anyio.wait_all_tasks_blocked()
                assert answers == []
                shop.gate.set()
        assert len({str(answer.content) for answer in answers}) == 1
        assert not answers[0].is_error
        assert shop.done("buy") == 1


async def test_what_a_cancelled_caller_began_is_brought_to_its_end() -> None:
    async with memory() as store:
        shop = MyShop()
        shop.gate = anyio.Event()
        runtime = runtime_of(shop, store)
        with anyio.fail_after(20):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(buy, runtime, "k")
                await shop.entered.wait()
                tasks.cancel_scope.cancel()
                shop.gate.set()
        again = await buy(runtime, "k")
        assert not again.is_error
        assert shop.done("buy") == 1


async def leave_half_done(shop: MyShop, url: str) -> None:
    """Begin under the key `k`, and lose the store in between, as a process does that dies."""
    shop.gate = anyio.Event()
    store = open_store(url)
    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(buy, runtime_of(shop, store), "k")
            await shop.entered.wait()
            await store.aclose()
            shop.gate.set()
    shop.gate = None


async def test_a_crash_in_between_leaves_a_doubt_that_nothing_repeats(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    shop = MyShop()
    await leave_half_done(shop, url)
    assert shop.done("buy") == 1
    async with open_store(url) as second:
        runtime = runtime_of(shop, second)
        for _ in range(2):
            answer = await buy(runtime, "k")
            assert answer.content["code"] == "in_doubt"
            assert answer.content["details"] == {"state": "unknown"}
        assert (await buy(runtime, "k", count=2)).content["code"] == "conflict"
        assert shop.done("buy") == 1


async def test_keys_and_refs_of_two_principals_never_meet() -> None:
    async with memory() as store:
        shop = MyShop()
        runtime = runtime_of(shop, store)
        ann = await buy(runtime, "k", "ann")
        bob = await buy(runtime, "k", "bob", count=2)
        assert not bob.is_error
        assert ann.content["item"] != bob.content["item"]
        stolen = await runtime.call("shop.buy", {"item": ann.content["item"], "count": 1}, principal="bob")
        assert stolen.content["code"] == "not_found"
        assert shop.done("buy") == 2


async def test_events_carry_the_refs_of_who_reads_them() -> None:
    async with memory() as store:
        runtime = runtime_of(MyShop(), store)
        await buy(runtime, None, "ann")
        for who in ("ann", "bob"):
            page = await runtime.call("connection.events", {"types": ["shop.sold"]}, principal=who)
            (event,) = page.content["events"]
            assert event["payload"]["item"] == runtime.seal(who).seal("shop.item", "apple")
            assert event["summary"] == f"shop.item {event['payload']['item']} removed"
            narrowed = {"types": ["shop.sold"], "where": {"item": event["payload"]["item"]}}
            assert len((await runtime.call("connection.events", narrowed, principal=who)).content["events"]) == 1


async def test_secrets_stand_in_the_record_only_as_a_keyed_hash(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    shop = PointsShop()
    async with open_store(f"sqlite:///{path}") as store:
        runtime = runtime_of(shop, store)
        item = runtime.seal("local").seal("shop.item", "apple")

        async def with_card(card: Any, pin: str = "1234-5678-9") -> Answer:
            ext = {"com.example.points": {"pin": pin}}
            arguments = {"item": item, "count": 1, "card": card, "ext": ext}
            return await runtime.call("shop.buy", arguments, meta={KEY_META: "k"})

        first = await with_card(SECRET)
        assert not first.is_error, first
        assert (await with_card(SECRET)).content == first.content
        assert (await with_card("another")).content["code"] == "conflict"
        assert (await with_card(SECRET, "0000")).content["code"] == "conflict"
        for file in tmp_path.rglob("*"):
            if file.is_file():
                assert SECRET.encode() not in file.read_bytes()
                assert b"1234-5678-9" not in file.read_bytes()
        plain = argument_digest(b"", frozenset(), {"item": item, "count": 1, "card": SECRET}, "shop-1")
        with sqlite3.connect(path) as connection:
            assert plain not in str(list(connection.iterdump()))
    del connection
    assert secret("x") == secret("x")


class Together(MyShop):
    """Keeps what is sold in the store's own file, in the transaction of the record."""

    commits_with_store = True

    def __init__(self, store: Any) -> None:
        super().__init__()
        self._store = store
        self.fault: Exception | None = None
        self.late: Exception | None = None

    async def buy(self, item: Item, count: int, **wishes: Any) -> Bought:
        from hotplug.serve import current_call

        self.log.append(("buy", count))
        self.entered.set()
        if self.gate is not None:
            await self.gate.wait()
            raise OSError("the process is gone")
        found = Bought(item=item, total=count)
        with self._store.transaction() as connection:
            connection.execute("create table if not exists sold (count integer)")
            connection.execute("insert into sold values (?)", (count,))
            current_call().commit_in(connection, found, [MyShop.Sold(item=item, count=count)])
            if self.fault is not None:
                raise self.fault
        if self.late is not None:
            raise self.late
        return found


async def test_a_backend_in_the_stores_file_commits_all_or_nothing(tmp_path: Path) -> None:
    async with open_store(f"sqlite:///{tmp_path}/s.db") as store:
        shop = Together(store)
        runtime = runtime_of(shop, store)
        shop.fault = RuntimeError(SECRET)
        failed = await buy(runtime, "k1")
        assert failed.content["code"] == "internal"
        with store.transaction() as connection:
            names = [name for (name,) in connection.execute("select name from sqlite_master")]
            assert "sold" not in names
        shop.fault, shop.late = None, RuntimeError(SECRET)
        done = await buy(runtime, "k2")
        # It failed after the commit: what is committed is the outcome.
        assert not done.is_error
        shop.late = None
        assert (await buy(runtime, "k2")).content == done.content
        with store.transaction() as connection:
            assert list(connection.execute("select count from sold")) == [(1,)]
        page = await runtime.call("connection.events", {"types": ["shop.sold"]})
        assert [event["actionId"] for event in page.content["events"]] == [done.content["receipt"]["actionId"]]
        assert await store.receipt(done.content["receipt"]["actionId"]) is not None


async def test_an_atomic_backend_does_again_what_a_crash_undid(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    async with open_store(url) as other:
        shop = Together(other)
        await leave_half_done(shop, url)
    async with open_store(url) as second:
        shop = Together(second)
        runtime = runtime_of(shop, second)
        done = await buy(runtime, "k")
        assert not done.is_error
        assert (await buy(runtime, "k")).content == done.content
        assert shop.done("buy") == 1
