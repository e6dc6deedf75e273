"""Listening: each happening once and in order, over gaps, from where it was left; and what extensions add (FR-25)."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from hotplug import connect
from hotplug.connect import Link, Reply, client, link_of, speaks, typed_client
from hotplug.door import MemoryChannel
from hotplug.errors import Disconnected, HotplugError, InvalidArgument
from hotplug.profile import Told
from hotplug.profile.versions import default_range
from hotplug.serve import Runtime
from hotplug.store import memory, open_store

from ..serve.shop import Item, MyShop, Shop  # noqa: TID252  # tests are no package
from ..serve.team import Blocks, Message, MyTeam, Team, Topic  # noqa: TID252

pytestmark = pytest.mark.anyio


def said(name: str, text: str = "hello") -> Team.Said:
    return Team.Said(message=Message(name), text=text)


def mentioned(name: str, text: str = "hello") -> Team.Mentioned:
    return Team.Mentioned(message=Message(name), text=text, who="ada")


class Cut(MemoryChannel):
    """A runtime behind a line that can be cut: nothing is answered, and nothing restored, while it is."""

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(runtime, "cut")
        self.cut = False
        self.asked = 0

    async def call(
        self, tool: str, arguments: Mapping[str, Any], *, meta: Mapping[str, Any], timeout: float | None = None
    ) -> Reply:
        self.asked += 1
        if self.cut:
            raise Disconnected("the line is cut", details={"state": "not_sent"})
        reply = await super().call(tool, arguments, meta=meta, timeout=timeout)
        if self.cut:
            raise Disconnected("the line was cut before the answer came", details={"state": "unknown"})
        return reply

    async def restore(self) -> None:
        if self.cut:
            raise Disconnected("the line is cut", details={"state": "not_sent"})


def over(channel: MemoryChannel, profile: Any = Team) -> Any:
    runtime = channel.runtime
    tools = [tool.listed() for tool in runtime.tools.values()]
    version = default_range(profile.definition.version)
    return typed_client(profile, Link(channel, speaks(profile, version, runtime.declaration, tools, target="cut")))


@asynccontextmanager
async def team() -> AsyncGenerator[tuple[MyTeam, Team]]:
    server = MyTeam()
    async with memory() as store, connect(Team, server, store=store) as app:
        yield server, app


async def first(stream: AsyncGenerator[Any], count: int) -> list[Any]:
    """So many of a stream, which is closed then."""
    found: list[Any] = []
    with anyio.fail_after(20):
        try:
            while len(found) < count:
                found.append(await anext(stream))
        finally:
            await stream.aclose()
    return found


async def test_one_mention_told_as_two_kinds_of_event_with_two_ids_is_one_event() -> None:
    async with team() as (server, app):
        await server.emit(said("m1", "one"))
        await server.emit(mentioned("m1", "one"))
        await server.emit(mentioned("m2", "two"))
        await server.emit(said("m2", "two"))
        await server.emit(said("m3", "three"))
        both = await first(app.events(Team.Said, Team.Mentioned), 3)
        assert [(type(one).__name__, one.text) for one in both] == [
            ("Said", "one"),
            ("Mentioned", "two"),
            ("Said", "three"),
        ]
        # Who listens to one kind only is told of every happening of that kind.
        assert [one.text for one in await first(app.events(Team.Mentioned), 2)] == ["one", "two"]
        assert [one.text for one in await first(app.events(Team.Said), 3)] == ["one", "two", "three"]


async def test_what_is_delivered_to_the_server_twice_is_kept_once_over_a_restart(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    for _ in range(2):
        async with open_store(url) as store, connect(Team, MyTeam(), store=store) as app:
            server = link_of(app).channel.runtime.providers[0].server  # type: ignore[attr-defined]
            await server.emit(said("m1"))
            await server.emit(said("m1"))
            await server.emit(Team.Noted(text="a"), happening="note-1")
            await server.emit(Team.Noted(text="a"))
    async with open_store(url) as store, connect(Team, MyTeam(), store=store) as app:
        page = await link_of(app).channel.call("connection.events", {}, meta={})
        assert page.content is not None
        kinds = [one["type"] for one in page.content["events"]]
        # A note that doesn't say which it is may be another one each time.
        assert kinds == ["team.said", "team.noted", "team.noted", "team.noted"]
        assert all("m1" not in one["happening"] for one in page.content["events"])


async def test_a_reader_that_was_restarted_between_two_tellings_is_not_told_again() -> None:
    async with team() as (server, app):
        await server.emit(said("m1", "one"))
        (before,) = await first(app.events(Team.Said, Team.Mentioned, records=True), 1)
        await server.emit(mentioned("m1", "one"))
        await server.emit(mentioned("m2", "two"))
        after = await first(app.events(Team.Said, Team.Mentioned, cursor=before.cursor), 1)
        assert after[0].text == "two"


async def test_a_filter_that_leaves_out_one_telling_leaves_the_other() -> None:
    async with team() as (server, app):
        await server.emit(said("m1", "before it was edited"))
        await server.emit(mentioned("m1", "after it was edited"))
        (one,) = await first(app.events(Team.Said, Team.Mentioned, text="after it was edited"), 1)
        assert isinstance(one, Team.Mentioned)
        with pytest.raises(InvalidArgument, match=r"team\.said can't be narrowed by who"):
            await anext(app.events(Team.Said, Team.Mentioned, who="ada"))


async def test_live_events_of_one_happening_are_told_once_and_others_each_time() -> None:
    async with team() as (server, app), app.window(budget_ms=60_000) as window:
        await server.emit(Team.Typing(who="ada"), happening="t1")
        await server.emit(Team.Typing(who="ada"), happening="t1")
        for _ in range(3):
            # Three at one moment with one payload are three: this server says that each is one of its own.
            await server.emit(Team.Typing(who="bob"))
        await server.emit(Team.Typing(who="eve"))
        told = await first(app.events(Team.Typing, cursor=window.cursor), 5)
        assert [one.who for one in told] == ["ada", "bob", "bob", "bob", "eve"]


async def test_a_live_telling_and_a_durable_one_are_one_happening_whichever_came_first() -> None:
    async with team() as (server, app), app.window(budget_ms=60_000) as window:
        await server.emit(Team.Typing(who="ada"), happening="x")
        await server.emit(Team.Noted(text="by ada"), happening="x")
        await server.emit(Team.Noted(text="end"), happening="y")
        told = await first(app.events(Team.Typing, Team.Noted, cursor=window.cursor), 2)
        assert [type(one).__name__ for one in told] == ["Noted", "Noted"]
        stream = app.events(Team.Typing, Team.Noted, cursor=(await first_cursor(app)))
        with anyio.fail_after(20):
            async with anyio.create_task_group() as tasks:
                got: list[Any] = []

                async def listen() -> None:
                    got.extend(await first(stream, 2))

                tasks.start_soon(listen)
                await anyio.wait_all_tasks_blocked()
                await server.emit(Team.Typing(who="eve"), happening="z")
                await anyio.wait_all_tasks_blocked()
                await server.emit(Team.Noted(text="by eve"), happening="z")
                await server.emit(Team.Noted(text="end"), happening="w")
        assert [getattr(one, "who", None) or one.text for one in got] == ["eve", "end"]


async def first_cursor(app: Team) -> str:
    page = await link_of(app).channel.call("connection.events", {}, meta={})
    assert page.content is not None
    return str(page.content["cursor"])


class FakeForeignTeam(MemoryChannel):
    """A fake of a server that isn't ours: it tells what a test puts into its pages, and knows nothing of happenings."""

    def __init__(self, runtime: Runtime, *pages: Sequence[Mapping[str, Any]]) -> None:
        super().__init__(runtime, "fake foreign team")
        self.pages = list(pages)
        self.asked: list[dict[str, Any]] = []

    async def call(
        self, tool: str, arguments: Mapping[str, Any], *, meta: Mapping[str, Any], timeout: float | None = None
    ) -> Reply:
        if tool != "connection.events":
            return await super().call(tool, arguments, meta=meta, timeout=timeout)
        self.asked.append(dict(arguments))
        number = int(arguments.get("cursor", "0"))
        if number == len(self.pages):
            return Reply(content={"events": [], "cursor": str(number)})
        return Reply(content={"events": list(self.pages[number]), "cursor": str(number + 1)})


