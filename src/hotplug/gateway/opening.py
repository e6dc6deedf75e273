"""How the pool gets a link: a child started, a server reached, a bridge put between; imports come with first use."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Protocol

from hotplug.connect.launch import HttpLaunch, Launch, StdioLaunch
from hotplug.connect.target import EntryTarget, HttpTarget
from hotplug.connect.upstream_log import UpstreamLog
from hotplug.errors import ConfigError
from hotplug.gateway.config import ServerConfig
from hotplug.gateway.link import Era, Hello, Link
from hotplug.gateway.message import Object

if TYPE_CHECKING:
    from hotplug.gateway.links.http_client import Headers, HttpPool, Refused
    from hotplug.gateway.links.legacy_http import LegacyHttpLink
    from hotplug.gateway.links.modern_http import ModernHttpLink

__all__ = ["Credentials", "Opener", "Opening", "is_remote"]


def is_remote(config: ServerConfig) -> bool:
    """Whether a server is reached over HTTP."""
    target = config.target
    return isinstance(target.launch if isinstance(target, EntryTarget) else target, HttpTarget)


class Credentials(Protocol):
    """What authorizes the gateway at remote servers, beside the headers of their entries."""

    def of(self, config: ServerConfig) -> tuple[Headers | None, Refused | None]:
        """The headers of each request to a server, and what is told of a refusal; see `links.http_client`.

        Raises:
            ConfigError: They can't be had as the entry wants them.
        """
        ...

    def mask(self, text: str) -> str:
        """A text without them."""
        ...

    async def aclose(self) -> None:
        """Wait for what is under way."""
        ...


class Opener(Protocol):
    """Opens links; the pool decides which, when, and how often."""

    async def open(
        self,
        config: ServerConfig,
        launch: Launch,
        era: Era,
        *,
        initialize: Object | None,
        limit: float,
        log: UpstreamLog,
    ) -> Link:
        """A link in one era.

        Raises:
            EraRefused: It answered, and not as a server of this era.
            LinkLost: It couldn't be started or reached, ended, or gave no answer within `limit` seconds.
            ConfigError: There is no link to such a target.
        """
        ...

    def for_legacy_client(self, link: Link, initialize: Object) -> Link:
        """A legacy link for one session on a modern one, which it leaves open."""
        ...

    async def for_modern_client(
        self, open_legacy: Callable[[Object], Awaitable[Link]], *, owner: str, hello: Hello | None
    ) -> Link:
        """A modern link for one owner on legacy ones, which it opens and closes.

        Raises:
            LinkLost: The server was needed and can't be reached.
        """
        ...

    async def aclose(self) -> None:
        """Close what all links shared."""
        ...


class Opening:
    """The real thing: children over pipes, servers over HTTP with one client for all.

    Args:
        secret: Signs what a bridge hands to a client and gets back.
        credentials: For remote servers; None: only what their entries hold.
    """

    def __init__(self, secret: bytes, credentials: Credentials | None = None) -> None:
        self._secret = secret
        self._credentials = credentials
        self._http: HttpPool | None = None

    async def open(
        self,
        config: ServerConfig,
        launch: Launch,
        era: Era,
        *,
        initialize: Object | None,
        limit: float,
        log: UpstreamLog,
    ) -> Link:
        """See `Opener`."""
        if isinstance(launch, StdioLaunch):
            from hotplug.gateway.links.stdio import open_stdio

            return await open_stdio(launch, era, initialize=initialize, limit=limit, log=log)
        if not isinstance(launch, HttpLaunch):
            raise ConfigError(f"{config.target} is in this process: there is no connection to it")
        if self._http is None:
            from hotplug.gateway.links.http_client import HttpPool

            self._http = HttpPool()
        headers, refused = self._credentials.of(config) if self._credentials is not None else (None, None)
        link: ModernHttpLink | LegacyHttpLink
        if era == "modern":
            from hotplug.gateway.links.modern_http import open_modern

            link = await open_modern(self._http, launch, limit=limit, headers=headers, refused=refused)
        else:
            from hotplug.gateway.links.legacy_http import open_legacy

            link = await open_legacy(self._http, launch, initialize, limit=limit, headers=headers, refused=refused)
        # It learns the tokens that come later.
        log.use(link.masker)
        return link

    def for_legacy_client(self, link: Link, initialize: Object) -> Link:
        """See `Opener`."""
        from hotplug.gateway.bridge.legacy_client import bridged

        return bridged(link, initialize)

    async def for_modern_client(
        self, open_legacy: Callable[[Object], Awaitable[Link]], *, owner: str, hello: Hello | None
    ) -> Link:
        """See `Opener`."""
        from hotplug.gateway.bridge.modern_client import bridged

        return await bridged(open_legacy, self._secret, owner=owner, hello=hello)

    async def aclose(self) -> None:
        """See `Opener`."""
        if self._http is not None:
            await self._http.aclose()
            self._http = None
        if self._credentials is not None:
            await self._credentials.aclose()
