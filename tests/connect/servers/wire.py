"""A raw JSON-RPC loop on standard streams, for the fake servers beside it: each shows one fault of real ones."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

Answer = Callable[[str, dict[str, Any]], Any]


class Refusal(Exception):
    def __init__(self, code: int, message: str = "no", data: Any = None) -> None:
        super().__init__(message)
        self.body = {"code": code, "message": message, **({"data": data} if data is not None else {})}


class Silence(Exception):
    pass


def send(message: dict[str, Any]) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def serve(answer: Answer) -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message or "method" not in message:
            continue
        try:
            send({"id": message["id"], "result": answer(message["method"], message.get("params") or {})})
        except Refusal as refusal:
            send({"id": message["id"], "error": refusal.body})
        except Silence:
            pass


def handshake(**more: Any) -> dict[str, Any]:
    return {
        "protocolVersion": "2025-11-25",
        "capabilities": {"tools": {"listChanged": True}},
        "serverInfo": {"name": "fake", "version": "1"},
        **more,
    }


def tool(name: str) -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object"}}


def text(words: str, *, error: bool = False) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": words}], "isError": error}


def old_server(unknown: Callable[[str], Any]) -> Answer:
    """Knows the old handshake and one tool; what it does at any other method is `unknown`'s."""

    def answer(method: str, params: dict[str, Any]) -> Any:
        match method:
            case "initialize":
                return handshake()
            case "tools/list":
                return {"tools": [tool("echo")]}
            case "tools/call":
                return text(json.dumps(params.get("arguments")))
            case _:
                return unknown(method)

    return answer
