"""Many upstreams side by side: a bad one costs itself alone, changes of one touch no other, and nothing is left."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from hotplug.errors import Unavailable
from hotplug.gateway.link import LinkLost
from hotplug.gateway.pool import Pool
from hotplug.gateway.upstream import LinkKey

from .pooling import LIVELY, QUICK, Child, call, configs, initialize, tools, until

pytestmark = pytest.mark.anyio
ONE = LinkKey("t_one", "s1")


@pytest.mark.parametrize(
    ("script", "arguments"),
    [("never_answers", ()), ("exits_at_once", ()), ("slow_to_start", ("{never}", "both")), ("noisy", ())],
)
async def test_a_bad_one_delays_no_other(tmp_path: Path, script: str, arguments: tuple[str, ...]) -> None:
    bad = Child(tmp_path, script, *(a.format(never=tmp_path / "never") for a in arguments), name="bad")
    goods = [Child(tmp_path, "plain", name=f"good{n}") for n in range(3)]
    ended: list[str] = []
    async with Pool(configs(bad, *goods)) as pool:

        async def use(name: str) -> None:
            try:
                upstream = pool.upstreams[name]
                link = await upstream.link("modern", ONE)
                await upstream.catalog(link)
                await call(link, "echo")
            finally:
                ended.append(name)

        first = asyncio.create_task(use("bad"))
        await until(lambda: bad.starts)
        await asyncio.gather(*(use(good.name) for good in goods))
        if script in ("never_answers", "slow_to_start"):
            assert not first.done()
        assert {"good0", "good1", "good2"} <= set(ended)
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
    assert not any(child.running() for child in (bad, *goods))


async def test_one_that_hangs_or_crashes_in_the_middle_delays_no_other(tmp_path: Path) -> None:
    hangs, crashes, good = (Child(tmp_path, "plain", name=name) for name in ("hangs", "crashes", "good"))
    async with Pool(configs(hangs, crashes, good), patience=QUICK) as pool:
        links = {name: await upstream.link("modern", ONE) for name, upstream in pool.upstreams.items()}
        hanging = asyncio.create_task(call(links["hangs"], "hang"))
        crashing = asyncio.create_task(call(links["crashes"], "crash"))
        for _ in range(50):
            assert await call(links["good"], "echo") == "{}"
        assert not hanging.done()
        with pytest.raises(LinkLost):
            await crashing
        hanging.cancel()
        await asyncio.gather(hanging, return_exceptions=True)
    assert good.starts == 1


async def test_a_changed_entry_takes_effect_without_touching_the_others(tmp_path: Path) -> None:
    gate = tmp_path / "go"
    kept, changed, removed = (Child(tmp_path, "plain", name=name) for name in ("kept", "changed", "removed"))
    new = Child(tmp_path, "plain", "modern", name="new")
    told: list[str] = []
    async with Pool(configs(kept, changed, removed)) as pool:
        before = dict(pool.upstreams)
        for name, upstream in before.items():
            upstream.on_change(lambda name=name: told.append(name))
        links = {name: await upstream.link("modern", ONE) for name, upstream in before.items()}
        for name, link in links.items():
            await before[name].catalog(link)
        flying = {name: asyncio.create_task(call(link, "wait", file=str(gate))) for name, link in links.items()}
        await until(lambda: all(child.count("tools/call") for child in (kept, changed, removed)))
        other = Child(tmp_path, "many_tools", "both", name="changed")
        await pool.update(configs(kept, other, new))
        assert list(pool.upstreams) == ["kept", "changed", "new"]
        assert pool.upstreams["changed"] is before["changed"]
        assert pool.upstreams["changed"].last_catalog("modern") is None
        assert pool.upstreams["kept"].last_catalog("modern") is not None
        for name in ("changed", "removed"):
            with pytest.raises(LinkLost) as raised:
                await flying[name]
            assert raised.value.sent
        assert not flying["kept"].done()
        gate.touch()
        assert await flying["kept"] == "waited"
        assert await pool.upstreams["kept"].link("modern", ONE) is links["kept"]
        assert len(await tools(before["changed"], await before["changed"].link("modern", ONE))) == 123
        assert await call(await pool.upstreams["new"].link("modern", ONE), "echo") == "{}"
        with pytest.raises(Unavailable, match="removed is not set up any more"):
            await before["removed"].link("modern", ONE)
        assert removed.running() == []
        await until(lambda: "changed" in told)
        assert "kept" not in told
    assert not any(child.running() for child in (kept, changed, removed, new))


async def test_new_limits_or_words_of_an_entry_stop_no_child(tmp_path: Path) -> None:
    child = Child(tmp_path, "plain")
    async with Pool(configs(child), patience=LIVELY) as pool:
        link = await pool.upstreams["plain"].link("legacy", ONE)
        await pool.update({"plain": replace(child.config, prefix="p", call_timeout=2.0)})
        assert link.lost is None
        with pytest.raises(LinkLost, match="it said nothing for"):
            await call(link, "silent")
        await pool.update({"plain": replace(child.config, disabled=True)})
        assert link.lost == "its entry was changed"
        assert pool.upstreams["plain"].state.kind == "disabled"
        await pool.update(configs(child))
        assert await call(await pool.upstreams["plain"].link("legacy", ONE), "echo") == "{}"


async def test_an_entry_that_is_mended_starts_at_once(tmp_path: Path) -> None:
    bad, good = Child(tmp_path, "exits_at_once", name="it"), Child(tmp_path, "plain", name="it")
    async with Pool(configs(bad)) as pool:
        with pytest.raises(Unavailable):
            await pool.upstreams["it"].link("modern", ONE)
        await pool.update(configs(good))
        assert await call(await pool.upstreams["it"].link("modern", ONE), "echo") == "{}"


async def test_an_update_ends_a_start_that_is_under_way(tmp_path: Path) -> None:
    child = Child(tmp_path, "never_answers")
    async with Pool(configs(child)) as pool:
        wanted = asyncio.create_task(pool.upstreams[child.name].link("modern", ONE))
        await until(lambda: child.starts)
        await pool.update({})
        with pytest.raises(Unavailable):
            await wanted
        assert not child.running()


async def test_nothing_runs_after_the_pool_is_closed(tmp_path: Path) -> None:
    before = asyncio.all_tasks()
    hanging = Child(tmp_path, "plain", name="hanging")
    starting = Child(tmp_path, "never_answers", name="starting")
    shared = Child(tmp_path, "plain", "legacy", name="shared", share="all")
    bridged = Child(tmp_path, "plain", "modern", name="bridged", call_timeout=60.0)
    every = (hanging, starting, shared, bridged)
    async with Pool(configs(*every), patience=QUICK) as pool:
        link = await pool.upstreams["hanging"].link("modern", ONE)
        await pool.upstreams["hanging"].catalog(link)
        first = asyncio.create_task(call(link, "hang"))
        second = asyncio.create_task(pool.upstreams["starting"].link("legacy", ONE))
        for name in ("shared", "bridged"):
            for era in ("legacy", "modern"):
                link = await pool.upstreams[name].link(era, ONE, initialize=initialize() if era == "legacy" else None)
                await pool.upstreams[name].catalog(link)
        await until(lambda: starting.starts and hanging.count("tools/call"))
    results = await asyncio.gather(first, second, return_exceptions=True)
    assert isinstance(results[0], LinkLost)
    assert isinstance(results[1], Unavailable)
    assert all(child.starts for child in every)
    assert not any(child.running() for child in every)
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == before
    await pool.aclose()


async def test_released_threads_leave_no_child(tmp_path: Path) -> None:
    children = [Child(tmp_path, "plain", name=name) for name in ("a", "b")]
    async with Pool(configs(*children)) as pool:
        for upstream in pool.upstreams.values():
            await upstream.link("modern", ONE)
        await pool.release(LinkKey("t_one"))
        assert not any(child.running() for child in children)
