"""Texts are refused alike by all storages, before anything is written."""

from __future__ import annotations

from typing import Any

import pytest

from hotplug.errors import HotplugError, InvalidArgument, TooLarge
from hotplug.servers.calendar import CalendarEngine
from hotplug.servers.calendar.limits import LARGEST_EVENT, LONGEST_TEXT

pytestmark = pytest.mark.anyio

JUNE = ("2026-06-01T00:00:00Z", "2026-07-01T00:00:00Z")
MEETING: dict[str, Any] = {"calendar": "home", "title": "Planning", "start": "2026-06-11T14:00:00Z", "duration": "PT1H"}
WEEKLY: dict[str, Any] = {**MEETING, "recurrenceRules": [{"frequency": "weekly", "count": 3}]}
LONGEST = "ä" * (LONGEST_TEXT // 2)


async def refused(engine: CalendarEngine, fields: dict[str, Any], kind: type[HotplugError], match: str) -> None:
    """Neither made so nor changed to it."""
    uid = (await engine.create(MEETING)).event
    before = await engine.get(uid)
    with pytest.raises(kind, match=match):
        await engine.create({**MEETING, **fields})
    with pytest.raises(kind, match=match):
        await engine.update(uid, fields)
    assert await engine.get(uid) == before
    assert len((await engine.search(*JUNE))[0]) == 1


@pytest.mark.parametrize("name", ["title", "description", "location"])
async def test_the_longest_text_is_kept_and_a_longer_one_refused(engine: CalendarEngine, name: str) -> None:
    await refused(engine, {name: LONGEST + "x"}, TooLarge, name)
    uid = (await engine.create({**MEETING, name: LONGEST})).event
    assert (await engine.get(uid))[name] == LONGEST


async def test_the_longest_text_of_line_ends_can_be_read_again(engine: CalendarEngine) -> None:
    lines = "\n" * LONGEST_TEXT
    uid = (await engine.create({**MEETING, "description": lines})).event
    assert (await engine.get(uid))["description"] == lines


@pytest.mark.parametrize(
    "fields",
    [
        {"participants": {"a": {"name": LONGEST + "x", "email": "a@example.org"}}},
        {"alerts": {LONGEST + "x": {"trigger": {"@type": "OffsetTrigger", "offset": "-PT15M"}}}},
        {"recurrenceOverrides": {"2026-06-11T14:00:00Z": {"title": LONGEST + "x"}}},
    ],
)
async def test_a_text_inside_a_field_has_the_same_limit(engine: CalendarEngine, fields: dict[str, Any]) -> None:
    await refused(engine, fields, TooLarge, next(iter(fields)))


async def test_a_field_of_many_texts_is_refused_by_their_sum(engine: CalendarEngine) -> None:
    people = {f"{at}": {"name": LONGEST, "email": f"{at}@example.org"} for at in range(10)}
    await refused(engine, {"participants": people}, TooLarge, str(LARGEST_EVENT))


async def test_an_event_does_not_grow_over_its_limit_by_changes(engine: CalendarEngine) -> None:
    texts: dict[str, Any] = dict.fromkeys(("title", "description", "location"), "x" * LONGEST_TEXT)
    days = {f"2026-06-{day}T14:00:00Z": texts for day in range(11, 14)}
    rule = {"frequency": "daily", "count": 9}
    uid = (await engine.create({**MEETING, "recurrenceRules": [rule], "recurrenceOverrides": days})).event
    before = await engine.get(uid)
    with pytest.raises(TooLarge, match=str(LARGEST_EVENT)):
        await engine.update(uid, texts, scope="this", occurrence="2026-06-14T14:00:00Z")
    assert await engine.get(uid) == before
    assert (await engine.get(uid, "2026-06-13T14:00:00Z"))["location"] == texts["location"]


CONTROLS = [chr(code) for code in (*range(0x20), 0x7F) if chr(code) not in "\t\n"]
"""CONTROL of RFC 5545 section 3.1 without the line end, which a text escapes."""


@pytest.mark.parametrize("text", [*(f"a{each}b" for each in CONTROLS), "a\r\nb", "a\r"], ids=ascii)
async def test_what_no_text_of_icalendar_holds_is_refused_by_all_alike(engine: CalendarEngine, text: str) -> None:
    name = f"U\\+{ord(text[1]):04X} at position 1"
    occurrence = "2026-06-18T14:00:00Z"
    for field in ("title", "description", "location"):
        await refused_once(engine, {field: text}, f"^{field} .*{name}")
    await refused_once(engine, {"recurrenceOverrides": {occurrence: {"title": text}}}, f"^recurrenceOverrides .*{name}")
    await refused_once(engine, {"participants": [{"email": "a@b.example", "name": text}]}, f"^participants .*{name}")
    await refused_once(engine, {"alerts": {text: {"trigger": {"offset": "-PT1H"}}}}, f"^alerts .*{name}")
    with pytest.raises(InvalidArgument, match=f"^uid .*{name}"):
        await engine.create(MEETING, uid=text)
    uid = (await engine.create(WEEKLY)).event
    before = await engine.get(uid)
    with pytest.raises(InvalidArgument, match=f"^title .*{name}") as caught:
        await engine.update(uid, {"title": text}, scope="this", occurrence=occurrence)
    assert caught.value.details == {"field": "title"}
    assert await engine.get(uid) == before
    await engine.delete(uid, scope="all")
    await refused(engine, {"title": text}, InvalidArgument, name)


@pytest.mark.parametrize("text", ["a\tb\nc\n", "\x80\x85\x9f", "\u2028\u2029\ufeff\uffff", '\\n,;:"^'], ids=ascii)
async def test_what_else_a_text_has_is_kept_by_all_alike(engine: CalendarEngine, text: str) -> None:
    names = ("title", "description", "location")
    uid = (await engine.create({**MEETING, **dict.fromkeys(names, text)})).event
    found = await engine.get(uid)
    assert [found[name] for name in names] == [text] * 3


async def refused_once(engine: CalendarEngine, fields: dict[str, Any], match: str) -> None:
    with pytest.raises(InvalidArgument, match=match):
        await engine.create({**WEEKLY, **fields})
    assert (await engine.search(*JUNE))[0] == []
