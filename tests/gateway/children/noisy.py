"""Writes a banner to its standard output, and a line with each answer, and does everything right."""

from wire import Server

server = Server()
print("*** Welcome to the noisy server! ***", flush=True)
called = server.called


def noisily(name: str, arguments: dict) -> dict:
    with server.lock:
        print(f"calling {name}", flush=True)
    return called(name, arguments)


server.called = noisily
server.run()
