"""`hotplug log`: records of calls, filtered, in three forms, and as they come."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.cli.conftest import Run, validated

from hotplug.cli.failure import Exit
from hotplug.store import open_store
from hotplug.store.calls import SqliteCalls, StoredCall

URL = "sqlite:///gateway.db"
AT = 1_780_000_000.0


@pytest.fixture(autouse=True)
def _store(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOTPLUG_STORE", URL)


def add(*calls: StoredCall, url: str = URL) -> None:
    async def adding() -> None:
        async with open_store(url) as store:
            await SqliteCalls(store).add_calls(calls)

    anyio.run(adding)


def call(**given: Any) -> StoredCall:
    base = {"at": AT, "kind": "tools/call", "outcome": "ok", "thread": "t_a", "server": "work", "duration_ms": 12.4}
    return StoredCall(**{**base, "bytes_in": 10, "bytes_out": 200, **given})


def test_without_a_store_nothing_is_on_record_and_nothing_is_made(run: Run) -> None:
    assert run("log").out == "no call is on record\n"
    assert run("log", "--json").document["calls"] == []
    assert list(Path().iterdir()) == []


def test_a_call_is_a_line_for_people_and_a_document_for_programs(run: Run) -> None:
    add(
        call(member="calendar@1/calendar.create", action_id="a_1", digest="hmac-sha256:ab", trace_id="0a" * 16),
        call(outcome="-32602", server=None, thread=None, kind="tools/list"),
        call(kind="dropped", outcome="dropped", dropped=7),
    )
    lines = run("log").out.splitlines()
    assert lines[0] == "2026-05-28T20:26:40.000Z  t_a  work  calendar@1/calendar.create  ok  12 ms  10 > 200 bytes"
    assert lines[1].split("  ")[1:5] == ["-", "-", "tools/list", "-32602"]
    assert "7 calls were not recorded" in lines[2]
    first, second, third = run("log", "--json").document["calls"]
    assert (first["member"], first["actionId"], first["durationMs"]) == ("calendar@1/calendar.create", "a_1", 12.4)
    assert "thread" not in second
    assert third["dropped"] == 7
    rows = [validated(line) for line in run("log", "--format", "jsonl").out.splitlines()]
    assert [row["id"] for row in rows] == [1, 2, 3]


def test_filters_narrow_what_is_shown(run: Run) -> None:
    now = time.time()
    add(
        call(at=now - 7200, thread="t_b"),
        call(at=now - 60, server="mail", outcome="not_found"),
        call(at=now, outcome="lost"),
    )
    for words, count in (
        ((), 3),
        (("--thread", "t_b"), 1),
        (("--server", "mail"), 1),
        (("--outcome", "failed"), 2),
        (("--outcome", "lost"), 1),
        (("--since", "1h"), 2),
        (("--since", "2020-01-01T00:00:00Z"), 3),
        (("--limit", "1"), 1),
        (("--thread", "t_none"), 0),
    ):
        assert len(run("log", *words, "--json").document["calls"]) == count, words
    assert run("log", "-n", "1", "--json").document["calls"][0]["outcome"] == "lost"


@pytest.mark.parametrize("since", ["yesterday", "2026-06-11T17:00:00", "5", "-1h"])
def test_a_since_that_is_no_moment_is_refused(run: Run, since: str) -> None:
    assert run("log", f"--since={since}").code == Exit.USAGE


def test_an_outcome_that_there_is_not_is_refused_with_the_nearest(run: Run) -> None:
    ran = run("log", "--outcome", "faild")
    assert ran.code == Exit.USAGE
    assert "failed" in ran.err
    for known in ("ok", "cancelled", "not_found", "-32602", "tool_error", "other", "dropped"):
        assert run("log", f"--outcome={known}").code == 0


def test_arguments_that_were_kept_are_shown(run: Run) -> None:
    add(call(arguments='{"title": "x\\u001b[31m"}', result='{"a": [1]}'))
    (document,) = run("log", "--json").document["calls"]
    assert document["arguments"] == {"title": "x\x1b[31m"}
    assert document["result"] == {"a": [1]}
    text = run("log").out
    assert "arguments {" in text
    assert "\x1b" not in text


def test_following_goes_on_with_each_call_as_it_comes(run: Run, tmp_path: Path) -> None:
    add(call(), call(thread="t_b"))
    url = f"sqlite:///{tmp_path}/gateway.db"
    process = subprocess.Popen(
        [sys.executable, "-m", "hotplug", "log", "--follow", "--thread", "t_a", "--json", "--store", url],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    try:
        assert process.stdout is not None
        assert validated(process.stdout.readline().decode())["id"] == 1
        add(call(thread="t_b"), call(outcome="lost"), url=url)
        assert json.loads(process.stdout.readline())["outcome"] == "lost"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
        assert (process.returncode, out, err) == (Exit.INTERRUPTED, b"", b"")
    finally:
        process.kill()
        process.communicate()
