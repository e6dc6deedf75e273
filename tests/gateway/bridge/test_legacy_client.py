"""A legacy client in front of a modern server: the SDK's own on both sides, and the server's direct word beside it."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from mcp import Client
from mcp_types import CreateMessageResult, ElicitResult, ListRootsResult, Root, TextContent

from hotplug.gateway.bridge import for_legacy_client
from hotplug.gateway.message import Message
from hotplug.testing.everything.server import everything_server

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
                with anyio.fail_after(5):
                    result = await client.call_tool(tool, {})
                assert result.content[0].text.startswith(said), tool  # pyright: ignore
        await bridge.aclose()
