"""Events: long poll, cursors, restarts, windows; nothing lost, nothing twice, no busy waiting."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from hotplug.errors import HotplugError
from hotplug.serve import Runtime
from hotplug.serve.events import _LIVE_KEPT  # pyright: ignore[reportPrivateUsage]
from hotplug.store import memory, open_store

from .shop import Item, MyShop, Shop
from .test_windows import Answered, Silent

pytestmark = pytest.mark.anyio


async def poll(runtime: Runtime, **arguments: Any) -> dict[str, Any]:
    answer = await runtime.call("connection.events", arguments)
    assert not answer.is_error, answer.content
    return answer.content


async def sell(shop: MyShop, *counts: int) -> None:
    for count in counts:
        await shop.emit(Shop.Sold(item=Item("apple"), count=count))


def counts(page: dict[str, Any]) -> list[int]:
    return [event["payload"]["count"] for event in page["events"] if event["type"] == "shop.sold"]


async def test_durable_events_go_on_from_a_cursor_over_a_restart_without_a_gap(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    async with open_store(url) as store:
        shop = MyShop()
        runtime = Runtime(shop, store=store, identity="shop")
        await sell(shop, 1, 2)
        page = await poll(runtime, types=["shop.sold"])
        assert counts(page) == [1, 2]
        await sell(shop, 3)
    async with open_store(url) as store:
        shop = MyShop()
        runtime = Runtime(shop, store=store, identity="shop")
        await sell(shop, 4)
        page = await poll(runtime, types=["shop.sold"], cursor=page["cursor"])
        assert counts(page) == [3, 4]
        assert "missed" not in page
        assert counts(await poll(runtime, types=["shop.sold"], cursor=page["cursor"])) == []


async def test_live_events_of_a_process_that_is_gone_are_missed_not_silently_lost(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    async with open_store(url) as store:
        cursor = (await poll(Runtime(MyShop(), store=store, identity="shop")))["cursor"]
    async with open_store(url) as store:
        runtime = Runtime(MyShop(), store=store, identity="shop")
        assert (await poll(runtime, cursor=cursor, types=["shop.ding"]))["missed"] is True
        again = await poll(runtime, cursor=cursor)
        assert again["missed"] is True
        assert "missed" not in await poll(runtime, cursor=again["cursor"])


async def test_a_poll_waits_for_what_it_wants_and_does_not_spin_over_what_it_does_not() -> None:
    async with memory() as store:
        shop = MyShop()
        runtime = Runtime(shop, store=store, identity="shop")
        looked = 0
        plain = store.events_after

        async def counted(*arguments: Any, **options: Any) -> Any:
            nonlocal looked
            looked += 1
            return await plain(*arguments, **options)

        store.events_after = counted  # type: ignore[method-assign]  # counts, and does the same
        await sell(shop, 1, 1, 1)
        start = (await poll(runtime))["cursor"]
        looked = 0
        got: list[int] = []

        async def wait() -> None:
            page = await poll(runtime, cursor=start, types=["shop.sold"], where={"count": 7}, waitMs=20_000)
            got.extend(counts(page))

        with anyio.fail_after(20):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(wait)
                await anyio.wait_all_tasks_blocked()
                await sell(shop, 2, 3)
                await anyio.wait_all_tasks_blocked()
                assert got == []
                await sell(shop, 7)
        assert got == [7]
        assert looked < 20
        looked = 0
        empty = await poll(runtime, cursor=start, types=["shop.other"], waitMs=200)
        assert empty["events"] == []
        assert looked < 20


async def test_a_page_ends_at_its_limit_and_the_next_goes_on() -> None:
    async with memory() as store:
        shop = MyShop()
        runtime = Runtime(shop, store=store, identity="shop")
        opened = await runtime.call("connection.window.open", {"budgetMs": 60_000})
        await sell(shop, *range(5))
        for _ in range(5):
            await shop.emit(Shop.Ding(loud=True))
        seen: list[str] = []
        cursor = opened.content["cursor"]
        for _ in range(10):
            page = await poll(runtime, cursor=cursor, limit=3)
            seen += [event["id"] for event in page["events"]]
            cursor = page["cursor"]
        assert len(seen) == len(set(seen)) == 10


async def test_live_events_are_kept_only_while_a_window_is_open() -> None:
    async with memory() as store:
        shop = MyShop()
        runtime = Runtime(shop, store=store, identity="shop")
        before = (await poll(runtime))["cursor"]
        await shop.emit(Shop.Ding(loud=True))
        assert (await poll(runtime, cursor=before))["events"] == []
        opened = (await runtime.call("connection.window.open", {"budgetMs": 60_000})).content
        await shop.emit(Shop.Ding(loud=False))
        page = await poll(runtime, cursor=opened["cursor"])
        assert [event["payload"] for event in page["events"]] == [{"loud": False}]
        assert page["events"][0]["summary"] == "shop.ding"
        closed = (await runtime.call("connection.window.close", {"window": opened["window"]})).content
        assert closed["closedBy"] == "ack"
        assert "blindSpots" not in closed["coverage"]
        again = await runtime.call("connection.window.close", {"window": opened["window"]})
        assert again.content["code"] == "not_found"


async def test_more_live_events_than_are_kept_are_said_to_be_missed() -> None:
    async with memory() as store:
        shop = MyShop()
        runtime = Runtime(shop, store=store, identity="shop")
        opened = (await runtime.call("connection.window.open", {"budgetMs": 600_000})).content
        for _ in range(_LIVE_KEPT + 1):
            await shop.emit(Shop.Ding(loud=True))
        page = await poll(runtime, cursor=opened["cursor"], types=["shop.ding"], limit=1000)
        assert page["missed"] is True
        closed = (await runtime.call("connection.window.close", {"window": opened["window"]})).content
        assert closed["coverage"]["blindSpots"]


@pytest.mark.parametrize("cursor", ["", "x", "[]", "[1,2,3]", '["a",0,""]', "[" * 100_000, json.dumps([None, "1", ""])])
async def test_a_cursor_that_is_none_is_refused_or_missed_and_never_internal(cursor: str) -> None:
    async with memory() as store:
        answer = await Runtime(MyShop(), store=store, identity="shop").call("connection.events", {"cursor": cursor})
        assert answer.content.get("code") == "invalid_argument" or answer.content.get("missed") is True


async def test_of_two_events_of_one_kind_about_one_happening_the_second_is_not_kept() -> None:
    async with memory() as store:
        shop = MyShop()
        runtime = Runtime(shop, store=store, identity="shop")
        opened = (await runtime.call("connection.window.open", {"budgetMs": 60_000})).content
        for _ in range(3):
            await shop.emit(Shop.Ding(loud=True), happening="d")
            await shop.emit(Shop.Sold(item=Item("apple"), count=1), happening="s")
        assert runtime.connection.events.count == 1
        page = await poll(runtime, cursor=opened["cursor"])
        assert sorted(event["type"] for event in page["events"]) == ["shop.ding", "shop.sold"]
        assert len({event["happening"] for event in page["events"]}) == 2
        # Another server's happening of the same name is another one.
        other = MyShop()
        second = Runtime(other, store=store, identity="other")
        await other.emit(Shop.Sold(item=Item("apple"), count=1), happening="s")
        [theirs] = (await poll(second))["events"]
        assert theirs["happening"] not in {event["happening"] for event in page["events"]}


class Both(MyShop, Silent):
    """A server of two profiles, each with an event."""

    emits = frozenset({"shop.sold", "shop.ding", "silent.rang"})

    async def value(self) -> Answered:
        await self.emit(Silent.Rang())
        return Answered()


async def test_a_server_of_two_profiles_tells_of_the_events_of_both() -> None:
    async with memory() as store:
        shop = Both()
        runtime = Runtime(shop, store=store, identity="both")
        opened = (await runtime.call("connection.window.open", {"budgetMs": 60_000})).content
        for part in ("shop.ring", "silent.value"):
            answer = await runtime.call(part, {})
            assert not answer.is_error, answer.content
        await sell(shop, 1)
        page = await poll(runtime, cursor=opened["cursor"])
        assert sorted(event["type"] for event in page["events"]) == ["shop.ding", "shop.sold", "silent.rang"]
        assert (await runtime.call("connection.describe", {})).content["senses"].keys() == {"state", "signal"}


async def test_an_event_of_a_profile_that_is_not_served_is_refused_with_its_name() -> None:
    async with memory() as store:
        shop = MyShop()
        Runtime(shop, store=store, identity="shop")
        with pytest.raises(HotplugError, match=r"silent\.rang is no event of what is served here"):
            await shop.emit(Silent.Rang())


@pytest.mark.parametrize("shared", [True, False])
async def test_runtimes_of_one_server_are_all_told_and_a_shared_stream_has_an_event_once(shared: bool) -> None:
    async with memory() as store, memory() as another:
        shop = MyShop()
        one = Runtime(shop, store=store, identity="shop")
        other = Runtime(shop, store=store if shared else another, identity="shop")
        async with one.opened(), other.opened():
            await sell(shop, 1)
            for runtime in (one, other):
                assert counts(await poll(runtime, types=["shop.sold"])) == [1]
        async with one.opened():
            await sell(shop, 2)
            assert counts(await poll(one, types=["shop.sold"])) == [1, 2]
