"""When places look: at the end too, again where facts are asked for, and what a look that failed takes with it."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from hotplug import HotplugError, connect, constraint, state
from hotplug.connect import link_of
from hotplug.connect.claims.conditions import predicate_reader
from hotplug.errors import InvalidArgument, PermissionDenied
from hotplug.evidence import BlindSpot, Coverage, Window
from hotplug.evidence.checks import examine_run
from hotplug.witness import HttpLog

from .eyes import FakeEyes
from .test_realm import PLACED, Placed, Shop, Stock, WebShop

pytestmark = pytest.mark.anyio

CREATED = state("calendar.event * created").exactly(1)
LINE = '1.1.1.1 - - [x] "POST /orders HTTP/1.1" 201 3 "-" "-"\n'
INDEPENDENT = {"independence": "independent", "grade": "consequence"}


def faults(run: Any) -> list[str]:
    """What a strict reader finds."""
    document = json.loads(run.text())
    actions = frozenset(one["id"] for one in document.get("actions", ()))
    found = examine_run(document, read=predicate_reader(actions))
    return [str(one) for one in (*found.faults, *found.unjudged)]


class AtTheEnd(FakeEyes):
    """Sees the last things in the look that ends its window, and only then can say what it missed."""

    misses = False

    async def close_window(self, window: Window) -> Window:
        if not self.misses:
            self.see("calendar.event u2 created")
        else:
            self.blind = [BlindSpot(kind="buffer-truncated", channel="state", detail="cut", impeaching=False)]
        return await super().close_window(window)


@pytest.mark.parametrize(("misses", "verdict"), [(False, "no"), (True, "unknown")])
async def test_what_a_witness_sees_and_misses_in_its_last_look_counts(misses: bool, verdict: str) -> None:
    eyes = AtTheEnd()
    eyes.misses = misses
    async with connect(Shop, WebShop()) as shop:
        watched = shop.with_witness(eyes)
        async with watched.claim("it is stored once", eyes.state("calendar.event * created").exactly(1)) as claim:
            await shop.order()
            eyes.see("calendar.event u1 created")
    assert claim.verdict.value == verdict
    assert faults(claim.run) == []


async def test_a_line_that_a_log_gets_while_it_is_closed_is_not_missed(tmp_path: Path) -> None:
    path = tmp_path / "access.log"
    path.write_text("")

    class Slow(HttpLog):
        async def _settle(self, session: Any) -> bool:
            path.write_text(path.read_text() + LINE)
            return await super()._settle(session)

    log = Slow(path, quiet=0.05)
    async with connect(Shop, WebShop()) as shop:
        once = log.net("POST /orders 201").exactly(1)
        async with shop.with_witness(log).claim("it is ordered once", once, quiet="20ms") as claim:
            await shop.order()
            path.write_text(LINE)
    await log.aclose()
    assert claim.verdict.value == "no"


@pytest.mark.parametrize(
    "method", ["identity", "channels", "provenance", "open_window", "before", "observe", "coverage", "close_window"]
)
@pytest.mark.parametrize("times", [0, 1, 2])
async def test_a_witness_whose_own_code_fails_is_a_gap_and_never_ends_the_window(method: str, times: int) -> None:
    eyes = FakeEyes(senses={"x-bell": INDEPENDENT})
    works, calls = getattr(eyes, method), 0

    def fails(*arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls > times:
            raise RuntimeError("pa55word")
        return works(*arguments)

    setattr(eyes, method, fails)
    async with (
        connect(Shop, WebShop()) as shop,
        shop.with_witness(eyes).claims(within="80ms", quiet="20ms") as window,
    ):
        placed = window.claim("it is placed", PLACED)
        silent = window.claim("and the bell is silent", PLACED, eyes.sense("x-bell").absent())
        await shop.order()
    assert placed.verdict.value == "yes"
    assert silent.verdict.value == ("yes" if calls <= times else "unknown")
    assert "pa55word" not in placed.run.text() + str(silent)
    assert faults(placed.run) == []


async def test_a_witness_that_gives_nothing_where_it_has_to_give_something_is_a_gap() -> None:
    class Empty(FakeEyes):
        async def observe(self, window: Window) -> Any:
            return None

    async with (
        connect(Shop, WebShop()) as shop,
        shop.with_witness(Empty()).claims(within="80ms", quiet="20ms") as window,
    ):
        placed = window.claim("it is placed", PLACED)
        unseen = window.claim("it is gone", Empty().state("order 1 deleted").absent())
        await shop.order()
    assert (placed.verdict.value, unseen.verdict.ground) == ("yes", "coverage-impeached")


async def test_a_witness_can_claim_no_grade_above_the_table() -> None:
    eyes = FakeEyes(senses={"log": INDEPENDENT})
    async with (
        connect(Shop, WebShop()) as shop,
        shop.with_witness(eyes).claim("it is logged", eyes.log("info: ordered").present()) as claim,
    ):
        await shop.order()
        eyes.see("info: ordered", sense="log")
    assert claim.verdict.ground == "no-independent-consequence"
    assert faults(claim.run) == []


async def test_a_fact_that_holds_is_seen_though_nothing_was_done() -> None:
    async with connect(Shop, WebShop()) as shop:
        none = state("webshop.till.orders = 0").present()
        async with shop.claim("none is sold", none, within="80ms", quiet="20ms") as claim:
            pass
    assert claim.verdict.value == "unknown", "it was so before, and by the shop's own word"
    assert [one.observation.summary for one in claim.evidence] == ["webshop.till.orders = 0"]


async def test_a_fact_of_the_subject_may_come_true_after_the_answer() -> None:
    class Slow(WebShop):
        looks = 0

        async def order(self, count: int = 1) -> Placed:
            return Placed()

        async def till(self) -> Any:
            self.looks += 1
            self.orders = 1 if self.looks > 3 else 0
            return await super().till()

    async with (
        connect(Shop, Slow()) as shop,
        shop.claim("one is sold", state("webshop.till.orders = 1").present(), quiet="20ms") as claim,
    ):
        await shop.order()
    assert claim.verdict.ground == "no-independent-consequence", "never `no`: it came true in time"
    assert faults(claim.run) == []


async def test_a_look_that_is_refused_takes_only_its_own_sense_with_it() -> None:
    class Shut(WebShop):
        async def stock(self) -> Stock:
            raise PermissionDenied("the store room is shut")

    async with connect(Shop, Shut()) as shop, shop.claims(within="80ms", quiet="20ms") as window:
        placed = window.claim("it is placed", PLACED)
        left = window.claim("there is one less", state("stock.left = 9").present())
        await shop.order()
    assert (placed.verdict.value, left.verdict.ground) == ("yes", "coverage-impeached")
    assert "the store room is shut" in str(left)


@pytest.mark.parametrize("flips", [True, False])
async def test_a_constraint_on_a_fact_is_violated_or_unchecked_and_never_held(flips: bool) -> None:
    class Flipping(FakeEyes):
        async def observe(self, window: Window) -> Any:
            self.facts[:] = ["stock.count = 0"] if flips and self.looks == 1 else ["stock.count = 1"]
            return await super().observe(window)

    eyes = Flipping(facts=["stock.count = 1"])
    async with (
        connect(Shop, WebShop()) as shop,
        shop.recorded() as recording,
        shop.with_witness(eyes).claims(within="200ms", quiet="60ms") as window,
    ):
        window.constrain(constraint("never sold out", eyes.state("stock.count = 0").absent()))
        await shop.order()
    assert (len(window.violations), len(window.unchecked)) == ((1, 0) if flips else (0, 1))
    assert faults(recording.run()) == []


async def test_windows_that_overlap_make_one_run_that_verifies() -> None:
    async with (
        connect(Shop, WebShop()) as shop,
        shop.recorded() as recording,
        shop.claim("outer", PLACED) as outer,
        shop.claim("inner", PLACED) as inner,
    ):
        await shop.order()
    run = recording.run()
    assert (outer.verdict.value, inner.verdict.value) == ("yes", "yes")
    assert faults(run) == []
    assert len(run.actions) == len(run.receipts) == 1
    assert run.started_at <= min(one.opened_at for one in run.windows)


async def test_windows_with_other_witnesses_make_one_run_that_verifies() -> None:
    one, other = FakeEyes("one", {"x-bell": INDEPENDENT}), FakeEyes("other", {"x-bell": INDEPENDENT})
    async with connect(Shop, WebShop()) as shop, shop.recorded() as recording:
        for looking in ((one,), (one, other), (other,)):
            rung = looking[-1].sense("x-bell", "rang").exactly(1)
            async with shop.with_witness(*looking).claim("it rings", rung, quiet="20ms") as claim:
                looking[-1].sees[:] = [("x-bell", "rang", None)]
            assert claim.verdict.value == "yes"
            one.identity = lambda: FakeEyes("replaced").identity()  # type: ignore[method-assign]
    assert faults(recording.run()) == []


async def test_a_window_is_opened_once_and_takes_nothing_before_and_after() -> None:
    once = constraint("not twice", PLACED.selector.at_most(1))
    async with connect(Shop, WebShop()) as shop:
        window = shop.claims(within="50ms", quiet="10ms")
        with pytest.raises(HotplugError, match="no window"):
            window.constrain(once)
        async with window:
            window.constrain(once)
        with pytest.raises(HotplugError, match="no window"):
            window.constrain(once)
        with pytest.raises(HotplugError, match="opened once"):
            async with window:
                raise AssertionError("unreachable")  # pragma: no cover


async def test_witnesses_whose_names_make_one_channel_are_told_apart_before_anything_is_done() -> None:
    async with connect(Shop, WebShop()) as shop:
        with pytest.raises(InvalidArgument, match="called Eyes, eyes"):
            shop.with_witness(FakeEyes("Eyes"), FakeEyes("eyes")).claims()


async def test_a_clock_that_goes_back_makes_no_run_that_ends_before_it_began(monkeypatch: pytest.MonkeyPatch) -> None:
    from importlib import import_module

    window, recording = (import_module(f"hotplug.connect.claims.{name}") for name in ("window", "recording"))
    real = window.now_ms
    async with connect(Shop, WebShop()) as shop, shop.claim("it is placed", PLACED) as claim:
        await shop.order()
        for module in (window, recording):
            monkeypatch.setattr(module, "now_ms", lambda: real() - 3_600_000)
    assert claim.verdict.value == "yes"
    assert faults(claim.run) == []


@pytest.mark.parametrize("phase", ["opening", "acting", "settling", "closing"])
async def test_what_is_given_up_in_any_phase_leaves_nothing_open(phase: str) -> None:
    stuck = anyio.Event()

    class Sticky(FakeEyes):
        closed = 0

        async def _wait(self, here: str) -> None:
            if here == phase and not stuck.is_set():
                stuck.set()
                await anyio.sleep_forever()

        async def before(self, window: Window) -> Any:
            await self._wait("opening")
            return await super().before(window)

        async def observe(self, window: Window) -> Any:
            await self._wait("settling")
            return await super().observe(window)

        async def coverage(self, window: Window) -> Coverage:
            await self._wait("closing")
            return await super().coverage(window)

        async def close_window(self, window: Window) -> Window:
            self.closed += 1
            return await super().close_window(window)

    eyes, server = Sticky(), WebShop()
    async with connect(Shop, server) as shop:
        link: Any = link_of(shop)
        with anyio.fail_after(10):
            async with anyio.create_task_group() as tasks:

                async def claim() -> None:
                    async with shop.with_witness(eyes).claim("it is placed", PLACED):
                        await shop.order()
                        await eyes._wait("acting")

                tasks.start_soon(claim)
                await stuck.wait()
                tasks.cancel_scope.cancel()
        assert link.listeners == []
        assert link.channel.runtime.connection.events.windows == {}
        assert eyes.closed == 1


async def test_events_that_are_told_again_or_cannot_be_read_are_not_counted_and_do_not_end_the_window() -> None:
    async with connect(Shop, WebShop()) as shop:
        channel: Any = link_of(shop).channel
        answers, extra = channel.call, [{"id": "broken", "type": "webshop.odd"}]

        async def repeats(tool: str, arguments: Any, **options: Any) -> Any:
            reply = await answers(tool, arguments, **options)
            if tool == "connection.events" and reply.content and reply.content["events"]:
                return type(reply)(content={**reply.content, "events": [*reply.content["events"] * 2, *extra]})
            return reply

        channel.call = repeats
        async with shop.claim("it is placed once", PLACED, quiet="20ms") as garbled:
            await shop.order()
        extra.clear()
        async with shop.claim("it is placed once", PLACED, quiet="20ms") as doubled:
            await shop.order()
        del channel.call
    assert (garbled.verdict.ground, doubled.verdict.ground) == ("coverage-impeached", "proved")
    assert "webshop.odd" in str(garbled)
    assert faults(doubled.run) == []


async def test_a_server_that_never_stops_telling_holds_nobody_up() -> None:
    async with connect(Shop, WebShop()) as shop:
        channel: Any = link_of(shop).channel
        answers, count = channel.call, iter(range(1_000_000))

        async def floods(tool: str, arguments: Any, **options: Any) -> Any:
            reply = await answers(tool, arguments, **options)
            if tool == "connection.events" and reply.content:
                one = {"type": "webshop.request", "at": "2026-01-01T00:00:00Z", "sense": "net", "instance": "shop-1"}
                told = {**one, "id": f"e{next(count)}", "summary": "GET /flood 200", "payload": {}}
                return type(reply)(content={**reply.content, "events": [told]})
            return reply

        channel.call = floods
        with anyio.fail_after(20):
            async with shop.claim("it is placed", PLACED, within="100ms", quiet="20ms") as claim:
                await shop.order()
        del channel.call
    assert claim.verdict.value == "unknown"


async def test_a_secret_in_a_summary_neither_hides_what_was_seen_nor_stands_in_the_run() -> None:
    eyes, secret = FakeEyes(senses={"net": INDEPENDENT}), "tok_live_123456"
    async with connect(Shop, WebShop()) as shop:
        link: Any = link_of(shop)
        link._masks.add(secret, certain=True)
        async with shop.with_witness(eyes).claims(within="80ms", quiet="20ms") as window:
            once = window.claim(f"{secret} is used", eyes.net(f"GET /reset/{secret} 200").exactly(1))
            never = window.claim("it isn't", PLACED, eyes.net(f"GET /reset/{secret} 200").absent())
            window.constrain(constraint(f"never {secret}", eyes.net(f"GET /reset/{secret} 200").absent()))
            other = window.claim("something is reset", eyes.net("GET /reset/* 200").exactly(1))
            await shop.order()
            eyes.see(f"GET /reset/{secret} 200", sense="net")
    assert {one.verdict.ground for one in (once, never, other)} == {"coverage-impeached"}
    assert secret not in once.run.text() + str(once) + str(never) + once.next_move + "".join(window.unchecked)
    assert faults(once.run) == []


@pytest.mark.parametrize("value", [float("nan"), {"deep": [float("inf")]}, b"\x00", {"at": object()}])
async def test_a_value_that_is_no_json_does_not_end_the_window(value: Any) -> None:
    eyes = FakeEyes()
    async with connect(Shop, WebShop()) as shop:
        seen = eyes.state("order 1 created").exactly(1)
        async with shop.with_witness(eyes).claim("it is stored", seen, quiet="20ms") as claim:
            eyes.see("order 1 created", value)
    assert claim.verdict.value == "yes"
    assert faults(claim.run) == []


async def test_a_fact_is_held_against_who_looks_at_it() -> None:
    eyes = FakeEyes(facts=["stock.count = 1"])
    async with connect(Shop, WebShop()) as shop:
        sold = state("webshop.till.orders = 1").present()
        async with shop.with_witness(eyes).claim("one is sold", sold, quiet="20ms") as own:
            await shop.order()
        counted = state("stock.count = 1").present()
        async with shop.with_witness(eyes).claim("one is left", counted, quiet="20ms") as theirs:
            await shop.order()
    assert own.verdict.ground == "no-independent-consequence", "the witness looks at another thing"
    assert theirs.verdict.ground == "already-true"


@pytest.mark.parametrize(("ends_as", "verdict"), [("1", "yes"), ("2", "unknown")])
async def test_a_fact_that_is_otherwise_at_the_very_end_has_not_settled(ends_as: str, verdict: str) -> None:
    class Turning(FakeEyes):
        async def close_window(self, window: Window) -> Window:
            self.facts[:] = [f"stock.count = {ends_as}"]
            return await super().close_window(window)

    eyes = Turning(facts=["stock.count = 0"])
    async with connect(Shop, WebShop()) as shop:
        counted = eyes.state("stock.count = 1").present()
        async with shop.with_witness(eyes).claim("there is one", counted, quiet="20ms") as claim:
            await shop.order()
            eyes.facts[:] = ["stock.count = 1"]
    assert claim.verdict.value == verdict
    assert faults(claim.run) == []


@pytest.mark.parametrize("declares", ["card", "senses"])
async def test_a_server_that_can_tell_of_nothing_is_neither_believed_nor_refuted(declares: str) -> None:
    root = Path(__file__).parents[3]
    target = {
        "command": sys.executable,
        "args": ["-m", "tests.connect.claims.bare", declares],
        "cwd": str(root),
        "env": {"PYTHONPATH": f"{root / 'src'}{os.pathsep}{root}"},
    }
    eyes = FakeEyes(senses={"net": INDEPENDENT})
    async with connect(Shop, target) as shop:
        async with shop.claims(within="80ms", quiet="20ms") as window:
            placed = window.claim("it is placed", PLACED)
            counted = window.claim("it is counted", state("webshop.till.orders = 1").present())
            await shop.order()
        async with shop.with_witness(eyes).claim("it is placed", PLACED, quiet="20ms") as seen:
            await shop.order()
            eyes.see("POST /orders 201", sense="net")
    assert (placed.verdict.ground, counted.verdict.ground) == ("channel-not-observed", "no-independent-consequence")
    assert seen.verdict.ground == "proved"
    assert placed.blind_spots is None
    assert "not enumerated" in str(seen)
    assert faults(placed.run) == faults(seen.run) == []


async def test_a_constraint_binds_its_own_window_in_a_run_of_several() -> None:
    once = constraint("at most once", PLACED.selector.at_most(1))
    async with connect(Shop, WebShop()) as shop, shop.recorded() as recording:
        async with shop.claim("one is placed", PLACED, once, quiet="20ms") as one:
            await shop.order()
        async with shop.claim("two are placed", PLACED.selector.exactly(2), quiet="20ms") as two:
            await shop.order(2)
    assert (one.verdict.value, two.verdict.value) == ("yes", "yes")
    assert faults(recording.run()) == []
