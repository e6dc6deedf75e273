"""A database as a witness: SQLite and a real PostgreSQL."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from hotplug.errors import ConfigError
from hotplug.evidence.window import closed_cleanly
from hotplug.testing import PostgresServer
from hotplug.witness import SqlQuery

pytestmark = pytest.mark.anyio

ORDERS = "select id, item, password_hash from orders"
COUNT = {"orders.count": "select count(*) from orders"}


class Shop:
    """A SQLite file with orders, written by another connection."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.url = f"sqlite:///{path}"
        self("create table orders (id integer primary key, item text, password_hash text)")

    def __call__(self, statement: str, *values: Any) -> None:
        with closing(sqlite3.connect(self.path)) as connection, connection:
            connection.execute(statement, values)


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path / "shop.db")


async def test_rows_that_come_change_and_go_are_seen_with_the_facts(shop: Shop, watch: Callable[..., Any]) -> None:
    shop("insert into orders values (1, 'tea', 'x'), (2, 'pot', 'x')")
    orders = SqlQuery(shop.url, query=ORDERS, key="id", kind="orders", facts=COUNT)
    at = await watch(orders)
    assert [one.summary for one in await orders.before(at.window)] == ["orders.count = 2"]
    assert await at.seen() == ["orders.count = 2"]
    shop("insert into orders values (42, 'cup', 'secret-hash')")
    shop("update orders set item = 'kettle' where id = 2")
    shop("delete from orders where id = 1")
    first = await at.observed()
    assert [one.summary for one in first] == [
        "orders 1 deleted",
        "orders 2 updated",
        "orders 42 created",
        "orders.count = 2",
    ]
    assert first[2].value == {"id": 42, "item": "cup", "password_hash": "[redacted]"}
    assert first[3].value == 2
    assert await at.observed() == first
    assert await at.gaps() == [("redacted", None)]
    assert closed_cleanly(await at.close())
    shop("delete from orders")
    assert await at.observed() == first
    await orders.aclose()


async def test_what_came_and_went_between_looks_stays_seen(shop: Shop, watch: Callable[..., Any]) -> None:
    at = await watch(SqlQuery(shop.url, query=ORDERS, key="id", kind="orders"))
    shop("insert into orders values (7, 'tea', '')")
    assert await at.seen() == ["orders 7 created"]
    shop("delete from orders")
    assert await at.seen() == ["orders 7 created", "orders 7 deleted"]


async def test_rows_of_one_key_are_counted(shop: Shop, watch: Callable[..., Any]) -> None:
    at = await watch(SqlQuery(shop.url, query="select item, id from orders", key="item", kind="orders"))
    shop("insert into orders values (1, 'tea', ''), (2, 'tea', '')")
    assert await at.seen() == ["orders tea created", "orders tea created"]


async def test_a_change_of_a_sensitive_column_is_seen_and_not_shown(shop: Shop, watch: Callable[..., Any]) -> None:
    shop("insert into orders values (1, 'tea', 'old-hash')")
    orders = SqlQuery(shop.url, query=ORDERS, key="id", kind="orders", sensitive=["item"])
    at = await watch(orders)
    shop("update orders set password_hash = 'new-hash', item = 'gold'")
    (one,) = await at.observed()
    assert one.summary == "orders 1 updated"
    assert one.value == {"id": 1, "item": "[redacted]", "password_hash": "[redacted]"}


async def test_only_named_columns_are_shown(shop: Shop, watch: Callable[..., Any]) -> None:
    at = await watch(SqlQuery(shop.url, query=ORDERS, kind="orders", columns=["item"]))
    shop("insert into orders values (1, 'tea', '')")
    (one,) = await at.observed()
    assert (one.summary, one.value) == ("orders 1 created", {"item": "tea"})


async def test_more_rows_than_the_limit_are_said_and_nothing_is_guessed(shop: Shop, watch: Callable[..., Any]) -> None:
    shop("insert into orders values (2, 'b', ''), (3, 'c', '')")
    query = "select id, item from orders order by id"
    at = await watch(SqlQuery(shop.url, query=query, kind="orders", limit=2))
    assert await at.gaps() == []
    shop("insert into orders values (1, 'a', '')")
    assert await at.seen() == ["orders 1 created"]
    assert await at.gaps() == [("buffer-truncated", "state")]
    shop("delete from orders where id = 1")
    assert await at.seen() == ["orders 1 created", "orders 1 deleted"]
    assert await at.gaps() == []
    shop("insert into orders values (0, 'z', ''), (1, 'a', '')")
    at = await watch(SqlQuery(shop.url, query=query, kind="orders", limit=2))
    shop("delete from orders where id = 0")
    assert await at.seen() == []
    assert await at.gaps() == [("buffer-truncated", "state"), ("buffer-truncated", "state")]


