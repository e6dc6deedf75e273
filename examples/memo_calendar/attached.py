"""The memo calendar as part of a server that has tools of its own."""

from mcp.server import MCPServer
from server import MemoCalendar

from hotplug.serve import attach

server = MCPServer("office")


@server.tool()
async def coffee(cups: int) -> str:
    """Brew coffee."""
    return f"{cups} cups, in five minutes"


attach(server, MemoCalendar())

if __name__ == "__main__":
    server.run()
