"""What every storage must keep: the same behaviour over SQLite and over a folder."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hotplug.errors import Conflict, InvalidArgument, NotFound
from hotplug.servers.calendar import CalendarEngine

pytestmark = pytest.mark.anyio

Opener = Callable[[], CalendarEngine]

MEETING: dict[str, Any] = {
    "calendar": "work",
    "title": "Planning",
    "start": "2026-06-11T17:00:00",
    "duration": "PT1H",
    "timeZone": "Asia/Jerusalem",
}
WEEKLY: dict[str, Any] = {
    **MEETING,
    "start": "2026-06-01T09:00:00",
    "timeZone": "Europe/Berlin",
    "recurrenceRules": [{"frequency": "weekly", "byDay": [{"day": "mo"}]}],
}
JUNE = ("2026-06-01T00:00:00Z", "2026-07-01T00:00:00Z")


async def create(engine: CalendarEngine, fields: dict[str, Any], **more: Any) -> str:
    return (await engine.create({**fields, **more})).event


async def starts(engine: CalendarEngine, *within: str, **more: Any) -> list[str]:
    events, _ = await engine.search(*(within or JUNE), expand=True, **more)
    return [each["start"] for each in events]


async def test_both_calendars_are_listed(engine: CalendarEngine) -> None:
    assert await engine.calendars() == [
        {"calendar": "home", "name": "Home", "zone": "Europe/Berlin", "writable": True},
        {"calendar": "work", "name": "Work", "writable": True},
    ]


async def test_fr01_a_start_without_zone_makes_nothing(engine: CalendarEngine) -> None:
    with pytest.raises(InvalidArgument):
        await create(engine, {**MEETING, "timeZone": None})
    assert await starts(engine) == []
    wire = await engine.get(await create(engine, MEETING))
    assert wire["utcStart"] == "2026-06-11T14:00:00Z"
    assert wire["timeZone"] == "Asia/Jerusalem"


KINDS: dict[str, dict[str, Any]] = {
    "zoned": {},
    "zoned over a change of clocks": {"start": "2026-10-24T12:00:00", "duration": "P1D", "timeZone": "Europe/Berlin"},
    "a day by its hours": {"start": "2026-10-24T12:00:00", "duration": "PT24H", "timeZone": "Europe/Berlin"},
    "to a time that comes twice": {
        "start": "2026-10-25T00:30:00",
        "duration": None,
        "end": "2026-10-25T02:30:00+01:00",
        "timeZone": "Europe/Berlin",
    },
    "at the first of two": {"start": "2026-10-25T02:30:00+02:00", "timeZone": "Europe/Berlin"},
    "in UTC by name": {"timeZone": "Etc/UTC"},
    "instant": {"start": "2026-06-11T14:00:00Z", "timeZone": None},
    "instant of days": {"start": "2026-06-11T14:00:00Z", "timeZone": None, "duration": "P2D"},
    "floating": {"timeZone": "floating"},
    "floating of hours": {"timeZone": "floating", "duration": "PT36H"},
    "all-day": {"start": "2026-09-14", "duration": "P1D", "timeZone": None, "showWithoutTime": True},
    "all-day, a week": {"start": "2026-09-14", "duration": "P7D", "timeZone": None, "showWithoutTime": True},
    "without length": {"duration": "PT0S"},
    "1900": {"start": "1900-01-01T12:00:00", "timeZone": "America/New_York"},
    "1850": {"start": "1850-06-01T12:00:00", "timeZone": "Europe/Berlin"},
    "2100": {"start": "2100-07-01T12:00:00", "timeZone": "Europe/Berlin"},
    "year 1": {"start": "0001-02-03T12:00:00Z", "timeZone": None},
    "year 9999": {"start": "9999-12-30T12:00:00Z", "timeZone": None},
}


@pytest.mark.parametrize("kind", KINDS)
async def test_fr07_every_kind_of_time_comes_back_as_it_was(opened: Opener, kind: str) -> None:
    engine = opened()
    fields = {**MEETING, **KINDS[kind]}
    uid = await create(engine, fields)
    wire = await engine.get(uid)
    for name, value in fields.items():
        assert wire.get(name) == value or value is None
    assert await opened().get(uid) == wire
    await engine.update(uid, {"start": wire["start"], "duration": wire["duration"]})
    again = await engine.get(uid)
    assert {**again, "revision": 0} == {**wire, "revision": 0}


@pytest.mark.parametrize("kind", KINDS)
async def test_a_series_of_every_kind_of_time_comes_back_as_it_was(opened: Opener, kind: str) -> None:
    engine = opened()
    fields = {**MEETING, **KINDS[kind], "recurrenceRules": [{"frequency": "daily", "interval": 2, "count": 5}]}
    if kind == "year 9999":
        fields["recurrenceRules"][0]["count"] = 1
    uid = await create(engine, fields)
    wire = await opened().get(uid)
    for name, value in fields.items():
        assert wire.get(name) == value or value is None
    found = [each async for each in pages(engine, wire["start"][:10])]
    assert len(found) == fields["recurrenceRules"][0]["count"]
    await engine.delete(uid, scope="this", occurrence=found[-1]["occurrence"])
    left = [each["occurrence"] async for each in pages(opened(), wire["start"][:10])]
    assert left == [each["occurrence"] for each in found[:-1]]


async def pages(engine: CalendarEngine, day: str) -> Any:
    first = f"{max(int(day[:4]) - 1, 1):04}-01-01T00:00:00Z"
    last = f"{min(int(day[:4]) + 1, 9999):04}-12-31T23:59:59Z"
    events, cursor = await engine.search(first, last, expand=True, limit=2)
    while True:
        for each in events:
            yield each
        if cursor is None:
            return
        events, cursor = await engine.search(first, last, expand=True, limit=2, cursor=cursor)


TEXTS = [
    "line one\nline two\n\n  indented",
    " leading and trailing ",
    "a,b;c\\d:e\"f'g",
    "C:\\New\\north \\n not a line end, \\N neither",
    "👋🏽 Grüße 日本語 \u202eabc",
    "tab\there",
    "e\u0301 is not \u00e9",
    "\u2028 and \u0085 and \ufeff",
    "x" * 300 + "ü" * 300,
    "\n",
    "BEGIN:VEVENT\nEND:VCALENDAR",
]


@pytest.mark.parametrize("text", TEXTS)
async def test_texts_come_back_exactly(opened: Opener, text: str) -> None:
    engine = opened()
    uid = await create(engine, MEETING, title=text, description=text, location=text)
    wire = await opened().get(uid)
    assert (wire["title"], wire["description"], wire["location"]) == (text, text, text)
    await engine.update(uid, {"title": text + "!"})
    assert (await engine.get(uid))["title"] == text + "!"


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(st.characters(exclude_categories=("Cs", "Cc"), include_characters="\n\t"), max_size=200))
def test_any_text_comes_back_exactly(opened: Opener, text: str) -> None:
    async def there_and_back() -> None:
        engine = opened()
        uid = await create(engine, MEETING, title=text)
        wire = await engine.get(uid)
        assert wire["title"] == text
        await engine.delete(uid)
        engine.storage.close()

    anyio.run(there_and_back)


async def test_fr03_this_and_following_keeps_ten_past_mondays(engine: CalendarEngine) -> None:
    uid = await create(engine, WEEKLY)
    year = ("2026-01-01T00:00:00Z", "2026-09-01T00:00:00Z")
    mondays = (await starts(engine, *year))[:10]
    effect = await engine.update(
        uid, {"start": "2026-08-12T09:00:00"}, scope="following", occurrence="2026-08-10T09:00:00"
    )
    assert await starts(engine, *year) == [
        *mondays,
        "2026-08-12T09:00:00",
        "2026-08-19T09:00:00",
        "2026-08-26T09:00:00",
    ]
    assert effect.scope == "following"
    assert effect.ended == uid
    assert effect.event != uid
    assert (await engine.get(uid))["recurrenceRules"][0]["until"] == "2026-08-03T09:00:00"


async def test_fr03_a_series_is_not_edited_without_a_scope(engine: CalendarEngine) -> None:
    uid = await create(engine, WEEKLY)
    before = await engine.get(uid)
    for act in (
        lambda: engine.update(uid, {"title": "x"}),
        lambda: engine.update(uid, {"title": "x"}, occurrence="2026-06-08T09:00:00"),
        lambda: engine.update(uid, {"title": "x"}, scope="this"),
        lambda: engine.update(uid, {"title": "x"}, scope="some", occurrence="2026-06-08T09:00:00"),
        lambda: engine.delete(uid),
        lambda: engine.delete(uid, scope="following"),
    ):
        with pytest.raises(InvalidArgument, match="scope"):
            await act()
    assert await engine.get(uid) == before


async def test_fr03_this_changes_only_the_fourth(engine: CalendarEngine) -> None:
    uid = await create(engine, WEEKLY)
    await engine.update(
        uid,
        {"start": "2026-06-23T11:00:00", "title": "Own", "location": "Hall"},
        scope="this",
        occurrence="2026-06-22T09:00:00",
    )
    events, _ = await engine.search(*JUNE, expand=True)
    assert [(each["start"], each["title"], each.get("location")) for each in events] == [
        ("2026-06-01T09:00:00", "Planning", None),
        ("2026-06-08T09:00:00", "Planning", None),
        ("2026-06-15T09:00:00", "Planning", None),
        ("2026-06-23T11:00:00", "Own", "Hall"),
        ("2026-06-29T09:00:00", "Planning", None),
    ]
    own = await engine.get(uid, "2026-06-22T09:00:00")
    assert (own["title"], own["occurrence"]) == ("Own", "2026-06-22T09:00:00")
    # a later change of all leaves what the occurrence has of its own
    await engine.update(uid, {"title": "New", "description": "text"}, scope="all")
    own = await engine.get(uid, "2026-06-22T09:00:00")
    assert (own["title"], own["description"], own["start"]) == ("Own", "text", "2026-06-23T11:00:00")
    other = await engine.get(uid, "2026-06-15T09:00:00")
    assert (other["title"], other["description"]) == ("New", "text")


async def test_exceptions_come_back_as_they_were_given(opened: Opener) -> None:
    overrides = {
        "2026-06-08T09:00:00": {"excluded": True},
        "2026-06-15T09:00:00": {"start": "2026-06-16T10:00:00", "title": "Moved", "location": None},
        "2026-06-20T12:00:00": {},
        "2026-06-21T12:00:00": {"duration": "PT2H"},
        "2026-06-22T09:00:00": {"start": "2026-06-22T08:00:00", "timeZone": "Europe/London"},
        "2026-06-29T09:00:00": {"status": "cancelled", "freeBusyStatus": "free"},
    }
    engine = opened()
    uid = await create(engine, WEEKLY, location="Room", recurrenceOverrides=overrides)
    assert (await opened().get(uid))["recurrenceOverrides"] == overrides
    await engine.update(uid, {"start": "2026-06-02T10:00:00"}, scope="all")
    moved = (await opened().get(uid))["recurrenceOverrides"]
    assert moved["2026-06-09T10:00:00"] == {"excluded": True}
    # what was moved by itself stays where it is, what has its own length only moves along
    assert moved["2026-06-16T10:00:00"] == {"title": "Moved", "location": None}
    assert moved["2026-06-21T13:00:00"] == {}
    assert moved["2026-06-22T13:00:00"] == {"duration": "PT2H"}
    assert moved["2026-06-23T10:00:00"] == {"start": "2026-06-22T08:00:00", "timeZone": "Europe/London"}


async def test_fr04_what_is_left_out_stays_and_clearing_is_explicit(engine: CalendarEngine) -> None:
    more = {"description": "text", "location": "Room", "status": "tentative", "freeBusyStatus": "free"}
    uid = await create(engine, MEETING, **more)
    await engine.update(uid, {"start": "2026-06-12T10:00:00"})
    wire = await engine.get(uid)
    assert {name: wire[name] for name in more} == more
    assert wire["end"] == "2026-06-12T11:00:00"
    await engine.update(uid, {"title": "Other"}, ["location", "status"])
    wire = await engine.get(uid)
    assert "location" not in wire
    assert "status" not in wire
    assert (wire["title"], wire["description"]) == ("Other", "text")


async def test_fr06_a_revision_that_has_moved_is_a_conflict(opened: Opener) -> None:
    a, b = opened(), opened()
    uid = await create(a, MEETING)
    seen = (await b.get(uid))["revision"]
    await a.update(uid, {"title": "by A"}, revision=seen)
    current = (await b.get(uid))["revision"]
    assert current != seen
    with pytest.raises(Conflict) as caught:
        await b.update(uid, {"title": "by B"}, revision=seen)
    assert caught.value.details["current"] == current
    with pytest.raises(Conflict):
        await b.delete(uid, revision=seen)
    assert (await b.get(uid))["title"] == "by A"
    effect = await b.update(uid, {"title": "by B"}, revision=current)
    assert effect.revision == (await a.get(uid))["revision"]


async def test_fr08_the_occurrence_at_the_end_is_included(engine: CalendarEngine) -> None:
    rule = {"frequency": "weekly", "until": "2026-12-17T10:00:00"}
    uid = await create(engine, MEETING, start="2026-12-03T10:00:00", timeZone="Europe/Madrid", recurrenceRules=[rule])
    assert (await engine.get(uid))["recurrenceRules"] == [rule]
    found = await starts(engine, "2026-12-01T00:00:00Z", "2027-02-01T00:00:00Z")
    assert found == ["2026-12-03T10:00:00", "2026-12-10T10:00:00", "2026-12-17T10:00:00"]


async def test_fr09_a_cancelled_occurrence_is_gone_for_every_reader(opened: Opener) -> None:
    engine = opened()
    rule = {"frequency": "daily", "count": 4}
    uid = await create(engine, MEETING, start="2026-10-23T11:00:00", timeZone="Europe/Berlin", recurrenceRules=[rule])
    effect = await engine.delete(uid, scope="this", occurrence="2026-10-25T10:00:00Z")
    assert (effect.kind, effect.scope) == ("updated", "this")
    autumn = ("2026-10-01T00:00:00Z", "2026-11-01T00:00:00Z")
    for reader in (engine, opened()):
        assert await starts(reader, *autumn) == [
            "2026-10-23T11:00:00",
            "2026-10-24T11:00:00",
            "2026-10-26T11:00:00",
        ]
    with pytest.raises(NotFound, match="was deleted") as caught:
        await opened().delete(uid, scope="this", occurrence="2026-10-25T11:00:00")
    assert caught.value.details == {"deleted": True}


async def test_fr09_a_deleted_event_is_remembered_as_deleted(opened: Opener) -> None:
    engine = opened()
    uid = await create(engine, MEETING)
    before = await engine.deleted_since()
    effect = await engine.delete(uid)
    assert (effect.event, effect.kind, effect.revision) == (uid, "deleted", None)
    for reader in (engine, opened()):
        for act in (
            lambda reader=reader: reader.get(uid),
            lambda reader=reader: reader.delete(uid),
            lambda reader=reader: reader.update(uid, {"title": "x"}),
        ):
            with pytest.raises(NotFound, match="was deleted") as caught:
                await act()
            assert caught.value.details == {"deleted": True}
        assert await starts(reader) == []
        with pytest.raises(Conflict, match="was deleted"):
            await reader.create(MEETING, uid=uid)
        found, cursor = await reader.deleted_since(before[1])
        assert [(each["event"], each["calendar"]) for each in found] == [(uid, "work")]
        assert await reader.deleted_since(cursor) == ([], cursor)


async def test_an_id_that_never_was_is_not_found_and_not_deleted(engine: CalendarEngine) -> None:
    with pytest.raises(NotFound) as caught:
        await engine.get("never")
    assert caught.value.details == {}


async def test_an_id_in_use_is_not_used_again(engine: CalendarEngine) -> None:
    await engine.create(MEETING, uid="mine")
    with pytest.raises(Conflict, match="exists"):
        await engine.create(MEETING, uid="mine")


async def test_a_series_is_deleted_by_scope(engine: CalendarEngine) -> None:
    uid = await create(engine, WEEKLY)
    await engine.delete(uid, scope="following", occurrence="2026-06-22T09:00:00")
    assert await starts(engine) == ["2026-06-01T09:00:00", "2026-06-08T09:00:00", "2026-06-15T09:00:00"]
    assert (await engine.delete(uid, scope="all")).kind == "deleted"
    assert await starts(engine) == []


async def test_search_gives_what_overlaps_in_order(engine: CalendarEngine) -> None:
    for title, start, end in [
        ("c", "2026-06-11T11:00:00Z", "2026-06-11T12:00:00Z"),
        ("a", "2026-06-11T09:30:00Z", "2026-06-11T10:30:00Z"),
        ("b", "2026-06-11T10:00:00Z", "2026-06-11T10:30:00Z"),
        ("before", "2026-06-11T09:00:00Z", "2026-06-11T10:00:00Z"),
        ("after", "2026-06-11T12:00:00Z", "2026-06-11T13:00:00Z"),
    ]:
        await create(engine, {"calendar": "home", "title": title, "start": start, "end": end})
    found, cursor = await engine.search("2026-06-11T10:00:00Z", "2026-06-11T12:00:00Z")
    assert [each["title"] for each in found] == ["a", "b", "c"]
    assert cursor is None
    assert (await engine.search(*JUNE, calendar="work"))[0] == []
    assert len((await engine.search(*JUNE, calendar="home"))[0]) == 5
    with pytest.raises(NotFound, match="nowhere"):
        await engine.search(*JUNE, calendar="nowhere")


async def test_search_finds_texts_whatever_their_case(engine: CalendarEngine) -> None:
    await create(engine, MEETING, title="STRASSE")
    await create(engine, MEETING, description="in der Straße")
    await create(engine, MEETING, location="nowhere")
    assert len((await engine.search(*JUNE, query="straße"))[0]) == 2
    assert len((await engine.search(*JUNE, query="%"))[0]) == 0


async def test_a_series_is_shown_once_or_by_its_occurrences(engine: CalendarEngine) -> None:
    uid = await create(engine, WEEKLY)
    week = ("2026-06-14", "2026-06-21", "Europe/Berlin")
    (once,), _ = await engine.search(*week)
    assert (once["event"], once["start"], once["recurring"]) == (uid, "2026-06-01T09:00:00", True)
    (occurrence,), _ = await engine.search(*week, expand=True)
    assert (occurrence["start"], occurrence["occurrence"]) == ("2026-06-15T09:00:00", "2026-06-15T09:00:00")
    assert (await engine.search("2026-06-16", "2026-06-21", "Europe/Berlin"))[0] == []


async def test_floating_and_all_day_events_are_placed_in_the_zone_of_the_search(engine: CalendarEngine) -> None:
    await create(
        engine, {"calendar": "home", "title": "day", "start": "2026-06-11", "duration": "P1D", "showWithoutTime": True}
    )
    await create(engine, MEETING, timeZone="floating", start="2026-06-11T22:00:00")
    assert len((await engine.search("2026-06-11", "2026-06-12", "Asia/Tokyo"))[0]) == 2
    assert (await engine.search("2026-06-12", "2026-06-13", "Asia/Tokyo"))[0] == []
    assert len((await engine.search("2026-06-12T01:00:00Z", "2026-06-12T02:00:00Z"))[0]) == 2


async def test_pages_hold_each_event_once_and_stay_in_place(engine: CalendarEngine) -> None:
    for number in range(25):
        await create(engine, MEETING, title=str(number), start=f"2026-06-{number % 5 + 1:02}T09:00:00")
    whole, _ = await engine.search(*JUNE)
    found: list[Any] = []
    cursor = None
    while True:
        page, cursor = await engine.search(*JUNE, limit=7, cursor=cursor)
        found += page
        if len(found) == 7:
            # what is made on a page that was read changes nothing on those to come
            await create(engine, MEETING, title="new", start="2026-06-01T08:00:00")
        if cursor is None:
            break
    assert found == whole
    _, cursor = await engine.search(*JUNE, limit=7)
    with pytest.raises(InvalidArgument, match="another search"):
        await engine.search("2026-06-02T00:00:00Z", JUNE[1], limit=7, cursor=cursor)
    for wrong in ("", "x", "????", "bnVsbA=="):
        with pytest.raises(InvalidArgument, match="cursor"):
            await engine.search(*JUNE, cursor=wrong)
    for limit in (0, 1001):
        with pytest.raises(InvalidArgument, match="limit"):
            await engine.search(*JUNE, limit=limit)


async def test_a_thousand_occurrences_come_in_pages(engine: CalendarEngine) -> None:
    rule = {"frequency": "daily", "count": 1000}
    uid = await create(engine, MEETING, start="2026-01-01T09:00:00", recurrenceRules=[rule])
    decade = ("2026-01-01T00:00:00Z", "2036-01-01T00:00:00Z")
    whole, cursor = await engine.search(*decade, expand=True, limit=1000)
    assert len(whole) == 1000
    assert cursor is None
    first, cursor = await engine.search(*decade, expand=True, limit=600)
    second, end = await engine.search(*decade, expand=True, limit=600, cursor=cursor)
    assert first + second == whole
    assert end is None
    await engine.update(uid, {"title": "Own"}, scope="this", occurrence=whole[998]["occurrence"])
    own = await engine.get(uid, whole[998]["occurrence"])
    assert own["title"] == "Own"


async def test_an_event_moves_to_another_calendar(opened: Opener) -> None:
    engine = opened()
    uid = await create(engine, MEETING)
    await engine.update(uid, {"calendar": "home"})
    assert (await opened().get(uid))["calendar"] == "home"
    assert (await engine.search(*JUNE, calendar="work"))[0] == []
    with pytest.raises(NotFound, match="nowhere"):
        await engine.update(uid, {"calendar": "nowhere"})
    with pytest.raises(NotFound, match="nowhere"):
        await create(engine, MEETING, calendar="nowhere")
    assert (await engine.deleted_since())[0] == []


async def test_a_failure_in_the_callers_part_of_the_transaction_is_passed_on(engine: CalendarEngine) -> None:
    seen: list[Any] = []
    effect = await engine.create(MEETING, also=lambda connection, made: seen.append((connection, made)))
    assert seen[0][1] == effect

    def fail(connection: Any, made: Any) -> None:
        raise RuntimeError("no room")

    with pytest.raises(RuntimeError, match="no room"):
        await engine.update(effect.event, {"title": "x"}, also=fail)


async def test_changes_of_many_at_once_are_all_kept(opened: Opener) -> None:
    engines = [opened() for _ in range(3)]
    uid = await create(engines[0], WEEKLY)
    mondays = ["2026-06-01", "2026-06-08", "2026-06-15", "2026-06-22", "2026-06-29", "2026-07-06"]
    async with anyio.create_task_group() as tasks:
        for number, day in enumerate(mondays):

            async def change(engine: CalendarEngine = engines[number % 3], day: str = day) -> None:
                await engine.update(uid, {"title": day}, scope="this", occurrence=f"{day}T09:00:00")

            tasks.start_soon(change)
    found, _ = await engines[0].search("2026-06-01T00:00:00Z", "2026-07-10T00:00:00Z", expand=True)
    assert [each["title"] for each in found] == mondays


async def test_names_that_are_no_fields_are_refused(engine: CalendarEngine) -> None:
    with pytest.raises(InvalidArgument, match="summary"):
        await create(engine, MEETING, summary="x")
    with pytest.raises(InvalidArgument, match="half of a character"):
        await create(engine, MEETING, title="\ud83d")
