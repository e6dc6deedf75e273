"""A server that declares a profile and has nothing of connection@1: the wire alone."""

from __future__ import annotations

import json
import sys

from hotplug.profile import Definition

from .test_realm import Shop


def serve(declares: str) -> None:
    """Answer on stdin and stdout.

    Args:
        declares: `card`, or `senses` for the other dialect, with senses that it has no way to tell of.
    """
    definition: Definition = Shop.definition
    capabilities = {
        "card": {"org.classprofiles/profiles": {"profiles": [{"profile": "webshop", "version": "1.0.0"}]}},
        "senses": {
            "tools.noetic/profiles": {
                "profiles": {"webshop": "1.0.0"},
                "senses": {"net": {"independence": "independent", "grade": "consequence"}},
            }
        },
    }[declares]
    tools = [
        {"name": part.name, "inputSchema": part.input.schema, "outputSchema": part.output.schema}
        for part in definition.all_parts.values()
        if part.kind != "event"
    ]
    orders = 0
    for line in sys.stdin:
        request = json.loads(line)
        if "id" not in request:
            continue
        answer: dict[str, object] = {"jsonrpc": "2.0", "id": request["id"]}
        match request["method"]:
            case "initialize":
                answer["result"] = {
                    "protocolVersion": "2025-11-25",
                    "capabilities": {"tools": {}, "experimental": capabilities},
                    "serverInfo": {"name": "bare", "version": "1"},
                }
            case "tools/list":
                answer["result"] = {"tools": tools}
            case "tools/call":
                name = request["params"]["name"]
                if name == "webshop.order":
                    orders += 1
                    found = {"receipt": {"actionId": f"a{orders}", "dispatched": True, "at": "2026-01-01T00:00:00Z"}}
                elif name == "webshop.till":
                    found = {"orders": orders, "total": f"{orders * 10} EUR"}
                else:
                    found = {"left": 10 - orders}
                answer["result"] = {
                    "content": [{"type": "text", "text": json.dumps(found)}],
                    "structuredContent": found,
                }
            case _:
                answer["error"] = {"code": -32601, "message": "no such method"}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    serve(sys.argv[1])
