"""The one HTTP client of the gateway (signatures first; the bodies follow)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

__all__ = ["Headers", "HttpPool", "Refused"]

Headers: TypeAlias = Callable[[], Awaitable[Mapping[str, str]]]
"""The headers that authorize the next request; asked before each, so it has to be quick where nothing has to be renewed."""

Refused: TypeAlias = Callable[[int, str | None], Awaitable[bool]]
"""Told of a 401 or 403 with its `WWW-Authenticate`; True: the credential is renewed, try once more."""


class HttpPool:
    """One client session, one TLS context, for all upstreams: `async with HttpPool() as pool`, or `await pool.aclose()`.

    No cookies, no compression, no total timeout; connections are kept 4 s unused (servers close theirs after 5).
    """

    def __init__(self, *, connect_timeout: float = 10.0) -> None: ...

    async def __aenter__(self) -> HttpPool:
        return self

    async def __aexit__(self, *_: object) -> None: ...

    async def aclose(self) -> None:
        """Closes every connection. May be called twice."""
