"""`python -m benchmarks`: all of it as a table, and with `--json FILE` as a document too."""

from __future__ import annotations

import argparse
import json
import logging
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path

import anyio

from benchmarks.measure import Counts, Row

SCHEMA = "hotplug.bench/1"
GROUPS = ("native", "client", "projected", "real", "start", "documents", "evidence", "access")


def main() -> int:
    """Measure what is asked for; 1 where an aim is missed and `--strict` was given, else 0."""
    asked = _arguments()
    counts = Counts(rounds=asked.rounds, calls=asked.calls, starts=asked.starts)
    started, load = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), os.getloadavg()
    rows: list[Row] = []
    for group in asked.only or GROUPS:
        found = _measured(group, counts)
        for line in _table(found):
            print(line, flush=True)
        rows.extend(found)
    if asked.json:
        machine = {
            "cpus": os.cpu_count(),
            "system": f"{platform.system()} {platform.machine()}",
            "python": platform.python_version(),
            "mcp": version("mcp"),
            "load": [[round(one, 2) for one in load], [round(one, 2) for one in os.getloadavg()]],
        }
        document = {
            "schema": SCHEMA,
            "at": started,
            "machine": machine,
            "counts": {"rounds": counts.rounds, "calls": counts.calls, "starts": counts.starts},
            "rows": [one.document() for one in rows],
        }
        Path(asked.json).write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    return int(asked.strict and any(one.met is False for one in rows))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument("--json", metavar="FILE", help="write a document of the schema hotplug.bench/1 there")
    parser.add_argument("--only", action="append", choices=GROUPS, help="measure only this; may be given again")
    parser.add_argument("--rounds", type=int, default=Counts.rounds, help="rounds of a comparison (%(default)s)")
    parser.add_argument("--calls", type=int, default=Counts.calls, help="calls of a side in a round (%(default)s)")
    parser.add_argument("--starts", type=int, default=Counts.starts, help="starts of a program (%(default)s)")
    parser.add_argument("--strict", action="store_true", help="fail where an aim is missed")
    return parser.parse_args()


def _measured(group: str, counts: Counts) -> list[Row]:
    # Imported where they are needed: some of it is slow to import, and `--only start` needs none.
    if group == "start":
        from benchmarks.start import measure_start

        return measure_start(counts)
    if group == "documents":
        from benchmarks.documents import measure_documents

        return measure_documents(counts)
    if group == "evidence":
        from benchmarks.evidence import measure_evidence

        return measure_evidence(counts)
    if group == "access":
        from benchmarks.access import measure_access

        return measure_access(counts)
    from benchmarks import native, projected

    # Making an MCPServer sets up logging for the process, and then every HTTP request is a line between ours.
    logging.getLogger("httpx2").setLevel(logging.WARNING)

    measures: dict[str, Callable[..., object]] = {
        "native": native.measure_native,
        "client": native.measure_client,
        "projected": projected.measure_projected,
        "real": projected.measure_real,
    }
    return anyio.run(measures[group], counts)  # type: ignore[arg-type]


def _table(rows: list[Row]) -> Iterator[str]:
    group = ""
    for one in rows:
        if one.group != group:
            group = one.group
            yield f"\n{group}"
        side = "" if one.side == one.name else one.side
        line = f"  {one.name:<24} {side:<18} {one.ms:9.3f} ms"
        if one.ratio is not None and one.spread is not None:
            line += (
                f"  {one.ratio:5.2f} × {one.base} ({one.base_ms:.3f} ms; {one.spread[0]:.2f} to {one.spread[1]:.2f})"
            )
        if one.aim is not None:
            unit = " ms" if one.ratio is None else ""
            line += f"  aim: under {one.aim:g}{unit}{'' if one.met else ', MISSED'}"
        yield line


if __name__ == "__main__":
    sys.exit(main())
