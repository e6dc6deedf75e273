"""`hotplug journey`: one play on several backends, and what their comparison is worth as an exit code."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Run

from hotplug.examples import CALENDAR_DAY

DAY = str(CALENDAR_DAY)
BROKEN = """\
journey: broken
version: 1.0.0
title: A step that goes wrong
profiles: {calendar: ^1}
steps:
  - name: get what is not there
    do: calendar.get
    with: {event: nothing}
"""


def test_two_native_backends_give_the_same_outcome(run: Run, tmp_path: Path) -> None:
    ran = run("journey", DAY, "--on", "one=sqlite:///a.db", "--on", "two=sqlite:///b.db", "--json")
    assert ran.code == 0
    report = ran.document
    assert [one["name"] for one in report["backends"]] == ["one", "two"]
    assert report["same"] == 2
    assert not report["failed"]
    assert report["line"] == "2 of 2 backends gave the same outcome"
    assert all(cell["status"] == "passed" for one in report["backends"] for cell in one["cells"])
    assert any(cell.get("witnessed") for cell in report["backends"][0]["cells"])


def test_a_backend_that_cannot_be_played_leaves_it_undecided(run: Run) -> None:
    ran = run("journey", DAY, "--on", "sqlite:///a.db", "--on", "gone=no-such-program x")
    assert ran.code == 5
    assert "no-such-program" in ran.out
    assert "1 of 2 backends" in ran.out


def test_a_step_that_fails_is_a_no(run: Run, tmp_path: Path) -> None:
    (tmp_path / "broken.yaml").write_text(BROKEN)
    ran = run("journey", "broken.yaml", "--on", "sqlite:///a.db", "--json")
    assert ran.code == 1
    (cell,) = ran.document["backends"][0]["cells"]
    assert (cell["status"], cell["code"]) == ("failed", "not_found")


def test_what_is_no_journey_is_a_usage_error(run: Run, tmp_path: Path) -> None:
    (tmp_path / "odd.yaml").write_text("journey: [")
    assert run("journey", "odd.yaml", "--on", "sqlite:///a.db", "--json").error["code"] == "config"
    assert run("journey", "nowhere.yaml", "--on", "sqlite:///a.db").code == 2
    assert run("journey", DAY).code == 2