async def test_a_file_that_is_not_there_is_a_blind_spot_and_is_not_made(
    tmp_path: Path, watch: Callable[..., Any]
) -> None:
    orders = SqlQuery(f"sqlite:///{tmp_path}/no.db", query=ORDERS, facts=COUNT)
    at = await watch(orders)
    assert await orders.before(at.window) == ()
    assert await at.seen() == []
    assert set(await at.gaps()) == {("channel-unobserved", "state")}
    assert (await orders.coverage(at.window)).observed == ()
    assert not closed_cleanly(await at.close())
    assert list(tmp_path.iterdir()) == []


async def test_a_database_that_was_away_at_the_opening_stays_a_gap(shop: Shop, watch: Callable[..., Any]) -> None:
    shop("insert into orders values (1, 'tea', '')")
    away = shop.path.rename(shop.path.with_suffix(".away"))
    at = await watch(SqlQuery(shop.url, query=ORDERS, kind="orders", facts=COUNT))
    away.rename(shop.path)
    assert await at.seen() == ["orders.count = 1"]
    assert await at.gaps() == [("channel-unobserved", "state"), ("redacted", None)]


async def test_a_locked_database_is_a_blind_spot(shop: Shop, watch: Callable[..., Any]) -> None:
    with closing(sqlite3.connect(shop.path, isolation_level=None)) as other:
        at = await watch(SqlQuery(shop.url, query=ORDERS, timeout=0.3))
        other.execute("begin exclusive")
        assert await at.seen() == []
        assert ("channel-unobserved", "state") in await at.gaps()
        other.execute("rollback")
    assert await at.seen() == []
    assert await at.gaps() == []


async def test_a_query_that_takes_too_long_is_a_blind_spot_and_is_ended(shop: Shop, watch: Callable[..., Any]) -> None:
    endless = "with recursive n(i) as (select 1 union all select i + 1 from n) select max(i) from n"
    at = await watch(SqlQuery(shop.url, facts={"never": endless}, timeout=0.2))
    assert await at.seen() == []
    (opening, last) = await at.spots()
    assert "no answer within 0.2 s" in opening.detail
    assert last.channel == "state"


async def test_a_wrong_query_says_what_the_database_said(shop: Shop, watch: Callable[..., Any]) -> None:
    at = await watch(SqlQuery(shop.url, query="select id from order_s", kind="orders"))
    assert "no such table: order_s" in (await at.spots())[0].detail
    at = await watch(SqlQuery(shop.url, query=ORDERS, key="nr", kind="orders"))
    assert "no column 'nr', but id, item" in (await at.spots())[0].detail


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"url": "sqlite://", "query": ORDERS}, "in memory"),
        ({"url": "nonsense", "query": ORDERS}, "no database URL"),
        ({"url": "oracle+unheard://u:S3cr3t@h/db", "query": ORDERS}, "can't be used"),
        ({"query": "delete from orders"}, "no select"),
        ({"query": "/* select */ update orders set id = 1"}, "no select"),
        ({"query": None}, "sees nothing"),
        ({"query": ORDERS, "key": "password_hash"}, "sensitive"),
        ({"query": ORDERS, "key": "item", "sensitive": ["item"]}, "sensitive"),
        ({"facts": {"user.password": "select 1"}}, "sensitive"),
        ({"query": ORDERS, "kind": "two words"}, "no kind"),
        ({"query": ORDERS, "name": "Orders DB"}, "can't be called"),
    ],
)
def test_what_can_not_be_used_is_refused(given: dict[str, Any], message: str, shop: Shop) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        SqlQuery(**{"url": shop.url, **given})
    assert "S3cr3t" not in str(caught.value)


async def test_a_cte_that_writes_is_refused_by_sqlite(shop: Shop, watch: Callable[..., Any]) -> None:
    shop("insert into orders values (1, 'tea', '')")
    at = await watch(SqlQuery(shop.url, facts={"x": "with a as (select 1) select 1"}))
    assert await at.seen() == ["x = 1"]
    at = await watch(SqlQuery(shop.url, query="with a as (select 1) delete from orders returning id"))
    assert "readonly" in (await at.spots())[0].detail
    assert sqlite3.connect(shop.path).execute("select count(*) from orders").fetchone() == (1,)


@pytest.mark.real
async def test_postgres_is_looked_at_in_one_read_only_transaction(
    server: PostgresServer, watch: Callable[..., Any]
) -> None:
    await server.execute("create table orders (id serial primary key, item text, total numeric, paid jsonb)")
    orders = SqlQuery(
        server.url,
        query="select id, item, total, paid from orders where item like :item",
        parameters={"item": "t%"},
        kind="orders",
        facts={"orders.total": "select sum(total) from orders", "orders.count": "select count(*) from orders"},
        name="orders-db",
    )
    at = await watch(orders)
    assert [one.summary for one in await orders.before(at.window)] == ["orders.total = null", "orders.count = 0"]
    await server.execute(
        """insert into orders (item, total, paid) values ('tea', 12.50, '{"token": "T0k3n", "by": "me"}')"""
    )
    await server.execute("insert into orders (item, total) values ('cup', 3)")
    seen = await at.observed()
    assert [one.summary for one in seen] == ["orders 1 created", "orders.total = 15.5", "orders.count = 2"]
    assert seen[0].value == {"id": 1, "item": "tea", "total": 12.5, "paid": {"token": "[redacted]", "by": "me"}}
    assert seen[1].value == 15.5
    assert server.password not in repr(orders.identity())
    assert orders.locator == f"postgresql://hotplug:***@127.0.0.1:{server.port}/shop"
    assert orders.can_prove_anything()
    assert orders.provenance("state")[2] == "authoritative"
    await orders.aclose()

    writes = SqlQuery(server.url, query="with x as (delete from orders returning id) select id from x", kind="orders")
    at = await watch(writes)
    assert "read-only transaction" in (await at.spots())[0].detail
    assert await server.execute("select count(*) from orders") == [(2,)]


