"""A journey as text: the tables steps × backends and claims × backends, and what a check found."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from hotplug.conform.journey import BackendCheck, BackendOutcome, Cell, JourneyCheck, JourneyReport

__all__ = ["cell_text", "check_text", "report_text"]

_MARKS = {"passed": "✓", "refused": "⊘", "failed": "✗", "absent": "–"}
_VERDICTS = {"yes": "✓", "no": "✗", "unknown": "?", "no-fault": "–", "held": "✓", "violated": "✗", "unchecked": "?"}
_WIDTH = 100
_FIRST = 26
_COLUMN = 13


def cell_text(cell: Cell) -> str:
    """One cell: a mark and a word, never colour alone."""
    mark = _MARKS[cell.status]
    match cell.status:
        case "passed":
            return f"{mark} {cell.code}" if cell.code else f"{mark} passed"
        case "refused":
            return f"{mark} {cell.code}"
        case "failed":
            return f"{mark} failed {cell.code or ''}".rstrip()
        case _:
            return f"{mark} {'not offered' if cell.reason == 'not_applicable' else 'not reached'}"


def report_text(report: JourneyReport, *, title: str) -> str:
    """The whole report: the table, a legend, what was refused or failed and why, and the line that counts."""
    names = [one.name for one in report.backends]
    rows = [["step", *names]]
    for step in report.steps:
        shown = step if step in report.core else f"{step} *"
        rows.append([shown, *(_cell(one, step) for one in report.backends)])
    rows.append(["what is really stored", *(_witnessed(one) for one in report.backends)])
    lines = [title, "", *_table(rows), ""]
    lines.append(
        "✓ passed (with the code, where being refused is right)   ⊘ refused by the backend   ✗ failed   – absent"
    )
    if len(report.core) < len(report.steps):
        lines.append(
            f"* may be refused, or needs a facet; the other {len(report.core)} steps are asked of all and compared"
        )
    lines += _claims(report)
    notes = list(_notes(report))
    if notes:
        lines += ["", *notes]
    lines += ["", report.line]
    return "\n".join(lines)


def _claims(report: JourneyReport) -> list[str]:
    """The table of verdicts with their grounds: what the claims of each step came to, by step and in its order."""
    rows: dict[tuple[str, str, str], dict[str, str]] = {}
    for step in report.steps:
        for backend in report.backends:
            cell = next((cell for cell in backend.cells if cell.step == step), None)
            for kind, that, text in _verdicts(cell):
                rows.setdefault((step, kind, that), {})[backend.name] = text
    if not rows:
        return []
    names = [one.name for one in report.backends]
    table = [["claim: verdict and ground", *names]]
    table += [[key[2], *(texts.get(name, "–") for name in names)] for key, texts in rows.items()]
    legend = "✓ seen to be so   ✗ seen not to be so   ? nobody can say   – not played there"
    return ["", *_table(table, footer=False), "", legend]


def _verdicts(cell: Cell | None) -> list[tuple[str, str, str]]:
    if cell is None:
        return []
    found = [("claim", one.that, f"{_VERDICTS[one.verdict]} {one.verdict}: {one.ground}") for one in cell.claims]
    return found + [("constraint", one.that, f"{_VERDICTS[one.state]} {one.state}") for one in cell.constraints]


def check_text(checked: JourneyCheck, *, title: str, refused: bool = False) -> str:
    """What a check found, a backend after the other.

    Args:
        refused: It was to be played, and isn't.
    """
    lines = [title, ""]
    for one in checked.backends:
        lines += _checked(one, len(checked.steps))
    asked = sorted({step for one in checked.backends for step in one.may_refuse}, key=checked.steps.index)
    if asked:
        lines += ["", *_wrapped("may be refused, which only playing shows", ", ".join(asked))]
    if any(fault.kind == "unobserved-channel" for one in checked.backends for fault in one.faults):
        lines += ["", "hint: name who looks with --witness NAME=caldav:URL, or play with --unwitnessed"]
    lines += ["", checked.line + ("; nothing was sent" if refused else "")]
    return "\n".join(lines)


def _checked(one: BackendCheck, steps: int) -> list[str]:
    if one.error:
        return _wrapped(f"✗ {one.name}", one.error)
    count = f"{steps - len(one.absent)} of {steps} steps" if one.absent else f"all {steps} steps"
    head = f"✓ {one.name}: {count}" if one.portable else f"✗ {one.name}: {len(one.faults)} missing"
    lines = [head]
    if one.absent:
        lines += _wrapped("    – not offered, so left out there", ", ".join(one.absent))
    for fault in one.faults:
        lines += textwrap.wrap(f"    ✗ {fault.step}: {fault} [{fault.kind}]", _WIDTH, subsequent_indent="        ")
    return lines


def _cell(backend: BackendOutcome, step: str) -> str:
    if backend.error:
        return "✗ no connection"
    return next((cell_text(cell) for cell in backend.cells if cell.step == step), "–")


def _witnessed(backend: BackendOutcome) -> str:
    seen = [cell.witnessed for cell in backend.cells if cell.witnessed is not None]
    if not seen:
        return "– not looked"
    return f"✓ {len(seen)} right" if all(seen) else f"✗ {len(seen) - sum(seen)} wrong"


def _table(rows: Sequence[Sequence[str]], *, footer: bool = True) -> list[str]:
    columns = list(zip(*rows, strict=True))
    widths = [_FIRST, *(min(_COLUMN, max(map(len, column))) for column in columns[1:])]
    lines: list[str] = []
    for number, row in enumerate(rows):
        cells = [textwrap.wrap(cell, width) or [""] for cell, width in zip(row, widths, strict=True)]
        for line in range(max(map(len, cells))):
            texts = [cell[line] if line < len(cell) else "" for cell in cells]
            lines.append("  ".join(f"{text:<{width}}" for text, width in zip(texts, widths, strict=True)).rstrip())
        if number == 0 or (footer and number == len(rows) - 2):
            lines.append("  ".join("─" * width for width in widths))
    return lines


def _notes(report: JourneyReport) -> list[str]:
    notes: list[str] = []
    for backend in report.backends:
        if backend.error:
            notes += _wrapped(backend.name, backend.error)
        for cell in backend.cells:
            if cell.status in {"refused", "failed"} and cell.message:
                notes += _wrapped(f"{backend.name}: {cell.step}", cell.message)
        notes += _unproved(backend)
    return notes


def _unproved(backend: BackendOutcome) -> list[str]:
    """Why claims were refuted or left open, and what to do next; those with one reason in one note."""
    found: dict[str, list[str]] = {}
    for cell in backend.cells:
        for one in cell.claims:
            if one.verdict != "yes":
                said = f"{one.verdict}, since {'; '.join(one.reasons[:1])}. Next: {one.next_move}"
                found.setdefault(said, []).append(one.that)
        for one in cell.constraints:
            if one.state == "unchecked":
                found.setdefault(f"unchecked, since {one.detail}", []).append(one.that)
    return [line for said, claims in found.items() for line in _wrapped(f"{backend.name}: {', '.join(claims)}", said)]


def _wrapped(head: str, text: str) -> list[str]:
    return textwrap.wrap(f"{head}: {text}", _WIDTH, subsequent_indent="    ")
