"""Legacy; answers nothing to what it doesn't know."""

from wire import Server, Silence

server = Server(eras="legacy")


def ignore(params: dict) -> object:
    raise Silence


server.others["server/discover"] = ignore
server.run()
