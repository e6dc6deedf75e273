"""The official SDK's client on a road."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

from .home import Road


@asynccontextmanager
async def connected(road: Road, mode: str = "auto", **options: Any) -> AsyncGenerator[Client]:
    if road.command:
        parameters = StdioServerParameters(command=road.command[0], args=list(road.command[1:]), env=road.env)
        async with Client(stdio_client(parameters), mode=mode, **options) as client:
            yield client
        return
    async with (
        httpx2.AsyncClient(headers=road.headers, timeout=60) as http,
        Client(streamable_http_client(road.url, http_client=http), mode=mode, **options) as client,
    ):
        yield client
