"""Each process lists a tool of its own beside the others, and holds a state that `put` sets and `get` gives."""

import os
import sys

from wire import Server, text

server = Server(eras="both")
server.names = ["put", "get", f"of_{os.getpid()}"]
state = ["nothing"]


def called(name: str, arguments: dict) -> dict:
    if name == "put":
        state[0] = arguments["value"]
    return text(f"{name} {state[0]}")


server.called = called
if len(sys.argv) > 2:
    server.names += sys.argv[2:]
server.run()
