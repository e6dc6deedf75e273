"""The door: what importing costs, what targets lead to, who closes what."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import hotplug
from hotplug import connect
from hotplug.catalog import Calendar
from hotplug.errors import ConfigError, ConnectError, ConnectionFailed, StoreError
from hotplug.store import memory, open_store

pytestmark = pytest.mark.anyio

HEAVY = [
    "mcp",
    "mcp_types",
    "fastmcp",
    "pydantic",
    "pydantic_core",
    "icalendar",
    "jsonschema",
    "rich",
    "typer",
    "anyio",
]


@pytest.mark.parametrize(
    ("line", "allowed"),
    [
        ("import hotplug", []),
        ("from hotplug import ConnectionFailed, HotplugError", []),
        ("from hotplug.catalog import Calendar", ["pydantic", "pydantic_core"]),
    ],
)
def test_importing_loads_nothing_heavy_before_it_is_used(line: str, allowed: list[str]) -> None:
    code = f"{line}\nimport json, sys\nprint(json.dumps([name for name in {HEAVY!r} if name in sys.modules]))"
    src = str(Path(__file__).parents[1] / "src")
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": src},
    )
    assert set(json.loads(done.stdout)) <= set(allowed)


def test_the_root_shows_what_users_write_and_nothing_else() -> None:
    import hotplug.connect as package

    assert callable(hotplug.connect)
    assert package is not hotplug.connect or callable(package)
    for name in hotplug.__all__:
        assert getattr(hotplug, name) is not None
    with pytest.raises(AttributeError, match="nonsense"):
        _ = hotplug.nonsense  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "first", ["hotplug.connect.client", "hotplug.connect.spoken", "hotplug.door", "hotplug.connect"]
)
def test_functions_are_found_whatever_was_imported_before(first: str) -> None:
    code = (
        f"import {first}\nfrom hotplug.connect import speaks, typed_client\n"
        "assert callable(typed_client) and callable(speaks)"
    )
    code += "\nimport hotplug\nassert callable(hotplug.connect)"
    src = str(Path(__file__).parents[1] / "src")
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60, env={**os.environ, "PYTHONPATH": src})


EVENT = {"title": "x", "start": "2026-06-11T17:00:00", "duration": "PT1H", "time_zone": "Asia/Jerusalem"}


async def test_a_sqlite_calendar_works_with_its_own_store_and_with_any_other(tmp_path: Path) -> None:
    path = tmp_path / "a?b=c%20.db"
    async with memory() as other, open_store(f"sqlite:///{tmp_path}/other.db") as third:
        for store in (None, other, third):
            async with connect(Calendar, f"sqlite:///{path}", store=store) as calendar:
                where = (await calendar.calendars()).calendars[0].calendar
                keyed = calendar.using(key=f"k-{store}")
                first = await keyed.create(calendar=where, **EVENT)  # type: ignore[typeddict-item]
                assert await keyed.create(calendar=where, **EVENT) == first  # type: ignore[typeddict-item]
    async with connect(Calendar, "sqlite:///:memory:") as calendar:
        where = (await calendar.calendars()).calendars[0].calendar
        assert (await calendar.create(calendar=where, **EVENT)).revision  # type: ignore[typeddict-item]


async def test_a_file_of_another_program_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("no database at all, but somebody's notes")
    before = path.read_bytes()
    with pytest.raises(StoreError):
        async with connect(Calendar, f"sqlite:///{path}"):
            pass
    assert path.read_bytes() == before


async def test_a_target_that_cannot_be_reached_or_speaks_no_calendar_says_so(tmp_path: Path) -> None:
    from mcp.server import MCPServer

    silent = MCPServer("other")
    with pytest.raises(ConnectError, match="calendar"):
        async with connect(Calendar, silent, store=memory()):
            pass
    with pytest.raises((ConfigError, ConnectError)):
        async with connect(Calendar, str(tmp_path / "no-such-file.py")):
            pass
    with pytest.raises(ConfigError):
        async with connect(Calendar, object()):
            pass


async def test_refs_of_one_calendar_are_none_of_another(tmp_path: Path) -> None:
    async with (
        connect(Calendar, f"sqlite:///{tmp_path}/a.db") as one,
        connect(Calendar, f"sqlite:///{tmp_path}/b.db") as two,
    ):
        where = (await one.calendars()).calendars[0].calendar
        made = await one.create(calendar=where, **EVENT)  # type: ignore[typeddict-item]
        with pytest.raises(ConnectionFailed) as caught:
            await two.get(made.event)
        assert caught.value.code == "not_found"
        with pytest.raises(ConnectionFailed):
            await two.create(calendar=where, **EVENT)  # type: ignore[typeddict-item]


async def test_what_a_server_says_besides_a_result_reaches_who_connects(tmp_path: Path) -> None:
    said: list[tuple[str, str]] = []
    async with (
        memory() as store,
        connect(Calendar, f"folder:{tmp_path}", store=store, on_note=lambda *note: said.append(note)) as calendar,
    ):
        where = (await calendar.calendars()).calendars[0].calendar
        rules: Any = '[{"frequency": "weekly", "count": 2}]'
        await calendar.create(
            calendar=where, title="x", start="2026-10-26T13:00:00Z", duration="PT1H", recurrence_rules=rules
        )
    assert [part for part, _ in said] == ["calendar.create"]
    assert "recurrenceRules" in said[0][1]
