"""What is planted in the shop, and its healthy ones."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Awaitable, Callable
from typing import Any, Literal, cast

import anyio

from benchmarks.verdicts.case import SLOW, WITHIN, Case, Task, World
from benchmarks.verdicts.shop_world import (
    ACCEPT,
    ALL_THREE,
    CANCEL,
    CANCEL_ONLY,
    ORDER,
    PAY,
    TWO_CANCELS,
    ShopWorld,
    serving,
    shop,
)

__all__ = ["SHOP_CASES"]

When = Literal["opened", "acted"]
Meanwhile = Callable[[World, When], Awaitable[None]]


def _shop(
    task: Task,
    kind: str,
    plant: str,
    text: str = "",
    *,
    truth: bool = False,
    site: str | None = None,
    process: bool = False,
    proxy: bool = False,
    rows: int = 1000,
    cancelled: bool = False,
    **more: Any,
) -> Case:
    """A case of the shop; `plant` is in the tool and in the site, whichever knows it, unless `site` names another."""
    where = "proxied" if proxy else "shop"
    return Case(
        name=f"{where}/{task.name}/{(text or plant).replace(', ', ' ').replace(' ', '-')}",
        kind=kind,
        task=task,
        plant=text or plant,
        truth=truth,
        world=shop(plant, site=site, process=process, proxy=proxy, rows=rows, cancelled=cancelled),
        **more,
    )


def _healthy(task: Task, text: str, plant: str = "", **more: Any) -> Case:
    return _shop(task, "healthy", plant, text, truth=True, **more)


def _when(when: When, do: Callable[[ShopWorld], Any]) -> Meanwhile:
    """Something that happens to a shop at one moment, and is on record."""

    async def happen(world: World, now: When) -> None:
        if now == when:
            found = do(cast("ShopWorld", world))
            if found is not None:
                await found
            world.record("it happened")

    return happen


def _others(world: ShopWorld) -> None:
    """Other customers at work, in the same tables and the same log."""
    for number in range(8):
        world.site.insert("bob", "mug", number + 1)
        world.site.log("POST", "/customers/bob/orders", 201)
        world.site.sql("insert into payments (purchase, cents, status) values (9, 100, 'captured')")
    world.site.sql("update orders set status = 'open', quantity = quantity + 1 where id = 9")


def _others_all_along(world: ShopWorld) -> None:
    async def work() -> None:
        for number in range(12):
            world.site.insert("carol", "plate", number + 1)
            world.site.log("POST", "/customers/carol/orders", 500 if number % 3 else 201)
            await anyio.sleep(0.1)

    world.tasks.start_soon(work)


def _locked(seconds: float) -> Callable[[ShopWorld], None]:
    def lock(world: ShopWorld) -> None:
        connection = sqlite3.connect(world.database, isolation_level=None, check_same_thread=False)
        connection.execute("begin exclusive")

        async def release() -> None:
            try:
                await anyio.sleep(seconds)
            finally:
                connection.rollback()
                connection.close()

        world.tasks.start_soon(release)

    return lock


def _database_away(world: ShopWorld) -> None:
    world.database.rename(world.database.with_suffix(".away"))


def _truncated(world: ShopWorld) -> None:
    os.truncate(world.access_log, 0)


def _filled_and_truncated(world: ShopWorld) -> None:
    _noise(world)
    _truncated(world)


def _rotated(world: ShopWorld) -> None:
    world.access_log.rename(world.access_log.with_suffix(".log.1"))
    world.access_log.touch()


def _rotated_twice(world: ShopWorld) -> None:
    world.access_log.rename(world.access_log.with_suffix(".log.2"))
    world.access_log.write_text('127.0.0.1 - - [x] "GET / HTTP/1.1" 200 1 "-" "-"\n')
    world.access_log.rename(world.access_log.with_suffix(".log.1"))
    world.access_log.touch()


def _log_gone(world: ShopWorld) -> None:
    world.access_log.unlink()


def _garbled(world: ShopWorld) -> None:
    with world.access_log.open("ab") as file:
        file.write(b"\x16\x03\x01 tls handshake in a log of lines\n")


def _half_a_line(world: ShopWorld) -> None:
    with world.access_log.open("ab") as file:
        file.write(b'127.0.0.1 - - [30/Nov/2026:10:00:00 +0000] "POST /custom')


def _noise(world: ShopWorld) -> None:
    for number in range(200):
        world.site.log("GET", f"/assets/{number}.css", 200)


def _restarted(world: ShopWorld) -> Awaitable[None]:
    """Another process of the same site, at another port."""

    async def restart() -> None:
        started = anyio.Event()

        async def serve() -> None:
            async with serving(world):
                started.set()
                await anyio.sleep_forever()

        world.tasks.start_soon(serve)
        await started.wait()

    return restart()


ORDERS = (
    _shop(ORDER, "optimistic page", "sends nothing, and shows success"),
    _shop(ORDER, "optimistic page", "only previews"),
    _shop(ORDER, "lying receipt", "stores nothing", "answers 201 and stores nothing"),
    _shop(ORDER, "failure inside success", "fails in the body", "answers 200 with a failure in the body"),
    _shop(ORDER, "silent failure", "accepts and forgets", "answers 202 and never does it"),
    _shop(ORDER, "late effect", "accepts and is late", "answers 202 and does it too late", late=True),
    _shop(ORDER, "silent failure", "redirects to sign in"),
    _shop(ORDER, "wrong target", "wrong item"),
    _shop(ORDER, "wrong target", "wrong customer"),
    _shop(ORDER, "wrong target", "orders for another customer", "the tool orders for another customer"),
    _shop(ORDER, "wrong value", "wrong quantity"),
    _shop(ORDER, "wrong value", "stored as failed", "stored as failed, and answered as placed"),
    _shop(ORDER, "wrong value", "splits it", "two orders of one instead of one of two"),
    _shop(ORDER, "wrong value", "changes it after the answer"),
    _shop(ORDER, "effect elsewhere", "another branch", "stored in another branch's database"),
    _shop(ORDER, "duplicate", "sends it twice", "the tool sends it twice"),
    _shop(ORDER, "duplicate", "stores it twice", "one request, stored twice"),
    _shop(ORDER, "duplicate", "tries again", "the tool tries again", site="loses the first answer"),
    _shop(ORDER, "duplicate", "stores it again after the answer"),
    _shop(ORDER, "duplicate", "adds another", "adds an order of gift wrap"),
    _shop(ORDER, "collateral", "takes an older order away"),
    _shop(ORDER, "collateral", "overwrites the order of before"),
    _shop(ORDER, "stale", "gives the order of before", "answers with the order of before"),
    _shop(ORDER, "success text over failure", "calls every answer a success", site="fails"),
    _shop(ORDER, "honest failure", "fails", "answers 500, and did nothing"),
    _shop(ORDER, "rolled back", "rolls back after the answer"),
    _shop(ORDER, "spoiled later", "stores it again a while later"),
    _shop(ORDER, "spoiled later", "rolls back a while later"),
    _shop(ORDER, "lost answer", "fails after it wrote", "answers 500 after it wrote", truth=True),
    _shop(ORDER, "lost answer", "hangs after sending", truth=True),
    _shop(ORDER, "lost answer", "hangs before sending"),
    _shop(ORDER, "crashed subject", "dies before it writes", process=True),
    _shop(ORDER, "crashed subject", "dies after it wrote", truth=True, process=True),
    _shop(ORDER, "crashed subject", "answers, then dies with the write in memory", process=True),
    _shop(ORDER, "blind witness", "", "database locked", truth=True, meanwhile=_when("acted", _locked(WITHIN + 2))),
    _shop(
        ORDER,
        "blind witness",
        "stores nothing",
        "stores nothing, database locked",
        meanwhile=_when("acted", _locked(WITHIN + 2)),
    ),
    _shop(ORDER, "blind witness", "", "database gone", truth=True, meanwhile=_when("acted", _database_away)),
    _shop(
        ORDER,
        "blind witness",
        "stores nothing",
        "stores nothing, database gone",
        meanwhile=_when("acted", _database_away),
    ),
    _shop(
        ORDER, "blind witness", "", "more rows than are read", truth=True, rows=2, meanwhile=_when("opened", _others)
    ),
    _shop(
        ORDER,
        "claim after the act",
        "",
        "claimed after acting",
        truth=True,
        claimed="late",
        meanwhile=_when("opened", lambda _: None),
    ),
    _shop(
        ORDER,
        "claim after the act",
        "",
        "window opened after acting",
        claimed="afterwards",
        meanwhile=_when("opened", lambda _: None),
    ),
)

ACCEPTS = (
    _shop(ACCEPT, "silent failure", "sends nothing, and shows success", "nothing is sent"),
    _shop(ACCEPT, "silent failure", "only previews", "only a preview is sent"),
    _shop(ACCEPT, "failure inside success", "fails in the body", "answers 200 with a failure in the body"),
    _shop(ACCEPT, "silent failure", "accepts and forgets", "answers 202"),
    _shop(ACCEPT, "silent failure", "redirects to sign in"),
    _shop(ACCEPT, "duplicate", "sends it twice", "the tool sends it twice"),
    _shop(ACCEPT, "duplicate", "tries again", "fails at the first try", site="fails the first time"),
    _shop(ACCEPT, "wrong target", "orders for another customer", "the tool orders for another customer"),
    _shop(ACCEPT, "blind witness", "", "log truncated", truth=True, meanwhile=_when("acted", _truncated)),
    _shop(
        ACCEPT,
        "blind witness",
        "sends nothing, and shows success",
        "nothing is sent, log truncated",
        meanwhile=_when("opened", _filled_and_truncated),
    ),
    _shop(ACCEPT, "blind witness", "", "log rotated twice", truth=True, meanwhile=_when("acted", _rotated_twice)),
    _shop(ACCEPT, "blind witness", "", "log gone", truth=True, meanwhile=_when("acted", _log_gone)),
    _shop(ACCEPT, "blind witness", "", "log garbled", truth=True, meanwhile=_when("opened", _garbled)),
    _shop(ACCEPT, "blind witness", "", "a line not complete", truth=True, meanwhile=_when("acted", _half_a_line)),
)

PROXIED = (
    _shop(ACCEPT, "failure inside success", "fails in the body", "answers 200 with a failure in the body", proxy=True),
    _shop(ACCEPT, "silent failure", "redirects to sign in", proxy=True),
    _shop(ACCEPT, "silent failure", "only previews", "only a preview is sent", proxy=True),
    _shop(ACCEPT, "duplicate", "sends it twice", "the tool sends it twice", proxy=True),
    _shop(ACCEPT, "duplicate", "tries again", "fails at the first try", site="fails the first time", proxy=True),
    _shop(ACCEPT, "late effect", "answers too late", proxy=True, late=True),
    _shop(ACCEPT, "crashed subject", "dies before it writes", proxy=True, process=True),
)

PAYMENTS = (
    _shop(PAY, "optimistic page", "shows an old receipt"),
    _shop(PAY, "duplicate", "sends it twice", "the tool pays twice"),
    _shop(PAY, "duplicate", "captures twice", "one request, captured twice"),
    _shop(PAY, "duplicate", "tries again", "the tool tries again", site="loses the first answer"),
    _shop(PAY, "wrong value", "takes another amount"),
    _shop(PAY, "wrong value", "pays in another unit", "the tool pays in another unit"),
    _shop(PAY, "wrong value", "only authorizes"),
    _shop(PAY, "wrong target", "pays another order"),
    _shop(PAY, "failure inside success", "declines in the body"),
    _shop(PAY, "success text over failure", "calls every answer a success", site="declines"),
    _shop(PAY, "honest failure", "declines", "answers 402"),
    _shop(PAY, "lying receipt", "captures nothing", "answers 201 and captures nothing"),
    _shop(PAY, "late effect", "captures late", late=True),
    _shop(PAY, "rolled back", "refunds at once"),
    _shop(PAY, "spoiled later", "captures again a while later"),
    _shop(PAY, "blind witness", "", "log truncated", truth=True, meanwhile=_when("acted", _truncated)),
)

CANCELS = (
    _shop(CANCEL, "optimistic page", "sends nothing, and shows success"),
    _shop(CANCEL, "lying receipt", "cancels nothing"),
    _shop(CANCEL, "wrong target", "cancels another"),
    _shop(CANCEL, "collateral", "cancels all"),
    _shop(CANCEL, "late effect", "cancels late", late=True),
    _shop(CANCEL, "wrong value", "stays at cancelling"),
    _shop(CANCEL, "wrong value", "removes it", "removes it instead"),
    _shop(CANCEL, "rolled back", "opens it again"),
    _shop(CANCEL, "lost answer", "cancels and fails", truth=True),
    _shop(CANCEL, "already true", "cancels nothing", "cancelled before", cancelled=True),
    _shop(CANCEL_ONLY, "already true", "cancels nothing", "cancelled before", cancelled=True),
    _shop(TWO_CANCELS, "already true", "cancels nothing", "one cancelled before, nothing done", cancelled=True),
    _shop(TWO_CANCELS, "already true", "", "one cancelled before", cancelled=True),
)

HEALTHY = (
    _healthy(ORDER, "plain"),
    _healthy(ORDER, "done slowly", "accepts and is slow"),
    _healthy(ORDER, "others at work before", meanwhile=_when("opened", _others)),
    _healthy(ORDER, "others at work after", meanwhile=_when("acted", _others)),
    _healthy(ORDER, "others at work all along", meanwhile=_when("opened", _others_all_along)),
    _healthy(ORDER, "tries again with a key", "tries again with a key", site="loses the first answer"),
    _healthy(ORDER, "the site is another process", process=True),
    _healthy(ORDER, "the site restarts", meanwhile=_when("opened", _restarted)),
    _healthy(ORDER, "database locked for a moment", meanwhile=_when("acted", _locked(SLOW))),
    _healthy(ORDER, "tried again after an error", "tries again", site="fails the first time"),
    _healthy(ACCEPT, "plain"),
    _healthy(ACCEPT, "others at work", meanwhile=_when("opened", _others)),
    _healthy(ACCEPT, "others at work all along", meanwhile=_when("opened", _others_all_along)),
    _healthy(ACCEPT, "plain", proxy=True),
    _healthy(ACCEPT, "log rotated before", meanwhile=_when("opened", _rotated)),
    _healthy(ACCEPT, "log rotated after", meanwhile=_when("acted", _rotated)),
    _healthy(ACCEPT, "a loud log", meanwhile=_when("opened", _noise)),
    _healthy(PAY, "plain"),
    _healthy(PAY, "done slowly", "captures slowly"),
    _healthy(PAY, "others at work", meanwhile=_when("opened", _others)),
    _healthy(CANCEL, "plain"),
    _healthy(CANCEL, "done slowly", "cancels slowly"),
    _healthy(ALL_THREE, "three claims"),
    _healthy(ALL_THREE, "three claims, others at work", meanwhile=_when("opened", _others_all_along)),
    _healthy(TWO_CANCELS, "two claims on facts"),
)

SHOP_CASES = (*ORDERS, *ACCEPTS, *PROXIED, *PAYMENTS, *CANCELS, *HEALTHY)
