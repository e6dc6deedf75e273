"""Access logs: formats, real rotation and truncation, and what can't be known."""

from __future__ import annotations

import gzip
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from hotplug.errors import ConfigError
from hotplug.evidence.window import closed_cleanly
from hotplug.witness import HttpLog

pytestmark = pytest.mark.anyio

COMBINED = '127.0.0.1 - - [30/Nov/2026:17:24:58 +0000] "{}" {} 12 "https://h/?token=S3cr3t" "curl/8"\n'
POST = COMBINED.format("POST /orders?token=S3cr3t HTTP/1.1", 201)
GET = COMBINED.format("GET /orders/1 HTTP/2.0", 200)


class Server:
    """Writes a log as web servers do: through a handle that it keeps until it is told to open the file anew."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.reopen()

    def reopen(self) -> None:
        self.handle = self.path.open("ab", buffering=0)

    def write(self, text: str) -> None:
        self.handle.write(text.encode())


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    running = Server(tmp_path / "access.log")
    yield running
    running.handle.close()


async def test_only_lines_after_the_opening_count(server: Server, watch: Callable[..., Any]) -> None:
    server.write(POST + GET)
    log = HttpLog(server.path)
    at = await watch(log)
    assert await at.seen() == []
    server.write(POST)
    (one,) = await at.observed()
    assert one.summary == "POST /orders 201"
    assert one.value == {"method": "POST", "path": "/orders", "status": 201}
    server.write(GET)
    assert (await at.observed())[0].id == one.id
    assert await at.seen() == ["POST /orders 201", "GET /orders/1 200"]
    assert await at.gaps() == []
    assert (await log.coverage(at.window)).observed == ("net",)
    assert log.can_prove_anything()


async def test_a_line_begun_before_the_opening_is_not_counted(server: Server, watch: Callable[..., Any]) -> None:
    server.write(POST[:40])
    at = await watch(HttpLog(server.path))
    server.write(POST[40:])
    assert await at.seen() == []
    server.write(GET)
    assert await at.seen() == ["GET /orders/1 200"]


async def test_a_partial_last_line_waits_and_is_said(server: Server, watch: Callable[..., Any]) -> None:
    at = await watch(HttpLog(server.path))
    server.write(POST[:50])
    assert await at.seen() == []
    assert await at.gaps() == [("still-in-flight", "net")]
    server.write(POST[50:])
    assert await at.seen() == ["POST /orders 201"]
    assert await at.gaps() == []


async def test_rotation_is_followed_also_while_the_server_still_writes_into_the_old_file(
    server: Server, watch: Callable[..., Any]
) -> None:
    at = await watch(HttpLog(server.path))
    server.write(GET)
    server.path.rename(server.path.with_suffix(".log.1"))
    server.write(POST)
    assert await at.seen() == ["GET /orders/1 200", "POST /orders 201"]
    assert await at.gaps() == [("channel-unobserved", "net")]
    old = server.handle
    server.reopen()
    old.write(POST.encode())
    server.write(GET)
    assert await at.seen() == ["GET /orders/1 200", "POST /orders 201", "POST /orders 201", "GET /orders/1 200"]
    assert await at.gaps() == []
    old.write(POST.encode())
    old.close()
    assert (await at.seen()).count("POST /orders 201") == 3
    assert await at.gaps() == []


async def test_two_rotations_between_two_looks_are_a_gap(server: Server, watch: Callable[..., Any]) -> None:
    at = await watch(HttpLog(server.path))
    for number in (2, 1):
        server.write(GET)
        server.path.rename(server.path.with_suffix(f".log.{number}"))
        server.handle.close()
        server.reopen()
    server.write(POST)
    assert await at.seen() == ["GET /orders/1 200", "POST /orders 201"]
    (gap,) = await at.spots()
    assert (gap.kind, gap.channel) == ("buffer-truncated", "net")
    assert "access.log.1 was not read" in gap.detail


async def test_an_older_rotated_file_is_no_gap(server: Server, watch: Callable[..., Any]) -> None:
    old = server.path.with_suffix(".log.1")
    old.write_text(GET)
    os.utime(old, (1, 1))
    with gzip.open(server.path.with_suffix(".log.2.gz"), "wt") as packed:
        packed.write(GET)
    os.utime(server.path.with_suffix(".log.2.gz"), (1, 1))
    at = await watch(HttpLog(server.path))
    server.path.rename(server.path.with_suffix(".log.0"))
    server.handle.close()
    server.reopen()
    server.write(POST)
    assert await at.seen() == ["POST /orders 201"]
    assert await at.gaps() == []


@pytest.mark.parametrize("after", [POST, (GET * 40) + POST], ids=["shorter", "longer than before"])
async def test_truncation_is_a_gap_that_stays(server: Server, watch: Callable[..., Any], after: str) -> None:
    server.write(GET * 10)
    at = await watch(HttpLog(server.path))
    shutil.copy(server.path, server.path.with_suffix(".log.1"))
    os.truncate(server.path, 0)
    server.write(after.replace("curl/8", "other"))
    assert (await at.seen())[-1] == "POST /orders 201"
    assert ("buffer-truncated", "net") in await at.gaps()
    await at.seen()
    assert ("buffer-truncated", "net") in await at.gaps()


@pytest.mark.parametrize("what", ["missing", "folder", "pipe"])
async def test_a_log_that_can_not_be_read_is_a_blind_spot_and_not_an_absence(
    what: str, tmp_path: Path, watch: Callable[..., Any]
) -> None:
    path = tmp_path / "access.log"
    if what == "folder":
        path.mkdir()
    elif what == "pipe":
        os.mkfifo(path)
    at = await watch(HttpLog(path))
    assert await at.seen() == []
    assert await at.gaps() == [("channel-unobserved", "net")]


async def test_a_log_that_was_missing_at_the_opening_stays_a_gap(tmp_path: Path, watch: Callable[..., Any]) -> None:
    at = await watch(HttpLog(tmp_path / "access.log"))
    (tmp_path / "access.log").write_text(POST)
    assert await at.seen() == []
    assert await at.gaps() == [("channel-unobserved", "net")]


async def test_bad_lines_are_counted_and_said_without_their_text(server: Server, watch: Callable[..., Any]) -> None:
    at = await watch(HttpLog(server.path))
    server.write("garbage with S3cr3t\n" + POST + "\n" + "x" * 3_000_000 + "\n" + GET)
    assert await at.seen() == ["POST /orders 201", "GET /orders/1 200"]
    (gap,) = await at.spots()
    assert (gap.kind, gap.channel) == ("channel-unobserved", "net")
    assert "2 line(s) could not be read" in gap.detail
    assert "S3cr3t" not in gap.detail


async def test_what_was_no_http_request_is_mentioned_and_impeaches_nothing(
    server: Server, watch: Callable[..., Any]
) -> None:
    at = await watch(HttpLog(server.path))
    server.write(COMBINED.format("\\x16\\x03\\x01", 400) + COMBINED.format("-", 408))
    assert await at.seen() == []
    assert await at.gaps() == [("boundary-uncrossable", None)]


async def test_more_requests_than_the_limit_are_a_gap(server: Server, watch: Callable[..., Any]) -> None:
    at = await watch(HttpLog(server.path, limit=2))
    server.write(POST * 3)
    assert await at.seen() == ["POST /orders 201"] * 2
    assert await at.gaps() == [("buffer-truncated", "net")]


async def test_the_close_waits_for_lines_that_come_late(server: Server, watch: Callable[..., Any]) -> None:
    at = await watch(HttpLog(server.path, quiet=0.5))

    async def late() -> None:
        await anyio.sleep(0.1)
        server.write(POST)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(late)
        closed = await at.close()
    assert closed.closed_by == "quiescence"
    assert closed_cleanly(closed)
    server.write(GET)
    assert await at.seen() == ["POST /orders 201"]


@pytest.mark.parametrize(
    ("form", "line", "expected"),
    [
        ("common", '::1 - bob [x] "DELETE /a/b HTTP/1.0" 204 -', "DELETE /a/b 204"),
        ("common", '1.2.3.4 - Jane Doe [x] "GET / HTTP/1.1" 200 5', "GET / 200"),
        ("combined", '1.2.3.4 - - [x] "GET //evil/x HTTP/1.1" 404 5 "-" "a \\"b\\"" 0.003', "GET /.//evil/x 404"),
        ("combined", '1.2.3.4 - - [x] "GET /a\\x22b\\xc3 HTTP/1.1" 200 5 "-" "-"', "GET /a%22b%C3 200"),
        ("combined", '1.2.3.4 - - [x] "GET / HTTP/1.1" 000 0 "-" "-"', "GET / failed"),
        ("combined", '1.2.3.4 - - [x] "GET https://h/x?y HTTP/1.1" 200 0 "-" "-"', "GET /x 200"),
        ("combined", '1.2.3.4 - - [x] "GET https://other/x HTTP/1.1" 200 0 "-" "-"', "GET //other/x 200"),
        ("json", json.dumps({"request_method": "PUT", "request_uri": "/a?b", "status": "200"}), "PUT /a 200"),
        ("json", json.dumps({"request": {"method": "PUT", "uri": "/a"}, "status": 502, "uri": None}), "PUT /a 502"),
        ("json", json.dumps({"RequestMethod": "GET", "RequestPath": "/t", "DownstreamStatus": 0}), "GET /t failed"),
        ("json", json.dumps({"req": {"method": "GET", "url": "/p?q"}, "res": {"statusCode": 304}}), "GET /p 304"),
        (r"(?P<status>\d+) (?P<method>\w+) (?P<path>\S+)", "x 201 POST /orders?x", "POST /orders 201"),
    ],
)
async def test_formats(form: str, line: str, expected: str, server: Server, watch: Callable[..., Any]) -> None:
    at = await watch(HttpLog(server.path, form, origin="https://h"))
    server.write(line + "\n")
    assert await at.seen() == [expected]
    assert await at.gaps() == []


async def test_a_json_log_has_other_records_too(server: Server, watch: Callable[..., Any]) -> None:
    at = await watch(HttpLog(server.path, "json", fields={"method": "http.verb", "path": "p", "status": "s"}))
    server.write(json.dumps({"msg": "started"}) + "\n")
    server.write(json.dumps({"http": {"verb": "GET"}, "p": "/x", "s": 200}) + "\n")
    assert await at.seen() == ["GET /x 200"]
    assert await at.gaps() == []
    server.write('{"http": {"verb": "GET"}, "p": "/x"}\n[1]\n' + "[" * 50_000 + "\n")
    assert await at.seen() == ["GET /x 200"]
    (gap,) = await at.spots()
    assert "3 line(s)" in gap.detail


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nginx",), "has no group"),
        (("(?P<method>",), "no regular expression"),
        (("json", {"verb": "x"}), "fields="),
        (("common", {"method": "x"}), "fields="),
    ],
)
def test_a_format_that_is_none_is_refused(arguments: tuple[Any, ...], message: str) -> None:
    form, *fields = arguments
    with pytest.raises(ConfigError, match=message):
        HttpLog("access.log", form, fields=fields[0] if fields else None)
