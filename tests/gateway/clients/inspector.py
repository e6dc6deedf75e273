"""MCP Inspector's command line, as npm has it: the version and everything under it as locked beside this file."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hotplug.testing.suite import find_node

from ...npm import installed  # noqa: TID252  # tests are no package
from .home import Home, Road

PROGRAM = "@modelcontextprotocol/inspector/clients/launcher/build/index.js"
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
        [str(node), str(installed(FILES) / PROGRAM), *words],
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
