"""`Host` and `Origin` of every request: a page that a browser was lured to is not a client (DNS rebinding)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import urlsplit

__all__ = ["Guard"]

_HOST: Final = re.compile(r"(?:(?P<name>[A-Za-z0-9_.-]+)|\[(?P<v6>[0-9A-Fa-f:.]+)\])(?::(?P<port>[0-9]{1,5}))?")
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
        found = _HOST.fullmatch(host)
        if found is None:
            return False
        name = (found["name"] or found["v6"]).lower()
        if name in _LOOPBACK:
            return True
        return host in self._hosts or (found["port"] is not None and f"{name}:*" in self._hosts)

    def _takes_origin(self, origin: str) -> bool:
        if origin in self._origins:
            return True
        try:
            parts = urlsplit(origin)
            return parts.scheme in ("http", "https") and parts.hostname in _LOOPBACK
        except ValueError:
            return False
