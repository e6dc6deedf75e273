"""With `new`, knows only a revision of the future; else answers the handshake with one."""

import sys

from wire import Refusal, handshake, serve


def answer(method: str, params: dict) -> object:
    if "new" in sys.argv:
        raise Refusal(-32022, "Unsupported protocol version", {"supported": ["2031-01-01"], "requested": "2026-07-28"})
    if method == "initialize":
        return handshake(protocolVersion="2031-01-01")
    raise Refusal(-32601)


serve(answer)
