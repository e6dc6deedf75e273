"""A raw MCP server on standard streams in both eras: `server.py KIND FOLDER`.

Its tools give back their caller's mark. `frail` writes each call's key to a file, and crashes now and then before,
after or instead of its answer; `stuck` now and then does nothing any more.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import threading
import time
from typing import Any

KIND, FOLDER = sys.argv[1], sys.argv[2]
TOOLS = {
    "own": ("echo", "slow", "big", "other"),
    "all": ("echo", "slow", "big", "other"),
    "frail": ("add", "echo"),
    "stuck": ("echo", "other"),
}[KIND]
INFO = {"name": KIND, "version": "1"}
CAPABILITIES = {"tools": {"listChanged": True}, "prompts": {}}
CRASHES, HANGS = 0.06, 0.015

chance = random.Random(os.getpid())
writing = threading.Lock()


def send(message: dict[str, Any]) -> None:
    with writing:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def tool(name: str) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"mark": {"type": "string"}}, "required": ["mark"]}
    return {"name": name, "description": f"{name} of {KIND}", "inputSchema": schema}


def result(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    match method:
        case "initialize":
            return {"protocolVersion": "2025-11-25", "capabilities": CAPABILITIES, "serverInfo": INFO}
        case "server/discover":
            return {"supportedVersions": ["2026-07-28", "2025-11-25"], "capabilities": CAPABILITIES, "serverInfo": INFO}
        case "ping":
            return {}
        case "tools/list":
            return {"tools": [tool(name) for name in TOOLS]}
        case "prompts/list":
            return {"prompts": [{"name": "say", "arguments": [{"name": "mark"}]}]}
        case "prompts/get":
            content = {"type": "text", "text": params["arguments"]["mark"]}
            return {"messages": [{"role": "user", "content": content}]}
        case "tools/call":
            return called(params)
        case _:
            return None


def called(params: dict[str, Any]) -> dict[str, Any]:
    name, arguments = params["name"], params["arguments"]
    mark, token = arguments["mark"], (params.get("_meta") or {}).get("progressToken")
    if KIND == "stuck" and chance.random() < HANGS:
        # Nothing is read, answered or written any more.
        os.kill(os.getpid(), signal.SIGSTOP)
    for number in range(arguments.get("notes", 0)):
        note = {"progressToken": token, "progress": number + 1, "message": mark}
        send({"method": "notifications/progress", "params": note})
    if name == "add":
        fate = chance.random()
        if fate < CRASHES:
            os._exit(3)
        with open(f"{FOLDER}/added", "a") as file:  # noqa: PTH123 - it has to start quickly
            file.write(mark + "\n")
        if fate < 2 * CRASHES:
            os._exit(4)
    if name == "slow":
        time.sleep(arguments["seconds"])
    content: dict[str, Any] = {"mark": mark, "tool": f"{KIND}.{name}"}
    if name == "big":
        content["filling"] = mark * (20_000 // len(mark))
    return {"content": [{"type": "text", "text": mark}], "structuredContent": content}


def answer(message: dict[str, Any]) -> None:
    found = result(message["method"], message.get("params") or {})
    if found is None:
        send({"id": message["id"], "error": {"code": -32601, "message": "Method not found"}})
    else:
        send({"id": message["id"], "result": {**found, "resultType": "complete"}})


for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message or "method" not in message:
        continue
    if message["method"] == "subscriptions/listen":
        told = {"notifications": message["params"]["notifications"]}
        meta = {"_meta": {"io.modelcontextprotocol/subscriptionId": message["id"]}}
        send({"method": "notifications/subscriptions/acknowledged", "params": {**told, **meta}})
    elif message["method"] == "tools/call":
        threading.Thread(target=answer, args=(message,), daemon=True).start()
    else:
        answer(message)
