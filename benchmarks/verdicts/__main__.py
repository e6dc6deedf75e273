"""`python -m benchmarks.verdicts`: the table, with `--json FILE` a document too, with `--doc FILE` what is planted."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence
from fnmatch import fnmatchcase

import anyio

from benchmarks.verdicts.case import Case
from benchmarks.verdicts.play import play
from benchmarks.verdicts.scoring import Judged

AT_ONCE = 5
"""Cases that are played at the same time; most of a case is waiting."""


def main() -> int:
    """Play what is asked for; 1 where a case couldn't be played, else 0, whatever the verdicts are."""
    asked = _arguments()
    from benchmarks.verdicts.corpus import CASES

    logging.disable(logging.ERROR)  # what fails here fails on purpose
    cases = [one for one in CASES if fnmatchcase(one.name, asked.only)]
    played, broken = anyio.run(_play_all, cases, asked.verbose)
    from benchmarks.verdicts.report import document, listed, table

    for line in (*table(played), *broken):
        print(line)
    if asked.json:
        document(played, asked.json)
    if asked.doc:
        listed(cases, played, asked.doc)
    return int(bool(broken))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks.verdicts", description=__doc__)
    parser.add_argument("--json", metavar="FILE", help="write the scores there")
    parser.add_argument("--doc", metavar="FILE", help="write the lists of cases and the table into that document")
    parser.add_argument("--only", default="*", metavar="PATTERN", help="only cases of such names, as shop/order/*")
    parser.add_argument("--verbose", action="store_true", help="say of each case what was said and why")
    return parser.parse_args()


async def _play_all(cases: Sequence[Case], verbose: bool) -> tuple[list[Judged], list[str]]:
    found: dict[str, Judged] = {}
    broken: list[str] = []
    limiter = anyio.CapacityLimiter(AT_ONCE)

    async def one(case: Case) -> None:
        async with limiter:
            try:
                found[case.name] = await play(case)
            except Exception as error:
                broken.append(f"not played: {case.name}: {_why(error)}")
                return
        if verbose:
            _tell(case, found[case.name])

    async with anyio.create_task_group() as tasks:
        for case in cases:
            tasks.start_soon(one, case)
    return [found[case.name] for case in cases if case.name in found], broken


def _why(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}"


def _tell(case: Case, judged: Judged) -> None:
    answers = ", ".join(f"{name} {answer}" for name, answer in judged.answers.items())
    print(f"{case.name} [{case.kind}]: truth {judged.truth}; {answers}", flush=True)
    wrong = judged.answers["hotplug"] != ("yes" if judged.truth else "no")
    for line in judged.details if wrong else ():
        print(f"    {line}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
