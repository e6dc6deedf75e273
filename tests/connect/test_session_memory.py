from __future__ import annotations

from typing import Any

import anyio
import pytest
from mcp.server import MCPServer, Server, ServerRequestContext
from mcp.server.mcpserver import Context
from mcp_types import CallToolRequestParams, CallToolResult, ListToolsResult, PaginatedRequestParams, TextContent, Tool

from hotplug.connect.session import McpSession
from hotplug.errors import ConfigError, Conflict, NotFound, Timeout

pytestmark = pytest.mark.anyio

NAME = "org.classprofiles/profiles"


def lowlevel() -> Server[Any]:
    """A server whose results say more than its schemas, and whose errors are ours."""

    async def on_list(context: ServerRequestContext[Any], params: PaginatedRequestParams | None) -> ListToolsResult:
        schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
        tools = [Tool(name="look", input_schema={"type": "object"}, output_schema=schema, _meta={"x": None})]
        return ListToolsResult(tools=tools)

    async def on_call(context: ServerRequestContext[Any], params: CallToolRequestParams) -> CallToolResult:
        lists.append(params.name)
        if params.name == "refuse":
            body = {"code": "conflict", "message": "changed since", "details": {"revision": "2"}}
            return CallToolResult(content=[], structured_content=body, is_error=True)
        if params.name == "wait":
            await anyio.sleep(30)
        seen = dict((context.params or {}).get("_meta", {}))
        return CallToolResult(
            content=[TextContent(text="hi")], structured_content={"n": "no integer", "kept": None, "meta": seen}
        )

    lists: list[str] = []
    return Server("low", on_list_tools=on_list, on_call_tool=on_call)


@pytest.mark.parametrize("era", ["auto", "legacy"])
async def test_a_result_is_handed_over_as_it_stood_and_isnt_checked_against_its_schema(era: Any) -> None:
    async with McpSession(lowlevel(), era=era) as session:
        await session.list_tools()
        result = await session.call("look", {"a": None}, meta={"tools.noetic/idempotency-key": "k", "none": None})
        assert not result.is_error
        assert result.texts == ("hi",)
        assert result.structured["n"] == "no integer"
        assert result.structured["kept"] is None
        assert result.structured["meta"]["tools.noetic/idempotency-key"] == "k"


async def test_an_error_result_becomes_the_exception_of_its_code() -> None:
    async with McpSession(lowlevel()) as session:
        failed = (await session.call("refuse")).failed()
        assert isinstance(failed, Conflict)
        assert failed.details == {"revision": "2"}


@pytest.mark.parametrize("era", ["auto", "legacy"])
async def test_a_call_can_time_out_in_process(era: Any) -> None:
    async with McpSession(lowlevel(), era=era) as session:
        with anyio.fail_after(10), pytest.raises(Timeout):
            await session.call("wait", timeout=0.05)
        assert (await session.call("look")).texts == ("hi",)


async def test_a_call_ends_with_the_task_that_made_it() -> None:
    async with McpSession(lowlevel()) as session:
        with anyio.fail_after(10):
            with anyio.move_on_after(0.05) as scope:
                await session.call("wait")
            assert scope.cancelled_caught
            assert (await session.call("look")).texts == ("hi",)


async def test_fr_24_in_the_new_era_a_removed_tool_is_refused_after_the_notice() -> None:
    server = MCPServer("changing")

    async def one() -> str:
        return "1"

    async def two() -> str:
        return "2"

    async def remove(context: Context) -> str:
        server.remove_tool("two")
        await context.notify_tools_changed()
        return "removed"

    server.add_tool(one)
    server.add_tool(two)
    server.add_tool(remove)
    async with McpSession(server) as session:
        assert session.era == "modern"
        assert len((await session.list_tools()).tools) == 3
        await session.call("remove")
        with anyio.fail_after(10):
            while len((await session.list_tools()).tools) != 2:
                await anyio.sleep(0.01)
        with pytest.raises(NotFound):
            await session.call("two")
        assert (await session.call("one")).texts == ("1",)


async def test_extensions_are_read_and_else_what_stands_under_experimental() -> None:
    async def advertise(context: Any, call_next: Any) -> Any:
        result = await call_next(context)
        if context.method == "initialize":
            capabilities = {**result["capabilities"], "experimental": {NAME: {"profiles": []}}}
            return {**result, "capabilities": capabilities}
        return result

    async with McpSession(MCPServer("x", middleware=[advertise]), era="legacy") as session:
        assert session.capabilities_extensions() == {NAME: {"profiles": []}}


async def test_a_fastmcp_server_is_brought_up_with_its_lifespan() -> None:
    fastmcp = pytest.importorskip("fastmcp")
    server = fastmcp.FastMCP("fast")

    @server.tool
    async def add(a: int, b: int) -> int:
        return a + b

    async with McpSession(server) as session:
        assert session.server_info["name"] == "fast"
        assert (await session.call("add", {"a": 1, "b": 2})).structured == {"result": 3}


async def test_an_object_that_is_no_server_is_refused_with_what_would_be() -> None:
    with pytest.raises(ConfigError, match=r"set is not an MCP server.*FastMCP"):
        await McpSession({1}).start()


async def test_a_server_whose_start_fails_in_process_says_why() -> None:
    from collections.abc import AsyncGenerator
    from contextlib import asynccontextmanager

    from hotplug.errors import ConnectError

    @asynccontextmanager
    async def lifespan(server: Any) -> AsyncGenerator[None]:
        raise ValueError("no database")
        yield

    with pytest.raises(ConnectError, match="no database"):
        await McpSession(MCPServer("x", lifespan=lifespan)).start()
