"""How long `import hotplug` and the command take, start of the interpreter included."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from benchmarks.measure import Counts, Row, compare_blocking, row

__all__ = ["measure_start"]

CASES: tuple[tuple[str, list[str], float | None], ...] = (
    ("python -c pass", ["-c", "pass"], None),
    ("import hotplug", ["-c", "import hotplug"], 150),
    ("hotplug --version", ["-m", "hotplug", "--version"], None),
    ("hotplug --help", ["-m", "hotplug", "--help"], 200),
    ("hotplug profile --help", ["-m", "hotplug", "profile", "--help"], None),
)


def measure_start(counts: Counts) -> list[Row]:
    """Each program started anew, in turns."""
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1] / "src")}

    def started(arguments: list[str]) -> None:
        subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL, env=env)

    sides = {name: lambda arguments=arguments: started(arguments) for name, arguments, _ in CASES}
    times = compare_blocking(sides, Counts(rounds=counts.starts, calls=1))
    return [row("start", name, times, name, aim=aim) for name, _, aim in CASES]
