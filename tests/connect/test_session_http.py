from __future__ import annotations

import json
import socket
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any

import anyio
import anyio.abc
import pytest
from mcp.server import MCPServer
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from hotplug.connect.session import McpSession
from hotplug.errors import AuthError, ConnectError, Disconnected, Internal, RateLimited, Unavailable

pytestmark = pytest.mark.anyio

ServeHttp = Callable[[Any], AbstractAsyncContextManager[str]]


def real() -> MCPServer:
    server = MCPServer("real")

    @server.tool()
    async def add(a: int, b: int) -> int:
        return a + b

    return server


def old(**faults: Callable[[], Response]) -> Starlette:
    """A server of the old era over HTTP; a method in `faults` is answered by it instead."""

    async def answer(request: Request) -> Response:
        message = json.loads(await request.body())
        method = message["method"]
        if (fault := faults.get(method.replace("/", "_"))) is not None:
            return fault()
        results = {
            "initialize": {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "old", "version": "1"},
            },
            "tools/list": {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]},
            "tools/call": {"content": [{"type": "text", "text": request.headers.get("authorization", "none")}]},
        }
        if "id" not in message:
            return Response(status_code=202)
        if method in results:
            return JSONResponse({"jsonrpc": "2.0", "id": message["id"], "result": results[method]})
        return Response("Bad Request", status_code=400)

    return Starlette(routes=[Route("/mcp", answer, methods=["POST"])])


@pytest.mark.parametrize(("era", "protocol"), [("auto", "2026-07-28"), ("legacy", "2025-11-25")])
async def test_a_server_of_the_sdk_is_spoken_to_in_both_eras(serve_http: ServeHttp, era: Any, protocol: str) -> None:
    async with serve_http(real().streamable_http_app()) as url, McpSession(f"{url}/mcp", era=era) as session:
        assert (session.transport, session.protocol) == ("http", protocol)
        assert [tool.name for tool in (await session.list_tools()).tools] == ["add"]
        assert (await session.call("add", {"a": 1, "b": 2})).structured == {"result": 3}


async def test_fr_26_http_400_at_the_probe_means_the_old_handshake(serve_http: ServeHttp) -> None:
    async with serve_http(old()) as url, McpSession(f"{url}/mcp") as session:
        assert session.era == "legacy"
        assert (await session.call("echo")).texts == ("none",)


async def test_fr_26_html_at_the_probe_means_the_old_handshake(serve_http: ServeHttp) -> None:
    app = old(server_discover=lambda: HTMLResponse("<h1>Not Found</h1>", status_code=404))
    async with serve_http(app) as url, McpSession(f"{url}/mcp") as session:
        assert session.era == "legacy"


async def test_headers_are_sent_and_sessions_over_one_pool_keep_their_own(serve_http: ServeHttp) -> None:
    async with serve_http(old()) as url:
        one = McpSession({"url": f"{url}/mcp", "headers": {"Authorization": "Bearer one"}})
        two = McpSession({"url": f"{url}/mcp", "headers": {"Authorization": "Bearer two"}})
        async with one, two:
            assert (await one.call("echo")).texts == ("Bearer one",)
            assert (await two.call("echo")).texts == ("Bearer two",)


async def test_sessions_of_one_loop_share_a_pool_that_ends_with_the_last(serve_http: ServeHttp) -> None:
    from hotplug.connect import http

    pools = http._pools
    async with serve_http(old()) as url:
        one, two = McpSession(f"{url}/mcp"), McpSession(f"{url}/mcp")
        async with one:
            (pool,) = pools.values()
            async with two:
                assert list(pools.values()) == [pool]
                assert pool.users == 2
            assert not pool.client.is_closed
            assert (await one.call("echo")).texts == ("none",)
        assert pool.client.is_closed
    assert not pools


