"""Journeys checked before they are played: everything that is missing, at once, and nothing called that changes."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.conform.liars import ACTS, STORED, journey, served
from tests.connect.claims.eyes import FakeEyes

from hotplug import connect
from hotplug.catalog import Calendar
from hotplug.conform.journey import BackendCheck, Journey, check, load
from hotplug.connect import link_of
from hotplug.examples import CALENDAR_DAY
from hotplug.profile import Part
from hotplug.servers.calendar.server import FolderCalendar
from hotplug.store import memory
from hotplug.witness import CalendarTables

pytestmark = pytest.mark.anyio


@pytest.fixture
async def calendar(tmp_path: Path) -> AsyncGenerator[Calendar]:
    async with connect(Calendar, f"sqlite:///{tmp_path}/c.db") as connected:
        yield connected


async def checked(document: Journey, calendar: Calendar, witness: Any = None) -> BackendCheck:
    return await check(document, link_of(calendar), name="it", witness=witness)


def kinds(found: BackendCheck) -> list[tuple[str, str, str]]:
    return [(one.step, one.kind, one.missing) for one in found.faults]


async def test_the_day_is_portable_to_a_native_calendar_and_nothing_that_changes_is_called(
    calendar: Calendar, tmp_path: Path
) -> None:
    called: list[Part] = []

    def listen(part: Part, arguments: Mapping[str, Any]) -> None:
        called.append(part)

    link_of(calendar).listeners.append(listen)
    found = await checked(load(CALENDAR_DAY), calendar, CalendarTables(tmp_path / "c.db"))
    assert found.portable
    assert found.absent == ()
    assert found.may_refuse == ("keep 9 o'clock in Berlin", "keep 7 o'clock anywhere", "keep a whole day")
    assert [part.name for part in called] == ["connection.describe"]


async def test_every_fault_of_every_step_is_said_at_once(calendar: Calendar) -> None:
    document = journey(
        {**ACTS["create"], "with": {"calender": "x", "title": "y", "start": "z", "recurrenceRules": [{"evry": 1}]}},
        {"name": "odd", "do": "calendar.frobnicate"},
        {**ACTS["find"], "claims": [{"that": "a", "net": "GET /x 200", "exactly": 1}, STORED]},
        {**ACTS["find"], "name": "typo", "needs": {"facet": "revisons"}},
        {**ACTS["create"], "name": "undone", "undo": {"do": "calendar.undo"}},
    )
    found = await checked(document, calendar)
    assert found.portable is False
    assert kinds(found) == [
        ("create", "unknown-argument", "calender"),
        ("create", "unknown-argument", "recurrenceRules[0].evry"),
        ("create", "missing-argument", "calendar"),
        ("odd", "undeclared-capability", "calendar.frobnicate"),
        ("find", "unobserved-channel", "net"),
        ("find", "unobserved-channel", "state"),
        ("typo", "undeclared-capability", "revisons"),
        ("undone", "undeclared-capability", "calendar.undo"),
    ]


async def test_what_is_missing_comes_with_what_is_lost_without_it(tmp_path: Path) -> None:
    guests = [{"email": "a@example.org"}]
    invite = {**ACTS["create"], "with": {**ACTS["create"]["with"], "participants": guests}}
    async with memory() as store, served(FolderCalendar(tmp_path / "calendars"), store) as calendar:
        found = await checked(journey(invite), calendar)
    (fault,) = found.faults
    assert (fault.kind, fault.missing) == ("undeclared-capability", "invitations")
    assert fault.without == Calendar.definition.all_facets["invitations"].without


async def test_a_step_that_needs_what_is_not_offered_is_counted_as_absent_and_is_no_fault(tmp_path: Path) -> None:
    optional = {**ACTS["find"], "name": "guests", "needs": {"facet": "invitations"}}
    async with memory() as store, served(FolderCalendar(tmp_path / "calendars"), store) as calendar:
        found = await checked(journey("find", optional), calendar)
    assert found.portable
    assert found.absent == ("guests",)


async def test_whose_eyes_a_claim_reads_by_decides_whether_it_is_watched(calendar: Calendar) -> None:
    def claiming(**claim: Any) -> Journey:
        return journey({**ACTS["find"], "claims": [{"that": "x", "exactly": 1, **claim}]})

    own, by_witness, bare = (
        {"by": "subject", "state": "a b created"},
        {"by": "witness", "state": "a b created"},
        {"net": "GET /x 200"},
    )
    eyes = FakeEyes(senses={"net": {"independence": "independent", "grade": "consequence"}})
    assert (await checked(claiming(**own), calendar)).portable
    assert not (await checked(claiming(**by_witness), calendar)).portable
    assert not (await checked(claiming(**by_witness), calendar, eyes)).portable
    assert (await checked(claiming(**by_witness), calendar, FakeEyes())).portable
    assert not (await checked(claiming(**bare), calendar)).portable
    assert (await checked(claiming(**bare), calendar, eyes)).portable
    assert not (await checked(claiming(by="subject", **bare), calendar, eyes)).portable
