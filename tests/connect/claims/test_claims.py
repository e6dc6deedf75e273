"""Claims on a connection: each ground, how a window settles, who looks, and what is never concluded."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import anyio
import pytest

import hotplug
from hotplug import HotplugError, connect, constraint, net, state
from hotplug.catalog import Calendar
from hotplug.errors import Conflict, Disconnected, InvalidArgument, Timeout
from hotplug.evidence import BlindSpot

from .eyes import FakeEyes

pytestmark = pytest.mark.anyio

CREATED = state("calendar.event * created").exactly(1)


@pytest.fixture
async def calendar(tmp_path: Path) -> AsyncGenerator[Calendar]:
    async with connect(Calendar, f"sqlite:///{tmp_path}/c.db") as connected:
        yield connected


async def meet(calendar: Calendar, title: str = "Lunch") -> Any:
    found = await calendar.calendars()
    return await calendar.create(
        calendar=found.calendars[0].calendar, title=title, start="2026-10-26T13:00:00Z", duration="PT1H"
    )


async def test_a_claim_that_an_independent_eye_saw_come_true_is_proved(calendar: Calendar) -> None:
    eyes = FakeEyes()
    async with calendar.with_witness(eyes).claim("it is stored once", CREATED) as claim:
        await meet(calendar)
        eyes.see("calendar.event u1 created")
    assert (claim.verdict.value, claim.verdict.ground, claim.verdict.grade) == ("yes", "proved", "consequence")
    assert bool(claim.verdict)
    assert str(claim.verdict) == "Verdict(yes, ground=proved)"
    assert [one.observation.summary for one in claim.evidence] == ["calendar.event u1 created"]
    assert claim.declared_at == "before-action"


async def test_what_a_server_says_of_itself_proves_nothing(calendar: Calendar) -> None:
    async with calendar.claim("it is stored once", CREATED) as claim:
        await meet(calendar)
    assert (claim.verdict.value, claim.verdict.ground) == ("unknown", "no-independent-consequence")
    assert not claim.verdict
    assert len(claim.evidence) == 1, "it counted, and it is the server's own"


async def test_a_sense_that_nobody_watches_is_unknown_and_never_a_failure(calendar: Calendar) -> None:
    async with calendar.claim("it is sent", net("POST /events 201").exactly(1), within="50ms", quiet="10ms") as claim:
        await meet(calendar)
    assert (claim.verdict.value, claim.verdict.ground) == ("unknown", "channel-not-observed")


async def test_what_does_not_come_in_time_while_all_is_quiet_has_not_happened(calendar: Calendar) -> None:
    eyes = FakeEyes()
    async with calendar.with_witness(eyes).claim("it is stored once", CREATED, within="300ms", quiet="50ms") as claim:
        await meet(calendar)
    assert (claim.verdict.value, claim.verdict.ground) == ("no", "assertion-failed")


async def test_what_comes_late_and_in_time_counts(calendar: Calendar) -> None:
    eyes = FakeEyes()
    watched = calendar.with_witness(eyes)
    async with anyio.create_task_group() as tasks:

        async def later() -> None:
            with anyio.fail_after(5):
                while eyes.looks < 4:
                    await anyio.sleep(0.005)
            eyes.see("calendar.event u1 created")

        async with watched.claim("it is stored once", CREATED, within="5s", quiet="50ms") as claim:
            await meet(calendar)
            tasks.start_soon(later)
    assert claim.verdict.ground == "proved"


async def test_a_double_that_comes_soon_after_the_first_is_not_missed(calendar: Calendar) -> None:
    eyes = FakeEyes()
    async with anyio.create_task_group() as tasks:

        async def doubled() -> None:
            with anyio.fail_after(5):
                while eyes.looks < 3:
                    await anyio.sleep(0.005)
            eyes.see("calendar.event u2 created")

        async with calendar.with_witness(eyes).claim("it is stored once", CREATED, quiet="400ms") as claim:
            await meet(calendar)
            eyes.see("calendar.event u1 created")
            tasks.start_soon(doubled)
    assert (claim.verdict.value, claim.verdict.ground) == ("no", "assertion-failed")


async def test_a_double_that_comes_late_and_in_time_is_not_missed(calendar: Calendar) -> None:
    eyes = FakeEyes()
    async with anyio.create_task_group() as tasks:

        async def doubled() -> None:
            with anyio.fail_after(5):
                while eyes.looks < 7:  # pauses grow to a quarter of a second: most of one has gone by then
                    await anyio.sleep(0.005)
            eyes.see("calendar.event u2 created")

        async with calendar.with_witness(eyes).claim("it is stored once", CREATED, within="1.5s") as claim:
            await meet(calendar)
            eyes.see("calendar.event u1 created")
            tasks.start_soon(doubled)
    assert (claim.verdict.value, claim.verdict.ground) == ("no", "assertion-failed")


async def test_what_is_false_for_good_is_not_waited_for(calendar: Calendar) -> None:
    eyes = FakeEyes()
    with anyio.fail_after(20):
        async with calendar.with_witness(eyes).claim("it is stored once", CREATED, within="60s") as claim:
            await meet(calendar)
            eyes.see("calendar.event u1 created")
            eyes.see("calendar.event u2 created")
    assert claim.verdict.ground == "assertion-failed"


async def test_what_nothing_can_spoil_ends_when_it_is_seen(calendar: Calendar) -> None:
    eyes = FakeEyes()
    with anyio.fail_after(20):
        async with calendar.with_witness(eyes).claim("it is stored", CREATED.selector.present(), within="60s") as claim:
            await meet(calendar)
            eyes.see("calendar.event u1 created")
    assert claim.verdict.ground == "proved"
    assert claim.run.windows[0].closed_by == "signal"


class Restless(FakeEyes):
    """Sees something new at every look, so that nothing ever settles."""

    async def observe(self, window: Any) -> Any:
        self.see(f"calendar.event n{self.looks} updated")
        return await super().observe(window)


async def test_a_world_that_is_still_moving_when_the_time_is_over_is_unknown_and_never_no(calendar: Calendar) -> None:
    async with calendar.with_witness(Restless()).claim("it is stored once", CREATED, within="200ms") as claim:
        await meet(calendar)
    assert (claim.verdict.value, claim.verdict.ground) == ("unknown", "window-not-closed")


async def test_what_is_false_for_good_is_no_though_the_world_still_moves(calendar: Calendar) -> None:
    eyes = Restless()
    eyes.see("calendar.event u1 created")
    eyes.see("calendar.event u2 created")
    async with calendar.with_witness(eyes).claim("it is stored once", CREATED, within="200ms") as claim:
        await meet(calendar)
    assert (claim.verdict.value, claim.verdict.ground) == ("no", "assertion-failed")


async def test_a_gap_where_the_claim_reads_makes_it_unknown_even_where_nothing_was_seen(calendar: Calendar) -> None:
    eyes = FakeEyes()
    eyes.blind = [BlindSpot(kind="buffer-truncated", channel="state", detail="rows were cut", impeaching=False)]
    watched = calendar.with_witness(eyes)
    async with watched.claim("it is stored once", CREATED, within="50ms", quiet="10ms") as unseen:
        await meet(calendar)
    assert (unseen.verdict.value, unseen.verdict.ground) == ("unknown", "coverage-impeached")
    eyes.see("calendar.event u1 created")
    async with watched.claim("it is stored once", CREATED, within="50ms", quiet="10ms") as seen:
        await meet(calendar)
    assert (seen.verdict.value, seen.verdict.ground) == ("unknown", "coverage-impeached")


async def test_a_gap_elsewhere_is_told_and_changes_nothing(calendar: Calendar) -> None:
    eyes = FakeEyes()
    eyes.blind = [BlindSpot(kind="buffer-truncated", channel="log", detail="lines were cut", impeaching=False)]
    async with calendar.with_witness(eyes).claim("it is stored once", CREATED) as claim:
        await meet(calendar)
        eyes.see("calendar.event u1 created")
    assert claim.verdict.ground == "proved"
    assert claim.blind_spots
    assert claim.blind_spots[0].detail == "lines were cut"


@pytest.mark.parametrize("when", ["opening", "looking"])
async def test_a_witness_that_cannot_look_is_a_gap_and_never_absence(calendar: Calendar, when: str) -> None:
    eyes = FakeEyes()
    watched = calendar.with_witness(eyes)
    if when == "opening":
        eyes.fails = OSError("no route to postgresql://user:pa55word@db/")
    async with watched.claim("it is stored once", CREATED.selector.absent(), within="50ms", quiet="10ms") as claim:
        await meet(calendar)
        eyes.fails = OSError("no route to postgresql://user:pa55word@db/")
    assert (claim.verdict.value, claim.verdict.ground) == ("unknown", "coverage-impeached")
    assert "pa55word" not in claim.run.text() + str(claim)


async def test_a_witness_whose_window_ends_badly_proves_nothing(calendar: Calendar) -> None:
    eyes = FakeEyes()
    eyes.ends = "budget-exhausted"
    async with calendar.with_witness(eyes).claim("it is stored once", CREATED) as claim:
        await meet(calendar)
        eyes.see("calendar.event u1 created")
    assert (claim.verdict.value, claim.verdict.ground) == ("unknown", "coverage-impeached")


async def test_a_claim_written_after_something_was_done_says_so_and_proves_nothing(calendar: Calendar) -> None:
    eyes = FakeEyes()
    async with calendar.with_witness(eyes).claims() as window:
        early = window.claim("it is stored once", CREATED)
        await meet(calendar)
        eyes.see("calendar.event u1 created")
        late = window.claim("it is stored once", CREATED)
        wrong = window.claim("it is gone", state("calendar.event * deleted").exactly(1))
    assert (early.declared_at, early.verdict.ground) == ("before-action", "proved")
    assert (late.declared_at, late.verdict.value, late.verdict.ground) == (
        "after-action",
        "unknown",
        "declared-after-action",
    )
    assert wrong.verdict.value == "no", "a late claim can still be refuted"


async def test_several_claims_of_one_window_are_judged_each_by_its_own(calendar: Calendar) -> None:
    eyes = FakeEyes()
    async with calendar.with_witness(eyes).claims(within="200ms", quiet="50ms") as window:
        stored = window.claim("it is stored", CREATED)
        told = window.claim("somebody was told", state("mail m1 created").exactly(1))
        await meet(calendar)
        eyes.see("calendar.event u1 created")
    assert (stored.verdict.value, told.verdict.value) == ("yes", "no")
    assert stored.run is told.run
    assert len(stored.run.verdicts) == 2


async def test_a_fact_that_held_already_before_the_action_is_no_proof_of_it(calendar: Calendar) -> None:
    eyes = FakeEyes(facts=["events.count = 1"])
    watched = calendar.with_witness(eyes)
    one = state("events.count = 1").present()
    async with watched.claim("there is one", one) as already:
        await meet(calendar)
    assert (already.verdict.value, already.verdict.ground) == ("unknown", "already-true")
    eyes.facts = ["events.count = 0"]
    async with watched.claim("there is one", one) as came:
        await meet(calendar)
        eyes.facts = ["events.count = 1"]
    assert came.verdict.ground == "proved"


async def test_a_fact_that_held_already_is_no_proof_in_a_window_of_several_claims_either(calendar: Calendar) -> None:
    eyes = FakeEyes(facts=["events.count = 1", "events.full = 0"])
    async with calendar.with_witness(eyes).claims(quiet="10ms") as window:
        held = window.claim("there is one", state("events.count = 1").present())
        came = window.claim("it is full", state("events.full = 1").present())
        await meet(calendar)
        eyes.facts = ["events.count = 1", "events.full = 1"]
    assert (held.verdict.value, held.verdict.ground) == ("unknown", "already-true")
    assert came.verdict.ground == "proved"


@pytest.mark.parametrize("beside", ["absent", "at most"])
async def test_what_merely_did_not_happen_makes_no_proof_of_a_fact_that_held_already(
    calendar: Calendar, beside: str
) -> None:
    eyes = FakeEyes(facts=["events.count = 1"])
    lost = state("calendar.event * deleted")
    also = lost.absent() if beside == "absent" else lost.at_most(1)
    one = state("events.count = 1").present()
    async with calendar.with_witness(eyes).claim("one, and none lost", one, also, quiet="10ms") as held:
        await meet(calendar)
    assert (held.verdict.value, held.verdict.ground) == ("unknown", "already-true")
    created = state("calendar.event u1 created").present()
    async with calendar.with_witness(eyes).claim("one, just made", one, created, quiet="10ms") as made:
        await meet(calendar)
        eyes.see("calendar.event u1 created")
    assert made.verdict.ground == "proved", "that it was made is new"


@pytest.mark.parametrize("look", [0.0, 0.2])
async def test_what_only_a_look_after_the_time_found_is_not_said_to_have_come_in_time(
    calendar: Calendar, look: float
) -> None:
    class Late(FakeEyes):
        """Sees it only after the time; each look takes its time, so that the last one ends after that."""

        opened = 0.0

        async def observe(self, window: Any) -> Any:
            await anyio.sleep(look)
            if anyio.current_time() > self.opened + 0.3:
                self.sees = [("state", "calendar.event u1 created", None)]
            return await super().observe(window)

    eyes = Late()
    async with calendar.with_witness(eyes).claim("it is stored once", CREATED, within="300ms", quiet="50ms") as claim:
        await meet(calendar)
        eyes.opened = anyio.current_time()
    assert (claim.verdict.value, claim.verdict.ground) == ("unknown", "window-not-closed")


async def test_what_others_do_meanwhile_does_not_hold_a_window_open(calendar: Calendar) -> None:
    class Busy(FakeEyes):
        """Sees somebody else's event come at each look."""

        async def observe(self, window: Any) -> Any:
            self.see(f"calendar.event other{self.looks} created", {"title": "Somebody else's"})
            return await super().observe(window)

    eyes = Busy()
    eyes.see("calendar.event u1 created", {"title": "Lunch"})
    lunch = state("calendar.event * created").containing("Lunch").exactly(1)
    async with calendar.with_witness(eyes).claim("lunch is there", lunch, within="5s", quiet="50ms") as claim:
        await meet(calendar)
    assert claim.verdict.ground == "proved"
    assert eyes.looks < 12, "it ended when its own claim was at rest"


