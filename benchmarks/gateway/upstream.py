"""The upstream, on the SDK: `python -m benchmarks.gateway.upstream [--http PORT] [--tools N]`."""

from __future__ import annotations

import argparse
import logging

import anyio
from mcp.server import MCPServer

from hotplug.testing.listening import listen

_FILLING = "0123456789" * 2_000

server = MCPServer("bench-upstream")


@server.tool(structured_output=False)
async def echo(note: str) -> str:
    """Give a note back."""
    return note


@server.tool(structured_output=False)
async def filled(note: str) -> str:
    """Give 20 kB back."""
    return _FILLING


async def _nothing(note: str) -> str:
    return ""


def _main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.gateway.upstream", description=__doc__)
    parser.add_argument("--http", type=int, metavar="PORT")
    parser.add_argument("--tools", type=int, default=3, help="how many there are in all")
    options = parser.parse_args()
    for number in range(options.tools - 2):
        server.add_tool(_nothing, f"nothing_{number}", description="Do nothing, in no time. " * 4)
    logging.getLogger().setLevel(logging.ERROR)
    if options.http is None:
        anyio.run(server.run_stdio_async)
    else:
        listen(server.streamable_http_app(), options.http)


if __name__ == "__main__":
    _main()
