"""The shop: a small web application over a SQLite file, with an access log and a page, and with what is planted in it.

`python -m benchmarks.verdicts.shop_site FOLDER PORT PLANT` runs it as a process of its own, which a plant may kill.
"""

from __future__ import annotations

import os
import sqlite3
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import anyio
import anyio.abc
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from benchmarks.verdicts.case import AFTERWARDS

__all__ = ["KILLED", "SCHEMA", "Site"]

KILLED: Final = 70
"""The exit code of a site that a plant has killed."""

SCHEMA: Final = """
create table orders (id integer primary key, customer text, item text, quantity integer, status text, token text);
create table payments (id integer primary key, purchase integer, cents integer, status text);
create table stock (item text primary key, quantity integer);
insert into stock values ('mug', 40), ('plate', 40), ('bowl', 40);
insert into orders (id, customer, item, quantity, status) values
  (7, 'alice', 'plate', 1, 'open'), (8, 'alice', 'bowl', 1, 'open'), (9, 'bob', 'mug', 3, 'open');
"""

Record = Callable[[str], None]
Handler = Callable[[Request], Awaitable[Response]]


class Site:
    """The application.

    Args:
        folder: Holds `shop.db`, `other.db` (another branch's shop) and `access.log`.
        plant: What is wrong with it; empty where nothing is.
        record: Is told when the plant took.
        late: Seconds after which what is late is done.
        slow: Seconds after which what is slow, and in time, is done.
        tasks: Does what is done after the answer.
    """

    def __init__(
        self,
        folder: Path,
        plant: str,
        record: Record,
        *,
        late: float,
        slow: float,
        tasks: anyio.abc.TaskGroup | None = None,
    ) -> None:
        self.folder, self.plant, self.record = folder, plant, record
        self.late, self.slow, self.tasks = late, slow, tasks
        self.requests: list[tuple[str, str, int]] = []
        """Every request that was answered: the site's own memory, which is not the access log."""
        self._failed = False
        self.app = Starlette(
            routes=[
                Route("/customers/{name}/orders", self._logged(self._order), methods=["POST"]),
                Route("/orders/{id:int}/payments", self._logged(self._pay), methods=["POST"]),
                Route("/orders/{id:int}/cancel", self._logged(self._cancel), methods=["POST"]),
                Route("/customers/{name}/page", self._logged(self._page)),
                Route("/preview", self._logged(self._preview)),
                Route("/sign-in", self._logged(self._sign_in)),
            ]
        )

    def sql(self, text: str, *values: Any, file: str = "shop.db", timeout: float = 2.0) -> list[tuple[Any, ...]]:
        """One statement in a transaction of its own; of a file that is there, for none is made."""
        address = f"file:{self.folder / file}?mode=rw"
        with closing(sqlite3.connect(address, uri=True, timeout=timeout)) as connection, connection:
            return connection.execute(text, values).fetchall()

    def _is(self, *plants: str) -> bool:
        if self.plant not in plants:
            return False
        self.record(self.plant)
        return True

    def _logged(self, handler: Handler) -> Handler:
        async def answer(request: Request) -> Response:
            response = await handler(request)
            self.requests.append((request.method, request.url.path, response.status_code))
            self.log(request.method, request.url.path, response.status_code)
            return response

        return answer

    def log(self, method: str, path: str, status: int) -> None:
        """A line of the access log, as a web server writes it."""
        when = time.strftime("%d/%b/%Y:%H:%M:%S +0000", time.gmtime())
        with (self.folder / "access.log").open("a", encoding="utf-8") as file:
            file.write(f'127.0.0.1 - - [{when}] "{method} {path} HTTP/1.1" {status} 12 "-" "-"\n')

    def _after(self, seconds: float, do: Callable[[], Any]) -> None:
        """Do something once the answer is out."""

        async def later() -> None:
            await anyio.sleep(seconds)
            do()

        assert self.tasks is not None
        self.tasks.start_soon(later)

    def _die(self) -> None:
        os._exit(KILLED)

    def insert(
        self, customer: str, item: str, quantity: int, *, status: str = "placed", file: str = "shop.db", token: str = ""
    ) -> int:
        """A new order."""
        text = "insert into orders (customer, item, quantity, status, token) values (?, ?, ?, ?, ?) returning id"
        return int(self.sql(text, customer, item, quantity, status, token, file=file)[0][0])

    async def _order(self, request: Request) -> Response:
        body = await request.json()
        name, item, quantity = request.path_params["name"], body["item"], int(body["quantity"])
        token = request.headers.get("idempotency-key", "")
        if token and (known := self.sql("select id from orders where token = ?", token)):
            return _placed(known[0][0])
        odd = await self._odd_order(name, item, quantity, token)
        if odd is not None:
            return odd
        number = self.insert(name, item, quantity, token=token)
        return self._after_order(number, name, item, quantity)

    async def _odd_order(self, name: str, item: str, quantity: int, token: str) -> Response | None:
        """What a plant does in the place of an order; None where it is placed as asked."""
        if self._is("stores nothing"):
            return _placed(41)
        if self._is("fails in the body"):
            return JSONResponse({"status": "error", "message": "out of stock"})
        if self._is("accepts and forgets"):
            return JSONResponse({"id": 41, "status": "queued"}, 202)
        if self._is("accepts and is late"):
            self._after(self.late, lambda: self.insert(name, item, quantity))
            return JSONResponse({"id": 41, "status": "queued"}, 202)
        if self.plant == "accepts and is slow":
            self._after(self.slow, lambda: self.insert(name, item, quantity))
            return JSONResponse({"id": 41, "status": "queued"}, 202)
        if self._is("answers too late"):
            await anyio.sleep(self.late)
        if self._is("redirects to sign in"):
            return RedirectResponse("/sign-in", 303)
        if self._is("dies before it writes"):
            self._die()
        if self._is("dies after it wrote"):
            self.insert(name, item, quantity)
            self._die()
        if self._is("answers, then dies with the write in memory"):
            self._after(0.05, self._die)
            return _placed(41)
        if self._is("gives the order of before"):
            return _placed(self.sql("select id from orders where customer = ?", name)[0][0])
        if self._is("overwrites the order of before"):
            self.sql("update orders set item = ?, quantity = ?, status = 'placed' where id = 7", item, quantity)
            return _placed(7)
        if self._is("wrong item"):
            return _placed(self.insert(name, "plate", quantity))
        if self._is("wrong quantity"):
            return _placed(self.insert(name, item, quantity + 1))
        if self._is("wrong customer"):
            return _placed(self.insert("bob", item, quantity))
        if self._is("another branch"):
            return _placed(self.insert(name, item, quantity, file="other.db"))
        if self._is("stored as failed"):
            return _placed(self.insert(name, item, quantity, status="failed"))
        if self._is("splits it"):
            return _placed(max(self.insert(name, item, 1) for _ in range(quantity)))
        if self._is("fails after it wrote"):
            self.insert(name, item, quantity)
            return JSONResponse({"error": "mail server unreachable"}, 500)
        if self._is("fails"):
            return JSONResponse({"error": "database is full"}, 500)
        if self.plant in ("loses the first answer", "fails the first time") and not self._failed:
            self._failed = True
            self.record(self.plant)
            if self.plant == "loses the first answer":
                self.insert(name, item, quantity, token=token)
            return JSONResponse({"error": "bad gateway"}, 502)
        return None

    def _after_order(self, number: int, name: str, item: str, quantity: int) -> Response:
        if self._is("stores it twice"):
            self.insert(name, item, quantity)
        if self._is("stores it again after the answer"):
            self._after(0.15, lambda: self.insert(name, item, quantity))
        if self._is("adds another"):
            self.insert(name, "gift wrap", 1)
        if self._is("rolls back after the answer"):
            self._after(0.15, lambda: self.sql("delete from orders where id = ?", number))
        if self._is("stores it again a while later"):
            self._after(AFTERWARDS, lambda: self.insert(name, item, quantity))
        if self._is("rolls back a while later"):
            self._after(AFTERWARDS, lambda: self.sql("delete from orders where id = ?", number))
        if self._is("changes it after the answer"):
            self._after(0.15, lambda: self.sql("update orders set quantity = 1 where id = ?", number))
        if self._is("takes an older order away"):
            self.sql("delete from orders where id = 8")
        return _placed(number)

    async def _pay(self, request: Request) -> Response:
        number, cents = int(request.path_params["id"]), int((await request.json())["cents"])

        def paid(purchase: int = number, amount: int = cents, status: str = "captured") -> int:
            text = "insert into payments (purchase, cents, status) values (?, ?, ?) returning id"
            return int(self.sql(text, purchase, amount, status)[0][0])

        if self._is("declines in the body"):
            return JSONResponse({"status": "declined"})
        if self._is("declines"):
            return JSONResponse({"error": "card declined"}, 402)
        if self._is("captures nothing"):
            return JSONResponse({"id": 3}, 201)
        if self._is("only authorizes"):
            return JSONResponse({"id": paid(status="authorized")}, 201)
        if self._is("takes another amount"):
            return JSONResponse({"id": paid(amount=cents // 100)}, 201)
        if self._is("pays another order"):
            return JSONResponse({"id": paid(purchase=8)}, 201)
        if self._is("captures twice"):
            paid()
        if self._is("captures late"):
            self._after(self.late, paid)
            return JSONResponse({"id": 3}, 202)
        if self.plant == "captures slowly":
            self._after(self.slow, paid)
            return JSONResponse({"id": 3}, 202)
        if self.plant == "loses the first answer" and not self._failed:
            self._failed = True
            self.record(self.plant)
            paid()
            return JSONResponse({"error": "gateway timeout"}, 504)
        made = paid()
        if self._is("captures again a while later"):
            self._after(AFTERWARDS, paid)
        if self._is("refunds at once"):
            self._after(0.15, lambda: self.sql("update payments set status = 'refunded' where id = ?", made))
        return JSONResponse({"id": made}, 201)

    async def _cancel(self, request: Request) -> Response:
        number = int(request.path_params["id"])
        done = JSONResponse({"id": number, "status": "cancelled"})

        def cancel(one: int = number, status: str = "cancelled") -> None:
            self.sql("update orders set status = ? where id = ?", status, one)

        if self._is("cancels nothing"):
            return done
        if self._is("cancels another"):
            cancel(8)
            return done
        if self._is("cancels all"):
            self.sql("update orders set status = 'cancelled'")
            return done
        if self._is("cancels late"):
            self._after(self.late, cancel)
            return done
        if self.plant == "cancels slowly":
            self._after(self.slow, cancel)
            return done
        if self._is("stays at cancelling"):
            cancel(status="cancelling")
            return done
        if self._is("removes it"):
            self.sql("delete from orders where id = ?", number)
            return done
        if self._is("cancels and fails"):
            cancel()
            return JSONResponse({"error": "mail server unreachable"}, 500)
        cancel()
        if self._is("opens it again"):
            self._after(0.15, lambda: cancel(status="open"))
        return done

    async def _page(self, request: Request) -> Response:
        """What the customer sees."""
        name = request.path_params["name"]
        if self._is("shows a page of its own mind"):
            return PlainTextResponse("Thank you! Order placed: 2 x mug. Order 7: paid. Order 7: cancelled.")
        try:
            # Without waiting: the benchmark's own event loop serves it.
            rows = self.sql(
                "select id, item, quantity, status from orders where customer = ? order by id", name, timeout=0
            )
            found = self.sql("select purchase from payments where status <> 'refunded'", timeout=0)
        except sqlite3.Error as error:
            return PlainTextResponse(f"Something went wrong: {error}", 500)
        paid = {one for (one,) in found}
        lines = [
            f"Order {number}: {quantity} x {item}, {status}{', paid' if number in paid else ''}"
            for number, item, quantity, status in rows
        ]
        return PlainTextResponse("\n".join(lines))

    async def _preview(self, request: Request) -> Response:
        return JSONResponse({"id": 0, "status": "preview"})

    async def _sign_in(self, request: Request) -> Response:
        return JSONResponse({"id": 0, "message": "Welcome back! Please sign in."})


def _placed(number: int) -> Response:
    return JSONResponse({"id": number, "status": "placed"}, 201)


def main() -> None:
    """Serve until killed."""
    import uvicorn

    folder, port, plant = sys.argv[1:4]
    site = Site(Path(folder), plant, lambda _: None, late=60, slow=0.4)

    async def serve() -> None:
        config = uvicorn.Config(site.app, port=int(port), log_level="critical", http="h11", ws="none", lifespan="off")
        async with anyio.create_task_group() as tasks:
            site.tasks = tasks
            await uvicorn.Server(config).serve()
            tasks.cancel_scope.cancel()

    anyio.run(serve)


if __name__ == "__main__":
    main()
