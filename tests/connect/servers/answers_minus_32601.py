from wire import Refusal, old_server, serve


def unknown(method: str) -> object:
    raise Refusal(-32601, "Method not found")


serve(old_server(unknown))
