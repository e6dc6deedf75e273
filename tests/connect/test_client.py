"""The typed client: errors, retries, keys, events over gaps, looks, options, foreign servers."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest

from hotplug import connect
from hotplug.connect import Link, Reply, link_of, speaks, typed_client
from hotplug.declare import Declaration
from hotplug.door import MemoryChannel
from hotplug.errors import (
    CODES,
    ConnectError,
    Disconnected,
    HotplugError,
    Internal,
    InvalidArgument,
    Timeout,
    Undeclared,
    Unsupported,
)
from hotplug.profile.versions import Range, default_range
from hotplug.serve import KEY_META, Runtime
from hotplug.store import memory

from ..serve.shop import Item, MyShop, Points, Shop  # noqa: TID252  # tests are no package

pytestmark = pytest.mark.anyio

Child = Callable[..., list[str]]


def calls(book: Path) -> list[list[Any]]:
    return [json.loads(line) for line in book.read_text().splitlines()]


async def test_fr23_what_was_done_before_the_drop_is_done_once_and_its_state_is_unknown(
    child: Child, tmp_path: Path
) -> None:
    book = tmp_path / "book"
    async with connect(Shop, child("drops_typed", str(book), "keeps", "1")) as shop:
        with pytest.raises(Disconnected) as caught:
            await shop.ring()
        assert caught.value.details["state"] == "unknown"
        assert calls(book) == [["shop.ring", None]]
        # The connection is there again for what comes after.
        assert (await shop.items()).items == []
        assert [name for name, _ in calls(book)] == ["shop.ring", "shop.items"]


async def test_fr23_a_read_is_repeated_and_a_once_operation_under_the_same_key(child: Child, tmp_path: Path) -> None:
    book = tmp_path / "book"
    async with connect(Shop, child("drops_typed", str(book), "keeps", "1")) as shop:
        assert (await shop.items()).items == []
        assert len(calls(book)) == 2
    book.unlink()
    async with connect(Shop, child("drops_typed", str(book), "keeps", "1")) as shop:
        assert (await shop.buy(Item("i"), 1)).total == 1
        (_, first), (_, second) = calls(book)
        assert first == second
        assert isinstance(first, str)
        await shop.buy(Item("i"), 1)
        assert calls(book)[2][1] != first
        assert (await shop.using(key="mine").buy(Item("i"), 1)).total == 1
        assert calls(book)[3] == ["shop.buy", "mine"]


async def test_fr23_a_server_that_keeps_no_keys_is_not_asked_twice(child: Child, tmp_path: Path) -> None:
    book = tmp_path / "book"
    async with connect(Shop, child("drops_typed", str(book), "forgets", "1")) as shop:
        with pytest.raises(Disconnected) as caught:
            await shop.buy(Item("i"), 1)
        assert caught.value.details["state"] == "unknown"
        assert len(calls(book)) == 1


async def test_fr23_an_error_that_the_server_answers_is_no_lost_connection(child: Child, tmp_path: Path) -> None:
    book = tmp_path / "book"
    async with connect(Shop, child("drops_typed", str(book), "keeps", "0")) as shop:
        with pytest.raises(InvalidArgument, match="invalid parameter"):
            await shop.arrange({})
        assert calls(book) == [["shop.set", None]]


async def test_a_foreign_server_without_connection_is_used_as_far_as_it_goes_and_described_so(
    child: Child, tmp_path: Path
) -> None:
    book = tmp_path / "book"
    async with connect(Shop, child("drops_typed", str(book), "forgets", "0")) as shop:
        assert (await shop.items()).items == []
        described = await shop.describe()
        assert described["notes"] == {"connection": "not offered"}
        assert described["profile"] == "shop"
        assert "connection.events" not in described["parts"]
        with pytest.raises(Unsupported):
            async with shop.window():
                pass
        with pytest.raises(Unsupported):
            await anext(shop.events(Shop.Sold))
        assert await shop.look("turn") == {"shop.items": {"items": []}}


class Flaky(MemoryChannel):
    """Loses answers, or connections, as it is told to."""

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(runtime, "flaky")
        self.sent: list[tuple[str, Any]] = []
        self.drop_answers = 0
        self.drop_requests = 0
        self.down = 0
        self.twice = False
        self.fault: Exception | None = None

    async def call(
        self, tool: str, arguments: Mapping[str, Any], *, meta: Mapping[str, Any], timeout: float | None = None
    ) -> Reply:
        self.sent.append((tool, meta.get(KEY_META)))
        if self.fault is not None:
            raise self.fault
        if self.drop_requests:
            self.drop_requests -= 1
            raise Disconnected("cut before", details={"state": "unknown"})
        reply = await super().call(tool, arguments, meta=meta, timeout=timeout)
        if self.drop_answers:
            self.drop_answers -= 1
            raise Disconnected("cut after", details={"state": "unknown"})
        if self.twice and tool == "connection.events" and reply.content is not None:
            events: Sequence[Any] = reply.content["events"]
            return Reply(content={**reply.content, "events": [one for event in events for one in (event, event)]})
        return reply

    async def restore(self) -> None:
        if self.down:
            self.down -= 1
            raise Disconnected("still down", details={"state": "not_sent"})


def typed(channel: Flaky) -> Shop:
    runtime = channel.runtime
    tools = [tool.listed() for tool in runtime.tools.values()]
    version = default_range(Shop.definition.version)
    return typed_client(Shop, Link(channel, speaks(Shop, version, runtime.declaration, tools, target="flaky")))


async def test_an_answer_that_was_lost_is_fetched_and_the_thing_done_once() -> None:
    async with memory() as store:
        server = MyShop()
        channel = Flaky(Runtime(server, store=store, identity="shop"))
        shop = typed(channel)
        item = (await shop.items()).items[0]
        channel.drop_answers = 2
        assert (await shop.buy(item, 3)).total == 3
        assert server.done("buy") == 1
        assert len({key for tool, key in channel.sent if tool == "shop.buy"}) == 1


async def test_after_three_tries_it_is_given_up_and_the_state_is_unknown() -> None:
    async with memory() as store:
        server = MyShop()
        channel = Flaky(Runtime(server, store=store, identity="shop"))
        shop = typed(channel)
        item = (await shop.items()).items[0]
        channel.sent.clear()
        channel.drop_answers = 9
        with pytest.raises(Disconnected) as caught:
            await shop.buy(item, 3)
        assert caught.value.details["state"] == "unknown"
        assert len(channel.sent) == 3
        assert server.done("buy") == 1
        channel.sent.clear()
        channel.down = 1
        with pytest.raises(Disconnected) as caught:
            await shop.buy(item, 3)
        assert caught.value.details["state"] == "unknown"
        assert len(channel.sent) == 1


@pytest.mark.parametrize("code", [code for code in CODES if code not in {"disconnected", "timeout"}])
async def test_no_answer_is_taken_for_a_lost_connection(code: str) -> None:
    async with memory() as store:
        channel = Flaky(Runtime(MyShop(), store=store, identity="shop"))
        shop = typed(channel)
        with pytest.raises(CODES[code]):
            await shop.items(f"raise {code}")
        assert len(channel.sent) == 1


async def test_a_timeout_that_the_caller_set_is_not_tried_again() -> None:
    async with memory() as store:
        channel = Flaky(Runtime(MyShop(), store=store, identity="shop"))
        shop = typed(channel)
        channel.fault = Timeout("late", details={"state": "unknown"})
        with pytest.raises(Timeout):
            await shop.using(timeout=5).items()
        assert len(channel.sent) == 1
        with pytest.raises(Timeout):
            await shop.items()
        assert len(channel.sent) == 4


async def test_fr25_three_messages_in_a_gap_come_all_once_and_in_order() -> None:
    async with memory() as store:
        server = MyShop()
        channel = Flaky(Runtime(server, store=store, identity="shop"))
        shop = typed(channel)
        got: list[int] = []
        first = anyio.Event()

        async def listen() -> None:
            async for sold in shop.events(Shop.Sold):
                got.append(sold.count)
                first.set()
                if len(got) == 4:
                    return

        with anyio.fail_after(20):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(listen)
                await server.emit(Shop.Sold(item=Item("apple"), count=0))
                await first.wait()
                channel.twice = True
                channel.drop_requests, channel.down = 8, 3
                for count in (1, 2, 3):
                    await server.emit(Shop.Sold(item=Item("apple"), count=count))
        assert got == [0, 1, 2, 3]


async def test_events_are_narrowed_by_their_filter_and_by_nothing_else() -> None:
    async with memory() as store:
        server = MyShop()
        shop = typed(Flaky(Runtime(server, store=store, identity="shop")))
        for count in (1, 2, 3):
            await server.emit(Shop.Sold(item=Item("apple"), count=count))
        assert (await anext(shop.events(Shop.Sold, count=3))).count == 3
        with pytest.raises(InvalidArgument, match="cuont"):
            await anext(shop.events(Shop.Sold, cuont=3))


async def test_a_cursor_that_has_expired_is_said_and_not_jumped_over() -> None:
    async with memory() as store:
        shop = typed(Flaky(Runtime(MyShop(), store=store, identity="shop")))
        gone = json.dumps(["not-a-place-of-this-store:1", 0, ""])
        with pytest.raises(HotplugError, match=r"missed|cursor"):
            await anext(shop.events(Shop.Sold, cursor=gone))


async def test_windows_looks_and_events_between() -> None:
    async with connect(Shop, MyShop(), store=memory()) as shop:
        async with shop.window(budget_ms=60_000) as window:
            await shop.ring()
            assert (await anext(shop.events(Shop.Ding, cursor=window.cursor))).loud is True
        assert window.closed is not None
        assert window.closed.closed_by == "ack"
        looked = await shop.look("turn")
        assert set(looked) == {"shop.items", "connection.describe"}
        assert await shop.look("effect") == {}
        with pytest.raises(InvalidArgument, match="trun"):
            await shop.look("trun")


async def test_options_are_of_the_copy_and_add_up() -> None:
    async with connect(Shop, MyShop(), store=memory()) as shop:
        item = (await shop.items()).items[0]
        keyed = shop.using(key="k")
        both = keyed.using(authorized=["shop@1/shop.demolish"])
        assert (await both.demolish()).receipt == (await both.demolish()).receipt
        assert (await keyed.buy(item, 1)) == (await keyed.buy(item, 1))
        assert (await shop.buy(item, 1)) != (await shop.buy(item, 1))
        for wrong in ({"key": ""}, {"timeout": 0}, {"timeout": -1}):
            with pytest.raises(InvalidArgument):
                shop.using(**wrong)


@pytest.mark.parametrize(
    "arguments",
    [{"cuont": 1}, {"count": 1, "giftwrap": True}, {"count": 1, "lines": [{"text": "a", "sise": 1}]}],
)
async def test_a_name_that_is_no_argument_is_refused_and_never_dropped(arguments: dict[str, Any]) -> None:
    server = MyShop()
    async with connect(Shop, server, store=memory()) as shop:
        item = (await shop.items()).items[0]
        with pytest.raises(InvalidArgument, match="is not an argument here"):
            await shop.buy(item, **{"count": 1, **arguments})
        with pytest.raises(InvalidArgument, match=r"changes\.ribon"):
            await shop.arrange({"ribon": "x"})  # type: ignore[typeddict-unknown-key]
        with pytest.raises(TypeError):
            await shop.buy(item, 1, 2)  # type: ignore[call-arg]
        assert server.done("buy") == 0


class Scripted:
    """A channel to a server that isn't ours, answering as it is told to."""

    target = "scripted"
    extensions: Mapping[str, Any] = {}

    def __init__(self, reply: Reply) -> None:
        self.reply = reply

    async def tools(self) -> Sequence[Mapping[str, Any]]:
        return []

    async def call(
        self, tool: str, arguments: Mapping[str, Any], *, meta: Mapping[str, Any], timeout: float | None = None
    ) -> Reply:
        return self.reply

    async def restore(self) -> None: ...

    async def aclose(self) -> None: ...


