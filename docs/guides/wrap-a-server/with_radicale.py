"""Runs a command while a real CalDAV server (Radicale) is up: `python with_radicale.py mcp.json -- COMMAND ...`.

Writes `play.json`, which is the file given with `{url}`, `{user}` and `{password}` filled in, and removes it at the end.
"""

import subprocess
import sys
from pathlib import Path

import anyio

from hotplug.testing.radicale import radicale


async def main() -> int:
    template, dashes, *command = sys.argv[1:]
    if dashes != "--":
        sys.exit(__doc__)
    play = Path("play.json")
    async with radicale(calendars={"work": "Work"}) as server:
        text = Path(template).read_text("utf-8")
        for name, value in (("url", server.url), ("user", server.username), ("password", server.password)):
            text = text.replace(f"{{{name}}}", value)
        try:
            play.write_text(text, "utf-8")
            return await anyio.to_thread.run_sync(subprocess.call, command)
        finally:
            play.unlink(missing_ok=True)


sys.exit(anyio.run(main))
