"""Two hundred repeats of one creation under one key, over three servers of which one is killed: never two events.

Everything is real: the servers are children that speak MCP over stdio, what they share is one file (or one folder with
its store), the death is SIGKILL, and what is true is read from the table or the files themselves.

CI plays 50 rounds; elsewhere the suite plays a few, and `HOTPLUG_ROUNDS` says how many. The choices of a round follow
from the seed that is printed (`HOTPLUG_SEED` plays it again); the moments of two machines are never quite the same.
"""

from __future__ import annotations

import json
import os
import random
import secrets
import signal
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import anyio
import pytest

from hotplug.connect import CommandTarget, McpSession
from hotplug.errors import Disconnected

from .native import KINDS, content

pytestmark = pytest.mark.anyio

ROUNDS = int(os.environ.get("HOTPLUG_ROUNDS") or ("50" if os.environ.get("CI") else "5"))
SEED = os.environ.get("HOTPLUG_SEED") or secrets.token_hex(4)
CALLS = (67, 67, 66)
ENOUGH = 20
"""Rounds after which luck alone doesn't explain that no death came in between."""
KEY_META = "tools.noetic/idempotency-key"
DISCONNECTED = "disconnected"
IN_DOUBT = "in_doubt"


class Server:
    """A server process, and the session with it."""

    def __init__(self, kind: str, folder: Path) -> None:
        script = str(Path(__file__).with_name("native_server.py"))
        target = CommandTarget((sys.executable, script, kind, str(folder)))
        self.session = McpSession(target, name=f"a {kind} server", on_log=self._hear)
        self.answers: Counter[str] = Counter()
        self._process: int | None = None
        self._heard = anyio.Event()

    def _hear(self, line: str) -> None:
        if line.startswith("process "):
            self._process = int(line.removeprefix("process "))
            self._heard.set()

    async def start(self) -> None:
        await self.session.start()
        await self._heard.wait()

    async def calendar(self) -> str:
        return str((await self.session.call("calendar.calendars")).structured["calendars"][0]["calendar"])

    async def create(self, calendar: str, key: str) -> str:
        """Ask for the one event: what was answered, whole, or the code of the error."""
        arguments = {
            "calendar": calendar,
            "title": key,
            "start": "2026-06-11T17:00:00",
            "duration": "PT1H",
            "timeZone": "Asia/Jerusalem",
        }
        try:
            result = await self.session.call("calendar.create", arguments, meta={KEY_META: key})
        except Disconnected:
            return DISCONNECTED
        failed = result.failed()
        return failed.code if failed else json.dumps(result.structured, sort_keys=True)

    async def tell(self, calendar: str, key: str) -> None:
        self.answers[await self.create(calendar, key)] += 1

    def kill(self) -> None:
        assert self._process is not None
        with suppress(ProcessLookupError):
            os.kill(self._process, signal.SIGKILL)


@dataclass(frozen=True)
class Played:
    """What a round came to: answers of the survivors and of the one that died, and how many events there are."""

    survivors: Counter[str]
    victim: Counter[str]
    events: int

    @property
    def halfway(self) -> bool:
        """Whether the death came between the first call and the last."""
        return self.victim[DISCONNECTED] > 0