async def asked(reply: Reply) -> Any:
    async with memory() as store:
        runtime = Runtime(MyShop(), store=store, identity="shop")
        tools = [tool.listed() for tool in runtime.tools.values()]
        found = speaks(Shop, Range("^1"), runtime.declaration, tools, target="scripted")
        return await typed_client(Shop, Link(Scripted(reply), found)).items()


async def test_the_flag_is_read_first_then_the_content_else_the_text() -> None:
    error = {"code": "conflict", "message": "changed", "details": {"current": "2"}}
    for reply in (Reply(content=error, is_error=True), Reply(content=None, is_error=True, text=json.dumps(error))):
        with pytest.raises(CODES["conflict"]) as caught:
            await asked(reply)
        assert caught.value.details == {"current": "2"}
    assert (await asked(Reply(content={"items": ["a"]}))).items == ["a"]
    assert (await asked(Reply(content=None, text='{"items": ["a"]}'))).items == ["a"]
    # What looks like an error in a success is content that doesn't fit, and no success.
    for reply in (
        Reply(content=error),
        Reply(content=None, text="fine"),
        Reply(content=None, text="[1]"),
        Reply(content={}, is_error=True, text="Error: no"),
        Reply(content={"code": 5, "message": "x"}, is_error=True),
        Reply(content={"items": "a"}),
    ):
        with pytest.raises(Internal):
            await asked(reply)
    with pytest.raises(Internal) as unknown:
        await asked(Reply(content={"code": "novel", "message": "x"}, is_error=True))
    assert unknown.value.details["code"] == "novel"


