"""The shop as a world: a site with its store and its log, a connection, witnesses, and what is claimed of tasks."""

from __future__ import annotations

import os
import socket
import sqlite3
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing, nullcontext
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
import anyio.to_thread
import uvicorn

from benchmarks.verdicts.case import LATE, SLOW, Stored, Task, World
from benchmarks.verdicts.shop_server import HttpShop, Shop
from benchmarks.verdicts.shop_site import KILLED, SCHEMA, Site
from hotplug.connect.claims import Selector, constraint, net
from hotplug.door import connect
from hotplug.evidence.witness import Witness
from hotplug.store import memory
from hotplug.witness import HttpLog, HttpProxy, SqlQuery

__all__ = [
    "ACCEPT",
    "ALL_THREE",
    "CANCEL",
    "CANCEL_ONLY",
    "ORDER",
    "PAY",
    "TWO_CANCELS",
    "ShopWorld",
    "serving",
    "shop",
]

_ROWS = """
select 'order' as kind, customer, item, quantity, status from orders
union all select 'payment', purchase, cents, status, '' from payments
"""


class ShopWorld(World):
    """A shop that is open.

    Args:
        site: The site, where it runs in this process.
        url: Where it is.
    """

    def __init__(self, folder: Path, tasks: anyio.abc.TaskGroup, tool: str, site: str, rows: int) -> None:
        super().__init__(tasks)
        self.folder = folder
        self.site = Site(folder, site, self.record, late=LATE, slow=SLOW, tasks=tasks)
        self.tool = HttpShop("", tool, self.record)
        self.database = folder / "shop.db"
        self.access_log = folder / "access.log"
        self._witnesses: list[Witness] = [
            SqlQuery(
                f"sqlite:///{self.database}",
                query="select customer, item, quantity, status from orders",
                key=("customer", "item", "quantity", "status"),
                kind="order",
                facts={
                    "order7.status": "select status from orders where id = 7",
                    "order8.status": "select status from orders where id = 8",
                    "orders.cancelled": "select count(*) from orders where status = 'cancelled'",
                    "order7.paid": "select coalesce(sum(cents), 0) from payments"
                    " where purchase = 7 and status = 'captured'",
                },
                limit=rows,
                timeout=1,
                name="orders",
            ),
            SqlQuery(
                f"sqlite:///{self.database}",
                query="select purchase, cents, status from payments",
                key=("purchase", "cents", "status"),
                kind="payment",
                timeout=1,
                name="payments",
            ),
            HttpLog(self.access_log, timeout=1, name="access-log"),
        ]

    @asynccontextmanager
    async def behind_a_proxy(self) -> AsyncGenerator[None]:
        """What the tool sends goes by a proxy, which looks in the place of the log."""
        async with HttpProxy(self.tool.url, patience=0.5, name="proxy") as proxy:
            self.tool.url = proxy.url
            self._witnesses[-1] = proxy
            yield

    @property
    def witnesses(self) -> Sequence[Witness]:
        return self._witnesses

    def connected(self) -> AbstractAsyncContextManager[Any]:
        return self._connected()

    @asynccontextmanager
    async def _connected(self) -> AsyncGenerator[Any]:
        async with memory() as store, connect(Shop, self.tool, store=store) as client:
            yield client

    async def stored(self) -> Stored:
        return await anyio.to_thread.run_sync(self._stored)

    def _stored(self) -> Stored:
        found: Stored = Counter()
        away = self.database.with_suffix(".away")
        for path in (away if away.exists() else self.database,):
            with closing(sqlite3.connect(path, timeout=20)) as connection:
                found += Counter(tuple(map(str, row)) for row in connection.execute(_ROWS))
        found += Counter(("request", method, path, str(status)) for method, path, status in self.site.requests)
        return found


@asynccontextmanager
async def _open(
    tool: str, site: str, *, process: bool, proxy: bool, rows: int, cancelled: bool
) -> AsyncGenerator[ShopWorld]:
    with tempfile.TemporaryDirectory(prefix="hotplug-shop-") as name:
        folder = Path(name)
        for file in ("shop.db", "other.db"):
            with closing(sqlite3.connect(folder / file)) as connection:
                connection.executescript(SCHEMA)
        (folder / "access.log").touch()
        async with anyio.create_task_group() as tasks:
            world = ShopWorld(folder, tasks, tool, site, rows)
            if cancelled:
                world.site.sql("update orders set status = 'cancelled' where id = 7")
                world.record("order 7 was cancelled before")
            runs = _as_process(world) if process else serving(world)
            try:
                async with runs, world.behind_a_proxy() if proxy else nullcontext():
                    yield world
            finally:
                for witness in world.witnesses:
                    await witness.aclose()
                tasks.cancel_scope.cancel()


