"""Legacy; exits at a first request that it doesn't know."""

import os

from wire import Server

server = Server(eras="legacy")
server.others["server/discover"] = lambda params: os._exit(7)
server.run()
