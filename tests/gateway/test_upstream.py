"""One upstream with real children: when they start and stop, in which era they are spoken to, what they list."""

from __future__ import annotations

import asyncio
import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from hotplug.connect.secrets import ConfiguredSecrets, SecretName
from hotplug.connect.target import CommandTarget
from hotplug.errors import Unavailable
from hotplug.gateway.asking import ask, request
from hotplug.gateway.config import ServerConfig
from hotplug.gateway.link import Era, LinkLost
from hotplug.gateway.message import loads
from hotplug.gateway.pool import Pool
from hotplug.gateway.upstream import LinkKey, Patience
from hotplug.store import open_store

from .pooling import LIVELY, QUICK, Child, HandClock, call, configs, initialize, tools, until

pytestmark = pytest.mark.anyio
ONE = LinkKey("t_one", "s1")
OTHER = LinkKey("t_other", "s2")
ERAS: tuple[Era, ...] = ("legacy", "modern")


async def test_nothing_is_started_before_it_is_needed(tmp_path: Path) -> None:
    child = Child(tmp_path, "plain")
    async with Pool(configs(child)) as pool:
        assert pool.upstreams["plain"].state.kind == "stopped"
        assert child.starts == 0
        link = await pool.upstreams["plain"].link("modern", ONE)
        assert await call(link, "echo", a=1) == '{"a": 1}'
        assert pool.upstreams["plain"].state.kind == "up"
    assert child.starts == 1
    assert not child.running()


@pytest.mark.parametrize("era", ERAS)
async def test_all_who_want_the_same_wait_for_one_start(tmp_path: Path, era: Era) -> None:
    child = Child(tmp_path, "plain")
    async with Pool(configs(child)) as pool:
        links = await asyncio.gather(*(pool.upstreams["plain"].link(era, ONE) for _ in range(20)))
        assert len(set(map(id, links))) == 1
    assert child.starts == 1


async def test_who_leaves_while_it_starts_ends_no_start_of_others(tmp_path: Path) -> None:
    gate = tmp_path / "go"
    child = Child(tmp_path, "slow_to_start", str(gate), "modern")
    async with Pool(configs(child)) as pool:
        first = asyncio.create_task(pool.upstreams[child.name].link("modern", ONE))
        second = asyncio.create_task(pool.upstreams[child.name].link("modern", ONE))
        await until(lambda: child.starts)
        first.cancel()
        gate.touch()
        assert await call(await second, "echo") == "{}"
    assert child.starts == 1


async def test_threads_get_children_of_their_own_and_one_start_at_a_time(tmp_path: Path) -> None:
    gate = tmp_path / "go"
    child = Child(tmp_path, "slow_to_start", str(gate), "both")
    async with Pool(configs(child)) as pool:
        upstream = pool.upstreams[child.name]
        wanted = [asyncio.create_task(upstream.link("legacy", LinkKey(f"t_{n}", "s"))) for n in range(5)]
        await until(lambda: child.starts)
        # As long as none has come up, one at a time.
        with pytest.raises(TimeoutError):
            await until(lambda: child.starts > 1, 0.3)
        gate.touch()
        links = await asyncio.gather(*wanted)
        assert len({await call(link, "pid") for link in links}) == 5
        assert len({upstream.instance_of(link) for link in links}) == 5
        assert upstream.state.running == 5


async def test_one_child_serves_all_where_it_is_shared(tmp_path: Path) -> None:
    child = Child(tmp_path, "plain", "both", share="all")
    async with Pool(configs(child)) as pool:
        upstream = pool.upstreams[child.name]
        links = [await upstream.link("modern", key) for key in (ONE, OTHER)]
        links.append(await upstream.link("legacy", ONE, initialize=initialize()))
        assert len({await call(link, "pid") for link in links}) == 1
        assert {upstream.instance_of(link) for link in links} == {upstream.instance}
    assert child.starts == 1
    assert not child.running()


@pytest.mark.parametrize("era", ERAS)
async def test_the_era_of_the_client_is_spoken_where_the_server_speaks_it(tmp_path: Path, era: Era) -> None:
    child = Child(tmp_path, "plain", "both")
    async with Pool(configs(child)) as pool:
        link = await pool.upstreams[child.name].link(era, ONE)
        assert link.era == era
        assert await call(link, "echo") == "{}"
        assert child.count("server/discover" if era == "legacy" else "initialize") == 0
    assert child.starts == 1


async def test_a_client_of_its_own_session_shakes_hands_itself(tmp_path: Path) -> None:
    child = Child(tmp_path, "plain", "legacy")
    async with Pool(configs(child)) as pool:
        link = await pool.upstreams[child.name].link("legacy", ONE, initialize=initialize(roots={"listChanged": True}))
        assert loads(link.hello.result["given"])["capabilities"] == {"roots": {"listChanged": True}}
        assert loads(link.hello.result["given"])["clientInfo"]["name"] == "client"


