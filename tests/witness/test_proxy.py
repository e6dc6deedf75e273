"""A proxy before a real server."""

from __future__ import annotations

import socket
from collections.abc import AsyncGenerator, Callable
from typing import Any

import anyio
import httpx2
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from hotplug.errors import ConfigError
from hotplug.evidence.window import closed_cleanly
from hotplug.witness import HttpProxy

pytestmark = pytest.mark.anyio


class Shop:
    """A real server, started by uvicorn."""

    def __init__(self) -> None:
        self.go_on = anyio.Event()
        self.asked = anyio.Event()
        self.app = Starlette(
            routes=[
                Route("/orders", self.orders, methods=["GET", "POST", "HEAD"]),
                Route("/slow", self.slow),
                Route("/away", lambda request: RedirectResponse(f"{self.url}/orders?a=1")),
                Route("/stream", self.stream),
            ]
        )
        self.url = ""

    async def orders(self, request: Request) -> Response:
        body = await request.body()
        seen = {"size": len(body), "query": request.url.query, "host": request.headers["host"]}
        seen["origin"] = request.headers.get("origin", "")
        answer = JSONResponse(seen, status_code=201 if request.method == "POST" else 200)
        answer.set_cookie("a", "1")
        answer.set_cookie("b", "2")
        return answer

    async def slow(self, request: Request) -> Response:
        self.asked.set()
        await self.go_on.wait()
        return Response(status_code=204)

    async def stream(self, request: Request) -> Response:
        async def body() -> AsyncGenerator[str]:
            yield "first\n"
            await self.go_on.wait()
            yield "last\n"

        return StreamingResponse(body())


@pytest.fixture
async def shop() -> AsyncGenerator[Shop]:
    made = Shop()
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    made.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    ready = anyio.Event()

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            ready.set()

    server = Server(uvicorn.Config(made.app, log_config=None, lifespan="off", http="h11", timeout_graceful_shutdown=1))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(server.serve, [listener])
        await ready.wait()
        yield made
        made.go_on.set()
        server.should_exit = True
    listener.close()


@pytest.fixture
async def http() -> AsyncGenerator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(trust_env=False, timeout=10) as client:
        yield client


async def test_what_passes_is_seen_and_arrives_unchanged(
    shop: Shop, http: httpx2.AsyncClient, watch: Callable[..., Any]
) -> None:
    async with HttpProxy(shop.url) as proxy:
        await http.get(f"{proxy.url}/orders")
        at = await watch(proxy)
        assert await at.seen() == []
        answer = await http.post(
            f"{proxy.url}/orders?token=S3cr3t", content=b"x" * 300_000, headers={"Origin": proxy.url}
        )
        assert answer.status_code == 201
        assert answer.json() == {
            "size": 300_000,
            "query": "token=S3cr3t",
            "host": shop.url.removeprefix("http://"),
            "origin": shop.url,
        }
        assert [value.partition(";")[0] for value in answer.headers.get_list("set-cookie")] == ["a=1", "b=2"]
        (one,) = await at.observed()
        assert one.summary == "POST /orders 201"
        assert one.value == {"method": "POST", "path": "/orders", "status": 201}
        assert (await http.get(f"{proxy.url}/nothing")).status_code == 404
        assert (await http.head(f"{proxy.url}/orders")).headers["content-length"]
        assert await at.seen() == ["POST /orders 201", "GET /nothing 404", "HEAD /orders 200"]
        assert await at.gaps() == []
        assert closed_cleanly(await at.close())
        await http.get(f"{proxy.url}/orders")
        assert len(await at.seen()) == 3
        assert proxy.can_prove_anything()


async def test_a_body_of_unknown_length_is_streamed(
    shop: Shop, http: httpx2.AsyncClient, watch: Callable[..., Any]
) -> None:
    async def parts() -> AsyncGenerator[bytes]:
        for _ in range(50):
            yield b"y" * 1000

    async with HttpProxy(shop.url) as proxy:
        at = await watch(proxy)
        assert (await http.post(f"{proxy.url}/orders", content=parts())).json()["size"] == 50_000
        assert await at.seen() == ["POST /orders 201"]


