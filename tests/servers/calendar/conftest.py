"""The same engine over both storages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hotplug.servers.calendar import CalendarEngine, CalendarEntry, FolderStorage, SqliteStorage

Opener = Callable[[], CalendarEngine]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def _clock() -> Callable[[], datetime]:
    now = datetime(2026, 6, 1, 12, tzinfo=UTC)

    def tick() -> datetime:
        nonlocal now
        now += timedelta(seconds=1)
        return now

    return tick


@pytest.fixture(params=["sqlite", "folder"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opener]:
    """Opens the same calendars once more, as another process would."""
    made: list[CalendarEngine] = []

    def another() -> CalendarEngine:
        if request.param == "sqlite":
            calendars = [CalendarEntry("home", "Home", "Europe/Berlin"), CalendarEntry("work", "Work")]
            storage: SqliteStorage | FolderStorage = SqliteStorage(tmp_path / "calendar.db", calendars)
        else:
            for name in ("home", "work"):
                (tmp_path / "folder" / name).mkdir(parents=True, exist_ok=True)
            (tmp_path / "folder" / "home" / ".calendar.json").write_text('{"name": "Home", "zone": "Europe/Berlin"}')
            (tmp_path / "folder" / "work" / ".calendar.json").write_text('{"name": "Work"}')
            storage = FolderStorage(tmp_path / "folder")
        made.append(CalendarEngine(storage, clock=_clock()))
        return made[-1]

    yield another
    for engine in made:
        engine.storage.close()


@pytest.fixture
def engine(opened: Opener) -> CalendarEngine:
    return opened()
