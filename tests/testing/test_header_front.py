"""The front adds its headers, and leaves everything else as it is."""

from __future__ import annotations

import gc
import json
import socket
import sys
from collections.abc import Generator
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest

from hotplug.errors import ConfigError
from hotplug.testing.header_front import header_front
from hotplug.testing.program import started

MODERN = {"MCP-Protocol-Version": "2026-07-28"}
META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}


@pytest.fixture(scope="module")
def target() -> Generator[str]:
    with started([sys.executable, "-m", "hotplug.testing.odd", "--http", "0"]) as url:
        yield url


def call(name: str, arguments: dict[str, Any] | None = None, **meta: Any) -> str:
    params = {"name": name, "arguments": arguments or {}, "_meta": {**META, **meta}}
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})


def result_of(answer: httpx2.Response) -> Any:
    message = next(line for line in answer.text.split("\n") if line.startswith("data: "))
    return json.loads(message.removeprefix("data: "))["result"]


def headers_at(url: str, **headers: str) -> list[tuple[str, str]]:
    answer = httpx2.post(url, content=call("seen"), headers={**MODERN, **headers})
    return [tuple(header) for header in result_of(answer)["structuredContent"]["headers"]]


def test_the_headers_arrive_and_replace_those_of_the_same_name(target: str) -> None:
    with header_front(target, {"Authorization": "Bearer ours", "X-Two": "2"}) as url:
        arrived = headers_at(url, authorization="Bearer theirs", kept="yes")
    assert [value for name, value in arrived if name == "authorization"] == ["Bearer ours"]
    assert ("x-two", "2") in arrived
    assert ("kept", "yes") in arrived


def test_the_target_is_addressed_where_the_front_was_and_strangers_stay_strangers(target: str) -> None:
    authority = urlsplit(target).netloc
    with header_front(target, {"X": "1"}) as url:
        own = urlsplit(url).netloc
        arrived = dict(headers_at(url, origin=f"http://{own}"))
        assert (arrived["host"], arrived["origin"]) == (authority, f"http://{authority}")
        assert dict(headers_at(url, host="evil.example", origin="http://evil.example"))["host"] == "evil.example"


def test_one_connection_takes_many_requests_and_long_bodies(target: str) -> None:
    long = "ä" * 300_000
    with header_front(target, {"X": "1"}) as url, httpx2.Client(headers=MODERN) as client:
        for text in ("short", long, "short again"):
            answer = client.post(url, content=call("echo", {"text": text}))
            assert result_of(answer)["structuredContent"]["arguments"] == {"text": text}


def test_a_chunked_body_arrives_whole(target: str) -> None:
    body = call("echo", {"text": "x" * 100_000}).encode()
    pieces = (body[at : at + 7_000] for at in range(0, len(body), 7_000))
    with header_front(target, {"X": "1"}) as url, httpx2.Client(headers=MODERN) as client:
        answer = client.post(url, content=pieces)
        assert len(result_of(answer)["structuredContent"]["arguments"]["text"]) == 100_000
        assert client.post(url, content=call("echo")).status_code == 200


def test_an_answer_that_streams_comes_as_it_is_sent_and_going_away_cancels(target: str) -> None:
    with header_front(target, {"X": "1"}) as url, httpx2.Client(headers=MODERN) as client:
        with client.stream("POST", url, content=call("wait", progressToken=1)) as answer:
            assert next(answer.iter_lines()) == "event: message"
        # The connection is closed with the stream; the target hears of it in its own time.
        for _ in range(200):
            if result_of(client.post(url, content=call("cancelled")))["structuredContent"]["n"]:
                return
    pytest.fail("the target wasn't told that the client went away")


def test_what_is_no_http_ends_the_connection_alone(target: str) -> None:
    with header_front(target, {"X": "1"}) as url:
        parts = urlsplit(url)
        with socket.create_connection((parts.hostname or "", parts.port or 0), timeout=10) as connection:
            connection.sendall(b"nonsense\r\n\r\n")
            connection.settimeout(10)
            while connection.recv(4096):
                pass
        assert headers_at(url)


def test_a_front_that_stops_while_a_connection_ends_leaves_nothing_open(target: str) -> None:
    head = f"POST /mcp HTTP/1.1\r\nHost: {urlsplit(target).netloc}\r\nContent-Length: 2\r\n\r\n{{}}".encode()
    for _ in range(150):
        with header_front(target, {"X": "1"}) as url:
            parts = urlsplit(url)
            with socket.create_connection((parts.hostname or "", parts.port or 0), timeout=10) as connection:
                connection.sendall(head)
                assert connection.recv(4096).startswith(b"HTTP/1.1")
    # What was left open warns when it is found, and a warning fails the test.
    gc.collect()


@pytest.mark.parametrize("headers", [{"Bad name": "x"}, {"X": "two\r\nlines"}])
def test_a_header_that_is_none_is_refused(headers: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match="can't be sent"), header_front("http://127.0.0.1:1/mcp", headers):
        pass


def test_only_http_is_fronted() -> None:
    with pytest.raises(ConfigError, match="isn't an http URL"), header_front("https://example.org/mcp", {}):
        pass