@asynccontextmanager
async def serving(world: ShopWorld, port: int = 0) -> AsyncGenerator[None]:
    """The site of a world, open until the block ends."""
    config = uvicorn.Config(
        world.site.app,
        port=port,
        log_level="critical",
        lifespan="off",
        http="h11",
        ws="none",
        timeout_graceful_shutdown=1,
    )
    started = anyio.Event()

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            started.set()

    server = Server(config)
    stopped = anyio.Event()

    async def serve() -> None:
        # `serve` would take the signals.
        await server._serve()  # pyright: ignore[reportPrivateUsage]
        stopped.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(serve)
        with anyio.fail_after(20):
            await started.wait()
        world.tool.url = f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
        try:
            yield
        finally:
            server.should_exit = True
            # Where an error ends the block, it closes its sockets all the same.
            with anyio.CancelScope(shield=True), anyio.move_on_after(5):
                await stopped.wait()


@asynccontextmanager
async def _as_process(world: ShopWorld) -> AsyncGenerator[None]:
    """The site as a process, which its plant kills."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [
        sys.executable,
        "-m",
        "benchmarks.verdicts.shop_site",
        str(world.folder),
        str(port),
        world.site.plant,
    ]
    process = await anyio.open_process(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ}
    )
    world.tool.url = f"http://127.0.0.1:{port}"
    try:
        with anyio.fail_after(30):
            while not await _listens(port):  # noqa: ASYNC110  # another process's port
                await anyio.sleep(0.05)

        async def watch() -> None:
            if await process.wait() == KILLED:
                world.record("the process was killed")

        world.tasks.start_soon(watch)
        yield
    finally:
        with anyio.CancelScope(shield=True):
            if process.returncode is None:
                process.kill()
            await process.wait()
            await process.aclose()


async def _listens(port: int) -> bool:
    try:
        stream = await anyio.connect_tcp("127.0.0.1", port)
    except OSError:
        return False
    await stream.aclose()
    return True


def shop(
    plant: str = "",
    *,
    site: str | None = None,
    process: bool = False,
    proxy: bool = False,
    rows: int = 1000,
    cancelled: bool = False,
) -> Callable[[], AbstractAsyncContextManager[World]]:
    """Makes a shop with a plant in its tool, and in its site the same or another.

    Args:
        process: The site is a process of its own.
        proxy: A proxy stands before the site, and looks in the place of the log.
        rows: How many rows the witness of the orders reads at most.
        cancelled: Order 7 was cancelled before.
    """
    return lambda: _open(
        plant,
        plant if site is None else site,
        process=process,
        proxy=proxy,
        rows=rows,
        cancelled=cancelled,
    )


def orders(summary: str) -> Selector:
    """What the witness of the orders sees."""
    return Selector("state", summary, witness="orders")


def payments(summary: str) -> Selector:
    """What the witness of the payments sees."""
    return Selector("state", summary, witness="payments")


def shows(text: str) -> Callable[[Any], Awaitable[bool]]:
    """Whether alice's page has this text, whatever its case."""

    async def look(client: Any) -> bool:
        return text in (await client.page("alice")).text

    return look


async def _order(client: Any, _: Any) -> None:
    await client.order("alice", "mug", 2)


async def _pay(client: Any, _: Any) -> None:
    await client.pay(7, 2400)


async def _cancel(client: Any, _: Any) -> None:
    await client.cancel(7)


async def _all_three(client: Any, _: Any) -> None:
    await client.order("alice", "mug", 2)
    await client.pay(7, 2400)
    await client.cancel(8)


async def _two_cancels(client: Any, _: Any) -> None:
    await client.cancel(7)
    await client.cancel(8)


def _mine(stored: Stored) -> Stored:
    """Alice's orders among them."""
    return Counter({key: count for key, count in stored.items() if key[:2] == ("order", "alice")})


_THE_ORDER = ("order", "alice", "mug", "2", "placed")
_ORDERED = (
    orders("order alice/mug/2/placed created").exactly(1),
    orders("order alice/* created").exactly(1),
    orders("order alice/* deleted").absent(),
)

