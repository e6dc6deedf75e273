"""`python -m benchmarks.verdicts`: the table, with `--json FILE` a document too, with `--doc FILE` what is planted."""

from __future__ import annotations

import argparse
import logging
import sys
from fnmatch import fnmatchcase

import anyio

from benchmarks.verdicts.case import Case
from benchmarks.verdicts.play import play_all
from benchmarks.verdicts.scoring import Judged

AT_ONCE = 6
"""Most of a case is waiting."""


def main() -> int:
    """Play what is asked for; 1 where a case couldn't be played, else 0, whatever the verdicts are."""
    asked = _arguments()
    from benchmarks.verdicts.corpus import CASES

    logging.disable(logging.ERROR)  # what fails here fails on purpose
    patterns = asked.only or ["*"]
    cases = [one for one in CASES if any(fnmatchcase(one.name, pattern) for pattern in patterns)]
    played, broken = anyio.run(play_all, cases, asked.at_once, asked.quiet, _tell if asked.verbose else None)
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
    parser.add_argument(
        "--only",
        action="append",
        metavar="PATTERN",
        help="only cases of such names, as 'shop/order/*'; may be repeated",
    )
    parser.add_argument(
        "--quiet", type=float, help="seconds of rest after which a window may end early (none: it lasts all its time)"
    )
    parser.add_argument("--at-once", type=int, default=AT_ONCE, help="cases that are played at the same time")
    parser.add_argument("--verbose", action="store_true", help="say of each case what was said and why")
    return parser.parse_args()


def _tell(case: Case, judged: Judged) -> None:
    answers = ", ".join(f"{name} {answer}" for name, answer in judged.answers.items())
    print(f"{case.name} [{case.kind}]: truth {judged.truth}; {answers}", flush=True)
    wrong = judged.answers["hotplug"] != ("yes" if judged.truth else "no")
    for line in judged.details if wrong else ():
        print(f"    {line}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
