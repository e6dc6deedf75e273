import sys

from wire import old_server, serve


def unknown(method: str) -> object:
    sys.exit(f"unknown method {method}")


serve(old_server(unknown))
