"""A soak: fifty clients, servers that crash and hang and are killed, settings that change all the time.

Everything that an answer may be is decided from what stood in the settings while it was made. The length is 300
seconds in CI, else 20; `HOTPLUG_SOAK_SECONDS` says another, `HOTPLUG_SOAK_SEED` which dice.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import statistics
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any, Final

import aiohttp
import httpx2
import mcp
import pytest
from mcp.client.streamable_http import streamable_http_client

from .soak.client import Client, Gone, Reply
from .soak.machine import OPENER, Machine, until
from .soak.owner import TOOLS, Owner, Thread, shut

IN_CI: Final = os.environ.get("CI", "") not in ("", "0", "false")
SECONDS: Final = float(os.environ.get("HOTPLUG_SOAK_SECONDS") or (300 if IN_CI else 20))
RAW, REAL, THREADS = 46, 4, 12
_LOST: Final = ("disconnected", "unavailable")
_FAULTS_SHOWN: Final = 20

pytestmark = [pytest.mark.anyio, pytest.mark.real, pytest.mark.soak, pytest.mark.timeout(SECONDS + 240)]


class Soak:
    """What goes on, and what of it was wrong."""

    def __init__(self, machine: Machine, url: str, random: Random, http: aiohttp.ClientSession) -> None:
        self.machine = machine
        self.url = url
        self.random = random
        self.http = http
        self.owner = Owner(machine.settings, random)
        self.threads: list[Thread] = []
        self.faults: list[str] = []
        self.seen: Counter[str] = Counter()
        self.added: dict[str, str] = {}
        """What was answered to each key that `frail` was to note down."""
        self.marks = itertools.count(1)
        self.over = time.monotonic() + SECONDS

    @property
    def going(self) -> bool:
        return time.monotonic() < self.over and self.machine.gateway.poll() is None

    def fault(self, what: str) -> None:
        self.faults.append(what)

    # Threads

    async def open(self, parent: Thread | None = None, *, delegated: bool = False) -> None:
        token = OPENER if parent is None else parent.token
        headers = {"authorization": f"Bearer {token}"}
        async with self.http.post(f"{self.url}/threads", json={"delegated": delegated}, headers=headers) as response:
            if response.status == 201:
                opened = await response.json()
                self.threads.append(Thread(opened["thread"]["id"], opened["token"], parent, delegated))
            elif parent is None or not shut(parent):
                self.fault(f"a thread can't be opened: {response.status} {await response.text()}")

    async def close(self, thread: Thread) -> None:
        thread.closed = time.monotonic()
        headers = {"authorization": f"Bearer {thread.token}"}
        async with self.http.delete(f"{self.url}/threads/{thread.id}", headers=headers) as response:
            if response.status != 200 and not (thread.parent is not None and shut(thread.parent)):
                self.fault(f"a thread can't be closed: {response.status} {await response.text()}")
        thread.surely = time.monotonic()
        self.threads = [one for one in self.threads if not shut(one)]

    async def tend_threads(self) -> None:
        while self.going:
            await asyncio.sleep(self.random.uniform(0.2, 0.8))
            if len(self.threads) < THREADS:
                fork = self.threads and self.random.random() < 0.5
                parent = self.random.choice(self.threads) if fork else None
                await self.open(parent, delegated=parent is not None and self.random.random() < 0.5)
            elif self.random.random() < 0.3:
                await self.close(self.random.choice(self.threads))

    # What else goes on

    async def change_settings(self) -> None:
        while self.going:
            await asyncio.sleep(self.random.uniform(0.02, 0.2))
            self.owner.change(self.threads)

    async def kill(self) -> None:
        again = time.monotonic() + min(25.0, SECONDS / 3)
        while self.going:
            await asyncio.sleep(self.random.uniform(0.5, 1.5))
            self.machine.kill_one(self.random)
            self.machine.look()
            if time.monotonic() > again:
                again = time.monotonic() + 25
                self.machine.kill_web()
                await asyncio.sleep(1)
                self.machine.start_web()

    # Clients

    async def raw_client(self, number: int) -> None:
        """One client after another, each some seconds, on any thread."""
        random = Random(self.random.random())
        while self.going:
            if not self.threads:
                await asyncio.sleep(0.1)
                continue
            thread = random.choice(self.threads)
            client = Client(
                self.http, f"{self.url}/threads/{thread.id}/mcp", thread.token, "modern" if number % 2 else "legacy"
            )
            until = min(self.over, time.monotonic() + random.uniform(1, 15))
            try:
                await client.open()
                while self.going and time.monotonic() < until:
                    await self.one_call(client, thread, random)
                    await asyncio.sleep(random.uniform(0, 0.2))
            except Gone as error:
                if not shut(thread):
                    self.fault(f"an open thread's client was turned away: {error}")
                self.seen["gone"] += 1
            except AssertionError as error:
                self.fault(f"for {thread.id}: {error}")
            finally:
                with contextlib.suppress(Gone):
                    await client.leave(politely=random.random() < 0.7)
            for stray in client.strays:
                self.fault(f"on the general stream: {stray}")

    async def one_call(self, client: Client, thread: Thread, random: Random) -> None:
        dice = random.random()
        if dice < 0.06:
            await self.list_tools(client, thread)
            return
        if dice < 0.1:
            await self.prompt(client, thread, random)
            return
        server = random.choice(list(TOOLS))
        tool = random.choice(TOOLS[server])
        mark = f"m{next(self.marks)}"
        arguments: dict[str, Any] = {"mark": mark}
        notes = random.choice((0, 0, 1, 3, 30)) if tool == "echo" else 0
        patience: float | None = None
        if notes:
            arguments["notes"] = notes
        if tool == "slow":
            arguments["seconds"] = random.choice((0.05, 0.2, 0.5))
            patience = random.choice((None, 0.1))
        name = f"{server}.{tool}"
        if server == "cal":
            name, arguments = tool, _calendar(tool, mark, thread, random)
        began = time.monotonic()
        try:
            async with asyncio.timeout(patience):
                reply = await client.request(
                    "tools/call", {"name": name, "arguments": arguments}, progress="p" if notes else None
                )
        except TimeoutError:
            self.seen["given up"] += 1
            return
        except aiohttp.ClientError as error:
            if self.going and not shut(thread):
                self.fault(f"{name} of {thread.id}: {error!r}")
            return
        self.judge(thread, server, tool, reply, mark, notes, began, time.monotonic())
        if tool == "add":
            self.note_added(mark, reply)

    def judge(
        self, thread: Thread, server: str, tool: str, reply: Reply, mark: str, notes: int, began: float, ended: float
    ) -> None:
        """Whether an answer is one that may be."""
        verdict = self.owner.verdict(thread, server, tool, began, ended)
        what = f"{server}/{tool} for {thread.id} ({verdict}): {str(reply.answer)[:300]}"
        for note in reply.notes:
            said = note.get("params", {})
            if note["method"] == "notifications/progress" and (said.get("message"), said.get("progressToken")) != (
                mark,
                "p",
            ):
                self.fault(f"a note of another call: {said}; {what}")
        told = _kind(reply)
        name = tool if server == "cal" else f"{server}.{tool}"
        self.seen[f"{server}: {told}"] += 1
        if thread.surely is not None and thread.surely < began:
            self.fault(f"a closed thread was answered: {what}")
        elif shut(thread):
            return
        if told == "refused":
            if verdict == "given":
                self.fault(f"refused: {what}")
        elif verdict == "refused":
            self.fault(f"not refused: {what}")
        elif told == "done":
            right = _right_of_calendar(reply, tool, mark, thread) if server == "cal" else _carries(reply, name, mark)
            if not right:
                self.fault(f"a wrong answer to {mark}: {what}")
            if sum(1 for note in reply.notes if note["method"] == "notifications/progress") != notes:
                self.fault(f"{len(reply.notes)} of {notes} notes: {what}")
        elif told not in _LOST or server == "cal":
            self.fault(f"a wrong error: {what}")

    def note_added(self, mark: str, reply: Reply) -> None:
        told = _kind(reply)
        state = reply.answer.get("error", {}).get("data", {}).get("details", {}).get("state")
        if told == "disconnected" and state not in ("unknown", "not_sent"):
            self.fault(f"nobody says whether {mark} was done: {reply.answer}")
        self.added[mark] = "unknown" if state == "unknown" else "once" if told == "done" else "never"

    async def list_tools(self, client: Client, thread: Thread) -> None:
        began = time.monotonic()
        reply = await client.request("tools/list", {})
        ended = time.monotonic()
        if reply.result is None:
            if not shut(thread):
                self.fault(f"a list failed: {reply.answer}")
            return
        listed = {tool["name"] for tool in reply.result["tools"]}
        self.seen["lists"] += 1
        if shut(thread):
            return
        for server, tools in TOOLS.items():
            for tool in tools:
                there = (tool if server == "cal" else f"{server}.{tool}") in listed
                verdict = self.owner.verdict(thread, server, tool, began, ended)
                if there and verdict == "refused":
                    self.fault(f"{server}/{tool} is listed for {thread.id}, which may not see it")
                if not there and verdict == "given" and server == "cal":
                    self.fault(f"{server}/{tool} isn't listed for {thread.id}, which may see it: {sorted(listed)}")

    async def prompt(self, client: Client, thread: Thread, random: Random) -> None:
        server = random.choice(("own", "all"))
        mark = f"m{next(self.marks)}"
        began = time.monotonic()
        reply = await client.request("prompts/get", {"name": f"{server}.say", "arguments": {"mark": mark}})
        given = {self.owner.verdict(thread, server, tool, began, time.monotonic()) for tool in TOOLS[server]}
        if reply.result is not None:
            self.seen["prompts"] += 1
            if reply.result["messages"][0]["content"]["text"] != mark:
                self.fault(f"a wrong prompt: {reply.answer}")
            if given == {"refused"} and not shut(thread):
                self.fault(f"a prompt of {server} for {thread.id}, which gets nothing of it")

    async def real_client(self, number: int) -> None:
        """The SDK's client, as people have it."""
        random = Random(self.random.random())
        while self.going:
            if not self.threads:
                await asyncio.sleep(0.1)
                continue
            thread = random.choice(self.threads)
            until = min(self.over, time.monotonic() + random.uniform(2, 15))
            try:
                headers = {"authorization": f"Bearer {thread.token}"}
                async with (
                    httpx2.AsyncClient(headers=headers, timeout=30) as http,
                    mcp.Client(
                        streamable_http_client(f"{self.url}/threads/{thread.id}/mcp", http_client=http),
                        mode="legacy" if number % 2 else "auto",
                    ) as client,
                ):
                    while self.going and time.monotonic() < until and not shut(thread):
                        await self.real_call(client, thread, random)
                        await asyncio.sleep(random.uniform(0.05, 0.3))
            except Exception as error:
                # What the SDK makes of a thread that is closed under it differs; of an open one nothing may fail.
                if self.going and not shut(thread):
                    self.fault(f"the SDK's client failed on {thread.id}: {error!r} {getattr(error, 'exceptions', '')}")

    async def real_call(self, client: mcp.Client, thread: Thread, random: Random) -> None:
        server = random.choice(("own", "all", "web"))
        mark = f"m{next(self.marks)}"
        notes: list[str | None] = []

        async def noted(progress: float, total: float | None, message: str | None) -> None:
            notes.append(message)

        wanted = random.choice((0, 5))
        began = time.monotonic()
        try:
            result = await client.call_tool(
                f"{server}.echo", {"mark": mark, "notes": wanted}, progress_callback=noted, read_timeout_seconds=60
            )
            answer: dict[str, Any] = {"result": {"structuredContent": result.structured_content}}
        except mcp.MCPError as error:
            answer = {"error": {"code": error.code, "message": str(error), "data": error.data}}
        sent = [{"method": "notifications/progress", "params": {"message": one, "progressToken": "p"}} for one in notes]
        self.judge(thread, server, "echo", Reply(answer, sent), mark, wanted, began, time.monotonic())
        self.seen["by the SDK's client"] += 1


