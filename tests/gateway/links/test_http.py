"""What links of both eras over HTTP have in common, against a server of the SDK's and against plain ones."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from hotplug.connect.launch import HttpLaunch
from hotplug.gateway.link import Era, Hello, Link, LinkLost, Outgoing
from hotplug.gateway.links.handshake import refused_status
from hotplug.gateway.links.http_client import HttpPool
from hotplug.gateway.links.http_exchange import header_value, passed_up
from hotplug.gateway.links.legacy_http import open_legacy
from hotplug.gateway.links.modern_http import ModernHttpLink, open_modern
from hotplug.gateway.links.refusal import EraRefused
from hotplug.gateway.message import Message, split

from .servers.real import real
from .talking import LEGACY, all_of, ask, call, request, text_of, until

pytestmark = pytest.mark.anyio

ServeHttp = Callable[[Any], AbstractAsyncContextManager[str]]
ERAS: tuple[Era, ...] = ("legacy", "modern")


@asynccontextmanager
async def linked(url: str, era: Era, fixed: dict[str, str] | None = None, **options: Any) -> AsyncGenerator[Link]:
    """An open link over a pool of its own; nothing of them is left after the block."""
    before = asyncio.all_tasks()
    launch = HttpLaunch(url, fixed or {})
    async with HttpPool() as pool:
        if era == "legacy":
            link: Link = await open_legacy(pool, launch, split(LEGACY), **options)
        else:
            link = await open_modern(pool, launch, **options)
        try:
            yield link
        finally:
            await link.aclose()
    left = {task for task in asyncio.all_tasks() - before if "links" in repr(task.get_coro())}
    assert not left


@asynccontextmanager
async def raw_server(
    serve: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
) -> AsyncGenerator[str]:
    """A server of bytes: `serve` is called with each connection."""
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"


async def one_request(reader: asyncio.StreamReader) -> dict[str, Any] | None:
    """The next request's JSON; None where the connection ends."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    length = next((int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), 0)
    body = await reader.readexactly(length)
    return json.loads(body) if body else {}


def http_answer(message: dict[str, Any], result: dict[str, Any]) -> bytes:
    body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()
    return b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body) + body


@pytest.mark.parametrize("era", ERAS)
async def test_a_server_of_the_sdk_says_who_it_is_and_answers(serve_http: ServeHttp, era: Era) -> None:
    async with serve_http(real().streamable_http_app()) as url, linked(f"{url}/mcp", era) as link:
        assert link.era == era
        assert link.hello.protocol == {"legacy": "2025-11-25", "modern": "2026-07-28"}[era]
        assert json.loads(bytes(link.hello.result["instructions"])) == "Be exact."
        assert text_of(await ask(link, call(era, "add", {"a": 1, "b": 2}))) == "3"


@pytest.mark.parametrize("era", ERAS)
async def test_three_thousand_progress_notes_reach_a_slow_reader_before_the_result(
    serve_http: ServeHttp, era: Era
) -> None:
    async with (
        serve_http(real().streamable_http_app()) as url,
        linked(f"{url}/mcp", era) as link,
        link.exchange(call(era, "burst", {"count": 3000}, id=7, token="mine")) as answer,
    ):
        assert answer.frames is not None
        progress: list[float] = []
        async for frame in answer.frames:
            if frame.message is None:
                continue
            if frame.message.method == "notifications/progress":
                assert frame.message.value("progressToken") == "mine"
                progress.append(frame.message.value("progress"))
                if len(progress) % 100 == 0:
                    await asyncio.sleep(0.02)
            else:
                assert frame.message.id == b"7"
                assert len(progress) == 3000
        assert progress == list(range(1, 3001))


@pytest.mark.parametrize("era", ERAS)
async def test_fr_28_equal_ids_and_tokens_of_fifty_scopes_never_meet(serve_http: ServeHttp, era: Era) -> None:
    async with serve_http(real().streamable_http_app()) as url, linked(f"{url}/mcp", era) as link:

        async def one(number: int) -> None:
            mark = f"mark {number}"
            arguments = {"mark": mark, "delay": (number * 7 % 10) / 100}
            async with link.exchange(call(era, "who", arguments, id=1, token=1, scope=f"s{number}")) as answer:
                *notes, last = await all_of(answer)
            assert [note.value("message") for note in notes] == [mark, mark]
            assert {note.value("progressToken") for note in notes} == {1}
            assert last.id == b"1"
            assert text_of(json.loads(bytes(last.fields["result"]))) == mark

        async with asyncio.TaskGroup() as tasks:
            for number in range(50):
                tasks.create_task(one(number))


