"""The sockets that HTTP is served on."""

from __future__ import annotations

import os
import socket
from contextlib import ExitStack

from hotplug.errors import ConfigError

__all__ = ["bound"]


def bound(host: str, port: int) -> list[socket.socket]:
    """A bound socket for each address of an interface.

    Args:
        port: 0: any free one, the same for all of them.

    Raises:
        ConfigError: The name leads nowhere, or an address can't be had; says why.
    """
    found: list[socket.socket] = []
    with ExitStack() as opened:
        try:
            places = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
            for family, kind, protocol, _, address in dict.fromkeys(places):
                one = opened.enter_context(socket.socket(family, kind, protocol))
                if os.name == "posix":
                    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                if family == socket.AF_INET6:
                    one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                one.bind((address[0], port or (found[0].getsockname()[1] if found else 0), *address[2:]))
                one.setblocking(False)
                found.append(one)
        except OSError as error:
            where = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
            raise ConfigError(
                f"HTTP can't be served at {where}: {error.strerror or type(error).__name__}",
                hint="--http [HOST:]PORT names another place; port 0 is any free one",
            ) from None
        opened.pop_all()
    return found
