"""Which protocol eras an upstream speaks, as it was found; a wrong try costs seconds at every start."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final, cast

from hotplug.connect.target import Target
from hotplug.errors import StoreError
from hotplug.gateway.asking import HANDSHAKE_REVISIONS, MODERN_REVISIONS
from hotplug.gateway.link import Era, Hello
from hotplug.gateway.message import dumps, loads, split
from hotplug.store import Store

__all__ = ["EraMemory", "eras_of"]

SCOPE: Final = "gateway.upstream"
HOLDS: Final = timedelta(days=7)
"""A finding is doubted after this long: packages are replaced by newer versions."""
HELLO_LIMIT: Final = 256 * 1024


def eras_of(hello: Hello) -> frozenset[Era]:
    """The eras whose revisions a server's discovery names; empty where none is known here."""
    raw = hello.result.get("supportedVersions")
    named: Any = loads(raw) if raw is not None else None
    if not isinstance(named, list):
        return frozenset({"modern"})
    versions = {version for version in cast("list[object]", named) if isinstance(version, str)}
    found: set[Era] = set()
    if versions.intersection(MODERN_REVISIONS):
        found.add("modern")
    if versions.intersection(HANDSHAKE_REVISIONS):
        found.add("legacy")
    return frozenset(found)


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
        self.eras: frozenset[Era] = frozenset()
        """Those that it speaks; empty: not known."""
        self.hellos: dict[Era, Hello] = {}

    async def load(self) -> None:
        """Recall what was found before; once."""
        if self._loaded or self._store is None:
            return
        self._loaded = True
        try:
            kept = await self._store.recall(SCOPE, self._name)
        except StoreError:
            return
        if kept is not None and kept.get("target") == self._target and _holds(kept.get("at")):
            self.eras = cast("frozenset[Era]", frozenset({"legacy", "modern"}.intersection(kept.get("eras", ()))))
            self.hellos = {era: hello for era in self.eras if (hello := _hello(kept.get("hellos"), era)) is not None}

    async def found(self, eras: frozenset[Era], hello: Hello | None = None, era: Era | None = None) -> None:
        """Keep a finding, and what the server said of itself in an era."""
        if hello is not None and era is not None:
            known = self.hellos.get(era)
            if eras == self.eras and known is not None and known == hello:
                return
            self.hellos[era] = hello
        self.eras = eras
        self.hellos = {era: hello for era, hello in self.hellos.items() if era in eras}
        if self._store is None:
            return
        hellos = {
            era: {"protocol": hello.protocol, "result": text}
            for era, hello in self.hellos.items()
            if len(text := dumps(hello.result).decode("utf-8", "surrogatepass")) <= HELLO_LIMIT
        }
        value = {
            "target": self._target,
            "eras": sorted(eras),
            "hellos": hellos,
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        await self._keep(value)

    async def forget(self) -> None:
        """Doubt it: the next start finds out anew."""
        if self.eras:
            self.eras = frozenset()
            await self._keep(None)

    async def _keep(self, value: Mapping[str, Any] | None) -> None:
        if self._store is not None:
            # A store that can't be written costs a try at the next start, no call now.
            try:
                await self._store.remember(SCOPE, self._name, value)
            except StoreError:
                return


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
