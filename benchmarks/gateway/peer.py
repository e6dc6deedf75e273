"""FastMCP's proxy as its documentation writes it: `python -m benchmarks.gateway.peer CONFIG [--http PORT]`.

CONFIG is a file of `mcpServers`; one server is proxied by itself, several as FastMCP puts them together.
"""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path

from fastmcp.client.transports import StdioTransport
from fastmcp.server import create_proxy


def _main() -> None:
    servers = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))["mcpServers"]
    one = next(iter(servers.values())) if len(servers) == 1 else None
    if one is None:
        proxy = create_proxy({"mcpServers": servers})
    elif "url" in one:
        proxy = create_proxy(one["url"])
    else:
        proxy = create_proxy(StdioTransport(one["command"], one["args"], env=one["env"]))
    logging.disable(logging.WARNING)
    if len(sys.argv) > 2:
        port = int(sys.argv[3])
        proxy.run(transport="http", host="127.0.0.1", port=port, path="/mcp", show_banner=False, log_level="error")
    else:
        proxy.run(show_banner=False)


if __name__ == "__main__":
    _main()