def raw(id_: str, type_: str, payload: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "id": id_,
        "type": type_,
        "at": "2026-06-11T17:00:00Z",
        "sense": "state",
        "summary": type_,
        "payload": dict(payload),
        "instance": "f",
        **more,
    }


async def foreign(*pages: Sequence[Mapping[str, Any]]) -> tuple[Any, FakeForeignTeam]:
    channel = FakeForeignTeam(Runtime(MyTeam(), store=memory(), identity="team"), *pages)
    return over(channel), channel


async def test_a_foreign_server_that_tells_one_mention_twice_with_two_ids_is_heard_once() -> None:
    words = {"message": "m1", "text": "hi"}
    app, _ = await foreign(
        [raw("a", "team.said", words), raw("b", "team.mentioned", {**words, "who": "ada"})],
        [raw("c", "team.mentioned", {**words, "who": "ada"}), raw("d", "team.said", {"message": "m2", "text": "end"})],
    )
    told = await first(app.events(Team.Said, Team.Mentioned, records=True), 2)
    assert [one.id for one in told] == ["a", "d"]


async def test_without_any_name_the_same_kind_moment_instance_and_payload_are_the_same_happening() -> None:
    note = {"text": "n"}
    app, _ = await foreign(
        [raw("a", "team.noted", note), raw("a", "team.noted", {"text": "other words, same id"})],
        [
            raw("b", "team.noted", note),
            raw("c", "team.noted", note, at="2026-06-11T17:00:01Z"),
            raw("d", "team.noted", note, instance="g"),
            raw("e", "team.noted", {"text": "o"}),
            # Where the server says what it tells of, that decides.
            raw("f", "team.noted", note, happening="1"),
            raw("g", "team.noted", note, happening="2"),
            raw("h", "team.noted", {"text": "p"}, happening="2"),
            raw("end", "team.noted", {"text": "end"}),
        ],
    )
    told = await first(app.events(Team.Noted, records=True), 7)
    assert [one.id for one in told] == ["a", "c", "d", "e", "f", "g", "end"]


