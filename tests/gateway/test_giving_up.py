"""What a client cancels ends everywhere, also where its server says nothing to it; and one bad server stops no line."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from hotplug.connect import CommandTarget
from hotplug.errors import StoreError
from hotplug.gateway.config import ServerConfig

from .roads import Hall, Stdio, hall, until
from .upstreams import Fake

pytestmark = pytest.mark.anyio
CHILDREN = Path(__file__).parent / "children"


def child(folder: Path, script: str = "plain", *arguments: str, name: str = "child", **more: Any) -> ServerConfig:
    argv = (sys.executable, str(CHILDREN / f"{script}.py"), str(folder / f"{name}.record"), *arguments)
    return ServerConfig(name, CommandTarget(argv), **more)


def lines(folder: Path, name: str = "child") -> list[str]:
    record = folder / f"{name}.record"
    return record.read_text().splitlines() if record.exists() else []


def calling(tool: str, id_: Any, **arguments: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id_, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}


def cancelled(id_: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id_, "reason": "tired"}}


async def answer(lines: Stdio, id_: Any) -> dict[str, Any]:
    while (message := json.loads(await lines.receive())).get("id") != id_:
        pass
    return message


async def test_a_cancelled_call_that_its_server_never_answers_ends_over_standard_streams(tmp_path: Path) -> None:
    async with hall(tmp_path, {"child": child(tmp_path, "plain", "legacy")}) as place:
        thread = await place.thread()
        async with place.stdio(thread.id) as client:
            await client.initialize()
            client.send(calling("child.silent", 7))
            await until(lambda: lines(tmp_path).count("tools/call") == 1)
            client.send(cancelled(7))
            async with asyncio.timeout(20):
                while True:
                    # Its id is used again: nothing of the first is left.
                    client.send(calling("child.echo", 7))
                    if "result" in await answer(client, 7):
                        break
                    await asyncio.sleep(0.05)
            assert lines(tmp_path).count("notifications/cancelled") == 1


@pytest.mark.parametrize("server", ["pipe", "http"])
async def test_a_cancelled_call_that_its_server_never_answers_ends_over_http(tmp_path: Path, server: str) -> None:
    fake = Fake(tools=["hold"])
    servers: dict[str, Any] = {"child": child(tmp_path, "plain", "legacy") if server == "pipe" else fake}
    async with hall(tmp_path, servers) as place:
        thread = await place.thread()
        session = await thread.session()
        tool = "child.silent" if server == "pipe" else "child.hold"
        asked = asyncio.create_task(session.send(json.dumps(calling(tool, 7)).encode()))
        await until(lambda: fake.holding.is_set() or "tools/call" in lines(tmp_path))
        assert (await session.send(json.dumps(cancelled(7)).encode())).status == 202
        reply = await asked
        assert (reply.status, reply.messages) == (200, [])
        fake.held.set()


async def test_an_answer_that_comes_after_all_is_passed_on(tmp_path: Path) -> None:
    async with hall(tmp_path, {"child": child(tmp_path, "plain", "legacy")}) as place:
        thread = await place.thread()
        async with place.stdio(thread.id) as client:
            await client.initialize()
            client.send(calling("child.wait", 7, file=str(tmp_path / "go")))
            await until(lambda: "tools/call" in lines(tmp_path))
            client.send(cancelled(7))
            await until(lambda: "notifications/cancelled" in lines(tmp_path))
            (tmp_path / "go").touch()
            assert (await answer(client, 7))["result"]["content"][0]["text"] == "waited"


async def restarting(place: Hall, folder: Path) -> int:
    """Let the child be gone, so that the next call has to wait until it is up again; gives the starts so far."""
    (folder / "go").unlink()
    pid = next(int(line.split()[1]) for line in reversed(lines(folder)) if line.startswith("start "))
    os.kill(pid, signal.SIGKILL)
    await until(lambda: place.gateway.pool.upstreams["child"].state.kind != "up")
    return starts(folder)


def starts(folder: Path) -> int:
    return sum(line.startswith("start ") for line in lines(folder))


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_a_call_that_is_cancelled_while_its_server_starts_is_never_made_over_standard_streams(
    tmp_path: Path, era: str
) -> None:
    (tmp_path / "go").touch()
    config = child(tmp_path, "slow_to_start", str(tmp_path / "go"), era)
    async with hall(tmp_path, {"child": config}) as place:
        thread = await place.thread()
        async with place.stdio(thread.id) as client:
            await client.initialize()
            client.send(calling("child.echo", 1))
            await answer(client, 1)
            before = await restarting(place, tmp_path)
            client.send(calling("child.count", 7))
            await until(lambda: starts(tmp_path) > before)
            client.send(cancelled(7))
            client.send({"jsonrpc": "2.0", "id": 8, "method": "ping"})
            await answer(client, 8)
            (tmp_path / "go").touch()
            client.send(calling("child.count", 9))
            assert (await answer(client, 9))["result"]["content"][0]["text"] == "1"


async def test_a_call_that_is_cancelled_while_its_server_starts_is_never_made_over_http(tmp_path: Path) -> None:
    (tmp_path / "go").touch()
    config = child(tmp_path, "slow_to_start", str(tmp_path / "go"), "legacy")
    async with hall(tmp_path, {"child": config}) as place:
        thread = await place.thread()
        session = await thread.session()
        assert "content" in await session.call("child.echo")
        before = await restarting(place, tmp_path)
        asked = asyncio.create_task(session.send(json.dumps(calling("child.count", 7)).encode()))
        await until(lambda: starts(tmp_path) > before)
        assert (await session.send(json.dumps(cancelled(7)).encode())).status == 202
        reply = await asked
        assert (reply.status, reply.messages) == (200, [])
        (tmp_path / "go").touch()
        assert (await session.call("child.count"))["content"][0]["text"] == "1"


@pytest.mark.parametrize("kind", ["notification", "cancellation"])
async def test_a_server_that_takes_nothing_holds_up_no_other_over_standard_streams(tmp_path: Path, kind: str) -> None:
    servers = {"child": child(tmp_path, "plain", "legacy"), "other": child(tmp_path, "plain", "legacy", name="other")}
    async with hall(tmp_path, servers) as place:
        thread = await place.thread()
        async with place.stdio(thread.id) as client:
            await client.initialize()
            client.send(calling("child.pid", 1))
            pid = int((await answer(client, 1))["result"]["content"][0]["text"])
            os.kill(pid, signal.SIGSTOP)
            try:
                # More than its pipe holds.
                client.send(calling("child.echo", 7, text="x" * 1_000_000))
                client.send(calling("other.echo", 6))
                await answer(client, 6)
                client.send(cancelled(7) if kind == "cancellation" else {"jsonrpc": "2.0", "method": ROOTS})
                client.send(calling("other.echo", 8))
                assert "result" in await answer(client, 8)
            finally:
                os.kill(pid, signal.SIGCONT)


ROOTS = "notifications/roots/list_changed"


async def test_a_store_that_fails_for_a_moment_ends_no_conversation(tmp_path: Path) -> None:
    async with hall(tmp_path, {"fake": Fake(tools=["echo"])}) as place:
        thread = await place.thread()
        failing = False

        def is_open() -> bool:
            if failing:
                raise StoreError("the store can't be read")
            return True

        client = Stdio()
        serving = asyncio.create_task(place.gateway.serve_lines(thread.id, is_open, client))
        await client.initialize()
        failing = True
        client.send(calling("fake.echo", 1))
        assert (await answer(client, 1))["error"]["code"] == -32603
        client.send(cancelled(1))
        client.send({"jsonrpc": "2.0", "method": ROOTS})
        failing = False
        client.send(calling("fake.echo", 2))
        assert "result" in await answer(client, 2)
        client.send(b"")
        await serving


async def test_a_line_that_is_too_long_costs_that_line_alone(tmp_path: Path) -> None:
    async with hall(tmp_path, {"fake": Fake(tools=["echo"])}) as place:
        thread = await place.thread()
        client = LongLine()
        serving = asyncio.create_task(place.gateway.serve_lines(thread.id, lambda: True, client))
        await client.initialize()
        client.send(b"too long")
        assert json.loads(await client.receive())["error"]["code"] == -32700
        client.send(calling("fake.echo", 2))
        assert "result" in await answer(client, 2)
        client.send(b"")
        await serving


class LongLine(Stdio):
    """Reads as streams do that were given a line over their limit."""

    async def read(self) -> bytes:
        line = await super().read()
        if line == b"too long":
            raise ValueError("Separator is found, but chunk is longer than limit")
        return line


async def test_a_session_that_comes_to_nothing_leaves_nothing_running(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with hall(tmp_path, {"child": child(tmp_path, "plain", "legacy")}) as place:
        thread = await place.thread()
        upstream = place.gateway.pool.upstreams["child"]
        hello = place.gateway.router.hello

        async def failing(caller: Any) -> Any:
            await hello(caller)
            raise StoreError("the store can't be read")

        monkeypatch.setattr(place.gateway.router, "hello", failing)
        assert (await thread.session()).hello.status == 503
        assert upstream.state.running == 0
        assert not upstream.threads()


async def test_where_there_are_too_many_sessions_nothing_is_started_for_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with hall(tmp_path, {"child": child(tmp_path, "plain", "legacy")}) as place:
        monkeypatch.setattr(place.gateway.sessions, "_limit", 1)
        thread = await place.thread()
        assert (await thread.session()).hello.status == 200
        assert (await thread.session()).hello.status == 503
        assert starts(tmp_path) == 1


async def test_who_shakes_hands_again_leaves_no_child_behind_over_standard_streams(tmp_path: Path) -> None:
    config = child(tmp_path, "slow_to_start", str(tmp_path / "go"), "legacy")
    async with hall(tmp_path, {"child": config}) as place:
        thread = await place.thread()
        upstream = place.gateway.pool.upstreams["child"]
        async with place.stdio(thread.id) as client:
            params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}
            for id_ in (1, 2):
                client.send({"jsonrpc": "2.0", "id": id_, "method": "initialize", "params": params})
                await until(lambda: starts(tmp_path))
            (tmp_path / "go").touch()
            await answer(client, 2)
            client.send(calling("child.echo", 3))
            assert "result" in await answer(client, 3)
            await until(lambda: upstream.state.running == 1)
