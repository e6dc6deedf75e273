"""`make bench-verdicts`: scoring is right, plants take, one that does not take is no pass, a small part is played."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from benchmarks.verdicts.case import Case
from benchmarks.verdicts.corpus import CASES
from benchmarks.verdicts.play import PlantError, play, play_all
from benchmarks.verdicts.report import document, listed, table
from benchmarks.verdicts.scoring import JUDGES, Answer, Judged, missed, scored

ROOT = Path(__file__).parents[2]
BY_NAME = {case.name: case for case in CASES}

SMALL = (
    "shop/order/plain",
    "shop/order/sends-nothing-and-shows-success",
    "shop/order/wrong-item",
    "shop/order/the-tool-tries-again",
    "shop/order/stores-nothing-database-gone",
    "shop/cancel/cancelled-before",
    "proxied/accept/plain",
    "sqlite/create/plain",
    "sqlite/create/breaks-off-after-it-wrote",
    "sqlite/move/keeps-the-old-end",
    "folder/create/writes-it-twice",
    "folder/delete/hides-it-and-keeps-it",
)


def judged(truth: bool, hotplug: Answer, *, healthy: bool = False) -> Judged:
    return Judged("one", healthy, truth, {"hotplug": hotplug, "own_flag": "yes", "presence": "unknown"})


def test_each_answer_counts_once_and_against_the_truth() -> None:
    played = [
        judged(False, "yes"),
        judged(False, "no"),
        judged(False, "unknown"),
        judged(True, "no"),
        judged(True, "yes", healthy=True),
        judged(True, "unknown", healthy=True),
    ]
    assert scored("hotplug", played).document() == {
        "cases": 6,
        "false_yes": 1,
        "false_no": 1,
        "unknown": 2,
        "right": 2,
        "healthy": 2,
        "healthy_proved": 1,
    }
    flag = scored("own_flag", played)
    assert (flag.false_yes, flag.false_no, flag.unknown, flag.right, flag.healthy_proved) == (3, 0, 0, 3, 2)
    assert scored("presence", played).unknown == 6


def test_a_missed_aim_is_named() -> None:
    assert missed(scored("hotplug", [judged(True, "yes", healthy=True), judged(False, "unknown")])) == []
    proved = [judged(True, "yes", healthy=True)] * 9
    assert missed(scored("hotplug", [*proved, judged(True, "unknown", healthy=True)])) == []
    assert missed(scored("hotplug", [*proved[:8], *[judged(True, "unknown", healthy=True)] * 2])) == [
        "only 8 of 10 healthy ones proved"
    ]
    assert missed(scored("hotplug", [judged(False, "yes"), judged(True, "no")])) == ["1 false yes", "1 false no"]


def test_the_corpus_is_as_large_as_it_says_and_names_each_case_once() -> None:
    assert sum(not case.healthy for case in CASES) >= 60
    assert sum(case.healthy for case in CASES) >= 30
    assert [name for name, count in Counter(case.name for case in CASES).items() if count > 1] == []
    assert all(case.truth for case in CASES if case.healthy)


def test_one_task_is_claimed_in_the_same_words_whatever_is_planted() -> None:
    tasks = {case.name.split("/")[1]: case.task for case in CASES}
    assert all(case.task is tasks[case.name.split("/")[1]] for case in CASES)


@pytest.mark.anyio
@pytest.mark.parametrize("name", ["shop/order/wrong-item", "sqlite/create/plain"])
async def test_a_case_that_does_not_come_out_as_planted_is_an_error_and_no_pass(name: str) -> None:
    case = BY_NAME[name]
    with pytest.RaisesGroup(pytest.RaisesExc(PlantError, match="the world says"), flatten_subgroups=True):
        await play(replace(case, truth=not case.truth))


@pytest.mark.anyio
async def test_a_plant_that_leaves_no_record_did_not_take() -> None:
    sound: Case = replace(BY_NAME["sqlite/create/plain"], kind="silent failure")
    played, broken = await play_all([sound], 1)
    assert played == []
    (said,) = broken
    assert said.endswith("PlantError: sqlite/create/plain: the plant has left no record, so it didn't take")


@pytest.mark.anyio
async def test_a_small_part_is_played_and_judged(tmp_path: Path) -> None:
    cases = [BY_NAME[name] for name in SMALL]
    played, broken = await play_all(cases, 6)
    assert broken == []
    assert [one.case for one in played] == [*SMALL]
    assert [one.truth for one in played] == [case.truth for case in cases]
    hotplug = scored("hotplug", played)
    assert (hotplug.cases, hotplug.false_yes, hotplug.false_no) == (12, 0, 0), "\n".join(table(played))
    answers = {one.case: one.answers for one in played}
    assert answers["shop/order/sends-nothing-and-shows-success"]["own_flag"] == "yes"
    assert answers["shop/order/sends-nothing-and-shows-success"]["presence"] == "yes"
    assert answers["sqlite/create/breaks-off-after-it-wrote"]["own_flag"] == "no"
    assert answers["folder/delete/hides-it-and-keeps-it"]["presence"] == "yes"
    assert answers["shop/order/stores-nothing-database-gone"]["hotplug"] == "unknown"

    file, page = tmp_path / "scores.json", tmp_path / "page.md"
    document(played, str(file))
    assert json.loads(file.read_text()) == {judge: scored(judge, played).document() for judge in JUDGES}
    page.write_text(
        "# Page\n<!-- measured -->\n<!-- end of measured -->\nkept\n<!-- planted -->\nold\n<!-- end of planted -->\n"
    )
    listed(cases, played, str(page))
    text = page.read_text()
    assert "| Hotplug's verdict | 0 | 0 |" in text
    assert "| wrong target | shop/order | wrong item | false |" in text
    assert "kept" in text
    assert "old" not in text.splitlines()


def test_the_program_plays_what_it_is_asked_for(tmp_path: Path) -> None:
    file = tmp_path / "scores.json"
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.verdicts", "--only", "sqlite/delete/plain", "--json", str(file)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": "src"},
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "1 of 1" in done.stdout
    assert json.loads(file.read_text())["hotplug"]["healthy"] == 1
