"""123 tools at 40 a page; with `broken` the third page fails."""

import sys

from wire import Refusal, Server

server = Server(eras=sys.argv[2], tools=115)
if "broken" in sys.argv:
    good = server.listed

    def listed(params: dict) -> object:
        if params.get("cursor") == "80":
            raise Refusal(-32603, "database is locked")
        return good(params)

    server.listed = listed
server.run()
