"""An upstream with one tool that answers at once: `python -m benchmarks.upstream`."""

from __future__ import annotations

import json

import anyio
from mcp.server import MCPServer

server = MCPServer("bench-upstream")
_TEXT = json.dumps(
    {
        "summary": "Planning",
        "attendees": [
            {"email": f"p{number}@example.org", "status": "declined" if number == 2 else "accepted"}
            for number in range(4)
        ],
    }
)


@server.tool(structured_output=False)
async def show(note: str) -> str:
    """Show a note as JSON."""
    return _TEXT


if __name__ == "__main__":
    anyio.run(server.run_stdio_async)
