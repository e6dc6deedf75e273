"""A configuration that changes while the gateway runs holds whole, whatever fails on the way."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hotplug.connect import CommandTarget, parse_target
from hotplug.errors import StoreError, Unavailable
from hotplug.gateway.app import Gateway
from hotplug.gateway.config import GatewayConfig, ServerConfig
from hotplug.gateway.upstream import LinkKey
from hotplug.store import memory

from .roads import until

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("part", ["book", "servers", "pool"])
async def test_a_change_that_fails_on_the_way_is_done_in_the_end(
    part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = ServerConfig("old", parse_target(f"sqlite:///{tmp_path}/old.db"))
    new = ServerConfig("new", CommandTarget(("no-such-program",)))
    before = GatewayConfig(settings=tmp_path / "settings.json", servers={"old": old})
    after = replace(before, servers={"new": new}, names="underscored")
    given: list[GatewayConfig | None] = [after]
    async with (
        memory() as store,
        Gateway(before, store=store, reload=lambda: given.pop() if given else None) as gateway,
    ):
        failing = getattr(gateway, part)
        name = "renew" if part == "book" else "update"
        does, tries = getattr(failing, name), list[Any]()

        async def once_not(*arguments: Any) -> None:
            tries.append(arguments)
            if len(tries) == 1:
                raise StoreError("the disk is full")
            await does(*arguments)

        monkeypatch.setattr(failing, name, once_not)
        await until(lambda: gateway.config is after)
        assert len(tries) == 2
        assert gateway.servers.names() == ("new",)
        assert gateway.book.exposed("", "tools", "hotplug.search") == "hotplug_search"
        assert set(gateway.grants.host.servers) == {"new"}
        told: list[str] = []
        thread, _ = await gateway.threads.open()
        gateway.view.on_change(thread.id, told.append)
        # What changes at a server that was added is announced.
        with pytest.raises(Unavailable):
            await gateway.pool.upstreams["new"].link("modern", LinkKey(thread.id))
        await until(lambda: told)


async def test_a_change_that_is_taken_back_after_it_failed_leaves_everything_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = ServerConfig("old", parse_target(f"sqlite:///{tmp_path}/old.db"))
    before = GatewayConfig(settings=tmp_path / "settings.json", servers={"old": old})
    back = replace(before)
    async with memory() as store, Gateway(before, store=store) as gateway:

        async def fails(*_: Any) -> None:
            raise StoreError("the disk is full")

        with monkeypatch.context() as broken:
            broken.setattr(gateway.book, "learn_ours", fails)
            with pytest.raises(StoreError):
                await gateway.reconfigure(replace(before, servers={}, names="underscored"))
        await gateway.reconfigure(back)
        assert set(gateway.grants.host.servers) == {"old"}
        assert gateway.servers.names() == ("old",)
        assert gateway.book.exposed("", "tools", "hotplug.search") == "hotplug.search"