def _calendar(tool: str, mark: str, thread: Thread, random: Random) -> dict[str, Any]:
    if tool == "calendar.create":
        when = {"start": "2026-06-11T15:00:00Z", "duration": "PT1H"}
        return {"calendar": thread.calendar or "none", "title": mark, **when}
    events = list(thread.events)
    return {} if tool == "calendar.calendars" else {"event": random.choice(events) if events else "none"}


def _kind(reply: Reply) -> str:
    if reply.result is not None:
        content = reply.result.get("structuredContent")
        # A profile's operation that isn't given, where others of the profile are.
        return "refused" if content is not None and content.get("code") == "unsupported" else "done"
    error: Mapping[str, Any] = reply.error
    data = error.get("data")
    if isinstance(data, dict) and "code" in data:
        return str(data["code"])
    return "refused" if error["message"].startswith("Unknown tool: ") else f"{error['code']} {error['message'][:80]!r}"


def _carries(reply: Reply, name: str, mark: str) -> bool:
    assert reply.result is not None
    content = reply.result["structuredContent"]
    return content["mark"] == mark and content["tool"] == name


def _right_of_calendar(reply: Reply, tool: str, mark: str, thread: Thread) -> bool:
    """Whether a calendar answered rightly; refs are learnt of it, and good for their own thread alone."""
    assert reply.result is not None
    content = reply.result["structuredContent"]
    if reply.result.get("isError"):
        return content["code"] == "not_found" and "none" in content["message"]
    if tool == "calendar.calendars":
        thread.calendar = content["calendars"][0]["calendar"]
        return len(content["calendars"]) == 1
    if tool == "calendar.create":
        thread.events[content["event"]] = mark
        return content["receipt"]["dispatched"]
    return thread.events[content["event"]] == content["title"]


