"""The README: every command in it runs, and every link of the pages leads somewhere."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.real
@pytest.mark.timeout(600)
def test_what_the_readme_says_to_run_runs(request: pytest.FixtureRequest, pages: Any) -> None:
    pages.result(request.node.name)


def test_every_link_of_the_pages_leads_to_a_file() -> None:
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.relative_to(ROOT)} links to {target}, which isn't there"
