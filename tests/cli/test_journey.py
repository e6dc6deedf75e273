"""`hotplug journey`: one play on several backends, and what their comparison is worth as an exit code."""

from __future__ import annotations

from pathlib import Path

import pytest
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


CLAIMED = """\
journey: claimed
version: 1.0.0
title: A step that claims
profiles: {calendar: ^1}
steps:
  - {name: find, do: calendar.calendars, bind: found}
  - name: create
    do: calendar.create
    with: {calendar: "=$found.calendars[0].calendar", title: Lunch, start: "2026-10-26T13:00:00Z", duration: PT1H}
    claims:
      - {that: it is stored, by: witness, state: calendar.event * created, exactly: 1}
"""


def test_a_check_says_what_is_missing_on_each_backend_and_nothing_is_made(run: Run, tmp_path: Path) -> None:
    (tmp_path / "claimed.yaml").write_text(CLAIMED)
    ran = run("journey", "check", "claimed.yaml", "--on", "sqlite:///a.db", "--on", "none=sqlite:///:memory:", "--json")
    assert ran.code == 1
    first, second = ran.document["backends"]
    assert (first["portable"], first["faults"]) == (True, [])
    assert [(one["step"], one["kind"]) for one in second["faults"]] == [("create", "unobserved-channel")]
    assert ran.document["line"] == "portable to 1 of 2 backends"
    shown = run("journey", "check", "claimed.yaml", "--on", "none=sqlite:///:memory:")
    assert "[unobserved-channel]" in shown.out
    assert "--witness" in shown.out


def test_a_check_that_passes_is_a_yes_and_an_unreachable_backend_is_a_four(run: Run) -> None:
    assert run("journey", "check", DAY, "--on", "sqlite:///a.db").code == 0
    ran = run("journey", "check", DAY, "--on", "sqlite:///a.db", "--on", "gone=no-such-program x", "--json")
    assert ran.code in {2, 4}
    assert [one["portable"] for one in ran.document["backends"]] == [True, None]
    assert run("journey", "check", "nowhere.yaml", "--on", "sqlite:///a.db").code == 2


def test_what_does_not_check_is_not_played_on_any_backend(run: Run, tmp_path: Path) -> None:
    (tmp_path / "claimed.yaml").write_text(CLAIMED)
    ran = run("journey", "claimed.yaml", "--on", "one=sqlite:///a.db", "--on", "none=sqlite:///:memory:", "--json")
    assert ran.code == 1
    assert ran.document["schema"] == "hotplug.journey-check/1"
    found = run("call", "sqlite:///a.db", "calendar.search", "from=2026-10-24T00:00:00Z", "to=2026-10-31T00:00:00Z")
    assert "Lunch" not in found.out
    shown = run("journey", "claimed.yaml", "--on", "none=sqlite:///:memory:")
    assert "nothing was sent" in shown.out


def test_an_open_claim_is_undecided_unless_it_is_let_pass(run: Run, tmp_path: Path) -> None:
    (tmp_path / "claimed.yaml").write_text(CLAIMED)
    gone = ("--on", "one=sqlite:///a.db", "--witness", "one=sqlite:///gone.db")
    ran = run("journey", "claimed.yaml", *gone, "--json")
    assert ran.code == 5
    (claim,) = ran.document["backends"][0]["cells"][1]["claims"]
    assert (claim["verdict"], claim["ground"]) == ("unknown", "coverage-impeached")
    assert ran.document["backends"][0]["undecided"] == ["it is stored"]
    unwitnessed = run("journey", "claimed.yaml", "--on", "none=sqlite:///:memory:", "--unwitnessed")
    assert unwitnessed.code == 0
    assert "? unknown:" in unwitnessed.out
    assert "channel-not-" in unwitnessed.out


def test_claims_are_shown_with_their_grounds_and_the_runs_are_kept(run: Run, tmp_path: Path) -> None:
    (tmp_path / "claimed.yaml").write_text(CLAIMED)
    words = ("claimed.yaml", "--on", "one=sqlite:///a.db", "--on", "folder:b", "--runs", "runs")
    ran = run("journey", *words)
    assert ran.code == 0
    assert ran.out.count("✓ yes: proved") == 2
    assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == ["folder-b.run.json", "one.run.json"]
    assert run("run", "verify", "runs/one.run.json").code == 0


def test_a_witness_can_be_named_for_one_backend_or_for_all_without_one(run: Run, tmp_path: Path) -> None:
    (tmp_path / "claimed.yaml").write_text(CLAIMED)
    (tmp_path / "b").mkdir()
    on = ("--on", "one=sqlite:///:memory:", "--on", "two=sqlite:///:memory:")
    check = ("journey", "check", "claimed.yaml", *on, "--json")
    assert run(*check, "--witness", "folder:b").code == 0
    half = run(*check, "--witness", "two=folder:b")
    assert [one["portable"] for one in half.document["backends"]] == [False, True]
    own = run("journey", "claimed.yaml", "--on", "sqlite:///c.db", "--witness", "folder:b", "--json")
    assert own.code == 0, "a native backend keeps its own"
    assert own.document["backends"][0]["witness"] == "the tables, read by SQL"


def test_a_witness_that_means_nothing_is_a_usage_error_and_shows_no_secret(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check = ("journey", "check", DAY, "--on", "one=sqlite:///a.db", "--json")
    assert "no witness" in run(*check, "--witness", "nonsense").error["message"]
    assert "caldav" in run(*check, "--witness", "calday:http://x/").error["hint"]
    assert "'ome'" in run(*check, "--witness", "ome=folder:b").error["message"]
    assert "two witnesses" in run(*check, "--witness", "folder:a", "--witness", "folder:b").error["message"]
    assert "NOT_SET" in run(*check, "--witness", "caldav:http://me:${NOT_SET}@x/").error["message"]
    monkeypatch.setenv("SECRET", "hunter2")
    ran = run(*check, "--witness", "caldav:ftp://me:${SECRET}@x/")
    assert ran.code == 2
    assert "hunter2" not in ran.err


def test_play_may_be_said_and_a_file_called_check_is_played_by_it(run: Run, tmp_path: Path) -> None:
    (tmp_path / "check").write_text(CLAIMED)
    assert run("journey", "play", "check", "--on", "sqlite:///a.db").code == 0
    assert run("journey", "./check", "--on", "sqlite:///b.db").code == 0
    assert run("journey", "--json", "--on", "sqlite:///c.db", "check").document["same"] == 1
