"""The gateway and its servers as processes: started, looked at from outside, killed."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Final

OPENER: Final = "hpo_" + "soak" * 11
_HERE: Final = Path(__file__).parent
_SOURCE: Final = _HERE.parents[2] / "src"
_SERVER: Final = str(_HERE / "server.py")


class Machine:
    """Runs a gateway in front of six servers, in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.settings = folder / "settings.json"
        self.errors = folder / "gateway.stderr"
        self.memory: list[tuple[float, int]] = []
        """When, and the gateway's resident bytes."""
        self.kills = 0
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self._web: subprocess.Popen[bytes] | None = None
        self._gateway: subprocess.Popen[str] | None = None

    @property
    def gateway(self) -> subprocess.Popen[str]:
        assert self._gateway is not None
        return self._gateway

    def start(self) -> str:
        """Start all; gives the gateway's URL."""
        self.start_web()
        config = self.folder / "hotplug.toml"
        config.write_text(self._config(), encoding="utf-8")
        env = {
            **os.environ,
            "PYTHONPATH": str(_SOURCE),
            "HOTPLUG_SETTINGS": str(self.settings),
            "XDG_STATE_HOME": str(self.folder / "state"),
            "PYTHONASYNCIODEBUG": "",
        }
        command = [sys.executable, "-m", "hotplug", "serve", "--config", str(config), "--http", "0"]
        with self.errors.open("wb") as errors:
            self._gateway = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, env=env, text=True
            )
        assert self._gateway.stdout is not None
        line = self._gateway.stdout.readline().strip()
        if line.startswith("{"):
            line = json.loads(line)["url"]
        assert line.startswith("http"), self.errors.read_text(encoding="utf-8")
        return line

    def _config(self) -> str:
        def piped(kind: str, more: str = "") -> str:
            arguments = json.dumps(["-I", "-S", _SERVER, kind, str(self.folder)])
            return f"[servers.{kind}]\ncommand = {json.dumps(sys.executable)}\nargs = {arguments}\n{more}\n"

        return "\n".join(
            (
                piped("own", 'share = "thread"'),
                piped("all", 'share = "all"'),
                piped("frail", 'share = "thread"'),
                piped("stuck", 'share = "all"\ncall_timeout = 2'),
                f'[servers.web]\nurl = "http://127.0.0.1:{self.port}/mcp"\n',
                f'[servers.cal]\ntarget = "sqlite:///{self.folder}/calendar.db"\nprofile = "calendar"\n',
                f'[threads.openers]\nsoak = "{hashlib.sha256(OPENER.encode()).hexdigest()}"\n',
            )
        )

    def start_web(self) -> None:
        """Start the HTTP server, or start it again; the port stays."""
        self._web = subprocess.Popen(
            [sys.executable, str(_HERE / "web.py"), str(self.port)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
        )

    def listens(self) -> bool:
        """Whether the HTTP server takes connections."""
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
        except OSError:
            return False
        return True

    def kill_web(self) -> None:
        assert self._web is not None
        self._web.kill()
        self._web.wait()

    def look(self) -> None:
        """Note the gateway's memory."""
        pages = int(Path(f"/proc/{self.gateway.pid}/statm").read_text(encoding="ascii").split()[1])
        self.memory.append((time.monotonic(), pages * os.sysconf("SC_PAGESIZE")))

    def children(self) -> dict[int, str]:
        """The gateway's children that run, with their kinds."""
        found: dict[int, str] = {}
        for entry in Path("/proc").iterdir():
            if not entry.name.isdecimal():
                continue
            with contextlib.suppress(OSError):
                command = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
                if _SERVER in command and str(self.folder) in command:
                    found[int(entry.name)] = command[command.index(_SERVER) + 1]
        return found

    def kill_one(self, random: Random) -> None:
        """Kill a child from outside."""
        children = sorted(self.children())
        if children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(random.choice(children), signal.SIGKILL)
                self.kills += 1

    def stop(self) -> int:
        """End the gateway as its owner does; gives its exit code."""
        self.gateway.terminate()
        return self.gateway.wait(30)

    def end(self) -> None:
        """End whatever is left, when all has been looked at."""
        for program in (self._gateway, self._web):
            if program is not None:
                program.kill()
                program.wait()
        if self._gateway is not None and self._gateway.stdout is not None:
            self._gateway.stdout.close()
        for child in self.children():
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)


async def until(condition: Callable[[], bool], seconds: float) -> bool:
    """Wait for something; whether it came."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(0.05)
    return True