async def test_fields_that_a_newer_server_adds_are_no_fault() -> None:
    assert (await asked(Reply(content={"items": [], "more": {"x": 1}}))).items == []


def test_a_tool_of_another_major_is_not_taken_for_the_part() -> None:
    definition = Shop.definition
    declaration = Declaration.from_extensions({"tools.noetic/profiles": {"profiles": {"shop": "1.2.0"}}})
    tools = [
        {
            "name": name,
            "inputSchema": part.input.schema,
            "outputSchema": part.output.schema,
            "_meta": {"org.classprofiles/member": f"shop@2/{name}"},
        }
        for name, part in definition.parts.items()
        if part.kind != "event"
    ]
    with pytest.raises(ConnectError, match="missing_part"):
        speaks(Shop, Range("^1"), declaration, tools, target="other")


async def test_ranges_facets_and_extensions_that_are_not_there_are_refused_at_the_door() -> None:
    with pytest.raises(Unsupported, match=r"1\.2\.0"):
        async with connect(Shop.range("^1.3"), MyShop(), store=memory()):
            pass
    with pytest.raises(Unsupported, match="gifts") as caught:
        async with connect(Shop, MyShop(), store=memory(), facets=["gifts"]):
            pass
    assert caught.value.details["without"] == ["Nothing is wrapped."]
    with pytest.raises(Unsupported, match="points"):
        async with connect(Shop, MyShop(), store=memory(), extensions=[Points]):
            pass
    with pytest.raises(Unsupported):
        async with connect(Shop, MyShop(), store=memory(), setup={"x": 1}):
            pass
    async with connect(Shop.range(">=1 <2"), MyShop(), store=memory()) as shop:
        with pytest.raises(Undeclared):
            await link_of(shop).call_wire(Points.parts["com.example.points.spend"], {"points": 1})


async def test_a_server_is_no_connection_and_says_so() -> None:
    with pytest.raises(HotplugError, match="not a connection"):
        await MyShop().describe()
    with pytest.raises(HotplugError):
        link_of(MyShop())