async def test_fifty_clients_get_right_answers_and_nothing_is_left(tmp_path: Path) -> None:
    seed = int(os.environ.get("HOTPLUG_SOAK_SEED") or time.time_ns() % 1_000_000)
    print(f"soak: {SECONDS:g} s, seed {seed}")
    machine = Machine(tmp_path)
    try:
        await _soak(machine, Random(seed))
    finally:
        machine.end()


async def _soak(machine: Machine, random: Random) -> None:
    machine.settings.write_text("{}", encoding="utf-8")
    url = await asyncio.to_thread(machine.start)
    assert await until(machine.listens, 60)
    connector = aiohttp.TCPConnector(limit=0, force_close=False)
    timeout = aiohttp.ClientTimeout(total=120)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout, read_bufsize=1 << 20) as http:
        soak = Soak(machine, url, random, http)
        for _ in range(4):
            await soak.open()
        await _warm_up(soak)
        async with asyncio.TaskGroup() as group:
            for work in (soak.tend_threads(), soak.change_settings(), soak.kill()):
                group.create_task(work)
            for number in range(RAW):
                group.create_task(soak.raw_client(number))
            for number in range(REAL):
                group.create_task(soak.real_client(number))
        for thread in list(soak.threads):
            if not shut(thread):
                await soak.close(thread)
        print(f"settings changed {soak.owner.changes} times, {machine.kills} children killed")
        print(", ".join(f"{name} {count}" for name, count in sorted(soak.seen.items())))
        assert not soak.faults, f"{len(soak.faults)} faults: " + "\n".join(soak.faults[:_FAULTS_SHOWN])
        assert machine.gateway.poll() is None, "the gateway ended"
        _check_added(machine, soak)
        # Nobody is there any more: only what all share may still run.
        assert await until(lambda: Counter(machine.children().values()) <= Counter(all=1, stuck=1), 40), (
            machine.children()
        )
        await _check_sessions(machine, http)
    _check_memory(machine)
    assert await asyncio.to_thread(machine.stop) == 0
    assert await until(lambda: not machine.children(), 10), machine.children()
    _check_errors(machine)


