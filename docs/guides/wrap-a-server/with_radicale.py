"""Runs a command while a real CalDAV server (Radicale) is up: `python with_radicale.py mcp.json -- COMMAND ...`.

Writes `play.json`, the file given with `{url}`, `{user}` and `{password}` filled in, and removes it at the end. The
command finds the address of the account, with its password, in `CALDAV_ACCOUNT`.
"""

import os
import subprocess
import sys
from pathlib import Path

import anyio

from hotplug.testing.radicale import RadicaleServer, radicale

PLAY = Path("play.json")


def play(template: str, command: list[str], server: RadicaleServer) -> int:
    text = Path(template).read_text("utf-8")
    for name, value in (("url", server.url), ("user", server.username), ("password", server.password)):
        text = text.replace(f"{{{name}}}", value)
    account = server.user_url.replace("://", f"://{server.username}:{server.password}@")
    try:
        PLAY.write_text(text, "utf-8")
        return subprocess.call(command, env={**os.environ, "CALDAV_ACCOUNT": account})  # noqa: S603 - the caller's own
    finally:
        PLAY.unlink(missing_ok=True)


async def main() -> int:
    template, dashes, *command = sys.argv[1:]
    if dashes != "--":
        sys.exit(__doc__)
    async with radicale(calendars={"office": "Work"}) as server:
        return await anyio.to_thread.run_sync(play, template, command, server)


sys.exit(anyio.run(main))
