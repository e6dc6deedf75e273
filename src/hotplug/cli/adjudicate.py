"""`hotplug adjudicate`: verdicts over written-down cases."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from hotplug.cli.command import command, group
from hotplug.cli.failure import Exit, report
from hotplug.cli.files import read_text
from hotplug.cli.output import Format, Output
from hotplug.errors import ConfigError

app = group("Verdicts over written-down cases.")


def text_of(word: str) -> str:
    """The text of a file, or of stdin for `-`.

    Raises:
        ConfigError: There is none, or it isn't UTF-8.
    """
    if word == "-":
        try:
            return sys.stdin.buffer.read().decode("utf-8-sig")
        except UnicodeDecodeError:
            raise ConfigError("stdin isn't UTF-8 text") from None
    text = read_text(Path(word))
    if text is None:
        raise ConfigError(f"there is no file {word}")
    return text.removeprefix("\ufeff")


@command(app, "adjudicate")
def adjudicate(
    out: Output,
    file: Annotated[str, typer.Argument(help="The cases, or - for stdin.", metavar="FILE|-", show_default=False)],
    check: Annotated[bool, typer.Option("--check", help="Compare each answer with the case's own `expected`.")] = False,
) -> int:
    """Decide every case of FILE by the clauses of the Open Verification Protocol, and print the verdicts in order.

    A case is {"id", "input"}, with "derive" and "observations" where the assertions are to be evaluated first. FILE
    holds one, a list of them, a file of vectors, or one a line. Each answer is one JSON line {"id", "verdict",
    "ground", "grade"}; with --json they are the `answers` of one document. A bad case is told on stderr and has no
    answer; the others keep theirs.

    Exit codes: 0 every case was decided, 1 an answer is not what --check expects, 2 FILE can't be read as cases, 5 a
    case could not be decided, or --check found nothing to compare.
    """
    from hotplug.cli.adjudicate_cases import BadCase, answer, cases_in, differences

    cases = cases_in(text_of(file), file)
    form = Format.JSONL if out.format is Format.TEXT else out.format
    answers: list[dict[str, object]] = []
    bad = wrong = compared = 0
    for case in cases:
        try:
            answered = answer(case)
        except BadCase as error:
            bad += 1
            report(
                "bad_case",
                f"{case.name} at {error.where}: {error.problem}",
                hint=None,
                form=out.format,
                more=None if out.format is Format.TEXT else {"case": case.id, "where": error.where},
            )
            continue
        answers.append(answered.document(case))
        if form is Format.JSONL:
            out.line(answers[-1])
        if check and case.expected:
            compared += 1
            differs = list(differences(case, answered))
            wrong += bool(differs)
            for difference in differs:
                report(
                    "unexpected",
                    f"{case.name}: {difference}",
                    hint=None,
                    form=out.format,
                    more=None if out.format is Format.TEXT else {"case": case.id},
                )
    if form is Format.JSON:
        out.answer("hotplug.adjudicate/1", {"answers": answers, "undecided": bad}, lambda: "")
    if check:
        out.progress(f"{compared - wrong} of {compared} as expected")
    if wrong:
        return Exit.NO
    return Exit.INCOMPLETE if bad or (check and not compared) else Exit.YES