async def _warm_up(soak: Soak) -> None:
    """Have every tool seen once: before that, nobody can know whose a name is."""
    thread = soak.threads[0]
    client = Client(soak.http, f"{soak.url}/threads/{thread.id}/mcp", thread.token, "modern")
    await client.open()
    deadline = time.monotonic() + 90
    there: set[str] = set()
    wanted = {tool if server == "cal" else f"{server}.{tool}" for server, tools in TOOLS.items() for tool in tools}
    soak.owner.open_all()
    while not wanted <= there:
        assert time.monotonic() < deadline, wanted - there
        reply = await client.request("tools/list", {})
        assert reply.result is not None, reply.answer
        there |= {tool["name"] for tool in reply.result["tools"]}
    soak.over = time.monotonic() + SECONDS


def _check_added(machine: Machine, soak: Soak) -> None:
    done = Counter((machine.folder / "added").read_text(encoding="ascii").split())
    wrong = [
        f"{mark}: answered as {said}, done {done[mark]} times"
        for mark, said in soak.added.items()
        if (done[mark] > 1) or (said == "once" and not done[mark]) or (said == "never" and done[mark])
    ]
    assert not wrong, wrong[:_FAULTS_SHOWN]
    assert sum(1 for said in soak.added.values() if said == "once"), "nothing was done at all"


async def _check_sessions(machine: Machine, http: aiohttp.ClientSession) -> None:
    """At the HTTP server no session is left either."""
    assert await until(machine.listens, 60)
    left = None
    deadline = time.monotonic() + 20
    while left != 0 and time.monotonic() < deadline:
        async with http.get(f"http://127.0.0.1:{machine.port}/sessions") as response:
            left = await response.json()
        await asyncio.sleep(0.2)
    assert left == 0, f"{left} sessions"


def _check_memory(machine: Machine) -> None:
    begin, end = machine.memory[0][0], machine.memory[-1][0]
    middle = (begin + end) / 2
    later = [size for at, size in machine.memory if at >= middle]
    before = statistics.median(later[: max(1, len(later) // 4)])
    after = statistics.median(later[-max(1, len(later) // 4) :])
    print(f"memory: {before / 1e6:.1f} MB at half time, {after / 1e6:.1f} MB at the end")
    # A short run is still warming up.
    bound = max(10e6, before / 10) if SECONDS >= 120 else 40e6
    assert after - before < bound


def _check_errors(machine: Machine) -> None:
    text = machine.errors.read_text(encoding="utf-8", errors="replace")
    for sign in ("Traceback", "failed inside", "never retrieved", "never awaited", "was destroyed"):
        assert sign not in text, text[max(0, text.index(sign) - 2_000) : text.index(sign) + 4_000]