async def test_a_server_that_does_not_wait_is_not_asked_without_end() -> None:
    app, channel = await foreign([raw("a", "team.noted", {"text": "n"})])
    stream = app.events(Team.Noted)
    assert (await anext(stream)).text == "n"
    with anyio.move_on_after(1.2):
        await anext(stream)
    await stream.aclose()
    assert 2 <= len(channel.asked) < 8


async def test_it_is_gone_on_from_each_event_that_was_handled_and_not_only_from_pages() -> None:
    async with memory() as store:
        server = MyShop()
        async with connect(Shop, server, store=store) as shop:
            for count in range(5):
                await server.emit(Shop.Sold(item=Item("apple"), count=count))
            told: list[Told[Shop.Sold]] = await first(shop.events(Shop.Sold, records=True), 5)
            assert [one.event.count for one in told] == [0, 1, 2, 3, 4]
            assert told[0].at <= told[4].at
            assert told[0].type == "shop.sold"
            assert told[0].summary.startswith("shop.item ")
            assert len({one.id for one in told}) == len({one.cursor for one in told}) == 5
            for number, one in enumerate(told[:-1]):
                (following,) = await first(shop.events(Shop.Sold, cursor=one.cursor), 1)
                assert following.count == number + 1


async def test_live_events_too_are_gone_on_from() -> None:
    async with team() as (server, app), app.window(budget_ms=60_000) as window:
        for who in ("a", "b", "c"):
            await server.emit(Team.Typing(who=who))
            await server.emit(Team.Noted(text=who))
        told = await first(app.events(Team.Typing, Team.Noted, cursor=window.cursor, records=True), 6)
        names = [getattr(one.event, "who", None) or one.event.text for one in told]
        assert sorted(names) == ["a", "a", "b", "b", "c", "c"]
        for number, one in enumerate(told[:-1]):
            rest = await first(
                app.events(Team.Typing, Team.Noted, cursor=one.cursor, records=True), len(told) - number - 1
            )
            assert [each.id for each in rest] == [each.id for each in told[number + 1 :]]


