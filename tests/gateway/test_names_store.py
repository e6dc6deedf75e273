"""Names that are remembered: over restarts, and between processes with one store."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import anyio
import pytest

from hotplug.errors import StoreError
from hotplug.gateway.names import Wanted
from hotplug.gateway.names_store import Names
from hotplug.store import open_store

pytestmark = pytest.mark.anyio


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'store.db'}"


def bare(server: str, *owns: str) -> list[Wanted]:
    return [Wanted(server, own) for own in owns]


async def test_a_name_stays_over_a_restart_with_its_server_gone(url: str) -> None:
    async with open_store(url) as store:
        first = await Names(store, client_prefix=0).tools(bare("one", "echo"), "dotted")
        assert first.exposed == {("one", "echo"): "echo"}
    async with open_store(url) as store:
        names = Names(store, client_prefix=0)
        found = await names.tools(bare("two", "echo"), "dotted")
        assert found.exposed["two", "echo"].startswith("echo-")
        assert not (await names.tools(bare("two", "echo"), "dotted")).new
        assert (await names.tools(bare("two", "echo"), "underscored")).exposed == {("two", "echo"): "echo"}


async def test_two_processes_never_give_one_name_to_two_tools(url: str) -> None:
    async with open_store(url) as here, open_store(url) as there:
        one, two = Names(here, client_prefix=0), Names(there, client_prefix=0)
        await one.tools([], "dotted")
        await two.tools([], "dotted")
        await one.tools(bare("one", "echo"), "dotted")
        found = await two.tools(bare("two", "echo"), "dotted")
        assert found.exposed["two", "echo"].startswith("echo-")


async def test_many_at_once_agree(url: str) -> None:
    async with open_store(url) as here, open_store(url) as there:
        names = [Names(here, client_prefix=0, collisions="leave_out"), Names(there, client_prefix=0)]
        given: dict[str, set[tuple[str, str]]] = {}

        async def ask(at: int, server: str) -> None:
            found = await names[at % 2].tools(bare(server, *(f"t{number}" for number in range(20))), "dotted")
            for holder, exposed in found.exposed.items():
                given.setdefault(exposed, set()).add(holder)

        async with anyio.create_task_group() as group:
            for number in range(8):
                group.start_soon(ask, number, f"s{number}")
        assert len(given) == 8 * 20
        assert all(len(holders) == 1 for holders in given.values())


async def test_a_name_whose_entry_cannot_be_read_is_given_to_nobody(url: str, tmp_path: Path) -> None:
    async with open_store(url) as store:
        await Names(store, client_prefix=0).tools(bare("one", "echo", "add"), "dotted")
    with sqlite3.connect(tmp_path / "store.db") as connection:
        connection.execute("UPDATE store_memory SET body = '{' WHERE name = 'echo'")
    connection.close()
    async with open_store(url) as store:
        found = await Names(store, client_prefix=0).tools(bare("one", "echo", "add"), "dotted")
        assert found.exposed["one", "add"] == "add"
        assert found.exposed["one", "echo"].startswith("echo-")


async def test_the_owner_can_free_a_servers_names(url: str) -> None:
    async with open_store(url) as store:
        names = Names(store, client_prefix=0)
        for style in ("dotted", "underscored"):
            await names.tools(bare("one", "echo"), style)
        await names.uris([("one", "x:y")], "resources")
        assert await names.forget("two") == 0
        assert await names.forget("one") == 3
        assert (await names.tools(bare("two", "echo"), "dotted")).exposed == {("two", "echo"): "echo"}


async def test_prompts_and_uris_have_names_of_their_own(url: str) -> None:
    async with open_store(url) as store:
        names = Names(store, client_prefix=0)
        await names.tools(bare("one", "echo"), "dotted")
        assert (await names.prompts(bare("two", "echo"), "dotted")).exposed == {("two", "echo"): "echo"}
        await names.uris([("one", "x:y")], "resources")
        assert (await names.uris([("two", "x:y")], "resources")).exposed == {("two", "x:y"): "hotplug+two:x:y"}
        assert (await names.uris([("two", "x:y")], "templates")).exposed == {("two", "x:y"): "x:y"}


async def test_no_name_is_said_that_could_not_be_remembered(url: str) -> None:
    async with open_store(url) as store:
        names = Names(store, client_prefix=0)
        await names.tools([], "dotted")
    with pytest.raises(StoreError):
        await names.tools(bare("one", "echo"), "dotted")
