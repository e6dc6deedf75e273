"""`Host` and `Origin` of every request: a page that a browser was lured to is not a client (DNS rebinding)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import urlsplit

__all__ = ["Guard"]

_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})


class Guard:
    """Takes requests for this gateway, and for no other name.

    Args:
        hosts: Values of `Host` that are taken besides loopback's, with port where there is one; `NAME:*` for any port.
        origins: Values of `Origin` that are taken besides loopback's.
    """

    def __init__(self, hosts: Sequence[str] = (), origins: Sequence[str] = ()) -> None:
        self._hosts = frozenset(hosts)
        self._origins = frozenset(origins)

    def refuses(self, headers: Mapping[str, str]) -> tuple[int, str] | None:
        """The status and the words of a refusal; None where both are in order."""
        host = headers.get("host")
        if host is None or not self._takes_host(host):
            return 421, "Invalid Host header"
        origin = headers.get("origin")
        if origin is not None and not self._takes_origin(origin):
            return 403, "Invalid Origin header"
        return None

    def _takes_host(self, host: str) -> bool:
        name, _, port = _split(host)
        if name in _LOOPBACK:
            return True
        return host in self._hosts or (port is not None and f"{name}:*" in self._hosts)

    def _takes_origin(self, origin: str) -> bool:
        if origin in self._origins:
            return True
        try:
            parts = urlsplit(origin)
            return parts.scheme in ("http", "https") and parts.hostname in _LOOPBACK
        except ValueError:
            return False


def _split(host: str) -> tuple[str, str, str | None]:
    try:
        parts = urlsplit(f"//{host}")
        port = parts.port
    except ValueError:
        return "", "", None
    if parts.username is not None or parts.path or parts.query or parts.fragment:
        return "", "", None
    return parts.hostname or "", host, None if port is None else str(port)
