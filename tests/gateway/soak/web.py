"""The HTTP server of the soak, on the SDK: `web.py PORT`. Besides `/mcp` it tells at `/sessions` how many it has."""

from __future__ import annotations

import sys
from typing import Any

import uvicorn
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

server = MCPServer("web", log_level="ERROR")


@server.tool()
async def echo(mark: str, ctx: Context, notes: int = 0) -> dict[str, Any]:
    """Give a mark back."""
    for number in range(notes):
        await ctx.report_progress(number + 1, None, mark)
    return {"mark": mark, "tool": "web.echo"}


@server.tool()
async def other(mark: str) -> dict[str, Any]:
    """Give a mark back, too."""
    return {"mark": mark, "tool": "web.other"}


@server.custom_route("/sessions", methods=["GET"])
async def sessions(request: Request) -> Response:
    return JSONResponse(len(server.session_manager._server_instances))


if __name__ == "__main__":
    uvicorn.run(server.streamable_http_app(), port=int(sys.argv[1]), log_level="error", timeout_graceful_shutdown=1)
