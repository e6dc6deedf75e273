"""A page of one tool after the other, each after a moment, without an end."""

import time

from wire import Refusal, handshake, serve, tool

pages = 0


def answer(method: str, params: dict) -> object:
    global pages
    match method:
        case "initialize":
            return handshake()
        case "tools/list":
            pages += 1
            time.sleep(0.1)
            return {"tools": [tool(f"t{pages}")], "nextCursor": f"c{pages}"}
        case _:
            raise Refusal(-32601)


serve(answer)
