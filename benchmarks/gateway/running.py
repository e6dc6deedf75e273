"""Programs that are measured: started as an owner starts them, and looked at from outside."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

__all__ = ["Front", "Gateway", "Peer", "Upstreams", "cpu_of", "direct", "entry", "memory_of", "process_with"]

_SOURCE: Final = str(Path(__file__).resolve().parents[2] / "src")
_ROOT: Final = str(Path(__file__).resolve().parents[2])
_UPSTREAM: Final = ("-m", "benchmarks.gateway.upstream")
ENV: Final[Mapping[str, str]] = {**os.environ, "PYTHONPATH": f"{_SOURCE}{os.pathsep}{_ROOT}"}


@dataclass(frozen=True)
class Front:
    """Where a client goes in: a URL with headers, or a command.

    Args:
        mark: Stands in the command line of the process whose work is measured.
    """

    url: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    command: Sequence[str] = ()
    mark: str = ""


def entry(url: str | None = None) -> dict[str, Any]:
    """An entry of `mcpServers` for the upstream: at a URL, or as a child."""
    if url is not None:
        return {"url": url}
    return {"command": sys.executable, "args": list(_UPSTREAM), "env": {"PYTHONPATH": ENV["PYTHONPATH"]}}


def direct(url: str | None = None) -> Front:
    """The upstream itself."""
    return Front(url=url) if url is not None else Front(command=(sys.executable, *_UPSTREAM))


class Upstreams:
    """Upstreams over HTTP, ended with the block."""

    def __init__(self) -> None:
        self._stack = contextlib.ExitStack()

    def start(self, count: int = 1, *, tools: int = 3) -> list[str]:
        """Start some at once; gives their URLs."""
        programs = [
            _started([sys.executable, *_UPSTREAM, "--http", "0", "--tools", str(tools)], self._stack)
            for _ in range(count)
        ]
        return [json.loads(_line(one))["url"] for one in programs]

    def __enter__(self) -> Upstreams:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()


class Gateway:
    """`hotplug serve` in front of some servers.

    Args:
        servers: Entries of `mcpServers`, by name; a native one has `target`.
        more: Further lines of `hotplug.toml`.
        settings: The access settings.
    """

    def __init__(
        self, servers: Mapping[str, Mapping[str, Any]], *, more: str = "", settings: Mapping[str, Any] | None = None
    ) -> None:
        self._stack = contextlib.ExitStack()
        self.folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-gateway-")))
        self.config = self.folder / "hotplug.toml"
        self.config.write_text("\n".join([*map(_table, servers, servers.values()), more]), encoding="utf-8")
        (self.folder / "settings.json").write_text(json.dumps(settings or {}), encoding="utf-8")
        self.env = {
            **ENV,
            "HOTPLUG_CONFIG": str(self.config),
            "HOTPLUG_SETTINGS": str(self.folder / "settings.json"),
            "XDG_STATE_HOME": str(self.folder / "state"),
        }
        self._token: tuple[str, str] | None = None

    def thread(self) -> tuple[str, str]:
        """A thread and its token."""
        if self._token is None:
            done = subprocess.run(
                [sys.executable, "-m", "hotplug", "thread", "open", "--format", "json"],
                env=self.env,
                capture_output=True,
                text=True,
                check=True,
            )
            found = json.loads(done.stdout)
            self._token = (found["thread"]["id"], found["token"])
        return self._token

    def command(self, *more: str) -> list[str]:
        """What starts it."""
        return [sys.executable, "-m", "hotplug", "serve", "--config", str(self.config), *more]

    def http(self) -> Front:
        """Start it over HTTP."""
        thread, token = self.thread()
        url = _line(_started(self.command("--http", "0"), self._stack, self.env))
        headers = {"authorization": f"Bearer {token}"}
        return Front(url=f"{url}/threads/{thread}/mcp", headers=headers, mark=str(self.config))

    def stdio(self) -> Front:
        """How a client starts it over standard streams."""
        return Front(command=self.command(), mark=str(self.config))

    def __enter__(self) -> Gateway:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()


class Peer:
    """FastMCP's proxy in front of some servers."""

    def __init__(self, servers: Mapping[str, Mapping[str, Any]]) -> None:
        self._stack = contextlib.ExitStack()
        self.folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-peer-")))
        self.config = self.folder / "servers.json"
        self.config.write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")

    def command(self, *more: str) -> list[str]:
        """What starts it."""
        return [sys.executable, "-m", "benchmarks.gateway.peer", str(self.config), *more]

    def http(self) -> Front:
        """Start it over HTTP."""
        port = free_port()
        _started(self.command("--http", str(port)), self._stack)
        _await_port(port)
        return Front(url=f"http://127.0.0.1:{port}/mcp", mark=str(self.config))

    def stdio(self) -> Front:
        """How a client starts it over standard streams."""
        return Front(command=self.command(), mark=str(self.config))

    def __enter__(self) -> Peer:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


def _await_port(port: int, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        time.sleep(0.005)
    raise SystemExit(f"nothing listens on port {port} after {seconds:g} s")


def process_with(mark: str) -> int:
    """The process in whose command line something stands."""
    for place in Path("/proc").iterdir():
        if place.name.isdecimal() and int(place.name) != os.getpid():
            with contextlib.suppress(OSError):
                if mark.encode() in (place / "cmdline").read_bytes():
                    return int(place.name)
    raise SystemExit(f"no process has {mark} in its command line")


def cpu_of(process: int) -> float:
    """Milliseconds that a process has worked, its children left out."""
    found = 0
    for thread in Path(f"/proc/{process}/task").iterdir():
        with contextlib.suppress(OSError):
            found += int((thread / "schedstat").read_text(encoding="ascii").split()[0])
    return found / 1e6


def memory_of(process: int) -> float:
    """Resident megabytes of a process."""
    return int(Path(f"/proc/{process}/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGESIZE") / 1e6


def _table(name: str, values: Mapping[str, Any]) -> str:
    lines = [f"[servers.{name}]"]
    for key, value in values.items():
        if isinstance(value, Mapping):
            held = ", ".join(f"{inner} = {json.dumps(one)}" for inner, one in value.items())
            lines.append(f"{key} = {{ {held} }}")
        else:
            lines.append(f"{key} = {json.dumps(value)}")
    return "\n".join(lines) + "\n"


def _started(
    command: Sequence[str], stack: contextlib.ExitStack, env: Mapping[str, str] | None = None
) -> subprocess.Popen[str]:
    program = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=dict(env or ENV),
        text=True,
    )
    stack.callback(_end, program)
    return program


def _line(program: subprocess.Popen[str]) -> str:
    assert program.stdout is not None
    line = program.stdout.readline().strip()
    if not line:
        raise SystemExit(f"{program.args} ended with {program.wait()}")
    return line


def _end(program: subprocess.Popen[str]) -> None:
    program.terminate()
    try:
        program.wait(10)
    except subprocess.TimeoutExpired:
        program.kill()
        program.wait()
    if program.stdout is not None:
        program.stdout.close()


@contextlib.contextmanager
def running(command: Sequence[str], env: Mapping[str, str] | None = None) -> Generator[subprocess.Popen[str]]:
    """A program that is ended with the block."""
    with contextlib.ExitStack() as stack:
        yield _started(command, stack, env)
