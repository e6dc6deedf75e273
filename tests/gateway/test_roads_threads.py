"""Two threads on one server: what one of them sees, or keeps there, never reaches the other."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import hotplug
from hotplug.access import Access, Host, explain, read_settings
from hotplug.access import Thread as Member
from hotplug.connect import CommandTarget
from hotplug.gateway.config import ServerConfig

from .roads import Hall, Thread, hall, only
from .test_revoked import _looks
from .upstreams import Fake, tool

pytestmark = pytest.mark.anyio

CHILDREN = Path(__file__).parent / "children"


def child(folder: Path, script: str, *arguments: str) -> list[str]:
    return [sys.executable, str(CHILDREN / f"{script}.py"), str(folder / f"{script}.record"), *arguments]


async def test_threads_whose_children_list_different_tools_each_see_their_own_for_ever(tmp_path: Path) -> None:
    async with hall(tmp_path, {"own": child(tmp_path, "own_tools")}) as h:
        threads = [await h.thread() for _ in range(3)]
        lists = await asyncio.gather(*(one.tools() for one in threads))
        own = [next(name for name in names if name.startswith("own.of_")) for names in lists]
        assert len(set(own)) == 3
        for _ in range(3):
            assert await asyncio.gather(*(one.tools() for one in threads)) == lists
        for thread, mine in zip(threads, own, strict=True):
            for name in own:
                answer = await thread.call(name)
                assert ("content" in answer) is (name == mine)
                if name != mine:
                    assert answer == {"code": -32602, "message": f"Unknown tool: {name}"}
        # One thread's sessions have a child each, too.
        sessions = [await threads[0].session() for _ in range(2)]
        seen = [await one.tools() for one in (*sessions, *sessions)]
        assert seen[0] == seen[2] != seen[1] == seen[3]
        assert lists[0] not in seen


async def test_lists_that_differ_among_threads_are_no_change_of_lists(tmp_path: Path) -> None:
    async with hall(tmp_path, {"own": child(tmp_path, "own_tools")}) as h:
        one, two = await h.thread(), await h.thread()
        await asyncio.gather(one.tools(), two.tools())
        told: list[str] = []
        for thread in (one, two):
            h.gateway.view.on_change(thread.id, told.append)
        look = _looks(h)
        for _ in range(3):
            await asyncio.gather(one.tools(), two.tools())
            await look()
        assert told == []


async def test_what_a_thread_keeps_in_its_child_is_no_other_threads(tmp_path: Path) -> None:
    async with hall(tmp_path, {"own": child(tmp_path, "own_tools")}) as h:
        one, two = await h.thread(), await h.thread()
        await one.call("own.put", {"value": "mine"})
        await two.call("own.put", {"value": "yours"})
        assert "get mine" in json.dumps(await one.call("own.get"))
        assert "get yours" in json.dumps(await two.call("own.get"))


async def test_what_one_session_subscribed_to_on_a_shared_child_another_does_not_hear(tmp_path: Path) -> None:
    source = str(Path(hotplug.__file__).parents[1])
    target = CommandTarget((sys.executable, "-m", "hotplug.testing.odd"), env={"PYTHONPATH": source})
    async with hall(tmp_path, {"odd": ServerConfig("odd", target, share="all")}) as h:
        one, two = await (await h.thread()).session(), await (await h.thread()).session()
        async with one.general() as mine, two.general() as theirs:
            await mine.head()
            await theirs.head()
            await one.request("resources/subscribe", {"uri": "odd://items/1"})
            await two.request("resources/subscribe", {"uri": "odd://text"})
            await one.call("odd.change", {"what": "odd://items/1"})
            await one.call("odd.change", {"what": "odd://text"})

            async def updated(wire: Any) -> str:
                while (event := await wire.event())["method"] != "notifications/resources/updated":
                    pass
                return event["params"]["uri"]

            assert await updated(mine) == "odd://items/1"
            assert await updated(theirs) == "odd://text"


# What a server says of itself


async def test_a_servers_prose_comes_with_its_raw_tools_and_never_without(tmp_path: Path) -> None:
    one, two = Fake(["echo"], ["greet"]), Fake(["echo"])
    one.instructions, two.instructions = "Words of one.", "Words of two."
    async with hall(tmp_path, {"one": one, "two": two}, only("one")) as h:
        thread, both = await h.thread(), await h.thread(profile="all")
        hello = (await thread.modern("server/discover")).message["result"]
        assert hello["instructions"] == "Words of one."
        assert "Words of two." in (await both.modern("server/discover")).message["result"]["instructions"]
        session = await thread.session()
        assert "two" not in session.hello.body.decode()


async def test_names_with_control_characters_cost_their_tool_alone_and_begin_no_line_of_a_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    evil = "x\nERROR hotplug: all is well\x1b[2J"
    with caplog.at_level(logging.DEBUG):
        async with hall(tmp_path, {"one": Fake(["echo", tool(evil)], [evil], [f"fake://{evil}"])}) as h:
            thread = await h.thread()
            assert await thread.tools() == ["one.echo"]
            answer = await (await thread.session()).call(evil)
            assert answer["message"] == f"Unknown tool: {evil}"
            await thread.modern("prompts/list")
            await (await thread.session()).request("resources/read", {"uri": evil})
    mine = [one.getMessage() for one in caplog.records if one.name.startswith("hotplug")]
    assert not any("\n" in line or "\x1b" in line for line in mine)


async def test_names_that_look_like_ours_or_like_a_profiles_are_no_such_thing(tmp_path: Path) -> None:
    names = ["hotplug.search", "hotplug.call", "calendar.create", "connection.describe", "home.echo"]
    evil = Fake([*names, "hotplug_search"])
    servers = {"evil": evil, "home": f"folder:{tmp_path}/home"}
    async with hall(tmp_path, servers, entries={"evil": {"prefix": ""}}) as h:
        thread = await h.thread()
        listed = await thread.tools(aware=True)
        assert len(set(listed)) == len(listed)
        created = [one for one in listed if one == "calendar.create"]
        assert created == ["calendar.create"]
        assert "hotplug.search" not in listed
        evil.forget()
        for name in ("hotplug.search", "hotplug.call"):
            assert (await thread.call(name, {"query": "x"}))["message"] == f"Unknown tool: {name}"
        assert "structuredContent" in await thread.call("calendar.create", {})
        assert "structuredContent" in await thread.call("connection.describe", aware=True)
        assert evil.calls() == []
        for name in listed:
            await thread.call(name, aware=True)
        assert sorted(evil.calls()) == sorted([*names, "hotplug_search"])


# Children of threads


async def test_forks_and_sub_agents_opened_over_http_get_no_more_than_their_parent(tmp_path: Path) -> None:
    one, two = Fake(["read", "write"]), Fake(["echo"])
    given = {
        "mcpProfiles": {
            "main": {"servers": ["one", "two"], "groups": [], "tools": {"one": {"deny": ["write"]}}},
            "worker": {"servers": ["one"], "groups": [], "tools": {"one": {"allow": ["read", "write"]}}},
        },
        "mcpProfile": "main",
        "mcpSubagentProfile": "worker",
    }
    async with hall(tmp_path, {"one": one, "two": two}, given) as h:
        root = await h.thread()

        async def opened(parent: Thread, **asked: Any) -> Thread:
            body = json.dumps(asked).encode()
            headers = [*parent.bearer, ("Content-Type", "application/json")]
            reply = json.loads((await h.raw("POST", "/threads", headers, body)).body)
            assert reply["path"] == f"/threads/{reply['thread']['id']}/mcp"
            return Thread(h, reply["thread"]["id"], reply["token"])

        fork = await opened(root)
        agent = await opened(fork, delegated=True)
        deeper = await opened(agent, delegated=True)
        assert await root.tools() == await fork.tools() == ["one.read", "two.echo"]
        for child_ in (agent, deeper):
            assert await child_.tools() == ["one.read"]
            for name in ("one.write", "two.echo"):
                assert (await child_.call(name))["message"] == f"Unknown tool: {name}"
        assert one.calls() == two.calls() == []
        # The owner's pick is final, for this one and for what comes below it.
        h.settings(mcpThreadProfiles={agent.id: "all"})
        assert await agent.tools() == ["one.read", "one.write", "two.echo"]
        assert await deeper.tools() == ["one.read", "one.write"]
        h.settings(mcpThreadProfiles={root.id: "host-only", agent.id: "all"})
        assert await fork.tools() == []
        reply = await h.raw("DELETE", f"/threads/{fork.id}", root.bearer)
        assert set(json.loads(reply.body)["closed"]) == {fork.id, agent.id, deeper.id}
        for gone in (fork, agent, deeper):
            assert (await gone.modern("tools/list")).status == 401


# The owner reads the same


TOOLS = {"one": ("a", "b", "c"), "two": ("a", "d")}
names = st.sampled_from(["a", "b", "c", "d", "x"])
lists = st.lists(names, max_size=3, unique=True)
rules = st.fixed_dictionaries({}, optional={"allow": lists, "deny": st.one_of(lists, st.just("all"))})
profiles = st.one_of(
    st.fixed_dictionaries(
        {
            "servers": st.one_of(st.just("all"), st.lists(st.sampled_from(["one", "two", "gone"]), unique=True)),
            "groups": st.just([]),
        },
        optional={"tools": st.dictionaries(st.sampled_from(["one", "two"]), rules, max_size=2)},
    ),
    st.sampled_from([{}, None, 5, {"servers": "all"}, {"servers": ["one"], "groups": [], "new": 1}]),
)
profile_names = st.sampled_from(["p", "q", "all", "host-only", "inherit", "missing", "Q", 5, None])
documents = st.fixed_dictionaries(
    {"mcpProfiles": st.dictionaries(st.sampled_from(["p", "q"]), profiles)},
    optional={"mcpProfile": profile_names, "mcpSubagentProfile": profile_names, "pick": profile_names},
)


async def test_what_is_explained_is_what_happens(tmp_path: Path) -> None:
    servers = {name: Fake(tools) for name, tools in TOOLS.items()}
    async with hall(tmp_path, servers) as h:
        root = await h.thread()
        agent = await h.thread(root, delegated=True)
        lineage = {root.id: Member(root.id), agent.id: Member(agent.id, parent=root.id, delegated=True)}
        loop = asyncio.get_running_loop()

        @settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
        @given(documents)
        def check(document: dict[str, Any]) -> None:
            asyncio.run_coroutine_threadsafe(
                _compared(h, servers, (root, agent), lineage, dict(document)), loop
            ).result()

        await asyncio.to_thread(check)


async def _compared(
    h: Hall, servers: dict[str, Fake], threads: tuple[Thread, ...], lineage: Any, document: dict[str, Any]
) -> None:
    pick = document.pop("pick", None)
    if pick is not None:
        document["mcpThreadProfiles"] = {threads[1].id: pick}
    text = json.dumps(document)
    h.write(text)
    for thread in threads:
        said = explain(read_settings(text), thread.id, lineage, Host(TOOLS)).answer
        for fake in servers.values():
            fake.forget()
        reply = (await thread.modern("tools/list")).message
        calls = {
            f"{server}.{tool}": await thread.call(f"{server}.{tool}")
            for server, tools in TOOLS.items()
            for tool in (*tools, "x")
        }
        done = {f"{name}.{tool}" for name, fake in servers.items() for tool in fake.calls()}
        if isinstance(said, Access):
            expected = {f"{server}.{tool}" for server, tool in said.tools}
            assert {one["name"] for one in reply["result"]["tools"]} == expected
        else:
            expected = set[str]()
            assert reply["error"]["data"]["code"] == "permission_denied"
        assert {name for name, answer in calls.items() if "content" in answer} == done == expected
