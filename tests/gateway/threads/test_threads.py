"""Threads: opened with their lineage, known by their tokens, closed with all below them."""

from __future__ import annotations

import asyncio
import base64
import logging
import os
import random
import sqlite3
from collections.abc import Callable
from contextlib import aclosing, closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from hotplug.access import Host, Settings, Thread, is_thread_id, resolve
from hotplug.errors import ConfigError, StoreError
from hotplug.gateway.threads import ThreadRefused, Threads
from hotplug.gateway.tokens import OWNER, token_hash
from hotplug.store import SqliteStore, memory, open_store
from hotplug.store.threads import Changes, SqliteThreads, threads_of

pytestmark = pytest.mark.anyio


async def test_a_thread_is_on_record_with_its_lineage_when_its_token_is_given_out(url: str, threads: Threads) -> None:
    root, root_token = await threads.open(project="acme", title="Plan the week")
    child, token = await threads.open(parent=root.id, delegated=True)
    async with open_store(url) as elsewhere, Threads.over(elsewhere) as others:
        assert others.authenticate(child.id, token)
        assert others.authenticate(root.id, root_token)
        assert others.lineage() == {
            root.id: Thread(root.id, project="acme"),
            child.id: Thread(child.id, parent=root.id, delegated=True, project="acme"),
        }
        assert others.get(child.id) == child
    assert (child.depth, child.closed, root.title) == (1, None, "Plan the week")


async def test_ids_and_tokens_are_made_here_and_say_what_they_are(threads: Threads) -> None:
    opened = [await threads.open() for _ in range(50)]
    assert len({thread.id for thread, _ in opened}) == len({token for _, token in opened}) == 50
    for thread, token in opened:
        assert is_thread_id(thread.id)
        assert thread.id.startswith("t_")
        assert thread.id[2:].isalnum()
        assert len(thread.id) == 18
        assert token.startswith("hpt_")
        assert len(token) == 47


async def test_wrong_unknown_closed_and_anothers_token_are_one_answer(threads: Threads) -> None:
    first, first_token = await threads.open()
    second, second_token = await threads.open()
    gone, gone_token = await threads.open()
    await threads.close(gone.id)
    tried = [
        (first.id, second_token),
        (first.id, first_token[:-1]),
        (first.id, first_token + "x"),
        (first.id, ""),
        (first.id, "ü\ud800" * 1000),
        (first.id, token_hash(first_token).hex()),
        (gone.id, gone_token),
        ("t_aaaaaaaaaaaaaaaa", first_token),
        ("", ""),
        (OWNER, ""),
        (first.id.upper(), first_token),
    ]
    assert [threads.authenticate(*one) for one in tried] == [False] * len(tried)
    assert [threads.of_token(token) for _, token in tried if token not in (first_token, second_token)] == [None] * 8
    assert threads.authenticate(first.id, first_token)
    assert threads.of_token(second_token) == second


async def test_a_child_is_in_its_parents_project_and_under_an_open_parent(threads: Threads) -> None:
    root, _ = await threads.open(project="acme")
    with pytest.raises(ThreadRefused, match="its parent's project, not in 'other'") as refused:
        await threads.open(parent=root.id, project="other")
    assert refused.value.why == "project"
    child, _ = await threads.open(parent=root.id, project="acme")
    assert child.project == "acme"
    plain, _ = await threads.open()
    with pytest.raises(ThreadRefused):
        await threads.open(parent=plain.id, project="acme")
    await threads.close(root.id)
    for parent in (root.id, child.id, "t_nobody"):
        with pytest.raises(ThreadRefused) as refused:
            await threads.open(parent=parent)
        assert refused.value.why == "parent"
    assert [one.id for one in threads.list()] == [plain.id]


@pytest.mark.parametrize("text", ["", " ", "a\nb", "x" * 300, " edge", "\x1b[31m", "\ud800"])
async def test_a_title_or_project_that_is_no_plain_line_is_refused(threads: Threads, text: str) -> None:
    given: dict[str, Any]
    for given in ({"title": text}, {"project": text}):
        with pytest.raises(ThreadRefused, match="on one line"):
            await threads.open(**given)
    assert threads.list() == ()


async def test_a_root_can_not_be_delegated(threads: Threads) -> None:
    with pytest.raises(ThreadRefused, match="nobody delegates"):
        await threads.open(delegated=True)


