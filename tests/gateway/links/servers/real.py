"""A server of the SDK's that knows both eras; on standard streams when it is run."""

from pathlib import Path

import anyio
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from pydantic import BaseModel


class Colour(BaseModel):
    colour: str


def real() -> MCPServer:
    server = MCPServer("real", instructions="Be exact.")

    @server.tool()
    async def add(a: int, b: int) -> int:
        return a + b

    @server.tool()
    async def burst(count: int, context: Context) -> str:
        for step in range(count):
            await context.report_progress(step + 1, count, f"step {step + 1}")
        return "done"

    @server.tool()
    async def who(mark: str, delay: float, context: Context) -> str:
        await context.report_progress(1, 2, mark)
        await anyio.sleep(delay)
        await context.report_progress(2, 2, mark)
        return mark

    @server.tool()
    async def slow(path: str) -> str:
        Path(path).write_text("started")
        try:
            await anyio.sleep_forever()
        except BaseException:
            Path(path).write_text("cancelled")
            raise
        return "never"

    @server.tool()
    async def ask(question: str, context: Context) -> str:
        answer = await context.elicit(question, Colour)
        return answer.data.colour if answer.action == "accept" else answer.action

    @server.tool()
    async def change(context: Context) -> str:
        await context.notify_tools_changed()
        await context.session.send_tool_list_changed()
        return "changed"

    @server.tool()
    async def let_go(context: Context) -> str:
        await context.report_progress(1, 2, "before")
        await context.close_sse_stream()
        await anyio.sleep(0.05)
        await context.report_progress(2, 2, "after")
        return "late"

    return server


if __name__ == "__main__":
    real().run("stdio")
