"""An ASGI app on a port of this machine, for testing servers that run as programs of their own."""

from __future__ import annotations

import json
import socket
import sys
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from starlette.types import ASGIApp

__all__ = ["listen"]

_HOST: Final = "127.0.0.1"


def listen(app: ASGIApp, port: int, *, path: str = "/mcp") -> None:
    """Serve an app on 127.0.0.1 until the process is told to end.

    Writes one line of JSON, `{"url": "http://127.0.0.1:PORT/mcp"}`, to standard output once the port accepts
    connections.

    Args:
        app: What answers.
        port: 0 takes a free one.
        path: Of the endpoint, for the URL that is told.
    """
    import uvicorn

    # Named as TCP's: only then asyncio sends each write at once, and doesn't wait 40 ms for the last one's receipt.
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.bind((_HOST, port))
    listening.listen(100)
    url = f"http://{_HOST}:{listening.getsockname()[1]}{path}"
    # h11 strips the blanks around header values, as RFC 9110 asks; httptools, which uvicorn prefers, leaves them.
    config = uvicorn.Config(app, http="h11", log_level="warning", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    sys.stdout.write(json.dumps({"url": url}) + "\n")
    sys.stdout.flush()
    server.run(sockets=[listening])