async def test_a_thread_has_at_most_64_above_it_as_the_resolver_has_it(threads: Threads) -> None:
    parent: str | None = None
    for _ in range(65):
        parent = (await threads.open(parent=parent))[0].id
    assert parent is not None
    with pytest.raises(ThreadRefused, match="64 threads above it") as refused:
        await threads.open(parent=parent)
    assert refused.value.why == "depth"
    assert type(resolve(Settings(), parent, threads.lineage(), Host())).__name__ == "Access"


async def test_more_threads_than_the_bound_are_refused_until_one_is_closed(store: SqliteStore) -> None:
    async with Threads.over(store, most=3) as threads:
        opened = [await threads.open() for _ in range(3)]
        with pytest.raises(ThreadRefused, match="as many threads are open as may be: 3") as refused:
            await threads.open()
        assert refused.value.why == "limit"
        await threads.close(opened[0][0].id)
        await threads.open()


async def test_no_thread_can_keep_the_owner_out_by_opening_children(store: SqliteStore) -> None:
    async with Threads.over(store, most=20) as threads:
        root, _ = await threads.open()
        for _ in range(17):
            await threads.open(parent=root.id)
        with pytest.raises(ThreadRefused, match="as may be: 18"):
            await threads.open(parent=root.id)
        await threads.open()
        await threads.open()
        with pytest.raises(ThreadRefused, match="as may be: 20"):
            await threads.open()


async def test_closing_closes_everything_below_and_nothing_beside(threads: Threads) -> None:
    root, root_token = await threads.open()
    beside, beside_token = await threads.open(parent=root.id)
    top, top_token = await threads.open(parent=root.id)
    left, left_token = await threads.open(parent=top.id)
    right, right_token = await threads.open(parent=top.id)
    under, under_token = await threads.open(parent=left.id)
    gone = await threads.close(top.id)
    assert (gone[0], set(gone)) == (top.id, {top.id, left.id, right.id, under.id})
    tokens = {top: top_token, left: left_token, right: right_token, under: under_token}
    assert not any(threads.authenticate(thread.id, token) for thread, token in tokens.items())
    assert set(threads.lineage()) == {root.id, beside.id}
    assert threads.authenticate(root.id, root_token)
    assert threads.authenticate(beside.id, beside_token)
    assert await threads.close(top.id) == await threads.close("t_unknown") == ()
    known = threads.get(under.id)
    assert known is not None
    assert known.closed is not None
    assert {one.id for one in threads.list(closed=10)} == {root.id, beside.id, *gone}


async def test_what_is_opened_and_closed_changes_the_version_and_leaves_a_lineage_in_hand_as_it_was(
    threads: Threads,
) -> None:
    seen = [threads.version]
    before = threads.lineage()
    thread, _ = await threads.open()
    seen.append(threads.version)
    during = threads.lineage()
    assert threads.lineage() is during
    await threads.close(thread.id)
    seen.append(threads.version)
    assert len(set(seen)) == 3
    assert (dict(before), set(during), dict(threads.lineage())) == ({}, {thread.id}, {})


async def test_a_restart_forgets_nothing(url: str) -> None:
    async with open_store(url) as store, Threads.over(store) as threads:
        root, token = await threads.open(project="acme")
        closed, closed_token = await threads.open(parent=root.id)
        await threads.close(closed.id)
        version = threads.version
    async with open_store(url) as store, Threads.over(store) as threads:
        assert threads.authenticate(root.id, token)
        assert not threads.authenticate(closed.id, closed_token)
        assert threads.version == version
        assert list(threads.lineage()) == [root.id]
        assert threads.is_within((await threads.open(parent=root.id))[0].id, root.id)


async def test_what_another_process_closes_is_closed_here_at_the_next_question(
    url: str, threads: Threads, start: Callable[..., Any]
) -> None:
    root, token = await threads.open()
    child, child_token = await threads.open(parent=root.id)
    worker = start("close", url, root.id)
    assert worker.read() == "ready"
    assert threads.authenticate(child.id, child_token)
    worker.go_on()
    assert worker.read() == [root.id, child.id]
    assert not threads.authenticate(child.id, child_token)
    assert not threads.authenticate(root.id, token)
    assert threads.of_token(token) is None
    assert dict(threads.lineage()) == {}


async def test_what_the_same_process_closes_by_another_way_is_closed_at_once_too(url: str, threads: Threads) -> None:
    thread, token = await threads.open()
    assert threads.authenticate(thread.id, token)
    async with open_store(url) as elsewhere, Threads.over(elsewhere) as others:
        await others.close(thread.id)
        assert not threads.authenticate(thread.id, token)


