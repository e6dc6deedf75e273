"""`hotplug run`: the record of a verification, shown and checked."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hotplug.cli.adjudicate import text_of
from hotplug.cli.command import command, group
from hotplug.cli.failure import Exit
from hotplug.cli.files import read_text, write_whole
from hotplug.cli.output import Output
from hotplug.errors import ConfigError

if TYPE_CHECKING:
    from hotplug.evidence.checks import Examined, Fault

app = group("Runs: what a verification meant, saw and decided, as one document.")

File = Annotated[str, typer.Argument(help="The run, or - for stdin.", metavar="FILE|-", show_default=False)]


@command(app, "show")
def show(
    out: Output,
    file: File,
    html: Annotated[
        Path | None,
        typer.Option("--html", help="Write a page for the browser instead, in one file.", show_default=False),
    ] = None,
) -> int:
    """Show a run: every claim with its verdict, why, what was seen, what was not, and what to do next.

    The outcome is computed from the run's own verdicts. A run that contradicts itself is shown with what is wrong. The
    page loads nothing from elsewhere; a page written earlier is replaced, any other file is kept.

    Exit codes: 0 shown, whatever its outcome, 1 it is not to be believed (`run verify` says the same), 5 it can't be
    read as a run.
    """
    from hotplug.cli.run_text import run_text, verified_text
    from hotplug.cli.run_view import examined_text, view_of

    examined = examined_text(text_of(file))
    view = view_of(examined)
    body = _document(file, examined)
    if view is None:
        out.answer("hotplug.run-show/1", body, lambda: verified_text(examined, file))
        return Exit.INCOMPLETE
    body["claims"] = [one.document() for one in view.claims]
    body["constraints"] = [
        {
            "id": constraint.id,
            "statement": constraint.statement,
            "severity": constraint.severity,
            "violations": [violation.detail for violation in violations],
        }
        for constraint, violations in view.constraints()
    ]
    if html is None:
        out.answer("hotplug.run-show/1", body, lambda: run_text(view))
    else:
        from hotplug.cli.run_page import MARK, page

        there = read_text(html)
        if there is not None and MARK not in there:
            raise ConfigError(f"{html} exists already and is no page of a run", hint="name another file with --html")
        write_whole({html: page(view)})
        out.answer("hotplug.run-show/1", {**body, "html": str(html)}, lambda: f"wrote {html}")
    return Exit.NO if view.faults else Exit.YES


@command(app, "verify")
def verify(
    out: Output,
    file: File,
    shown: Annotated[
        str | None,
        typer.Option(
            "--shown",
            help="The outcome that somebody shows beside the run: pass, fail, partial or unknown.",
            show_default=False,
        ),
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 5 where something could not be checked.")] = False,
) -> int:
    """Check a run as its reader must, and compute its outcome.

    Its shape, its references, its channels, whether its evidence is of its own subject, whether each verdict is what
    the recorded material gives, and whether an outcome shown beside it is the run's own.

    Exit codes: 0 nothing is wrong, whatever the outcome, 1 something is, 5 it can't be read as a run, or with --strict
    not all of it could be checked.
    """
    from hotplug.cli.run_text import verified_text
    from hotplug.cli.run_view import examined_text

    examined = examined_text(text_of(file), shown=shown)
    out.answer("hotplug.run-verify/1", _document(file, examined), lambda: verified_text(examined, file))
    if examined.run is None:
        return Exit.INCOMPLETE
    if examined.faults:
        return Exit.NO
    return Exit.INCOMPLETE if strict and examined.unjudged else Exit.YES


def _document(file: str, examined: Examined) -> dict[str, Any]:
    run = {} if examined.run is None else {"run": examined.run.id}
    return {
        "file": file,
        **run,
        "readable": examined.run is not None,
        "outcome": examined.outcome,
        "faults": [_fault(fault) for fault in examined.faults],
        "unjudged": [_fault(fault) for fault in examined.unjudged],
    }


def _fault(fault: Fault) -> dict[str, str]:
    return {"where": fault.where, "code": fault.code, "problem": fault.problem}
