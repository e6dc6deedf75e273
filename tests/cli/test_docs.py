"""The page about the command line says what the command line says."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent


def test_the_page_is_current() -> None:
    ran = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "cli_docs.py"), "--check"],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "COLUMNS": "40", "NO_COLOR": "1"},
    )
    assert ran.returncode == 0, f"run python tools/cli_docs.py\n{ran.stderr}"
