"""`hotplug inspect`: what a server is, speaks and lacks, without calling any tool of it."""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import Run

SERVERS = Path(__file__).parent / "servers"
TINY = f"{SERVERS / 'tiny_calendar.py'}"


@pytest.fixture
def projection(tmp_path: Path, run: Run) -> Path:
    """The tiny calendar's projection, frozen with its tools."""
    path = tmp_path / "tiny.yaml"
    shutil.copy(SERVERS / "tiny.yaml", path)
    assert run("projection", "freeze", str(path), "--target", f"{TINY}:server").code == 0
    return path


def test_a_native_server_is_shown_with_what_it_offers_and_lacks(run: Run) -> None:
    assert run("call", "sqlite:///cal.db", "calendar.calendars").code == 0
    ran = run("inspect", "sqlite:///cal.db", "--json")
    assert ran.code == 0
    document = ran.document
    assert document["dialects"] == ["tools.noetic/profiles", "org.classprofiles/profiles"]
    assert document["findings"] == []
    (calendar,) = document["profiles"]
    assert (calendar["profile"], calendar["via"], calendar["available"]) == ("calendar", "native", True)
    assert "calendar.create" in calendar["offered"]
    assert {"part": "calendar.rsvp", "without": "An invitation has to be answered elsewhere."} in calendar["missing"]


@pytest.mark.parametrize(("target", "facets"), [("sqlite:///cal.db", {"rsvp"}), ("folder:f", {"rsvp", "invitations"})])
def test_a_native_server_whose_owner_is_named_offers_answers(run: Run, target: str, facets: set[str]) -> None:
    assert run("call", target, "calendar.calendars").code == 0
    shown = [run("inspect", each, "--json").document["profiles"][0] for each in (target, f"{target}?me=me@example.org")]
    assert set(shown[1]["facets"]) - set(shown[0]["facets"]) == facets
    assert "calendar.rsvp" in shown[1]["offered"]
    ran = run("inspect", f"{target}?me=nobody", "--json")
    assert ran.code == 2
    assert "mail address" in ran.error["message"]


def test_looking_at_a_native_server_makes_no_file(run: Run, tmp_path: Path) -> None:
    ran = run("inspect", "sqlite:///cal.db", "--json")
    assert ran.code == 2
    assert "there is no cal.db" in ran.error["message"]
    assert list(tmp_path.iterdir()) == []


def test_a_server_without_profiles_shows_its_raw_tools(run: Run) -> None:
    ran = run("inspect", f"{TINY}:server", "--json")
    assert ran.code == 0
    document = ran.document
    assert document["profiles"] == []
    assert document["server"]["name"] == "tiny-calendar"
    assert (document["era"], document["protocol"]) == ("modern", "2026-07-28")
    assert document["tools"]["count"] == 7
    assert document["instructions"] == "Keeps events."
    assert "hotplug projection new" in run("inspect", f"{TINY}:server").out


def test_a_projection_shows_what_it_would_offer(run: Run, projection: Path) -> None:
    ran = run("inspect", f"{TINY}:grown", "--projection", str(projection), "--json")
    assert ran.code == 0
    document = ran.document
    (calendar,) = document["profiles"]
    assert calendar["via"] == "projected"
    assert calendar["projection"]["by"] == "named"
    assert calendar["projection"]["drift"]["added"] == ["export"]
    assert calendar["projection"]["broken"] == []
    assert "calendar.event.changed" in [one["part"] for one in calendar["missing"]]
    assert document["coverage"]["wipe"] == {"state": "raw_only", "note": "It forgets everything."}
    assert "export" not in document["coverage"]


def test_a_projection_that_no_longer_fits_is_unavailable(run: Run, projection: Path) -> None:
    ran = run("inspect", f"{TINY}:changed", "--projection", str(projection))
    assert ran.code == 1
    assert "✗ calendar 1.0.0, projected by test.tiny-calendar 0.1.0" in ran.out
    assert "delete_event" in ran.out


def test_a_name_is_looked_up_and_its_file_is_told(run: Run, tmp_path: Path) -> None:
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"odd": {"command": "no-such-program"}}}))
    ran = run("inspect", "mcp.json#odd", "--json", "-v")
    assert ran.code == 2
    assert ran.out == ""
    assert "target: odd (no-such-program) from mcp.json" in ran.err
    ran = run("inspect", "mcp.json#od", "--json")
    assert ran.code == 2
    assert "'odd'" in ran.error["hint"]


def test_two_targets_or_none_are_refused(run: Run) -> None:
    assert "both name a server" in run("inspect", "x", "--", "y").err
    assert "2 targets, not one" in run("inspect", "x", "y").err
    assert "a server is missing" in run("inspect").err


def test_a_server_that_contradicts_what_it_declares_is_unavailable(run: Run) -> None:
    ran = run("inspect", str(SERVERS / "liar.py"), "--json")
    assert ran.code == 1
    document = ran.document
    assert document["era"] == "legacy"
    assert document["declared"][0]["profile"] == "calendar"
    assert {one["code"] for one in document["findings"]} >= {"missing_part"}
    (calendar,) = document["profiles"]
    assert not calendar["available"]
    assert "missing_part" in calendar["reason"]
    ran = run("doctor", str(SERVERS / "liar.py"))
    assert ran.code == 1
    assert "1 server: 1 wrong" in ran.out


def test_what_the_launch_of_a_server_leaves_out_is_told(run: Run, projection: Path) -> None:
    text = projection.read_text().replace("\nerrors:", "\nrequires: {env: [URL, TOKEN]}\n\nerrors:", 1)
    projection.write_text(text)
    target = f"URL=x {sys.executable} {SERVERS / 'liar.py'}"
    ran = run("inspect", target, "--projection", str(projection), "--json")
    assert ran.code == 1
    (calendar,) = ran.document["profiles"]
    assert calendar["projection"]["unset"] == ["TOKEN"]
    assert len(calendar["projection"]["drift"]["removed"]) == 7


def test_a_projection_that_leaves_out_a_part_of_the_core_is_unavailable(run: Run, projection: Path) -> None:
    text = projection.read_text()
    start = text.index("  calendar.delete:")
    end = re.compile(r"^(  \S|\S)", re.MULTILINE).search(text, start + 3)
    assert end is not None
    projection.write_text(text[:start] + text[end.start() :])
    for command in (("inspect", f"{TINY}:server"), ("call", f"{TINY}:server", "calendar.calendars")):
        ran = run(*command, "--projection", str(projection))
        assert ran.code != 0
        assert "leaves out calendar.delete" in " ".join((ran.out + ran.err).split())
    ran = run("inspect", f"{TINY}:server", "--projection", str(projection), "--json")
    assert ran.code == 1
    assert not ran.document["profiles"][0]["available"]
