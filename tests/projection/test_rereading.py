"""A server that briefly shows an old version after a write: read once more, then a conflict as such (FR-06)."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from hotplug import connect
from hotplug.catalog.calendar import Calendar
from hotplug.errors import Conflict, ConnectionFailed, InDoubt, Internal, NotFound, Unavailable
from hotplug.projection.rereading import reread
from hotplug.store import memory

from .stale import FakeAgentsCalendar, FakeCaldavBlade

pytestmark = pytest.mark.anyio

HOUR: dict[str, Any] = {"start": "2026-10-26T13:00:00Z", "duration": "PT1H"}
DOWN = '{"error": "CalDAV request failed: timed out"}'


def gives(*answers: Any) -> tuple[Callable[[], Awaitable[Any]], list[Any]]:
    """A way of reading that gives these, one a call, and the list of those that are left."""
    left = list(answers)

    async def read() -> Any:
        answer = left.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    return read, left


@pytest.mark.parametrize(
    ("first", "second", "found", "asked_twice"),
    [
        ("new", "new", "new", False),
        ("old", "new", "new", True),
        ("old", "other", "other", True),
        ("old", None, "old", True),
        ("old", NotFound("gone"), "old", True),
        ("old", Unavailable("down"), "old", True),
        (NotFound("gone"), "new", "new", True),
        (NotFound("gone"), "other", "other", True),
        (NotFound("gone"), None, NotFound, True),
        (NotFound("gone"), NotFound("gone too"), NotFound, True),
        (NotFound("gone"), Unavailable("down"), Unavailable, True),
        (Unavailable("down"), "new", Unavailable, False),
    ],
)
async def test_another_way_is_asked_once_where_the_first_does_not_show_what_it_should(
    first: Any, second: Any, found: Any, asked_twice: bool
) -> None:
    (one, _), (other, left) = gives(first), gives(second)
    if isinstance(found, str):
        assert await reread(one, other, good=lambda value: value == "new") == found
    else:
        with pytest.raises(found):
            await reread(one, other, good=lambda value: value == "new")
    assert (left == []) is asked_twice


@asynccontextmanager
async def on(fake: Any) -> AsyncGenerator[tuple[Calendar, Any]]:
    async with memory() as store, connect(Calendar, fake.server, projection=fake.package, store=store) as cal:
        yield cal, (await cal.calendars()).calendars[0].calendar


async def test_fr06_an_old_version_right_after_a_write_is_read_once_more_and_is_no_conflict() -> None:
    fake = FakeAgentsCalendar()

    def reads() -> int:
        """How often each event was listed since this was asked last; getting it shows nothing new from now on."""
        fake.stale["calendar_get"] = 99
        listed = fake.calls.count("calendar_list")
        fake.calls.clear()
        return listed

    async with on(fake) as (cal, home):
        made = await cal.create(calendar=home, title="a", **HOUR)
        moved = await cal.update(made.event, {"title": "b"}, revision=made.revision)
        assert moved.revision != made.revision
        assert reads() == 0
        event = await cal.get(made.event)
        assert (event.title, event.revision) == ("b", moved.revision)
        assert reads() == 1
        for title in ("c", "d"):
            moved = await cal.update(made.event, {"title": title}, revision=moved.revision)
            # Once before the change and once after it.
            assert reads() == 2
        moved = await cal.update(made.event, {"title": "e"})
        assert reads() == 2
        await cal.delete(made.event, revision=moved.revision)
        assert fake.versions["/ada/home/e1.ics"][-1] is None


async def test_fr06_a_new_event_that_is_not_shown_at_once_is_read_once_more_and_is_not_missing() -> None:
    fake = FakeAgentsCalendar()
    async with on(fake) as (cal, home):
        # The read-back, and then a read of the caller's.
        for number in range(2):
            add = fake.calendar_add

            def stale_after(add: Any = add, **fields: Any) -> str:
                fake.stale["calendar_get"] = 1
                return add(**fields)

            fake.calendar_add = stale_after  # type: ignore[method-assign]
            made = await cal.create(calendar=home, title=f"new {number}", **HOUR)
            fake.stale["calendar_get"] = 1
            assert (await cal.get(made.event)).title == f"new {number}"
            assert fake.stale["calendar_get"] == 0


async def test_fr06_a_version_that_two_ways_contradict_is_a_conflict_with_the_current_one() -> None:
    fake = FakeAgentsCalendar()
    async with on(fake) as (cal, home):
        made = await cal.create(calendar=home, title="a", **HOUR)
        moved = await cal.update(made.event, {"title": "b"})
        with pytest.raises(Conflict) as caught:
            await cal.update(made.event, {"title": "c"}, revision=made.revision)
        assert caught.value.details["revision"] == moved.revision
        # Both ways are stale: the change is refused for its version all the same, and nothing is written.
        fake.stale.update(calendar_get=2, calendar_list=2)
        before = len(fake.versions["/ada/home/e1.ics"])
        with pytest.raises(Conflict):
            await cal.update(made.event, {"title": "c"}, revision=moved.revision)
        assert len(fake.versions["/ada/home/e1.ics"]) == before


async def test_fr06_a_refusal_by_the_server_is_a_conflict_also_where_it_cannot_be_read_again() -> None:
    fake = FakeAgentsCalendar()
    async with on(fake) as (cal, home):
        made = await cal.create(calendar=home, title="a", **HOUR)
        for refusal in ("precondition failed", "CalDAV PUT 404: Not Found"):
            for down in (False, True):
                fake.fails = {"calendar_update": [json.dumps({"error": refusal})]}
                if down:
                    get = fake.calendar_get(href="/ada/home/e1.ics", timezone="UTC")
                    fake.fails |= {"calendar_get": [get, '{"error": "CalDAV GET 404"}'], "calendar_list": [DOWN] * 2}
                with pytest.raises(ConnectionFailed) as caught:
                    await cal.update(made.event, {"title": "b"}, revision=made.revision)
                # A 404 that nothing confirms and nothing contradicts is neither a conflict nor an absence.
                expected = Unavailable if down and "404" in refusal else Conflict
                assert type(caught.value) is expected
                # What still is as it was sent can't be the current one that it was refused for.
                assert "revision" not in caught.value.details
    assert fake.versions["/ada/home/e1.ics"][-1] is not None


async def test_what_somebody_else_deleted_is_not_found_by_both_ways_and_not_when_one_cannot_be_read() -> None:
    fake = FakeAgentsCalendar()
    async with on(fake) as (cal, home):
        made = await cal.create(calendar=home, title="a", **HOUR)
        fake.write("/ada/home/e1.ics", None)
        fake.write("/ada/home/e1.ics", None)
        with pytest.raises(NotFound):
            await cal.get(made.event)
        with pytest.raises(NotFound):
            await cal.update(made.event, {"title": "b"}, revision=made.revision)
        fake.fails = {"calendar_list": [DOWN]}
        with pytest.raises(Unavailable):
            await cal.get(made.event)


async def test_what_another_one_wrote_over_our_write_is_a_conflict_that_says_it_was_done() -> None:
    fake = FakeAgentsCalendar()
    async with on(fake) as (cal, home):
        made = await cal.create(calendar=home, title="a", **HOUR)
        update = fake.calendar_update

        def overtaken(href: str, **fields: Any) -> str:
            answer = update(href, **fields)
            now = fake.versions[href][-1]
            assert now is not None
            fake.write(href, {**now, "summary": "theirs", "etag": '"theirs"'})
            return answer

        fake.calendar_update = overtaken  # type: ignore[method-assign]
        with pytest.raises(Conflict) as caught:
            await cal.update(made.event, {"title": "ours"}, revision=made.revision)
        assert caught.value.details["revision"] == '"theirs"'
        assert caught.value.details["state"] == "done"


async def test_an_edit_in_place_that_is_not_shown_at_once_is_read_once_more() -> None:
    fake = FakeCaldavBlade()
    async with on(fake) as (cal, home):
        create, update = fake.cal_create, fake.cal_update

        def created(**fields: Any) -> str:
            fake.stale["cal_event"] = 1
            return create(**fields)

        def updated(**fields: Any) -> str:
            fake.stale["cal_event"] = 1
            return update(**fields)

        fake.cal_create, fake.cal_update = created, updated  # type: ignore[method-assign]
        made = await cal.create(calendar=home, title="a", **HOUR)
        await cal.update(made.event, {"title": "b", "location": "there"})
        assert (await cal.get(made.event)).title == "b"
        await cal.update(made.event, {"start": "2026-10-27T13:00:00Z", "end": "2026-10-27T14:00:00Z"})
        assert (await cal.get(made.event)).start == "2026-10-27T13:00:00Z"


async def test_a_new_event_in_place_that_the_caller_reads_at_once_is_not_missing() -> None:
    fake = FakeCaldavBlade()
    async with on(fake) as (cal, home):
        made = await cal.create(calendar=home, title="a", **HOUR)
        fake.stale["cal_event"] = 1
        assert (await cal.get(made.event)).title == "a"
        assert fake.stale["cal_event"] == 0


@pytest.mark.parametrize("stale", [{"cal_event": 1, "cal_events": 1}, {"cal_event": 2}])
async def test_a_write_that_no_way_shows_is_in_doubt_and_never_not_found(stale: dict[str, int]) -> None:
    fake = FakeCaldavBlade()
    async with on(fake) as (cal, home):
        create = fake.cal_create

        def created(**fields: Any) -> str:
            fake.stale.update(stale)
            return create(**fields)

        fake.cal_create = created  # type: ignore[method-assign]
        with pytest.raises(InDoubt):
            await cal.create(calendar=home, title="a", **HOUR)


async def test_what_was_really_not_kept_is_still_said_after_the_second_look() -> None:
    fake = FakeCaldavBlade()
    async with on(fake) as (cal, home):
        create = fake.cal_create
        fake.cal_create = lambda **fields: create(**{**fields, "location": ""})  # type: ignore[method-assign]
        with pytest.raises(Internal, match="did not keep location"):
            await cal.create(calendar=home, title="a", location="here", **HOUR)
