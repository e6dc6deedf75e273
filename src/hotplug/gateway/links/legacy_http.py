"""Legacy HTTP (signatures first; the bodies follow). `LegacyHttpLink` is a `Link`."""

from __future__ import annotations

from hotplug.connect.launch import HttpLaunch
from hotplug.gateway.link import Hello
from hotplug.gateway.links.http_client import Headers, HttpPool, Refused
from hotplug.gateway.message import Object

__all__ = ["LegacyHttpLink", "open_legacy"]


async def open_legacy(
    pool: HttpPool,
    launch: HttpLaunch,
    initialize: Object | None = None,
    *,
    limit: float = 30.0,
    headers: Headers | None = None,
    refused: Refused | None = None,
) -> LegacyHttpLink:
    """Open a session: `initialize` and `notifications/initialized`. A caller's own `initialized` is swallowed by `send`.

    Args:
        initialize: The client's params, passed on as they are; None: the gateway's own, with no capabilities.

    Raises:
        EraRefused: It answered, and not as a legacy server.
        LinkLost: It can't be reached, or doesn't answer in `limit` seconds, or wants a credential.
    """
    raise NotImplementedError


class LegacyHttpLink:
    """A `Link`: one session; made by `open_legacy`."""

    hello: Hello
