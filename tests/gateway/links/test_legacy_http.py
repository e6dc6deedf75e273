from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest
from mcp.server.streamable_http import EventCallback, EventMessage, EventStore
from mcp_types import JSONRPCMessage
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from hotplug.gateway.link import LinkLost, Outgoing
from hotplug.gateway.message import Message

from .servers.real import real
from .talking import ask, call, request, text_of, until
from .test_http import linked

pytestmark = pytest.mark.anyio

ServeHttp = Callable[[Any], AbstractAsyncContextManager[str]]


class Events(EventStore):
    """Keeps every event in memory."""

    def __init__(self) -> None:
        self.kept: list[tuple[str, JSONRPCMessage | None]] = []

    async def store_event(self, stream_id: str, message: JSONRPCMessage | None) -> str:
        self.kept.append((stream_id, message))
        return f"e{len(self.kept)}"

    async def replay_events_after(self, last_event_id: str, send_callback: EventCallback) -> str | None:
        at = int(last_event_id[1:])
        stream = self.kept[at - 1][0]
        for number, (stream_id, message) in enumerate(self.kept[at:], at + 1):
            if stream_id == stream and message is not None:
                await send_callback(EventMessage(message, f"e{number}"))
        return stream


async def test_event_ids_and_retry_come_as_they_were_and_a_stream_goes_on_where_it_was_left(
    serve_http: ServeHttp,
) -> None:
    app = real().streamable_http_app(event_store=Events(), retry_interval=20)
    async with serve_http(app) as url, linked(f"{url}/mcp", "legacy") as link:
        frames = []
        async with link.exchange(call("legacy", "let_go", id="mine", token="t")) as answer:
            assert answer.frames is not None
            frames = [frame async for frame in answer.frames]
        assert frames[0].message is None
        assert (frames[0].retry, frames[0].event_id) == (20, frames[0].event_id)
        assert all(frame.event_id for frame in frames)
        last = frames[-1].event_id
        assert last is not None
        messages = [frame.message for frame in frames if frame.message is not None]
        # It goes on by its own pace; each time from the last event on.
        async with asyncio.timeout(10):
            while not messages or messages[-1].kind != "result":
                async with link.resume(last) as answer:
                    assert answer.status == 200
                    assert answer.frames is not None
                    async for frame in answer.frames:
                        last = frame.event_id or last
                        if frame.message is not None:
                            messages.append(frame.message)
        *notes, result = messages
        assert [(note.value("message"), note.value("progressToken")) for note in notes] == [
            ("before", "t"),
            ("after", "t"),
        ]
        assert result.id == b'"mine"'
        assert text_of(json.loads(bytes(result.fields["result"]))) == "late"


async def test_a_servers_request_comes_in_the_exchange_and_its_answer_goes_back(serve_http: ServeHttp) -> None:
    async with (
        serve_http(real().streamable_http_app()) as url,
        linked(f"{url}/mcp", "legacy") as link,
        link.exchange(call("legacy", "ask", {"question": "which?"})) as answer,
    ):
        assert answer.frames is not None
        async for frame in answer.frames:
            message = frame.message
            if message is not None and message.kind == "request":
                assert message.method == "elicitation/create"
                assert message.text("message") == "which?"
                result = {"action": "accept", "content": {"colour": "red"}}
                await link.send(Message.result_of(message.id or b"", result), scope="s")
            elif message is not None:
                assert text_of(json.loads(bytes(message.fields["result"]))) == "red"


async def test_changes_come_on_the_general_stream_and_are_told(serve_http: ServeHttp) -> None:
    async with serve_http(real().streamable_http_app()) as url, linked(f"{url}/mcp", "legacy") as link:
        told: list[str] = []
        link.on_change(told.append)
        reading = asyncio.create_task(anext(aiter(link.general())))
        async with asyncio.timeout(10):
            while not reading.done():
                # Until the GET stream is there, what belongs to it goes nowhere.
                assert text_of(await ask(link, call("legacy", "change"))) == "changed"
                await asyncio.wait([reading], timeout=0.1)
        message = reading.result().message
        assert message is not None
        assert message.method == "notifications/tools/list_changed"
        assert told[0] == "notifications/tools/list_changed"


def faulty(got: list[tuple[str, str, dict[str, str]]], streams: list[Response]) -> Starlette:
    """A server with a session; each GET takes the next of `streams`, and `gone` ends the session."""
    gone = False

    async def answer(request: Request) -> Response:
        nonlocal gone
        body = json.loads(await request.body() or b"{}")
        method = body.get("method", "")
        got.append((request.method, method, dict(request.headers)))
        if gone:
            return Response(status_code=404)
        if request.method == "GET":
            return streams.pop(0) if streams else Response(status_code=405)
        if request.method == "DELETE":
            return Response(status_code=204)
        if "id" not in body or not method:
            return Response(status_code=202)
        if method == "tools/list":
            gone = True
            return Response(status_code=404)
        result = {"protocolVersion": "2025-06-18", "capabilities": {}} if method == "initialize" else {}
        return JSONResponse(
            {"jsonrpc": "2.0", "id": body["id"], "result": result}, headers={"mcp-session-id": "session-1"}
        )

    return Starlette(routes=[Route("/mcp", answer, methods=["GET", "POST", "DELETE"])])


