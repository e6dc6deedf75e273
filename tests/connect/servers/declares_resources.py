from wire import Refusal, handshake, old_server, serve


def unknown(method: str) -> object:
    raise Refusal(-32601)


answer = old_server(unknown)


def declaring(method: str, params: dict) -> object:
    if method == "initialize":
        return handshake(capabilities={"tools": {"listChanged": True}, "resources": {"subscribe": True}})
    return answer(method, params)


serve(declaring)