async def test_absence_alone_is_no_evidence(calendar: Calendar) -> None:
    nothing = state("calendar.event * deleted").absent()
    async with calendar.with_witness(FakeEyes()).claim("nothing is lost", nothing, quiet="10ms") as claim:
        await meet(calendar)
    assert (claim.verdict.value, claim.verdict.ground) == ("unknown", "no-independent-consequence")


async def test_a_claim_of_which_nothing_could_be_evaluated_is_unknown(calendar: Calendar) -> None:
    eyes = FakeEyes(senses={"x-load": {"independence": "independent", "grade": "consequence"}})
    eyes.see("load %", "high", sense="x-load")
    load = eyes.sense("x-load", "load %").measures_at_least(50)
    async with calendar.with_witness(eyes).claim("it is busy", load, within="50ms", quiet="10ms") as claim:
        await meet(calendar)
    assert (claim.verdict.value, claim.verdict.ground) == ("unknown", "no-independent-consequence")


@pytest.mark.parametrize(("statement", "conditions"), [("", [CREATED]), ("  ", [CREATED]), ("it is stored", [])])
async def test_a_claim_that_names_nothing_to_evaluate_is_refused_when_it_is_written(
    calendar: Calendar, statement: str, conditions: list[Any]
) -> None:
    with pytest.raises(InvalidArgument):
        calendar.claim(statement, *conditions)
    with pytest.raises(InvalidArgument):
        calendar.claim("it is stored", constraint("none is lost", state("calendar.event * deleted").absent()))
    with pytest.raises(InvalidArgument, match="exactly"):
        calendar.claim("it is stored", state("calendar.event * created"))


