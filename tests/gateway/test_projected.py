"""Servers that know no profile: spoken to through a projection, over the process that their raw tools have too."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hotplug.connect import CommandTarget, McpSession, parse_target
from hotplug.gateway.config import ServerConfig
from hotplug.gateway.instances import Instances
from hotplug.gateway.pool import Pool
from hotplug.gateway.raw_channel import conversation_with
from hotplug.gateway.speaking import Speaker, speak
from hotplug.store import Store, memory
from hotplug.testing import RadicaleServer, radicale
from hotplug.testing.published import published

from ..projection.diary import Diary  # noqa: TID252  # tests are no package
from .conversations import SessionConversation, conversing
from .test_instances import Two, everything
from .test_speaking import DAY, HOUR, KEY, calendar_of, code, done, native

pytestmark = pytest.mark.anyio

DOCUMENT = Path(__file__).parents[1] / "projection" / "diary.yaml"


@dataclass
class Kept:
    diary: Diary
    speaker: Speaker
    conversation: SessionConversation
    store: Store


@asynccontextmanager
async def diary(folder: Path, name: str = "notes") -> AsyncIterator[Kept]:
    """A diary in this process, presented as a calendar by a projection that was frozen with its tools."""
    kept = Diary()
    (folder / "diary.yaml").write_text(DOCUMENT.read_text())
    async with McpSession(kept.server) as session:
        tools = (await session.list_tools()).as_wire()
    (folder / "diary.tools.json").write_text(json.dumps(tools))
    async with memory() as store, conversing(kept.server, name) as conversation:
        config = ServerConfig(
            name, parse_target(kept.server), profiles=("calendar",), projection=str(folder / "diary.yaml")
        )
        speaker = await speak(config, conversation=conversation, store=store)
        assert speaker is not None
        yield Kept(kept, speaker, conversation, store)


async def test_a_projected_server_answers_and_its_covered_tools_are_hidden(tmp_path: Path) -> None:
    async with diary(tmp_path) as kept:
        speaker = kept.speaker
        assert (speaker.problem, speaker.drift) == (None, None)
        assert dict(speaker.profiles) == {"calendar": "1.0.0"}
        assert {"diaries", "entries_of", "add_entry"} <= speaker.hidden
        create = speaker.offers["calendar.create"]
        assert create.underlying == {"add_entry", "entries_of"}
        assert create.route is None
        made = await done(speaker, "create", calendar=await calendar_of(speaker), title="Plan", **HOUR)
        assert [entry["head"] for entry in kept.diary.entries.values()] == ["Plan"]
        assert (await done(speaker, "get", event=made["event"]))["title"] == "Plan"
        assert {thread for thread, _ in kept.conversation.asked} == {"t_one"}


async def test_refs_and_keys_of_two_threads_never_meet_through_a_projection(tmp_path: Path) -> None:
    async with diary(tmp_path) as kept:
        speaker, meta = kept.speaker, {KEY: "same"}
        mine, yours = await calendar_of(speaker), await calendar_of(speaker, "t_two")
        first = await done(speaker, "create", calendar=mine, title="One", meta=meta, **HOUR)
        assert await done(speaker, "create", calendar=mine, title="One", meta=meta, **HOUR) == first
        await done(speaker, "create", calendar=yours, title="Two", meta=meta, thread="t_two", **HOUR)
        assert sorted(entry["head"] for entry in kept.diary.entries.values()) == ["One", "Two"]
        assert await code(speaker, "get", event=first["event"], thread="t_two") == "not_found"


async def test_a_tool_that_changed_makes_it_unavailable_until_it_is_as_it_was(tmp_path: Path) -> None:
    async with diary(tmp_path) as kept:
        speaker = kept.speaker
        where = await calendar_of(speaker)
        version = speaker.version

        async def add_entry(diary: str, head: str, begin: str, finish: str, mood: str) -> str:
            """Add an entry."""
            return "{}"

        server = kept.diary.server
        server.remove_tool("add_entry")
        server.add_tool(add_entry, structured_output=False)
        await kept.conversation.session.list_tools(refresh=True)
        result = await speaker.call("calendar.calendars", {}, {}, thread="t_one")
        assert result["structuredContent"]["code"] == "unavailable"
        assert "hotplug doctor says more" in result["structuredContent"]["message"]
        assert "different: add_entry" in (speaker.drift or "")
        assert "add_entry" in (speaker.problem or "")
        assert "calendar.create" in speaker.offers
        assert "add_entry" in speaker.hidden
        assert speaker.version != version

        server.remove_tool("add_entry")
        server.add_tool(kept.diary.add_entry, structured_output=False)
        await kept.conversation.session.list_tools(refresh=True)
        await done(speaker, "create", calendar=where, title="Plan", **HOUR)
        assert (speaker.problem, speaker.drift) == (None, None)


async def test_a_new_tool_is_drift_and_breaks_nothing(tmp_path: Path) -> None:
    async with diary(tmp_path) as kept:

        async def sing() -> str:
            """Sing."""
            return "la"

        kept.diary.server.add_tool(sing)
        await kept.conversation.session.list_tools(refresh=True)
        assert await done(kept.speaker, "calendars")
        assert kept.speaker.drift == "new: sing"
        assert kept.speaker.problem is None
        assert "sing" not in kept.speaker.hidden


async def test_a_bad_projected_instance_leaves_the_other_one_alone(tmp_path: Path) -> None:
    async with diary(tmp_path) as kept, native("folder", tmp_path, kept.store, "home") as home:
        two = Two(Instances([kept.speaker, home]))
        assert [one["id"] for one in (await two.refused("calendar.calendars"))["details"]["instances"]] == [
            "notes",
            "home",
        ]
        kept.diary.server.remove_tool("entries_of")
        await kept.conversation.session.list_tools(refresh=True)
        assert (await two.refused("calendar.calendars", on="notes"))["code"] == "unavailable"
        assert await two.calendar("home")
        described = await two.done("connection.describe", on="notes")
        assert "hotplug doctor says more" in described["notes"]["instances"]["notes"]["problem"]


async def test_describe_shows_no_tool_that_the_thread_may_not_use(tmp_path: Path) -> None:
    def looking(server: str, part: str) -> bool:
        return part == "calendar.calendars"

    async with diary(tmp_path) as kept:
        two = Two(Instances([kept.speaker]))
        whole = await two.done("connection.describe")
        assert "add_entry" in whole["notes"]["coverage"]
        assert whole["instance"] == kept.speaker.instance
        some = await two.done("connection.describe", allowed=looking)
        assert set(some["notes"]["coverage"]) == {"diaries"}


async def test_a_projection_that_watches_nothing_says_so_to_who_listens(tmp_path: Path) -> None:
    async with diary(tmp_path) as kept:
        two = Two(Instances([kept.speaker]))
        error = await two.refused("connection.events", {"types": ["calendar.event.changed"]})
        assert error["code"] == "unsupported"
        assert (await two.done("connection.events"))["events"] == []


async def test_a_named_projection_that_does_not_exist_is_a_problem_in_words(tmp_path: Path) -> None:
    async with memory() as store, conversing(Diary().server, "notes") as conversation:
        config = ServerConfig("notes", conversation.session.target, projection=str(tmp_path / "none.yaml"))
        speaker = await speak(config, conversation=conversation, store=store)
        assert speaker is not None
        assert "none.yaml" in (speaker.problem or "")


SERVER = "cal-scheduler-mcp"


def scheduler(server: RadicaleServer) -> CommandTarget:
    one = published(SERVER)
    return CommandTarget(one.command, env=one.env(server))


@pytest.mark.real
async def test_a_published_server_is_spoken_to_by_its_package_beside_a_native_one(tmp_path: Path) -> None:
    async with (
        radicale(calendars={"home": "Home"}) as server,
        memory() as store,
        conversing(scheduler(server), "work", start_timeout=120.0) as conversation,
        native("sqlite", tmp_path, store, "home") as home,
    ):
        work = await speak(ServerConfig("work", scheduler(server)), conversation=conversation, store=store)
        assert work is not None
        assert (work.problem, work.drift) == (None, None)
        two = Two(Instances([work, home]))
        made = await two.create("work", "Published")
        await two.create("home", "Native")
        [stored] = await server.stored()
        assert "SUMMARY:Published" in stored.ical
        for name, title in (("work", "Published"), ("home", "Native")):
            found = await two.done("calendar.search", DAY, on=name)
            assert [one["title"] for one in found["events"]] == [title]
        assert (await two.refused("calendar.get", {"event": made["event"]}, on="home"))["code"] == "not_found"
        assert (await two.refused("calendar.get", {"event": made["event"]}, on="work", thread="t_two"))[
            "code"
        ] == "not_found"
        [search] = [one for one in two.instances.tools(everything) if one.part == "calendar.search"]
        assert [one.id for one in search.instances] == ["work", "home"]

        before = work.instance
        await conversation.session._end_live()  # type: ignore[attr-defined]
        assert (await two.done("calendar.get", {"event": made["event"]}, on="work"))["title"] == "Published"
        assert work.instance != before


@pytest.mark.real
async def test_a_published_server_is_spoken_to_over_the_pool_by_two_threads(tmp_path: Path) -> None:
    async with radicale(calendars={"home": "Home"}) as server, memory() as store:
        config = ServerConfig("work", scheduler(server), profiles=("calendar",), start_timeout=120.0)
        async with Pool({"work": config}) as pool:
            upstream = pool.upstreams["work"]
            work = await speak(config, conversation=conversation_with(upstream), store=store)
            assert work is not None
            assert (work.problem, work.drift) == (None, None)
            meta = {KEY: "same"}
            made: list[Any] = []
            for thread in ("t_one", "t_two"):
                where = await calendar_of(work, thread)
                body = {"calendar": where, "title": thread, **HOUR}
                made.append(await done(work, "create", thread=thread, meta=meta, **body))
                assert await done(work, "create", thread=thread, meta=meta, **body) == made[-1]
            assert len(await server.stored()) == 2
            assert await code(work, "get", event=made[0]["event"], thread="t_two") == "not_found"
            assert (await done(work, "get", event=made[0]["event"]))["title"] == "t_one"
            assert upstream.state.running == 1
            result = await work.call("calendar.get", {"event": "nonsense"}, {}, thread="t_one")
            assert server.password not in json.dumps(result)


async def test_a_published_server_that_cannot_be_reached_is_known_by_its_package_and_says_why() -> None:
    package = ("--from", "cal-scheduler-mcp==1.1.3", "cal-scheduler")
    session = McpSession(CommandTarget(("/nowhere/uvx", *package)), name="work")
    config = ServerConfig("work", CommandTarget(("uvx", *package)))
    async with memory() as store:
        work = await speak(config, conversation=SessionConversation(session), store=store)
        assert work is not None
        assert "can't be reached" in (work.problem or "")
        assert "calendar.create" in work.offers
        assert await code(work, "calendars") == "unavailable"
    await session.aclose()
