"""Field reports about evidence, FR-19 and FR-37 to FR-42, with the real calendars and witnesses."""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import pytest

from hotplug import ConnectionFailed, connect, state
from hotplug.catalog import Calendar
from hotplug.catalog.calendar import Deleted, EventRef, Written
from hotplug.errors import Conflict, NotFound, Timeout
from hotplug.servers.calendar.server import FolderCalendar, SqliteCalendar
from hotplug.store import open_store
from hotplug.witness import CalendarFolder, CalendarTables, SqlQuery

pytestmark = pytest.mark.anyio

KINDS = ["sqlite", "folder"]
CREATED = "calendar.event * created"
DELETED = "calendar.event * deleted"
START = {"start": "2026-10-26T13:00:00Z", "duration": "PT1H"}


def witness(kind: str, folder: Path) -> CalendarTables | CalendarFolder:
    return CalendarTables(folder / "c.db") if kind == "sqlite" else CalendarFolder(folder / "cal")


@asynccontextmanager
async def watched(
    kind: str, folder: Path, lie: type[Any] | None = None
) -> AsyncGenerator[tuple[Calendar, CalendarTables | CalendarFolder]]:
    """A calendar with its witness; with `lie`, served by a native calendar with these methods in front."""
    eye = witness(kind, folder)
    honest = SqliteCalendar if kind == "sqlite" else FolderCalendar
    path = folder / ("c.db" if kind == "sqlite" else "cal")
    scheme = "sqlite:///" if kind == "sqlite" else "folder:"
    target: Any = type("FakeLying", (lie, honest), {})(path) if lie else f"{scheme}{path}"
    async with (
        open_store(f"sqlite:///{folder}/records.db") as store,
        connect(Calendar, target, store=store if lie else None) as calendar,
    ):
        yield calendar.with_witness(eye), eye


async def first(calendar: Calendar) -> Any:
    return (await calendar.calendars()).calendars[0].calendar


class SaysCreated:
    """Answers as if it had stored the event, and stores nothing."""

    async def create(self, **event: Any) -> Any:
        return Written(event=EventRef("never-stored"))


class SaysDeleted:
    """Answers as if the event were gone, and keeps it."""

    async def delete(self, event: Any, **_: Any) -> Any:
        return Deleted()


@pytest.mark.parametrize("kind", KINDS)
async def test_fr37_an_accepted_act_that_does_nothing_is_dispatched_and_not_achieved(kind: str, tmp_path: Path) -> None:
    async with watched(kind, tmp_path, SaysCreated) as (calendar, _):
        where = await first(calendar)
        async with calendar.claim("it is stored", state(CREATED).exactly(1), within="500ms") as claim:
            made = await calendar.create(calendar=where, title="Lunch", **START)
    assert made.receipt.dispatched
    assert [one.dispatched for one in claim.run.receipts] == [True]
    assert (claim.verdict.value, claim.verdict.ground) == ("no", "assertion-failed")


@pytest.mark.parametrize("kind", KINDS)
async def test_fr37_an_expectation_that_held_already_before_the_act_is_not_verified(kind: str, tmp_path: Path) -> None:
    async with watched(kind, tmp_path) as (calendar, eye):
        where = await first(calendar)
        await calendar.create(calendar=where, title="Lunch", **START)
        there = eye.state("calendar.event.count = 1").present()
        async with calendar.claim("there is one event", there) as claim:
            with pytest.raises(ConnectionFailed):  # a local start that names no zone is refused
                await calendar.create(calendar=where, title="Lunch", start="2026-10-26T13:00:00", duration="PT1H")
    assert (claim.verdict.value, claim.verdict.ground) == ("unknown", "already-true")


