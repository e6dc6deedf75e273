"""The table, the document with the scores, and the page that lists what is planted."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from benchmarks.verdicts.case import Case
from benchmarks.verdicts.scoring import JUDGES, Judged, missed, scored

__all__ = ["document", "listed", "table"]

_NAMES: Final = {
    "hotplug": "Hotplug's verdict",
    "own_flag": "the tool's own success flag",
    "presence": "the screen says so",
}


def table(played: Sequence[Judged]) -> Iterator[str]:
    """The scores of each judge, and each false answer by name."""
    yield f"{'':<28} {'cases':>6} {'false yes':>10} {'false no':>9} {'unknown':>8} {'right':>6} {'healthy proved':>15}"
    for judge in JUDGES:
        one = scored(judge, played)
        proved = f"{one.healthy_proved} of {one.healthy}"
        yield (
            f"{_NAMES[judge]:<28} {one.cases:>6} {one.false_yes:>10} {one.false_no:>9} {one.unknown:>8}"
            f" {one.right:>6} {proved:>15}"
        )
    for one in played:
        answer = one.answers["hotplug"]
        if answer != "unknown" and (answer == "yes") != one.truth:
            yield f"false {answer} of Hotplug: {one.case}"
    aims = missed(scored("hotplug", played))
    yield f"aims (0 false yes, 0 false no, 90 % of the healthy proved): {_said(aims)}"


def _said(aims: Sequence[str]) -> str:
    return f"missed, {', '.join(aims)}" if aims else "met"


def document(played: Sequence[Judged], file: str) -> None:
    """Write the scores as JSON."""
    scores = {judge: scored(judge, played).document() for judge in JUDGES}
    Path(file).write_text(json.dumps(scores, indent=2) + "\n", encoding="utf-8")


def listed(cases: Sequence[Case], played: Sequence[Judged], file: str) -> None:
    """Write what is planted, and what was measured, between the marks of a page."""
    path = Path(file)
    text = path.read_text(encoding="utf-8")
    for mark, lines in (("measured", _measured(played)), ("planted", _planted(cases, played))):
        start, end = f"<!-- {mark} -->\n", f"<!-- end of {mark} -->"
        before, _, rest = text.partition(start)
        _, _, after = rest.partition(end)
        if not after:
            raise SystemExit(f"{file} has no place for what is {mark}: {start.strip()} … {end}")
        text = f"{before}{start}\n" + "\n".join(lines) + f"\n\n{end}{after}"
    path.write_text(text, encoding="utf-8")


def _measured(played: Sequence[Judged]) -> Iterator[str]:
    system = f"{platform.system()} {platform.machine()}, {os.cpu_count()} CPUs, Python {platform.python_version()}"
    defects = sum(not one.healthy for one in played)
    yield f"{time.strftime('%Y-%m-%d', time.gmtime())}, {system}: {defects} defects, {len(played) - defects} healthy."
    yield ""
    yield "| judge | false yes | false no | unknown | right | healthy proved |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for judge in JUDGES:
        one = scored(judge, played)
        yield (
            f"| {_NAMES[judge]} | {one.false_yes} | {one.false_no} | {one.unknown} | {one.right} "
            f"| {one.healthy_proved} of {one.healthy} |"
        )


def _planted(cases: Sequence[Case], played: Sequence[Judged]) -> Iterator[str]:
    judged = {one.case: one for one in played}
    yield "| kind | where | what | truth | Hotplug | own flag | screen |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for case in sorted(cases, key=lambda one: (one.healthy, one.kind)):
        where = case.name.rpartition("/")[0]
        said = " | ".join(judged[case.name].answers[judge] for judge in JUDGES) if case.name in judged else " |  | "
        yield f"| {case.kind} | {where} | {case.plant} | {'true' if case.truth else 'false'} | {said} |"
