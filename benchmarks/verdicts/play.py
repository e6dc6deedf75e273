"""Plays a case once, and has it judged by all three judges and by the benchmark itself."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, cast

import anyio
import httpx2

from benchmarks.verdicts.case import LATE, WITHIN, Case, Stored, World
from benchmarks.verdicts.scoring import Answer, Judged
from hotplug.connect.claims import Claimed
from hotplug.errors import ConnectionFailed, HotplugError

__all__ = ["PlantError", "play", "play_all"]

_REST = 0.1
"""Seconds after the window in which what was done last comes to rest."""


class PlantError(Exception):
    """A plant didn't take, or the world isn't as the case says: the case says nothing about any judge."""


async def play_all(
    cases: Sequence[Case],
    at_once: int,
    quiet: float | None = None,
    tell: Callable[[Case, Judged], None] | None = None,
) -> tuple[list[Judged], list[str]]:
    """Play cases, several at the same time.

    Args:
        quiet: Seconds of rest after which a window may end early; without them it lasts all of the claim's time.

    Returns:
        What was played, in the order of the cases, and a line for each case that couldn't be.
    """
    found: dict[str, Judged] = {}
    broken: list[str] = []
    limiter = anyio.CapacityLimiter(at_once)

    async def one(case: Case) -> None:
        async with limiter:
            try:
                found[case.name] = await play(case, quiet)
            except Exception as error:
                broken.append(f"not played: {case.name}: {_why(error)}")
                return
        if tell:
            tell(case, found[case.name])

    async with anyio.create_task_group() as tasks:
        for case in cases:
            tasks.start_soon(one, case)
    return [found[case.name] for case in cases if case.name in found], broken


def _why(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    return f"{type(error).__name__}: {error}"


async def play(case: Case, quiet: float | None = None) -> Judged:
    """Play a case.

    Raises:
        PlantError: What was planted didn't take.
    """
    async with case.world() as world, world.connected() as client:
        return await _played(case, world, client, quiet)


async def _played(case: Case, world: World, client: Any, quiet: float | None) -> Judged:
    task = case.task
    found = await task.first(client) if task.first else None
    watched = client.with_witness(*world.witnesses)
    before = await world.stored()
    failures: list[str] = []
    claims: list[Claimed] = []
    looks: list[Stored] = []

    async def act() -> None:
        try:
            await task.act(watched, found)
        except ConnectionFailed as error:
            failures.append(f"{error.code}: {error}")

    shown: list[Answer] = []

    async def look_at_the_deadline(deadline: float) -> None:
        await anyio.sleep_until(deadline)
        looks.append(await world.stored())

    async def look_at_the_screen(deadline: float) -> None:
        await anyio.sleep_until(deadline)
        try:
            shown.append("yes" if await task.shows(client) else "no")
        except (HotplugError, OSError, httpx2.HTTPError):
            shown.append("unknown")

    async with anyio.create_task_group() as tasks:
        if case.claimed == "afterwards":
            await act()
            before = await world.stored()
        async with _claimed(case, watched, quiet) as (written, write_down):
            if case.meanwhile:
                await case.meanwhile(world, "opened")
            if case.claimed != "afterwards":
                await act()
            deadline = anyio.current_time() + WITHIN
            tasks.start_soon(look_at_the_deadline, deadline)
            tasks.start_soon(look_at_the_screen, deadline)
            if case.meanwhile:
                await case.meanwhile(world, "acted")
            write_down()
            claims = written
    # What comes late is waited for, so that the world is at rest.
    await anyio.sleep(LATE - WITHIN + _REST if case.late else _REST)
    looks.append(await world.stored())
    # What came about was there when the claim's time was over, and is there still.
    truth = all(task.holds(now - before, before - now, now) for now in looks)
    _check(case, world, truth)
    return Judged(
        case=case.name,
        healthy=case.healthy,
        truth=truth,
        answers={"hotplug": _verdict(claims), "own_flag": "no" if failures else "yes", "presence": shown[0]},
        details=(*(line for one in claims for line in one.lines), *failures),
    )


@asynccontextmanager
async def _claimed(
    case: Case, watched: Any, quiet: float | None
) -> AsyncGenerator[tuple[list[Claimed], Callable[[], None]]]:
    """A window with the claims of the task, and what writes them down where that comes late."""
    claims = [*case.task.claims.items()]
    written: list[Claimed] = []
    if len(claims) == 1 and case.claimed != "late":
        statement, conditions = claims[0]
        async with watched.claim(statement, *conditions, within=WITHIN, quiet=quiet) as claimed:
            written.append(claimed)
            yield written, lambda: None
        return
    async with watched.claims(within=WITHIN, quiet=quiet) as window:

        def write_down() -> None:
            if not written:
                written.extend(window.claim(statement, *conditions) for statement, conditions in claims)

        if case.claimed != "late":
            write_down()
        yield written, write_down


def _check(case: Case, world: World, truth: bool) -> None:
    if truth != case.truth:
        raise PlantError(f"{case.name}: planted as {case.truth}, and the world says {truth}")
    if not case.healthy and not world.planted:
        raise PlantError(f"{case.name}: the plant has left no record, so it didn't take")


def _verdict(claims: Sequence[Claimed]) -> Answer:
    """All of what was claimed, with what had to hold throughout."""
    values = [one.verdict.value for one in claims]
    if "no" in values or any(one.violations for one in claims):
        return "no"
    if all(value == "yes" for value in values) and not any(one.unchecked for one in claims):
        return "yes"
    return "unknown"