@pytest.mark.parametrize("kind", KINDS)
async def test_fr38_a_target_that_was_changed_or_replaced_since_it_was_read_is_refused(
    kind: str, tmp_path: Path
) -> None:
    async with watched(kind, tmp_path) as (calendar, _):
        where = await first(calendar)
        made = await calendar.create(calendar=where, title="Lunch", **START)
        read = await calendar.get(event=made.event)
        # Something comes before it, as a row above it would, and somebody else changes it.
        await calendar.create(calendar=where, title="Breakfast", start="2026-10-26T07:00:00Z", duration="PT1H")
        await calendar.update(event=made.event, changes={"title": "Late lunch"})
        async with calendar.claim("the neighbour stays", state(DELETED).exactly(1), within="300ms") as claim:
            with pytest.raises(Conflict):
                await calendar.delete(event=made.event, revision=read.revision)
        assert claim.verdict.value == "no", "nothing was deleted, the neighbour neither"
        await calendar.delete(event=made.event)
        replaced = await calendar.create(calendar=where, title="Late lunch", **START)
        with pytest.raises(NotFound):
            await calendar.update(event=made.event, changes={"title": "Dinner"})
        assert (await calendar.get(event=replaced.event)).title == "Late lunch"


@pytest.mark.parametrize("kind", KINDS)
async def test_fr39_text_is_read_back_where_it_is_held_in_full_unicode(kind: str, tmp_path: Path) -> None:
    greeting = "Grüße 👋🏽"
    async with watched(kind, tmp_path) as (calendar, eye):
        where = await first(calendar)
        held = eye.state(CREATED).containing(f'"title":"{greeting}"').exactly(1)
        async with calendar.claim("the greeting arrives intact", held) as claim:
            await calendar.create(calendar=where, title=greeting, **START)
    assert claim.verdict.ground == "proved"


class DropsText:
    """Stores the event without its title, and answers as if it had it."""

    async def create(self, **event: Any) -> Any:
        return await super().create(**{**event, "title": "?"})  # type: ignore[misc]


@pytest.mark.parametrize("kind", KINDS)
async def test_fr39_what_a_server_only_says_that_it_holds_is_not_verified(kind: str, tmp_path: Path) -> None:
    async with watched(kind, tmp_path, DropsText) as (calendar, eye):
        where = await first(calendar)
        held = eye.state(CREATED).containing('"title":"Lunch"').exactly(1)
        async with calendar.claim("it is stored with its title", held, within="500ms") as claim:
            await calendar.create(calendar=where, title="Lunch", **START)
    assert (claim.verdict.value, claim.verdict.ground) == ("no", "assertion-failed")


@pytest.mark.parametrize("kind", KINDS)
async def test_fr40_deletion_is_proved_by_absence_from_where_it_would_show(kind: str, tmp_path: Path) -> None:
    async with watched(kind, tmp_path) as (calendar, _):
        where = await first(calendar)
        made = await calendar.create(calendar=where, title="Lunch", **START)
        async with calendar.claim("it is gone", state(DELETED).exactly(1)) as claim:
            await calendar.delete(event=made.event)
    assert claim.verdict.ground == "proved"


@pytest.mark.parametrize("kind", KINDS)
async def test_fr40_a_server_that_says_deleted_while_it_is_still_there_has_failed(kind: str, tmp_path: Path) -> None:
    async with watched(kind, tmp_path, SaysDeleted) as (calendar, _):
        where = await first(calendar)
        made = await calendar.create(calendar=where, title="Lunch", **START)
        async with calendar.claim("it is gone", state(DELETED).exactly(1), within="500ms") as claim:
            await calendar.delete(event=made.event)
    assert (claim.verdict.value, claim.verdict.ground) == ("no", "assertion-failed")


@pytest.mark.parametrize("kind", KINDS)
async def test_fr40_a_listing_that_fails_leaves_a_deletion_unknown(kind: str, tmp_path: Path) -> None:
    async with watched(kind, tmp_path) as (calendar, _):
        where = await first(calendar)
        made = await calendar.create(calendar=where, title="Lunch", **START)
        path = tmp_path / ("c.db" if kind == "sqlite" else "cal")
        async with calendar.claim("it is gone", state(DELETED).exactly(1), within="300ms") as claim:
            await calendar.delete(event=made.event)
            moved = path.rename(tmp_path / "elsewhere")
            if kind == "sqlite":
                path.mkdir()
        if kind == "sqlite":
            path.rmdir()
        moved.rename(path)
    assert (claim.verdict.value, claim.verdict.ground) == ("unknown", "coverage-impeached")


