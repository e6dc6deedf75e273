"""`python -m hotplug.testing.everything [--http PORT]`."""

from __future__ import annotations

import argparse

import anyio

from hotplug.testing.everything.server import everything_app, everything_server
from hotplug.testing.listening import listen


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m hotplug.testing.everything", description=__doc__)
    parser.add_argument("--http", type=int, metavar="PORT", help="serve HTTP there; 0 takes a free port and tells it")
    port: int | None = parser.parse_args().http
    if port is None:
        anyio.run(_serve_streams)
    else:
        listen(everything_app(), port)


async def _serve_streams() -> None:
    from mcp.server.stdio import stdio_server

    server = everything_server()
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


if __name__ == "__main__":
    main()
