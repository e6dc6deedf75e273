"""MCP Inspector's command line, as npm has it: the version and everything under it as locked beside this file."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import platformdirs

from hotplug.testing.suite import find_node

from .home import Home, Road

PACKAGE = "@modelcontextprotocol/inspector"
FILES = Path(__file__).parent / "inspector"


@dataclass(frozen=True)
class Inspected:
    """What one run of it showed."""

    code: int
    result: Any
    error: Any


def inspect(home: Home, road: Road, era: str, method: str, *more: str) -> Inspected:
    """Run it once: it connects, asks one thing, and leaves."""
    node = find_node()
    if road.command:
        # A child gets nothing of our variables but what it is given here.
        given = {name: road.env[name] for name in ("HOME", "PYTHONPATH", "PYTHONWARNINGS", "XDG_CONFIG_HOME")}
        given["XDG_STATE_HOME"] = road.env["XDG_STATE_HOME"]
        there = [word for name, value in given.items() for word in ("-e", f"{name}={value}")]
        last = ["--", *road.command]
    else:
        there = ["--transport", "http", "--server-url", road.url, "--header", f"Authorization: Bearer {road.token}"]
        last = []
    words = ["--cli", "--format", "json", "--protocol-era", era, "--method", method, *more, *there, *last]
    done = subprocess.run(
        [str(node), str(_installed(node)), *words],
        env=home.env,
        cwd=home.work,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    errors = [json.loads(line)["error"] for line in done.stderr.splitlines() if line.startswith('{"error"')]
    result = json.loads(done.stdout)["result"] if done.stdout.strip() else None
    assert result is not None or errors, done.stderr
    return Inspected(done.returncode, result, errors[-1] if errors else None)


def _installed(node: Path) -> Path:
    """Its program in the user's cache: installed beside its place and renamed, so that it is whole where it stands."""
    version = json.loads((FILES / "package.json").read_text())["dependencies"][PACKAGE]
    home = Path(platformdirs.user_cache_dir("hotplug")) / "inspector" / version
    program = home / "node_modules" / PACKAGE / "clients" / "launcher" / "build" / "index.js"
    if program.is_file():
        return program
    home.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f"{version}.", dir=home.parent, ignore_cleanup_errors=True) as folder:
        making = Path(folder) / "inspector"
        making.mkdir()
        for name in ("package.json", "package-lock.json"):
            making.joinpath(name).write_bytes((FILES / name).read_bytes())
        quiet = ("--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier", "--omit=optional")
        path = os.pathsep.join((str(node.parent), os.environ.get("PATH", "")))
        done = subprocess.run(
            ["npm", "ci", "--prefix", str(making), *quiet],
            env={**os.environ, "PATH": path},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-2000:]
        try:
            making.rename(home)
        except OSError:
            # Another run was faster.
            assert program.is_file()
    return program