async def test_a_constraint_that_was_violated_fails_the_run_beside_a_claim_that_holds(calendar: Calendar) -> None:
    eyes = FakeEyes()
    once = constraint("nothing is deleted", state("calendar.event * deleted").absent())
    async with calendar.with_witness(eyes).claim("it is stored once", CREATED, once) as claim:
        await meet(calendar)
        eyes.see("calendar.event u1 created")
        eyes.see("calendar.event u0 deleted")
    assert claim.verdict.value == "yes"
    assert [one.detail for one in claim.violations] == [
        'nothing is deleted: state "calendar.event * deleted" absent, and 1 were seen'
    ]
    kept = {one.observation.id for one in claim.run.evidence}
    assert set(claim.violations[0].evidence) <= kept


async def test_a_constraint_that_nobody_could_watch_is_a_gap_and_not_held(calendar: Calendar) -> None:
    once = constraint("no payment twice", net("POST /payments 2xx").at_most(1))
    async with calendar.with_witness(FakeEyes()).claim("it is stored", CREATED, once, within="50ms") as claim:
        await meet(calendar)
    assert claim.violations == ()
    assert claim.unchecked == ("no payment twice: net couldn't be watched throughout the window",)
    assert "couldn't be checked" in str(claim.blind_spots)


async def test_the_strongest_eye_is_asked_and_a_named_one_is_asked_alone(calendar: Calendar) -> None:
    weak = {"state": {"independence": "independent", "grade": "presence"}}
    strong, faint = FakeEyes("strong"), FakeEyes("faint", weak)
    async with calendar.with_witness(strong, faint).claims(within="50ms", quiet="10ms") as window:
        any_eye = window.claim("it is stored", CREATED)
        by_faint = window.claim("it is stored", faint.state("calendar.event * created").exactly(1))
        await meet(calendar)
        strong.see("calendar.event u1 created")
        faint.see("calendar.event u1 created")
    assert any_eye.verdict.ground == "proved"
    assert [one.observation.channel for one in any_eye.evidence] == ["x-strong-state"]
    assert by_faint.verdict.ground == "no-independent-consequence"


