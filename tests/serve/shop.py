"""A small profile with a part of every kind, and a server of it that fails as it is told to."""

from __future__ import annotations

from typing import Annotated, Any, NotRequired

import anyio
from typing_extensions import TypedDict, Unpack

from hotplug.errors import ConnectionFailed
from hotplug.profile import (
    Event,
    Extension,
    Facet,
    Model,
    Profile,
    Receipt,
    Ref,
    Sensitive,
    event,
    extends,
    in_facet,
    operation,
    read,
    receipt,
    reveal,
)
from hotplug.serve import current_call

SECRET = "hunter2-in-the-text-of-an-exception"


class Item(Ref, kind="shop.item"):
    """Something on a shelf."""


class Shelf(Model):
    items: list[Item]


class Bought(Model):
    item: Item
    total: int
    wrapped: Annotated[bool | None, in_facet("gifts")] = None
    receipt: Receipt = receipt()


class Done(Model):
    receipt: Receipt = receipt()


class Seen(Model):
    words: str


class Line(Model):
    text: str
    size: int | None = None


class Wishes(TypedDict):
    card: NotRequired[Sensitive[str]]
    lines: NotRequired[list[Line]]
    tags: NotRequired[list[str]]
    anything: NotRequired[str | dict[str, object]]
    gift_wrap: NotRequired[Annotated[bool, in_facet("gifts")]]


class Options(TypedDict, total=False):
    ribbon: str
    bow: Annotated[str, in_facet("gifts")]


class Shop(
    Profile,
    name="shop",
    version="1.2.0",
    facets={"gifts": Facet("1.0.0", "Things are wrapped.", "Nothing is wrapped.")},
):
    """Shops: they have things, and one can buy them. For tests."""

    @read("shop.items", sense="state", look="turn", eager=True)
    async def items(self, query: str | None = None) -> Shelf:
        """List what there is."""
        ...

    @operation("shop.buy", effects=True, once=True, eager=True)
    async def buy(self, item: Item, count: int, **wishes: Unpack[Wishes]) -> Bought:
        """Buy some of a thing."""
        ...

    @operation("shop.ring", effects=True)
    async def ring(self) -> Done:
        """Ring the bell; a second time rings again."""
        ...

    @operation("shop.demolish", effects=True, once=True, guarded=True)
    async def demolish(self) -> Done:
        """Tear it down."""
        ...

    @operation("shop.slow", effects=True, timeout_ms=50)
    async def slow(self) -> Done:
        """Take longer than it may."""
        ...

    @operation("shop.refund", effects=True, required=False, without="What was bought stays bought.")
    async def refund(self, item: Item) -> Done:
        """Give the money back."""
        ...

    @operation("shop.wrap", effects=True, facet="gifts")
    async def wrap(self, item: Item) -> Done:
        """Wrap a thing that was bought."""
        ...

    @operation("shop.set")
    async def arrange(self, changes: Options, notes: list[Line] | None = None) -> Seen:
        """Arrange the window, and change nothing else."""
        ...

    @event("shop.sold", sense="state", replay="durable")
    class Sold(Event):
        """Something was sold."""

        item: Item
        count: int

        class Filter(Event.Filter):
            count: int | None = None

        def summary(self) -> str:
            return f"shop.item {self.item} removed"

    @event("shop.ding", sense="signal", replay="live")
    class Ding(Event):
        """The bell rang."""

        loud: bool


class Points(Extension, id="com.example.points", version="1.1.0", requires={"shop": "^1"}):
    """Loyalty points."""

    @extends("shop.buy")
    class Earn(Model):
        """Which card earns them."""

        number: int | None = None
        line: Line | None = None
        pin: Sensitive[str] | None = None

    @operation("com.example.points.spend", effects=True)
    async def spend(self, points: int) -> Done:
        """Spend points."""
        ...


class MyShop(Shop):
    """What is sold is counted, so that tests see what was really done."""

    title = "the shop"
    instance = "shop-1"

    def __init__(self) -> None:
        self.log: list[tuple[str, Any]] = []
        self.failure: BaseException | None = None
        self.after: BaseException | None = None
        self.answer: Any = None
        self.gate: anyio.Event | None = None
        self.entered = anyio.Event()

    async def items(self, query: str | None = None) -> Shelf:
        self.log.append(("items", query))
        if query == "boom":
            raise RuntimeError(SECRET)
        if query == "empty":
            return Shelf(items=[])
        if query == "kinds":
            raise ExceptionGroup(SECRET, [ValueError(SECRET)])
        if query is not None and query.startswith("raise "):
            raise _failure(query.removeprefix("raise "))
        return Shelf(items=[Item("apple"), Item("810234567890123457")])

    async def buy(self, item: Item, count: int, **wishes: Unpack[Wishes]) -> Bought:
        self.log.append(("buy", {"item": str(item), "count": count, **wishes}))
        self.entered.set()
        if self.failure is not None:
            raise self.failure
        if self.gate is not None:
            await self.gate.wait()
        if "card" in wishes:
            reveal(wishes["card"])
        await self.emit(Shop.Sold(item=item, count=count))
        if self.after is not None:
            raise self.after
        if self.answer is not None:
            return self.answer
        return Bought(item=item, total=count)

    async def ring(self) -> Done:
        self.log.append(("ring", None))
        await self.emit(Shop.Ding(loud=True))
        if self.failure is not None:
            raise self.failure
        return Done()

    async def demolish(self) -> Done:
        self.log.append(("demolish", None))
        return Done()

    async def slow(self) -> Done:
        self.log.append(("slow", None))
        await anyio.sleep(20)
        return Done()

    async def arrange(self, changes: Options, notes: list[Line] | None = None) -> Seen:
        self.log.append(("arrange", (changes, notes)))
        return Seen(words=repr((changes, notes)))

    def done(self, what: str) -> int:
        """How often something was really done."""
        return sum(name == what for name, _ in self.log)


class PointsShop(MyShop, Points):
    """Has the extension and the facet too."""

    async def wrap(self, item: Item) -> Done:
        return Done()

    async def spend(self, points: int) -> Done:
        self.log.append(("spend", points))
        return Done()

    async def buy(self, item: Item, count: int, **wishes: Unpack[Wishes]) -> Bought:
        self.log.append(("extra", current_call().extra(Points)))
        return await super().buy(item, count, **wishes)


def _failure(code: str) -> ConnectionFailed:
    from hotplug.errors import failure

    return failure(code, f"as asked: {code}", {"kept": 1, "matches": []})
