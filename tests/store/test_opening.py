"""Opening: URLs, files, versions, the key."""

from __future__ import annotations

import sqlite3
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from hotplug.errors import ConfigError, StoreError
from hotplug.store import Fresh, InFlight, memory, open_store, schema
from hotplug.store.schema import MIGRATIONS

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("postgresql://me:secret@host/db", "postgresql"),
        ("store.db", "no URL"),
        ("sqlite://store.db", "sqlite:///FILE"),
        ("sqlite:///", "names no file"),
        ("sqlite:///x.db?durability=some", "some"),
        ("sqlite:///x.db?mode=ro", "mode"),
    ],
)
def test_a_url_that_names_no_store_is_refused(url: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says) as refused:
        open_store(url)
    assert "secret" not in str(refused.value)


async def test_three_slashes_are_relative_and_four_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    async with open_store("sqlite:///new/a b%20.db"):
        assert (tmp_path / "new" / "a b%20.db").exists()
    async with open_store(f"sqlite:///{tmp_path}/c.db"):
        assert (tmp_path / "c.db").exists()
    async with open_store("sqlite:///:memory:"):
        assert sorted(path.name for path in tmp_path.iterdir()) == ["c.db", "c.db-owners", "new"]


async def test_only_the_owner_may_read_the_files(url: str, tmp_path: Path) -> None:
    (tmp_path / "store.db").touch(0o644)
    async with open_store(url) as store:
        await store.begin("p", "o", "k", "d")
        paths = [tmp_path / name for name in ("store.db", "store.db-wal", "store.db-shm")]
        paths += (tmp_path / "store.db-owners").iterdir()
        assert len(paths) == 5
        assert {stat.S_IMODE(path.stat().st_mode) for path in paths} == {0o600}
        assert stat.S_IMODE((tmp_path / "store.db-owners").stat().st_mode) == 0o700


async def test_an_open_file_that_others_could_read_is_closed_to_them(url: str, tmp_path: Path) -> None:
    await open_store(url).aclose()
    (tmp_path / "store.db").chmod(0o664)
    async with open_store(url):
        assert stat.S_IMODE((tmp_path / "store.db").stat().st_mode) == 0o600


async def test_the_sealing_key_is_made_once(url: str, start: Callable[..., Any]) -> None:
    workers = [start("seal", url) for _ in range(3)]
    async with open_store(url) as store:
        key = store.sealing_key()
    assert len(key) == 32
    assert {worker.read() for worker in workers} == {key.hex()}
    async with open_store(url) as store:
        assert store.sealing_key() == key
    async with memory() as one, memory() as two:
        assert len({key, one.sealing_key(), two.sealing_key()}) == 3


async def test_a_database_of_a_newer_version_is_refused_and_untouched(url: str, tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    await open_store(url).aclose()
    database = sqlite3.connect(path)
    database.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    database.close()
    path.chmod(0o644)
    before = {found: found.read_bytes() for found in tmp_path.rglob("*") if found.is_file()}
    with pytest.raises(StoreError, match=rf"version {len(MIGRATIONS) + 1}.*up to {len(MIGRATIONS)}"):
        open_store(url)
    assert {found: found.read_bytes() for found in tmp_path.rglob("*") if found.is_file()} == before
    assert stat.S_IMODE(path.stat().st_mode) == 0o644


async def test_what_is_past_its_retention_goes_at_the_next_opening(url: str) -> None:
    async with open_store(url, clock=lambda: 0.0) as store:
        await store.begin("p", "o", "k", "d")
    await open_store(url, clock=lambda: 25 * 3600.0).aclose()
    async with open_store(url, clock=lambda: 0.0) as store:
        assert isinstance(await store.begin("p", "o", "k", "d"), Fresh)


def test_a_migration_that_fails_leaves_the_version_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    database = sqlite3.connect(":memory:", isolation_level=None)
    schema.migrate(database)
    broken = (*MIGRATIONS, ("CREATE TABLE more (x)", "CREATE TABLE more (x)"))
    monkeypatch.setattr(schema, "MIGRATIONS", broken)
    with pytest.raises(sqlite3.OperationalError, match="already exists"):
        schema.migrate(database)
    assert database.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS),)
    assert database.execute("SELECT count(*) FROM sqlite_master WHERE name = 'more'").fetchone() == (0,)
    monkeypatch.setattr(schema, "MIGRATIONS", (*MIGRATIONS, ("CREATE TABLE more (x)",)))
    schema.migrate(database)
    assert database.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS) + 1,)
    database.close()


def test_a_file_of_another_program_is_refused_and_untouched(url: str, tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    database = sqlite3.connect(path)
    database.execute("CREATE TABLE notes (x)")
    database.commit()
    database.close()
    before = path.read_bytes()
    with pytest.raises(StoreError, match="another program"):
        open_store(url)
    path.write_text("Dear diary, " * 1000)
    with pytest.raises(StoreError, match="not a database"):
        open_store(url)
    assert path.read_text().startswith("Dear diary")
    assert before.startswith(b"SQLite format 3")


async def test_a_backends_tables_may_stand_in_the_stores_file(url: str) -> None:
    async with open_store(url) as store:
        with store.transaction() as c:
            c.execute("CREATE TABLE calendar_event (x)")
    async with open_store(url) as store:
        assert isinstance(await store.begin("p", "o", "k", "d"), Fresh)


async def test_the_leases_of_the_dead_are_swept_up(url: str, tmp_path: Path, start: Callable[..., Any]) -> None:
    worker = start("hold", url, "k", "plain")
    assert worker.read() == "Fresh"
    worker.kill()
    assert len(list((tmp_path / "store.db-owners").glob("*.lease"))) == 1
    async with open_store(url), open_store(url):
        assert len(list((tmp_path / "store.db-owners").glob("*.lease"))) == 2
    assert list((tmp_path / "store.db-owners").glob("*.lease")) == []


async def test_a_closed_store_says_so(url: str) -> None:
    store = open_store(url)
    await store.aclose()
    await store.aclose()
    with pytest.raises(StoreError, match="closed"):
        await store.begin("p", "o", "k", "d")


async def test_a_store_closes_in_a_cancelled_scope_and_gives_up_its_lease(url: str, tmp_path: Path) -> None:
    with anyio.CancelScope() as scope:
        async with open_store(url):
            scope.cancel()
            await anyio.sleep(1)
    assert scope.cancelled_caught
    assert list((tmp_path / "store.db-owners").glob("*.lease")) == []


async def test_a_store_reached_by_a_link_is_the_same_store(url: str, tmp_path: Path) -> None:
    async with open_store(url) as store:
        (tmp_path / "elsewhere").mkdir()
        (tmp_path / "elsewhere" / "link.db").symlink_to(tmp_path / "store.db")
        async with open_store(f"sqlite:///{tmp_path}/elsewhere/link.db") as linked:
            assert isinstance(await store.begin("p", "o", "k", "d"), Fresh)
            assert isinstance(await linked.begin("p", "o", "k", "d"), InFlight)