async def test_two_witnesses_that_see_alike_have_to_be_told_apart(calendar: Calendar) -> None:
    watched = calendar.with_witness(FakeEyes("left"), FakeEyes("right"))
    with pytest.raises(InvalidArgument, match=r"left\.state"):
        async with watched.claim("it is stored", CREATED):
            raise AssertionError("unreachable")  # pragma: no cover
    with pytest.raises(InvalidArgument, match="called left"):
        calendar.with_witness(FakeEyes("left"), FakeEyes("left")).claim("it is stored", CREATED)
    with pytest.raises(InvalidArgument, match="isn't one here"):
        async with calendar.claim("it is stored", FakeEyes("left").state("calendar.event * created").exactly(1)):
            raise AssertionError("unreachable")  # pragma: no cover


async def test_a_refused_operation_is_judged_too_and_its_error_comes_through(calendar: Calendar) -> None:
    made = await meet(calendar)
    stale = (await calendar.get(event=made.event)).revision
    await calendar.update(event=made.event, changes={"title": "Dinner"})
    unchanged = state("calendar.event * updated").exactly(0)
    claims: list[Any] = []
    with pytest.raises(Conflict):  # noqa: PT012  # the block is what is tested
        async with calendar.claim("nothing is changed", unchanged, within="100ms", quiet="20ms") as claim:
            claims.append(claim)
            await calendar.update(event=made.event, changes={"title": "Breakfast"}, revision=stale)
    assert claims[0].verdict.ground == "no-independent-consequence"
    (receipt,) = claims[0].run.receipts
    assert (receipt.dispatched, receipt.refused.reason) == (False, "unavailable")


