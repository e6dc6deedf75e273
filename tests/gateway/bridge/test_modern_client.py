"""A modern client in front of a legacy server: the SDK's own on both sides, and the server's direct word beside it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp_types import CreateMessageResult, ElicitResult, ListRootsResult, Root, TextContent

from hotplug.gateway.bridge import for_modern_client
from hotplug.gateway.bridge.modern_client import ModernClientLink
from hotplug.gateway.link import Frame, LinkLost, Outgoing
from hotplug.gateway.message import Message, Object, loads
from hotplug.testing.everything.server import everything_server

from .fake_link import FakeCall, FakeLink
from .wire import ENVELOPE, exchanged, front, linked, plain, sessions

pytestmark = pytest.mark.anyio

SECRET = b"secret of the test"


async def elicited(context: Any, params: Any) -> ElicitResult:
    return ElicitResult(action="accept", content={"name": "Ada", "response": "yes", "ok": True, "color": "red"})


async def sampled(context: Any, params: Any) -> CreateMessageResult:
    return CreateMessageResult(role="assistant", content=TextContent(type="text", text="Paris"), model="m")


async def rooted(context: Any) -> ListRootsResult:
    return ListRootsResult(roots=[Root(uri="file:///here")])


CALLBACKS: dict[str, Any] = {
    "elicitation_callback": elicited,
    "sampling_callback": sampled,
    "list_roots_callback": rooted,
}


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("ping", {}),
        ("tools/list", {}),
        ("prompts/list", {}),
        ("resources/list", {}),
        ("resources/templates/list", {}),
        ("resources/read", {"uri": "test://static-text"}),
        ("resources/read", {"uri": "test://nothing"}),
        ("resources/subscribe", {"uri": "test://watched-resource"}),
        ("prompts/get", {"name": "test_simple_prompt"}),
        ("prompts/get", {"name": "missing"}),
        ("tools/call", {"name": "test_simple_text", "arguments": {}}),
        ("tools/call", {"name": "missing", "arguments": {}}),
        ("tools/call", {"name": "test_image_content", "arguments": {}}),
        ("tools/call", {"name": "test_error_handling", "arguments": {}}),
        ("logging/setLevel", {"level": "warning"}),
        (
            "completion/complete",
            {
                "ref": {"type": "ref/prompt", "name": "test_prompt_with_arguments"},
                "argument": {"name": "arg1", "value": "par"},
            },
        ),
        ("vendor/method", {"a": 1}),
    ],
)
async def test_a_request_is_answered_as_the_server_answers_it_in_the_modern_era(method: str, params: Any) -> None:
    request = Message.request(7, method, {**params, "_meta": ENVELOPE})
    async with linked(everything_server(), "modern") as direct, sessions(everything_server()) as below:
        bridge = await for_modern_client(below.open, SECRET)
        try:
            assert [plain(m) for m in await exchanged(bridge, request)] == [
                plain(m) for m in await exchanged(direct, request)
            ]
        finally:
            await bridge.aclose()


async def test_an_sdk_client_uses_everything() -> None:
    async with sessions(everything_server()) as below:
        bridge = await for_modern_client(below.open, SECRET)
        async with front(bridge) as transport, Client(transport, mode="auto", **CALLBACKS) as client:
            assert client.protocol_version == "2026-07-28"
            for tool, said in {
                "test_elicitation": "User response: action=accept",
                "test_sampling": "LLM response: Paris",
                "test_input_required_result_list_roots": "The client has 1 roots.",
                "test_input_required_result_multiple_inputs": "Paris (Ada, 3 answers)",
                "test_input_required_result_multi_round": "Ada likes red.",
                "test_input_required_result_request_state": "state-ok",
            }.items():
                with anyio.fail_after(30):
                    result = await client.call_tool(tool, {})
                assert result.content[0].text.startswith(said), tool  # pyright: ignore
        await bridge.aclose()


HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {
        "tools": {"listChanged": True},
        "prompts": {},
        "resources": {"listChanged": True, "subscribe": True},
        "logging": {},
        "tasks": {"list": {}},
        "x-vendor": {"a": 1},
    },
    "serverInfo": {"name": "old", "version": "3", "x": True},
    "instructions": "Be kind.",
    "x-more": 1,
}
INFO = {"io.modelcontextprotocol/serverInfo": {"name": "old", "version": "3", "x": True}}
ABLE = {"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {"listChanged": True}}


class Upstream:
    """Opens fake legacy sessions, each with the same scripts."""

    def __init__(self, **scripts: Any) -> None:
        self.links: list[FakeLink] = []
        self.said: list[dict[str, Any]] = []
        self.scripts = scripts

    async def open(self, initialize: Object) -> FakeLink:
        self.said.append({name: loads(value) for name, value in initialize.items()})
        link = FakeLink("legacy", HELLO, **self.scripts)
        self.links.append(link)
        return link


@asynccontextmanager
async def bridging(upstream: Upstream, **options: Any) -> AsyncGenerator[ModernClientLink, None]:
    remembered = FakeLink("legacy", HELLO).hello
    bridge = await for_modern_client(upstream.open, SECRET, **{"hello": remembered, "owner": "t_1", **options})
    try:
        with anyio.fail_after(30):
            yield bridge
    finally:
        await bridge.aclose()


def asking(
    method: str, params: Mapping[str, Any] | None = None, *, can: Any = None, id_: Any = 1, **meta: Any
) -> Message:
    """A modern request."""
    named = {name.replace("__", "/"): value for name, value in meta.items()}
    envelope = {**ENVELOPE, "io.modelcontextprotocol/clientCapabilities": can or {}, **named}
    return Message.request(id_, method, {**(params or {}), "_meta": envelope})


def result(messages: list[Message]) -> Any:
    return plain(messages[-1])["result"]


def error(messages: list[Message]) -> Any:
    return plain(messages[-1])["error"]


FORM = {"message": "Name?", "requestedSchema": {"type": "object", "properties": {}}, "x-odd": 10**30}


async def naming(call: FakeCall) -> Any:
    """A tool that asks for a name."""
    answer = await call.ask("elicitation/create", FORM)
    return {"content": [], "answer": plain(answer).get("result"), "refused": plain(answer).get("error")}


async def test_a_server_is_discovered_by_what_it_said_in_its_handshake() -> None:
    upstream = Upstream()
    async with bridging(upstream) as bridge:
        assert result(await exchanged(bridge, asking("server/discover"))) == {
            "resultType": "complete",
            "supportedVersions": ["2026-07-28"],
            "capabilities": {
                "tools": {"listChanged": True},
                "prompts": {},
                "resources": {"listChanged": True, "subscribe": True},
                "logging": {},
                "x-vendor": {"a": 1},
            },
            "instructions": "Be kind.",
            "x-more": 1,
            "ttlMs": 0,
            "cacheScope": "private",
            "_meta": INFO,
        }
        assert {name: loads(value) for name, value in bridge.hello.result.items()}["instructions"] == "Be kind."


async def test_a_servers_question_parks_the_call_and_the_retry_goes_on_with_it() -> None:
    upstream = Upstream(tools_call=naming)
    async with bridging(upstream) as bridge:
        params = {"name": "t", "arguments": {"a": 1}}
        asked = result(await exchanged(bridge, asking("tools/call", params, can=ABLE)))
        state = asked.pop("requestState")
        assert asked == {
            "resultType": "input_required",
            "inputRequests": {"elicitation-1": {"method": "elicitation/create", "params": FORM}},
            "_meta": INFO,
        }
        given = {"action": "accept", "content": {"name": "Ada"}, "x": [1]}
        retry = {**params, "requestState": state, "inputResponses": {"elicitation-1": given}}
        [answer] = await exchanged(bridge, asking("tools/call", retry, can=ABLE, id_="again"))
        assert plain(answer) == {
            "jsonrpc": "2.0",
            "id": "again",
            "result": {"content": [], "answer": given, "refused": None, "resultType": "complete", "_meta": INFO},
        }
        assert upstream.links[0].methods == ["tools/call"]


async def test_a_question_that_the_client_did_not_declare_is_refused_at_once_and_nothing_is_parked() -> None:
    upstream = Upstream(tools_call=naming)
    async with bridging(upstream) as bridge:
        for can, code in (({}, -32601), ({"elicitation": {"url": {}}}, -32602), ({"sampling": {}}, -32601)):
            found = result(await exchanged(bridge, asking("tools/call", {"name": "t"}, can=can)))
            assert found["resultType"] == "complete"
            assert found["refused"]["code"] == code


@pytest.mark.parametrize("can", [{"elicitation": {}}, {"elicitation": {"form": {}}}])
async def test_elicitation_without_a_mode_means_forms(can: Any) -> None:
    async with bridging(Upstream(tools_call=naming)) as bridge:
        found = result(await exchanged(bridge, asking("tools/call", {"name": "t"}, can=can)))
        assert found["resultType"] == "input_required"


async def _state(bridge: ModernClientLink, can: Any = ABLE) -> str:
    return result(await exchanged(bridge, asking("tools/call", {"name": "t", "arguments": {}}, can=can)))[
        "requestState"
    ]


def _retry(state: str, **changes: Any) -> Message:
    given = {"elicitation-1": {"action": "decline"}}
    params = {"name": "t", "arguments": {}, "requestState": state, "inputResponses": given, **changes}
    return asking("tools/call", params, can=ABLE, id_=2)


async def test_a_state_is_good_for_one_retry_of_the_same_request_only() -> None:
    async with bridging(Upstream(tools_call=naming)) as bridge:
        state = await _state(bridge)
        for wrong in (
            _retry(state + "A"),
            _retry("." + state),
            _retry(state.replace(state[5], "A" if state[5] != "A" else "B", 1)),
            _retry("\ud800"),
            _retry(state, name="other"),
            _retry(state, arguments={"a": 1}),
        ):
            assert error(await exchanged(bridge, wrong)) == {
                "code": -32602,
                "message": "Invalid or expired requestState",
                "data": {"reason": "invalid_request_state"},
            }
        assert result(await exchanged(bridge, _retry(state)))["answer"] == {"action": "decline"}
        assert error(await exchanged(bridge, _retry(state)))["code"] == -32602


async def test_another_owner_cant_go_on_with_a_call() -> None:
    upstream = Upstream(tools_call=naming)
    async with bridging(upstream, owner="t_1") as mine, bridging(upstream, owner="t_2") as other:
        state = await _state(mine)
        await _state(other)
        assert error(await exchanged(other, _retry(state)))["code"] == -32602
        assert "result" in plain((await exchanged(mine, _retry(state)))[-1])


async def test_a_call_that_waits_too_long_is_cancelled_at_the_server() -> None:
    upstream = Upstream(tools_call=naming)
    async with bridging(upstream, wait=0.05) as bridge:
        state = await _state(bridge)
        await upstream.links[0].calls[0].cancelled.wait()
        assert error(await exchanged(bridge, _retry(state)))["message"] == "Invalid or expired requestState"


async def test_more_calls_than_may_wait_are_refused_their_question() -> None:
    async with bridging(Upstream(tools_call=naming), parked=1) as bridge:
        state = await _state(bridge)
        found = result(await exchanged(bridge, asking("tools/call", {"name": "t", "arguments": {}}, can=ABLE)))
        assert found["refused"]["code"] == -32603
        assert "too many" in found["refused"]["message"]
        assert "result" in plain((await exchanged(bridge, _retry(state)))[-1])


async def test_a_retry_without_answers_is_asked_again() -> None:
    async with bridging(Upstream(tools_call=naming)) as bridge:
        state = await _state(bridge)
        again = result(await exchanged(bridge, _retry(state, inputResponses={})))
        assert again["inputRequests"].keys() == {"elicitation-1"}
        assert result(await exchanged(bridge, _retry(again["requestState"])))["answer"] == {"action": "decline"}


async def test_questions_of_one_breath_are_asked_together_and_each_answer_reaches_its_own() -> None:
    async def both(call: FakeCall) -> Any:
        answers = await asyncio.gather(call.ask("elicitation/create", FORM), call.ask("roots/list"))
        return {"content": [], "answers": [plain(answer)["result"] for answer in answers]}

    async with bridging(Upstream(tools_call=both)) as bridge:
        asked = result(await exchanged(bridge, asking("tools/call", {"name": "t", "arguments": {}}, can=ABLE)))
        assert asked["inputRequests"].keys() == {"elicitation-1", "roots-2"}
        half = _retry(asked["requestState"], inputResponses={"roots-2": {"roots": []}, "elicitation-1": None})
        rest = result(await exchanged(bridge, half))
        assert rest["inputRequests"].keys() == {"elicitation-1"}
        done = result(await exchanged(bridge, _retry(rest["requestState"])))
        assert done["answers"] == [{"action": "decline"}, {"roots": []}]


async def test_a_call_that_goes_on_while_it_waits_gives_its_answer_to_the_retry() -> None:
    parked = asyncio.Event()

    async def impatient(call: FakeCall) -> Any:
        question = call.link.question("elicitation/create", FORM)
        await call.items.put(Frame(question))
        await parked.wait()
        await call.say("notifications/cancelled", {"requestId": loads(question.id or b"")})
        return {"content": [], "late": True}

    async with bridging(Upstream(tools_call=impatient)) as bridge:
        state = await _state(bridge)
        parked.set()
        assert result(await exchanged(bridge, _retry(state)))["late"] is True


async def test_a_caller_that_leaves_ends_the_call_at_the_server() -> None:
    async def endless(call: FakeCall) -> Any:
        await call.say("notifications/progress", {"progressToken": "p", "progress": 1})
        await asyncio.Event().wait()

    upstream = Upstream(tools_call=endless)
    async with bridging(upstream) as bridge:
        for can in ({}, ABLE):
            request = asking("tools/call", {"name": "t"}, can=can, progressToken="p")
            async with bridge.exchange(Outgoing(request, scope="s")) as answer:
                assert answer.frames is not None
                assert plain((await anext(answer.frames)).message)["method"] == "notifications/progress"
            await upstream.links[-1].calls[-1].cancelled.wait()


@pytest.mark.parametrize("can", [{}, ABLE])
async def test_a_cancelled_request_ends_without_an_answer(can: Any) -> None:
    begun = asyncio.Event()

    async def endless(call: FakeCall) -> Any:
        begun.set()
        await asyncio.Event().wait()

    upstream = Upstream(tools_call=endless)
    async with bridging(upstream) as bridge, anyio.create_task_group() as tasks:
        came: list[Message] = []

        async def call() -> None:
            async with bridge.exchange(Outgoing(asking("tools/call", {"name": "t"}, can=can), scope="s")) as answer:
                assert answer.frames is not None
                came.extend([frame.message async for frame in answer.frames if frame.message])

        tasks.start_soon(call)
        await begun.wait()
        other = Message.notification("notifications/cancelled", {"requestId": 1})
        await bridge.send(other, scope="another client's")
        assert not upstream.links[0].calls[0].cancelled.is_set()
        await bridge.send(other, scope="s")
        await upstream.links[0].calls[0].cancelled.wait()
        assert came == []


async def test_logs_come_only_to_requests_that_ask_for_them_and_only_from_their_level() -> None:
    async def talking(call: FakeCall) -> Any:
        for level in ("debug", "info", "error"):
            await call.say("notifications/message", {"level": level, "data": level})
        return {"content": []}

    upstream = Upstream(tools_call=talking)
    async with bridging(upstream) as bridge:
        for can in ({}, ABLE):
            for level, heard in ((None, []), ("error", ["error"]), ("info", ["info", "error"]), ("error", ["error"])):
                meta: dict[str, Any] = {"io.modelcontextprotocol__logLevel": level} if level else {}
                came = await exchanged(bridge, asking("tools/call", {"name": "t"}, can=can, **meta))
                assert [plain(message)["params"]["data"] for message in came[:-1]] == heard
            levels = [call.message for call in upstream.links[-1].calls if call.message.method == "logging/setLevel"]
            assert [plain(message)["params"]["level"] for message in levels] == ["error", "info"]


async def test_a_server_that_never_answers_how_much_it_logs_keeps_no_request_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def never(call: FakeCall) -> Any:
        await asyncio.Event().wait()

    monkeypatch.setattr("hotplug.gateway.bridge.session._LEVEL_WAIT", 0.05)
    upstream = Upstream(logging_setLevel=never)
    async with bridging(upstream) as bridge:
        for _ in range(3):
            await exchanged(
                bridge, asking("tools/call", {"name": "t"}, **{"io.modelcontextprotocol__logLevel": "info"})
            )
        assert upstream.links[0].methods == ["logging/setLevel", *["tools/call"] * 3]


async def test_progress_of_a_parked_call_goes_by_the_token_of_the_request_that_is_there() -> None:
    async def busy(call: FakeCall) -> Any:
        token = plain(call.message)["params"]["_meta"]["progressToken"]
        await call.say("notifications/progress", {"progressToken": token, "progress": 1, "x": 1})
        await call.ask("elicitation/create", FORM)
        await call.say("notifications/progress", {"progressToken": token, "progress": 2})
        return {"content": []}

    async with bridging(Upstream(tools_call=busy)) as bridge:
        params = {"name": "t", "arguments": {}}
        came = await exchanged(bridge, asking("tools/call", params, can=ABLE, progressToken="one"))
        assert plain(came[0])["params"] == {"progressToken": "one", "progress": 1, "x": 1}
        retry = {**params, "requestState": result(came)["requestState"], "inputResponses": {"elicitation-1": {}}}
        came = await exchanged(bridge, asking("tools/call", retry, can=ABLE, id_=2, progressToken="two"))
        assert [plain(message).get("params") for message in came[:-1]] == [{"progressToken": "two", "progress": 2}]


@pytest.mark.parametrize("can", [{}, ABLE])
async def test_three_thousand_progress_notes_reach_a_slow_reader(can: Any) -> None:
    async def many(call: FakeCall) -> Any:
        for number in range(3000):
            await call.say("notifications/progress", {"progressToken": "p", "progress": number})
        return {"content": []}

    async with bridging(Upstream(tools_call=many)) as bridge:
        request = asking("tools/call", {"name": "t"}, can=can, progressToken="p")
        async with bridge.exchange(Outgoing(request)) as answer:
            assert answer.frames is not None
            got: list[int] = []
            async for frame in answer.frames:
                assert frame.message is not None
                if not frame.message.is_answer:
                    got.append(plain(frame.message)["params"]["progress"])
                if len(got) % 500 == 0:
                    await asyncio.sleep(0.005)
            assert got == list(range(3000))


async def test_each_set_of_capabilities_has_its_own_session_and_the_idle_one_makes_room() -> None:
    upstream = Upstream()
    async with bridging(upstream, sessions=2) as bridge:
        for can in ({}, {"roots": {"listChanged": True}}, {}, {"sampling": {}}, {}, {"sampling": {}, "roots": None}):
            await exchanged(bridge, asking("tools/list", can=can))
        assert [said["capabilities"] for said in upstream.said] == [{}, {"roots": {}}, {"sampling": {}}]
        assert [said["clientInfo"] for said in upstream.said] == [{"name": "test", "version": "1"}] * 3
        assert [link.closed for link in upstream.links] == [False, True, False]


async def test_a_session_in_use_is_not_closed_for_another_and_the_bound_holds() -> None:
    upstream = Upstream(tools_call=naming)
    async with bridging(upstream, sessions=1) as bridge:
        state = await _state(bridge)
        with pytest.raises(LinkLost, match="one session for each set of client capabilities"):
            await exchanged(bridge, asking("tools/list"))
        assert "result" in plain((await exchanged(bridge, _retry(state)))[-1])
        assert "result" in plain((await exchanged(bridge, asking("tools/list")))[-1])


async def test_a_lost_session_fails_its_calls_and_the_next_request_opens_another() -> None:
    upstream = Upstream(tools_call=naming)
    async with bridging(upstream) as bridge:
        state = await _state(bridge)
        upstream.links[0].lose()
        with pytest.raises(LinkLost) as lost:
            await exchanged(bridge, _retry(state))
        assert lost.value.sent
        assert "result" in plain((await exchanged(bridge, asking("tools/list", can=ABLE)))[-1])
        assert len(upstream.links) == 2


@pytest.mark.parametrize("can", [{}, ABLE])
async def test_a_request_that_surely_reached_nobody_is_sent_once_more_and_no_other(can: Any) -> None:
    async def over(call: FakeCall) -> Any:
        call.link.lost = "session ended"
        raise LinkLost("session ended", sent=False)

    upstream = Upstream(tools_call=over)
    async with bridging(upstream) as bridge:
        with pytest.raises(LinkLost, match="session ended"):
            await exchanged(bridge, asking("tools/call", {"name": "t"}, can=can))
        assert len(upstream.links) == 2

    async def dead(call: FakeCall) -> Any:
        raise LinkLost("died", sent=True)

    upstream = Upstream(tools_call=dead)
    async with bridging(upstream) as bridge:
        with pytest.raises(LinkLost, match="died"):
            await exchanged(bridge, asking("tools/call", {"name": "t"}, can=can))
        assert len(upstream.links) == 1


async def test_a_ping_is_answered_wherever_the_server_sends_it() -> None:
    async def pinging(call: FakeCall) -> Any:
        answer = await call.ask("ping")
        return {"content": [], "answer": plain(answer)}

    upstream = Upstream(tools_call=pinging)
    async with bridging(upstream) as bridge:
        for can in ({}, ABLE):
            found = result(await exchanged(bridge, asking("tools/call", {"name": "t"}, can=can)))
            assert found["answer"]["result"] == {}
            link = upstream.links[-1]
            question = link.question("ping")
            link.push(question)
            assert plain(await link.asked[question.id or b""])["result"] == {}


async def test_a_question_outside_of_any_call_is_refused_but_roots_wait_for_the_next_call() -> None:
    async def calm(call: FakeCall) -> Any:
        await asyncio.gather(*call.link.asked.values())
        return {"content": []}

    upstream = Upstream(tools_call=calm)
    async with bridging(upstream) as bridge:
        await exchanged(bridge, asking("tools/list", can=ABLE))
        link = upstream.links[0]
        sampling = link.question("sampling/createMessage", {})
        link.push(sampling)
        assert plain(await link.asked[sampling.id or b""])["error"]["code"] == -32603
        roots = link.question("roots/list")
        link.push(roots)
        asked = result(await exchanged(bridge, asking("tools/call", {"name": "t", "arguments": {}}, can=ABLE)))
        assert asked["inputRequests"] == {"roots-1": {"method": "roots/list"}}
        given = {"roots": [{"uri": "file:///here"}]}
        await exchanged(bridge, _retry(asked["requestState"], inputResponses={"roots-1": given}))
        assert plain(await link.asked[roots.id or b""])["result"] == given


async def test_a_question_on_a_shared_pipe_goes_to_a_call_of_the_same_client() -> None:
    async def waiting(call: FakeCall) -> Any:
        await asyncio.sleep(0)
        question = call.link.question("elicitation/create", FORM)
        call.link.push(question)
        return {"content": [], "answer": plain(await call.link.asked[question.id or b""])["result"]}

    async with bridging(Upstream(tools_call=waiting)) as bridge:
        state = await _state(bridge)
        assert result(await exchanged(bridge, _retry(state)))["answer"] == {"action": "decline"}


async def test_a_url_that_has_to_be_visited_first_is_asked_for_and_the_retry_is_the_call() -> None:
    visited: list[bool] = []
    wanted = {"mode": "url", "url": "https://a.example/b", "elicitationId": "e1", "message": "Go."}

    async def guarded(call: FakeCall) -> Any:
        visited.append(True)
        if len(visited) == 1:
            return Message.error_of(call.message.id, -32042, "URL elicitation required", {"elicitations": [wanted]})
        return {"content": []}

    async with bridging(Upstream(tools_call=guarded)) as bridge:
        refused = error(await exchanged(bridge, asking("tools/call", {"name": "t", "arguments": {}})))
        assert refused["code"] == -32021
        assert refused["data"] == {"requiredCapabilities": {"elicitation": {"url": {}}}}
        visited.clear()
        asked = result(await exchanged(bridge, asking("tools/call", {"name": "t", "arguments": {}}, can=ABLE)))
        assert asked["inputRequests"] == {"elicitation-1": {"method": "elicitation/create", "params": wanted}}
        assert error(await exchanged(bridge, _retry(asked["requestState"])))["code"] == -32600
        assert visited == [True]
        visited.clear()
        state = result(await exchanged(bridge, asking("tools/call", {"name": "t", "arguments": {}}, can=ABLE)))
        agreed = {"elicitation-1": {"action": "accept"}}
        retried = await exchanged(bridge, _retry(state["requestState"], inputResponses=agreed))
        assert result(retried)["content"] == []
        assert visited == [True, True]


async def test_a_subscription_is_acknowledged_with_what_the_server_tells_and_each_notice_is_stamped() -> None:
    async def refusing(call: FakeCall) -> Any:
        if call.message.text("uri") == "x://refused":
            return Message.error_of(call.message.id, -32602, "no such resource")
        return {}

    upstream = Upstream(resources_subscribe=refusing)
    async with bridging(upstream) as bridge:
        changes: list[str] = []
        bridge.on_change(changes.append)
        uris = ["x://b", "x://a", "x://refused"]
        wanted = {"toolsListChanged": True, "promptsListChanged": True, "resourceSubscriptions": uris}
        request = asking("subscriptions/listen", {"notifications": wanted}, id_="sub")
        async with bridge.exchange(Outgoing(request)) as answer:
            assert answer.frames is not None
            first = plain((await anext(answer.frames)).message)
            link = upstream.links[0]
            stamp = {"io.modelcontextprotocol/subscriptionId": "sub"}
            assert first["method"] == "notifications/subscriptions/acknowledged"
            assert first["params"] == {
                "notifications": {"toolsListChanged": True, "resourceSubscriptions": ["x://b", "x://a"]},
                "_meta": stamp,
            }
            link.push(Message.notification("notifications/prompts/list_changed"))
            link.push(Message.notification("notifications/tools/list_changed", {"_meta": {"a": 1}}))
            link.push(Message.notification("notifications/tools/list_changed", {"_meta": {"a": 2}}))
            link.push(Message.notification("notifications/message", {"level": "error", "data": "not for here"}))
            link.push(Message.notification("notifications/resources/updated", {"uri": "x://a"}))
            link.push(Message.notification("notifications/resources/updated", {"uri": "x://a/part"}))
            while link._general.qsize():  # pyright: ignore[reportPrivateUsage]
                await asyncio.sleep(0)
            came = [plain((await anext(answer.frames)).message) for _ in range(3)]
            assert [message["params"] for message in came] == [
                {"_meta": {"a": 2, **stamp}},
                {"uri": "x://a", "_meta": stamp},
                {"uri": "x://a/part", "_meta": stamp},
            ]
        assert changes == ["notifications/prompts/list_changed"] + ["notifications/tools/list_changed"] * 2
        with anyio.fail_after(30):
            while link.methods.count("resources/unsubscribe") < 2:
                await asyncio.sleep(0)


async def test_two_subscriptions_of_one_resource_subscribe_it_once_and_one_that_ends_leaves_the_other() -> None:
    upstream = Upstream()
    async with bridging(upstream) as bridge:
        wanted = {"notifications": {"resourceSubscriptions": ["x://a"]}}
        async with bridge.exchange(Outgoing(asking("subscriptions/listen", wanted, id_=1), scope="a")) as one:
            assert one.frames is not None
            await anext(one.frames)
            async with bridge.exchange(Outgoing(asking("subscriptions/listen", wanted, id_=2), scope="b")) as two:
                assert two.frames is not None
                await anext(two.frames)
            await exchanged(bridge, asking("tools/list"))
            upstream.links[0].push(Message.notification("notifications/resources/updated", {"uri": "x://a"}))
            assert plain((await anext(one.frames)).message)["params"]["uri"] == "x://a"
        assert upstream.links[0].methods == ["resources/subscribe", "tools/list"]


async def test_a_subscription_breaks_when_the_server_is_lost() -> None:
    upstream = Upstream()
    async with bridging(upstream) as bridge:
        request = asking("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
        async with bridge.exchange(Outgoing(request)) as answer:
            assert answer.frames is not None
            await anext(answer.frames)
            upstream.links[0].lose()
            with pytest.raises(LinkLost):
                await anext(answer.frames)


async def test_a_subscription_that_is_cancelled_ends() -> None:
    upstream = Upstream()
    async with bridging(upstream) as bridge:
        request = asking("subscriptions/listen", {"notifications": {"toolsListChanged": True}}, id_=5)
        async with bridge.exchange(Outgoing(request, scope="s")) as answer:
            assert answer.frames is not None
            await anext(answer.frames)
            await bridge.send(Message.notification("notifications/cancelled", {"requestId": 5}), scope="s")
            assert [frame async for frame in answer.frames] == []


async def test_nothing_that_the_server_says_is_lost_or_changed_by_the_bridge() -> None:
    block = b'{"type":"hologram","x":1e400,"n":123456789012345678901234567890,"s":"\\ud800\\/"}'
    odd = b'{"content":[' + block + b'],"more":{"b":null}}'

    async def answering(call: FakeCall) -> Any:
        assert plain(call.message)["params"] == {"name": "t", "odd": 10**30, "_meta": {"vendor/x": None}}
        return Message.parse(b'{"jsonrpc":"2.0","id":0,"result":' + odd + b"}")

    async with bridging(Upstream(tools_call=answering)) as bridge:
        for can in ({}, ABLE):
            request = asking("tools/call", {"name": "t", "odd": 10**30}, can=can, vendor__x=None)
            [answer] = await exchanged(bridge, request)
            assert block in answer.encode()
            assert b'"more":{"b":null}' in answer.encode()


async def test_a_missing_resource_is_invalid_params_in_the_modern_era() -> None:
    async def missing(call: FakeCall) -> Any:
        return Message.error_of(call.message.id, -32002, "Resource not found", {"uri": "x://a", "more": 1})

    async with bridging(Upstream(resources_read=missing)) as bridge:
        assert error(await exchanged(bridge, asking("resources/read", {"uri": "x://a"}))) == {
            "code": -32602,
            "message": "Resource not found",
            "data": {"uri": "x://a", "more": 1},
        }


async def test_progress_and_logs_that_come_beside_their_call_reach_it() -> None:
    both = asyncio.Event()

    async def beside(call: FakeCall) -> Any:
        token = plain(call.message)["params"]["_meta"]["progressToken"]
        link = call.link
        link.push(Message.notification("notifications/progress", {"progressToken": token, "progress": 1}))
        link.push(Message.notification("notifications/progress", {"progressToken": "another", "progress": 2}))
        link.push(Message.notification("notifications/message", {"level": "error", "data": token}))
        await both.wait()
        return {"content": []}

    async with bridging(Upstream(tools_call=beside)) as bridge:
        level = {"io.modelcontextprotocol__logLevel": "info"}
        request = asking("tools/call", {"name": "t"}, progressToken="p", **level)
        async with bridge.exchange(Outgoing(request, scope="a")) as answer:
            assert answer.frames is not None
            assert plain((await anext(answer.frames)).message)["params"] == {"progressToken": "p", "progress": 1}
            assert plain((await anext(answer.frames)).message)["params"]["data"] == "p"
            # With two calls under way nobody knows whose a log message is.
            other = asking("tools/call", {"name": "t"}, progressToken="q", **level)
            async with bridge.exchange(Outgoing(other, scope="b")) as second:
                assert second.frames is not None
                assert plain((await anext(second.frames)).message)["params"] == {"progressToken": "q", "progress": 1}
                both.set()
                for frames in (second.frames, answer.frames):
                    left = [frame.message async for frame in frames if frame.message]
                    assert [message.is_answer for message in left] == [True]


async def test_a_question_that_is_withdrawn_at_once_is_not_asked() -> None:
    async def nervous(call: FakeCall) -> Any:
        question = call.link.question("elicitation/create", FORM)
        await call.items.put(Frame(question))
        await call.say("notifications/cancelled", {"requestId": loads(question.id or b"")})
        await asyncio.sleep(0.01)
        return {"content": [], "late": True}

    upstream = Upstream(tools_call=nervous)
    async with bridging(upstream) as bridge:
        found = result(await exchanged(bridge, asking("tools/call", {"name": "t", "arguments": {}}, can=ABLE)))
        assert found["late"] is True
        link = upstream.links[0]
        roots = link.question("roots/list")
        link.push(roots)
        link.push(Message.notification("notifications/cancelled", {"requestId": loads(roots.id or b"")}))
        ping = link.question("ping")
        link.push(ping)
        await link.asked[ping.id or b""]
        found = result(await exchanged(bridge, asking("tools/call", {"name": "t", "arguments": {}}, can=ABLE)))
        assert found["late"] is True


async def test_a_server_that_cant_be_reached_is_tried_once() -> None:
    tried: list[Object] = []

    async def unreachable(initialize: Object) -> FakeLink:
        tried.append(initialize)
        raise LinkLost("no such command", sent=False)

    with pytest.raises(LinkLost, match="no such command"):
        await for_modern_client(unreachable, SECRET)
    bridge = await for_modern_client(unreachable, SECRET, hello=FakeLink("legacy", HELLO).hello)
    tried.clear()
    with pytest.raises(LinkLost, match="no such command"):
        await exchanged(bridge, asking("tools/list"))
    assert len(tried) == 1
    await bridge.aclose()
