"""Health tells the truth: `up` only while events can arrive, and not for five seconds longer (FR-25)."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Literal

import anyio
import pytest

from hotplug import connect
from hotplug.connect import link_of
from hotplug.connect.pulse import GRACE, WAIT_MS, Pulse
from hotplug.errors import HotplugError, ProfileError
from hotplug.profile import Health, Model, Profile, read
from hotplug.store import memory

from ..serve.proxy import through_a_proxy  # noqa: TID252  # tests are no package
from ..serve.shop import Item, MyShop, Shop  # noqa: TID252
from ..serve.ways import stdio  # noqa: TID252

pytestmark = pytest.mark.anyio

LIMIT = 5.0
"""Seconds within which a cut has to show (FR-25)."""


async def until(condition: Callable[[], bool], limit: float) -> float:
    """Seconds until it holds, `limit` at the most."""
    begun = time.monotonic()
    with anyio.move_on_after(limit):
        while not condition():  # what is looked at raises no event
            await anyio.sleep(0.02)
    assert condition(), f"not within {limit} s"
    return time.monotonic() - begun


@asynccontextmanager
async def subscribed(app: Shop) -> AsyncGenerator[list[int]]:
    """The counts of what is sold, as they are told, while the block runs."""
    got: list[int] = []

    async def listen() -> None:
        async with aclosing(app.events(Shop.Sold)) as told:
            async for one in told:
                got.append(one.count)  # noqa: PERF401  # as they come, not at the end

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(listen)
        yield got
        tasks.cancel_scope.cancel()


async def sell(shop: MyShop, *counts: int) -> None:
    for count in counts:
        await shop.emit(Shop.Sold(item=Item("apple"), count=count))


@pytest.mark.parametrize("how", ["closed", "frozen"])
@pytest.mark.parametrize("kind", ["http modern", "http legacy"])
async def test_fr25_a_socket_that_is_cut_is_not_up_within_5_s_and_is_up_again_when_it_is_mended(
    kind: str, how: Literal["closed", "frozen"]
) -> None:
    shop = MyShop()
    with anyio.fail_after(60):
        async with through_a_proxy(Shop, shop, kind) as (app, proxy):
            assert app.health().state == "idle"
            async with subscribed(app) as got:
                await until(lambda: app.health().up, 10)
                await sell(shop, 0)
                await until(lambda: got == [0], 10)
                await proxy.cut(how)
                await until(lambda: not app.health().up, LIMIT)
                health = app.health()
                assert health.state == "reconnecting"
                assert health.why
                await sell(shop, 1, 2, 3)
                # It stays so for as long as it is so.
                with anyio.move_on_after(1.5):
                    while True:
                        assert not app.health().up
                        await anyio.sleep(0.05)
                proxy.mend()
                await until(lambda: app.health().up, 20)
                await until(lambda: got == [0, 1, 2, 3], 10)
                assert app.health().why is None
                assert app.health().since > health.since
            assert app.health().state == "idle"


async def test_fr25_a_connection_that_never_comes_back_is_given_up_for_a_new_one() -> None:
    shop = MyShop()
    with anyio.fail_after(60):
        async with through_a_proxy(Shop, shop, "http modern") as (app, proxy), subscribed(app) as got:
            await until(lambda: app.health().up, 10)
            await proxy.cut("lost")
            await sell(shop, 1)
            await until(lambda: not app.health().up, LIMIT)
            await until(lambda: app.health().up, 20)
            await until(lambda: got == [1], 5)


async def test_fr25_a_quiet_connection_stays_up() -> None:
    shop = MyShop()
    with anyio.fail_after(60):
        async with through_a_proxy(Shop, shop, "http modern") as (app, _), subscribed(app) as got:
            await until(lambda: app.health().up, 10)
            since = app.health().since
            with anyio.move_on_after(WAIT_MS / 1000 + GRACE + 1):
                while True:
                    assert app.health() == Health("up", since)
                    await anyio.sleep(0.02)
            assert got == []


async def test_fr25_a_child_that_stands_still_is_not_up_within_5_s_and_one_that_dies_is_started_again(
    tmp_path: Path,
) -> None:
    # Each child writes its number down before it is the shop.
    launcher, pids = tmp_path / "launcher.py", tmp_path / "pids"
    launcher.write_text(
        "import os, pathlib, runpy, sys\n"
        f"with pathlib.Path({str(pids)!r}).open('a') as file: print(os.getpid(), file=file)\n"
        "del sys.argv[0]\n"
        "runpy.run_path(sys.argv[0], run_name='__main__')\n"
    )
    python, *rest = stdio(tmp_path / "s.db")
    with anyio.fail_after(60):
        async with connect(Shop, [python, str(launcher), *rest]) as app, subscribed(app) as got:
            item = (await app.items()).items[0]
            await until(lambda: app.health().up, 10)
            child = int(pids.read_text().split()[-1])
            os.kill(child, signal.SIGSTOP)
            try:
                await until(lambda: not app.health().up, LIMIT)
                assert "no answer" in (app.health().why or "")
            finally:
                os.kill(child, signal.SIGCONT)
            await until(lambda: app.health().up, 20)
            before = app.health().since
            os.kill(child, signal.SIGKILL)
            await until(lambda: app.health().since != before, LIMIT)
            await until(lambda: app.health().up, 20)
            await app.buy(item, 7)
            await until(lambda: got == [7], 10)
            assert int(pids.read_text().split()[-1]) != child


async def test_a_subscriber_that_is_busy_is_idle_and_up_again_when_it_asks() -> None:
    async with memory() as store:
        shop = MyShop()
        async with connect(Shop, shop, store=store) as app:
            clock = Clock()
            link_of(app).pulse = Pulse(clock)
            stream = app.events(Shop.Sold)
            await sell(shop, 1)
            assert (await anext(stream)).count == 1
            assert app.health().state == "up"
            clock.now = 10.0
            health = app.health()
            assert health.state == "idle"
            assert "busy" in (health.why or "")
            await sell(shop, 2)
            assert (await anext(stream)).count == 2
            assert app.health().state == "up"
            # Copies with other options share the health of the connection.
            assert app.using(key="k").health() == app.health()
            await stream.aclose()
            assert app.health().state == "idle"


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_the_health_of_several_subscriptions_is_the_worst_of_theirs() -> None:
    clock = Clock()
    pulse = Pulse(clock)
    one, other = pulse.listen(), pulse.listen()
    for listener in (one, other):
        listener.ask()
    one.answered()
    one.ask()
    assert pulse.health().state == "reconnecting"
    other.answered()
    other.ask()
    assert pulse.health().state == "up"
    clock.now = WAIT_MS / 1000 + GRACE
    assert pulse.health().state == "up"
    clock.now += 0.1
    assert pulse.health().state == "reconnecting"
    one.answered()
    other.failed("cut")
    health = pulse.health()
    assert (health.state, health.why) == ("reconnecting", "cut")
    other.end("given up")
    other.end()
    assert pulse.health().state == "down"
    one.end()
    assert str(pulse.health()).endswith(": given up")
    assert pulse.listen() is not None
    assert pulse.health().state == "reconnecting"


def test_no_part_can_take_the_name_of_the_health() -> None:
    class Fine(Model):
        fine: bool

    with pytest.raises(ProfileError, match="health"):

        class Clinic(Profile, name="clinic", version="1.0.0"):
            """For this test."""

            @read("clinic.health", sense="state")
            async def health(self) -> Fine:  # type: ignore[override]
                """Say whether all is fine."""
                ...


async def test_a_server_has_no_health_of_a_connection_and_says_so() -> None:
    with pytest.raises(HotplugError, match="not a connection"):
        MyShop().health()
