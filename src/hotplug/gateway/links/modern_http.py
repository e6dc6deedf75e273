"""Modern HTTP (signatures first; the bodies follow). `ModernHttpLink` is a `Link`."""

from __future__ import annotations

from hotplug.connect.launch import HttpLaunch
from hotplug.gateway.link import Hello
from hotplug.gateway.links.http_client import Headers, HttpPool, Refused

__all__ = ["ModernHttpLink", "open_modern"]


async def open_modern(
    pool: HttpPool,
    launch: HttpLaunch,
    *,
    limit: float = 30.0,
    headers: Headers | None = None,
    refused: Refused | None = None,
) -> ModernHttpLink:
    """Ask `server/discover` and give a link.

    Raises:
        EraRefused: It answered, and not as a modern server.
        LinkLost: It can't be reached, or doesn't answer in `limit` seconds, or wants a credential.
    """
    raise NotImplementedError


class ModernHttpLink:
    """A `Link`: one POST each exchange, no state. Headers that are missing in `Outgoing.headers` are filled in from the message."""

    def __init__(
        self,
        pool: HttpPool,
        launch: HttpLaunch,
        hello: Hello,
        *,
        headers: Headers | None = None,
        refused: Refused | None = None,
    ) -> None:
        """Without asking the server anything: `hello` as remembered.

        Args:
            headers: Headers of each request, over those of `launch`.
            refused: Asked when the credential is refused.
        """
