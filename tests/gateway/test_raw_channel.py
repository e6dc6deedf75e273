"""The gateway's own conversations, over the pool's links to real children."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hotplug.connect import CommandTarget, McpSession
from hotplug.errors import Disconnected, Internal, RateLimited, Timeout, TooLarge, Unavailable
from hotplug.gateway.config import ServerConfig
from hotplug.gateway.instances import Instances
from hotplug.gateway.link import Answer, Era, Frame, Hello, LinkLost, Outgoing
from hotplug.gateway.message import Message
from hotplug.gateway.pool import Pool
from hotplug.gateway.raw_channel import LinkConversation, RawChannel, conversation_with, raw_result_of
from hotplug.gateway.speaking import speak
from hotplug.store import memory

from .pooling import Child, configs
from .test_instances import Two
from .test_speaking import HOUR, NATIVE, calendar_of, code, done

pytestmark = pytest.mark.anyio

ERAS: tuple[Era, ...] = ("legacy", "modern")


@asynccontextmanager
async def talking(child: Child, era: Era = "modern") -> AsyncIterator[LinkConversation]:
    async with Pool(configs(child)) as pool:
        yield conversation_with(pool.upstreams[child.name], era=era)


async def text(conversation: LinkConversation, tool: str, **arguments: Any) -> str:
    answer = await conversation.request("tools/call", {"name": tool, "arguments": arguments}, thread="t_one")
    return raw_result_of(answer).texts[0]


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("speaks", ["modern", "legacy", "both"])
async def test_a_tool_is_called_in_either_era_whatever_the_server_speaks(tmp_path: Path, era: Era, speaks: str) -> None:
    async with talking(Child(tmp_path, "plain", speaks), era) as conversation:
        assert "echo" in {tool["name"] for tool in await conversation.tools()}
        assert await text(conversation, "echo", a=1) == '{"a": 1}'
        reply = await RawChannel(conversation).call("echo", {"a": 2}, meta={})
        assert (reply.is_error, reply.text) == (False, '{"a": 2}')


async def test_the_edition_stays_while_nothing_changes_and_is_another_one_after_a_restart(tmp_path: Path) -> None:
    child = Child(tmp_path, "plain", share="all")
    async with talking(child) as conversation:
        first = await conversation.edition()
        assert await conversation.edition() == first
        before = conversation.instance
        os.kill(child.pids()[-1], signal.SIGKILL)
        async with asyncio.timeout(20):
            while conversation.lost is None:
                await asyncio.sleep(0.01)
        assert await text(conversation, "echo") == "{}"
        assert await conversation.edition() != first
        assert conversation.instance != before
        assert conversation.lost is None
    assert child.starts == 2


async def test_a_call_that_may_have_been_read_is_not_sent_again(tmp_path: Path) -> None:
    child = Child(tmp_path, "plain", share="all")
    async with talking(child) as conversation:
        await conversation.edition()
        call = asyncio.create_task(text(conversation, "silent"))
        async with asyncio.timeout(20):
            while child.count("tools/call") < 1:
                await asyncio.sleep(0.01)
        os.kill(child.pids()[-1], signal.SIGKILL)
        with pytest.raises(Disconnected) as caught:
            await call
        assert caught.value.details["state"] == "unknown"
        assert await text(conversation, "echo") == "{}"
    assert child.count("tools/call") == 2


async def test_a_call_without_an_answer_is_given_up_and_may_have_been_done(tmp_path: Path) -> None:
    child = Child(tmp_path, "plain", share="all")
    async with talking(child) as conversation:
        await conversation.edition()
        with pytest.raises(Timeout) as caught:
            await conversation.request("tools/call", {"name": "silent", "arguments": {}}, timeout=0.3)
        assert caught.value.details["state"] == "unknown"


async def test_a_server_that_cannot_be_started_is_unavailable_with_the_cause(tmp_path: Path) -> None:
    config = ServerConfig("gone", CommandTarget((str(tmp_path / "no-such-program"),)))
    async with Pool({"gone": config}) as pool:
        conversation = conversation_with(pool.upstreams["gone"])
        with pytest.raises(Unavailable, match="no-such-program"):
            await conversation.edition()


async def test_what_the_server_was_started_with_stands_in_no_text(tmp_path: Path) -> None:
    child = Child(tmp_path, "plain")
    target = child.config.target
    assert isinstance(target, CommandTarget)
    config = replace(child.config, target=replace(target, env={"CALDAV_PASSWORD": "hunter2-and-more"}))
    async with Pool({"plain": config}) as pool:
        conversation = conversation_with(pool.upstreams["plain"])
        await conversation.edition()
        assert conversation.mask("refused hunter2-and-more") == "refused [secret]"


@pytest.mark.parametrize("era", ERAS)
async def test_a_native_calendar_is_spoken_to_over_the_pool(tmp_path: Path, era: Era) -> None:
    config = ServerConfig(
        "work", CommandTarget((sys.executable, str(NATIVE), "sqlite", str(tmp_path))), profiles=("calendar",)
    )
    async with memory() as store, Pool({"work": config}) as pool:
        upstream = pool.upstreams["work"]
        speaker = await speak(config, conversation=conversation_with(upstream, era=era), store=store)
        assert speaker is not None
        assert speaker.problem is None
        where = await calendar_of(speaker)
        made = await done(speaker, "create", calendar=where, title="Plan", **HOUR)
        assert (await done(speaker, "get", event=made["event"]))["title"] == "Plan"
        assert await code(speaker, "get", event=made["event"], thread="t_two") == "not_found"
        described = await Two(Instances([speaker])).done("connection.describe")
        assert described["instance"] == speaker.instance == upstream.instance


async def test_a_diary_is_projected_over_the_pool_and_its_replaced_child_is_looked_at_again(tmp_path: Path) -> None:
    import json

    from .test_projected import DOCUMENT

    script = Path(__file__).parent / "children" / "moody.py"
    target = CommandTarget((sys.executable, str(script), str(tmp_path / "mood")))
    (tmp_path / "diary.yaml").write_text(DOCUMENT.read_text())
    async with McpSession(target) as session:
        (tmp_path / "diary.tools.json").write_text(json.dumps((await session.list_tools()).as_wire()))
    config = ServerConfig("notes", target, profiles=("calendar",), projection=str(tmp_path / "diary.yaml"))
    async with memory() as store, Pool({"notes": config}) as pool:
        upstream = pool.upstreams["notes"]
        speaker = await speak(config, conversation=conversation_with(upstream), store=store)
        assert speaker is not None
        assert (speaker.problem, speaker.drift) == (None, None)
        where = await calendar_of(speaker)
        await done(speaker, "create", calendar=where, title="Plan", **HOUR)
        before = speaker.instance
        # The next process has other tools.
        (tmp_path / "mood").touch()
        (pid,) = [int(line.split()[1]) for line in upstream.log if line.startswith("process ")][-1:]
        os.kill(pid, signal.SIGKILL)
        async with asyncio.timeout(20):
            while await code_or_none(speaker) != "unavailable":
                await asyncio.sleep(0.05)
        assert speaker.instance != before
        assert "add_entry" in (speaker.problem or "")


async def code_or_none(speaker: Any) -> str | None:
    result = await speaker.call("calendar.calendars", {}, {}, thread="t_one")
    return result["structuredContent"].get("code")


class OddLink:
    """A link that answers as a test says: a fake."""

    era: Era = "modern"
    hello = Hello({}, "2026-07-28")
    lost: str | None = None

    def __init__(self, *answers: Answer | LinkLost, deaf: bool = False) -> None:
        self.answers = list(answers)
        self.sent: list[Message] = []
        self.asked = 0
        self.deaf = deaf

    @asynccontextmanager
    async def exchange(self, outgoing: Outgoing) -> AsyncIterator[Answer]:
        self.asked += 1
        answer = self.answers.pop(0)
        if isinstance(answer, LinkLost):
            raise answer
        yield answer

    async def send(self, message: Message, *, scope: str = "", headers: Any = None) -> None:
        if self.deaf:
            raise LinkLost("the pipe is gone", sent=False)
        self.sent.append(message)


def on(link: OddLink) -> LinkConversation:
    async def reach(thread: str) -> Any:
        return link

    async def catalog(link: Any) -> Any:
        raise AssertionError

    return LinkConversation("odd", reach, catalog, instance=lambda link: "i1")


async def frames(*messages: Message) -> AsyncIterator[Frame]:
    for message in messages:
        yield Frame(message)


CALLED = Message.result_of(b"1", {"content": []})


@pytest.mark.parametrize(
    ("status", "kind", "details"),
    [
        (401, Unavailable, {}),
        (413, TooLarge, {"status": 413}),
        (429, RateLimited, {"status": 429, "retryAfterMs": 7000}),
        (500, Internal, {"status": 500, "state": "unknown"}),
        (502, Disconnected, {"status": 502, "state": "unknown"}),
        (503, Unavailable, {"status": 503, "state": "unknown"}),
    ],
)
async def test_an_answer_of_http_that_is_no_message_has_its_code(status: int, kind: Any, details: Any) -> None:
    link = OddLink(Answer(body=b"no", status=status, headers={"retry-after": "7"}))
    with pytest.raises(kind) as caught:
        await on(link).request("tools/call", {"name": "x", "arguments": {}})
    assert type(caught.value) is kind
    assert caught.value.details == details


async def test_what_was_not_sent_is_sent_once_more_and_what_was_is_not() -> None:
    link = OddLink(LinkLost("gone", sent=False), Answer(message=CALLED))
    assert await on(link).request("tools/call", {"name": "x"}) is CALLED
    assert link.asked == 2
    link = OddLink(LinkLost("gone", sent=False), LinkLost("gone again", sent=False), Answer(message=CALLED))
    with pytest.raises(Disconnected) as caught:
        await on(link).request("tools/call", {"name": "x"})
    assert (caught.value.details, link.asked) == ({"state": "not_sent"}, 2)
    link = OddLink(LinkLost("gone", sent=True), Answer(message=CALLED))
    with pytest.raises(Disconnected) as caught:
        await on(link).request("tools/call", {"name": "x"})
    assert (caught.value.details, link.asked) == ({"state": "unknown"}, 1)


async def test_who_asks_back_is_told_that_nobody_is_there() -> None:
    asking = Message.request("q", "roots/list")
    note = Message.notification("notifications/progress", {})
    link = OddLink(Answer(frames=frames(note, Message.request("p", "ping"), asking, CALLED)))
    assert await on(link).request("tools/call", {"name": "x"}) is CALLED
    assert [(one.id, one.kind) for one in link.sent] == [(b'"p"', "result"), (b'"q"', "error")]
    # The question has been read by then, and so has the request: it isn't sent again.
    link = OddLink(Answer(frames=frames(asking)), Answer(message=CALLED), deaf=True)
    with pytest.raises(Disconnected) as caught:
        await on(link).request("tools/call", {"name": "x"})
    assert (caught.value.details, link.asked) == ({"state": "unknown"}, 1)
    link = OddLink(Answer(frames=frames(note)))
    with pytest.raises(Disconnected):
        await on(link).request("tools/call", {"name": "x"})