ORDER = Task(
    name="order",
    words="Order two mugs for alice, once; her other orders stay as they are.",
    claims={"two mugs are ordered for alice, once, and nothing else of hers changed": _ORDERED},
    act=_order,
    holds=lambda gained, lost, _: _mine(gained) == Counter([_THE_ORDER]) and not _mine(lost),
    shows=shows("2 x mug"),
)

_PATH = "/customers/alice/orders"

ACCEPT = Task(
    name="accept",
    words="Send alice's order: the shop takes it with 201 at the first try, once.",
    claims={
        "the shop took one order of alice, at the first try": (
            net(f"POST {_PATH} 201").exactly(1),
            net(f"POST {_PATH} *").exactly(1),
        )
    },
    act=_order,
    holds=lambda gained, _, __: (
        [key for key in gained.elements() if key[:3] == ("request", "POST", _PATH)]
        == [("request", "POST", _PATH, "201")]
    ),
    shows=shows("2 x mug"),
)

_THE_PAYMENT = ("payment", "7", "2400", "captured", "")

PAY = Task(
    name="pay",
    words="Pay order 7, 24.00, and never more than once.",
    claims={
        "order 7 is paid once with 2400 cents, and no other payment was made for it": (
            payments("payment 7/2400/captured created").exactly(1),
            payments("payment 7/* created").exactly(1),
            constraint("no payment twice", net("POST /orders/7/payments 2xx").at_most(1)),
        )
    },
    act=_pay,
    holds=lambda gained, _, __: (
        Counter({key: count for key, count in gained.items() if key[:2] == ("payment", "7")}) == Counter([_THE_PAYMENT])
        and sum(count for key, count in gained.items() if key[1:3] == ("POST", "/orders/7/payments") and key[3] < "3")
        <= 1
    ),
    shows=shows("paid"),
)

CANCEL = Task(
    name="cancel",
    words="Cancel order 7, and no other.",
    claims={
        "order 7 is cancelled, and it alone": (
            orders("order7.status = cancelled").present(),
            orders("orders.cancelled = 1").present(),
        )
    },
    act=_cancel,
    holds=lambda gained, _, now: _is_cancelled(now) and _gained_cancelled(gained) == 1,
    shows=shows("cancelled"),
)


def _gained_cancelled(gained: Stored) -> int:
    return sum(count for key, count in gained.items() if key[0] == "order" and key[4] == "cancelled")


def _is_cancelled(now: Stored) -> bool:
    """Order 7 is alice's only one of a plate."""
    return [key[4] for key in now.elements() if key[:3] == ("order", "alice", "plate")] == ["cancelled"]


CANCEL_ONLY = Task(
    name="cancel-only",
    words="Cancel order 7; nothing is paid, and no order is removed.",
    claims={
        "order 7 is cancelled, and nothing was paid": (
            orders("order7.status = cancelled").present(),
            payments("payment * created").absent(),
        )
    },
    act=_cancel,
    holds=lambda gained, _, now: (
        _is_cancelled(now)
        and gained["order", "alice", "plate", "1", "cancelled"] == 1
        and not any(key[0] == "payment" for key in gained)
    ),
    shows=shows("cancelled"),
)

ALL_THREE = Task(
    name="order-pay-cancel",
    words="Order two mugs for alice, pay order 7, cancel order 8: three claims in one window.",
    claims={
        "two mugs are ordered for alice": (orders("order alice/mug/2/placed created").exactly(1),),
        "order 7 is paid once": (payments("payment 7/2400/captured created").exactly(1),),
        "order 8 is cancelled": (orders("order8.status = cancelled").present(),),
    },
    act=_all_three,
    holds=lambda gained, _, now: (
        gained[_THE_ORDER] == 1
        and gained[_THE_PAYMENT] == 1
        and gained["order", "alice", "bowl", "1", "cancelled"] == 1
    ),
    shows=shows("2 x mug"),
)

TWO_CANCELS = Task(
    name="cancel-two",
    words="Cancel orders 7 and 8: two claims on facts in one window.",
    claims={
        "order 7 is cancelled": (orders("order7.status = cancelled").present(),),
        "order 8 is cancelled": (orders("order8.status = cancelled").present(),),
    },
    act=_two_cancels,
    holds=lambda gained, _, now: (
        gained["order", "alice", "plate", "1", "cancelled"] == 1
        and gained["order", "alice", "bowl", "1", "cancelled"] == 1
    ),
    shows=shows("cancelled"),
)
