"""Arguments that a server wants repeated in headers reach it so however the call came (SEP-2243)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hotplug.gateway.config import SearchConfig
from hotplug.testing.everything.server import everything_app

from .roads import hall

pytestmark = pytest.mark.anyio

TOOL = "test_x_mcp_header"
REGION = "eu-ä"


async def test_a_call_through_search_repeats_the_inner_calls_arguments(tmp_path: Path) -> None:
    async with hall(tmp_path, {"all": everything_app()}, search=SearchConfig(over=3)) as h:
        thread = await h.thread()
        name = f"all.{TOOL}"
        found = await thread.call("hotplug.call", {"name": name, "arguments": {"region": REGION}})
        assert found["content"][0]["text"] == f"region: {REGION}"
        found = await thread.call("hotplug.call", {"name": name, "arguments": {}})
        assert found["content"][0]["text"] == "region: none given"


async def test_a_call_over_standard_streams_is_repeated_in_headers_for_a_server_over_http(tmp_path: Path) -> None:
    async with hall(tmp_path, {"all": everything_app()}) as h:
        thread = await h.thread()
        async with h.stdio(thread.id) as stdio:
            line = await stdio.request("tools/call", {"name": f"all.{TOOL}", "arguments": {"region": REGION}})
            assert json.loads(line)["result"]["content"][0]["text"] == f"region: {REGION}"


async def test_a_caller_that_repeats_its_arguments_wrongly_is_refused(tmp_path: Path) -> None:
    async with hall(tmp_path, {"all": everything_app()}) as h:
        thread = await h.thread()
        refused = await thread.call(f"all.{TOOL}", {"region": REGION})
        assert refused["code"] == -32020
        assert "Mcp-Param-Region" in refused["message"]
