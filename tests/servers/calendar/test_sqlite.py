"""What is particular to a SQLite file: one transaction with the caller's own, formats, several files at once."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from hotplug.errors import InvalidArgument, StoreError
from hotplug.servers.calendar import CalendarEngine, CalendarEntry, SqliteStorage

pytestmark = pytest.mark.anyio

MEETING: dict[str, Any] = {
    "calendar": "calendar",
    "title": "Planning",
    "start": "2026-06-11T14:00:00Z",
    "duration": "PT1H",
}
JUNE = ("2026-06-01T00:00:00Z", "2026-07-01T00:00:00Z")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def test_the_callers_rows_commit_with_the_effect_or_not_at_all(tmp_path: Path) -> None:
    storage = SqliteStorage(tmp_path / "calendar.db")
    engine = CalendarEngine(storage)
    with storage.transaction() as connection:
        connection.execute("create table done (key text primary key, event text)")

    def remember(connection: sqlite3.Connection, effect: Any) -> None:
        connection.execute("insert into done values ('key', ?)", (effect.event,))

    effect = await engine.create(MEETING, also=remember)
    with pytest.raises(sqlite3.IntegrityError):
        await engine.create(MEETING, also=remember)
    with pytest.raises(sqlite3.IntegrityError):
        await engine.delete(effect.event, also=remember)
    found, _ = await engine.search(*JUNE)
    assert [each["event"] for each in found] == [effect.event]
    assert (await engine.deleted_since())[0] == []
    with storage.transaction() as connection:
        assert connection.execute("select event from done").fetchall() == [(effect.event,)]
    await engine.close()


async def test_a_transaction_inside_another_is_part_of_it(tmp_path: Path) -> None:
    storage = SqliteStorage(tmp_path / "calendar.db")

    def change() -> None:
        with storage.transaction() as connection:
            with storage.transaction():
                connection.execute("insert into calendar_calendars values ('x', 'X', null, 1)")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        change()
    assert [each.id for each in storage.calendars()] == ["calendar"]
    storage.close()


async def test_participants_alerts_and_every_character_are_kept(tmp_path: Path) -> None:
    engine = CalendarEngine(SqliteStorage(tmp_path / "calendar.db"))
    more = {
        "participants": {"a": {"name": "Ä", "email": "a@example.org"}},
        "alerts": {"1": {"trigger": {"@type": "OffsetTrigger", "offset": "-PT15M"}, "action": "email"}},
        "title": "a\x00b\r\nc\x1b",
    }
    wire = await engine.get((await engine.create({**MEETING, **more})).event)
    assert {name: wire[name] for name in more} == more
    await engine.close()


async def test_the_second_of_two_equal_times_is_kept(tmp_path: Path) -> None:
    engine = CalendarEngine(SqliteStorage(tmp_path / "calendar.db"))
    fields = {**MEETING, "start": "2026-10-25T02:30:00+01:00", "timeZone": "Europe/Berlin"}
    wire = await engine.get((await engine.create(fields)).event)
    assert wire["start"] == "2026-10-25T02:30:00+01:00"
    await engine.close()


def test_calendars_are_made_once_and_stay_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "calendar.db"
    for name in ("Work", "Other name"):
        storage = SqliteStorage(path, [CalendarEntry("work", name, "Europe/Berlin", writable=False)])
        assert storage.calendars() == [CalendarEntry("work", "Work", "Europe/Berlin", writable=False)]
        storage.close()


def test_a_file_of_a_newer_build_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "calendar.db"
    SqliteStorage(path).close()
    connection = sqlite3.connect(path)
    connection.execute("update calendar_format set version = 99")
    connection.commit()
    connection.close()
    with pytest.raises(StoreError, match="99"):
        SqliteStorage(path)
    (tmp_path / "text.db").write_text("this is no database at all, but it is long enough to be looked at")
    with pytest.raises(StoreError, match=r"text\.db"):
        SqliteStorage(tmp_path / "text.db")


async def test_a_cursor_that_is_none_is_refused(tmp_path: Path) -> None:
    engine = CalendarEngine(SqliteStorage(tmp_path / "calendar.db"))
    with pytest.raises(InvalidArgument, match="cursor"):
        await engine.deleted_since("x")
    await engine.close()
