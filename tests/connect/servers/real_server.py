"""A server of the SDK's on standard streams, which knows both eras; waits `argv[1]` seconds before it listens."""

import sys
import time

from mcp.server import MCPServer
from mcp.server.mcpserver import Context

time.sleep(float(sys.argv[1]) if len(sys.argv) > 1 else 0)
server = MCPServer("real", instructions="Be exact.")


@server.tool()
async def add(a: int, b: int) -> int:
    return a + b


@server.tool()
async def steps(context: Context) -> str:
    for step in range(3):
        await context.report_progress(step + 1, 3, f"step {step + 1}")
    return "done"


if __name__ == "__main__":
    server.run("stdio")
