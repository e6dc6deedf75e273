"""Which name stands for what, for all threads alike: kept up to date as servers tell what they offer."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from hotplug.gateway.catalog import ListKind
from hotplug.gateway.config import GatewayConfig, NameStyle
from hotplug.gateway.names import Holder, Wanted
from hotplug.gateway.names_store import Names

__all__ = ["Book"]

_logger = logging.getLogger(__name__)


class Book:
    """The names of everything that was ever offered here.

    Args:
        names: Gives them, and remembers them.
        config: Says how they are written, and each server's prefix.
    """

    def __init__(self, names: Names, config: GatewayConfig) -> None:
        self._take(names, config)
        self._wanted: dict[ListKind, dict[Holder, Wanted]] = {}
        self._exposed: dict[ListKind, dict[Holder, str]] = {}
        self._meant: dict[ListKind, dict[str, Holder]] = {}
        self.left_out: dict[Holder, str] = {}
        """What can't have a name, each with the reason, for the owner."""
        self.version = 0
        self._lock = asyncio.Lock()

    def _take(self, names: Names, config: GatewayConfig) -> None:
        self._names = names
        self._style: NameStyle = config.names
        self._servers = config.servers

    async def renew(self, names: Names, config: GatewayConfig) -> None:
        """Name everything by another configuration: all has to be learned again."""
        async with self._lock:
            self._take(names, config)
            self._wanted, self._exposed, self._meant = {}, {}, {}
            self.left_out.clear()
            self.version += 1

    async def learn(self, server: str, kind: ListKind, names: Sequence[str]) -> None:
        """Give names to what a server offers, where it has none yet.

        Raises:
            StoreError: They can't be remembered, so nobody sees them.
        """
        config = self._servers.get(server)
        prefix = server if config is None or config.prefix is None else config.prefix
        await self._learn(kind, [Wanted(server, name, prefix) for name in names])

    async def learn_parts(self, parts: Sequence[str]) -> None:
        """Give names to operations of profiles."""
        await self._learn("tools", [Wanted("", part, kind="member") for part in parts])

    async def learn_ours(self, names: Sequence[str]) -> None:
        """Give names to the gateway's own tools."""
        await self._learn("tools", [Wanted("", name, kind="ours") for name in names])

    async def _learn(self, kind: ListKind, more: Sequence[Wanted]) -> None:
        held = self._wanted.get(kind, {})
        if all(one.holder in held for one in more):
            return
        async with self._lock:
            wanted = dict(self._wanted.get(kind, {}))
            wanted.update((one.holder, one) for one in more if one.holder not in wanted)
            if kind == "tools":
                found = await self._names.tools(wanted.values(), self._style)
            elif kind == "prompts":
                found = await self._names.prompts(wanted.values(), self._style)
            else:
                found = await self._names.uris(wanted, kind)
            for holder, reason in found.left_out.items():
                if self.left_out.get(holder) != reason:
                    self.left_out[holder] = reason
                    _logger.warning("%r of %s is left out: %s", holder[1][:80], holder[0], reason)
            self._wanted[kind] = wanted
            self._exposed[kind] = dict(found.exposed)
            self._meant[kind] = found.back()
            self.version += 1

    def exposed(self, server: str, kind: ListKind, name: str) -> str | None:
        """The name that something goes by; None where it can't have one. Of a part, the server is empty."""
        return self._exposed.get(kind, {}).get((server, name))

    def meant(self, kind: ListKind, exposed: str) -> Holder | None:
        """The server and its own name for it."""
        return self._meant.get(kind, {}).get(exposed)

    def table(self, kind: ListKind) -> dict[str, Holder]:
        """All names of a kind with whose they are."""
        return self._meant.get(kind, {})