@pytest.mark.parametrize("share", ["thread", "all"])
@pytest.mark.parametrize(("speaks", "era"), [("legacy", "modern"), ("modern", "legacy")])
async def test_a_bridge_stands_between_where_the_server_speaks_only_the_other_era(
    tmp_path: Path, speaks: str, era: Era, share: str
) -> None:
    child = Child(tmp_path, "plain", speaks, share=share)
    async with Pool(configs(child), patience=QUICK) as pool:
        upstream = pool.upstreams[child.name]
        link = await upstream.link(era, ONE, initialize=initialize() if era == "legacy" else None)
        assert link.era == era
        assert await call(link, "echo", a=1) == '{"a": 1}'
        assert "echo" in await tools(upstream, link)
        assert (await upstream.link(era, ONE)) is link
    assert not child.running()


@pytest.mark.parametrize("speaks", ["legacy", "modern"])
async def test_the_second_start_makes_no_probe(tmp_path: Path, speaks: str) -> None:
    child = Child(tmp_path, "plain", speaks)
    async with open_store(f"sqlite:///{tmp_path}/store.db") as store:
        for era in ERAS:
            async with Pool(configs(child), store=store) as pool:
                assert await call(await pool.upstreams[child.name].link(era, ONE), "echo") == "{}"
        before = len(child.lines())
        for era in ERAS:
            async with Pool(configs(child), store=store) as pool:
                assert await call(await pool.upstreams[child.name].link(era, ONE), "echo") == "{}"
        assert ("server/discover" if speaks == "legacy" else "initialize") not in child.lines()[before:]


async def test_what_is_remembered_is_of_the_same_target_only(tmp_path: Path) -> None:
    old = Child(tmp_path, "plain", "legacy")
    new = Child(tmp_path, "plain", "modern")
    async with open_store(f"sqlite:///{tmp_path}/store.db") as store:
        async with Pool(configs(old), store=store) as pool:
            assert (await pool.upstreams["plain"].hello("modern")) is None
        async with Pool(configs(new), store=store) as pool:
            hello = await pool.upstreams["plain"].hello("modern")
            assert hello is not None
            assert hello.protocol == "2026-07-28"


async def test_a_remembered_era_that_is_wrong_by_now_is_corrected(tmp_path: Path) -> None:
    record = Child(tmp_path, "plain", "legacy")
    async with open_store(f"sqlite:///{tmp_path}/store.db") as store:
        async with Pool(configs(record), store=store) as pool:
            await pool.upstreams["plain"].link("legacy", ONE)
        kept = await store.recall("gateway.upstream", "plain")
        assert kept is not None
        await store.remember("gateway.upstream", "plain", {**kept, "speaks": ["modern"], "lacks": ["legacy"]})
        async with Pool(configs(record), store=store) as pool:
            assert await call(await pool.upstreams["plain"].link("legacy", ONE), "echo") == "{}"


@pytest.mark.parametrize(
    ("script", "argument"),
    [
        ("old_refuses_discover", "-32601"),
        ("old_refuses_discover", "-32602"),
        ("old_ignores_discover", ""),
        ("old_exits_on_discover", ""),
    ],
)
async def test_an_old_server_is_told_by_how_it_takes_the_probe(tmp_path: Path, script: str, argument: str) -> None:
    """FR-26."""
    child = Child(tmp_path, script, argument)
    async with Pool(configs(child), patience=QUICK) as pool:
        link = await pool.upstreams[child.name].link("modern", ONE)
        assert await call(link, "echo") == "{}"
        probed = child.count("server/discover")
        assert probed == 1
        assert await call(await pool.upstreams[child.name].link("modern", OTHER), "echo") == "{}"
        assert child.count("server/discover") == probed
    assert not child.running()


@pytest.mark.parametrize("era", ERAS)
async def test_a_server_that_speaks_only_unknown_revisions_is_named_as_that(tmp_path: Path, era: Era) -> None:
    """FR-26."""
    child = Child(tmp_path, "from_the_future")
    async with Pool(configs(child)) as pool:
        with pytest.raises(Unavailable, match=r"aren't known here: 2031-01-01 \(known are .*2026-07-28"):
            await pool.upstreams[child.name].link(era, ONE)
    assert child.starts == 1


async def test_a_server_of_the_new_era_that_starts_slowly_is_found_out(tmp_path: Path) -> None:
    gate = tmp_path / "go"
    child = Child(tmp_path, "slow_to_start", str(gate), "modern")
    async with Pool(configs(child), patience=QUICK) as pool:
        wanted = asyncio.create_task(pool.upstreams[child.name].link("modern", ONE))
        await until(lambda: child.starts == 2)
        gate.touch()
        assert await call(await wanted, "echo") == "{}"
    assert not child.running()


