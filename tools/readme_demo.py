#!/usr/bin/env python3
"""Writes what `hotplug demo` prints into README.md, between the demo markers; `tests/docs/test_demo.py` compares.

tools/readme_demo.py
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

README = Path(__file__).resolve().parents[1] / "README.md"
BLOCK = re.compile(r"(?<=^```text\n)(?P<shown>.*?)(?=^```\n<!-- /demo -->$)", re.MULTILINE | re.DOTALL)


def shown(page: str) -> str:
    """The output that a page shows."""
    found = BLOCK.search(page)
    if found is None:
        raise SystemExit(f"{README} has no block of text before <!-- /demo -->")
    return found["shown"]


def main() -> None:
    demo = subprocess.run([sys.executable, "-m", "hotplug", "demo"], stdout=subprocess.PIPE, text=True, check=True)
    page = README.read_text(encoding="utf-8")
    shown(page)
    README.write_text(BLOCK.sub(lambda _: demo.stdout, page), encoding="utf-8")


if __name__ == "__main__":
    main()