async def test_who_holds_something_of_a_thread_is_told_when_anybody_closes_it(url: str, threads: Threads) -> None:
    root, _ = await threads.open()
    child, _ = await threads.open(parent=root.id)
    kept, _ = await threads.open()
    async with open_store(url) as elsewhere, Threads.over(elsewhere) as others, asyncio.timeout(30):
        told = aclosing(others.closings(every=0.001))
        async with told as closings:
            first = asyncio.ensure_future(anext(closings))
            await asyncio.sleep(0)
            await threads.open()
            await threads.close(root.id)
            assert await first == {root.id, child.id}
            second = asyncio.ensure_future(anext(closings))
            await others.close(kept.id)
            assert await second == {kept.id}


async def test_what_was_closed_is_forced_to_the_disk(threads: Threads, monkeypatch: pytest.MonkeyPatch) -> None:
    thread, _ = await threads.open()
    forced: list[str] = []

    def fsync(fd: int) -> None:
        forced.append(Path(f"/proc/self/fd/{fd}").readlink().name)

    monkeypatch.setattr(os, "fsync", fsync)
    await threads.close("t_none")
    assert forced == []
    await threads.close(thread.id)
    assert forced == ["gateway.db-wal"]


@pytest.mark.parametrize("moment", [0, 1, 2, 5, 20])
async def test_an_opening_that_is_cancelled_leaves_all_or_nothing(url: str, moment: int) -> None:
    async with open_store(f"{url}?durability=full") as store, Threads.over(store) as threads:
        root, token = await threads.open()
        opening = asyncio.ensure_future(threads.open(parent=root.id))
        for _ in range(moment):
            await asyncio.sleep(0)
        opening.cancel()
        await asyncio.gather(opening, return_exceptions=True)
        assert threads.authenticate(root.id, token)
        await threads.close(root.id)
        assert threads.list() == ()
        await threads.open()


async def test_the_owners_thread_is_made_once_has_no_token_and_can_be_opened_again(url: str, threads: Threads) -> None:
    owner = await threads.owner()
    assert (owner.id, owner.parent, await threads.owner()) == (OWNER, None, owner)
    assert not threads.authenticate(OWNER, "")
    child, token = await threads.open(parent=OWNER)
    assert set(await threads.close(OWNER)) == {OWNER, child.id}
    assert not threads.is_open(OWNER)
    async with open_store(url) as elsewhere, Threads.over(elsewhere) as others:
        await others.owner()
    assert threads.is_open(OWNER)
    assert not threads.authenticate(child.id, token)


