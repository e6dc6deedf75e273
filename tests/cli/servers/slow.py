"""A server whose one tool never answers; it says in the file `SLOW_PID` which process it is."""

import os
from pathlib import Path

import anyio
from mcp.server import MCPServer

server = MCPServer("slow")


@server.tool()
async def wait() -> str:
    Path(os.environ["SLOW_PID"]).write_text(str(os.getpid()), encoding="utf-8")
    await anyio.sleep_forever()
    return "never"


if __name__ == "__main__":
    server.run("stdio")
