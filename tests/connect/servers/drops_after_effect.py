"""`pay` writes a line to the file that it is given and dies without an answer; `refuse` answers an error."""

import os
import sys
from pathlib import Path

from wire import Refusal, handshake, serve, text, tool

book = Path(sys.argv[1])


def answer(method: str, params: dict) -> object:
    match method:
        case "initialize":
            return handshake()
        case "tools/list":
            return {"tools": [tool("pay"), tool("refuse"), tool("look")]}
        case "tools/call":
            with book.open("a") as file:
                file.write(params["name"] + "\n")
            if params["name"] == "pay":
                print("paying failed late", file=sys.stderr, flush=True)
                os._exit(7)
            if params["name"] == "refuse":
                return text("invalid parameter", error=True)
            return text("fine")
        case _:
            raise Refusal(-32601)


serve(answer)
