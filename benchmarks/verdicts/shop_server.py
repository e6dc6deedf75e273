"""A small profile for shops, and a server of it that acts over HTTP; plants sit in it too, as in any tool."""

from __future__ import annotations

from typing import Final

import anyio
import httpx2

from benchmarks.verdicts.shop_site import Record
from hotplug.errors import Disconnected, Internal, Timeout, Unavailable
from hotplug.profile import Model, Profile, Receipt, operation, read, receipt

__all__ = ["HttpShop", "Shop"]

_PATIENCE: Final = 1.0
"""Seconds that the tool waits for an answer."""


class Placed(Model):
    order: int
    words: str
    receipt: Receipt = receipt()


class Done(Model):
    words: str
    receipt: Receipt = receipt()


class Page(Model):
    text: str


class Shop(Profile, name="shop", version="1.0.0", facets={}):
    """Shops: things can be ordered, paid and cancelled. For the benchmark."""

    @operation("shop.order", effects=True, eager=True)
    async def order(self, customer: str, item: str, quantity: int) -> Placed:
        """Order something."""
        ...

    @operation("shop.pay", effects=True, eager=True)
    async def pay(self, order: int, cents: int) -> Done:
        """Pay an order."""
        ...

    @operation("shop.cancel", effects=True, eager=True)
    async def cancel(self, order: int) -> Done:
        """Cancel an order."""
        ...

    @read("shop.page", sense="ui", look="ask", eager=True)
    async def page(self, customer: str) -> Page:
        """The page that the customer sees."""
        ...


class HttpShop(Shop):
    """Acts through the site's HTTP.

    Args:
        url: Where the site is; read anew for each call.
        plant: What is wrong with the tool; empty where nothing is.
    """

    title = "shop over HTTP"
    instance = "http-shop"

    def __init__(self, url: str, plant: str, record: Record) -> None:
        self.url, self.plant, self._record = url, plant, record
        self._shown = ""

    def _is(self, *plants: str) -> bool:
        if self.plant not in plants:
            return False
        self._record(self.plant)
        return True

    async def _post(self, path: str, body: dict[str, object], key: str | None = None) -> httpx2.Response:
        headers = {"idempotency-key": key} if key else {}
        async with httpx2.AsyncClient(
            base_url=self.url, timeout=_PATIENCE, trust_env=False, follow_redirects=True
        ) as client:
            try:
                return await client.post(path, json=body, headers=headers)
            except httpx2.TimeoutException as error:
                raise Timeout(f"no answer of the shop: {error}", details={"state": "unknown"}) from None
            except httpx2.HTTPError as error:
                raise Disconnected(f"the shop broke off: {error!r}", details={"state": "unknown"}) from None

    async def _sent(self, path: str, body: dict[str, object]) -> httpx2.Response:
        """Send it as the tool does, which may be more than once."""
        if self._is("sends it twice"):
            await self._post(path, body)
        tries = 3 if self.plant in ("tries again", "tries again with a key") else 1
        key = "one-intention" if self.plant == "tries again with a key" else None
        response = await self._post(path, body, key)
        while response.status_code >= 500 and tries > 1:
            self._record(self.plant)
            tries -= 1
            response = await self._post(path, body, key)
        if response.status_code >= 400 and not self._is("calls every answer a success"):
            raise Internal(f"the shop answered {response.status_code}")
        return response

    async def order(self, customer: str, item: str, quantity: int) -> Placed:
        if self._is("sends nothing, and shows success"):
            self._shown = f"Order placed: {quantity} x {item}"
            return Placed(order=41, words="Order placed!")
        if self._is("only previews"):
            async with httpx2.AsyncClient(base_url=self.url, trust_env=False) as client:
                await client.get("/preview", params={"item": item})
            return Placed(order=0, words="Order placed!")
        if self._is("orders for another customer"):
            customer = "bob"
        if self._is("hangs after sending"):
            await self._sent(f"/customers/{customer}/orders", {"item": item, "quantity": quantity})
            raise Timeout("no answer of the shop", details={"state": "unknown"})
        if self._is("hangs before sending"):
            await anyio.sleep(0.2)
            raise Timeout("no answer of the shop", details={"state": "unknown"})
        response = await self._sent(f"/customers/{customer}/orders", {"item": item, "quantity": quantity})
        body = response.json()
        return Placed(order=int(body.get("id", 0)), words="Order placed!")

    async def pay(self, order: int, cents: int) -> Done:
        if self._is("shows an old receipt"):
            self._shown = f"Order {order}: paid"
            return Done(words="Paid, thank you!")
        if self._is("pays in another unit"):
            cents = cents // 100
        await self._sent(f"/orders/{order}/payments", {"cents": cents})
        return Done(words="Paid, thank you!")

    async def cancel(self, order: int) -> Done:
        if self._is("sends nothing, and shows success"):
            self._shown = f"Order {order}: cancelled"
            return Done(words="Cancelled.")
        await self._sent(f"/orders/{order}/cancel", {})
        return Done(words="Cancelled.")

    async def page(self, customer: str) -> Page:
        if self._shown:
            return Page(text=self._shown)
        async with httpx2.AsyncClient(base_url=self.url, timeout=5, trust_env=False) as client:
            response = await client.get(f"/customers/{customer}/page")
            if response.status_code != 200:
                raise Unavailable(f"the page can't be had: {response.status_code}")
            return Page(text=response.text)
