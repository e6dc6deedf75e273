"""What is planted in calendars, and their healthy ones."""

from __future__ import annotations

from typing import Any, Literal, cast

import anyio

from benchmarks.verdicts.calendar_world import CREATE, DELETE, MOVE, THREE, Backend, CalendarWorld, calendar
from benchmarks.verdicts.case import Case, Task, World

__all__ = ["CALENDAR_CASES"]


def _case(
    backend: Backend, task: Task, kind: str, plant: str, text: str = "", *, truth: bool = False, **more: Any
) -> Case:
    return Case(
        name=f"{backend}/{task.name}/{(text or plant).replace(', ', ' ').replace(' ', '-')}",
        kind=kind,
        task=task,
        plant=text or plant,
        truth=truth,
        world=calendar(backend, plant),
        **more,
    )


def _healthy(backend: Backend, task: Task, text: str, plant: str = "", **more: Any) -> Case:
    return _case(backend, task, "healthy", plant, text, truth=True, **more)


async def _others(world: World, when: Literal["opened", "acted"]) -> None:
    """Other people at work in both calendars, all along."""
    kept = cast("CalendarWorld", world)

    async def work() -> None:
        for number in range(6):
            name = "home" if number % 2 else "work"
            await kept.insert(name, f"Other {number}", "2026-06-11T15:00:00Z", "2026-06-11T16:00:00Z")
            await anyio.sleep(0.1)

    if when == "opened":
        kept.tasks.start_soon(work)


SQLITE = (
    _case("sqlite", CREATE, "lying receipt", "does nothing"),
    _case("sqlite", CREATE, "lying event", "does nothing, and tells of the event"),
    _case("sqlite", CREATE, "optimistic page", "does nothing, and shows the event"),
    _case("sqlite", CREATE, "wrong target", "writes to another calendar"),
    _case("sqlite", CREATE, "wrong value", "writes it an hour late"),
    _case("sqlite", CREATE, "wrong value", "writes half its length"),
    _case("sqlite", CREATE, "wrong value", "cuts the title"),
    _case("sqlite", CREATE, "duplicate", "writes it twice"),
    _case("sqlite", CREATE, "collateral", "moves a neighbour too"),
    _case("sqlite", CREATE, "collateral", "deletes another too"),
    _case("sqlite", CREATE, "collateral", "overwrites another"),
    _case("sqlite", CREATE, "rolled back", "takes it back after the answer"),
    _case("sqlite", CREATE, "spoiled later", "takes it back a while later"),
    _case("sqlite", CREATE, "spoiled later", "moves a neighbour a while later"),
    _case("sqlite", CREATE, "late effect", "writes too late", late=True),
    _case("sqlite", CREATE, "crashed subject", "breaks off before it writes"),
    _case("sqlite", CREATE, "lost answer", "breaks off after it wrote", truth=True),
    _case("sqlite", CREATE, "lost answer", "hangs after it wrote", truth=True),
    _case("sqlite", CREATE, "lost answer", "fails after it was done", truth=True),
    _case("sqlite", CREATE, "in doubt", "in doubt, and never done"),
    _case("sqlite", CREATE, "in doubt", "in doubt, and done in time", truth=True),
    _case("sqlite", CREATE, "in doubt", "in doubt, and done too late", late=True),
    _case("sqlite", CREATE, "honest failure", "refuses"),
    _case("sqlite", MOVE, "lying receipt", "does nothing"),
    _case("sqlite", MOVE, "wrong value", "keeps the old end"),
    _case("sqlite", MOVE, "wrong value", "moves it to another day"),
    _case("sqlite", MOVE, "wrong target", "moves a neighbour instead"),
    _case("sqlite", MOVE, "duplicate", "copies it"),
    _case("sqlite", MOVE, "stale", "moves it, and back", "an older version is applied afterwards"),
    _case("sqlite", MOVE, "late effect", "moves it too late", late=True),
    _case("sqlite", MOVE, "collateral", "removes it", "removes it instead"),
    _case("sqlite", DELETE, "lying receipt", "does nothing"),
    _case("sqlite", DELETE, "optimistic page", "hides it and keeps it"),
    _case("sqlite", DELETE, "wrong target", "deletes another instead"),
    _case("sqlite", DELETE, "collateral", "deletes another too"),
    _case("sqlite", DELETE, "rolled back", "removes it, and restores it"),
    _case("sqlite", DELETE, "effect elsewhere", "puts it into another calendar"),
    _case("sqlite", DELETE, "late effect", "removes it too late", late=True),
)

FOLDER = (
    _case("folder", CREATE, "lying receipt", "does nothing"),
    _case("folder", CREATE, "optimistic page", "does nothing, and shows the event"),
    _case("folder", CREATE, "wrong target", "writes to another calendar"),
    _case("folder", CREATE, "duplicate", "writes it twice"),
    _case("folder", CREATE, "collateral", "deletes another too"),
    _case("folder", CREATE, "late effect", "writes too late", late=True),
    _case("folder", MOVE, "wrong value", "keeps the old end"),
    _case("folder", DELETE, "optimistic page", "hides it and keeps it"),
    _case("folder", DELETE, "wrong target", "deletes another instead"),
)

CALDAV = (
    _case("caldav", CREATE, "lying receipt", "does nothing"),
    _case("caldav", CREATE, "success text over failure", "says success over a failure"),
    _case("caldav", CREATE, "wrong target", "writes to another calendar"),
    _case("caldav", CREATE, "duplicate", "writes it twice"),
    _case("caldav", CREATE, "late effect", "writes too late", late=True),
    _case("caldav", CREATE, "lost answer", "fails after it was done", truth=True),
    _case("caldav", MOVE, "wrong value", "keeps the old end"),
    _case("caldav", DELETE, "wrong target", "deletes another instead"),
)

HEALTHY = (
    _healthy("sqlite", CREATE, "plain"),
    _healthy("sqlite", CREATE, "done slowly", "writes slowly"),
    _healthy("sqlite", CREATE, "others at work", meanwhile=_others),
    _healthy("sqlite", MOVE, "plain"),
    _healthy("sqlite", MOVE, "done slowly", "moves it slowly"),
    _healthy("sqlite", DELETE, "plain"),
    _healthy("sqlite", DELETE, "done slowly", "removes it slowly"),
    _healthy("sqlite", THREE, "three claims"),
    _healthy("folder", CREATE, "plain"),
    _healthy("folder", CREATE, "others at work", meanwhile=_others),
    _healthy("folder", MOVE, "plain"),
    _healthy("folder", DELETE, "plain"),
    _healthy("folder", THREE, "three claims"),
    _healthy("caldav", CREATE, "plain"),
    _healthy("caldav", CREATE, "others at work", meanwhile=_others),
    _healthy("caldav", MOVE, "plain"),
    _healthy("caldav", DELETE, "plain"),
)

CALENDAR_CASES = (*SQLITE, *FOLDER, *CALDAV, *HEALTHY)
