"""123 tools at 40 per page; `remove` takes one away and says so; with `broken` the third page fails."""

import sys

from wire import Refusal, handshake, send, serve, text, tool

names = ["remove", "count", *(f"t{number}" for number in range(121))]
called: list[str] = []
broken = "broken" in sys.argv


def answer(method: str, params: dict) -> object:
    match method:
        case "initialize":
            return handshake()
        case "tools/list":
            start = int(params.get("cursor", "0"))
            if broken and start == 80:
                raise Refusal(-32603, "database is locked")
            page = {"tools": [tool(name) for name in names[start : start + 40]]}
            return page if start + 40 >= len(names) else {**page, "nextCursor": str(start + 40)}
        case "tools/call":
            called.append(params["name"])
            if params["name"] == "remove":
                names.remove(params["arguments"]["name"])
                send({"method": "notifications/tools/list_changed"})
            return text(",".join(called))
        case _:
            raise Refusal(-32601)


serve(answer)
