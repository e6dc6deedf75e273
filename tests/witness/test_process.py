"""Processes as witnesses: real ones, that end and are ended."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import anyio
import pytest

from hotplug.errors import ConfigError
from hotplug.evidence.window import closed_cleanly
from hotplug.witness import ProcessWitness

pytestmark = pytest.mark.anyio

WAITS = [sys.executable, "-c", "import sys; sys.exit(int(sys.stdin.readline() or 0))"]


async def start(kind: str) -> Any:
    if kind == "subprocess":
        return subprocess.Popen(WAITS, stdin=subprocess.PIPE, text=True)
    if kind == "asyncio":
        return await asyncio.create_subprocess_exec(*WAITS, stdin=subprocess.PIPE)
    return await anyio.open_process(WAITS, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


async def tell(process: Any, line: str) -> None:
    if isinstance(process, subprocess.Popen):
        process.communicate(line)
    elif isinstance(process, asyncio.subprocess.Process):
        await process.communicate(line.encode())
    else:
        await process.stdin.send(line.encode())
        await process.wait()
        await process.aclose()


async def reap(process: Any) -> None:
    if isinstance(process, subprocess.Popen):
        process.communicate()
    elif isinstance(process, asyncio.subprocess.Process):
        await process.communicate()
    else:
        await process.aclose()


@pytest.mark.parametrize("kind", ["subprocess", "asyncio", "anyio"])
async def test_the_code_that_a_program_ends_with_is_seen(kind: str, watch: Callable[..., Any]) -> None:
    process = await start(kind)
    witness = ProcessWitness(process)
    at = await watch(witness)
    assert await at.seen() == []
    assert await at.gaps() == []
    await tell(process, "3\n")
    (one,) = await at.observed()
    assert (one.channel, one.summary, one.value) == ("x-exit", "exit 3", {"pid": process.pid, "code": 3})
    assert await at.observed() == (one,)
    closed = await at.close()
    assert closed.closed_by == "exit"
    assert closed_cleanly(closed)
    later = await watch(witness)
    assert await later.seen() == []


@pytest.mark.parametrize("kind", ["subprocess", "asyncio", "anyio"])
async def test_a_kill_is_a_termination_and_no_exit(
    kind: str, watch: Callable[..., Any], until: Callable[..., Any]
) -> None:
    process = await start(kind)
    at = await watch(ProcessWitness(process))
    os.kill(process.pid, signal.SIGKILL)
    (one,) = await until(at.observed)
    assert (one.channel, one.summary) == ("x-termination", "SIGKILL")
    assert one.value == {"pid": process.pid, "signal": "SIGKILL"}
    closed = await at.close()
    assert closed.closed_by == "ack"
    assert closed_cleanly(closed)
    await reap(process)


async def test_a_program_that_runs_on_has_neither(watch: Callable[..., Any]) -> None:
    witness = await ProcessWitness.run([sys.executable, "-c", "import time; time.sleep(60)"], waits=False)
    at = await watch(witness)
    assert (await at.close()).closed_by == "ack"
    assert await at.seen() == []
    assert (await witness.coverage(at.window)).observed == ("x-exit", "x-termination")
    pid = witness.pid
    await witness.aclose()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_a_close_waits_for_the_end_of_what_was_started(watch: Callable[..., Any]) -> None:
    at = await watch(
        await ProcessWitness.run([sys.executable, "-c", "import time; time.sleep(0.3); raise SystemExit(2)"])
    )
    assert (await at.close()).closed_by == "exit"
    assert await at.seen() == ["exit 2"]


async def test_a_close_waits_no_longer_than_the_budget() -> None:
    witness = await ProcessWitness.run([sys.executable, "-c", "import time; time.sleep(60)"])
    window = await witness.open_window(200)
    closed = await witness.close_window(window)
    assert closed.closed_by == "budget-exhausted"
    await witness.aclose()


async def test_a_child_by_its_id_is_seen_and_left_to_its_parent(
    watch: Callable[..., Any], until: Callable[..., Any]
) -> None:
    process = subprocess.Popen(WAITS, stdin=subprocess.PIPE, text=True)
    assert process.stdin is not None
    at = await watch(ProcessWitness(process.pid))
    process.stdin.write("7\n")
    process.stdin.close()
    assert [one.summary for one in await until(at.observed)] == ["exit 7"]
    assert process.wait() == 7


async def test_how_a_foreign_process_ended_is_a_blind_spot(
    watch: Callable[..., Any], until: Callable[..., Any]
) -> None:
    parent = (
        "import subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import sys; sys.stdin.readline()'], stdin=subprocess.PIPE)\n"
        "print(child.pid, flush=True)\n"
        "sys.stdin.readline()\n"
        "child.communicate(b'x')\n"
        "print('ended', flush=True)\n"
        "sys.stdin.readline()\n"
    )
    outer = subprocess.Popen([sys.executable, "-c", parent], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert outer.stdin is not None
    assert outer.stdout is not None
    at = await watch(ProcessWitness(int(outer.stdout.readline())))
    assert await at.seen() == []
    assert await at.gaps() == []
    outer.stdin.write("go\n")
    outer.stdin.flush()
    assert outer.stdout.readline() == "ended\n"
    assert await at.seen() == []
    assert await at.gaps() == [("channel-unobserved", "x-exit"), ("channel-unobserved", "x-termination")]
    assert "told to its parent alone" in (await at.spots())[0].detail
    outer.communicate("x")


async def test_what_is_no_process_is_refused() -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    for wrong in (ended.pid, True, 0, "init"):
        with pytest.raises(ConfigError, match="no process"):
            ProcessWitness(wrong)
    with pytest.raises(ConfigError, match="can't be started"):
        await ProcessWitness.run(["no-such-program-here"])


async def test_it_can_prove_only_what_came_from_outside(watch: Callable[..., Any]) -> None:
    witness = await ProcessWitness.run([sys.executable, "-c", ""])
    await watch(witness)
    assert [(one.id, one.independence, one.grade) for one in witness.channels()] == [
        ("x-exit", "actuation-derived", "presence"),
        ("x-termination", "independent", "consequence"),
    ]