class LosesTheAnswer:
    """Stores the event, and the answer is lost the first time."""

    lost = False

    async def create(self, **event: Any) -> Any:
        made = await super().create(**event)  # type: ignore[misc]
        if not type(self).lost:
            type(self).lost = True
            raise Timeout("the answer was lost", details={"state": "unknown"})
        return made


@pytest.mark.parametrize("kind", KINDS)
async def test_fr41_one_intention_repeated_under_its_key_is_at_most_one_event(kind: str, tmp_path: Path) -> None:
    LosesTheAnswer.lost = False
    async with watched(kind, tmp_path, LosesTheAnswer) as (calendar, _):
        where = await first(calendar)
        async with calendar.claim("it is stored once", state(CREATED).exactly(1)) as claim:
            keyed = calendar.using(key="the lunch")
            for _ in range(3):
                with pytest.raises(ConnectionFailed) as failed:
                    await keyed.create(calendar=where, title="Lunch", **START)
                assert failed.value.details["state"] == "unknown"
    assert claim.verdict.ground == "proved"
    assert len([one for one in claim.seen if one.endswith(" created")]) == 1


async def test_fr42_a_source_that_fails_for_one_item_is_not_read_as_its_absence(tmp_path: Path) -> None:
    async with watched("folder", tmp_path) as (calendar, _):
        where = await first(calendar)
        made = await calendar.create(calendar=where, title="Lunch", **START)
        (file,) = (tmp_path / "cal").rglob("*.ics")
        async with calendar.claim("it is gone", state(DELETED).exactly(1), within="300ms") as claim:
            # As an answer of 500 for one item: it is listed, and can't be read.
            body = file.read_bytes()
            file.write_bytes(b"\x00 not a calendar")
        file.write_bytes(body)
        assert (claim.verdict.value, claim.verdict.ground) == ("unknown", "coverage-impeached")
        assert (await calendar.get(event=made.event)).title == "Lunch"


async def test_fr42_a_partial_page_is_not_read_as_absence(tmp_path: Path) -> None:
    path = tmp_path / "c.db"
    pages = SqlQuery(f"sqlite:///{path}", query="select uid from calendar_events", kind="event", limit=2, name="pages")
    async with connect(Calendar, f"sqlite:///{path}") as plain:
        calendar = plain.with_witness(pages)
        where = await first(calendar)
        for title in ("a", "b", "c"):
            await calendar.create(calendar=where, title=title, **START)
        async with calendar.claim(
            "a third is gone", pages.state("event * deleted").exactly(1), within="300ms"
        ) as claim:
            pass
    assert (claim.verdict.value, claim.verdict.ground) == ("unknown", "coverage-impeached")


SECRET = 'tök"en/+ 9f8e7d6c'


async def test_fr19_a_secret_is_in_no_file_that_a_run_writes_nor_in_its_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    database = tmp_path / "world.db"
    import sqlite3

    world = sqlite3.connect(database)
    world.execute("create table mails (id integer primary key, api_token text, body text)")
    world.commit()
    mails = SqlQuery(f"sqlite:///{database}", query="select id, api_token, body from mails", kind="mail", name="mails")
    out = tmp_path / "out"
    out.mkdir()
    async with connect(Calendar, f"sqlite:///{tmp_path}/c.db") as plain:
        calendar = plain.with_witness(mails)
        where = await first(calendar)
        goes_out = mails.state("mail * created").exactly(1)
        async with calendar.recorded() as recording, calendar.claim("a mail goes out", goes_out) as claim:
            await calendar.create(calendar=where, title="Lunch", **START)
            world.execute("insert into mails (api_token, body) values (?, ?)", (SECRET, "hello"))
            world.commit()
        recording.save(out / "run.json")
    world.close()
    (out / "claim.txt").write_text(str(claim), encoding="utf-8")
    (out / "log.txt").write_text(caplog.text, encoding="utf-8")
    assert claim.verdict.ground == "proved"
    assert "redacted" in {one.kind for one in claim.blind_spots or ()}
    raw = base64.b64encode(SECRET.encode()).decode().rstrip("=")
    for form in (SECRET, quote(SECRET), quote(SECRET, safe=""), quote_plus(SECRET), json.dumps(SECRET)[1:-1], raw[:-1]):
        for file in out.iterdir():
            assert form not in file.read_text(encoding="utf-8"), f"{file.name} has {form}"
