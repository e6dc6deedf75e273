"""How long `import hotplug` and `hotplug --help` take, start of the interpreter included.

Run it alone: `python benchmarks/bench_start.py`. The median of some runs, against the aim beside it.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

RUNS = 11
CASES = (
    ("python -c pass", ["-c", "pass"], None),
    ("import hotplug", ["-c", "import hotplug"], 150),
    ("hotplug --version", ["-m", "hotplug", "--version"], None),
    ("hotplug --help", ["-m", "hotplug", "--help"], 200),
    ("hotplug profile --help", ["-m", "hotplug", "profile", "--help"], None),
)


def median_ms(arguments: list[str]) -> float:
    times: list[float] = []
    for _ in range(RUNS):
        start = time.perf_counter()
        subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1000


def main() -> int:
    late = False
    for name, arguments, aim in CASES:
        took = median_ms(arguments)
        late = late or (aim is not None and took > aim)
        print(f"{name:<24} {took:6.0f} ms" + (f"   aim: under {aim} ms" if aim else ""))
    return int(late)


if __name__ == "__main__":
    sys.exit(main())
