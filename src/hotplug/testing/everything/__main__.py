"""`python -m hotplug.testing.everything [--http PORT] [--only legacy|modern]`."""

from __future__ import annotations

import argparse

import anyio

from hotplug.testing.everything.server import Era, everything_app, everything_server
from hotplug.testing.listening import listen


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m hotplug.testing.everything", description=__doc__)
    parser.add_argument("--http", type=int, metavar="PORT", help="serve HTTP there; 0 takes a free port and tells it")
    parser.add_argument("--only", choices=("legacy", "modern"), help="speak this era of the protocol alone")
    options = parser.parse_args()
    port: int | None = options.http
    if port is None:
        anyio.run(_serve_streams, options.only)
    else:
        listen(everything_app(options.only), port)


async def _serve_streams(only: Era | None) -> None:
    from mcp.server.stdio import stdio_server

    server = everything_server(only)
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


if __name__ == "__main__":
    main()
