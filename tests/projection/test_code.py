"""Code beside a projection runs only as it was frozen."""

from __future__ import annotations

import os
import py_compile
from pathlib import Path

import pytest

from hotplug.errors import ProjectionError
from hotplug.projection import parse
from hotplug.projection.code import load_class
from hotplug.projection.fingerprint import code_digest

GOOD = "class Thing:\n    kind = 'good'\n"
EVIL = "class Thing:\n    kind = 'evil'\n"


def document(folder: Path, *, frozen: bool = True) -> Path:
    path = folder / "thing.yaml"
    digest = f"codeDigest: '{code_digest(folder / 'thing.py')}'\n" if frozen else ""
    path.write_text(
        "projection: test.hotplug.thing\nversion: 1.0.0\n"
        'upstream: {package: "command:thing", versions: ">=1"}\n'
        "profiles: {calendar: 1.0.0}\ncode: thing:Thing\n"
        f"{digest}operations:\n  calendar.get: {{code: true}}\ncoverage: {{}}\n"
    )
    return path


def loaded(path: Path) -> str:
    return load_class(parse(path.read_text(), path.name), path).kind


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "thing.py").write_text(GOOD)
    return tmp_path


def test_what_was_hashed_is_what_runs_and_a_planted_compiled_file_is_not(folder: Path) -> None:
    path = document(folder)
    source = folder / "thing.py"
    stat = source.stat()
    source.write_text(EVIL)
    os.utime(source, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    py_compile.compile(str(source))
    source.write_text(GOOD)
    os.utime(source, ns=(stat.st_atime_ns, stat.st_mtime_ns))

    assert list((folder / "__pycache__").glob("thing.*.pyc"))
    assert loaded(path) == "good"


def test_a_file_that_changed_after_freezing_is_refused(folder: Path) -> None:
    path = document(folder)
    (folder / "thing.py").write_text(EVIL)

    with pytest.raises(ProjectionError, match="frozen"):
        loaded(path)


def test_a_checkout_with_other_line_ends_is_the_same_code(folder: Path) -> None:
    path = document(folder)
    (folder / "thing.py").write_bytes(GOOD.replace("\n", "\r\n").encode())

    assert loaded(path) == "good"


def test_a_changed_file_that_is_not_frozen_yet_is_loaded_anew(folder: Path) -> None:
    path = document(folder, frozen=False)
    assert loaded(path) == "good"
    (folder / "thing.py").write_text(EVIL)
    assert loaded(path) == "evil"


@pytest.mark.parametrize("text", ["class Other: pass\n", "class Thing(:\n", "raise OSError('no')\n"])
def test_code_that_cannot_be_loaded_is_said_with_its_file(folder: Path, text: str) -> None:
    (folder / "thing.py").write_text(text)

    with pytest.raises(ProjectionError, match=r"thing\.py"):
        loaded(document(folder))


def test_a_missing_file_is_said(folder: Path) -> None:
    path = document(folder)
    (folder / "thing.py").unlink()

    with pytest.raises(ProjectionError, match=r"thing\.py"):
        loaded(path)
