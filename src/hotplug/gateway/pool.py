"""All upstreams of one gateway."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from secrets import token_bytes
from types import MappingProxyType
from typing import Self

from hotplug.connect.secrets import Secrets
from hotplug.gateway.clock import Clock, LoopClock
from hotplug.gateway.config import ServerConfig
from hotplug.gateway.opening import Credentials, Opener, Opening
from hotplug.gateway.upstream import LinkKey, Patience, Upstream
from hotplug.store import Store

__all__ = ["Pool"]


class Pool:
    """The upstreams by name; `async with`, or `aclose()`: nothing of them runs afterwards.

    No upstream waits for another: each has its own starts, pauses and tasks.

    Args:
        configs: What is set up, by name.
        secrets: Where the secrets of entries come from; None: each is refused.
        store: Where the eras of upstreams are remembered across processes; None: in this process only.
        credentials: What authorizes the gateway at remote servers, beside the headers of their entries.
        opener: Opens the links; default: the real thing.
        clock: For pauses and idleness.
        patience: How long is waited for what no configuration says.
    """

    def __init__(
        self,
        configs: Mapping[str, ServerConfig],
        *,
        secrets: Secrets | None = None,
        store: Store | None = None,
        credentials: Credentials | None = None,
        opener: Opener | None = None,
        clock: Clock | None = None,
        patience: Patience | None = None,
    ) -> None:
        self._secrets = secrets
        self._store = store
        self._clock = clock or LoopClock()
        self._patience = patience or Patience()
        self._credentials = credentials
        # What a bridge signs lives as long as its parked calls: as long as this process.
        self._opener = opener or Opening(token_bytes(32), credentials)
        self._changing = asyncio.Lock()
        self._closed = False
        self._upstreams = {name: self._upstream(config) for name, config in configs.items()}

    @property
    def upstreams(self) -> Mapping[str, Upstream]:
        """Those that are set up now, by name, in their order."""
        return MappingProxyType(self._upstreams)

    async def update(self, configs: Mapping[str, ServerConfig]) -> None:
        """Go on with these: what isn't among them is ended at once, what changed goes on by its new entry.

        An upstream stays the same object through changes of its entry. The others aren't touched. Where only what is
        said of it changed (prefix, limits, profiles), it isn't either: see `Upstream.reconfigure`.
        """
        async with self._changing:
            if self._closed:
                return
            before = self._upstreams
            gone = [upstream for name, upstream in before.items() if name not in configs]
            changed = [
                (before[name], config)
                for name, config in configs.items()
                if name in before and before[name].config != config
            ]
            self._upstreams = {name: before.get(name) or self._upstream(config) for name, config in configs.items()}
            await asyncio.gather(
                *(upstream.aclose("not set up any more") for upstream in gone),
                *(upstream.reconfigure(config) for upstream, config in changed),
            )

    def mask(self, text: str) -> str:
        """A text without the secrets that servers were started or are reached with."""
        for upstream in self._upstreams.values():
            text = upstream.mask(text)
        return text if self._credentials is None else self._credentials.mask(text)

    async def release(self, key: LinkKey) -> None:
        """A session has ended (or without `session` a whole thread), at every upstream."""
        await asyncio.gather(*(upstream.release(key) for upstream in self._upstreams.values()))

    async def aclose(self) -> None:
        """End everything. May be called twice."""
        async with self._changing:
            self._closed = True
            await asyncio.gather(*(upstream.aclose() for upstream in self._upstreams.values()))
            await self._opener.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def _upstream(self, config: ServerConfig) -> Upstream:
        return Upstream(
            config,
            self._opener,
            secrets=self._secrets,
            store=self._store,
            clock=self._clock,
            patience=self._patience,
        )