@pytest.mark.parametrize("known", [False, True])
async def test_a_slow_start_is_no_sign_of_the_old_era(tmp_path: Path, known: bool) -> None:
    child = Child(tmp_path, "takes_long", "1", "unsaid")
    async with open_store(f"sqlite:///{tmp_path}/store.db") as store:
        if known:
            async with Pool(configs(child), patience=QUICK, store=store) as pool:
                await pool.upstreams[child.name].link("legacy", ONE)
        async with Pool(configs(child), patience=Patience(probe=0.4), store=store) as pool:
            link = await pool.upstreams[child.name].link("modern", ONE)
            assert await call(link, "echo") == "{}"
            assert pool.upstreams[child.name].state.running == 1
        assert child.last_start()[1:3] == ["server/discover", "tools/call"]
        async with Pool(configs(child), patience=Patience(probe=0.4), store=store) as pool:
            # And that is remembered.
            started = child.starts
            assert await call(await pool.upstreams[child.name].link("modern", ONE), "echo") == "{}"
            assert child.starts == started + 1


async def test_a_slow_start_is_no_sign_of_the_new_era(tmp_path: Path) -> None:
    child = Child(tmp_path, "takes_long", "1", "unsaid")
    async with open_store(f"sqlite:///{tmp_path}/store.db") as store:
        async with Pool(configs(child), patience=QUICK, store=store) as pool:
            await pool.upstreams[child.name].link("modern", ONE)
        async with Pool(configs(child), patience=Patience(probe=0.4), store=store) as pool:
            link = await pool.upstreams[child.name].link("legacy", ONE, initialize=initialize())
            assert await call(link, "echo") == "{}"
        assert child.last_start()[1:4] == ["initialize", "notifications/initialized", "tools/call"]


@pytest.mark.parametrize("speaks", ERAS)
async def test_a_slow_server_of_one_era_that_is_silent_in_the_other_is_asked_twice_and_remembered(
    tmp_path: Path, speaks: Era
) -> None:
    child = Child(tmp_path, "takes_long", "0.6", speaks)
    other: Era = "modern" if speaks == "legacy" else "legacy"
    asked = "server/discover" if speaks == "legacy" else "initialize"
    async with open_store(f"sqlite:///{tmp_path}/store.db") as store:
        async with Pool(configs(child), patience=QUICK, store=store) as pool:
            await pool.upstreams[child.name].link(speaks, ONE)
        async with Pool(configs(child), patience=Patience(probe=0.4), store=store) as pool:
            assert await call(await pool.upstreams[child.name].link(other, ONE), "echo") == "{}"
            assert child.count(asked) <= 2
            started = child.starts
            assert await call(await pool.upstreams[child.name].link(other, OTHER), "echo") == "{}"
            assert child.starts == started + 1
        before = len(child.lines())
        async with Pool(configs(child), store=store) as pool:
            assert await call(await pool.upstreams[child.name].link(other, ONE), "echo") == "{}"
        assert asked not in child.lines()[before:]


async def test_a_child_behind_a_bridge_that_starts_slower_than_the_ones_before_is_used(tmp_path: Path) -> None:
    seconds = tmp_path / "seconds"
    seconds.write_text("0")
    child = Child(tmp_path, "takes_long", str(seconds), "legacy")
    async with Pool(configs(child), patience=QUICK) as pool:
        upstream = pool.upstreams[child.name]
        assert await call(await upstream.link("modern", ONE), "echo") == "{}"
        seconds.write_text("2")
        assert await call(await upstream.link("modern", OTHER), "echo") == "{}"


async def test_a_modern_client_turns_no_other_client_to_a_bridge(tmp_path: Path) -> None:
    child = Child(tmp_path, "plain", "unsaid")
    async with Pool(configs(child)) as pool:
        await pool.upstreams[child.name].link("modern", ONE)
        link = await pool.upstreams[child.name].link("legacy", ONE, initialize=initialize())
        assert await call(link, "echo") == "{}"
    assert child.count("initialize") == 1


async def test_a_client_whose_handshake_is_refused_changes_nothing_for_the_others(tmp_path: Path) -> None:
    child = Child(tmp_path, "particular")
    async with Pool(configs(child)) as pool:
        upstream = pool.upstreams[child.name]
        await upstream.link("legacy", ONE, initialize=initialize())
        with pytest.raises(Unavailable, match=r"refuses this client: .*no lamps"):
            await upstream.link("legacy", OTHER, initialize=initialize(lamps={}))
        third = LinkKey("t_third", "s3")
        assert await call(await upstream.link("legacy", third, initialize=initialize()), "echo") == "{}"
    assert child.count("server/discover") == 0


# When it fails


