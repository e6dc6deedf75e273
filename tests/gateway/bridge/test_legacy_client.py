"""A legacy client in front of a modern server: the SDK's own on both sides, and the server's direct word beside it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp_types import CreateMessageResult, ElicitResult, ListRootsResult, Root, TextContent

from hotplug.gateway.bridge import for_legacy_client
from hotplug.gateway.bridge.legacy_client import LegacyClientLink
from hotplug.gateway.link import LinkLost, Outgoing
from hotplug.gateway.message import Message, loads
from hotplug.testing.everything.server import everything_server

from .fake_link import FakeCall, FakeLink
from .wire import exchanged, front, handshake, linked, plain

pytestmark = pytest.mark.anyio

ABLE = {"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {"listChanged": True}}


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
        ("resources/unsubscribe", {"uri": "test://watched-resource"}),
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
        ("server/discover", {}),
    ],
)
async def test_a_request_is_answered_as_the_server_answers_it_in_the_legacy_era(method: str, params: Any) -> None:
    request = Message.request(7, method, params)
    async with linked(everything_server(), "legacy") as direct, linked(everything_server(), "modern") as below:
        bridge = for_legacy_client(below, handshake({}))
        try:
            assert [plain(m) for m in await exchanged(bridge, request)] == [
                plain(m) for m in await exchanged(direct, request)
            ]
        finally:
            await bridge.aclose()


async def test_an_sdk_client_uses_everything() -> None:
    async with linked(everything_server(), "modern") as below:
        bridge = for_legacy_client(below, handshake(ABLE))
        async with front(bridge) as transport, Client(transport, mode="legacy", **CALLBACKS) as client:
            assert client.protocol_version == "2025-11-25"
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


INFO = {"io.modelcontextprotocol/serverInfo": {"name": "new", "version": "9", "x": 1}}
HELLO = {
    "resultType": "complete",
    "supportedVersions": ["2026-07-28"],
    "capabilities": {
        "tools": {"listChanged": True},
        "resources": {"listChanged": True, "subscribe": True},
        "logging": {},
        "extensions": {"a/b": {"c": None}},
    },
    "instructions": "Be brief.",
    "ttlMs": 5,
    "cacheScope": "public",
    "x-more": [1],
    "_meta": {**INFO, "more": 1},
}


@asynccontextmanager
async def bridging(
    below: FakeLink, can: Mapping[str, Any] | None = None, protocol: str = "2025-11-25", **options: Any
) -> AsyncGenerator[LegacyClientLink, None]:
    bridge = for_legacy_client(below, handshake(ABLE if can is None else can, protocol), **options)
    try:
        with anyio.fail_after(30):
            yield bridge
    finally:
        await bridge.aclose()
        assert not below.closed


def server(**scripts: Any) -> FakeLink:
    return FakeLink("modern", HELLO, **scripts)


def calling(id_: Any = 1, **params: Any) -> Message:
    return Message.request(id_, "tools/call", {"name": "t", **params})


def result(messages: list[Message]) -> Any:
    return plain(messages[-1])["result"]


def error(messages: list[Message]) -> Any:
    return plain(messages[-1])["error"]


def wants(**requests: Any) -> dict[str, Any]:
    asked = {name: {"method": method, "params": params} for name, (method, params) in requests.items()}
    return {"resultType": "input_required", "inputRequests": asked, "requestState": "opaque"}


FORM = {"message": "Name?", "requestedSchema": {"type": "object", "properties": {}}, "x-odd": 10**30}


async def naming(call: FakeCall) -> Any:
    """A tool that asks for a name, and answers with what it was told."""
    params = plain(call.message)["params"]
    if "inputResponses" not in params:
        return wants(name=("elicitation/create", FORM))
    return {"resultType": "complete", "content": [], "told": params["inputResponses"], "state": params["requestState"]}


async def conversation(bridge: LegacyClientLink, request: Message, **replies: Any) -> list[Message]:
    """All that came of a request, with an answer to each question by its method (a result, or an error)."""
    came: list[Message] = []
    async with bridge.exchange(Outgoing(request, scope="s")) as answer:
        if answer.message is not None:
            return [answer.message]
        assert answer.frames is not None
        async for frame in answer.frames:
            assert frame.message is not None
            came.append(frame.message)
            if frame.message.kind == "request":
                reply = replies[(frame.message.method or "").replace("/", "_")]
                fields = Message.result_of(frame.message.id or b"", reply) if isinstance(reply, dict) else reply
                await bridge.send(fields.with_id(frame.message.fields["id"]), scope="s")
    return came


async def test_a_handshake_is_answered_by_what_the_server_said_when_it_was_discovered() -> None:
    expected = {
        "protocolVersion": "2025-06-18",
        "capabilities": HELLO["capabilities"],
        "serverInfo": INFO["io.modelcontextprotocol/serverInfo"],
        "instructions": "Be brief.",
        "x-more": [1],
        "_meta": {"more": 1},
    }
    async with bridging(server(), protocol="2025-06-18") as bridge:
        assert {name: loads(value) for name, value in bridge.hello.result.items()} == expected
        assert bridge.hello.protocol == "2025-06-18"
        assert result(await exchanged(bridge, Message.request(0, "initialize", handshake({})))) == expected
    async with bridging(server(), protocol="1999-01-01") as bridge:
        assert bridge.hello.protocol == "2025-11-25"


async def test_each_request_carries_what_the_client_said_in_its_handshake() -> None:
    below = server()
    can = {"sampling": {}, "roots": {"listChanged": True, "x": 1}, "tasks": {"list": {}}, "vendor": {"a": None}}
    async with bridging(below, can, log_level="warning") as bridge:
        message = calling("seven", arguments={"big": 10**30}, _meta={"progressToken": "p", "vendor/x": None})
        headers = {"traceparent": "00-1", "authorization": "no", "mcp-session-id": "no"}
        async with bridge.exchange(Outgoing(message, headers, "s")) as answer:
            assert answer.message is not None
        outgoing = below.calls[0].outgoing
        assert plain(outgoing.message) == {
            "jsonrpc": "2.0",
            "id": "seven",
            "method": "tools/call",
            "params": {
                "name": "t",
                "arguments": {"big": 10**30},
                "_meta": {
                    "progressToken": "p",
                    "vendor/x": None,
                    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
                    "io.modelcontextprotocol/clientCapabilities": {
                        "sampling": {},
                        "roots": {"x": 1},
                        "vendor": {"a": None},
                    },
                    "io.modelcontextprotocol/logLevel": "warning",
                },
            },
        }
        assert outgoing.scope == "s"
        assert outgoing.headers == {
            "traceparent": "00-1",
            "mcp-protocol-version": "2026-07-28",
            "mcp-method": "tools/call",
            "mcp-name": "t",
        }


async def test_a_level_that_the_client_sets_goes_with_every_later_request() -> None:
    below = server()
    async with bridging(below) as bridge:
        assert result(await exchanged(bridge, Message.request(1, "logging/setLevel", {"level": "error"}))) == {}
        assert (
            error(await exchanged(bridge, Message.request(1, "logging/setLevel", {"level": "loud"})))["code"] == -32602
        )
        await exchanged(bridge, calling())
        assert plain(below.calls[0].message)["params"]["_meta"]["io.modelcontextprotocol/logLevel"] == "error"
        assert below.methods == ["tools/call"]


async def test_what_the_server_logs_within_a_call_reaches_the_client() -> None:
    async with linked(everything_server(), "modern") as below:
        bridge = for_legacy_client(below, handshake({}))
        came = await exchanged(bridge, Message.request(1, "tools/call", {"name": "test_tool_with_logging"}))
        assert [plain(message)["params"]["data"] for message in came[:-1]] == [
            "Tool execution started",
            "Tool processing data",
            "Tool execution completed",
        ]
        await bridge.aclose()


async def test_progress_reaches_the_client_under_its_own_token() -> None:
    async with linked(everything_server(), "modern") as below:
        bridge = for_legacy_client(below, handshake({}))
        request = Message.request(1, "tools/call", {"name": "test_tool_with_progress", "_meta": {"progressToken": 5}})
        came = await exchanged(bridge, request)
        assert [(plain(m)["params"]["progressToken"], plain(m)["params"]["progress"]) for m in came[:-1]] == [
            (5, 0),
            (5, 50),
            (5, 100),
        ]
        await bridge.aclose()


async def test_required_input_becomes_a_request_to_the_client_and_its_answer_the_retry() -> None:
    below = server(tools_call=naming)
    given = {"action": "accept", "content": {"name": "Ada"}, "x": [1]}
    async with bridging(below) as bridge:
        question, answer = await conversation(
            bridge, calling(4, arguments={"a": 1}, _meta={"progressToken": "p"}), elicitation_create=given
        )
        assert plain(question)["method"] == "elicitation/create"
        assert plain(question)["params"] == FORM
        assert plain(answer) == {
            "jsonrpc": "2.0",
            "id": 4,
            "result": {"content": [], "told": {"name": given}, "state": "opaque"},
        }
        first, second = (plain(call.message) for call in below.calls)
        assert second["id"] != first["id"]
        assert second["params"]["arguments"] == {"a": 1}
        assert second["params"]["_meta"] == first["params"]["_meta"]


async def test_a_client_that_refuses_a_question_ends_the_call_with_its_own_error() -> None:
    below = server(tools_call=naming)
    async with bridging(below) as bridge:
        refused = Message.error_of(None, -1, "User rejected", {"x": 1})
        came = await conversation(bridge, calling("c"), elicitation_create=refused)
        assert plain(came[-1]) == {
            "jsonrpc": "2.0",
            "id": "c",
            "error": {"code": -1, "message": "User rejected", "data": {"x": 1}},
        }
        assert len(below.calls) == 1


async def test_a_question_that_the_client_did_not_declare_is_never_sent_to_it() -> None:
    async def sampling(call: FakeCall) -> Any:
        return wants(a=("sampling/createMessage", {"messages": [], "maxTokens": 1, "tools": []}))

    async def visiting(call: FakeCall) -> Any:
        return wants(a=("elicitation/create", {"mode": "url", "url": "https://a.example", "message": ""}))

    async def strange(call: FakeCall) -> Any:
        return wants(a=("tasks/list", {}))

    for script, can in (
        (naming, {}),
        (naming, {"elicitation": {"url": {}}}),
        (sampling, {"sampling": {}}),
        (visiting, {"elicitation": {}}),
        (strange, ABLE),
    ):
        async with bridging(server(tools_call=script), can) as bridge:
            came = await exchanged(bridge, calling())
            assert len(came) == 1
            assert error(came)["code"] == -32600


async def test_a_url_to_visit_gets_the_id_that_legacy_clients_need_and_its_end_is_told() -> None:
    async def visiting(call: FakeCall) -> Any:
        if "inputResponses" in call.message.params:
            return {"content": []}
        return wants(a=("elicitation/create", {"mode": "url", "url": "https://a.example", "message": "Go."}))

    async with bridging(server(tools_call=visiting)) as bridge:
        question, done, answer = await conversation(bridge, calling(), elicitation_create={"action": "accept"})
        visit = plain(question)["params"]["elicitationId"]
        assert plain(done)["method"] == "notifications/elicitation/complete"
        assert plain(done)["params"] == {"elicitationId": visit}
        assert answer.is_answer


async def test_a_state_without_questions_is_sent_back_after_a_pause() -> None:
    async def later(call: FakeCall) -> Any:
        if call.message.text("requestState") == "second":
            return {"content": []}
        state = "first" if call.message.text("requestState") is None else "second"
        return {"resultType": "input_required", "requestState": state}

    below = server(tools_call=later)
    async with bridging(below) as bridge:
        assert result(await exchanged(bridge, calling())) == {"content": []}
        assert [call.message.text("requestState") for call in below.calls] == [None, "first", "second"]
        assert all("inputResponses" not in call.message.params for call in below.calls)


async def test_a_server_that_never_stops_asking_is_ended() -> None:
    async def endless(call: FakeCall) -> Any:
        return wants(name=("elicitation/create", FORM))

    below = server(tools_call=endless)
    async with bridging(below, rounds=3) as bridge:
        came = await conversation(bridge, calling(), elicitation_create={"action": "decline"})
        assert error(came)["code"] == -32603
        assert len(below.calls) == 4


async def test_a_cancelled_request_ends_at_the_server_and_without_an_answer() -> None:
    begun = asyncio.Event()

    async def endless(call: FakeCall) -> Any:
        begun.set()
        await asyncio.Event().wait()

    below = server(tools_call=endless)
    async with bridging(below) as bridge, anyio.create_task_group() as tasks:
        came: list[Message] = []

        async def call() -> None:
            came.extend(await conversation(bridge, calling(3)))

        tasks.start_soon(call)
        await begun.wait()
        await bridge.send(Message.notification("notifications/cancelled", {"requestId": "3"}), scope="s")
        await bridge.send(Message.notification("notifications/cancelled", {"requestId": 3}), scope="another")
        assert not below.calls[0].cancelled.is_set()
        await bridge.send(Message.notification("notifications/cancelled", {"requestId": 3}), scope="s")
        await below.calls[0].cancelled.wait()
        assert came == []
        assert below.sent == []


async def test_a_request_that_is_cancelled_while_the_client_is_asked_ends() -> None:
    below = server(tools_call=naming)
    async with bridging(below) as bridge, bridge.exchange(Outgoing(calling(3), scope="s")) as answer:
        assert answer.frames is not None
        assert plain((await anext(answer.frames)).message)["method"] == "elicitation/create"
        await bridge.send(Message.notification("notifications/cancelled", {"requestId": 3}), scope="s")
        assert [frame async for frame in answer.frames] == []
        assert len(below.calls) == 1


async def test_a_caller_that_leaves_cancels_at_the_server() -> None:
    async def endless(call: FakeCall) -> Any:
        await call.say("notifications/message", {"level": "info", "data": 1})
        await asyncio.Event().wait()

    below = server(tools_call=endless)
    async with bridging(below) as bridge:
        async with bridge.exchange(Outgoing(calling(), scope="s")) as answer:
            assert answer.frames is not None
            await anext(answer.frames)
        assert below.calls[0].cancelled.is_set()


async def test_three_thousand_progress_notes_reach_a_slow_reader() -> None:
    async def many(call: FakeCall) -> Any:
        for number in range(3000):
            await call.say("notifications/progress", {"progressToken": "p", "progress": number})
        return {"content": []}

    async with bridging(server(tools_call=many)) as bridge, bridge.exchange(Outgoing(calling())) as answer:
        assert answer.frames is not None
        got: list[int] = []
        async for frame in answer.frames:
            assert frame.message is not None
            if not frame.message.is_answer:
                got.append(plain(frame.message)["params"]["progress"])
            if len(got) % 500 == 0:
                await asyncio.sleep(0.005)
        assert got == list(range(3000))


async def test_a_lost_server_fails_the_call_and_says_whether_it_was_sent() -> None:
    async def dying(call: FakeCall) -> Any:
        await call.say("notifications/message", {"level": "info", "data": 1})
        raise LinkLost("died", sent=True)

    async with bridging(server(tools_call=dying)) as bridge:
        with pytest.raises(LinkLost, match="died") as lost:
            await exchanged(bridge, calling())
        assert lost.value.sent


def listening(*uris: str, refused: bool = False) -> Any:
    """What serves `subscriptions/listen`; these resources are honored."""

    async def serve(call: FakeCall) -> Any:
        if refused:
            return Message.error_of(call.message.id, -32601, "Method not found")
        wanted = plain(call.message)["params"]["notifications"]
        stamp = {"io.modelcontextprotocol/subscriptionId": plain(call.message)["id"]}
        asked = wanted.pop("resourceSubscriptions", [])
        if honored := [uri for uri in asked if uri in uris]:
            wanted["resourceSubscriptions"] = honored
        await call.say("notifications/subscriptions/acknowledged", {"notifications": wanted, "_meta": stamp})
        return await asyncio.Event().wait()

    return serve


async def told(call: FakeCall, method: str, **params: Any) -> None:
    stamp = {"io.modelcontextprotocol/subscriptionId": loads(call.message.id or b"")}
    await call.say(method, {**params, "_meta": stamp})


async def until(true: Any) -> None:
    while not true():
        await asyncio.sleep(0)


async def test_nothing_is_subscribed_before_somebody_listens() -> None:
    below = server(subscriptions_listen=listening())
    async with bridging(below) as bridge:
        await exchanged(bridge, calling())
        assert below.methods == ["tools/call"]


async def test_changed_lists_are_told_as_a_legacy_server_tells_them() -> None:
    below = server(subscriptions_listen=listening())
    async with bridging(below) as bridge:
        changes: list[str] = []
        unhook = bridge.on_change(changes.append)
        general = bridge.general()
        await until(lambda: below.calls)
        assert plain(below.calls[0].message)["params"]["notifications"] == {
            "toolsListChanged": True,
            "resourcesListChanged": True,
        }
        await told(below.calls[0], "notifications/tools/list_changed", x=1)
        frame = await anext(general)
        assert plain(frame.message) == {
            "jsonrpc": "2.0",
            "method": "notifications/tools/list_changed",
            "params": {"x": 1},
        }
        assert changes == ["notifications/tools/list_changed"]
        unhook()
        assert below.methods == ["subscriptions/listen"]


async def test_a_subscribed_resource_is_told_of_until_it_is_unsubscribed() -> None:
    below = server(subscriptions_listen=listening("x://a", "x://b"))
    async with bridging(below) as bridge:
        general = bridge.general()
        for uri in ("x://a", "x://b", "x://b"):
            assert result(await exchanged(bridge, Message.request(1, "resources/subscribe", {"uri": uri}))) == {}
        wanted = [plain(call.message)["params"]["notifications"].get("resourceSubscriptions") for call in below.calls]
        assert wanted == [["x://a"], ["x://a", "x://b"]]
        assert below.calls[0].cancelled.is_set()
        await told(below.calls[1], "notifications/resources/updated", uri="x://a")
        assert plain((await anext(general)).message)["params"]["uri"] == "x://a"
        for uri in ("x://a", "x://a", "x://b"):
            assert result(await exchanged(bridge, Message.request(1, "resources/unsubscribe", {"uri": uri}))) == {}
        wanted = [plain(call.message)["params"]["notifications"].get("resourceSubscriptions") for call in below.calls]
        assert wanted[2:] == [["x://b"], None]
        assert below.calls[2].cancelled.is_set()


async def test_a_resource_whose_notices_the_server_refuses_is_not_subscribed() -> None:
    below = server(subscriptions_listen=listening("x://a"))
    async with bridging(below) as bridge:
        await exchanged(bridge, Message.request(1, "resources/subscribe", {"uri": "x://a"}))
        refused = await exchanged(bridge, Message.request(1, "resources/subscribe", {"uri": "x://other"}))
        assert error(refused)["code"] == -32600
        assert not below.calls[0].cancelled.is_set()
        assert error(await exchanged(bridge, Message.request(1, "resources/subscribe", {})))["code"] == -32602
    async with bridging(server(subscriptions_listen=listening(refused=True))) as bridge:
        refused = await exchanged(bridge, Message.request(1, "resources/subscribe", {"uri": "x://a"}))
        assert error(refused)["code"] == -32601


async def test_a_broken_subscription_is_renewed_and_what_may_have_been_missed_is_told() -> None:
    below = server(subscriptions_listen=listening("x://a"))
    async with bridging(below) as bridge:
        await exchanged(bridge, Message.request(1, "resources/subscribe", {"uri": "x://a"}))
        general = bridge.general()
        await below.calls[0].items.put(LinkLost("stream broke", sent=True))
        came = [plain((await anext(general)).message) for _ in range(3)]
        assert [message["method"] for message in came] == [
            "notifications/tools/list_changed",
            "notifications/resources/list_changed",
            "notifications/resources/updated",
        ]
        assert below.methods == ["subscriptions/listen"] * 2


async def test_the_end_of_the_link_below_ends_what_is_read() -> None:
    below = server(subscriptions_listen=listening())
    async with bridging(below) as bridge:
        changes: list[str] = []
        bridge.on_change(changes.append)
        general = bridge.general()
        below.lose("crashed")
        assert [frame async for frame in general] == []
        assert changes == ["lost"]
        assert bridge.lost == "crashed"


async def test_what_a_legacy_client_says_beside_requests_is_kept_from_a_server_that_has_no_word_for_it() -> None:
    below = server()
    async with bridging(below) as bridge:
        for method in ("notifications/initialized", "notifications/roots/list_changed", "notifications/progress"):
            await bridge.send(Message.notification(method))
        vendor = Message.notification("vendor/note", {"a": 1})
        await bridge.send(vendor)
        await bridge.send(Message.result_of(b'"nobody asked"', {}))
        assert below.sent == [vendor]


async def test_what_legacy_clients_refuse_is_left_out_and_nothing_else() -> None:
    array, plain_object = {"type": "array"}, {"type": "object", "x": 1}

    async def listed(call: FakeCall) -> Any:
        tools = [
            {"name": "a", "inputSchema": {"type": "object"}, "outputSchema": array, "x": 10**30},
            {"name": "b", "inputSchema": {"type": "object"}, "outputSchema": plain_object},
        ]
        return {"resultType": "complete", "tools": tools, "ttlMs": 1, "cacheScope": "public", "x": 1, "_meta": INFO}

    async def array_result(call: FakeCall) -> Any:
        image = {"type": "image", "data": "", "mimeType": "image/png"}
        return {"resultType": "complete", "content": [image], "structuredContent": [1, {"a": None}], "ttlMs": 3}

    async with bridging(server(tools_list=listed, tools_call=array_result)) as bridge:
        assert result(await exchanged(bridge, Message.request(1, "tools/list"))) == {
            "tools": [
                {"name": "a", "inputSchema": {"type": "object"}, "x": 10**30},
                {"name": "b", "inputSchema": {"type": "object"}, "outputSchema": plain_object},
            ],
            "x": 1,
        }
        assert result(await exchanged(bridge, calling())) == {
            "content": [
                {"type": "image", "data": "", "mimeType": "image/png"},
                {"type": "text", "text": '[1,{"a":null}]'},
            ],
            "ttlMs": 3,
        }


async def test_nothing_that_the_server_says_is_lost_or_changed_by_the_bridge() -> None:
    block = b'{"type":"hologram","x":1e400,"n":123456789012345678901234567890,"s":"\\ud800\\/"}'
    said = b'{"resultType":"complete","content":[' + block + b'],"more":{"b":null}}'

    async def answering(call: FakeCall) -> Any:
        return Message.parse(b'{"jsonrpc":"2.0","id":0,"result":' + said + b"}")

    async with bridging(server(tools_call=answering)) as bridge:
        [answer] = await exchanged(bridge, calling())
        assert answer.encode().endswith(said.replace(b'"resultType":"complete",', b"") + b"}")


async def test_arguments_that_a_tool_wants_in_headers_too_go_there() -> None:
    schema = {
        "type": "object",
        "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "deep": {"type": "object", "properties": {"n": {"type": "integer", "x-mcp-header": "N"}}},
        },
    }

    async def strict(call: FakeCall) -> Any:
        if "mcp-param-region" not in call.outgoing.headers:
            return Message.error_of(call.message.id, -32020, "Mcp-Param-Region header is missing")
        return {"content": []}

    async def listed(call: FakeCall) -> Any:
        if call.message.text("cursor") is None:
            return {"tools": [{"name": "other", "inputSchema": {}}], "nextCursor": "2"}
        return {"tools": [{"name": "t", "inputSchema": schema}]}

    below = server(tools_call=strict, tools_list=listed)
    async with bridging(below) as bridge:
        message = calling(arguments={"region": "Zürich", "deep": {"n": 7}})
        for _ in range(2):
            assert result(await exchanged(bridge, message)) == {"content": []}
        assert below.methods == ["tools/call", "tools/list", "tools/list", "tools/call", "tools/call"]
        headers = below.calls[-1].outgoing.headers
        assert headers["mcp-param-region"] == "=?base64?WsO8cmljaA==?="
        assert headers["mcp-param-n"] == "7"


async def test_two_calls_at_once_each_get_their_own_answers() -> None:
    async def naming_itself(call: FakeCall) -> Any:
        params = plain(call.message)["params"]
        if "inputResponses" not in params:
            return wants(q=("elicitation/create", {**FORM, "message": params["arguments"]["who"]}))
        return {"content": [], "who": params["arguments"]["who"], "told": params["inputResponses"]["q"]}

    async with bridging(server(tools_call=naming_itself)) as bridge, anyio.create_task_group() as tasks:

        async def one(who: str) -> None:
            async with bridge.exchange(Outgoing(calling(1, arguments={"who": who}), scope=who)) as answer:
                assert answer.frames is not None
                async for frame in answer.frames:
                    message = frame.message
                    assert message is not None
                    if message.is_answer:
                        assert plain(message)["result"] == {"content": [], "who": who, "told": {"action": who}}
                    else:
                        assert message.text("message") == who
                        await bridge.send(Message.result_of(message.id or b"", {"action": who}), scope=who)

        for number in range(20):
            tasks.start_soon(one, f"client {number}")


async def test_a_server_that_is_lost_between_the_rounds_had_got_the_call() -> None:
    below = server(tools_call=naming)
    async with bridging(below) as bridge, bridge.exchange(Outgoing(calling(), scope="s")) as answer:
        assert answer.frames is not None
        question = (await anext(answer.frames)).message
        assert question is not None
        below.lose()
        await bridge.send(Message.result_of(question.id or b"", {"action": "accept"}), scope="s")
        with pytest.raises(LinkLost) as lost:
            await anext(answer.frames)
        assert lost.value.sent