@pytest.mark.timeout(900)
@pytest.mark.parametrize("kind", KINDS)
async def test_two_hundred_repeats_over_three_servers_one_killed_make_never_two_events(
    kind: str, tmp_path: Path
) -> None:
    print(f"HOTPLUG_SEED={SEED} HOTPLUG_ROUNDS={ROUNDS}")
    started: list[Server] = []
    send, spares = anyio.create_memory_object_stream[Server](0)
    played: list[Played] = []

    async def breed() -> None:
        """Start servers ahead of the rounds, so that a round needn't wait for the one that replaces its dead."""
        while True:
            server = Server(kind, tmp_path)
            started.append(server)
            await server.start()
            await send.send(server)

    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(breed)
            tasks.start_soon(breed)
            servers = [await spares.receive() for _ in CALLS]
            calendar = await servers[0].calendar()
            for number in range(ROUNDS):
                chance = random.Random(f"{SEED} {kind} {number}")
                with anyio.fail_after(60):
                    key = f"round-{number}"
                    servers, one = await play(kind, tmp_path, calendar, key, servers, chance, spares.receive)
                played.append(one)
            tasks.cancel_scope.cancel()
    finally:
        send.close()
        spares.close()
        with anyio.CancelScope(shield=True):
            async with anyio.create_task_group() as ending:
                for server in started:
                    ending.start_soon(server.session.aclose)
    halfway = sum(one.halfway for one in played)
    doubtful = sum(one.survivors[IN_DOUBT] > 0 for one in played)
    print(f"{kind}: {len(played)} rounds, {halfway} deaths in between, {doubtful} left in doubt")
    titles = made(kind, tmp_path)
    assert len(set(titles)) == len(titles) == sum(one.events for one in played)
    if ROUNDS >= ENOUGH:
        assert halfway, "no server was killed in between: the test shows nothing"
        assert doubtful or kind == "sqlite", "no record was left half-way: the test shows nothing"


async def play(
    kind: str,
    folder: Path,
    calendar: str,
    key: str,
    servers: Sequence[Server],
    chance: random.Random,
    spare: Callable[[], Awaitable[Server]],
) -> tuple[list[Server], Played]:
    """A round; gives the servers of the next, the killed one replaced, and what came of it."""
    servers = list(servers)
    chance.shuffle(servers)
    victim, *others = servers
    for server in servers:
        server.answers.clear()
    async with anyio.create_task_group() as tasks:
        # The victim is mostly the first to begin, so that its death leaves the others something to find out.
        ahead = chance.random() < 0.7
        order = servers if ahead else [*others, victim]
        for server, calls in zip(order, CALLS, strict=True):
            for _ in range(calls):
                tasks.start_soon(server.tell, calendar, key)
            if ahead and server is victim:
                await anyio.sleep(chance.choice([0, 0, 0.01, 0.02]) * chance.random())
                tasks.start_soon(kill_later, victim, chance.choice([0.03, 0.1]) * chance.random())
        if not ahead:
            tasks.start_soon(kill_later, victim, 0.15 * chance.random())
    events = made(kind, folder).count(key)
    played = Played(others[0].answers + others[1].answers, +victim.answers, events)
    check(kind, played)
    # What was found out stays: at each survivor, and at a server that wasn't there.
    replaced = await spare()
    for server in (*others, replaced):
        assert played.survivors.keys() == {await server.create(calendar, key)}, played
    assert made(kind, folder).count(key) == events, played
    await victim.session.aclose()
    return [*others, replaced], played


def check(kind: str, played: Played) -> None:
    """Hold what was answered against what is there."""
    assert played.survivors.total() + played.victim.total() == sum(CALLS), played
    # Whatever it is that a repeat is told, every one of them is told the same.
    assert len(played.survivors) == 1, played
    (told,) = played.survivors
    if kind == "folder" and told == IN_DOUBT:
        # Nobody was told of an event, and at the most there is the one that the dead server made.
        assert played.events <= 1, played
        assert played.victim.keys() == {DISCONNECTED}, played
        return
    # The file has the record committed with the event: there, nothing is ever in doubt.
    assert told.startswith("{"), played
    assert played.events == 1, played
    assert played.victim.keys() <= {told, DISCONNECTED}, played


async def kill_later(server: Server, seconds: float) -> None:
    await anyio.sleep(seconds)
    server.kill()


def made(kind: str, folder: Path) -> list[str]:
    """The titles of all events."""
    found = content(kind, folder)
    if kind == "sqlite":
        return [json.loads(body)["title"] for *_, body in found["calendar_events"]]
    texts = [body.decode() for name, body in found.items() if name.endswith(".ics")]
    return [
        line.removeprefix("SUMMARY:") for text in texts for line in text.split("\r\n") if line.startswith("SUMMARY:")
    ]
