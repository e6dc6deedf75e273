"""Speaks only revisions that nobody knows yet."""

from wire import Refusal, Server

server = Server()


def refuse(params: dict) -> object:
    raise Refusal(-32022, "unsupported protocol version", {"supported": ["2031-01-01"], "requested": "2026-07-28"})


server.others["server/discover"] = server.others["initialize"] = refuse
server.run()
