"""Speaks both eras, and refuses the handshake of a client that says it has lamps."""

from typing import Any

from wire import Refusal, Server

server = Server(eras="unsaid")


def initialize(params: dict[str, Any]) -> Any:
    if "lamps" in params["capabilities"]:
        raise Refusal(-32602, "no lamps")
    return {"protocolVersion": "2025-11-25", "capabilities": server.capabilities, "serverInfo": {"name": "x"}}


server.others["initialize"] = initialize
server.run()
