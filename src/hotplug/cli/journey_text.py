"""The table of a journey: steps × backends, as text."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from hotplug.conform.journey import BackendOutcome, Cell, JourneyReport

__all__ = ["cell_text", "report_text"]

_MARKS = {"passed": "✓", "refused": "⊘", "failed": "✗", "absent": "–"}
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
    notes = list(_notes(report))
    if notes:
        lines += ["", *notes]
    lines += ["", report.line]
    return "\n".join(lines)


def _cell(backend: BackendOutcome, step: str) -> str:
    if backend.error:
        return "✗ no connection"
    return next((cell_text(cell) for cell in backend.cells if cell.step == step), "–")


def _witnessed(backend: BackendOutcome) -> str:
    seen = [cell.witnessed for cell in backend.cells if cell.witnessed is not None]
    if not seen:
        return "– not looked"
    return f"✓ {len(seen)} right" if all(seen) else f"✗ {len(seen) - sum(seen)} wrong"


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    columns = list(zip(*rows, strict=True))
    widths = [_FIRST, *(min(_COLUMN, max(map(len, column))) for column in columns[1:])]
    lines: list[str] = []
    for number, row in enumerate(rows):
        cells = [textwrap.wrap(cell, width) or [""] for cell, width in zip(row, widths, strict=True)]
        for line in range(max(map(len, cells))):
            texts = [cell[line] if line < len(cell) else "" for cell in cells]
            lines.append("  ".join(f"{text:<{width}}" for text, width in zip(texts, widths, strict=True)).rstrip())
        if number == 0 or number == len(rows) - 2:
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
    return notes


def _wrapped(head: str, text: str) -> list[str]:
    return textwrap.wrap(f"{head}: {text}", _WIDTH, subsequent_indent="    ")
