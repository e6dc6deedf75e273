"""What a server behind the gateway speaks: in process, over MCP, and for two threads."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from hotplug.connect import CommandTarget, parse_target
from hotplug.gateway.config import ServerConfig
from hotplug.gateway.speaking import Speaker, speak
from hotplug.store import Store, memory

from .conversations import SessionConversation, conversing

pytestmark = pytest.mark.anyio

NATIVE = Path(__file__).parents[1] / "servers" / "native_server.py"
DAY = {"from": "2026-10-26T00:00:00Z", "to": "2026-10-27T00:00:00Z"}
HOUR: dict[str, Any] = {"start": "2026-10-26T13:00:00Z", "duration": "PT1H"}
KEY = "tools.noetic/idempotency-key"


def entry(name: str, target: str, **more: Any) -> ServerConfig:
    return ServerConfig(name, parse_target(target), **more)


@asynccontextmanager
async def native(kind: str, folder: Path, store: Store, name: str = "work") -> AsyncIterator[Speaker]:
    """A native calendar in this process."""
    target = f"sqlite:///{folder}/calendar.db" if kind == "sqlite" else f"folder:{folder}/calendars"
    speaker = await speak(entry(name, target), conversation=None, store=store)
    assert speaker is not None
    try:
        yield speaker
    finally:
        await speaker.aclose()


@asynccontextmanager
async def child(kind: str, folder: Path, store: Store) -> AsyncIterator[tuple[Speaker, SessionConversation]]:
    """A native calendar as a child over stdio."""
    target = CommandTarget((sys.executable, str(NATIVE), kind, str(folder)))
    async with conversing(target, "child") as conversation:
        speaker = await speak(ServerConfig("child", target), conversation=conversation, store=store)
        assert speaker is not None
        yield speaker, conversation


async def done(speaker: Speaker, part: str, *, thread: str = "t_one", meta: Any = None, **arguments: Any) -> Any:
    """The structured content of a call that has to work."""
    result = await speaker.call(f"calendar.{part}", arguments, meta or {}, thread=thread)
    assert not result["isError"], result
    assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
    return result["structuredContent"]


async def code(speaker: Speaker, part: str, *, thread: str = "t_one", meta: Any = None, **arguments: Any) -> str:
    """The code of a call that has to be refused."""
    result = await speaker.call(f"calendar.{part}", arguments, meta or {}, thread=thread)
    assert result["isError"], result
    assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
    return result["structuredContent"]["code"]


async def calendar_of(speaker: Speaker, thread: str = "t_one") -> str:
    return (await done(speaker, "calendars", thread=thread))["calendars"][0]["calendar"]


@pytest.mark.parametrize("kind", ["sqlite", "folder"])
async def test_a_native_calendar_in_process_answers_under_the_profiles_members(kind: str, tmp_path: Path) -> None:
    async with memory() as store, native(kind, tmp_path, store) as speaker:
        assert dict(speaker.profiles) == {"calendar": "1.0.0"}
        assert speaker.problem is None
        assert speaker.hidden == frozenset()
        create = speaker.offers["calendar.create"]
        assert (create.member, create.profile, create.effects, create.route) == (
            "calendar@1/calendar.create",
            "calendar@1",
            True,
            None,
        )
        made = await done(speaker, "create", calendar=await calendar_of(speaker), title="Plan", **HOUR)
        found = await done(speaker, "search", **DAY)
        assert [one["title"] for one in found["events"]] == ["Plan"]
        assert found["events"][0]["event"] == made["event"]


@pytest.mark.parametrize("place", ["sqlite", "folder", "child"])
async def test_refs_and_keys_of_two_threads_never_meet(place: str, tmp_path: Path) -> None:
    async with memory() as store:
        opened = native(place, tmp_path, store) if place != "child" else child("sqlite", tmp_path, store)
        async with opened as found:
            speaker = found if isinstance(found, Speaker) else found[0]
            mine, yours = await calendar_of(speaker), await calendar_of(speaker, "t_two")
            assert mine != yours
            assert await code(speaker, "create", calendar=yours, title="x", **HOUR) == "not_found"

            meta = {KEY: "same"}
            first = await done(speaker, "create", calendar=mine, title="One", meta=meta, **HOUR)
            again = await done(speaker, "create", calendar=mine, title="One", meta=meta, **HOUR)
            assert again == first
            assert await code(speaker, "create", calendar=mine, title="Other", meta=meta, **HOUR) == "conflict"
            other = await done(speaker, "create", calendar=yours, title="Two", meta=meta, thread="t_two", **HOUR)
            assert other["receipt"] != first["receipt"]
            assert await code(speaker, "get", event=first["event"], thread="t_two") == "not_found"
            titles = {one["title"] for one in (await done(speaker, "search", thread="t_two", **DAY))["events"]}
            assert titles == {"One", "Two"}


async def test_what_goes_to_a_native_server_carries_no_ones_word_but_ours(tmp_path: Path) -> None:
    async with memory() as store, child("sqlite", tmp_path, store) as (speaker, conversation):
        offer = speaker.offers["calendar.create"]
        assert offer.route is not None
        assert offer.route.tool == "calendar.create"
        assert {"calendar.create", "connection.describe"} <= speaker.hidden
        where = await calendar_of(speaker)
        meta = {
            KEY: "k",
            "tools.noetic/authorized": ["calendar@1/calendar.delete"],
            "tools.noetic/instance": "elsewhere",
            "progressToken": 7,
            "com.example/trace": {"a": 1},
        }
        await done(speaker, "create", calendar=where, title="Plan", meta=meta, **HOUR)
        thread, params = conversation.asked[-1]
        assert thread == "t_one"
        assert set(params["_meta"]) == {KEY, "com.example/trace"}
        assert params["_meta"][KEY] != "k"
        assert params["arguments"]["calendar"] != where


async def test_a_call_can_be_passed_on_raw_and_its_answer_bound_on_the_way_back(tmp_path: Path) -> None:
    async with memory() as store, child("sqlite", tmp_path, store) as (speaker, conversation):
        sent = await speaker.outgoing("calendar.calendars", b"{}", {}, thread="t_one")
        answer = await conversation.session.call(sent.params["name"], sent.params["arguments"])
        raw = {**answer.raw, "x-odd": [1]}
        result = speaker.incoming(sent, raw, thread="t_one")
        assert result["x-odd"] == [1]
        assert result["structuredContent"] == await done(speaker, "calendars")
        assert json.loads(result["content"][0]["text"]) == result["structuredContent"]


async def test_errors_of_a_native_server_come_with_the_callers_own_refs(tmp_path: Path) -> None:
    async with memory() as store, child("folder", tmp_path, store) as (speaker, _):
        where = await calendar_of(speaker)
        made = await done(speaker, "create", calendar=where, title="Plan", **HOUR)
        await done(speaker, "delete", event=made["event"])
        result = await speaker.call("calendar.get", {"event": made["event"]}, {}, thread="t_one")
        assert result["structuredContent"]["code"] == "not_found"
        assert await code(speaker, "get", event="nonsense") == "not_found"
        assert await code(speaker, "get") == "invalid_argument"
        assert await code(speaker, "create", calendar=where, title="x", participants=[], **HOUR) == "unsupported"


async def test_a_child_that_was_replaced_keeps_durable_refs_and_is_another_instance(tmp_path: Path) -> None:
    async with memory() as store, child("sqlite", tmp_path, store) as (speaker, conversation):
        where = await calendar_of(speaker)
        before = speaker.instance
        await conversation.session._end_live()  # type: ignore[attr-defined]
        made = await done(speaker, "create", calendar=where, title="Plan", **HOUR)
        assert speaker.instance != before
        assert speaker.offers["calendar.get"].instance == speaker.instance
        assert (await done(speaker, "get", event=made["event"]))["title"] == "Plan"


async def test_a_server_without_profiles_has_no_speaker_and_one_that_should_have_says_what_is_wrong() -> None:
    from mcp.server import MCPServer

    server = MCPServer("odd")

    @server.tool()
    async def look() -> str:
        """Look."""
        return "seen"

    async with memory() as store, conversing(server, "odd") as conversation:
        config = ServerConfig("odd", parse_target(server))
        assert await speak(config, conversation=conversation, store=store) is None
        wanted = ServerConfig("odd", parse_target(server), profiles=("calendar",))
        speaker = await speak(wanted, conversation=conversation, store=store)
        assert speaker is not None
        assert speaker.problem is not None
        assert "calendar" in speaker.problem
        assert "look" in speaker.problem
        assert speaker.offers == {}
        assert await code(speaker, "calendars") == "unavailable"


async def test_a_native_server_that_cannot_be_opened_is_unavailable_in_words(tmp_path: Path) -> None:
    (tmp_path / "calendar.db").write_text("somebody's notes")
    async with memory() as store, native("sqlite", tmp_path, store) as speaker:
        assert speaker.problem
        assert await code(speaker, "calendars") == "unavailable"


def test_speaking_imports_no_sdk() -> None:
    line = "import sys, hotplug.gateway.instances; sys.exit('mcp' in sys.modules or 'mcp_types' in sys.modules)"
    src = str(Path(__file__).parents[2] / "src")
    subprocess.run([sys.executable, "-c", line], check=True, timeout=60, env={"PYTHONPATH": src, "PATH": ""})
