"""Answers what the schema of its revision doesn't know, and lists two entries that are no tools."""

from wire import Refusal, handshake, serve, tool


def answer(method: str, params: dict) -> object:
    match method:
        case "initialize":
            return handshake()
        case "tools/list":
            return {"tools": [{**tool("good"), "vendor": {"kept": None}}, {"name": "bad"}, 5]}
        case "tools/call":
            return {"content": [{"type": "hologram", "beams": 3}, {"type": "text", "text": "seen"}], "vendor": 1}
        case _:
            raise Refusal(-32601)


serve(answer)
