"""Claims of a journey's steps: what they come to, what they make of a step, and what is refused in a document."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from tests.conform.liars import ACTS, STORED, ChangesWhatItRefuses, CreatesTwice, journey, served
from tests.connect.claims.eyes import FakeEyes

from hotplug import connect
from hotplug.catalog import Calendar
from hotplug.conform.journey import BackendOutcome, Cell, Journey, load, play
from hotplug.connect import link_of
from hotplug.errors import ConfigError
from hotplug.evidence.checks import verify_run
from hotplug.examples import CALENDAR_DAY
from hotplug.servers.calendar.server import FolderCalendar
from hotplug.store import memory
from hotplug.witness import CalendarFolder, CalendarTables

pytestmark = pytest.mark.anyio

CLAIMED: dict[str, Any] = {**ACTS["create"], "claims": [STORED], "within": "400ms"}


@pytest.fixture
async def calendar(tmp_path: Path) -> AsyncGenerator[Calendar]:
    async with connect(Calendar, f"sqlite:///{tmp_path}/c.db") as connected:
        yield connected


def tables(folder: Path) -> CalendarTables:
    return CalendarTables(folder / "c.db")


async def played(document: Journey, calendar: Calendar, witness: Any = None) -> BackendOutcome:
    return await play(document, link_of(calendar), name="it", via="native", witness=witness)


def cell_of(outcome: BackendOutcome, step: str) -> Cell:
    return next(cell for cell in outcome.cells if cell.step == step)


def verdicts(cell: Cell) -> list[tuple[str, str]]:
    return [(one.verdict, one.ground) for one in cell.claims]


async def test_the_claims_of_a_day_are_proved_by_the_tables_and_the_run_verifies(
    calendar: Calendar, tmp_path: Path
) -> None:
    async with calendar.recorded() as recording:
        outcome = await played(load(CALENDAR_DAY), calendar, tables(tmp_path))
    assert {cell.status for cell in outcome.cells} == {"passed"}
    found = [verdict for cell in outcome.cells for verdict in verdicts(cell)]
    assert found == [("yes", "proved")] * 3
    assert [one.state for cell in outcome.cells for one in cell.constraints] == ["held", "held"]
    assert outcome.document(())["verdicts"] == {"yes": 3}
    assert outcome.undecided == ()
    run = recording.run()
    assert [one.verdict for one in run.verdicts] == ["yes"] * 3
    assert verify_run(run.text()) == ()


async def test_without_a_witness_a_claim_stays_open_and_the_outcome_can_still_be_compared(
    calendar: Calendar, tmp_path: Path
) -> None:
    document = journey("find", CLAIMED)
    alone = await played(document, calendar)
    cell = cell_of(alone, "create")
    assert verdicts(cell) == [("unknown", "channel-not-observed")]
    assert cell.status == "passed"
    assert cell.claims[0].next_move
    assert alone.undecided == ("it is stored",)
    seen = await played(document, calendar, tables(tmp_path))
    assert alone.outcome(document.core) == seen.outcome(document.core) is not None


async def test_the_servers_own_word_is_no_proof(calendar: Calendar, tmp_path: Path) -> None:
    step = {**CLAIMED, "claims": [{**STORED, "by": "subject"}]}
    cell = cell_of(await played(journey("find", step), calendar, tables(tmp_path)), "create")
    assert verdicts(cell) == [("unknown", "no-independent-consequence")]
    assert cell.status == "passed"


async def test_a_claim_that_ends_in_no_fails_its_step_and_says_why(tmp_path: Path) -> None:
    root = tmp_path / "calendars"
    async with memory() as store, served(CreatesTwice(root), store) as calendar:
        cell = cell_of(await played(journey("find", CLAIMED), calendar, CalendarFolder(root)), "create")
    assert verdicts(cell) == [("no", "assertion-failed")]
    assert cell.status == "failed"
    assert cell.message == "it is stored: no (assertion-failed)"


async def test_a_change_behind_a_refusal_violates_the_constraint_and_fails_the_step(tmp_path: Path) -> None:
    root = tmp_path / "calendars"
    async with memory() as store, served(ChangesWhatItRefuses(root), store) as calendar:
        outcome = await played(journey("find", "create", "change"), calendar, CalendarFolder(root))
    cell = cell_of(outcome, "change")
    assert [one.state for one in cell.constraints] == ["violated"]
    assert cell.status == "failed"
    assert "nothing changes" in str(cell.message)


async def test_an_advisory_constraint_is_told_and_fails_nothing(tmp_path: Path) -> None:
    root = tmp_path / "calendars"
    change = {**ACTS["change"], "constraints": [{**ACTS["change"]["constraints"][0], "severity": "advisory"}]}
    async with memory() as store, served(ChangesWhatItRefuses(root), store) as calendar:
        outcome = await played(journey("find", "create", change), calendar, CalendarFolder(root))
    cell = cell_of(outcome, "change")
    assert [one.state for one in cell.constraints] == ["violated"]
    assert cell.status == "passed"


async def test_a_constraint_that_nobody_watched_is_unchecked(tmp_path: Path) -> None:
    root = tmp_path / "calendars"
    async with memory() as store, served(ChangesWhatItRefuses(root), store) as calendar:
        outcome = await played(journey("find", "create", "change"), calendar)
    cell = cell_of(outcome, "change")
    assert [one.state for one in cell.constraints] == ["unchecked"]
    assert cell.status == "passed"
    assert outcome.undecided == ("nothing changes",)


class Sees(FakeEyes):
    """Sees one change as soon as it looks, whatever was answered."""

    async def observe(self, window: Any) -> Any:
        if not self.sees:
            self.see("calendar.event u1 created")
        return await super().observe(window)


@pytest.mark.parametrize(
    ("eyes", "status"), [(FakeEyes, "refused"), (Sees, "failed")], ids=["honest", "done all the same"]
)
async def test_a_refusal_leaves_a_claim_without_object_unless_it_is_a_lie(
    tmp_path: Path, eyes: type[FakeEyes], status: str
) -> None:
    guests = {**CLAIMED["with"], "participants": [{"email": "a@example.org"}]}
    step = {**CLAIMED, "with": guests, "may_refuse": "unsupported"}
    async with memory() as store, served(FolderCalendar(tmp_path / "calendars"), store) as calendar:
        outcome = await played(journey("find", step), calendar, eyes())
    cell = cell_of(outcome, "create")
    assert (cell.status, cell.code) == (status, "unsupported")
    assert bool(cell.claims) is (status == "failed")


async def test_what_a_witness_could_not_read_is_not_known_and_not_wrong(calendar: Calendar, tmp_path: Path) -> None:
    step = {**ACTS["create"], "stored": "$count($stored) = 1"}
    cell = cell_of(await played(journey("find", step), calendar, CalendarTables(tmp_path / "gone.db")), "create")
    assert cell.status == "passed"
    assert cell.witnessed is None
    assert "not known" in str(cell.message)


@pytest.mark.parametrize(
    ("claim", "said"),
    [
        ({"that": "x", "state": "a b created"}, "says one thing"),
        ({"that": "x", "state": "a b created", "exactly": 1, "present": True}, "exactly, present"),
        ({"that": "x", "exactly": 1}, "names no sense"),
        ({"that": "x", "state": "a b created", "net": "GET /x 200", "exactly": 1}, "2 senses"),
        ({"that": "x", "net": "nonsense", "exactly": 1}, "can never be seen"),
        ({"that": "x", "state": "a b created", "exactly": -1}, "no count"),
        ({"that": "x", "state": "a b created", "exactly": 1, "tolerance": 2}, "tolerance"),
        ({"that": "x", "state": "a b created", "by": "me", "exactly": 1}, "by"),
        ({"that": "x", "signal": None, "containing": "y", "present": True}, "names no summary"),
    ],
)
def test_a_claim_that_says_nothing_or_too_much_is_no_document(tmp_path: Path, claim: dict[str, Any], said: str) -> None:
    import yaml

    body = {"journey": "a", "version": "1.0.0", "title": "A", "profiles": {"calendar": "^1"}}
    step = {"name": "s", "do": "calendar.calendars", "claims": [claim]}
    (tmp_path / "a.yaml").write_text(yaml.safe_dump({**body, "steps": [step]}))
    with pytest.raises(ConfigError, match=said):
        load(tmp_path / "a.yaml")


def test_a_constraint_that_cannot_hold_from_the_start_and_a_time_without_claim_are_no_document() -> None:
    with pytest.raises(ValueError, match="hold throughout"):
        journey({**ACTS["find"], "constraints": [{"that": "x", "state": "a b created", "exactly": 1}]})
    with pytest.raises(ValueError, match="claims nothing"):
        journey({**ACTS["find"], "within": "5s"})
    with pytest.raises(ValueError, match="length of time"):
        journey({**CLAIMED, "within": "soon"})


def test_a_journey_without_claims_keeps_its_digest() -> None:
    assert "claims" not in journey("find").model_dump(mode="json", by_alias=True, exclude_none=True)["steps"][0]
