"""A raw JSON-RPC server on standard streams in either era, for the scripts beside it: each provokes one thing.

The first argument is a file: each start, each request's method and the end of the input are written to it.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"


class Refusal(Exception):
    def __init__(self, code: int, message: str = "no", data: Any = None) -> None:
        super().__init__(message)
        self.body = {"code": code, "message": message, **({"data": data} if data is not None else {})}


class Silence(Exception):
    pass


class Server:
    def __init__(self, *, eras: str = "both", tools: int = 0, page: int = 40, **capabilities: Any) -> None:
        self.record = Path(sys.argv[1])
        self.eras = eras
        self.page = page
        self.capabilities = {"tools": {"listChanged": True}, **capabilities}
        self.names = [
            "echo",
            "pid",
            "hang",
            "crash",
            "wait",
            "remove",
            "count",
            "silent",
            *(f"t{n}" for n in range(tools)),
        ]
        self.calls = 0
        self.listeners: list[Any] = []
        self.lock = threading.Lock()
        self.others: dict[str, Callable[[dict[str, Any]], Any]] = {}
        self.note(f"start {os.getpid()}")

    def note(self, line: str) -> None:
        with self.record.open("a") as file:
            file.write(line + "\n")

    def send(self, message: dict[str, Any]) -> None:
        with self.lock:
            print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)

    def run(self) -> None:
        for line in sys.stdin:
            message = json.loads(line)
            if "method" in message:
                self.note(message["method"])
            if "id" in message and "method" in message:
                # Each request on a thread of its own: none waits for another.
                threading.Thread(target=self.answer, args=(message,), daemon=True).start()
        self.note("end")

    def answer(self, message: dict[str, Any]) -> None:
        try:
            result = self.result(message["method"], message.get("params") or {}, message["id"])
            self.send({"id": message["id"], "result": result})
        except Refusal as refusal:
            self.send({"id": message["id"], "error": refusal.body})
        except Silence:
            pass

    def result(self, method: str, params: dict[str, Any], id_: Any) -> Any:
        if method in self.others:
            return self.others[method](params)
        match method:
            case "initialize" if self.eras != "modern":
                return {
                    "protocolVersion": "2025-11-25",
                    "capabilities": self.capabilities,
                    "serverInfo": {"name": "fake", "version": "1"},
                    "given": params,
                }
            case "server/discover" if self.eras != "legacy":
                versions = ["2026-07-28", *(["2025-11-25"] if self.eras == "both" else [])]
                return self.complete({"supportedVersions": versions, "capabilities": self.capabilities})
            case "ping" if self.eras != "modern":
                return {}
            case "subscriptions/listen" if self.eras != "legacy":
                self.listeners.append(id_)
                self.notify("notifications/subscriptions/acknowledged", {"notifications": params["notifications"]}, id_)
                raise Silence
            case "tools/list":
                return self.listed(params)
            case "tools/call":
                return self.complete(self.called(params["name"], params.get("arguments") or {}))
            case "resources/subscribe" | "resources/unsubscribe":
                return {}
            case "logging/setLevel":
                self.note(f"level {params['level']}")
                return {}
            case _:
                raise Refusal(-32601, f"{method} is unknown")

    def notify(self, method: str, params: dict[str, Any], subscription: Any = None) -> None:
        meta = {"_meta": {SUBSCRIPTION: subscription}} if subscription is not None else {}
        self.send({"method": method, "params": {**params, **meta}})

    def complete(self, result: dict[str, Any]) -> dict[str, Any]:
        return {**result, "resultType": "complete"}

    def listed(self, params: dict[str, Any]) -> Any:
        start = int(params.get("cursor", "0"))
        page = self.names[start : start + self.page]
        more = {"nextCursor": str(start + self.page)} if start + self.page < len(self.names) else {}
        tools = [{"name": name, "inputSchema": {"type": "object"}} for name in page]
        return self.complete({"tools": tools, "cacheScope": "private", **more})

    def called(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        self.calls += 1
        match name:
            case "pid":
                return text(str(os.getpid()))
            case "count":
                return text(str(self.calls))
            case "crash":
                os._exit(3)
            case "hang":
                # Nothing is read, answered or written any more.
                self.lock.acquire()
                raise Silence
            case "silent":
                raise Silence
            case "wait":
                until = Path(arguments["file"])
                while not until.exists():
                    time.sleep(0.01)
                return text("waited")
            case "remove":
                self.names.remove(arguments["name"])
                if self.listeners:
                    for listener in self.listeners:
                        self.notify("notifications/tools/list_changed", {}, listener)
                else:
                    self.notify("notifications/tools/list_changed", {})
                return text("removed")
            case _:
                return text(json.dumps(arguments))


def text(words: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": words}]}
