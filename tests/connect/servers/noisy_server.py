from wire import Refusal, old_server, serve

print("Welcome to \x1b[31mnoise\x1b[0m v1!", flush=True)
print(flush=True)


def unknown(method: str) -> object:
    print("log: unknown method", flush=True)
    raise Refusal(-32601)


serve(old_server(unknown))
