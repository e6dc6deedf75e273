"""Another connection as a witness: to the same calendar, of which a second one tells."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hotplug.catalog import Calendar
from hotplug.connect import Link, link_of, typed_client
from hotplug.door import connect
from hotplug.errors import ConfigError
from hotplug.evidence.window import closed_cleanly
from hotplug.witness import OtherConnection

pytestmark = pytest.mark.anyio

DAY = {"from": "2026-10-26T00:00:00Z", "to": "2026-10-27T00:00:00Z"}
NOON: Any = {"start": "2026-10-26T12:00:00Z", "duration": "PT1H"}


async def test_things_that_its_reads_name_are_compared(tmp_path: Path, watch: Callable[..., Any]) -> None:
    url = f"sqlite:///{tmp_path}/calendar.db"
    async with connect(Calendar, url) as acting, connect(Calendar, url) as looking:
        (info,) = (await acting.calendars()).calendars
        other = OtherConnection(looking, {"calendar.search": {**DAY, "limit": 1}, "calendar.calendars": {}})
        at = await watch(other)
        assert await at.seen() == []
        made = await acting.create(calendar=info.calendar, title="Planning", **NOON)
        again = await acting.create(calendar=info.calendar, title="Lunch", **NOON)
        seen = await at.observed()
        assert [one.summary.split(" ")[0::2] for one in seen] == [["calendar.event", "created"]] * 2
        assert sorted(one.value["title"] for one in seen) == ["Lunch", "Planning"]
        await acting.update(event=made.event, changes={"title": "Planning II"})
        await acting.delete(event=again.event)
        assert sorted(one.rpartition(" ")[2] for one in (await at.seen())[2:]) == ["deleted", "updated"]
        assert await at.gaps() == []
        assert closed_cleanly(await at.close())


async def test_it_proves_nothing_unless_it_is_said_to_be_independent(tmp_path: Path) -> None:
    async with connect(Calendar, f"sqlite:///{tmp_path}/calendar.db") as looking:
        assert not OtherConnection(looking, {"calendar.search": DAY}).can_prove_anything()
        assert OtherConnection(looking, {"calendar.search": DAY}, independent=True).can_prove_anything()


async def test_what_is_no_read_is_refused(tmp_path: Path) -> None:
    async with connect(Calendar, f"sqlite:///{tmp_path}/calendar.db") as looking:
        for reads in ({}, {"calendar.create": {}}, {"calendar.event.changed": {}}, {"calendar.guess": {}}):
            with pytest.raises(ConfigError, match="read"):
                OtherConnection(looking, reads)


async def test_a_read_that_fails_is_a_blind_spot_and_not_an_absence(
    tmp_path: Path, watch: Callable[..., Any], cut: Callable[..., Any]
) -> None:
    url = f"sqlite:///{tmp_path}/calendar.db"
    async with connect(Calendar, url) as acting, connect(Calendar, url) as looking:
        (info,) = (await acting.calendars()).calendars
        await acting.create(calendar=info.calendar, title="Planning", **NOON)
        link = link_of(looking)
        broken = cut(link.channel)
        at = await watch(OtherConnection(typed_client(Calendar, Link(broken, link.spoken)), {"calendar.search": DAY}))
        assert await at.gaps() == []
        broken.is_broken = True
        assert await at.seen() == []
        (gap,) = await at.spots()
        assert (gap.kind, gap.channel) == ("channel-unobserved", "state")
        assert "calendar.search failed" in gap.detail
        broken.is_broken = False
        assert await at.seen() == []
        assert await at.gaps() == []


async def test_what_the_server_could_not_read_is_a_blind_spot(tmp_path: Path, watch: Callable[..., Any]) -> None:
    folder = tmp_path / "cal"
    async with connect(Calendar, f"folder:{folder}") as acting, connect(Calendar, f"folder:{folder}") as looking:
        (info,) = (await acting.calendars()).calendars
        await acting.create(calendar=info.calendar, title="Planning", **NOON)
        at = await watch(OtherConnection(looking, {"calendar.search": DAY}))
        assert await at.gaps() == []
        (file,) = folder.rglob("*.ics")
        file.write_text("no calendar")
        assert await at.seen() == []
        assert set(await at.gaps()) == {("channel-unobserved", "state")}
