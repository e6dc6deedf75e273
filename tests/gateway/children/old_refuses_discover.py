"""Legacy; answers `server/discover` with the error code that is its second argument."""

import sys

from wire import Refusal, Server

server = Server(eras="legacy")


def refuse(params: dict) -> object:
    raise Refusal(int(sys.argv[2]))


server.others["server/discover"] = refuse
server.run()