async def test_a_failed_start_is_refused_at_once_until_its_pause_is_over(tmp_path: Path) -> None:
    child = Child(tmp_path, "exits_at_once")
    clock = HandClock()
    async with Pool(configs(child), clock=clock) as pool:
        upstream = pool.upstreams[child.name]
        with pytest.raises(Unavailable, match=r"exited with code 4.*no configuration found") as raised:
            await upstream.link("legacy", ONE)
        assert raised.value.details == {"server": "exits_at_once", "retryAfterMs": 500}
        state = upstream.state
        assert (state.kind, state.retry_at is not None) == ("failed", True)
        assert state.reason is not None
        assert "no configuration found" in state.reason
        pauses = [0.5]
        for _ in range(8):
            starts = child.starts
            with pytest.raises(Unavailable, match="no configuration found"):
                await upstream.link("legacy", OTHER)
            assert child.starts == starts
            clock.now += pauses[-1]
            with pytest.raises(Unavailable) as raised:
                await upstream.link("legacy", OTHER)
            assert child.starts > starts
            pauses.append(raised.value.details["retryAfterMs"] / 1000)
        assert pauses == [0.5, 1, 2, 4, 8, 16, 32, 60, 60]


async def test_many_who_want_what_fails_cost_one_try(tmp_path: Path) -> None:
    child = Child(tmp_path, "exits_at_once")
    async with Pool(configs(child), clock=HandClock()) as pool:
        upstream = pool.upstreams[child.name]
        wanted = [upstream.link("legacy", LinkKey(f"t_{n}", "s")) for n in range(10)]
        results = await asyncio.gather(*wanted, return_exceptions=True)
        assert all(isinstance(result, Unavailable) for result in results)
    # One in each era.
    assert child.starts == 2


async def test_a_missing_program_is_a_reason(tmp_path: Path) -> None:
    child = Child(tmp_path, "plain")
    missing = type(child.config)("gone", type(child.config.target)(("/no/such/program",)))
    async with Pool({"gone": missing}) as pool:
        with pytest.raises(Unavailable, match="gone can't be started: there is no program /no/such/program"):
            await pool.upstreams["gone"].link("legacy", ONE)


async def test_a_disabled_server_is_not_started(tmp_path: Path) -> None:
    child = Child(tmp_path, "plain", disabled=True)
    async with Pool(configs(child)) as pool:
        with pytest.raises(Unavailable, match="plain is disabled"):
            await pool.upstreams["plain"].link("modern", ONE)
        assert pool.upstreams["plain"].state.kind == "disabled"
    assert child.starts == 0


@pytest.mark.parametrize("era", ERAS)
async def test_a_crash_ends_its_calls_and_the_next_need_starts_another(tmp_path: Path, era: Era) -> None:
    """FR-23: nothing is sent a second time."""
    child = Child(tmp_path, "plain")
    async with Pool(configs(child)) as pool:
        upstream = pool.upstreams["plain"]
        link = await upstream.link(era, ONE)
        instance = upstream.instance_of(link)
        pending = asyncio.create_task(call(link, "wait", file=str(tmp_path / "never")))
        await until(lambda: child.count("tools/call") == 1)
        with pytest.raises(LinkLost, match="exited with code 3") as raised:
            await call(link, "crash")
        assert raised.value.sent
        with pytest.raises(LinkLost) as also:
            await pending
        assert also.value.sent
        assert link.lost is not None
        again = await upstream.link(era, ONE)
        assert await call(again, "echo") == "{}"
        assert upstream.instance_of(again) != instance
        assert upstream.instance == upstream.instance_of(again)
    assert child.starts == 2
    assert child.count("tools/call") == 3


async def test_a_server_that_crashes_again_and_again_is_left_alone_longer_each_time(tmp_path: Path) -> None:
    child = Child(tmp_path, "plain")
    clock = HandClock()
    async with Pool(configs(child), clock=clock) as pool:
        upstream = pool.upstreams["plain"]

        async def crash() -> None:
            with pytest.raises(LinkLost):
                await call(await upstream.link("modern", ONE), "crash")

        await crash()
        # A short pause is waited for.
        wanted = asyncio.create_task(upstream.link("modern", ONE))
        await until(lambda: clock.sleepers)
        assert child.starts == 1
        while not wanted.done():
            await clock.advance(0.5)
            await asyncio.sleep(0.01)
        await crash()
        await clock.advance(1.0)
        await crash()
        with pytest.raises(Unavailable, match="ended by itself again and again") as raised:
            await upstream.link("modern", ONE)
        assert raised.value.details["retryAfterMs"] == 2000
        # Another thread's child isn't held up by it.
        assert await call(await upstream.link("modern", OTHER), "echo") == "{}"
        await clock.advance(2.0)
        link = await upstream.link("modern", ONE)
        await clock.advance(60.0)
        with pytest.raises(LinkLost):
            await call(link, "crash")
        await clock.advance(0.5)
        await upstream.link("modern", ONE)


