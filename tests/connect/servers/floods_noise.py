from wire import Refusal, old_server, serve


def unknown(method: str) -> object:
    raise Refusal(-32601)


answer = old_server(unknown)


def flooding(method: str, params: dict) -> object:
    if method == "tools/call":
        for number in range(3000):
            print(f"debug {number}")
    return answer(method, params)


serve(flooding)
