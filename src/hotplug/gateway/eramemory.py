"""Which protocol eras an upstream speaks, as it was found; a wrong try costs seconds at every start."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final, cast

from hotplug.connect.target import Target
from hotplug.errors import StoreError
from hotplug.gateway.link import Era, Hello
from hotplug.gateway.links.handshake import LEGACY_REVISIONS
from hotplug.gateway.message import dumps, loads, split
from hotplug.store import Store

__all__ = ["EraMemory"]

ERAS: Final[tuple[Era, ...]] = ("legacy", "modern")
SCOPE: Final = "gateway.upstream"
HOLDS: Final = timedelta(days=7)
"""A finding is doubted after this long: packages are replaced by newer versions."""
HELLO_LIMIT: Final = 256 * 1024


class EraMemory:
    """What is known of one upstream's eras, kept in the store across processes where there is one.

    It belongs to one target: for another it starts empty. It holds seven days.
    """

    def __init__(self, name: str, target: Target, store: Store | None) -> None:
        self._name = name
        # By what the target shows of itself: no secret is in that.
        shown = json.dumps([str(target), target.describe()], sort_keys=True, default=str)
        self._target = hashlib.sha256(shown.encode("utf-8", "surrogatepass")).hexdigest()
        self._store = store
        self._loaded = store is None
        self._loading = asyncio.Lock()
        self.speaks: frozenset[Era] = frozenset()
        """The eras that it is known to speak."""
        self.lacks: frozenset[Era] = frozenset()
        """Those that it is known not to speak; an era in neither has to be tried."""
        self.hellos: dict[Era, Hello] = {}
        """What it said of itself last, in each."""
        self._kept = False

    async def load(self) -> None:
        """Recall what was found before; once, and all wait for it."""
        async with self._loading:
            if not self._loaded and self._store is not None:
                await self._recall(self._store)
                self._loaded = True

    async def _recall(self, store: Store) -> None:
        try:
            kept = await store.recall(SCOPE, self._name)
        except StoreError:
            return
        if kept is not None and kept.get("target") == self._target and _holds(kept.get("at")):
            self.speaks = _eras(kept.get("speaks"))
            self.lacks = _eras(kept.get("lacks")) - self.speaks if self.speaks else self.speaks
            self._kept = True
            self.hellos = {era: hello for era in self.speaks if (hello := _hello(kept.get("hellos"), era)) is not None}

    def doubt(self, era: Era) -> None:
        """It seems not to speak this era: so it is taken in this process until something else is found."""
        one: frozenset[Era] = frozenset((era,))
        self.speaks, self.lacks = self.speaks - one, self.lacks | one
        self._kept = False

    def trust(self, era: Era) -> None:
        """Whether it speaks this era isn't known after all."""
        self.lacks -= frozenset((era,))
        self._kept = False

    async def found(self, era: Era, hello: Hello, *, sure: bool = True) -> None:
        """A link in this era came up, and this is what the server said.

        Args:
            sure: Whether what it lacks is certain enough to be kept for later starts.
        """
        one: frozenset[Era] = frozenset((era,))
        speaks, lacks = self.speaks | one, self.lacks - one
        if era == "modern":
            # The other way it says nothing: servers that speak both eras name only the new one's revisions here.
            raw = hello.result.get("supportedVersions")
            named: Any = loads(raw) if raw is not None else []
            if isinstance(named, list) and any(revision in named for revision in LEGACY_REVISIONS):
                speaks, lacks = frozenset(ERAS), frozenset[Era]()
        if (speaks, lacks) == (self.speaks, self.lacks) and self.hellos.get(era) == hello and self._kept:
            return
        self.speaks, self.lacks = speaks, lacks
        self.hellos[era] = hello
        hellos = {
            era: {"protocol": hello.protocol, "result": text}
            for era, hello in self.hellos.items()
            if len(text := dumps(hello.result).decode("utf-8", "surrogatepass")) <= HELLO_LIMIT
        }
        self._kept = sure
        if sure:
            await self._keep(
                {
                    "target": self._target,
                    "speaks": sorted(speaks),
                    "lacks": sorted(lacks),
                    "hellos": hellos,
                    "at": datetime.now(UTC).isoformat(timespec="seconds"),
                }
            )

    async def forget(self) -> None:
        """Doubt everything: the next start finds out anew."""
        if self.speaks or self.lacks:
            self.speaks = self.lacks = frozenset()
            self._kept = False
            await self._keep(None)

    async def _keep(self, value: Mapping[str, Any] | None) -> None:
        if self._store is not None:
            # A store that can't be written costs a try at the next start, no call now.
            try:
                await self._store.remember(SCOPE, self._name, value)
            except StoreError:
                return


def _eras(kept: object) -> frozenset[Era]:
    named = cast("list[object]", kept) if isinstance(kept, list) else []
    return frozenset(era for era in ERAS if era in named)


def _holds(at: object) -> bool:
    try:
        return isinstance(at, str) and datetime.now(UTC) - datetime.fromisoformat(at) < HOLDS
    except (ValueError, TypeError):
        return False


def _hello(kept: object, era: Era) -> Hello | None:
    entry = cast("Mapping[str, Any]", kept).get(era) if isinstance(kept, Mapping) else None
    if not isinstance(entry, Mapping):
        return None
    fields = cast("Mapping[str, Any]", entry)
    protocol, text = fields.get("protocol"), fields.get("result")
    if not isinstance(protocol, str) or not isinstance(text, str):
        return None
    try:
        result = split(text.encode("utf-8", "surrogatepass"))
    except ValueError:
        return None
    return Hello(result, protocol) if result is not None else None