async def test_a_child_behind_a_bridge_is_left_alone_too_and_a_try_that_fails_leaves_nothing(tmp_path: Path) -> None:
    child = Child(tmp_path, "plain", "legacy", idle=None)
    clock = HandClock()
    async with Pool(configs(child), clock=clock) as pool:
        upstream = pool.upstreams["plain"]
        link = await upstream.link("modern", ONE)
        for pause in (0.5, 1.0, 2.0):
            with pytest.raises(LinkLost):
                await call(link, "crash")
            await until(lambda: not upstream.state.running)
            starts = child.starts
            if pause < 2:
                await clock.advance(pause)
        kept = vars(upstream)["_slots"]
        before = len(kept)
        for _ in range(5):
            with pytest.raises(LinkLost, match="ended by itself again and again"):
                await call(link, "echo")
        assert child.starts == starts
        assert len(kept) == before
        await clock.advance(2.0)
        assert await call(link, "echo") == "{}"


async def test_a_child_that_hangs_is_replaced_and_only_its_calls_fail(tmp_path: Path) -> None:
    child = Child(tmp_path, "plain", call_timeout=2.0)
    async with Pool(configs(child), patience=QUICK) as pool:
        upstream = pool.upstreams["plain"]
        link = await upstream.link("legacy", ONE)
        other = await upstream.link("legacy", OTHER)
        hangs = asyncio.create_task(call(link, "hang"))
        await until(lambda: child.count("tools/call") == 1)
        with pytest.raises(LinkLost, match=r"said nothing for 2 s and gives no sign of life") as raised:
            await hangs
        assert raised.value.sent
        again = await upstream.link("legacy", ONE)
        assert await call(again, "pid") != await call(other, "pid")
        assert upstream.instance_of(again) != upstream.instance_of(link)
        assert other.lost is None
    assert not child.running()


async def test_a_silent_call_of_a_child_that_lives_is_given_up_alone(tmp_path: Path) -> None:
    child = Child(tmp_path, "plain", call_timeout=2.0)
    async with Pool(configs(child), patience=LIVELY) as pool:
        link = await pool.upstreams["plain"].link("legacy", ONE)
        with pytest.raises(LinkLost, match=r"it said nothing for 2 s") as raised:
            await call(link, "silent")
        assert raised.value.sent
        assert link.lost is None
        assert await call(link, "echo") == "{}"
        assert child.count("notifications/cancelled") == 1
    assert child.starts == 1


async def test_who_waits_for_notices_may_hear_nothing_for_ever(tmp_path: Path) -> None:
    child = Child(tmp_path, "plain", call_timeout=10.0, idle=None)
    clock = HandClock()
    async with Pool(configs(child), clock=clock, patience=LIVELY) as pool:
        link = await pool.upstreams["plain"].link("modern", ONE)
        wanted = {"notifications": {"toolsListChanged": True, "vendor": True}}
        async with link.exchange(request(link, "subscriptions/listen", wanted)) as answer:
            assert answer.frames is not None
            await anext(aiter(answer.frames))
            notice = asyncio.ensure_future(anext(aiter(answer.frames)))
            silent = asyncio.create_task(call(link, "silent"))
            await until(lambda: child.count("tools/call") == 1)
            for _ in range(3):
                await clock.advance(11)
            with pytest.raises(LinkLost, match="it said nothing for 10 s"):
                await silent
            assert not notice.done()
            await call(link, "remove", name="wait")
            frame = await notice
            assert frame.message is not None
            assert frame.message.method == "notifications/tools/list_changed"


async def test_without_a_limit_a_hang_is_found_when_a_caller_gives_up(tmp_path: Path) -> None:
    child = Child(tmp_path, "plain")
    async with Pool(configs(child), patience=QUICK) as pool:
        link = await pool.upstreams["plain"].link("modern", ONE)
        hangs = asyncio.create_task(call(link, "hang"))
        await until(lambda: child.count("tools/call") == 1)
        hangs.cancel()
        await until(lambda: link.lost is not None)
        assert await call(await pool.upstreams["plain"].link("modern", ONE), "echo") == "{}"
    assert child.starts == 2


async def test_a_caller_who_gives_up_costs_a_living_child_nothing(tmp_path: Path) -> None:
    child = Child(tmp_path, "plain")
    async with Pool(configs(child), patience=LIVELY) as pool:
        link = await pool.upstreams["plain"].link("legacy", ONE)
        silent = asyncio.create_task(call(link, "silent"))
        await until(lambda: child.count("tools/call") == 1)
        silent.cancel()
        await until(lambda: child.count("ping") == 1)
        assert await call(link, "echo") == "{}"
    assert child.starts == 1


async def test_a_busy_child_with_a_call_of_another_is_left_alone_when_a_caller_gives_up(tmp_path: Path) -> None:
    child = Child(tmp_path, "plain")
    async with Pool(configs(child), patience=QUICK) as pool:
        link = await pool.upstreams["plain"].link("legacy", ONE)
        works = asyncio.create_task(call(link, "hang"))
        gives_up = asyncio.create_task(call(link, "silent"))
        await until(lambda: child.count("tools/call") == 2)
        gives_up.cancel()
        await until(lambda: child.count("ping") == 1)
        with pytest.raises(TimeoutError):
            await until(lambda: link.lost is not None, 3 * QUICK.alive)
        works.cancel()
        await until(lambda: link.lost is not None)


