"""`python -m benchmarks.gateway`: the gateway, the direct call and FastMCP's proxy, in one run."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Callable, Mapping
from typing import Any

import anyio

from benchmarks.gateway.calls import WAYS, Counts, measure_calls, measure_extras
from benchmarks.gateway.figures import Figure
from benchmarks.gateway.report import document, machine, page, table
from benchmarks.gateway.whole import measure_lists, measure_memory, measure_starts, measure_threads


def main() -> int:
    """Measure what is asked for."""
    asked = _arguments()
    counts = Counts(rounds=asked.rounds, calls=asked.calls, starts=asked.starts)
    peer = not asked.alone
    # Otherwise every HTTP request is a line between ours.
    logging.getLogger("httpx2").setLevel(logging.WARNING)
    measures: Mapping[str, Callable[[], Any]] = {
        "calls": lambda: anyio.run(lambda: measure_calls(counts, peer=peer, way=asked.way)),
        "extras": lambda: anyio.run(measure_extras, counts),
        "lists": lambda: anyio.run(lambda: measure_lists(counts, peer=peer)),
        "starts": lambda: measure_starts(counts, peer=peer),
        "memory": lambda: measure_memory(peer=peer),
        "threads": lambda: anyio.run(measure_threads, counts),
    }
    place = machine()
    found: list[Figure] = []
    for name in asked.only or measures:
        some = measures[name]()
        for line in table(some):
            print(line, flush=True)
        found.extend(some)
    if asked.json:
        document(found, counts, place, asked.json)
    if asked.doc:
        page(found, counts, place, asked.doc)
    return 0


def _arguments() -> argparse.Namespace:
    groups = ("calls", "extras", "lists", "starts", "memory", "threads")
    parser = argparse.ArgumentParser(prog="benchmarks.gateway", description=__doc__)
    parser.add_argument("--json", metavar="FILE", help="write a document of the schema hotplug.bench-gateway/1 there")
    parser.add_argument("--doc", metavar="FILE", help="write the figures between the marks of that page")
    parser.add_argument("--only", action="append", choices=groups, help="measure only this; may be given again")
    ways = [f"{one} > {other}" for one, other in WAYS]
    parser.add_argument("--way", choices=ways, help="of calls, measure only those on this way")
    parser.add_argument("--rounds", type=int, default=Counts.rounds, help="rounds (%(default)s)")
    parser.add_argument("--calls", type=int, default=Counts.calls, help="calls of a target in a round (%(default)s)")
    parser.add_argument("--starts", type=int, default=Counts.starts, help="starts of a program (%(default)s)")
    parser.add_argument("--alone", action="store_true", help="leave FastMCP out")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
