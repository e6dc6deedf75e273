"""What can't be read is said wherever it could be taken for absent (FR-42): in the answer's notes, or by a refusal."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from hotplug.connect import link_of
from hotplug.errors import ConnectionFailed
from hotplug.serve import Runtime
from hotplug.serve.runtime import KEY_META, NOTES_META
from hotplug.servers.calendar.server import FolderCalendar, NativeCalendar
from hotplug.store import memory

from .native import opened

pytestmark = pytest.mark.anyio

JUNE = {"from": "2026-06-01T00:00:00Z", "to": "2026-07-01T00:00:00Z"}
EVENT: dict[str, Any] = {"title": "Planning", "start": "2026-06-11T14:00:00Z", "duration": "PT1H"}


def served(server: NativeCalendar) -> Runtime:
    return Runtime(server, store=memory(), identity="test")


@pytest.fixture
async def runtime(tmp_path: Path) -> AsyncGenerator[Runtime]:
    (tmp_path / "calendar").mkdir()
    (tmp_path / "work").mkdir()
    async with served(FolderCalendar(tmp_path)).opened() as runtime:
        yield runtime


async def calendar(runtime: Runtime, name: str = "calendar") -> str:
    found = (await runtime.call("calendar.calendars", {})).content["calendars"]
    return next(each["calendar"] for each in found if each["name"] == name)


async def made(runtime: Runtime) -> str:
    answer = await runtime.call("calendar.create", {"calendar": await calendar(runtime), **EVENT})
    return answer.content["event"]


async def test_a_search_says_what_it_could_not_read(runtime: Runtime, tmp_path: Path) -> None:
    await made(runtime)
    (tmp_path / "calendar" / "b.ics").write_text("hello")
    answer = await runtime.call("calendar.search", JUNE)
    assert len(answer.content["events"]) == 1
    (note,) = (answer.meta or {})[NOTES_META]
    assert note.startswith("calendar/b.ics can't be read: ")
    assert note.endswith("; it is left as it is")
    inside = await runtime.call("calendar.search", {**JUNE, "calendar": await calendar(runtime)})
    assert (inside.meta or {})[NOTES_META] == [note]
    beside = await runtime.call("calendar.search", {**JUNE, "calendar": await calendar(runtime, "work")})
    assert beside.meta is None
    (tmp_path / "calendar" / "b.ics").unlink()
    assert (await runtime.call("calendar.search", JUNE)).meta is None


async def test_describe_says_what_cannot_be_read(runtime: Runtime, tmp_path: Path) -> None:
    assert "notes" not in (await runtime.call("connection.describe", {})).content
    (tmp_path / "work" / "b.ics").write_text("hello")
    (note,) = (await runtime.call("connection.describe", {})).content["notes"]["calendar.unread"]
    assert note.startswith("work/b.ics can't be read: ")


async def test_many_unread_files_are_counted_rather_than_all_named(runtime: Runtime, tmp_path: Path) -> None:
    for number in range(30):
        (tmp_path / "work" / f"{number:02}.ics").write_text("hello")
    notes = ((await runtime.call("calendar.search", JUNE)).meta or {})[NOTES_META]
    assert (len(notes), notes[-1]) == (21, "10 more can't be read")


@pytest.mark.parametrize("part", ["calendar.get", "calendar.update", "calendar.delete"])
async def test_an_event_whose_file_broke_is_unavailable_and_not_absent(
    runtime: Runtime, tmp_path: Path, part: str
) -> None:
    event = await made(runtime)
    (path,) = (tmp_path / "calendar").glob("*.ics")
    source = path.read_bytes()
    path.write_bytes(source[:-20])
    more: dict[str, Any] = {"changes": {"title": "x"}} if part == "calendar.update" else {}
    answer = await runtime.call(part, {"event": event, **more}, meta={KEY_META: "k"})
    assert (answer.is_error, answer.content["code"]) == (True, "unavailable")
    (problem,) = answer.content["details"]["problems"]
    assert problem.startswith(f"calendar/{path.name} can't be read: ")
    assert path.read_bytes() == source[:-20]
    path.write_bytes(source)
    assert not (await runtime.call(part, {"event": event, **more}, meta={KEY_META: "k"})).is_error


async def test_what_was_deleted_is_absent_whatever_else_cannot_be_read(runtime: Runtime, tmp_path: Path) -> None:
    event = await made(runtime)
    (tmp_path / "work" / "b.ics").write_text("hello")
    assert not (await runtime.call("calendar.delete", {"event": event})).is_error
    answer = await runtime.call("calendar.get", {"event": event})
    assert (answer.content["code"], answer.content["details"]) == ("not_found", {"deleted": True})


async def test_a_second_file_of_an_event_hides_nothing(runtime: Runtime, tmp_path: Path) -> None:
    event = await made(runtime)
    (path,) = (tmp_path / "calendar").glob("*.ics")
    (tmp_path / "work" / "copy.ics").write_bytes(path.read_bytes())
    (note,) = ((await runtime.call("calendar.search", JUNE)).meta or {})[NOTES_META]
    assert note.startswith("work/copy.ics isn't shown: its event ")
    for copy in (path, tmp_path / "work" / "copy.ics"):
        copy.unlink()
    assert (await runtime.call("calendar.get", {"event": event})).content["code"] == "not_found"


async def test_an_id_is_not_taken_as_free_where_something_cannot_be_read(tmp_path: Path) -> None:
    server = FolderCalendar(tmp_path)
    (tmp_path / "calendar" / "b.ics").write_text("hello")
    with pytest.raises(ConnectionFailed) as caught:
        await server._engine.create({"calendar": "calendar", **EVENT}, uid="x")  # pyright: ignore[reportPrivateUsage]
    assert caught.value.code == "unavailable"
    await server.aclose()


async def test_the_notes_of_a_search_come_to_a_connected_client(tmp_path: Path) -> None:
    async with opened("folder", tmp_path) as client:
        (tmp_path / "calendars" / "calendar" / "b.ics").write_text("hello")
        reply = await link_of(client).channel.call("calendar.search", JUNE, meta={})
        assert [each.split(":")[0] for each in reply.meta[NOTES_META]] == ["calendar/b.ics can't be read"]
        described = await link_of(client).channel.call("connection.describe", {}, meta={})
        assert "calendar.unread" in (described.content or {})["notes"]