# When it is idle


async def test_an_idle_child_is_stopped_and_started_again_when_it_is_needed(tmp_path: Path) -> None:
    child = Child(tmp_path, "plain", idle=100.0)
    clock = HandClock()
    async with Pool(configs(child), clock=clock) as pool:
        upstream = pool.upstreams["plain"]
        link = await upstream.link("modern", ONE)
        assert await call(link, "echo") == "{}"
        await upstream.catalog(link)
        await clock.advance(99)
        assert link.lost is None
        await clock.advance(2)
        assert link.lost == "it was stopped after 100 s without use"
        assert upstream.state.kind == "stopped"
        await until(lambda: not child.running())
        assert child.lines()[-1] == "end"
        again = await upstream.link("modern", ONE)
        assert await call(again, "echo") == "{}"
        assert upstream.instance_of(again) != upstream.instance_of(link)
    assert child.starts == 2


async def test_a_child_isnt_stopped_between_the_look_at_what_it_offers_and_its_use(tmp_path: Path) -> None:
    child = Child(tmp_path, "plain", idle=100.0)
    clock = HandClock()
    async with Pool(configs(child), clock=clock) as pool:
        upstream = pool.upstreams["plain"]
        link = await upstream.link("legacy", ONE)
        await upstream.catalog(link)
        await clock.advance(99)
        # A session has its link already, and only looks.
        await upstream.catalog(link)
        await clock.advance(2)
        assert await call(link, "echo") == "{}"


async def test_a_child_in_use_is_not_stopped(tmp_path: Path) -> None:
    child = Child(tmp_path, "plain", idle=100.0)
    clock = HandClock()
    gate = tmp_path / "go"
    async with Pool(configs(child), clock=clock) as pool:
        link = await pool.upstreams["plain"].link("legacy", ONE)
        async with link.exchange(request(link, "tools/call", {"name": "echo"})):
            await clock.advance(1000)
            assert link.lost is None
        async with link.exchange(request(link, "resources/subscribe", {"uri": "file:///a"})):
            pass
        await clock.advance(1000)
        assert link.lost is None
        async with link.exchange(request(link, "resources/unsubscribe", {"uri": "file:///a"})):
            pass
        await clock.advance(1000)
        assert link.lost is not None
        gate.touch()


async def test_a_session_keeps_its_log_level_through_a_restart_of_its_child(tmp_path: Path) -> None:
    child = Child(tmp_path, "plain", idle=100.0)
    clock = HandClock()
    async with Pool(configs(child), clock=clock) as pool:
        upstream = pool.upstreams["plain"]
        link = await upstream.link("legacy", ONE)
        async with link.exchange(request(link, "logging/setLevel", {"level": "warning"})):
            pass
        await clock.advance(101)
        assert link.lost is not None
        await upstream.link("legacy", ONE)
        await upstream.link("legacy", OTHER)
        assert child.count("level warning") == 2


async def test_what_ends_with_a_session_and_what_with_its_thread(tmp_path: Path) -> None:
    child = Child(tmp_path, "plain")
    async with Pool(configs(child)) as pool:
        upstream = pool.upstreams["plain"]
        first = await upstream.link("legacy", LinkKey("t_one", "s1"))
        second = await upstream.link("legacy", LinkKey("t_one", "s2"))
        modern = await upstream.link("modern", LinkKey("t_one"))
        other = await upstream.link("legacy", LinkKey("t_other", "s1"))
        await upstream.release(LinkKey("t_one", "s1"))
        assert [link.lost is None for link in (first, second, modern, other)] == [False, True, True, True]
        assert len(child.running()) == 3
        await upstream.release(LinkKey("t_one"))
        assert [link.lost is None for link in (first, second, modern, other)] == [False, False, False, True]
        assert len(child.running()) == 1


async def test_a_killed_child_is_seen_without_a_call(tmp_path: Path) -> None:
    child = Child(tmp_path, "plain")
    async with Pool(configs(child)) as pool:
        link = await pool.upstreams["plain"].link("modern", ONE)
        os.kill(child.pids()[0], signal.SIGKILL)
        await until(lambda: link.lost is not None)
        assert pool.upstreams["plain"].state.kind == "stopped"


# What it lists


@pytest.mark.parametrize("era", ERAS)
async def test_all_pages_are_read(tmp_path: Path, era: Era) -> None:
    """FR-24."""
    child = Child(tmp_path, "many_tools", era)
    async with Pool(configs(child)) as pool:
        upstream = pool.upstreams[child.name]
        catalog = await upstream.catalog(await upstream.link(era, ONE))
        assert len(catalog.tools.items) == 123
        assert catalog.tools.problem is None
        assert child.count("tools/list") == 4
        assert not catalog.prompts.offered


