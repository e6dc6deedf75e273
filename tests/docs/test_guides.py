"""The guides: every command in them runs and prints what they show."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
GUIDES = sorted((ROOT / "docs" / "guides").glob("*.md"))


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.stem)
def test_what_a_guide_quotes_stands_in_the_file(page: Path, check_page: Callable[[Path], None]) -> None:
    check_page(page)


@pytest.mark.real
@pytest.mark.timeout(600)
def test_building_a_server_goes_as_the_guide_says(tmp_path: Path, play_page: Callable[..., None]) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    play_page(ROOT / "docs" / "guides" / "build-a-server.md", tmp_path)


@pytest.mark.real
@pytest.mark.timeout(600)
def test_wrapping_a_server_goes_as_the_guide_says(tmp_path: Path, play_page: Callable[..., None]) -> None:
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "examples", tmp_path / "examples", ignore=ignored)
    shutil.copytree(ROOT / "docs" / "guides", tmp_path / "docs" / "guides", ignore=ignored)
    play_page(ROOT / "docs" / "guides" / "wrap-a-server.md", tmp_path)