async def test_a_foreign_server_without_a_cursor_per_event_loses_none_when_it_is_gone_on_from() -> None:
    pages = [
        [raw(f"{page}{number}", "team.noted", {"text": f"{page}{number}"}) for number in range(3)] for page in "ab"
    ]
    app, _ = await foreign(*pages)
    told = await first(app.events(Team.Noted, records=True), 5)
    assert [one.cursor for one in told] == [None, None, "1", "1", "1"]
    assert [one.text for one in await first(app.events(Team.Noted, cursor=told[4].cursor), 3)] == ["b0", "b1", "b2"]


async def test_what_an_extension_adds_to_an_event_arrives_typed_and_with_refs_of_the_reader() -> None:
    async with team() as (server, app):
        await server.emit(said("m1"), Blocks.Form(bold=True, about=Topic("tea")))
        await server.emit(said("m2"))
        told = await first(app.events(Team.Said, records=True), 2)
        form = told[0].extra(Blocks.Form)
        assert form is not None
        assert form.bold is True
        # The ref is the one that this caller may use, not the server's own handle.
        assert form.about == (await app.topics()).topics[0] != "tea"
        assert set(told[0].ext) == {"com.example.blocks"}
        assert told[0].event == said(told[0].event.message)
        assert told[1].extra(Blocks.Form) is None
        assert told[1].ext == {}
        with pytest.raises(HotplugError, match="nothing that an extension adds"):
            told[0].extra(Team.Said)
        with pytest.raises(HotplugError, match=r"Note is nothing that .* add to team\.said"):
            await server.emit(said("m3"), Blocks.Note(line=1))
        with pytest.raises(HotplugError, match="nothing"):
            await server.emit(mentioned("m3"), Blocks.Form(bold=True))


async def test_fr25_three_messages_in_a_real_gap_come_all_once_and_in_order() -> None:
    async with memory() as store:
        server = MyTeam()
        channel = Cut(Runtime(server, store=store, identity="team"))
        app = over(channel)
        got: list[str] = []

        async def listen() -> None:
            got.extend(one.text for one in await first(app.events(Team.Said, Team.Mentioned), 4))

        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(listen)
                await anyio.wait_all_tasks_blocked()
                await server.emit(said("m0", "0"))
                await anyio.wait_all_tasks_blocked()
                channel.cut = True
                begun, asked = time.monotonic(), channel.asked
                for number in "123":
                    await server.emit(said(f"m{number}", number))
                    await server.emit(mentioned(f"m{number}", number))
                while time.monotonic() - begun < 3:  # the length of the gap is what is tested
                    await anyio.sleep(0.1)
                assert channel.asked - asked > 2
                assert app.health().state == "reconnecting"
                channel.cut = False
        assert got == ["0", "1", "2", "3"]


async def test_fr25_a_gap_beyond_the_limit_is_reported_with_where_to_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "_LONGEST_GAP", 1.0)
    async with memory() as store:
        server = MyTeam()
        channel = Cut(Runtime(server, store=store, identity="team"))
        app = over(channel)
        stream = app.events(Team.Said)
        await server.emit(said("m0", "0"))
        assert (await anext(stream)).text == "0"
        channel.cut = True
        with anyio.fail_after(10), pytest.raises(Disconnected, match=r"for 1 s: the line is cut") as caught:
            await anext(stream)
        health = app.health()
        assert (health.state, health.up) == ("down", False)
        assert "the line is cut" in str(health)
        channel.cut = False
        for number in "123":
            await server.emit(said(f"m{number}", number))
        told = await first(app.events(Team.Said, cursor=caught.value.details["cursor"]), 3)
        assert [one.text for one in told] == ["1", "2", "3"]
        assert app.health().state == "idle"


async def test_fr25_what_was_purged_in_a_gap_is_reported_and_not_jumped_over() -> None:
    now = 0.0
    async with memory(clock=lambda: now) as store:
        server = MyTeam()
        channel = Cut(Runtime(server, store=store, identity="team"))
        app = over(channel)
        stream = app.events(Team.Said)
        await server.emit(said("m0", "0"))
        assert (await anext(stream)).text == "0"
        await server.emit(said("m1", "1"))
        now = 8 * 24 * 3600.0
        await server.emit(said("m2", "2"))
        await store.purge()
        with pytest.raises(HotplugError, match="missed"):
            await anext(stream)
        assert app.health().state == "down"
        assert [one.text for one in await first(app.events(Team.Said), 1)] == ["2"]
