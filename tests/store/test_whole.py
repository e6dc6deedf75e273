"""Files that are replaced as wholes: what a reader, a second writer and a full disk meet."""

from __future__ import annotations

import os
import stat
import threading
import time
from pathlib import Path

import pytest

from hotplug.store.versions import KEPT, Versions, version_of
from hotplug.store.whole import locked, read_content, remove_leftovers, staged


def test_a_lock_is_held_by_one_and_free_again_afterwards(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    with locked(lock, patience=0) as first, locked(lock, patience=0.05) as second:
        assert (first, second) == (True, False)
    with locked(lock, patience=0) as third:
        assert third


def test_who_waits_for_a_lock_gets_it_when_it_is_free(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    order: list[str] = []
    holds, asks = threading.Event(), threading.Event()

    def hold() -> None:
        with locked(lock, patience=1):
            holds.set()
            asks.wait(5)
            time.sleep(0.05)
            order.append("first")

    thread = threading.Thread(target=hold)
    thread.start()
    assert holds.wait(5)
    asks.set()
    with locked(lock, patience=5) as held:
        order.append("second")
    thread.join()
    assert held
    assert order == ["first", "second"]


def test_a_fork_while_the_lock_is_held_does_not_keep_it(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    reading, writing = os.pipe()
    with locked(lock, patience=0) as held:
        assert held
        child = os.fork()
        if child == 0:
            os.close(writing)
            os.read(reading, 1)
            os._exit(0)
    try:
        with locked(lock, patience=0) as again:
            assert again
    finally:
        os.close(writing)
        os.close(reading)
        os.waitpid(child, 0)


def test_what_is_no_ordinary_file_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path):
        with pytest.raises(OSError, match=r"ordinary|directory"):
            read_content(path)
    assert read_content(tmp_path / "missing") is None


def test_a_staged_file_is_for_the_caller_alone_and_goes_if_it_is_not_used(tmp_path: Path) -> None:
    with staged(tmp_path / "a", b"x", like=None) as temporary:
        assert stat.S_IMODE(temporary.stat().st_mode) == 0o600
        assert temporary.read_bytes() == b"x"
    assert list(tmp_path.iterdir()) == []


def test_leftovers_of_the_killed_are_removed_and_nothing_else(tmp_path: Path) -> None:
    mine = [f".a.json.{'0' * 16}.saving"]
    others = [f".b.json.{'0' * 16}.saving", ".a.json.saving", "a.json", f"a.json.{'0' * 16}.saving", ".a.json.swp"]
    for name in mine + others:
        (tmp_path / name).touch()
    remove_leftovers(tmp_path, "a.json")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(others)


def test_versions_are_kept_once_in_order_and_the_oldest_go(tmp_path: Path) -> None:
    versions = Versions(tmp_path / "a.json")
    assert versions.entries() == []
    versions.make()
    for text in (b"1", b"2", b"2", b"1"):
        versions.keep(text)
    assert [versions.data(one) for one in versions.entries()] == [b"1", b"2", b"1"]
    for number in range(KEPT):
        versions.keep(f"n{number}".encode())
    kept = versions.entries()
    assert len(kept) == KEPT
    assert versions.data(kept[0]) == b"n0"
    assert stat.S_IMODE(versions.folder.stat().st_mode) == 0o700


def test_a_version_that_was_written_into_is_not_taken_for_what_it_was(tmp_path: Path) -> None:
    versions = Versions(tmp_path / "a.json")
    versions.make()
    versions.keep(b"1")
    (entry,) = versions.entries()
    entry.path.write_bytes(b"other")
    assert versions.data(entry) is None
    versions.keep(b"1")
    assert [versions.data(one) for one in versions.entries()] == [None, b"1"]


def test_a_file_that_is_not_there_has_a_version_of_its_own() -> None:
    assert version_of(None) == "none"
    assert version_of(b"") != version_of(b" ")
