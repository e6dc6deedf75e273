"""A guarded operation is made where a person said yes to this very call, through a client of either era."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ElicitResult

from hotplug.connect import ObjectTarget
from hotplug.gateway.authorizing import Ask, Authorizing, can_be_asked, readable
from hotplug.gateway.config import ServerConfig
from hotplug.gateway.message import Message
from hotplug.gateway.states import StateSeal

from ..serve.shop import MyShop  # noqa: TID252  # tests are no package
from .roads import Thread, only, until
from .shops import WHERE, shop

pytestmark = pytest.mark.anyio

YES: dict[str, Any] = {"action": "accept", "content": {"authorize": True}}
ABLE = {"io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}
DEMOLISH: dict[str, Any] = {"name": "shop.demolish", "arguments": {}}


def code(result: dict[str, Any]) -> str:
    assert result["isError"], result
    return result["structuredContent"]["code"]


async def ask(thread: Thread, **more: Any) -> dict[str, Any]:
    """A modern call as it is answered, with the question or without."""
    params = {**DEMOLISH, **more}
    reply = await thread.modern("tools/call", params, meta=ABLE)
    return reply.message["result"]


def retried(asked: dict[str, Any], answer: Any = YES, **more: Any) -> dict[str, Any]:
    return {"requestState": asked["requestState"], "inputResponses": {"authorize": answer}, **more}


@asynccontextmanager
async def client(thread: Thread, mode: str, answer: Any) -> AsyncIterator[Client]:
    """The official client, with a person behind it."""
    url = f"http://127.0.0.1:{thread.hall.port}{thread.path}"
    async with (
        httpx2.AsyncClient(headers=dict(thread.bearer), timeout=60) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode, elicitation_callback=answer) as found,
    ):
        yield found


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
@pytest.mark.parametrize("where", WHERE)
async def test_the_person_at_the_client_decides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str, mode: str
) -> None:
    asked: list[str] = []
    answers = [
        ElicitResult(action="decline"),
        ElicitResult(action="accept", content={"authorize": False}),
        ElicitResult(action="accept", content={"authorize": True}),
    ]

    async def person(context: Any, params: Any) -> ElicitResult:
        asked.append(params.message)
        return answers[len(asked) - 1]

    async with shop(tmp_path, monkeypatch, where) as (h, there):
        thread = await h.thread()
        with anyio.fail_after(30):
            async with client(thread, mode, person) as c:
                for expected in (True, True, False):
                    result = await c.call_tool("shop.demolish", {})
                    assert bool(result.is_error) is expected, result
        assert len(asked) == 3
        assert there.log == [("demolish", None)]
        assert asked[0] == (
            "Allow shop.demolish at shop? It is destructive or costly.\nWhat it does: Tear it down.\nArguments: {}"
        )


@pytest.mark.parametrize("where", WHERE)
async def test_a_yes_is_for_one_call_of_this_thread_with_these_arguments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    async with shop(tmp_path, monkeypatch, where) as (h, there):
        thread, other = await h.thread(), await h.thread()
        asked = await ask(thread)
        assert asked["resultType"] == "input_required"
        assert asked["inputRequests"]["authorize"]["method"] == "elicitation/create"
        for who, params in (
            (other, retried(asked)),
            (thread, retried(asked, arguments={"ext": {}})),
            (thread, {**retried(asked), "requestState": asked["requestState"][:-1] + "?"}),
            (thread, {"inputResponses": {"authorize": YES}}),
            (thread, {"requestState": asked["requestState"]}),
        ):
            again = await ask(who, **params)
            assert again.get("resultType") == "input_required" or code(again) == "invalid_argument"
            assert there.log == []
        done = await ask(thread, **retried(asked))
        assert done["resultType"] == "complete"
        assert not done.get("isError")
        assert there.log == [("demolish", None)]
        assert (await ask(thread, **retried(asked)))["resultType"] == "input_required"
        assert there.log == [("demolish", None)]


@pytest.mark.parametrize(
    "answer",
    [
        {"action": "decline"},
        {"action": "cancel"},
        {"action": "accept"},
        {"action": "accept", "content": {}},
        {"action": "accept", "content": {"authorize": "true"}},
        {"action": "accept", "content": {"authorize": False}},
        {"action": "decline", "content": {"authorize": True}},
        "accept",
        None,
        [],
    ],
)
async def test_what_is_no_yes_is_a_no(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: Any) -> None:
    async with shop(tmp_path, monkeypatch, "here") as (h, there):
        thread = await h.thread()
        asked = await ask(thread)
        assert code(await ask(thread, **retried(asked, answer))) == "guarded"
        # A no is not turned into a yes afterwards.
        assert (await ask(thread, **retried(asked)))["resultType"] == "input_required"
        assert there.log == []


async def test_a_right_that_went_while_the_person_thought_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with shop(tmp_path, monkeypatch, "here") as (h, there):
        thread = await h.thread()

        async def slow_person(context: Any, params: Any) -> ElicitResult:
            h.settings(**only("shop", shop={"deny": ["shop.demolish"]}))
            return ElicitResult(action="accept", content={"authorize": True})

        for mode in ("legacy", "2026-07-28"):
            h.settings(mcpProfile="all")
            with anyio.fail_after(30):
                async with client(thread, mode, slow_person) as c:
                    result = await c.call_tool("shop.demolish", {})
            assert result.is_error
        assert there.log == []


async def test_a_client_that_asks_nobody_is_refused_and_told_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with shop(tmp_path, monkeypatch, "here") as (h, there):
        thread = await h.thread()
        refused = await thread.call("shop.demolish")
        assert code(refused) == "guarded"
        assert "can't ask a person" in refused["structuredContent"]["message"]
        session = await thread.session()
        refused = await session.call("shop.demolish")
        assert code(refused) == "guarded"
        assert there.log == []


@pytest.mark.parametrize("way", ["cancelled", "hung up", "session ended", "thread closed"])
async def test_a_call_that_ends_while_the_person_thinks_is_not_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    async with shop(tmp_path, monkeypatch, "here") as (h, there):
        thread = await h.thread()
        asked = asyncio.Event()
        answered = asyncio.Event()

        async def person(context: Any, params: Any) -> ElicitResult:
            asked.set()
            try:
                await answered.wait()
            except asyncio.CancelledError:
                answered.set()
                raise
            return ElicitResult(action="accept", content={"authorize": True})

        with anyio.fail_after(30):
            async with client(thread, "legacy", person) as c:
                call = asyncio.create_task(c.call_tool("shop.demolish", {}))
                await asked.wait()
                sessions = h.gateway.sessions.of(thread.id)
                assert len(sessions) == 1
                match way:
                    case "cancelled":
                        call.cancel()
                    case "hung up":
                        pass
                    case "session ended":
                        await h.gateway.sessions.end(sessions[0])
                    case _:
                        await h.gateway.threads.close(thread.id)
                if way != "hung up":
                    await until(lambda: not sessions[0].asks)
                    answered.set()
                call.cancel()
                await asyncio.gather(call, return_exceptions=True)
        await until(lambda: not sessions[0].asks)
        assert there.log == []


@pytest.mark.parametrize("way", ["said yes", "cancelled"])
async def test_over_standard_streams_the_question_stands_before_the_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    async with shop(tmp_path, monkeypatch, "here") as (h, there):
        thread = await h.thread()
        async with h.stdio(thread.id) as stdio:
            hello = {"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}}, "clientInfo": {"name": "a"}}
            await stdio.request("initialize", hello, modern=False)
            stdio.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
            stdio.send({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": DEMOLISH})
            question = json.loads(await stdio.receive())
            assert question["method"] == "elicitation/create"
            if way == "cancelled":
                stdio.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}})
            stdio.send({"jsonrpc": "2.0", "id": question["id"], "result": YES})
            if way == "said yes":
                answer = json.loads(await stdio.receive())
                assert answer["id"] == 7
                assert not answer["result"].get("isError")
            stdio.send({"jsonrpc": "2.0", "id": 8, "method": "ping"})
            assert json.loads(await stdio.receive())["id"] == 8
        assert there.log == ([("demolish", None)] if way == "said yes" else [])


def test_no_argument_can_hide_or_turn_around_what_a_person_reads() -> None:
    turned = readable(json.dumps({"title": "Grüße", "path": "a\u202eb\u0007", "long": "x" * 5000}))
    assert turned.startswith('{"title": "Grüße", "path": "a\\u202eb\\u0007"')
    assert turned.endswith("… (cut)")
    assert len(turned) < 1600


def retry(state: str, answers: Any = None) -> Message:
    given = {"inputResponses": answers} if answers is not None else {}
    return Message.request(1, "tools/call", {"name": "x", "arguments": {}, "requestState": state, **given})


def test_a_question_is_answered_once_in_time_and_for_its_call_alone() -> None:
    now = 0.0
    authorizing = Authorizing(StateSeal(b"k" * 32), clock=lambda: now)
    ask = Ask("x", "call one", {})
    yes = {"authorize": YES}

    def state() -> str:
        return authorizing.input_required(ask, thread="t_1")["requestState"]

    first = state()
    assert authorizing.answered(retry(first, yes), "call two", thread="t_1") is None
    assert authorizing.answered(retry(first, yes), "call one", thread="t_2") is None
    assert authorizing.answered(retry(first), "call one", thread="t_1") is None
    assert authorizing.answered(retry(first, yes), "call one", thread="t_1") is True
    assert authorizing.answered(retry(first, yes), "call one", thread="t_1") is None
    late = state()
    now = 601.0
    assert authorizing.answered(retry(late, yes), "call one", thread="t_1") is None


def test_a_call_that_its_server_asked_more_for_goes_on_once_and_only_where_it_was_said_yes_to() -> None:
    now = 0.0
    seal = StateSeal(b"k" * 32)
    authorizing = Authorizing(seal, clock=lambda: now)
    sealed = seal.seal("the server's", thread="t_1", server="shop", what="call one")
    asked = {"thread": "t_1", "server": "shop"}
    assert not authorizing.goes_on(retry(sealed), "call one", **asked)
    authorizing.expect(sealed)
    assert not authorizing.goes_on(retry(sealed), "call two", **asked)
    assert not authorizing.goes_on(retry(sealed), "call one", thread="t_1", server="other")
    assert authorizing.goes_on(retry(sealed), "call one", **asked)
    assert not authorizing.goes_on(retry(sealed), "call one", **asked)
    authorizing.expect(sealed)
    now = 601.0
    assert not authorizing.goes_on(retry(sealed), "call one", **asked)


async def test_a_yes_for_one_server_is_none_for_the_one_that_takes_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with shop(tmp_path, monkeypatch, "here") as (h, there):
        thread = await h.thread()
        other = MyShop()
        asked: list[str] = []

        async def person(context: Any, params: Any) -> ElicitResult:
            asked.append(params.message.partition("?")[0])
            if len(asked) > 1:
                return ElicitResult(action="decline")
            config = h.gateway.config
            await h.gateway.reconfigure(replace(config, servers={"other": ServerConfig("other", ObjectTarget(other))}))
            return ElicitResult(action="accept", content={"authorize": True})

        with anyio.fail_after(30):
            async with client(thread, "legacy", person) as c:
                result = await c.call_tool("shop.demolish", {})
        assert result.is_error
        assert there.log == other.log == []


@pytest.mark.parametrize(
    ("capabilities", "able"),
    [
        ({"elicitation": {}}, True),
        ({"elicitation": {"form": {}}}, True),
        ({"elicitation": {"form": {}, "url": {}}}, True),
        ({"elicitation": {"url": {}}}, False),
        ({"elicitation": None}, False),
        ({}, False),
        (None, False),
        ([], False),
    ],
)
def test_who_shows_forms_can_be_asked(capabilities: Any, able: bool) -> None:
    assert can_be_asked(capabilities) is able
