"""A gateway in front of a shop, whose profile a package brings."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from hotplug.connect import ObjectTarget
from hotplug.gateway.config import ServerConfig
from hotplug.serve import build
from hotplug.store import memory

from ..serve.shop import MyShop  # noqa: TID252  # tests are no package
from .roads import Hall, hall

__all__ = ["PROSE", "WHERE", "shop"]

PROSE = "Prose of the server."
WHERE = ("here", "over MCP")
"""Where the shop is: in the gateway's process, or a server of its own that speaks the profile."""


@asynccontextmanager
async def shop(
    folder: Path, monkeypatch: pytest.MonkeyPatch, where: str, **config: Any
) -> AsyncIterator[tuple[Hall, MyShop]]:
    """The gateway, and the shop behind it.

    Args:
        where: One of `WHERE`.
        config: Of the gateway.
    """
    package = folder / "shop_profile-1.dist-info"
    package.mkdir(parents=True)
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: shop-profile\nVersion: 1\n")
    (package / "entry_points.txt").write_text(f"[hotplug.profiles]\nshop = {MyShop.__module__}:Shop\n")
    monkeypatch.syspath_prepend(folder)
    there = MyShop()
    async with memory() as own:
        server: Any = ServerConfig("shop", ObjectTarget(there))
        if where == "over MCP":
            built = build(there, store=own)[0]
            built.instructions = PROSE
            server = built.streamable_http_app()
        async with hall(folder / "hall", {"shop": server}, **config) as h:
            yield h, there
