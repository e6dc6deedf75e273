"""The README: every command in it runs."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

TESTED_ELSEWHERE = {
    "make demo": "tests/docs/test_demo.py runs what it runs",
    "make test": "runs this",
}


@pytest.mark.real
@pytest.mark.timeout(600)
def test_what_the_readme_says_to_run_runs(tmp_path: Path, play_page: Callable[..., None]) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    entry = {"command": "python", "args": ["examples/memo_calendar/server.py"]}
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"memo": entry}}), encoding="utf-8")
    play_page(ROOT / "README.md", tmp_path, tested_elsewhere=TESTED_ELSEWHERE)


def test_every_link_of_the_pages_leads_to_a_file() -> None:
    import re

    for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.relative_to(ROOT)} links to {target}, which isn't there"
