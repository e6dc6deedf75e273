"""A folder as a witness."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hotplug.errors import ConfigError
from hotplug.evidence.window import closed_cleanly
from hotplug.witness import Folder
from hotplug.witness.tree import fitting

pytestmark = pytest.mark.anyio


@contextmanager
def unprivileged() -> Iterator[None]:
    """As a user that permissions hold for, as they don't for root."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def folder() -> Iterator[Path]:
    made = Path(tempfile.mkdtemp(prefix="hotplug-folder-"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


async def test_files_that_come_change_and_go(folder: Path, watch: Callable[..., Any]) -> None:
    (folder / "old.txt").write_text("old")
    (folder / "same.txt").write_text("same")
    (folder / "out").mkdir()
    (folder / "out" / "page 1.html").write_text("one")
    files = Folder(folder)
    at = await watch(files)
    assert await at.seen() == []
    (folder / "old.txt").unlink()
    (folder / "same.txt").write_text("same")
    (folder / "out" / "page 1.html").write_text("two")
    (folder / "report.pdf").write_bytes(b"%PDF secret")
    seen = await at.observed()
    assert [one.summary for one in seen] == ["old.txt deleted", "out/page 1.html updated", "report.pdf created"]
    assert seen[2].value == {"path": "report.pdf", "size": 11, "sha256": hashlib.sha256(b"%PDF secret").hexdigest()}
    assert await at.observed() == seen
    assert await at.gaps() == []
    assert closed_cleanly(await at.close())
    assert files.can_prove_anything()


async def test_a_change_that_keeps_size_and_time_is_seen(folder: Path, watch: Callable[..., Any]) -> None:
    file = folder / "a.txt"
    file.write_text("one")
    os.utime(file, (1, 1))
    at = await watch(Folder(folder))
    assert await at.seen() == []
    file.write_text("two")
    os.utime(file, (1, 1))
    assert await at.seen() == ["a.txt updated"]


async def test_links_and_pipes_are_looked_at_and_not_entered(folder: Path, watch: Callable[..., Any]) -> None:
    (folder / "real").mkdir()
    at = await watch(Folder(folder))
    (folder / "loop").symlink_to(folder)
    os.mkfifo(folder / "pipe")
    (folder / "nowhere").symlink_to("missing")
    assert await at.seen() == ["loop created", "nowhere created", "pipe created"]
    (folder / "nowhere").unlink()
    (folder / "nowhere").symlink_to("elsewhere")
    assert (await at.seen())[-1] == "nowhere updated"
    assert await at.gaps() == []


async def test_an_unreadable_subfolder_is_a_blind_spot_and_its_files_are_not_gone(
    folder: Path, watch: Callable[..., Any]
) -> None:
    (folder / "private").mkdir()
    (folder / "private" / "a.txt").write_text("a")
    at = await watch(Folder(folder))
    (folder / "private").chmod(0)
    (folder / "new.txt").write_text("n")
    with unprivileged():
        assert await at.seen() == ["new.txt created"]
        (gap,) = await at.spots()
    assert (gap.kind, gap.channel) == ("channel-unobserved", "x-artifact")
    assert "private can't be read: Permission denied" in gap.detail
    (folder / "private").chmod(0o755)
    assert await at.seen() == ["new.txt created"]
    assert await at.gaps() == []
    (folder / "private" / "a.txt").unlink()
    assert await at.seen() == ["new.txt created", "private/a.txt deleted"]


async def test_an_unreadable_file_is_there_and_its_content_unknown(folder: Path, watch: Callable[..., Any]) -> None:
    file = folder / "a.txt"
    file.write_text("one")
    at = await watch(Folder(folder))
    file.chmod(0)
    with unprivileged():
        assert await at.seen() == []
        assert await at.gaps() == [("channel-unobserved", "x-artifact")]
    file.chmod(0o644)
    file.write_text("two")
    assert await at.seen() == ["a.txt updated"]


async def test_what_was_unreadable_at_the_opening_was_not_created_since(
    folder: Path, watch: Callable[..., Any]
) -> None:
    (folder / "private").mkdir()
    (folder / "private" / "a.txt").write_text("a")
    (folder / "private").chmod(0)
    with unprivileged():
        at = await watch(Folder(folder))
    (folder / "private").chmod(0o755)
    assert await at.seen() == []
    (gap,) = await at.spots()
    assert gap.detail.startswith("at the opening: ")
    (folder / "private" / "b.txt").write_text("b")
    assert await at.seen() == ["private/b.txt created"]


async def test_a_missing_folder_is_a_blind_spot_and_its_files_are_not_gone(
    folder: Path, watch: Callable[..., Any]
) -> None:
    inner = folder / "inner"
    inner.mkdir()
    (inner / "a.txt").write_text("a")
    files = Folder(inner)
    at = await watch(files)
    before = files.identity()
    inner.rename(folder / "moved")
    assert await at.seen() == []
    assert await at.gaps() == [("channel-unobserved", "x-artifact")]
    assert files.identity().instance != before.instance
    assert not closed_cleanly(await at.close())


async def test_more_files_than_the_limit_are_a_blind_spot(folder: Path, watch: Callable[..., Any]) -> None:
    for name in "bcd":
        (folder / name).write_text(name)
    at = await watch(Folder(folder, limit=3))
    assert await at.gaps() == []
    (folder / "a").write_text("a")
    assert await at.seen() == ["a created"]
    assert await at.gaps() == [("buffer-truncated", "x-artifact")]


@pytest.mark.parametrize(
    ("pattern", "fits", "does_not"),
    [
        ("**/*", ["a", "a/b", "a/b/c", ".hidden"], []),
        ("*.pdf", ["a.pdf"], ["a/b.pdf", "a.pdfx"]),
        ("**/*.pdf", ["a.pdf", "a/b.pdf", "a/b/c.pdf"], ["a.txt"]),
        ("out/**", ["out/a", "out/a/b"], ["a", "in/out/a"]),
        ("a/**/b/*.txt", ["a/b/x.txt", "a/c/d/b/x.txt"], ["a/x.txt", "b/x.txt"]),
        ("**/**/**/**/**/x", ["x", "a/x"], ["a/" * 200 + "y"]),
    ],
)
def test_patterns_of_paths(pattern: str, fits: list[str], does_not: list[str]) -> None:
    matcher = fitting(pattern)
    assert [path for path in (*fits, *does_not) if matcher(path)] == fits


@pytest.mark.parametrize("pattern", ["/etc/*", "../*", "a/../../b", "", "."])
def test_a_pattern_that_leaves_the_folder_is_refused(pattern: str, folder: Path) -> None:
    with pytest.raises(ConfigError, match="leaves the folder"):
        Folder(folder, pattern)
