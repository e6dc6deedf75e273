"""A connection as what is watched: its own senses, looks after acting, causes, contradictions, replacements."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

import pytest

from hotplug import connect, net, sense, signal, state
from hotplug.errors import InvalidArgument, NotFound
from hotplug.evidence import verify_run
from hotplug.profile import Event, Model, Profile, Receipt, Sense, event, operation, read, receipt

from .eyes import FakeEyes

pytestmark = pytest.mark.anyio

PLACED = net("POST /orders 201").exactly(1)


class Placed(Model):
    receipt: Receipt = receipt()


class Till(Model):
    orders: int
    total: str
    note: str | None = None


class Stock(Model):
    left: int

    def summaries(self) -> list[str]:
        return [f"stock.left = {self.left}"]


class Shop(Profile, name="webshop", version="1.0.0", senses={"x-bell": Sense("independent", "consequence")}):
    """A shop on the web. Ordering is its core: without that it is a shop window."""

    @operation("webshop.order", effects=True)
    async def order(self, count: int = 1) -> Placed:
        """Order something."""
        ...

    @operation("webshop.lose", effects=True)
    async def lose(self) -> Placed:
        """Fail."""
        ...

    @read("webshop.till", sense="state", look="effect")
    async def till(self) -> Till:
        """Give what the till holds."""
        ...

    @read("webshop.stock", sense="state", look="effect")
    async def stock(self) -> Stock:
        """Give what is left."""
        ...

    @read("webshop.order.get", sense="state", look="effect")
    async def one(self, number: int) -> Till:
        """Give one order: a look that needs an argument, so it is none."""
        ...

    @event("webshop.request", sense="net", replay="live", required=False, without="Nobody sees its requests.")
    class Request(Event):
        """A request went out and was answered."""

        line: str

        def summary(self) -> str:
            return self.line

    @event("webshop.rang", sense="x-bell", replay="live", required=False, without="Nobody hears it.")
    class Rang(Event):
        """The bell rang."""

        def summary(self) -> str:
            return "bell rang created"


class WebShop(Shop):
    """Counts its orders and tells of its requests."""

    emits = frozenset({"webshop.request", "webshop.rang"})
    instance = "shop-1"

    def __init__(self) -> None:
        self.orders = 0

    async def order(self, count: int = 1) -> Placed:
        for _ in range(count):
            self.orders += 1
            await self.emit(Shop.Request(line="POST /orders 201"))
        return Placed()

    async def lose(self) -> Placed:
        raise NotFound("nothing to lose")

    async def till(self) -> Till:
        return Till(orders=self.orders, total=f"{self.orders * 10} EUR")

    async def stock(self) -> Stock:
        return Stock(left=10 - self.orders)

    async def one(self, number: int) -> Till:
        raise AssertionError("a look needs no argument")  # pragma: no cover


@pytest.fixture
async def shop() -> AsyncGenerator[Any]:
    async with connect(Shop, WebShop()) as connected:
        yield connected


async def test_a_subject_with_a_sense_that_is_independent_needs_no_witness(shop: Any) -> None:
    async with shop.claim("the order is placed", PLACED) as claim:
        await shop.order()
    assert (claim.verdict.value, claim.verdict.ground) == ("yes", "proved")
    assert verify_run(claim.run) == ()


async def test_a_double_submit_against_a_claim_of_one_is_no(shop: Any) -> None:
    async with shop.claim("the order is placed", PLACED) as claim:
        await shop.order(count=2)
    assert (claim.verdict.value, claim.verdict.ground) == ("no", "assertion-failed")


async def test_what_an_action_caused_is_bound_to_it_by_its_id(shop: Any) -> None:
    async with shop.claim("this order is placed", PLACED.selector.mine().exactly(1)) as claim:
        made = await shop.order()
    (action,) = claim.run.actions
    assert action.id == made.receipt.action_id
    assert [(one.observation.model_extra or {})["actionId"] for one in claim.evidence] == [action.id]
    assert claim.verdict.ground == "proved"


async def test_what_others_cause_in_the_window_is_not_ours(shop: Any) -> None:
    from hotplug.connect import link_of

    runtime: Any = link_of(shop).channel
    async with shop.claims(within="200ms", quiet="50ms") as window:
        mine = window.claim("this order is placed", PLACED.selector.mine().exactly(1))
        anybodys = window.claim("an order is placed", PLACED)
        await shop.order()
        await runtime.runtime.call("webshop.order", {})
    assert mine.verdict.value == "yes"
    assert anybodys.verdict.value == "no"


async def test_looks_follow_an_action_and_become_facts(shop: Any) -> None:
    async with shop.claims(within="200ms", quiet="50ms") as window:
        counted = window.claim("the till counts it", state("webshop.till.orders = 1").present())
        paid = window.claim("it is paid", state("webshop.till.total = 10 EUR").present())
        left = window.claim("there is one less", state("stock.left = 9").present())
        await shop.order()
    assert {one.verdict.ground for one in (counted, paid, left)} == {"no-independent-consequence"}
    assert all(len(one.evidence) == 1 for one in (counted, paid, left))
    assert {one.provenance.method for one in counted.evidence} == {"webshop.till"}
    assert verify_run(counted.run) == ()


async def test_a_fact_that_only_the_subject_shows_proves_nothing(shop: Any) -> None:
    eyes = FakeEyes(senses={"log": {"independence": "independent", "grade": "context"}})
    async with shop.with_witness(eyes).claim("none is sold", state("webshop.till.orders = 0").present()) as claim:
        with pytest.raises(NotFound):
            await shop.lose()
    assert [one.observation.summary for one in claim.evidence] == ["webshop.till.orders = 0"]
    assert claim.verdict.ground == "no-independent-consequence"


async def test_a_sense_of_the_profiles_own_is_worth_what_the_profile_says(shop: Any) -> None:
    class Ringing(WebShop):
        async def order(self, count: int = 1) -> Placed:
            await self.emit(Shop.Rang())
            return Placed()

    rings = sense("x-bell", "bell rang created").exactly(1)
    async with connect(Shop, Ringing()) as ringing, ringing.claim("the bell rings", rings) as claim:
        await ringing.order()
    assert claim.verdict.ground == "proved"


async def test_one_action_whose_mutation_shows_twice_contradicts_itself() -> None:
    class Echoing(WebShop):
        async def order(self, count: int = 1) -> Placed:
            await self.emit(Shop.Rang())
            await self.emit(Shop.Rang())
            return Placed()

    async with connect(Shop, Echoing()) as echoing:
        rings = sense("x-bell", "bell rang created").at_least(1)
        async with echoing.claim("the bell rings", rings, quiet="50ms") as claim:
            await echoing.order()
    assert (claim.verdict.value, claim.verdict.ground) == ("no", "contradicted")
    assert [one.kind for one in claim.run.anomalies] == ["duplicated-effect"]
    assert verify_run(claim.run) == ()


async def test_a_subject_that_was_replaced_in_between_leaves_everything_unknown(shop: Any) -> None:
    server = WebShop()
    async with connect(Shop, server) as connected, connected.claim("the order is placed", PLACED) as claim:
        await connected.order()
        server.instance = "shop-2"
    assert (claim.verdict.value, claim.verdict.ground) == ("unknown", "coverage-impeached")
    assert [one.kind for one in claim.run.anomalies] == ["evidence-superseded"]
    assert "shop-2" in str(claim)


async def test_a_refused_operation_is_recorded_as_refused_with_the_protocols_reason(shop: Any) -> None:
    claims: list[Any] = []
    with pytest.raises(NotFound):  # noqa: PT012  # the block is what is tested
        async with shop.claim("the order is placed", PLACED, within="50ms", quiet="10ms") as claim:
            claims.append(claim)
            await shop.lose()
    (receipt_,) = claims[0].run.receipts
    assert (receipt_.dispatched, receipt_.refused.reason, receipt_.refused.detail) == (
        False,
        "unresolved",
        "nothing to lose",
    )
    assert claims[0].verdict.value == "no"


async def test_a_sense_that_the_subject_does_not_have_is_said(shop: Any) -> None:
    async with shop.claim("it tells", signal("order:placed").present(), within="50ms", quiet="10ms") as claim:
        await shop.order()
    assert claim.verdict.ground == "channel-not-observed"
    assert "signal" in claim.next_move


async def test_a_blank_name_of_a_sense_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="no sense"):
        sense("smell")


async def test_two_connections_to_one_server_object_are_both_told_until_they_end() -> None:
    server = WebShop()
    async with connect(Shop, server) as first:
        async with connect(Shop, server) as second:
            for acting in (first, second):
                async with acting.claim("the order is placed", PLACED, within="300ms") as claim:
                    await acting.order()
                assert claim.verdict.ground == "proved"
        async with first.claim("the order is placed", PLACED, within="300ms") as last:
            await first.order()
    assert last.verdict.ground == "proved"
