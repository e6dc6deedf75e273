"""The diary as a child: `moody.py FILE`; where the file exists, an entry needs a mood as well."""

from __future__ import annotations

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "projection"))

from diary import Diary


async def add_entry(diary: str, head: str, begin: str, finish: str, mood: str) -> str:
    """Add an entry."""
    return "{}"


print(f"process {os.getpid()}", file=sys.stderr, flush=True)
kept = Diary()
if Path(sys.argv[1]).exists():
    kept.server.remove_tool("add_entry")
    kept.server.add_tool(add_entry, structured_output=False)
kept.server.run("stdio")
