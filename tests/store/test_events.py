"""Durable events: in order, once, and never a silent gap."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hotplug.errors import InvalidArgument, StoreError
from hotplug.store import EventPage, memory, open_store

pytestmark = pytest.mark.anyio
DAYS = 24 * 3600.0


def event(name: str, kind: str = "t") -> dict[str, Any]:
    return {"id": name, "type": kind, "payload": {"n": name}}


def ids(page: EventPage) -> list[str]:
    return [found["id"] for found in page.events]


async def test_events_are_replayed_across_a_reopening(url: str) -> None:
    async with open_store(url) as store:
        first = await store.append_event("s", event("a"))
        last = await store.append_event("s", event("b"))
        assert first < last
    async with open_store(url) as store:
        page = await store.events_after("s", first)
        assert page == EventPage((event("b"),), last, missed=False)
        assert ids(await store.events_after("s")) == ["a", "b"]
        assert await store.events_after("s", last) == EventPage((), last, missed=False)
        assert await store.append_event("s", event("c")) > last


async def test_the_same_id_is_stored_once_in_a_stream() -> None:
    async with memory() as store:
        first = await store.append_event("s", event("a"))
        await store.append_event("s", event("b"))
        assert await store.append_event("s", {**event("a"), "payload": {}}) == first
        await store.append_event("other", event("a"))
        assert (await store.events_after("s")).events == (event("a"), event("b"))
        assert ids(await store.events_after("other")) == ["a"]


async def test_types_filter_and_the_cursor_passes_what_they_left_out() -> None:
    async with memory() as store:
        for name, kind in [("a", "x"), ("b", "y"), ("c", "x"), ("d", "z")]:
            await store.append_event("s", event(name, kind))
        page = await store.events_after("s", types=["x", "z"], limit=2)
        assert ids(page) == ["a", "c"]
        page = await store.events_after("s", page.cursor, types=["y"])
        assert ids(page) == []
        assert page.cursor == await store.end_of_events("s")


async def test_a_stream_that_has_nothing_yet_gives_a_cursor_that_holds() -> None:
    async with memory() as store:
        page = await store.events_after("s")
        assert page.events == ()
        assert not page.missed
        assert page.cursor == await store.end_of_events("s")
        await store.append_event("s", event("a"))
        assert ids(await store.events_after("s", page.cursor)) == ["a"]


async def test_an_expired_cursor_says_missed_and_one_at_the_edge_does_not(url: str) -> None:
    now = 0.0
    async with open_store(url, clock=lambda: now) as store:
        cursors = [await store.append_event("s", event(name)) for name in "abc"]
        now = 8 * DAYS
        kept = await store.append_event("s", event("d"))
        assert await store.purge() == 3
        page = await store.events_after("s", cursors[0])
        assert page == EventPage((event("d"),), kept, missed=True)
        assert not (await store.events_after("s", page.cursor)).missed
        assert await store.events_after("s", cursors[2]) == EventPage((event("d"),), kept, missed=False)
        assert await store.wait_for_event("s", cursors[0], 0)
        now = 16 * DAYS
        assert await store.purge() == 1
        assert (await store.events_after("s", cursors[2])).missed
        assert await store.events_after("s", kept) == EventPage((), kept, missed=False)
        assert await store.append_event("s", event("e")) > kept


async def test_purging_leaves_no_hole_where_the_clock_was_set_back() -> None:
    now = 5 * DAYS
    async with memory(clock=lambda: now) as store:
        start = await store.end_of_events("s")
        await store.append_event("s", event("a"))
        now = 0.0
        await store.append_event("s", event("b"))
        now = 8 * DAYS
        assert await store.purge() == 0
        assert ids(await store.events_after("s", start)) == ["a", "b"]


@pytest.mark.parametrize("cursor", ["", "nonsense", "0" * 16 + "-" + "0" * 12, "latest"])
async def test_an_unknown_cursor_says_missed_and_gives_all_there_is(cursor: str) -> None:
    async with memory() as store:
        await store.append_event("s", event("a"))
        page = await store.events_after("s", cursor)
        assert page.missed
        assert ids(page) == ["a"]


async def test_a_cursor_from_before_a_restore_says_missed(url: str) -> None:
    async with memory() as store:
        cursor = await store.append_event("s", event("a"))
        tag, _, number = cursor.partition("-")
        ahead = f"{tag}-{int(number, 16) + 5:012x}"
        assert (await store.events_after("s", ahead)).missed


async def test_a_cursor_of_another_stream_is_refused() -> None:
    async with memory() as store:
        cursor = await store.append_event("s", event("a"))
        await store.append_event("other", event("b"))
        for asking in (store.events_after("other", cursor), store.wait_for_event("other", cursor, 0)):
            with pytest.raises(InvalidArgument, match="another stream"):
                await asking
        with pytest.raises(InvalidArgument, match="another stream"):
            await store.events_after("new", cursor)
        with pytest.raises(InvalidArgument, match="limit"):
            await store.events_after("s", limit=0)


@pytest.mark.parametrize(
    "bad", [{"type": "t"}, {"id": "a"}, {"id": 1, "type": "t"}, {"id": "a", "type": "t", "x": {1}}]
)
async def test_an_event_without_id_or_type_or_json_is_refused(bad: dict[str, Any]) -> None:
    async with memory() as store:
        with pytest.raises(StoreError):
            await store.append_event("s", bad)


async def test_a_waiter_wakes_at_once_in_this_process_and_gives_up_in_time() -> None:
    async with memory() as store, anyio.create_task_group() as group:
        cursor = await store.end_of_events("s")
        assert not await store.wait_for_event("s", cursor, 0.02)
        group.start_soon(store.append_event, "s", event("a"))
        with anyio.fail_after(5):
            assert await store.wait_for_event("s", cursor, 30)


async def test_a_waiter_hears_of_another_process(url: str, start: Callable[..., Any]) -> None:
    async with open_store(url) as store:
        cursor = await store.end_of_events("s")
        worker = start("append", url, "s", "3")
        assert worker.read() == "ready"
        worker.go_on()
        with anyio.fail_after(10):
            assert await store.wait_for_event("s", cursor, 30)
        assert worker.read() == "done"
        assert len((await store.events_after("s", cursor)).events) == 3


async def test_processes_append_side_by_side_without_loss_or_double_numbers(
    url: str, start: Callable[..., Any]
) -> None:
    workers = [start("append", url, "s", "100") for _ in range(2)]
    for worker in workers:
        assert worker.read() == "ready"
    for worker in workers:
        worker.go_on()
    async with open_store(url) as store:
        for number in range(100):
            await store.append_event("s", event(f"here-{number}"))
        for worker in workers:
            assert worker.read() == "done"
        found = ids(await store.events_after("s", limit=1000))
    assert len(found) == len(set(found)) == 300
    assert [name for name in found if name.startswith("here")] == [f"here-{number}" for number in range(100)]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 15).map(str), st.sampled_from("xyz"))),
    st.integers(1, 5),
    st.none() | st.sets(st.sampled_from("xyz")),
)
def test_pages_of_any_size_give_each_event_once_in_order(
    appended: list[tuple[str, str]], limit: int, types: set[str] | None
) -> None:
    async def play() -> None:
        async with memory() as store:
            for name, kind in appended:
                await store.append_event("s", event(name, kind))
            found: list[str] = []
            page = await store.events_after("s", limit=limit, types=types)
            while page.events:
                assert not page.missed
                found += ids(page)
                page = await store.events_after("s", page.cursor, limit=limit, types=types)
            assert page.cursor == await store.end_of_events("s")
            first = dict(reversed(appended))
            order = list(dict.fromkeys(name for name, _ in appended))
            assert found == [name for name in order if types is None or first[name] in types]

    anyio.run(play)


async def test_one_happening_is_stored_once_a_type_and_found_by_it(url: str) -> None:
    def telling(name: str, kind: str = "t", happening: str = "h") -> dict[str, Any]:
        return {**event(name, kind), "happening": happening}

    now = 0.0
    async with open_store(url, clock=lambda: now) as store:
        first = await store.append_event("s", telling("a"))
        other = await store.append_event("s", telling("b", "u"))
        assert await store.append_event("s", telling("c")) == first
        assert await store.append_event("s", telling("d", "u")) == other
        await store.append_event("s", telling("e", happening="i"))
        await store.append_event("s", event("f"))
        await store.append_event("s", event("g"))
        await store.append_event("elsewhere", telling("a2"))
        page = await store.events_after("s")
        assert ids(page) == ["a", "b", "e", "f", "g"]
        assert page.cursors[0] == first
        assert page.cursors[-1] == page.cursor
        assert ids(await store.events_after("s", page.cursors[2])) == ["f", "g"]
        assert await store.events_of("s", "h") == (telling("a"), telling("b", "u"))
        assert await store.events_of("nowhere", "h") == ()
        with pytest.raises(StoreError, match="happening"):
            await store.append_event("s", {**event("x"), "happening": 1})
        with store.transaction() as connection:
            assert store.append_event_in(connection, "s", telling("y")) == first
        now = 8 * DAYS
        await store.purge()
        # It is remembered for as long as its event is.
        assert await store.append_event("s", telling("z")) > first
        assert ids(await store.events_after("s", page.cursor)) == ["z"]