async def test_an_answer_is_streamed_and_counts_when_it_begins(
    shop: Shop, http: httpx2.AsyncClient, watch: Callable[..., Any]
) -> None:
    async with HttpProxy(shop.url) as proxy:
        at = await watch(proxy)
        async with http.stream("GET", f"{proxy.url}/stream") as answer:
            lines = answer.aiter_lines()
            assert await anext(lines) == "first"
            assert await at.seen() == ["GET /stream 200"]
            assert await at.gaps() == []
            shop.go_on.set()
            assert await anext(lines) == "last"


async def test_a_redirect_leads_through_the_proxy(
    shop: Shop, http: httpx2.AsyncClient, watch: Callable[..., Any]
) -> None:
    async with HttpProxy(shop.url) as proxy:
        at = await watch(proxy)
        answer = await http.get(f"{proxy.url}/away", follow_redirects=True)
        assert str(answer.url) == f"{proxy.url}/orders?a=1"
        assert await at.seen() == ["GET /away 307", "GET /orders 200"]


async def test_a_request_without_an_answer_at_the_close_is_in_flight(
    shop: Shop, http: httpx2.AsyncClient, watch: Callable[..., Any]
) -> None:
    async with HttpProxy(shop.url, patience=0.05) as proxy, anyio.create_task_group() as tasks:
        at = await watch(proxy)
        tasks.start_soon(http.get, f"{proxy.url}/slow?token=S3cr3t")
        await shop.asked.wait()
        await at.close()
        assert await at.seen() == []
        (gap,) = await at.spots()
        assert (gap.kind, gap.channel, gap.detail) == ("still-in-flight", "net", "no answer yet: GET /slow")
        later = await watch(proxy)
        shop.go_on.set()
        await later.close()
        assert await later.seen() == []


async def test_a_close_waits_for_an_answer_that_is_out(
    shop: Shop, http: httpx2.AsyncClient, watch: Callable[..., Any]
) -> None:
    async with HttpProxy(shop.url) as proxy, anyio.create_task_group() as tasks:
        at = await watch(proxy)
        tasks.start_soon(http.get, f"{proxy.url}/slow")
        await shop.asked.wait()

        async def answer() -> None:
            await anyio.sleep(0.05)
            shop.go_on.set()

        tasks.start_soon(answer)
        await at.close()
        assert await at.seen() == ["GET /slow 204"]


async def test_a_server_that_is_away_is_a_failed_request(http: httpx2.AsyncClient, watch: Callable[..., Any]) -> None:
    async with HttpProxy("http://127.0.0.1:1/base") as proxy:
        at = await watch(proxy)
        assert (await http.post(f"{proxy.url}/orders")).status_code == 502
        assert await at.seen() == ["POST /orders failed"]


async def test_web_sockets_are_not_forwarded_and_that_is_a_blind_spot(
    shop: Shop, http: httpx2.AsyncClient, watch: Callable[..., Any]
) -> None:
    async with HttpProxy(shop.url) as proxy:
        at = await watch(proxy)
        answer = await http.get(f"{proxy.url}/live", headers={"Connection": "Upgrade", "Upgrade": "websocket"})
        assert answer.status_code == 501
        assert await at.seen() == []
        assert await at.gaps() == [("boundary-uncrossable", "net")]


async def test_a_proxy_that_does_not_run_is_a_blind_spot(shop: Shop, watch: Callable[..., Any]) -> None:
    proxy = HttpProxy(shop.url)
    at = await watch(proxy)
    assert await at.seen() == []
    assert await at.gaps() == [("channel-unobserved", "net")]


async def test_its_port_is_free_afterwards(shop: Shop, http: httpx2.AsyncClient) -> None:
    async with HttpProxy(shop.url) as proxy:
        url = proxy.url
    with pytest.raises(httpx2.ConnectError):
        await http.get(url)


@pytest.mark.parametrize("url", ["ftp://h", "127.0.0.1:80", "http://h/?q"])
def test_an_address_that_can_not_be_used_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="stands before"):
        HttpProxy(url)
