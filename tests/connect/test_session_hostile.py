"""Lists of tools and answers that are wrong on purpose, or as if."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from hotplug.connect.results import TOOLS_LIMIT
from hotplug.connect.session import McpSession
from hotplug.errors import Disconnected, TooLarge

pytestmark = pytest.mark.anyio

Child = Callable[..., list[str]]


@pytest.mark.parametrize("mode", ["silent", "unreadable"])
async def test_a_list_that_never_comes_is_waited_for_only_as_long_as_was_said(child: Child, mode: str) -> None:
    async with McpSession(child("hostile", mode)) as session:
        started = time.monotonic()
        listed = await session.list_tools(timeout=0.3)
        assert time.monotonic() - started < 5
        assert not listed.complete
        assert listed.problem == "page 1 of the tools failed: no answer in time"


async def test_the_time_is_for_all_pages_together(child: Child) -> None:
    async with McpSession(child("endless_slow")) as session:
        started = time.monotonic()
        listed = await session.list_tools(timeout=1)
        assert time.monotonic() - started < 5
        assert "no answer in time" in str(listed.problem)
        assert len(listed.tools) > 1


async def test_pages_without_an_end_stop_at_a_number_of_tools(child: Child) -> None:
    async with McpSession(child("hostile", "endless")) as session:
        listed = await session.list_tools()
        assert len(listed.tools) == TOOLS_LIMIT
        assert "10000 tools, 16 MiB" in str(listed.problem)


async def test_a_list_of_too_many_bytes_is_incomplete(child: Child) -> None:
    async with McpSession(child("hostile", "heavy")) as session:
        listed = await session.list_tools()
        assert len(listed.tools) == 15
        assert "10000 tools, 16 MiB" in str(listed.problem)


async def test_a_page_that_was_read_already_is_a_problem(child: Child) -> None:
    async with McpSession(child("hostile", "circle")) as session:
        listed = await session.list_tools()
        assert not listed.complete
        assert "the list has no end" in str(listed.problem)


async def test_tools_that_are_no_list_are_a_problem(child: Child) -> None:
    async with McpSession(child("hostile", "text")) as session:
        listed = await session.list_tools()
        assert (listed.complete, listed.tools) == (False, ())
        assert listed.problem == "page 1 of the tools holds no list of them"


async def test_tools_without_a_name_and_of_one_name_are_said(child: Child) -> None:
    async with McpSession(child("hostile", "nameless")) as session:
        listed = await session.list_tools()
        assert listed.unusable == {"#0": "has no name", "#1": "is NoneType, not an object", "#2": "has no name"}
    async with McpSession(child("hostile", "twice")) as session:
        listed = await session.list_tools()
        assert [tool.description for tool in listed.tools] == [""]
        assert listed.unusable == {"a": "is listed more than once, and only the first one is taken"}


async def test_a_tool_that_is_nested_too_deeply_to_be_walked_costs_only_itself(child: Child) -> None:
    async with McpSession(child("hostile", "deep")) as session:
        listed = await session.list_tools()
        assert [tool.name for tool in listed.tools] == ["good"]
        assert listed.unusable == {"deep": "is nested more than 100 levels deep"}


async def test_a_list_that_loses_its_connection_leaves_nothing_in_doubt(child: Child) -> None:
    async with McpSession(child("hostile", "dies")) as session:
        with pytest.raises(Disconnected, match=r"exited with code 3.*tools/list got no answer") as lost:
            await session.list_tools()
        assert "state" not in lost.value.details


async def test_an_answer_over_the_limit_is_too_large_and_names_the_limit(child: Child) -> None:
    async with McpSession(child("hostile", "large")) as session:
        with pytest.raises(TooLarge, match="more than 64 MiB") as refusal:
            await session.call("a")
        assert refusal.value.details["limitBytes"] == 64 * 2**20
        assert refusal.value.details["state"] == "unknown"
