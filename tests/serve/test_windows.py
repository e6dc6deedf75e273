"""Windows: what ends them, and what they say that couldn't be seen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

from hotplug.profile import Event, Model, Profile, Sense, event, read
from hotplug.serve import Runtime
from hotplug.servers import native
from hotplug.store import memory

from .shop import MyShop

pytestmark = pytest.mark.anyio


async def opened(runtime: Runtime, **arguments: Any) -> str:
    return (await runtime.call("connection.window.open", {"budgetMs": 20_000, **arguments})).content["window"]


async def closed(runtime: Runtime, window: str) -> dict[str, Any]:
    answer = await runtime.call("connection.window.close", {"window": window})
    assert not answer.is_error, answer.content
    return answer.content


async def apple(runtime: Runtime) -> str:
    return (await runtime.call("shop.items", {})).content["items"][0]


async def test_a_window_waits_for_the_operations_under_way_and_ends_on_their_answers() -> None:
    async with memory() as store:
        shop = MyShop()
        shop.gate = anyio.Event()
        runtime = Runtime(shop, store=store, identity="shop")
        window = await opened(runtime)
        ends: list[str] = []
        async with anyio.create_task_group() as tasks:

            async def buy() -> None:
                await runtime.call("shop.buy", {"item": await apple(runtime), "count": 1})
                ends.append("bought")

            async def close() -> None:
                ends.append((await closed(runtime, window))["closedBy"])

            tasks.start_soon(buy)
            with anyio.fail_after(5):
                await shop.entered.wait()
            tasks.start_soon(close)
            await anyio.wait_all_tasks_blocked()
            assert ends == []
            shop.gate.set()
        assert ends == ["bought", "ack"]


async def test_a_window_whose_budget_ends_during_an_operation_says_so_and_that_it_is_still_in_flight() -> None:
    async with memory() as store:
        shop = MyShop()
        shop.gate = anyio.Event()
        runtime = Runtime(shop, store=store, identity="shop")
        window = await opened(runtime, budgetMs=50)
        async with anyio.create_task_group() as tasks:
            arguments = {"item": await apple(runtime), "count": 1}
            tasks.start_soon(runtime.call, "shop.buy", arguments)
            with anyio.fail_after(5):
                await shop.entered.wait()
            body = await closed(runtime, window)
            shop.gate.set()
        assert body["closedBy"] == "budget-exhausted"
        assert [(one["kind"], one["impeaching"]) for one in body["coverage"]["blindSpots"]] == [
            ("still-in-flight", True)
        ]


async def test_a_window_asked_to_end_on_what_cant_be_measured_says_that() -> None:
    async with memory() as store:
        runtime = Runtime(MyShop(), store=store, identity="shop")
        body = await closed(runtime, await opened(runtime, closes=["quiescence"]))
        assert body["unmeasurable"] is True
        assert body["closedBy"] == "ack"
        assert [one["sense"] for one in body["coverage"]["blindSpots"]] == ["time"]
        body = await closed(runtime, await opened(runtime, closes=["quiescence", "ack"]))
        assert "unmeasurable" not in body


async def test_only_what_a_server_really_emits_counts_as_watched(tmp_path: Path) -> None:
    server, own, identity = native("sqlite", str(tmp_path / "c.db"))
    async with own or memory() as store:
        runtime = Runtime(server, store=store, identity=identity)
        async with runtime.opened():
            described = (await runtime.call("connection.describe", {})).content
            assert described["senses"] == {"state": {"independence": "actuation-derived", "grade": "consequence"}}
            assert (await closed(runtime, await opened(runtime)))["coverage"]["senses"] == ["state"]


class Answered(Model):
    value: int = 1


class Silent(Profile, name="silent", version="1.0.0"):
    """A thing that may tell of something and here doesn't. Reading is its core: without it there is nothing."""

    @read("silent.value", sense="state")
    async def value(self) -> Answered:
        """Give the value."""
        ...

    @event("silent.rang", sense="signal", required=False, without="Nobody hears it.")
    class Rang(Event):
        """It rang."""


class Mute(Silent):
    async def value(self) -> Answered:
        await self.emit(Silent.Rang())
        return Answered()


async def test_an_event_that_a_server_doesnt_say_it_emits_is_told_and_counts_for_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with memory() as store:
        runtime = Runtime(Mute(), store=store, identity="mute")
        window = await opened(runtime)
        listening = {"types": ["silent.rang"]}
        assert (await runtime.call("connection.events", listening)).content["code"] == "unsupported"
        for _ in range(2):
            assert not (await runtime.call("silent.value", {})).is_error
        assert len([one for one in caplog.messages if "add it to the server's `emits`" in one]) == 1
        assert not (await runtime.call("connection.events", listening)).is_error
        assert (await runtime.call("connection.describe", {})).content["senses"] == {}
        assert (await closed(runtime, window))["coverage"]["senses"] == []


async def test_a_sense_that_a_server_declares_weaker_is_watched_as_weak_as_that() -> None:
    class Unsure(MyShop):
        senses = {"state": Sense("actuation-derived", "presence")}  # noqa: RUF012

    async with memory() as store:
        described = (await Runtime(Unsure(), store=store, identity="shop").call("connection.describe", {})).content
        assert described["senses"]["state"]["grade"] == "presence"