@pytest.mark.parametrize("error", [Timeout, Disconnected])
async def test_an_operation_of_unknown_outcome_leaves_a_claim_unknown_and_never_refuted(
    calendar: Calendar, error: type[Timeout | Disconnected], monkeypatch: pytest.MonkeyPatch
) -> None:
    eyes = FakeEyes()

    async def lost(*_: Any, **__: Any) -> Any:
        raise error("the answer was lost", details={"state": "unknown"})

    watched, claims = calendar.with_witness(eyes), list[Any]()
    found = await calendar.calendars()
    with pytest.raises(error):  # noqa: PT012  # the block is what is tested
        async with watched.claim("it is stored once", CREATED, within="100ms", quiet="20ms") as claim:
            claims.append(claim)
            with monkeypatch.context() as patched:
                patched.setattr(type(watched._caller), "_send", lost)  # pyright: ignore[reportPrivateUsage]
                await watched.create(
                    calendar=found.calendars[0].calendar, title="x", start="2026-10-26T13:00:00Z", duration="PT1H"
                )
    assert (claims[0].verdict.value, claims[0].verdict.ground) == ("unknown", "window-not-closed")
    assert "still-in-flight" in str(claims[0].blind_spots)


async def test_what_was_given_up_closes_its_window_and_is_never_proved(calendar: Calendar) -> None:
    eyes, claims = FakeEyes(), list[Any]()
    eyes.see("calendar.event u1 created")
    with anyio.move_on_after(0.2) as scope:
        async with calendar.with_witness(eyes).claim("it is stored once", CREATED) as claim:
            claims.append(claim)
            await anyio.sleep_forever()
    assert scope.cancelled_caught
    assert (claims[0].verdict.value, claims[0].verdict.ground) == ("unknown", "window-not-closed")