async def test_a_missing_credential_is_an_auth_error_that_names_the_scheme(serve_http: ServeHttp) -> None:
    app = old(server_discover=lambda: Response(status_code=401, headers={"WWW-Authenticate": 'Bearer realm="x"'}))
    async with serve_http(app) as url:
        with pytest.raises(AuthError, match=r"401.*Bearer") as refusal:
            await McpSession(f"{url}/mcp").start()
    assert refusal.value.transport == "http"


async def test_a_forbidden_probe_alone_is_no_verdict_and_a_forbidden_handshake_is(serve_http: ServeHttp) -> None:
    def forbidden() -> Response:
        return Response(status_code=403)

    async with serve_http(old(server_discover=forbidden)) as url, McpSession(f"{url}/mcp") as session:
        assert session.era == "legacy"
    async with serve_http(old(server_discover=forbidden, initialize=forbidden)) as url:
        with pytest.raises(AuthError, match="403"):
            await McpSession(f"{url}/mcp").start()


async def test_a_credential_in_the_url_or_headers_stands_in_no_error(serve_http: ServeHttp) -> None:
    async with serve_http(old(initialize=lambda: Response(status_code=401))) as url:
        entry = {"url": f"{url}/mcp?api_key=hunter22", "headers": {"Authorization": "Bearer hunter23"}}
        with pytest.raises(AuthError) as refusal:
            await McpSession(entry).start()
    assert "hunter2" not in f"{refusal.value} {vars(refusal.value)}"


