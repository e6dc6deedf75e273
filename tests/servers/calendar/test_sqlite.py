"""What is particular to a SQLite file: one transaction with the caller's own, formats, several files at once."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hotplug.errors import InvalidArgument, NotFound, StoreError, Unavailable
from hotplug.servers import native
from hotplug.servers.calendar import CalendarEngine, CalendarEntry, Problem, SqliteStorage
from hotplug.servers.calendar.server import SqliteCalendar

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


async def test_participants_and_alerts_that_send_mail_are_kept(tmp_path: Path) -> None:
    engine = CalendarEngine(SqliteStorage(tmp_path / "calendar.db"))
    more = {
        "participants": {"a": {"name": "Ä", "email": "a@example.org"}},
        "alerts": {"1": {"trigger": {"@type": "OffsetTrigger", "offset": "-PT15M"}, "action": "email"}},
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


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        ("substr(body, 1, 40)", "it is no JSON"),
        ("'[]'", "it is no event"),
        ("'{}'", "it has no 'when'"),
        ("x'ff00'", "it is no UTF-8"),
        ("cast(x'7bff7d' as text)", "it is no UTF-8"),
        ("replace(hex(zeroblob(100000)), '0', '[')", "it is no"),
        ("json_remove(body, '$.title')", "it is no event"),
        ("json_set(body, '$.title', 5)", "title is int"),
        ("json_set(body, '$.when[0]', 'sometimes')", "it is no event"),
        ("json_set(body, '$.when[1]', 'yesterday')", "yesterday"),
        ('json_set(body, \'$.when\', json(\'["zoned", "2026-06-11T14:00:00", 0, 0, "Nowhere", 0]\'))', "Nowhere"),
        ("json_set(body, '$.rules', json('[{\"until\": null, \"rule\": {}}]'))", "it is no event"),
    ],
)
async def test_a_damaged_row_is_reported_and_hides_no_other(tmp_path: Path, damage: str, reason: str) -> None:
    storage = SqliteStorage(tmp_path / "calendar.db")
    engine = CalendarEngine(storage)
    bad, good = [(await engine.create(MEETING)).event for _ in range(2)]
    with storage.transaction() as connection:
        connection.execute(f"update calendar_events set body = {damage} where uid = ?", (bad,))
        before = connection.execute("select revision, hex(body) from calendar_events where uid = ?", (bad,)).fetchone()
    told: list[Problem] = []
    found, _ = await engine.search(*JUNE, unread=told.extend)
    assert [each["event"] for each in found] == [good]
    assert [(bad in each.place, reason in each.reason) for each in told] == [(True, True)]
    assert await engine.problems() == told
    for refused in (engine.get(bad), engine.update(bad, {"title": "x"}), engine.delete(bad)):
        with pytest.raises(Unavailable) as caught:
            await refused
        assert caught.value.details["problems"] == [str(told[0])]
    with pytest.raises(NotFound):
        await engine.get("another")
    with storage.transaction() as connection:
        assert (
            connection.execute("select revision, hex(body) from calendar_events where uid = ?", (bad,)).fetchone()
            == before
        )
        connection.execute("delete from calendar_events where uid = ?", (bad,))
    assert await engine.problems() == []
    await engine.close()


async def test_rows_that_hold_no_json_are_reported_before_any_search(tmp_path: Path) -> None:
    path = tmp_path / "calendar.db"
    engine = CalendarEngine(SqliteStorage(path))
    uid = (await engine.create(MEETING)).event
    await engine.close()
    connection = sqlite3.connect(path)
    connection.execute("update calendar_events set body = 'x'")
    connection.commit()
    connection.close()
    engine = CalendarEngine(SqliteStorage(path))
    (problem,) = await engine.problems()
    assert uid in str(problem)
    assert "can't be read: it is no JSON" in str(problem)
    await engine.close()


@pytest.mark.parametrize("opened", [lambda path: native("sqlite", path), SqliteStorage], ids=["target", "storage"])
def test_a_file_in_a_folder_that_is_not_there_is_refused_and_nothing_made(
    tmp_path: Path, opened: Callable[[str], Any]
) -> None:
    with pytest.raises(StoreError, match=r"no folder '.*y' for the calendar file 'x\.db'"):
        opened(str(tmp_path / "typo" / "y" / "x.db"))
    assert list(tmp_path.iterdir()) == []


async def test_a_new_file_in_a_folder_that_is_there_is_made(tmp_path: Path) -> None:
    server, store, _ = native("sqlite", str(tmp_path / "x.db"))
    assert (tmp_path / "x.db").is_file()
    assert isinstance(server, SqliteCalendar)
    assert store is not None
    await server.aclose()
    await store.aclose()
