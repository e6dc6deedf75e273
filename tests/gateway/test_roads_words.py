"""What a projected server says in its own words reaches nobody who has operations of its profile alone, on any road."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp.server.mcpserver import Context

from hotplug.connect import McpSession
from hotplug.gateway.message import Message

from ..projection.diary import Diary  # noqa: TID252  # tests are no package
from .roads import Hall, Thread, hall, only
from .upstreams import Fake

pytestmark = pytest.mark.anyio

DOCUMENT = Path(__file__).parents[1] / "projection" / "diary.yaml"
OPERATIONS = ["calendar.calendars", "calendar.get"]
PROSE = "Prose of the server."


def diary() -> Diary:
    """One that has more to say than its profile: instructions, a prompt, resources, and a tool that nothing covers."""
    kept = Diary()
    server = kept.server

    @server.tool()
    async def sing(ctx: Context[Any]) -> str:
        """Sing."""
        await ctx.session.send_log_message("info", PROSE, related_request_id=ctx.request_id)
        return "la"

    @server.prompt(description=PROSE)
    def advise(topic: str) -> str:
        return PROSE

    @server.resource("diary://preface", description=PROSE)
    def preface() -> str:
        return PROSE

    @server.resource("diary://pages/{number}", description=PROSE)
    def page(number: str) -> str:
        return PROSE

    return kept


@asynccontextmanager
async def kept(folder: Path, settings: dict[str, Any]) -> AsyncIterator[Hall]:
    """A gateway in front of it."""
    there = diary()
    projection = folder / "diary.yaml"
    projection.write_text(DOCUMENT.read_text())
    async with McpSession(there.server) as session:
        (folder / "diary.tools.json").write_text(json.dumps((await session.list_tools()).as_wire()))
    entries = {"notes": {"profiles": ("calendar",), "projection": str(projection)}}
    app = there.server.streamable_http_app()
    async with hall(folder / "hall", {"notes": app}, settings, entries=entries) as h:
        yield h


ROADS: dict[str, tuple[str, dict[str, Any]]] = {
    "prompts": ("prompts/list", {}),
    "resources": ("resources/list", {}),
    "templates": ("resources/templates/list", {}),
    "prompt": ("prompts/get", {"name": "advise", "arguments": {"topic": "x"}}),
    "resource": ("resources/read", {"uri": "diary://preface"}),
    "page": ("resources/read", {"uri": "diary://pages/1"}),
}
COMPLETIONS: list[dict[str, Any]] = [
    {"ref": {"type": "ref/prompt", "name": "advise"}, "argument": {"name": "topic", "value": ""}},
    {"ref": {"type": "ref/resource", "uri": "diary://pages/{number}"}, "argument": {"name": "number", "value": ""}},
]


async def said(who: Thread) -> dict[str, Any]:
    """Each road's answer in both eras."""
    session = await who.session()
    found: dict[str, Any] = {"hello": session.hello.message, "discover": (await who.modern("server/discover")).message}
    for name, (method, params) in ROADS.items():
        found[name] = (await who.modern(method, params)).message
        found[f"{name}, legacy"] = (await session.request(method, params)).message
    return found


async def test_prompts_and_resources_go_with_its_own_tools_or_with_all_of_it(tmp_path: Path) -> None:
    for number, settings in enumerate(({}, only("notes"), only("notes", notes={"allow": [*OPERATIONS, "sing"]}))):
        folder = tmp_path / str(number)
        folder.mkdir()
        async with kept(folder, settings) as h:
            thread = await h.thread()
            assert "calendar.get" in await thread.tools()
            found = await said(thread)
            for name in ("prompts", "resources", "templates", "prompt", "resource", "page"):
                assert PROSE in json.dumps(found[name]), name
                assert PROSE in json.dumps(found[f"{name}, legacy"]), name
            for name in ("hello", "discover"):
                assert {"prompts", "resources"} <= found[name]["result"]["capabilities"].keys()


