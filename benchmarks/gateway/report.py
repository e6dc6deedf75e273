"""The figures as a table, a document, and a part of a page."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from benchmarks.gateway.calls import Counts
from benchmarks.gateway.figures import Figure

__all__ = ["SCHEMA", "document", "machine", "page", "table"]

SCHEMA: Final = "hotplug.bench-gateway/1"
_START, _END = "<!-- measured -->\n", "<!-- end of measured -->"


def machine() -> dict[str, Any]:
    """Where it was measured, and how busy that is now."""
    return {
        "cpus": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "mcp": version("mcp"),
        "fastmcp": version("fastmcp"),
        "load": [round(one, 2) for one in os.getloadavg()],
    }


def table(found: Sequence[Figure]) -> Iterator[str]:
    """The figures for a terminal, by group."""
    group = ""
    for one in found:
        if one.group != group:
            group = one.group
            yield f"\n{group}"
        line = f"  {one.what:<34} {one.target:<32} {_number(one.value):>9} {one.unit:<3}"
        if one.ratio is not None and one.spread is not None:
            line += f"  {one.ratio:6.2f} × ({one.spread[0]:.2f} to {one.spread[1]:.2f})"
        yield line


def document(found: Sequence[Figure], counts: Counts, place: dict[str, Any], file: str) -> None:
    """Write everything as JSON."""
    text = {
        "schema": SCHEMA,
        "at": _now(),
        "machine": {**place, "load": [place["load"], machine()["load"]]},
        "counts": {"rounds": counts.rounds, "calls": counts.calls, "starts": counts.starts},
        "rows": [one.document() for one in found],
    }
    Path(file).write_text(json.dumps(text, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def page(found: Sequence[Figure], counts: Counts, place: dict[str, Any], file: str) -> None:
    """Write the figures between the marks of a page."""
    path = Path(file)
    text = path.read_text(encoding="utf-8")
    before, _, rest = text.partition(_START)
    _, _, after = rest.partition(_END)
    if not after:
        raise SystemExit(f"{file} has no place for what is measured: {_START.strip()} … {_END}")
    lines = "\n".join(_lines(found, counts, place))
    path.write_text(f"{before}{_START}\n{lines}\n\n{_END}{after}", encoding="utf-8")


def _lines(found: Sequence[Figure], counts: Counts, place: dict[str, Any]) -> Iterator[str]:
    load = f"load {place['load'][0]} at the beginning and {machine()['load'][0]} at the end"
    yield (
        f"On {_now()[:10]}: {place['cpus']} cores ({place['system']}), Python {place['python']}, mcp {place['mcp']}, "
        f"FastMCP {place['fastmcp']}, {load}; {counts.rounds} rounds of {counts.calls} calls."
    )
    yield ""
    yield "| where | what | target | value | × base | quarter points |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for one in found:
        ratio = f"**{one.ratio:.2f}**" if one.ratio is not None else "–"
        spread = f"{one.spread[0]:.2f} to {one.spread[1]:.2f}" if one.spread is not None else "–"
        yield f"| {one.group} | {one.what} | {one.target} | {_number(one.value)} {one.unit} | {ratio} | {spread} |"


def _number(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.2f}"


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
