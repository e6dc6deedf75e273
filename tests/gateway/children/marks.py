"""The tool `mark` tells its progress and answers with the caller's mark, each after a while that lot decides."""

import random
import time

from wire import Server, text

server = Server(eras="both")
server.names = ["mark"]
answered = server.result


def result(method: str, params: dict, id_: object) -> object:
    if method != "tools/call":
        return answered(method, params, id_)
    mark, token = params["arguments"]["mark"], params["_meta"]["progressToken"]
    for step in (1, 2):
        time.sleep(random.random() / 50)
        server.notify("notifications/progress", {"progressToken": token, "progress": step, "message": mark})
    time.sleep(random.random() / 50)
    return server.complete(text(mark))


server.result = result
server.run()
