"""A server whose list of tools, or answer to a call, is wrong in the way that its first argument names."""

import json
import os
import sys

from wire import Refusal, Silence, handshake, serve, text, tool

mode = sys.argv[1]
version = sys.argv[2] if len(sys.argv) > 2 else "1"
pages = 0


def answer(method: str, params: dict) -> object:
    global pages
    match method:
        case "initialize":
            return handshake(serverInfo={"name": "hostile", "version": version})
        case "tools/list":
            pages += 1
            return listed()
        case "tools/call":
            return text("A" * (65 * 2**20) if mode == "large" else json.dumps(params.get("arguments")))
        case _:
            raise Refusal(-32601)


def listed() -> object:
    match mode:
        case "silent":
            raise Silence
        case "unreadable":
            print('{"jsonrpc": "2.0", "id": 3, "result": ' + '{"a":' * 5000 + "{}" + "}" * 5001, flush=True)
            raise Silence
        case "dies":
            os._exit(3)
        case "endless":
            return {"tools": [tool(f"p{pages}_{n}") for n in range(1000)], "nextCursor": f"c{pages}"}
        case "heavy":
            return {"tools": [{**tool(f"t{n}"), "description": "d" * 2**20} for n in range(20)]}
        case "circle":
            return {"tools": [tool(f"t{pages}")], "nextCursor": ("a", "b")[pages % 2]}
        case "text":
            return {"tools": "tools"}
        case "nameless":
            return {"tools": [{"inputSchema": {}}, None, {"name": 5, "inputSchema": {}}]}
        case "twice":
            return {"tools": [tool("a"), {**tool("a"), "description": "another"}]}
        case "deep":
            schema: dict = {"type": "object"}
            for _ in range(70):
                schema = {"properties": {"a": schema}}
            return {"tools": [tool("good"), {"name": "deep", "inputSchema": schema}]}
        case "forged":
            name = "x\n✓ calendar 1.0.0, native\x1b[31m"
            return {"tools": [tool(name)]}
        case "many":
            return {"tools": [tool(f"t{n}") for n in range(73)]}
        case "noisy":
            print("secret words " * 100, flush=True)
            return {"tools": [tool("a")]}
        case _:
            return {"tools": [tool("a")]}


serve(answer)
