"""The bridges on the gateway's own links: a child's pipes, and HTTP, where headers, sessions and streams count."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp_types import CreateMessageResult, ElicitResult, ListRootsResult, Root, TextContent

from hotplug.connect.launch import HttpLaunch, StdioLaunch, base_environment
from hotplug.gateway.bridge import for_legacy_client, for_modern_client
from hotplug.gateway.link import Link
from hotplug.gateway.links.http_client import HttpPool
from hotplug.gateway.links.legacy_http import open_legacy
from hotplug.gateway.links.modern_http import open_modern
from hotplug.gateway.links.stdio import open_stdio
from hotplug.gateway.message import Object
from hotplug.testing.everything.server import everything_app

from .changing import ChangingServer
from .wire import front, handshake

pytestmark = pytest.mark.anyio

CAN = {"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}}


async def elicited(context: Any, params: Any) -> ElicitResult:
    return ElicitResult(action="accept", content={"name": "Ada", "response": "yes", "ok": True, "color": "red"})


async def sampled(context: Any, params: Any) -> CreateMessageResult:
    return CreateMessageResult(role="assistant", content=TextContent(type="text", text="Paris"), model="m")


async def rooted(context: Any) -> ListRootsResult:
    return ListRootsResult(roots=[Root(uri="file:///here")])


ANSWERS: dict[str, Any] = {
    "elicitation_callback": elicited,
    "sampling_callback": sampled,
    "list_roots_callback": rooted,
}

SAID = {
    "test_simple_text": "This is a simple text",
    "test_elicitation": "User response: action=accept",
    "test_streaming_elicitation": "User response: action=accept",
    "test_sampling": "LLM response: Paris",
    "test_input_required_result_list_roots": "The client has 1 roots.",
    "test_input_required_result_multiple_inputs": "Paris (Ada, 3 answers)",
    "test_input_required_result_multi_round": "Ada likes red.",
    "test_input_required_result_request_state": "state-ok",
    "test_tool_with_logging": "Three log entries",
    "test_tool_with_progress": "Progress was told",
    "test_reconnection": "The call outlived its stream.",
}


@asynccontextmanager
async def served(app: Any) -> AsyncGenerator[HttpLaunch]:
    import uvicorn

    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="critical", lifespan="on", http="h11", ws="none"))
    serving = asyncio.create_task(server.serve())
    try:
        with anyio.fail_after(20):
            while not server.started:
                await asyncio.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        yield HttpLaunch(f"http://127.0.0.1:{port}/mcp", {})
    finally:
        server.force_exit = True
        server.should_exit = True
        await serving


def child() -> StdioLaunch:
    return StdioLaunch((sys.executable, "-m", "hotplug.testing.everything"), base_environment() | {"PYTHONPATH": PATH})


PATH = ":".join(path for path in sys.path if path)


async def uses_everything(bridge: Link, mode: str) -> None:
    async with front(bridge) as transport, Client(transport, mode=mode, **ANSWERS) as client:
        assert len((await client.list_tools()).tools) > 20
        for tool, said in SAID.items():
            with anyio.fail_after(20):
                result = await client.call_tool(tool, {})
            assert result.content[0].text.startswith(said), tool  # pyright: ignore


async def test_a_legacy_client_uses_a_modern_child() -> None:
    below = await open_stdio(child(), "modern")
    bridge = for_legacy_client(below, handshake(CAN))
    try:
        await uses_everything(bridge, "legacy")
    finally:
        await bridge.aclose()
        await below.aclose()


async def test_a_modern_client_uses_a_legacy_child() -> None:
    async def opened(initialize: Object) -> Link:
        return await open_stdio(child(), "legacy", initialize=initialize)

    bridge = await for_modern_client(opened, b"secret")
    try:
        await uses_everything(bridge, "auto")
    finally:
        await bridge.aclose()


async def test_a_legacy_client_uses_a_modern_server_over_http() -> None:
    async with served(everything_app()) as launch, HttpPool() as pool:
        below = await open_modern(pool, launch)
        bridge = for_legacy_client(below, handshake(CAN))
        try:
            await uses_everything(bridge, "legacy")
        finally:
            await bridge.aclose()
            await below.aclose()


async def test_a_modern_client_uses_a_legacy_server_over_http() -> None:
    async with served(everything_app()) as launch, HttpPool() as pool:
        bridge = await for_modern_client(lambda initialize: open_legacy(pool, launch, initialize), b"secret")
        try:
            await uses_everything(bridge, "auto")
        finally:
            await bridge.aclose()


async def test_changes_are_heard_over_http_in_both_directions() -> None:
    heard: list[str] = []

    async def hear(message: Any) -> None:
        heard.append(getattr(message, "method", ""))

    server = ChangingServer()
    app = server.streamable_http_app()
    async with served(app) as launch, HttpPool() as pool:
        below = await open_modern(pool, launch)
        old = for_legacy_client(below, handshake({}))
        new = await for_modern_client(lambda initialize: open_legacy(pool, launch, initialize), b"secret")
        try:
            async with (
                front(old) as one,
                front(new) as other,
                Client(one, mode="legacy", message_handler=hear) as legacy,
                Client(other, mode="2026-07-28") as modern,
            ):
                with anyio.fail_after(30):
                    async with modern.listen(tools_list_changed=True) as events:
                        assert events.honored.tools_list_changed
                        await modern.call_tool("change", {})
                        await anext(events)
                    while "notifications/tools/list_changed" not in heard:
                        await legacy.call_tool("change", {})
        finally:
            await old.aclose()
            await new.aclose()
            await below.aclose()


async def test_a_call_given_up_over_http_ends_at_the_server() -> None:
    server = ChangingServer()
    async with served(server.streamable_http_app()) as launch, HttpPool() as pool:
        below = await open_modern(pool, launch)
        old = for_legacy_client(below, handshake({}))
        new = await for_modern_client(lambda initialize: open_legacy(pool, launch, initialize), b"secret")
        try:
            for bridge, mode in ((old, "legacy"), (new, "2026-07-28")):
                server.waiting.clear()
                server.stopped.clear()
                async with front(bridge) as transport, Client(transport, mode=mode) as client:
                    async with anyio.create_task_group() as tasks:
                        tasks.start_soon(client.call_tool, "wait", {})
                        with anyio.fail_after(30):
                            await server.waiting.wait()
                        tasks.cancel_scope.cancel()
                    with anyio.fail_after(30):
                        await server.stopped.wait()
        finally:
            await old.aclose()
            await new.aclose()
            await below.aclose()


async def test_questions_of_calls_at_once_on_one_pipe_are_all_answered() -> None:
    opened: list[Link] = []

    async def open_one(initialize: Object) -> Link:
        opened.append(await open_stdio(child(), "legacy", initialize=initialize))
        return opened[-1]

    bridge = await for_modern_client(open_one, b"secret")
    try:
        async with front(bridge) as transport, Client(transport, mode="2026-07-28", **ANSWERS) as client:

            async def ask() -> None:
                result = await client.call_tool("test_input_required_result_multi_round", {})
                assert result.content[0].text == "Ada likes red."  # pyright: ignore

            with anyio.fail_after(30):
                async with anyio.create_task_group() as tasks:
                    for _ in range(10):
                        tasks.start_soon(ask)
        assert len(opened) == 2
    finally:
        await bridge.aclose()