@pytest.mark.parametrize("era", ERAS)
async def test_a_list_is_read_once_until_a_notice_comes(tmp_path: Path, era: Era) -> None:
    """FR-24."""
    child = Child(tmp_path, "plain", era)
    told: list[int] = []
    async with Pool(configs(child)) as pool:
        upstream = pool.upstreams["plain"]
        upstream.on_change(lambda: told.append(1))
        link = await upstream.link(era, ONE)
        catalogs = await asyncio.gather(*(upstream.catalog(link) for _ in range(10)))
        assert {catalog.version for catalog in catalogs} == {catalogs[0].version}
        assert child.count("tools/list") == 1
        assert not told
        assert await call(link, "remove", name="count") == "removed"
        await until(lambda: told)
        after = await upstream.catalog(link)
        assert "count" not in [item.name for item in after.tools.items]
        assert after.version != catalogs[0].version
        assert child.count("tools/list") == 2
        assert upstream.last_catalog(era) is after


async def test_equal_lists_have_equal_versions_after_a_restart(tmp_path: Path) -> None:
    child = Child(tmp_path, "plain")
    async with Pool(configs(child)) as pool:
        upstream = pool.upstreams["plain"]
        first = await upstream.catalog(await upstream.link("modern", ONE))
        second = await upstream.catalog(await upstream.link("modern", OTHER))
        assert first.version == second.version


@pytest.mark.parametrize("era", ERAS)
async def test_a_page_that_fails_makes_the_list_incomplete_and_that_is_said(tmp_path: Path, era: Era) -> None:
    """FR-24."""
    child = Child(tmp_path, "many_tools", era, "broken")
    async with Pool(configs(child)) as pool:
        upstream = pool.upstreams[child.name]
        listing = (await upstream.catalog(await upstream.link(era, ONE))).tools
        assert len(listing.items) == 80
        assert listing.problem == "page 3 of tools/list failed: database is locked (-32603)"


@pytest.mark.parametrize("era", ERAS)
async def test_what_is_declared_and_missing_costs_itself_alone(tmp_path: Path, era: Era) -> None:
    """FR-27."""
    child = Child(tmp_path, "declares_too_much", era)
    async with Pool(configs(child)) as pool:
        upstream = pool.upstreams[child.name]
        async with asyncio.timeout(30):
            catalog = await upstream.catalog(await upstream.link(era, ONE))
        assert "echo" in [item.name for item in catalog.tools.items]
        assert not catalog.resources.offered
        assert catalog.resources.problem == "it declares resources and doesn't know resources/list"
        assert catalog.templates.problem is None


async def test_noise_is_skipped(tmp_path: Path) -> None:
    """FR-27."""
    child = Child(tmp_path, "noisy")
    async with Pool(configs(child)) as pool:
        link = await pool.upstreams["noisy"].link("modern", ONE)
        assert await call(link, "echo", a=1) == '{"a": 1}'
        assert any("Welcome to the noisy server" in line for line in pool.upstreams["noisy"].log)


async def test_a_catalog_of_a_link_that_ended_says_so(tmp_path: Path) -> None:
    child = Child(tmp_path, "plain")
    async with Pool(configs(child)) as pool:
        upstream = pool.upstreams["plain"]
        link = await upstream.link("modern", ONE)
        await upstream.release(LinkKey("t_one"))
        with pytest.raises(LinkLost, match="its session has ended") as raised:
            await upstream.catalog(link)
        assert not raised.value.sent


async def test_what_a_server_asks_while_nobody_listens_reaches_the_session(tmp_path: Path) -> None:
    child = Child(tmp_path, "plain", "legacy")
    async with Pool(configs(child)) as pool:
        upstream = pool.upstreams["plain"]
        link = await upstream.link("legacy", ONE)
        await call(link, "remove", name="count")
        frames = link.general()
        frame = await anext(frames)
        assert frame.message is not None
        assert frame.message.method == "notifications/tools/list_changed"
        await frames.aclose()  # type: ignore[attr-defined]


async def test_the_hello_is_had_without_a_client_and_kept(tmp_path: Path) -> None:
    child = Child(tmp_path, "plain")
    async with Pool(configs(child)) as pool:
        upstream = pool.upstreams["plain"]
        hello = await upstream.hello("modern")
        assert hello is not None
        assert loads(hello.result["supportedVersions"]) == ["2026-07-28", "2025-11-25"]
        assert upstream.state.kind == "stopped"
        assert not child.running()
        assert await upstream.hello("modern") is hello
    assert child.starts == 1


async def test_pings_of_a_shared_server_are_answered(tmp_path: Path) -> None:
    child = Child(tmp_path, "plain", "legacy", share="all")
    async with Pool(configs(child)) as pool:
        link = await pool.upstreams["plain"].link("legacy", ONE, initialize=initialize(elicitation={}))
        # The handshake of a shared child is the gateway's own: nobody could be asked.
        assert loads(link.hello.result["given"])["capabilities"] == {}
        assert (await ask(link, "ping")).kind == "result"


# What it gets