async def test_who_has_its_operations_alone_gets_none_of_its_words(tmp_path: Path) -> None:
    async with kept(tmp_path, only("notes", notes={"allow": OPERATIONS})) as h:
        thread = await h.thread()
        assert set(OPERATIONS) <= set(await thread.tools())
        found = await said(thread)
        assert PROSE not in json.dumps(found)
        assert "advise" not in json.dumps({name: found[name] for name in ("prompts", "hello", "discover")})
        for name in ("hello", "discover"):
            assert found[name]["result"]["capabilities"].keys() & {"prompts", "resources", "completions"} == set()
        for kind in ("prompts", "resources"):
            assert found[kind]["result"][kind] == []
        missing = {"prompt": ("name", "nothing"), "resource": ("uri", "diary://x"), "page": ("uri", "diary://x/1")}
        session = await thread.session()
        for name, (key, other) in missing.items():
            method, params = ROADS[name]
            for answered, asked in ((found[name], thread.modern), (found[f"{name}, legacy"], session.request)):
                unknown = (await asked(method, {**params, key: other})).message["error"]
                assert answered["error"] == json.loads(json.dumps(unknown).replace(other, params[key]))
        for asked in COMPLETIONS:
            assert (await thread.modern("completion/complete", asked)).message["error"]["code"] == -32602
        level = (await session.request("logging/setLevel", {"level": "debug"})).message
        assert level["error"]["code"] == -32601


async def test_who_loses_its_tools_loses_its_words_at_the_next_request(tmp_path: Path) -> None:
    async with kept(tmp_path, only("notes", notes={"allow": [*OPERATIONS, "sing"]})) as h:
        thread = await h.thread()
        assert PROSE in json.dumps(await said(thread))
        h.settings(**only("notes", notes={"allow": OPERATIONS}))
        assert PROSE not in json.dumps(await said(thread))


@pytest.mark.parametrize(
    ("method", "wordless"),
    [
        ("notifications/message", False),
        ("notifications/resources/updated", False),
        ("notifications/prompts/list_changed", False),
        ("vendor/notice", False),
        ("notifications/tools/list_changed", True),
        ("notifications/progress", True),
        ("notifications/cancelled", True),
    ],
)
async def test_a_notice_is_told_to_who_gets_the_words_or_where_operations_need_it(
    tmp_path: Path, method: str, wordless: bool
) -> None:
    async with kept(tmp_path, only("notes", notes={"allow": OPERATIONS})) as h:
        thread, rich = await h.thread(), await h.thread(profile="all")
        for one in (thread, rich):
            assert await one.tools()
        notice = Message.notification(method, {})
        assert h.gateway.view.hears(thread.id, "notes", notice) is wordless
        assert h.gateway.view.hears(rich.id, "notes", notice)


@pytest.mark.parametrize("given", [True, False])
async def test_who_is_denied_every_tool_gets_no_prompt_either(tmp_path: Path, given: bool) -> None:
    fake = Fake(["echo", "add"], ["say"], ["fake://a"])
    rule = {"deny": ["echo"] if given else ["echo", "add"]}
    async with hall(tmp_path, {"f": fake}, only("f", f=rule)) as h:
        thread = await h.thread()
        session = await thread.session()
        for asked in (thread.modern, session.request):
            listed = (await asked("prompts/list")).message["result"]["prompts"]
            assert [one["name"] for one in listed] == (["say"] if given else [])
            assert ("result" in (await asked("prompts/get", {"name": "say"})).message) is given
            assert ("result" in (await asked("resources/read", {"uri": "fake://a"})).message) is given
        assert fake.methods().count("prompts/get") == (2 if given else 0)


async def test_a_server_that_has_no_tools_gives_its_prompts_to_who_has_it(tmp_path: Path) -> None:
    async with hall(tmp_path, {"f": Fake([], ["say"])}, only("f", f={"deny": ["echo"]})) as h:
        listed = (await (await h.thread()).modern("prompts/list")).message["result"]["prompts"]
        assert [one["name"] for one in listed] == ["say"]
