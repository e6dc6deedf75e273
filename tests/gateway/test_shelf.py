"""How long a list is used: until a notice, its lifetime's end, or a second where neither is there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest

from hotplug.gateway.catalog import Catalog
from hotplug.gateway.link import Frame, LinkLost
from hotplug.gateway.message import Message
from hotplug.gateway.pooled import PooledLink
from hotplug.gateway.shelf import Shelf
from hotplug.gateway.tasks import Tasks

from .fakes.spoken import SpokenLink
from .pooling import HandClock, until

pytestmark = pytest.mark.anyio


class Server:
    """One tool, of a name that changes."""

    def __init__(self, **more: Any) -> None:
        self.name = "first"
        self.more = more
        self.reads = 0

    def __call__(self, method: str, params: Mapping[str, Any]) -> Any:
        if method != "tools/list":
            return Message.error_of(b"1", -32601, "no")
        self.reads += 1
        return {"tools": [{"name": self.name}], **self.more}


@asynccontextmanager
async def shelf_on(
    link: SpokenLink,
    clock: HandClock,
    *,
    hears: bool = True,
    shared: bool = False,
    told: Callable[[], None] | None = None,
) -> AsyncGenerator[tuple[Shelf, PooledLink]]:
    tasks = Tasks()
    pooled = PooledLink(
        link,
        instance="i",
        shared=shared,
        clock=clock,
        ended=lambda pooled, by_itself: None,
        suspected=lambda pooled: None,
    )
    shelf = Shelf(pooled, tasks, hears=lambda: hears, told=told or (lambda: None), page_limit=lambda: 5.0)
    try:
        yield shelf, pooled
    finally:
        await shelf.aclose()
        await tasks.aclose()


def names(catalog: Catalog) -> list[str]:
    return [item.name for item in catalog.tools.items]


async def test_a_list_with_a_lifetime_is_read_again_after_it() -> None:
    clock, server = HandClock(), Server(ttlMs=5000)
    async with shelf_on(SpokenLink(server), clock) as (shelf, _):
        for _ in range(3):
            await shelf.get()
        clock.now += 4.9
        await shelf.get()
        assert server.reads == 1
        clock.now += 0.2
        server.name = "second"
        assert names(await shelf.get()) == ["second"]
        assert server.reads == 2


@pytest.mark.parametrize("more", [{}, {"ttlMs": 0}])
async def test_without_lifetime_or_notices_a_list_is_read_at_most_once_a_second(more: dict[str, Any]) -> None:
    clock, server = HandClock(), Server(**more)
    async with shelf_on(SpokenLink(server), clock) as (shelf, _):
        for _ in range(10):
            await shelf.get()
            clock.now += 0.25
        assert server.reads == 3


@pytest.mark.parametrize(("hears", "reads"), [(True, 1), (False, 2)])
async def test_notices_count_only_where_they_are_heard(hears: bool, reads: int) -> None:
    clock, server = HandClock(), Server()
    link = SpokenLink(server, capabilities={"tools": {"listChanged": True}})
    async with shelf_on(link, clock, hears=hears) as (shelf, _):
        await shelf.get()
        clock.now += 3600
        await shelf.get()
        assert server.reads == reads


async def test_only_the_list_that_changed_is_read_again() -> None:
    server = Server()
    capabilities = {"tools": {"listChanged": True}, "prompts": {"listChanged": True}}
    link = SpokenLink(server, capabilities=capabilities)
    told: list[int] = []
    async with shelf_on(link, HandClock(), told=lambda: told.append(1)) as (shelf, _):
        await shelf.get()
        link.tell("notifications/tools/list_changed")
        assert told == [1]
        server.name = "second"
        assert names(await shelf.get()) == ["second"]
        assert link.asked == ["tools/list", "prompts/list", "tools/list"]


async def test_a_notice_during_a_reading_leads_to_another() -> None:
    reads = 0

    async def slowly(method: str, params: Mapping[str, Any]) -> Any:
        nonlocal reads
        reads += 1
        if reads == 1:
            link.tell("notifications/tools/list_changed")
        return {"tools": [{"name": f"of reading {reads}"}]}

    link = SpokenLink(slowly, capabilities={"tools": {"listChanged": True}})
    async with shelf_on(link, HandClock()) as (shelf, _):
        assert names(await shelf.get()) == ["of reading 2"]


async def test_a_server_that_always_changes_doesnt_hold_its_reader_for_ever() -> None:
    async def restless(method: str, params: Mapping[str, Any]) -> Any:
        link.tell("notifications/tools/list_changed")
        return {"tools": []}

    link = SpokenLink(restless, capabilities={"tools": {"listChanged": True}})
    async with shelf_on(link, HandClock()) as (shelf, _), asyncio.timeout(5):
        await shelf.get()
        assert len(link.asked) == 3


async def test_in_the_modern_era_notices_come_from_a_stream_that_is_kept_open() -> None:
    clock, server = HandClock(), Server()
    link = SpokenLink(server, era="modern", capabilities={"tools": {"listChanged": True}})
    async with shelf_on(link, clock) as (shelf, pooled):
        await shelf.get()
        assert link.asked == ["subscriptions/listen", "tools/list"]
        assert not pooled.in_use
        clock.now += 3600
        await shelf.get()
        assert server.reads == 1
        # It ends: until it is open again nothing would be told.
        link.streams[0].put_nowait(None)
        await until(lambda: clock.sleepers)
        await shelf.get()
        assert server.reads == 2
        await clock.advance(0.9)
        await until(lambda: len(link.streams) == 2)
        # And what changed in between was told to nobody.
        await until(lambda: not link.streams[1].qsize())
        await asyncio.sleep(0)
        await shelf.get()
        assert server.reads == 3
        clock.now += 3600
        await shelf.get()
        assert server.reads == 3


async def test_a_stream_that_never_lasts_is_opened_ever_more_rarely() -> None:
    clock, server = HandClock(), Server()
    link = SpokenLink(server, era="modern", capabilities={"tools": {"listChanged": True}})
    told: list[float] = []
    async with shelf_on(link, clock, told=lambda: told.append(clock.now)) as (shelf, _):
        await shelf.get()
        for second in range(200):
            # Acknowledged, and ended at once.
            link.streams[-1].put_nowait(None)
            await clock.advance(0.5 if second else 0)
        assert len(link.streams) < 10
        assert len(told) < 10
        # One that lasts for long counts as the first again.
        await clock.advance(60)
        streams = len(link.streams)
        await clock.advance(60)
        link.streams[-1].put_nowait(None)
        await clock.advance(0)
        await clock.advance(0.5)
        assert len(link.streams) == streams + 1


async def test_a_server_that_refuses_to_be_listened_to_is_read_by_the_second() -> None:
    clock, server = HandClock(), Server()
    link = SpokenLink(server, era="modern", capabilities={"tools": {"listChanged": True}})
    link.streams = _Refusing()
    async with shelf_on(link, clock) as (shelf, _):
        await shelf.get()
        clock.now += 2
        await shelf.get()
        assert server.reads == 2
        assert link.asked.count("subscriptions/listen") == 1


class _Refusing(list[Any]):
    """Puts an error in place of the acknowledgement."""

    def append(self, stream: asyncio.Queue[Frame | None]) -> None:
        stream.put_nowait(Frame(Message.error_of(b"1", -32601, "no")))


async def test_what_waits_for_a_reading_may_leave() -> None:
    go = asyncio.Event()

    async def slowly(method: str, params: Mapping[str, Any]) -> Any:
        await go.wait()
        return {"tools": [{"name": "a"}]}

    link = SpokenLink(slowly)
    async with shelf_on(link, HandClock()) as (shelf, pooled):
        first, second = asyncio.create_task(shelf.get()), asyncio.create_task(shelf.get())
        await until(lambda: link.asked)
        assert pooled.in_use
        first.cancel()
        go.set()
        assert names(await second) == ["a"]
        assert len(link.asked) == 1
        assert not pooled.in_use


async def test_one_list_that_fails_leaves_the_others() -> None:
    def answers(method: str, params: Mapping[str, Any]) -> Any:
        if method == "prompts/list":
            raise LinkLost("HTTP 500", sent=True)
        return {"tools": [{"name": "a"}]}

    clock = HandClock()
    link = SpokenLink(answers, capabilities={"tools": {}, "prompts": {}})
    async with shelf_on(link, clock) as (shelf, _):
        catalog = await shelf.get()
        assert names(catalog) == ["a"]
        assert catalog.prompts.problem == "prompts/list failed: HTTP 500"


async def test_a_lost_link_is_no_empty_catalog() -> None:
    def answers(method: str, params: Mapping[str, Any]) -> Any:
        link.lost = "it ended"
        raise LinkLost("it ended", sent=True)

    link = SpokenLink(answers)
    async with shelf_on(link, HandClock()) as (shelf, _):
        with pytest.raises(LinkLost, match="it ended"):
            await shelf.get()


async def test_what_comes_before_a_list_reaches_the_session_of_the_link() -> None:
    link = SpokenLink(Server())
    link.before = [
        Message.notification("notifications/message", {"level": "info", "data": 1}),
        Message.request(7, "roots/list"),
    ]
    async with shelf_on(link, HandClock()) as (shelf, pooled):
        await shelf.get()
        link.spoken.put_nowait(Frame(Message.notification("notifications/x")))
        frames = pooled.general()
        got = [(await anext(frames)).message for _ in range(3)]
        assert [message.method for message in got if message] == [
            "notifications/message",
            "roots/list",
            "notifications/x",
        ]
        assert not link.sent
        await frames.aclose()  # type: ignore[attr-defined]


async def test_of_a_shared_link_nobody_is_asked_and_what_cant_be_attributed_is_dropped() -> None:
    link = SpokenLink(Server())
    updated = Message.notification("notifications/resources/updated", {"uri": "a:b"})
    link.before = [
        Message.request(7, "roots/list"),
        Message.request(8, "ping"),
        Message.notification("notifications/message", {"level": "info", "data": 1}),
        updated,
    ]
    async with shelf_on(link, HandClock(), shared=True) as (shelf, pooled):
        readers = [pooled.general(), pooled.general()]
        waiting = [asyncio.create_task(anext(reader)) for reader in readers]
        await asyncio.sleep(0)
        await shelf.get()
        assert [(await frame).message for frame in waiting] == [updated, updated]
        assert [(message.id, message.kind) for message in link.sent] == [(b"7", "error"), (b"8", "result")]
        for reader in readers:
            await reader.aclose()  # type: ignore[attr-defined]