async def test_a_credential_in_the_url_stands_in_no_log(
    serve_http: ServeHttp, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    async with serve_http(old()) as url, McpSession(f"{url}/mcp?api_key=hunter22") as session:
        await session.call("echo")
    assert "api_key=[secret]" in caplog.text
    assert "hunter22" not in caplog.text


@pytest.mark.parametrize("status", [400, 404])
async def test_an_old_server_that_forgot_the_session_is_disconnected(serve_http: ServeHttp, status: int) -> None:
    body = {"jsonrpc": "2.0", "id": None, "error": {"code": -32000, "message": "Bad Request: No valid session ID"}}
    app = old(tools_call=lambda: JSONResponse(body, status_code=status))
    async with serve_http(app) as url, McpSession(f"{url}/mcp") as session:
        with pytest.raises(Disconnected) as ended:
            await session.call("echo")
        assert ended.value.details == {"status": status, "state": "not_sent"}
        assert not session.connected


async def test_what_is_no_mcp_server_is_told_with_its_status(serve_http: ServeHttp) -> None:
    async def page(request: Request) -> Response:
        return HTMLResponse("<h1>hello</h1>", status_code=404)

    async with serve_http(Starlette(routes=[Route("/mcp", page, methods=["POST"])])) as url:
        with pytest.raises(ConnectError, match=r"HTTP 404.*/mcp") as refusal:
            await McpSession(f"{url}/mcp").start()
    assert not isinstance(refusal.value, AuthError)


async def test_a_refused_connection_fails_at_once_with_the_reason() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with anyio.fail_after(10), pytest.raises(ConnectError, match=r"(?i)refused|connection attempts failed"):
        await McpSession(f"http://127.0.0.1:{port}/mcp").start()


@pytest.mark.parametrize(
    ("response", "error", "details"),
    [
        (Response(status_code=429, headers={"Retry-After": "7"}), RateLimited, {"status": 429, "retryAfterMs": 7000}),
        (Response(status_code=503), Unavailable, {"status": 503, "state": "unknown"}),
        (Response(status_code=502), Disconnected, {"status": 502, "state": "unknown"}),
        (Response(status_code=500), Internal, {"status": 500, "state": "unknown"}),
    ],
)
async def test_an_http_refusal_of_a_call_has_its_own_error(
    serve_http: ServeHttp, response: Response, error: type[Exception], details: dict[str, Any]
) -> None:
    async with serve_http(old(tools_call=lambda: response)) as url, McpSession(f"{url}/mcp") as session:
        with pytest.raises(error) as refusal:
            await session.call("echo")
        assert getattr(refusal.value, "details", None) == details
        assert session.connected


async def test_a_credential_that_expires_is_an_auth_error_of_the_call(serve_http: ServeHttp) -> None:
    async with (
        serve_http(old(tools_call=lambda: Response(status_code=401))) as url,
        McpSession(f"{url}/mcp") as session,
    ):
        with pytest.raises(AuthError):
            await session.call("echo")
        assert session.connected


async def test_a_session_that_the_server_has_ended_is_disconnected_and_can_be_made_again(serve_http: ServeHttp) -> None:
    gone = [True]
    app = old(tools_list=lambda: Response(status_code=404) if gone.pop() else Response())
    async with serve_http(app) as url, McpSession(f"{url}/mcp") as session:
        with pytest.raises(Disconnected) as ended:
            await session.list_tools()
        assert ended.value.details["state"] == "not_sent"
        assert not session.connected
        await session.reconnect()
        assert (await session.call("echo")).texts == ("none",)


@asynccontextmanager
async def dropping(calls: list[str]) -> AsyncGenerator[str]:
    """Answers the old era by hand, does each call of `pay`, and then closes the connection without an answer."""

    async def handle(stream: anyio.abc.SocketStream) -> None:
        async with stream:
            data = b""
            with anyio.move_on_after(10):
                while True:
                    while b"\r\n\r\n" not in data:
                        data += await stream.receive()
                    head, _, data = data.partition(b"\r\n\r\n")
                    length = next(
                        (int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")),
                        0,
                    )
                    while len(data) < length:
                        data += await stream.receive()
                    body, data = data[:length], data[length:]
                    message = json.loads(body) if body else {}
                    if message.get("method") == "tools/call":
                        calls.append(message["params"]["name"])
                        if calls[-1] == "pay":
                            return
                    results = {
                        "initialize": {
                            "protocolVersion": "2025-11-25",
                            "capabilities": {},
                            "serverInfo": {"name": "x", "version": "1"},
                        },
                        "tools/call": {"content": []},
                    }
                    result = results.get(message.get("method", ""))
                    text = json.dumps({"jsonrpc": "2.0", "id": message.get("id"), "result": result}).encode()
                    status = b"200 OK" if result else b"400 Bad Request"
                    await stream.send(
                        b"HTTP/1.1 " + status + b"\r\nContent-Type: application/json\r\nContent-Length: "
                        + str(len(text)).encode() + b"\r\n\r\n" + text
                    )  # fmt: skip

    async def quietly(stream: anyio.abc.SocketStream) -> None:
        with suppress(anyio.EndOfStream, anyio.BrokenResourceError):
            await handle(stream)

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra(anyio.abc.SocketAttribute.local_port)
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, quietly)
        yield f"http://127.0.0.1:{port}/mcp"
        tasks.cancel_scope.cancel()


async def test_fr_23_a_connection_dropped_after_the_effect_is_not_sent_again_and_the_session_lives() -> None:
    calls: list[str] = []
    async with dropping(calls) as url, McpSession(url, era="legacy") as session:
        with anyio.fail_after(10):
            with pytest.raises(Disconnected, match="may or may not have been done") as lost:
                await session.call("pay")
            assert lost.value.details["state"] == "unknown"
            assert not (await session.call("look")).is_error
    assert calls == ["pay", "look"]


async def test_a_server_that_went_away_has_surely_not_got_the_call(serve_http: ServeHttp) -> None:
    async with serve_http(old()) as url:
        session = McpSession(f"{url}/mcp")
        await session.start()
    with anyio.fail_after(10), pytest.raises(Disconnected) as lost:
        await session.call("echo")
    assert lost.value.details["state"] in {"not_sent", "unknown"}
    with anyio.fail_after(10), pytest.raises(Disconnected, match="wasn't sent") as lost:
        await session.call("echo")
    assert lost.value.details["state"] == "not_sent"
    await session.aclose()