@pytest.mark.real
async def test_a_slow_or_unreachable_postgres_is_a_blind_spot_without_the_password(
    server: PostgresServer, watch: Callable[..., Any]
) -> None:
    slow = await watch(SqlQuery(server.url, facts={"slow": "select pg_sleep(30)::text"}, timeout=0.3))
    assert [one.channel for one in await slow.spots()] == ["state"]
    wrong = server.url.replace(server.password, "W0rngPassw0rd")
    for url, reason in (
        (wrong, "password authentication failed"),
        (f"postgresql://u:{server.password}@127.0.0.1:1/db?sslpassword=S3cr3tValue", "refused"),
        (f"postgresql+asyncpg://u:{server.password}@127.0.0.1:1/db", "refused"),
    ):
        at = await watch(SqlQuery(url, facts={"one": "select 1"}))
        assert await at.seen() == []
        said = "\n".join(one.detail for one in await at.spots())
        assert reason in said
        for secret in (server.password, "W0rngPassw0rd", "S3cr3tValue"):
            assert secret not in said


@pytest.mark.real
async def test_a_locked_table_of_postgres_is_a_blind_spot(server: PostgresServer, watch: Callable[..., Any]) -> None:
    import psycopg

    await server.execute("create table held (id integer)")
    at = await watch(SqlQuery(server.url, query="select id from held", kind="held", timeout=0.5))
    async with await psycopg.AsyncConnection.connect(server.url) as other:
        await other.execute("lock table held in access exclusive mode")
        assert await at.seen() == []
        assert await at.gaps() == [("channel-unobserved", "state")]
    assert await at.seen() == []
    assert await at.gaps() == []


@pytest.mark.parametrize(
    ("gone", "come", "gone_as", "come_as"),
    [
        (b"\x00\x01", b"\x00\x02", "0001", "0002"),
        ("", " ", '""', "%20"),
        ("a\nb", "a = b", "a%0Ab", "a %3D b"),
        (None, 1.5, "null", "1.5"),
        (float("inf"), float("-inf"), "inf", "-inf"),
    ],
)
async def test_keys_of_any_kind_tell_rows_apart(
    gone: Any, come: Any, gone_as: str, come_as: str, shop: Shop, watch: Callable[..., Any]
) -> None:
    shop("create table things (ref, note)")
    shop("insert into things values (?, 'x')", gone)
    at = await watch(SqlQuery(shop.url, query="select ref, note from things", kind="thing"))
    shop("update things set ref = ?", come)
    assert await at.seen() == [f"thing {gone_as} deleted", f"thing {come_as} created"]


async def test_a_number_that_json_does_not_have_is_shown_as_text(shop: Shop, watch: Callable[..., Any]) -> None:
    at = await watch(SqlQuery(shop.url, facts={"orders.most": "select 1e308 * 10"}))
    (fact,) = await at.observed()
    assert (fact.summary, fact.value) == ("orders.most = inf", "inf")


@pytest.mark.parametrize(
    "given",
    [
        {"query": "select password_hash, id from orders"},
        {"query": "select id from orders", "key": "number"},
        {"query": "select id from orders", "limit": 1},
        {"facts": {"orders.one": "select id from orders"}},
        {"facts": {"orders.one": "select id, item from orders"}},
    ],
)
async def test_a_look_that_breaks_off_leaves_no_lock(given: Any, shop: Shop, watch: Callable[..., Any]) -> None:
    for number in range(5):
        shop("insert into orders values (?, 'tea', '')", number)
    witness = SqlQuery(shop.url, **given)
    at = await watch(witness)
    shop("delete from orders where id > 3")
    await at.observed()
    shop("delete from orders where id > 2")
    assert await at.gaps()


async def test_the_parts_of_a_key_stay_apart(shop: Shop, watch: Callable[..., Any]) -> None:
    shop("create table places (folder, file, note)")
    shop("insert into places values ('a/b', 'c', '')")
    at = await watch(SqlQuery(shop.url, query="select * from places", key=["folder", "file"], kind="place"))
    shop("update places set folder = 'a', file = 'b/c'")
    assert await at.seen() == ["place a%2Fb/c deleted", "place a/b%2Fc created"]
