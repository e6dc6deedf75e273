"""The events of another connection as a witness."""

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
from hotplug.witness import OtherEvents

pytestmark = pytest.mark.anyio

NOON: Any = {"start": "2026-10-26T12:00:00Z", "duration": "PT1H"}


async def test_what_another_connection_is_told_is_seen(tmp_path: Path, watch: Callable[..., Any]) -> None:
    url = f"sqlite:///{tmp_path}/calendar.db"
    async with connect(Calendar, url) as acting:
        (info,) = (await acting.calendars()).calendars
        await acting.create(calendar=info.calendar, title="Before", **NOON)
        at = await watch(OtherEvents(acting, ["calendar.event.changed"]))
        assert await at.seen() == []
        made = await acting.create(calendar=info.calendar, title="Planning", **NOON)
        await acting.delete(event=made.event)
        seen = await at.observed()
        assert [one.summary.split(" ")[::2] for one in seen] == [
            ["calendar.event", "created"],
            ["calendar.event", "deleted"],
        ]
        assert [one.channel for one in seen] == ["state", "state"]
        assert await at.observed() == seen
        assert closed_cleanly(await at.close())
        assert [one for one in await at.spots() if one.channel == "state"] == []
        assert await at.observed() == seen


async def test_it_proves_nothing_unless_it_is_said_to_be_independent(tmp_path: Path) -> None:
    async with connect(Calendar, f"sqlite:///{tmp_path}/calendar.db") as looking:
        assert not OtherEvents(looking).can_prove_anything()
        assert OtherEvents(looking, independent=True).can_prove_anything()
        with pytest.raises(ConfigError, match=r"no event calendar\.search"):
            OtherEvents(looking, ["calendar.search"])


async def test_a_connection_that_is_cut_is_a_blind_spot(
    tmp_path: Path, watch: Callable[..., Any], cut: Callable[..., Any]
) -> None:
    url = f"sqlite:///{tmp_path}/calendar.db"
    async with connect(Calendar, url) as looking:
        link = link_of(looking)
        broken = cut(link.channel)
        at = await watch(OtherEvents(typed_client(Calendar, Link(broken, link.spoken))))
        assert await at.seen() == []
        broken.is_broken = True
        assert await at.seen() == []
        assert ("channel-unobserved", "state") in await at.gaps()
        assert not closed_cleanly(await at.close())
        broken.is_broken = False
        at = await watch(OtherEvents(typed_client(Calendar, Link(cut(link.channel), link.spoken))))
        at.witness._link.channel.is_broken = True
        assert not closed_cleanly(await at.close())
        assert ("channel-unobserved", "state") in await at.gaps()


class Repeating:
    """A channel whose server tells each event twice, or of ever new ones."""

    def __init__(self, channel: Any, *, floods: bool) -> None:
        self._channel, self._floods, self._count = channel, floods, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._channel, name)

    async def call(self, tool: str, arguments: Any, **options: Any) -> Any:
        reply = await self._channel.call(tool, arguments, **options)
        if tool != "connection.events":
            return reply
        self._count += 1
        told = [{**one, "id": f"e{self._count}", "happening": None} for one in FLOOD] if self._floods else []
        return type(reply)(content={**reply.content, "events": [*reply.content["events"] * 2, *told]})


FLOOD = [{"type": "calendar.event.changed", "sense": "state", "summary": "calendar.event e updated", "payload": {}}]


@pytest.mark.parametrize("floods", [False, True])
async def test_what_is_told_again_counts_once_and_what_never_ends_is_a_blind_spot(
    floods: bool, tmp_path: Path, watch: Callable[..., Any]
) -> None:
    async with connect(Calendar, f"sqlite:///{tmp_path}/calendar.db") as acting:
        link = link_of(acting)
        (info,) = (await acting.calendars()).calendars
        channel: Any = Repeating(link.channel, floods=floods)
        at = await watch(OtherEvents(typed_client(Calendar, Link(channel, link.spoken))))
        await acting.create(calendar=info.calendar, title="Planning", **NOON)
        created = [one for one in await at.seen() if one.endswith("created")]
        assert len(created) == 1
        assert (("buffer-truncated", "state") in await at.gaps()) == floods