async def test_a_claim_has_no_verdict_before_its_window_is_closed(calendar: Calendar) -> None:
    async with calendar.claim("it is stored once", CREATED, quiet="10ms") as claim:
        with pytest.raises(HotplugError, match="open"):
            _ = claim.verdict
        with pytest.raises(HotplugError, match="open"):
            _ = claim.run
        await meet(calendar)
    assert claim.verdict.value == "unknown"


SERVER = """
import os, pathlib, sys
from hotplug.serve import run
from hotplug.servers import native

server, _, _ = native("sqlite", sys.argv[1])
pathlib.Path(sys.argv[2]).write_text(str(os.getpid()))
run(server)
"""


@pytest.mark.parametrize("seen", [True, False])
async def test_a_server_that_is_killed_before_the_end_is_unknown_and_never_no(tmp_path: Path, seen: bool) -> None:
    pid, eyes = tmp_path / "pid", FakeEyes()
    script = tmp_path / "server.py"
    script.write_text(SERVER)
    target = {
        "command": sys.executable,
        "args": [str(script), str(tmp_path / "c.db"), str(pid)],
        "env": {"PYTHONPATH": str(Path(hotplug.__file__).parents[1])},
    }
    async with connect(Calendar, target) as calendar:
        watched = calendar.with_witness(eyes)
        async with watched.claim("it is stored once", CREATED, within="200ms", quiet="20ms") as claim:
            await meet(calendar)
            if seen:
                eyes.see("calendar.event u1 created")
            os.kill(int(pid.read_text()), signal.SIGKILL)
    assert (claim.verdict.value, claim.verdict.ground) == ("unknown", "coverage-impeached")
    assert "can't be seen any more" in str(claim)


class LastLook(FakeEyes):
    """Sees what came last only when its window is closed, as a log that is read to its end does."""

    async def close_window(self, window: Any) -> Any:
        self.see("calendar.event u2 created")
        return await super().close_window(window)


async def test_what_a_witness_sees_at_the_close_of_its_window_counts(calendar: Calendar) -> None:
    eyes = LastLook()
    async with calendar.with_witness(eyes).claim("it is stored once", CREATED, within="300ms") as claim:
        await meet(calendar)
        eyes.see("calendar.event u1 created")
    assert (claim.verdict.value, claim.verdict.ground) == ("no", "assertion-failed")
