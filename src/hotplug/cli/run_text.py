"""A run for the terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING

from hotplug.cli.printing import block
from hotplug.cli.run_view import OUTCOME_MARKS, WORD, Judged, RunView

if TYPE_CHECKING:
    from hotplug.evidence.checks import Examined, Fault

__all__ = ["counted", "run_text", "verified_text"]

_WIDTH = 100


def run_text(view: RunView) -> str:
    """The run: its outcome, each claim with its verdict, the constraints."""
    run = view.run
    lines = [
        f"{OUTCOME_MARKS[view.outcome]} {view.outcome}: run {run.id}",
        f"  {run.subject.surface} {run.subject.instance}; verified by {run.verifier.name} {run.verifier.version}",
        f"  {counted(view)}",
    ]
    if run.witnesses:
        lines.append(f"  witnesses: {', '.join(witness.name for witness in run.witnesses)}")
    if view.faults:
        lines += ["", f"✗ this run is not to be believed: {_faults(len(view.faults))}", *_listed(view.faults)]
    for one in view.claims:
        lines += ["", *_claim(one)]
    if run.constraints:
        lines += ["", "constraints", *_constraints(view)]
    if run.repairs:
        lines += ["", "repairs"]
        for repair in run.repairs:
            place = repair.location
            where = "" if place is None else f" ({place.file}{'' if place.line is None else f':{place.line}'})"
            lines += _wrapped(f"{repair.instruction}{where}", "  ", "    ")
    if view.unjudged:
        lines += ["", "not checked, since the run does not hold enough", *_listed(view.unjudged)]
    return block(lines)


def _claim(one: Judged) -> Iterator[str]:
    from hotplug.evidence.text import verdict_lines

    if one.record is None:
        yield f"· not judged: {one.claim.statement}"
        for assertion in one.claim.assertions:
            yield f"  claimed   {assertion.reads}"
        return
    lines = verdict_lines(
        one.record,
        one.claim,
        channels=one.channels,
        evidence=one.evidence,
        coverage=one.coverage,
        anomalies=one.anomalies,
        word=WORD,
        width=_WIDTH,
    )
    if one.corrected_by is None:
        yield from lines
    else:
        yield f"{lines[0]} (corrected by {one.corrected_by})"


def _constraints(view: RunView) -> Iterator[str]:
    for constraint, violations in view.constraints():
        mark, word = ("✗", "violated") if violations else ("·", "no violation recorded")
        yield from _wrapped(f"{mark} {word} ({constraint.severity}): {constraint.statement}", "  ", "    ")
        for violation in violations:
            shown = f" ({', '.join(violation.evidence)})" if violation.evidence else ""
            yield from _wrapped(f"{violation.detail}{shown}", "    ", "      ")


def verified_text(examined: Examined, source: str) -> str:
    """What checking a run found."""
    if examined.run is None:
        lines = [f"? {source} can't be read as a run, so its outcome is unknown", *_listed(examined.faults)]
        return block(lines)
    run = examined.run
    if examined.faults:
        lines = [f"✗ run {run.id} is not to be believed: {_faults(len(examined.faults))}", *_listed(examined.faults)]
    else:
        held = f"{len(run.verdicts)} verdicts, {len(run.evidence)} pieces of evidence"
        lines = [f"✓ nothing is wrong with run {run.id} ({held})"]
    lines.append(f"outcome: {examined.outcome}, computed from its verdicts")
    if examined.unjudged:
        lines += ["? not checked, since the run does not hold enough", *_listed(examined.unjudged)]
    return block(lines)


def counted(view: RunView) -> str:
    """The claims by verdict, and the blocking constraints that were violated, in words."""
    order = ("yes", "no", "unknown", "no-fault", "not judged")
    found = ", ".join(f"{view.counts[name]} {name}" for name in order if view.counts[name])
    many = sum(view.counts.values())
    text = f"{many} claim{'' if many == 1 else 's'}{f': {found}' if found else ''}"
    broken = [one.statement for one, violations in view.constraints() if violations and one.severity == "blocking"]
    return f"{text}; violated: {', '.join(broken)}" if broken else text


def _faults(many: int) -> str:
    return "1 fault" if many == 1 else f"{many} faults"


def _listed(faults: tuple[Fault, ...]) -> Iterator[str]:
    for fault in faults:
        yield from _wrapped(f"{fault.where}: {fault.problem}", "  ", "    ")


def _wrapped(text: str, first: str, others: str) -> list[str]:
    joined = " ".join(text.split())
    return textwrap.wrap(joined, _WIDTH, initial_indent=first, subsequent_indent=others, break_on_hyphens=False)
