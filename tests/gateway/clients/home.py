"""A user's home with a gateway in it: what a person types, and how a client gets to what `hotplug serve` serves."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import anyio

from hotplug.testing.program import started

SOURCES = Path(__file__).parents[3] / "src"
CHILDREN = Path(__file__).parent.parent / "children"
CALENDAR = """
[servers.home]
target = "sqlite:///home.db"
profile = "calendar"
"""
ZONED = {"start": "2026-06-11T17:00:00", "duration": "PT1H", "timeZone": "Europe/Berlin"}
JUNE = {"from": "2026-06-01T00:00:00Z", "to": "2026-07-01T00:00:00Z"}

RoadName = Literal["stdio", "http"]
ROADS: tuple[RoadName, ...] = ("stdio", "http")


@dataclass(frozen=True)
class Ran:
    """What one command did."""

    code: int
    out: str
    err: str


@dataclass(frozen=True)
class Road:
    """How a client gets there: a command to start, or a URL with a thread's token."""

    command: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict[str, str], repr=False)
    url: str = ""
    token: str = field(default="", repr=False)

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}


class Errors:
    """What a program has written to its standard error so far."""

    def __init__(self, path: Path) -> None:
        self._path = path

    async def wait_for(self, words: str) -> None:
        with anyio.fail_after(30):
            while words not in self._path.read_text():
                await anyio.sleep(0.05)


class Home:
    """Everything of one user, below one folder."""

    def __init__(self, folder: Path, config: str | None = None) -> None:
        self.folder = folder
        self.config = folder / "config" / "hotplug" / "hotplug.toml"
        self.env = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("HOTPLUG_", "XDG_", "PYTHON", "NODE_", "npm_"))
        } | {
            "HOME": str(folder),
            "XDG_CONFIG_HOME": str(folder / "config"),
            "XDG_STATE_HOME": str(folder / "state"),
            "XDG_CACHE_HOME": str(folder / "cache"),
            "PYTHONPATH": str(SOURCES),
            "PYTHONWARNINGS": "ignore",
        }
        self.work = folder / "work"
        self.work.mkdir(parents=True)
        if config is not None:
            self.write(config)

    def write(self, config: str) -> None:
        """Put a text in the place of hotplug.toml, whole."""
        self.config.parent.mkdir(parents=True, exist_ok=True)
        new = self.config.with_suffix(".new")
        new.write_text(config)
        new.replace(self.config)

    def command(self, *words: str) -> tuple[str, ...]:
        return (sys.executable, "-m", "hotplug", *words)

    def run(self, *words: str, code: int | None = 0, env: dict[str, str] | None = None) -> Ran:
        """What a person types, in a folder where nothing is."""
        done = subprocess.run(
            self.command(*words),
            env=self.env | (env or {}),
            cwd=self.work,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert code is None or done.returncode == code, (words, done.returncode, done.stdout, done.stderr)
        return Ran(done.returncode, done.stdout, done.stderr)

    def answer(self, *words: str) -> dict[str, Any]:
        return json.loads(self.run(*words, "--json").out)

    @contextmanager
    def serving(self, *words: str) -> Generator[str]:
        """`hotplug serve --http 0`, until the end of the block; its base URL."""
        with started(self.command("serve", "--http", "0", *words), env=self.env, seconds=60) as url:
            yield url

    @contextmanager
    def watched(self, *words: str) -> Generator[tuple[str, Errors]]:
        """As `serving`, with what it writes to standard error."""
        path = self.folder / "serve.err"
        with path.open("w") as errors:
            program = subprocess.Popen(
                self.command("serve", "--http", "0", *words),
                env=self.env,
                cwd=self.work,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
            try:
                assert program.stdout is not None
                yield program.stdout.readline().strip(), Errors(path)
            finally:
                program.terminate()
                program.wait(20)
                assert program.stdout is not None
                program.stdout.close()

    def over_stdio(self, *words: str, env: dict[str, str] | None = None) -> Road:
        return Road(command=self.command("serve", *words), env=self.env | (env or {}))

    def over_http(self, base: str, opened: dict[str, Any] | None = None) -> Road:
        """The way of a thread that is opened for it."""
        opened = opened or self.answer("thread", "open")
        return Road(url=base + opened["path"], token=opened["token"])

    @contextmanager
    def road(self, name: RoadName) -> Generator[Road]:
        if name == "stdio":
            yield self.over_stdio()
            return
        with self.serving() as base:
            yield self.over_http(base)


def text_of(content: Sequence[Any]) -> str:
    """The first block's text."""
    return content[0].text


def child(name: str, folder: Path, script: str = "plain", *more: str) -> str:
    """The entry of a raw server; what it does is written to `NAME.record` in the folder."""
    arguments = [str(CHILDREN / f"{script}.py"), str(folder / f"{name}.record"), *more]
    return f"\n[servers.{json.dumps(name)}]\ncommand = {json.dumps(sys.executable)}\nargs = {json.dumps(arguments)}\n"


def running(folder: Path) -> list[int]:
    """The processes of such servers that are there now."""
    found: list[int] = []
    for record in folder.glob("*.record"):
        for line in record.read_text().splitlines():
            if line.startswith("start "):
                pid = int(line.split()[1])
                try:
                    os.kill(pid, 0)
                except ProcessLookupError:
                    continue
                found.append(pid)
    return found
