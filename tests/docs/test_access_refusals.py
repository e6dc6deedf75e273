"""The page about refusals quotes what is really said, and no refusal is missing from it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_every_refusal_stands_on_the_page_as_it_is_said() -> None:
    ran = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "access_refusals.py"), "--check"],
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ran.returncode == 0, f"run python tools/access_refusals.py\n{ran.stderr}"


def test_every_refusal_says_what_to_do() -> None:
    page = (ROOT / "docs" / "guides" / "access-refusals.md").read_text(encoding="utf-8")
    rows = [line.split(" | ") for line in page.splitlines() if line.startswith("| ") and "`" in line]
    assert len(rows) > 80
    assert [row for row in rows if len(row) != 3 or len(row[2].strip(" |")) < 8] == []
