from wire import Refusal, old_server, serve


def unknown(method: str) -> object:
    raise Refusal(-32602, "Invalid request parameters")


serve(old_server(unknown))