async def test_a_child_gets_what_its_entry_names_and_its_secrets_stand_in_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GATEWAYS_OWN", "of-the-gateway")
    monkeypatch.setenv("THE_SECRET", "s3cret-value-xyz")
    secrets = ConfiguredSecrets.of_table({"key": {"env": "THE_SECRET", "servers": ["telling"]}})
    for place, expected in (("telling", r"KEY=\[secret\]"), ("other", "may not go to server 'other'")):
        child = Child(tmp_path, "tells_its_environment", name=place)
        target = child.config.target
        assert isinstance(target, CommandTarget)
        config = replace(child.config, target=replace(target, env={"KEY": SecretName("key"), "PLAIN": "yes"}))
        async with Pool({place: config}, secrets=secrets) as pool:
            with pytest.raises(Unavailable, match=expected) as raised:
                await pool.upstreams[place].link("legacy", ONE)
            told = "\n".join([str(raised.value), str(pool.upstreams[place].state), *pool.upstreams[place].log])
            assert "s3cret" not in told
            assert "of-the-gateway" not in told
            if place == "telling":
                assert "PLAIN=yes" in pool.upstreams[place].log


async def test_a_secret_for_one_thread_goes_into_that_threads_child_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THE_SECRET", "s3cret-value-xyz")
    table = {"key": {"env": "THE_SECRET", "servers": ["mine", "all"], "threads": ["t_one"]}}
    secrets = ConfiguredSecrets.of_table(table)
    found: dict[str, ServerConfig] = {}
    for name, share in (("mine", "thread"), ("all", "all")):
        child = Child(tmp_path, "plain", name=name, share=share)
        target = child.config.target
        assert isinstance(target, CommandTarget)
        found[name] = replace(child.config, target=replace(target, env={"KEY": SecretName("key")}))
    async with Pool(found, secrets=secrets) as pool:
        for _ in range(2):
            # Who is refused closes nobody else's.
            for era in ("modern", "legacy"):
                with pytest.raises(Unavailable, match="may not go to"):
                    await pool.upstreams["mine"].link(era, LinkKey("t_two", None))
            assert (await pool.upstreams["mine"].link("modern", LinkKey("t_one", None))).lost is None
            with pytest.raises(Unavailable, match="may not go to"):
                await pool.upstreams["all"].link("modern", LinkKey("t_one", None))


# Who is told


async def test_a_failure_and_what_mends_it_are_told_and_starting_by_need_is_not(tmp_path: Path) -> None:
    gate = tmp_path / "go"
    child = Child(tmp_path, "slow_to_start", str(gate), "legacy", start_timeout=0.5)
    told: list[str] = []
    clock = HandClock()
    async with Pool(configs(child), clock=clock, patience=QUICK) as pool:
        upstream = pool.upstreams[child.name]
        end = upstream.on_change(lambda: told.append(upstream.state.kind))
        with pytest.raises(Unavailable):
            await upstream.link("legacy", ONE)
        await until(lambda: told)
        gate.touch()
        await upstream.reconfigure(replace(child.config, start_timeout=20.0))
        await until(lambda: len(told) == 2)
        await clock.advance(5)
        link = await upstream.link("legacy", ONE)
        await until(lambda: len(told) == 3)
        assert told == ["failed", "failed", "up"]
        await upstream.link("legacy", OTHER)
        await call(link, "remove", name="count")
        await until(lambda: len(told) == 4)
        assert told[3] == "up"
        end()


async def test_a_change_of_its_entry_is_waited_for_by_who_waited_already(tmp_path: Path) -> None:
    hanging, good = Child(tmp_path, "never_answers", name="it"), Child(tmp_path, "plain", name="it")
    async with Pool(configs(hanging)) as pool:
        wanted = asyncio.create_task(pool.upstreams["it"].link("modern", ONE))
        await until(lambda: hanging.starts)
        await pool.update(configs(good))
        assert await call(await wanted, "echo") == "{}"


async def test_a_start_takes_no_longer_than_it_may(tmp_path: Path) -> None:
    child = Child(tmp_path, "never_answers", start_timeout=0.4)
    async with Pool(configs(child)) as pool:
        with pytest.raises(Unavailable, match=r"never_answers isn't ready after 0\.4 s|in 0\.4 s"):
            await pool.upstreams[child.name].link("legacy", ONE)


async def test_a_list_that_isnt_answered_leads_to_a_look_at_the_child(tmp_path: Path) -> None:
    child = Child(tmp_path, "plain")
    async with Pool(configs(child), patience=QUICK) as pool:
        upstream = pool.upstreams["plain"]
        link = await upstream.link("legacy", ONE)
        hangs = asyncio.create_task(call(link, "hang"))
        await until(lambda: child.count("tools/call") == 1)
        hangs.cancel()
        await asyncio.gather(hangs, return_exceptions=True)
        await until(lambda: link.lost is not None)
        assert len(await tools(upstream, await upstream.link("legacy", ONE))) == 8