async def test_the_session_and_the_revision_go_with_every_request_and_the_end_deletes_it(serve_http: ServeHttp) -> None:
    got: list[tuple[str, str, dict[str, str]]] = []
    async with serve_http(faulty(got, [])) as url:
        async with linked(f"{url}/mcp", "legacy") as link:
            assert link.hello.protocol == "2025-06-18"
            headers = {"mcp-session-id": "the caller's", "mcp-protocol-version": "2025-11-25"}
            outgoing = request("legacy", "ping")
            assert await ask(link, Outgoing(outgoing.message, headers=headers, scope="s")) == {}
        assert [(verb, method) for verb, method, _ in got] == [
            ("POST", "initialize"),
            ("POST", "notifications/initialized"),
            ("POST", "ping"),
            ("DELETE", ""),
        ]
        assert "mcp-session-id" not in got[0][2]
        assert "mcp-protocol-version" not in got[0][2]
        for _, _, headers in got[1:]:
            assert (headers["mcp-session-id"], headers["mcp-protocol-version"]) == ("session-1", "2025-06-18")


async def test_a_session_that_the_server_forgot_loses_the_link_and_nothing_was_done(serve_http: ServeHttp) -> None:
    got: list[tuple[str, str, dict[str, str]]] = []
    async with serve_http(faulty(got, [])) as url, linked(f"{url}/mcp", "legacy") as link:
        told: list[str] = []
        link.on_change(told.append)
        with pytest.raises(LinkLost, match="session has ended") as lost:
            await ask(link, request("legacy", "tools/list"))
        assert not lost.value.sent
        assert link.lost is not None
        assert told == ["lost"]
        await link.aclose()
        assert "DELETE" not in {verb for verb, _, _ in got}


async def test_a_server_without_a_general_stream_keeps_its_session_however_it_says_so(serve_http: ServeHttp) -> None:
    async with serve_http(faulty([], [Response(status_code=404)])) as url, linked(f"{url}/mcp", "legacy") as link:
        async with asyncio.timeout(10):
            assert [frame async for frame in link.general()] == []
        assert link.lost is None
        assert await ask(link, request("legacy", "ping")) == {}


async def test_a_general_stream_that_is_gone_with_its_session_loses_the_link(serve_http: ServeHttp) -> None:
    stream = Response("retry: 10\nid: e1\ndata:\n\n", media_type="text/event-stream")
    gone = Response(status_code=404)
    async with serve_http(faulty([], [stream, gone])) as url, linked(f"{url}/mcp", "legacy") as link:
        async with asyncio.timeout(10):
            assert len([frame async for frame in link.general()]) == 1
        assert link.lost is not None


async def test_a_server_that_says_to_come_back_at_once_isnt_asked_without_pause(serve_http: ServeHttp) -> None:
    streams = [Response("retry: 0\nid: e1\ndata:\n\n", media_type="text/event-stream") for _ in range(1000)]
    async with serve_http(faulty([], streams)) as url, linked(f"{url}/mcp", "legacy") as link:
        began = asyncio.get_running_loop().time()
        async with asyncio.timeout(10):
            seen = 0
            async for _ in link.general():
                seen += 1
                if seen == 20:
                    break
        assert asyncio.get_running_loop().time() - began > 19 * 0.009


async def test_the_general_stream_is_opened_anew_after_its_last_event_until_there_is_none(
    serve_http: ServeHttp,
) -> None:
    def stream(number: int) -> Response:
        note = json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": {"n": number}})
        text = f"retry: 10\nid: e{number}\ndata: {note}\n\n"
        return Response(text, media_type="text/event-stream")

    got: list[tuple[str, str, dict[str, str]]] = []
    async with serve_http(faulty(got, [stream(1), Response(status_code=503), stream(2)])) as url:
        async with linked(f"{url}/mcp", "legacy") as link, asyncio.timeout(10):
            frames = [frame async for frame in link.general()]
        assert [(frame.event_id, frame.retry) for frame in frames] == [("e1", 10), ("e2", 10)]
        gets = [headers.get("last-event-id") for verb, _, headers in got if verb == "GET"]
        assert gets == [None, "e1", "e1", "e2"]


async def test_there_may_be_no_stream_to_resume(serve_http: ServeHttp) -> None:
    async with (
        serve_http(faulty([], [])) as url,
        linked(f"{url}/mcp", "legacy") as link,
        link.resume("e1") as answer,
    ):
        assert answer.status == 405


async def test_fr_28_the_gateways_own_requests_and_a_callers_never_meet_in_a_session(serve_http: ServeHttp) -> None:
    async with serve_http(real().streamable_http_app()) as url, linked(f"{url}/mcp", "legacy") as link:
        waiting = asyncio.create_task(ask(link, call("legacy", "who", {"mark": "m", "delay": 0.3}, id=1, scope="s")))
        await until(lambda: len(link._ids._flying) == 1)  # type: ignore[attr-defined]
        assert (await ask(link, request("legacy", "tools/list", id=1, scope="")))["tools"]
        assert text_of(await waiting) == "m"
