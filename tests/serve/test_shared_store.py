"""Servers that share a store don't share what it holds."""

from pathlib import Path

import pytest

from hotplug import connect
from hotplug.catalog import Calendar
from hotplug.errors import NotFound
from hotplug.store import memory

pytestmark = pytest.mark.anyio


async def test_one_key_at_two_servers_stands_for_two_intentions(tmp_path: Path) -> None:
    async with memory() as store:
        for folder in ("a", "b"):
            async with connect(Calendar, f"folder:{tmp_path / folder}", store=store) as calendar:
                where = (await calendar.calendars()).calendars[0].calendar
                await calendar.using(key="same").create(
                    calendar=where, title=folder, start="2026-10-26T13:00:00Z", duration="PT1H"
                )
                found = await calendar.search("2026-10-26T00:00:00Z", "2026-10-27T00:00:00Z")
                assert [event.title for event in found.events] == [folder]


async def test_a_ref_of_one_server_names_nothing_at_another(tmp_path: Path) -> None:
    async with memory() as store:
        async with connect(Calendar, f"folder:{tmp_path / 'a'}", store=store) as calendar:
            foreign = (await calendar.calendars()).calendars[0].calendar
        async with connect(Calendar, f"folder:{tmp_path / 'b'}", store=store) as calendar:
            with pytest.raises(NotFound, match="of this server"):
                await calendar.create(calendar=foreign, title="x", start="2026-10-26T13:00:00Z", duration="PT1H")
