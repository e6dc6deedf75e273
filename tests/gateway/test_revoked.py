"""What is taken away, or closed, while it is used: that holds with the next message, and for what comes by itself."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from hotplug.access import Refused

from .roads import Thread, Wire, hall, only, until
from .upstreams import Fake

pytestmark = pytest.mark.anyio

ALL = {"mcpProfile": "all"}
NONE = {"mcpProfile": "host-only"}


def two_servers() -> dict[str, Fake]:
    return {"one": Fake(["echo", "hold"], ["greet"], ["fake://one"]), "two": Fake(["echo"], [], ["fake://two"])}


async def test_a_right_that_is_taken_away_is_gone_with_the_next_request_in_both_eras(tmp_path: Path) -> None:
    servers = two_servers()
    async with hall(tmp_path, servers, ALL) as h:
        thread = await h.thread()
        session = await thread.session()
        assert await thread.tools() == await session.tools() == ["one.echo", "one.hold", "two.echo"]
        for changed, left in (
            (only("one", "two", one={"deny": ["echo"]}), ["one.hold", "two.echo"]),
            (only("two"), ["two.echo"]),
            ({"mcpProfile": "host-only"}, []),
            (only("one", one={"allow": ["echo"]}), ["one.echo"]),
        ):
            h.settings(**changed)
            servers["one"].forget()
            answer = await thread.call("one.echo"), await session.call("one.echo")
            given = "one.echo" in left
            assert all(("content" in one) is given for one in answer)
            assert servers["one"].calls() == (["echo", "echo"] if given else [])
            assert await thread.tools() == await session.tools() == left


async def test_what_is_heard_of_a_server_ends_when_it_is_taken_away(tmp_path: Path) -> None:
    servers = two_servers()
    async with hall(tmp_path, servers, ALL) as h:
        thread = await h.thread()
        session = await thread.session()
        await session.request("resources/subscribe", {"uri": "fake://one"})
        wanted = {"toolsListChanged": True, "resourceSubscriptions": ["fake://one", "fake://two"]}
        async with session.general() as general, thread.listening(**wanted) as listening:
            await general.head()
            await until(lambda: all(one.listened >= 2 for one in servers.values()))
            servers["one"].tell("notifications/resources/updated", uri="fake://one")
            assert (await general.event())["params"]["uri"] == "fake://one"
            assert (await listening.event())["params"]["uri"] == "fake://one"
            h.settings(**only("two"))
            await thread.tools()
            servers["one"].forget()
            servers["one"].tell("notifications/resources/updated", uri="fake://one")
            servers["one"].tell("notifications/message", level="error", data="still here")
            servers["one"].tell("elicitation/create", id=7, message="Your password?")
            servers["one"].tell("notifications/tools/list_changed")
            # The gateway refuses the question itself: by then all of that has come.
            await until(lambda: any(one.get("id") == 7 and "error" in one for one in servers["one"].asked))
            servers["two"].tell("notifications/resources/updated", uri="fake://two")
            for wire in (general, listening):
                while (event := await wire.event())["method"].endswith("list_changed"):
                    pass
                assert event["params"]["uri"] == "fake://two"


async def test_a_shut_servers_changes_are_told_to_nobody_who_is_not_given_it(tmp_path: Path) -> None:
    servers = two_servers()
    async with hall(tmp_path, servers, only("one")) as h:
        thread, rich = await h.thread(), await h.thread(profile="all")
        told: dict[str, list[str]] = {thread.id: [], rich.id: []}
        for id_, heard in told.items():
            h.gateway.view.on_change(id_, heard.append)
        await rich.tools()
        told[thread.id].clear()
        async with rich.listening(toolsListChanged=True) as theirs:
            servers["two"].tools.append({"name": "more", "inputSchema": {"type": "object"}})
            servers["two"].tell("notifications/tools/list_changed")
            assert (await theirs.event())["method"] == "notifications/tools/list_changed"
            await until(lambda: "notifications/tools/list_changed" in told[rich.id])
            assert "two.more" in await rich.tools()
            assert told[thread.id] == []


async def test_threads_that_come_and_go_are_told_to_nobody_else(tmp_path: Path) -> None:
    async with hall(tmp_path, two_servers(), ALL) as h:
        thread = await h.thread()
        told: list[str] = []
        h.gateway.view.on_change(thread.id, told.append)
        look = _looks(h)
        await look()
        other = await h.thread()
        await other.tools()
        await look()
        await h.gateway.threads.close(other.id)
        await look()
        h.settings(mcpThreadProfiles={other.id: "host-only"}, unrelated=1)
        await look()
        assert told == []
        h.settings(mcpThreadProfiles={thread.id: "host-only"})
        await look()
        assert told == [f"notifications/{kind}/list_changed" for kind in ("tools", "prompts", "resources")]


def _looks(h: Any) -> Any:
    """Waits until the gateway has looked at what changed until now, from beginning to end."""
    gateway, count = h.gateway, 0
    real = gateway._look

    async def look(seen: Any) -> None:
        nonlocal count
        await real(seen)
        count += 1

    gateway._look = look

    async def looked() -> None:
        at = count
        await until(lambda: count >= at + 2)

    return looked


async def test_a_closed_threads_calls_and_streams_end_and_its_token_is_nobodys(tmp_path: Path) -> None:
    servers = two_servers()
    async with hall(tmp_path, servers, ALL) as h:
        parent = await h.thread()
        child = await h.thread(parent)
        bystander = await h.thread()
        session, theirs = await child.session(), await bystander.session()
        headers, body = child.written("tools/call", {"name": "one.hold", "arguments": {}})
        async with (
            Wire.sent(h.port, "POST", child.path, headers, body) as calling,
            child.listening(toolsListChanged=True) as listening,
            session.general() as general,
            theirs.general() as open_,
        ):
            await general.head()
            await open_.head()
            legacy = asyncio.create_task(session.request("tools/call", {"name": "one.hold", "arguments": {}}))
            await until(lambda: servers["one"].calls() == ["hold", "hold"])
            reply = await h.raw("DELETE", f"/threads/{parent.id}", parent.bearer)
            assert set(json.loads(reply.body)["closed"]) == {parent.id, child.id}
            assert (await child.modern("tools/list")).status == 401
            assert (await session.request("tools/list")).status == 401
            await listening.ended()
            await general.ended()
            assert (await calling.reply()).status == 401
            assert (await legacy).status in (401, 404)
            assert await theirs.tools() == ["one.echo", "one.hold", "two.echo"]
            assert len(h.gateway.sessions) == 1
        servers["one"].held.set()


async def test_a_thread_over_streams_is_cut_off_when_it_is_closed(tmp_path: Path) -> None:
    servers = two_servers()
    async with hall(tmp_path, servers, ALL) as h:
        thread = await h.thread()
        async with h.stdio(thread.id) as client:
            await client.initialize()
            client.send({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "one.hold"}})
            await until(lambda: servers["one"].calls() == ["hold"])
            await h.gateway.threads.close(thread.id)
            assert b"no thread is open here" in await client.receive()
            servers["one"].forget()
            client.send({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"})
            assert b"no thread is open here" in await client.request("tools/list", modern=False)
            assert b"no thread is open here" in await client.request("tools/list")
            assert "notifications/roots/list_changed" not in servers["one"].methods()
        servers["one"].held.set()


async def test_a_closed_threads_children_processes_end(tmp_path: Path) -> None:
    script = Path(__file__).parent / "children" / "plain.py"
    record = tmp_path / "record"
    async with hall(tmp_path, {"child": [sys.executable, str(script), str(record)]}, ALL) as h:
        thread = await h.thread()
        assert "child.pid" in await thread.tools()
        session = await thread.session()
        await session.tools()
        pids = [int(line.split()[1]) for line in record.read_text().splitlines() if line.startswith("start")]
        assert pids
        await h.gateway.threads.close(thread.id)
        await until(lambda: not any(_runs(pid) for pid in pids))


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


# Where it can't be decided


async def errors(thread: Thread) -> list[Any]:
    """What a thread reads on some roads; it has to be an error on each."""
    session = await thread.session()
    replies = [
        await thread.modern("tools/list"),
        await thread.modern("tools/call", {"name": "one.echo", "arguments": {}}),
        await thread.modern("tools/call", {"name": "no.such", "arguments": {}}),
        await thread.modern("resources/read", {"uri": "fake://one"}),
        await thread.modern("prompts/get", {"name": "greet"}),
        await thread.modern("subscriptions/listen", {"notifications": {"toolsListChanged": True}}),
        await thread.modern("vendor/run", {}),
        await session.request("tools/list"),
        await session.request("tools/call", {"name": "one.echo", "arguments": {}}),
        await session.request("resources/subscribe", {"uri": "fake://one"}),
    ]
    return [reply.message["error"] for reply in replies]


@pytest.mark.parametrize(
    "settings",
    [
        {"mcpProfile": "nobody-set-this-up"},
        {"mcpProfile": 5},
        {"mcpProfile": "Lean"},
        {"mcpProfiles": {"x": {"servers": "all"}}, "mcpProfile": "x"},
        {"mcpThreadProfiles": []},
    ],
)
async def test_a_thread_that_is_refused_reads_an_error_on_every_road_and_no_server_is_asked(
    tmp_path: Path, settings: dict[str, Any]
) -> None:
    servers = two_servers()
    async with hall(tmp_path, servers, settings) as h:
        thread = await h.thread()
        found = await errors(thread)
        assert all(one == found[0] for one in found)
        assert found[0]["data"]["code"] == "permission_denied"
        assert not any(word in json.dumps(found) for word in ("nobody-set-this-up", "mcpProfile", "Lean"))
        assert all(one.asked == [] for one in servers.values())


@pytest.mark.parametrize(
    "bad", ['{"mcpProfile": "all"', "", "[]", '"all"', "\0", '{"mcpProfile":"all","mcpProfile":"all"}']
)
async def test_a_settings_file_that_becomes_bad_while_running_widens_nothing(tmp_path: Path, bad: str) -> None:
    servers = two_servers()
    async with hall(tmp_path, servers, only("one", one={"deny": ["echo"]})) as h:
        thread = await h.thread()
        assert await thread.tools() == ["one.hold"]
        h.write(bad)
        found = await thread.call("one.echo"), await thread.call("two.echo")
        assert all("message" in one for one in found)
        assert servers["two"].asked == []
        assert servers["one"].calls() == []
        assert h.settings_path.read_text() == bad
        h.write(json.dumps(ALL))
        assert "content" in await thread.call("two.echo")


@pytest.mark.parametrize("how", ["deleted", "folder"])
async def test_a_settings_file_that_goes_away_widens_nothing(tmp_path: Path, how: str) -> None:
    async with hall(tmp_path, two_servers(), only("one")) as h:
        thread = await h.thread()
        assert await thread.tools() == ["one.echo", "one.hold"]
        h.settings_path.unlink()
        if how == "folder":
            h.settings_path.mkdir()
        assert (await thread.call("two.echo"))["message"] == "Unknown tool: two.echo"
        assert await thread.tools() == ["one.echo", "one.hold"]


async def test_settings_that_can_not_be_asked_are_no_settings_and_nobody_gets_anything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    servers = two_servers()
    async with hall(tmp_path, servers, ALL) as h:
        thread = await h.thread()
        session = await thread.session()
        assert "one.echo" in await thread.tools()
        for fake in servers.values():
            fake.forget()

        def times_out() -> None:
            raise TimeoutError("no answer within 5 s: secret-place")

        monkeypatch.setattr(h.gateway.settings, "read", times_out)
        found = await errors(thread)
        assert {one["data"]["code"] for one in found} == {"permission_denied"}
        assert "secret-place" not in json.dumps(found)
        assert (await session.notify("notifications/roots/list_changed")).status == 202
        assert isinstance(h.gateway.grants.access(thread.id), Refused)
        assert all(one.asked == [] for one in servers.values())
        monkeypatch.undo()
        assert "one.echo" in await thread.tools()


async def test_a_call_that_runs_goes_on_when_the_settings_change_and_the_next_one_does_not(tmp_path: Path) -> None:
    servers = two_servers()
    async with hall(tmp_path, servers, ALL) as h:
        thread = await h.thread()
        running = asyncio.create_task(thread.call("one.hold"))
        await servers["one"].holding.wait()
        h.settings(**NONE)
        assert (await thread.call("one.echo"))["message"] == "Unknown tool: one.echo"
        servers["one"].held.set()
        assert "content" in await running
