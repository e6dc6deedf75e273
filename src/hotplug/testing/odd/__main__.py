"""`python -m hotplug.testing.odd [--http PORT]`."""

from __future__ import annotations

import argparse
import asyncio

from hotplug.testing.listening import listen
from hotplug.testing.odd.streams import serve_streams
from hotplug.testing.odd.web import odd_app


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m hotplug.testing.odd", description=__doc__)
    parser.add_argument("--http", type=int, metavar="PORT", help="serve HTTP there; 0 takes a free port and tells it")
    port: int | None = parser.parse_args().http
    if port is None:
        asyncio.run(serve_streams())
    else:
        listen(odd_app(), port)


if __name__ == "__main__":
    main()