async def test_a_token_is_in_no_file_no_log_and_no_error(
    store: SqliteStore,
    threads: Threads,
    everything_written: Callable[[], bytes],
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    root, token = await threads.open(title="marker of the title")
    children = [await threads.open(parent=root.id) for _ in range(20)]
    said = repr(threads) + repr(root) + repr(threads.list())
    wrong: dict[str, Any]
    for wrong in ({"parent": "t_none"}, {"parent": root.id, "project": "x"}):
        with pytest.raises(ThreadRefused) as refused:
            await threads.open(**wrong)
        said += str(refused.value)
    threads.authenticate("t_none", token)
    await threads.close(root.id)
    written = everything_written()
    assert b"marker of the title" in written
    for one in (token, *(token for _, token in children)):
        secret = one.removeprefix("hpt_")
        assert secret.encode() not in written
        assert base64.urlsafe_b64decode(secret + "=") not in written
        assert secret not in said + caplog.text


async def test_the_hash_of_a_closed_threads_token_is_forgotten(store: SqliteStore, threads: Threads) -> None:
    thread, _ = await threads.open()
    await threads.close(thread.id)
    with store.transaction() as c:
        assert c.execute("SELECT token FROM store_thread").fetchall() == [(None,)]


async def test_killed_at_any_moment_nothing_half_stays_and_every_token_that_was_given_out_is_on_record(
    url: str, tmp_path: Path, start: Callable[..., Any]
) -> None:
    chance = random.Random(7)
    given: dict[str, tuple[dict[str, Any], str]] = {}
    closed: set[str] = set()
    for _ in range(8):
        worker = start("open", url)
        for _ in range(chance.randrange(1, 120)):
            said, token = worker.read()
            if token is None:
                closed |= set(said)
            else:
                given[said["id"]] = (said, token)
        worker.kill()
        for said, token in worker.read_all():
            if token is None:
                closed |= set(said)
            else:
                given[said["id"]] = (said, token)
    async with open_store(url) as store, Threads.over(store) as threads:
        for id_, (said, token) in given.items():
            if id_ in closed:
                assert not threads.authenticate(id_, token)
            elif threads.is_open(id_):
                assert threads.authenticate(id_, token)
                thread = threads.lineage()[id_]
                assert (thread.parent, thread.project) == (said["parent"], said["project"])
            # Else it was closed in the moment before the end, unsaid.
        open_ids = set(threads.lineage())
        assert len(given.keys() & open_ids) > len(given) / 2
        for thread in threads.list(closed=100_000):
            parent = None if thread.parent is None else threads.get(thread.parent)
            assert (parent is None) is (thread.parent is None)
            assert thread.depth == (0 if parent is None else parent.depth + 1)
            if parent is not None:
                assert thread.project == parent.project
                assert thread.closed is not None or parent.closed is None
    with closing(sqlite3.connect(tmp_path / "gateway.db")) as looking:
        rows = looking.execute("SELECT length(token), closed FROM store_thread").fetchall()
        assert {(length, closed is None) for length, closed in rows} <= {(32, True), (None, False)}
        assert looking.execute("PRAGMA integrity_check").fetchone() == ("ok",)


class Counting(SqliteThreads):
    """Counts what it reads."""

    def __init__(self, store: SqliteStore) -> None:
        super().__init__(store)
        self.read = 0

    def since(self, change: int | None) -> Changes:
        changes = super().since(change)
        self.read += len(changes.threads)
        return changes


async def test_with_10_000_threads_a_change_costs_what_changed_and_a_question_nothing(store: SqliteStore) -> None:
    counting = Counting(store)
    async with Threads(counting) as threads, Threads.over(store) as others:
        with store.transaction() as c:
            c.executemany(
                "INSERT INTO store_thread (id, parent, depth, delegated, token, opened, change)"
                " VALUES (?, ?, 0, 0, ?, 0, ?)",
                [(f"t_{n}", None, token_hash(f"hpt_{n}"), n) for n in range(1, 10_001)],
            )
            c.execute("UPDATE store_counter SET value = 10000 WHERE name = 'thread'")
        assert len(threads.lineage()) == 10_000
        assert counting.read == 10_000
        child, token = await others.open(parent="t_77")
        assert len(await others.close("t_99")) == 1
        assert threads.authenticate(child.id, token)
        assert counting.read == 10_002
        assert all(threads.authenticate(f"t_{n}", f"hpt_{n}") for n in range(200, 700))
        assert not threads.authenticate("t_99", "hpt_99")
        assert len(threads.lineage()) == 10_000
        assert threads.lineage() is threads.lineage()
        assert counting.read == 10_002


async def test_closed_threads_are_forgotten_in_time_and_who_slept_meanwhile_still_learns_it(url: str) -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC).timestamp()
    async with (
        open_store(url) as store,
        Threads(SqliteThreads(store, clock=lambda: now), clock=lambda: now) as threads,
        open_store(url) as elsewhere,
        Threads.over(elsewhere) as sleeping,
    ):
        root, token = await threads.open()
        kept, kept_token = await threads.open()
        assert sleeping.authenticate(root.id, token)
        await threads.close(root.id)
        assert threads.get(root.id) is not None
        now += 91 * 86_400
        await threads.open()
        assert threads.get(root.id) is None
        assert not sleeping.authenticate(root.id, token)
        assert sleeping.authenticate(kept.id, kept_token)


async def test_threads_in_memory_work_alike() -> None:
    async with memory() as store, Threads.over(store) as threads, Threads.over(store) as others:
        root, token = await threads.open()
        assert others.authenticate(root.id, token)
        await threads.close(root.id)
        assert not others.authenticate(root.id, token)
        assert others.list() == ()


async def test_where_the_store_can_not_be_read_nobody_is_let_in(url: str, tmp_path: Path) -> None:
    async with open_store(url) as store, Threads.over(store) as threads:
        thread, token = await threads.open()
        with store.transaction() as c:
            c.execute("DROP TABLE store_counter")
        for ask in (lambda: threads.authenticate(thread.id, token), lambda: threads.of_token(token)):
            with pytest.raises(StoreError):
                ask()


def test_a_store_of_another_kind_keeps_no_threads() -> None:
    class Odd:
        pass

    with pytest.raises(ConfigError, match="Odd keeps no threads"):
        threads_of(Odd())  # pyright: ignore[reportArgumentType]