@pytest.mark.parametrize("era", ERAS)
async def test_leaving_an_exchange_cancels_it_at_the_server(serve_http: ServeHttp, era: Era, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    async with serve_http(real().streamable_http_app()) as url, linked(f"{url}/mcp", era) as link:
        asking = asyncio.create_task(ask(link, call(era, "slow", {"path": str(mark)})))
        await until(lambda: mark.exists() and mark.read_text() == "started")
        asking.cancel()
        await asyncio.wait([asking])
        await until(lambda: mark.read_text() == "cancelled")
        assert text_of(await ask(link, call(era, "add", {"a": 1, "b": 2}))) == "3"


def plain(**tools: Callable[[dict[str, Any], Request], Response]) -> Starlette:
    """A server that knows both eras and shakes hands; a tool in `tools` makes its whole HTTP answer."""

    async def answer(request: Request) -> Response:
        message = json.loads(await request.body() or b"{}")
        match message.get("method"):
            case "initialize":
                result: dict[str, Any] = {"protocolVersion": "2025-11-25", "capabilities": {}}
                headers = {"mcp-session-id": "abc"}
            case "server/discover":
                result, headers = {"supportedVersions": ["2026-07-28"], "capabilities": {}}, {}
            case "tools/call":
                return tools[message["params"]["name"]](message, request)
            case _:
                return Response(status_code=202 if request.method == "POST" else 405)
        return JSONResponse({"jsonrpc": "2.0", "id": message["id"], "result": result}, headers=headers)

    return Starlette(routes=[Route("/mcp", answer, methods=["GET", "POST", "DELETE"])])


RESULT = (
    '{"big":123456789012345678901234567890,"float":1.10,"exp":1E400,'
    '"escapes":"\\u00e9\\/\\ud83d\\ude00\\ud800 \\u2028é",'
    '"unknown":{"a":[null,{}],"a":2},"nested":{"_meta":{"x":0.0}}}'
)


def odd(message: dict[str, Any], request: Request) -> Response:
    text = f'{{"jsonrpc":"2.0", "id":{json.dumps(message["id"])},"vendor":[1, 2],"result":{RESULT}}}'
    if message["params"]["arguments"].get("stream"):
        return Response(f": hi\r\nevent: message\r\ndata: {text}\r\n\r\n", media_type="text/event-stream")
    return Response(text, media_type="application/json")


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("era", ERAS)
async def test_odd_values_and_unknown_fields_come_back_as_the_bytes_they_were(
    serve_http: ServeHttp, era: Era, stream: bool
) -> None:
    async with serve_http(plain(odd=odd)) as url, linked(f"{url}/mcp", era) as link:
        async with link.exchange(call(era, "odd", {"stream": stream}, id='"é')) as answer:
            assert (answer.frames is not None) == stream
            (message,) = await all_of(answer)
        assert json.loads(message.id or b"") == '"é'
        assert bytes(message.fields["result"]).decode() == RESULT
        assert bytes(message.fields["vendor"]) == b"[1, 2]"


async def test_a_modern_request_goes_up_as_the_bytes_it_was_with_the_headers_it_needs(serve_http: ServeHttp) -> None:
    got: list[tuple[bytes, dict[str, str]]] = []

    async def keep(request: Request) -> Response:
        got.append((await request.body(), dict(request.headers)))
        return JSONResponse({"jsonrpc": "2.0", "id": 1, "result": {}}, headers={"retry-after": "3", "x-own": "1"})

    body = (
        b'{"jsonrpc": "2.0","id":1,"method":"tools/call","params":{"name":"caf\\u00e9","arguments":{"n":1e5,"n":2},'
        b'"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","x":1.50}},"v":{ }}'
    )
    async with serve_http(Starlette(routes=[Route("/mcp", keep, methods=["POST"])])) as url, HttpPool() as pool:
        link = ModernHttpLink(pool, HttpLaunch(f"{url}/mcp", {"X-Key": "k"}), Hello({}, "2026-07-28"))
        given = {"mcp-param-region": "eu", "traceparent": "00-1-2-01", "authorization": "Bearer caller", "cookie": "c"}
        async with link.exchange(Outgoing(Message.parse(body), headers=given)) as answer:
            assert dict(answer.headers) == {"content-type": "application/json", "retry-after": "3"}
        ((sent, headers),) = got
        assert sent == body
        assert headers["mcp-protocol-version"] == "2026-07-28"
        assert headers["mcp-method"] == "tools/call"
        assert headers["mcp-name"] == "=?base64?Y2Fmw6k=?="
        assert (headers["mcp-param-region"], headers["traceparent"], headers["x-key"]) == ("eu", "00-1-2-01", "k")
        assert headers["accept-encoding"] == "identity"
        assert not {"authorization", "cookie"} & set(headers)
        await link.aclose()


@pytest.mark.parametrize("value", ["plain", " edge", "caf\u00e9", "", "a\nb", "=?base64?eA==?=", "=?base64?a\nb?="])
def test_a_name_is_written_into_a_header_as_the_sdk_does(value: str) -> None:
    from mcp.shared.inbound import decode_header_value, encode_header_value

    assert decode_header_value(header_value(value)) == value
    if "\n" not in value:
        assert header_value(value) == encode_header_value(value)


def test_only_headers_of_mcp_and_of_tracing_go_up() -> None:
    given = {"mcp-method": "x", "mcp-session-id": "theirs", "authorization": "x", "host": "x", "tracestate": "t"}
    assert passed_up(given) == {"mcp-method": "x", "tracestate": "t"}


@pytest.mark.parametrize("era", ERAS)
async def test_a_refused_credential_is_renewed_once_and_the_request_sent_again(serve_http: ServeHttp, era: Era) -> None:
    token, asked, calls = "old", list[tuple[int, str | None]](), 0

    def guarded(message: dict[str, Any], request: Request) -> Response:
        nonlocal calls
        calls += 1
        if request.headers.get("authorization") != "Bearer new":
            return Response(status_code=401, headers={"www-authenticate": 'Bearer resource_metadata="x"'})
        return JSONResponse({"jsonrpc": "2.0", "id": message["id"], "result": {"ok": True}})

    async def headers() -> dict[str, str]:
        return {"Authorization": f"Bearer {token}"}

    async def refused(status: int, challenge: str | None) -> bool:
        nonlocal token
        asked.append((status, challenge))
        if token == "new":
            return False
        token = "new"
        return True

    async with serve_http(plain(guarded=guarded)) as url:
        async with linked(
            f"{url}/mcp", era, {"authorization": "Bearer fixed"}, headers=headers, refused=refused
        ) as link:
            assert await ask(link, call(era, "guarded")) == {"ok": True}
            assert asked == [(401, 'Bearer resource_metadata="x"')]
            assert calls == 2
        token = "old"

        async def never(status: int, challenge: str | None) -> bool:
            return False

        async with linked(f"{url}/mcp", era, headers=headers, refused=never) as link:
            with pytest.raises(LinkLost, match=r"HTTP 401, it wants a credential \(Bearer\)") as lost:
                await ask(link, call(era, "guarded"))
            assert not lost.value.sent


@pytest.mark.parametrize("era", ERAS)
async def test_a_message_with_another_status_is_passed_on_and_so_is_what_is_none(
    serve_http: ServeHttp, era: Era
) -> None:
    def refused(message: dict[str, Any], request: Request) -> Response:
        error = {"code": -32602, "message": "no"}
        return JSONResponse({"jsonrpc": "2.0", "id": message["id"], "error": error}, status_code=400)

    def busy(message: dict[str, Any], request: Request) -> Response:
        return Response("slow down", status_code=429, headers={"retry-after": "7"}, media_type="text/plain")

    def html(message: dict[str, Any], request: Request) -> Response:
        return Response("<h1>Hi</h1>", media_type="text/html")

    async with serve_http(plain(refused=refused, busy=busy, html=html)) as url, linked(f"{url}/mcp", era) as link:
        async with link.exchange(call(era, "refused", id=9)) as answer:
            assert answer.status == 400
            assert answer.message is not None
            assert (answer.message.id, answer.message.error_code) == (b"9", -32602)
        async with link.exchange(call(era, "busy")) as answer:
            assert (answer.status, answer.body, answer.headers["retry-after"]) == (429, b"slow down", "7")
        with pytest.raises(LinkLost, match="HTTP 200 with text/html") as lost:
            await ask(link, call(era, "html"))
        assert lost.value.sent


@pytest.mark.parametrize("era", ERAS)
async def test_a_stream_that_breaks_or_ends_without_the_answer_is_lost_after_what_came(
    serve_http: ServeHttp, era: Era
) -> None:
    note = 'data: {"jsonrpc":"2.0","method":"notifications/message","params":{}}\n\n'

    def breaks(message: dict[str, Any], request: Request) -> Response:
        async def body() -> AsyncGenerator[str]:
            yield note
            raise ConnectionResetError

        return StreamingResponse(body(), media_type="text/event-stream")

    def ends(message: dict[str, Any], request: Request) -> Response:
        return Response(note, media_type="text/event-stream")

    async with serve_http(plain(breaks=breaks, ends=ends)) as url, linked(f"{url}/mcp", era) as link:
        for name, words in (("breaks", "broke within an answer"), ("ends", "ended before its answer")):
            async with link.exchange(call(era, name)) as answer:
                assert answer.frames is not None
                frames = aiter(answer.frames)
                assert (await anext(frames)).message is not None
                with pytest.raises(LinkLost, match=words) as lost:
                    await anext(frames)
                assert lost.value.sent


@pytest.mark.parametrize("era", ERAS)
async def test_fr_23_a_server_that_reads_and_hangs_up_has_read_it_once(era: Era) -> None:
    got: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while (message := await one_request(reader)) is not None:
            method = message.get("method", "")
            got.append(method)
            if method == "tools/call":
                break
            if method == "initialize":
                writer.write(http_answer(message, {"protocolVersion": "2025-11-25", "capabilities": {}}))
            elif method == "server/discover":
                writer.write(http_answer(message, {"supportedVersions": ["2026-07-28"]}))
            else:
                writer.write(b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n")
        writer.close()

    async with raw_server(serve) as url, linked(url, era) as link:
        with pytest.raises(LinkLost, match="closed the connection without an answer") as lost:
            await ask(link, call(era, "pay"))
        assert lost.value.sent
        assert got.count("tools/call") == 1


async def test_a_connection_that_was_closed_while_unused_is_replaced_and_the_request_read_once() -> None:
    got: list[int] = []
    answered, closed = threading.Event(), threading.Event()

    def serve(listening: socket.socket) -> None:
        with listening:
            while len(got) < 20:
                connection, _ = listening.accept()
                with connection, connection.makefile("rb") as file:
                    length = 0
                    while (line := file.readline().lower()).strip():
                        if line.startswith(b"content-length:"):
                            length = int(line[15:])
                    message = json.loads(file.read(length))
                    got.append(message["id"])
                    # It says nothing of closing, and closes.
                    connection.sendall(http_answer(message, {}))
                    answered.wait(10)
                    answered.clear()
                    connection.shutdown(socket.SHUT_RDWR)
                closed.set()

    listening = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
    serving = threading.Thread(target=serve, args=(listening,))
    serving.start()
    async with HttpPool() as pool:
        link = ModernHttpLink(pool, HttpLaunch(url, {}), Hello({}, "2026-07-28"))
        for number in range(20):
            assert await ask(link, call("modern", "x", id=number)) == {}
            # The loop is held, so that it can't see the end before the next request goes out.
            answered.set()
            assert closed.wait(10)
            closed.clear()
        await link.aclose()
    serving.join(10)
    assert got == list(range(20))


async def test_connections_are_used_again_after_json_and_after_streams(serve_http: ServeHttp) -> None:
    ports: set[int] = set()

    def noted(message: dict[str, Any], request: Request) -> Response:
        assert request.client is not None
        ports.add(request.client.port)
        return odd(message, request)

    async with serve_http(plain(noted=noted)) as url, linked(f"{url}/mcp", "modern") as link:
        for number in range(10):
            async with link.exchange(call("modern", "noted", {"stream": number % 2 == 1})) as answer:
                if answer.frames is not None:
                    await anext(aiter(answer.frames))
        assert len(ports) == 1


async def test_a_request_over_a_mebibyte_goes_through(serve_http: ServeHttp) -> None:
    def size(message: dict[str, Any], request: Request) -> Response:
        length = len(message["params"]["arguments"]["text"])
        return JSONResponse({"jsonrpc": "2.0", "id": message["id"], "result": {"length": length}})

    async with serve_http(plain(size=size)) as url, linked(f"{url}/mcp", "modern") as link:
        assert await ask(link, call("modern", "size", {"text": "x" * 3_000_000})) == {"length": 3_000_000}


@pytest.mark.parametrize("era", ERAS)
async def test_a_redirect_is_followed_within_its_origin_and_not_to_another(serve_http: ServeHttp, era: Era) -> None:
    seen: list[str] = []

    async def foreign(request: Request) -> Response:
        seen.append(request.headers.get("authorization", ""))
        return Response(status_code=500)

    app = plain(odd=odd)

    async def slash(request: Request) -> Response:
        return RedirectResponse("/mcp", status_code=307)

    async with serve_http(Starlette(routes=[Route("/mcp", foreign, methods=["POST"])])) as other:

        async def away(request: Request) -> Response:
            return RedirectResponse(f"{other}/mcp", status_code=307)

        app.router.routes += [Route("/mcp/", slash, methods=["POST"]), Route("/away", away, methods=["POST"])]
        async with serve_http(app) as url:
            async with linked(f"{url}/mcp/", era, {"authorization": "Bearer t"}) as link:
                assert await ask(link, call(era, "odd"))
            with pytest.raises(LinkLost, match=f"HTTP 307, it points to {other}/mcp") as lost:
                async with linked(f"{url}/away", era, {"authorization": "Bearer t"}):
                    pass
            assert not lost.value.sent
        assert seen == []


@pytest.mark.parametrize("era", ERAS)
async def test_closing_ends_what_is_under_way(serve_http: ServeHttp, era: Era, tmp_path: Path) -> None:
    silent, streaming = tmp_path / "a", asyncio.Event()

    async with serve_http(real().streamable_http_app()) as url, linked(f"{url}/mcp", era) as link:
        told: list[str] = []
        link.on_change(told.append)

        async def read() -> None:
            async with link.exchange(call(era, "who", {"mark": "m", "delay": 60}, token=1)) as answer:
                assert answer.frames is not None
                async for _ in answer.frames:
                    streaming.set()

        general = asyncio.create_task(all_general(link))
        waiting = asyncio.create_task(ask(link, call(era, "slow", {"path": str(silent)})))
        reading = asyncio.create_task(read())
        await streaming.wait()
        await until(silent.exists)
        await link.aclose()
        for each in (waiting, reading):
            with pytest.raises(LinkLost) as lost:
                await each
            assert lost.value.sent
        assert await general == []
        assert told == ["lost"]
        with pytest.raises(LinkLost) as lost:
            await ask(link, call(era, "add"))
        assert not lost.value.sent


async def all_general(link: Link) -> list[Any]:
    return [frame async for frame in link.general()]


async def test_a_slow_reader_slows_the_server_down(serve_http: ServeHttp) -> None:
    produced = 0
    note = json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": "x" * 65536}})

    def endless(message: dict[str, Any], request: Request) -> Response:
        async def body() -> AsyncGenerator[str]:
            nonlocal produced
            while True:
                produced += len(note)
                yield f"data: {note}\n\n"
                # The server's end of a connection that has gone takes everything at once.
                await asyncio.sleep(0)

        return StreamingResponse(body(), media_type="text/event-stream")

    async with (
        serve_http(plain(endless=endless)) as url,
        linked(f"{url}/mcp", "modern") as link,
        link.exchange(call("modern", "endless")) as answer,
    ):
        assert answer.frames is not None
        await anext(aiter(answer.frames))
        before = -1
        async with asyncio.timeout(30):
            while produced != before:
                before = produced
                await asyncio.sleep(0.1)
        # What the kernel's and our buffers hold; the server waits.
        assert produced < 32 * 1024 * 1024


async def test_the_proxy_of_the_environment_is_used_but_for_loopback_and_exceptions(
    monkeypatch: pytest.MonkeyPatch, serve_http: ServeHttp
) -> None:
    got: list[bytes] = []

    async def proxy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        got.append(await reader.readline())
        message = await one_request(reader)
        assert message is not None
        writer.write(http_answer(message, {"supportedVersions": ["2026-07-28"]}))
        writer.close()

    async with raw_server(proxy) as url:
        for name in ("HTTP_PROXY", "http_proxy"):
            monkeypatch.setenv(name, url.removesuffix("/mcp"))
        for name in ("NO_PROXY", "no_proxy"):
            monkeypatch.setenv(name, "skipped.invalid")
        async with linked("http://far.invalid/mcp", "modern"):
            assert got == [b"POST http://far.invalid/mcp HTTP/1.1\r\n"]
        with pytest.raises(LinkLost, match="can't be resolved"):
            async with linked("http://skipped.invalid/mcp", "modern"):
                pass
        async with serve_http(plain()) as near, linked(f"{near}/mcp", "modern"):
            assert len(got) == 1


# What doesn't come up


@pytest.mark.parametrize("era", ERAS)
async def test_nothing_that_listens_is_no_connection_and_nothing_was_sent(era: Era) -> None:
    with socket.socket() as held:
        # Held, so that nobody else gets the port meanwhile.
        held.bind(("127.0.0.1", 0))
        with pytest.raises(LinkLost, match="no connection: Connect") as lost:
            async with linked(f"http://127.0.0.1:{held.getsockname()[1]}/mcp", era):
                pass
    assert not lost.value.sent


@pytest.mark.parametrize("era", ERAS)
async def test_no_answer_in_time_is_said(era: Era) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async with raw_server(serve) as url:
        with pytest.raises(LinkLost, match=r"no answer to (initialize|server/discover) in 0\.2 s"):
            async with linked(url, era, limit=0.2):
                pass


@pytest.mark.parametrize("era", ERAS)
async def test_tls_without_a_trusted_certificate_is_named(era: Era) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        writer.write(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n")
        writer.close()

    async with raw_server(serve) as url:
        with pytest.raises(LinkLost, match="TLS failed") as lost:
            async with linked(url.replace("http:", "https:"), era):
                pass
        assert not lost.value.sent


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(("status", "words"), [(404, "is the path right"), (405, "may speak only"), (400, "HTTP 400")])
async def test_another_answer_than_a_message_refuses_the_era(
    serve_http: ServeHttp, era: Era, status: int, words: str
) -> None:
    async def answer(request: Request) -> Response:
        return Response("no", status_code=status)

    async with serve_http(Starlette(routes=[Route("/mcp", answer, methods=["POST"])])) as url:
        with pytest.raises(EraRefused, match=words) as refused:
            async with linked(f"{url}/mcp", era):
                pass
        assert refused.value.status == status


@pytest.mark.parametrize(
    ("status", "doubted"),
    [(200, True), (400, True), (404, True), (401, False), (403, False), (429, False), (503, False)],
)
def test_a_page_of_html_makes_the_path_doubtful_unless_its_status_says_something_else(
    status: int, doubted: bool
) -> None:
    assert ("is the path right" in refused_status("modern", status, "text/html; charset=utf-8").reason) is doubted


@pytest.mark.parametrize("era", ERAS)
async def test_a_secret_of_the_address_is_in_no_error(era: Era) -> None:
    async with raw_server(lambda reader, writer: asyncio.sleep(0)) as url:
        pass
    with pytest.raises(LinkLost) as lost:
        async with linked(f"{url}?token=s3cr3t-value", era):
            pass
    assert "s3cr3t-value" not in lost.value.reason


async def test_what_the_server_says_of_other_eras_is_kept(serve_http: ServeHttp) -> None:
    async def answer(request: Request) -> Response:
        error = {"code": -32022, "message": "Unsupported", "data": {"supported": ["2026-07-28"], "requested": "x"}}
        return JSONResponse({"jsonrpc": "2.0", "id": None, "error": error}, status_code=400)

    async with serve_http(Starlette(routes=[Route("/mcp", answer, methods=["POST"])])) as url:
        with pytest.raises(EraRefused) as refused:
            async with linked(f"{url}/mcp", "legacy"):
                pass
        assert refused.value.supported == ("2026-07-28",)
        assert refused.value.answer is not None


@pytest.mark.parametrize("method", ["tools/list"])
async def test_requests_of_the_sdks_own_session_are_answered_alike(serve_http: ServeHttp, method: str) -> None:
    async with (
        serve_http(real().streamable_http_app()) as url,
        linked(f"{url}/mcp", "legacy") as old,
        linked(f"{url}/mcp", "modern") as new,
    ):
        names = [[tool["name"] for tool in (await ask(link, request(era, method)))["tools"]]
                 for link, era in ((old, "legacy"), (new, "modern"))]  # fmt: skip
        assert names[0] == names[1]
