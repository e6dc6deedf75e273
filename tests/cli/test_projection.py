"""`hotplug projection`: draft, check, try, show, freeze and compare."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from tests.cli.conftest import Run

from hotplug.cli.projection_drift import changes_of
from hotplug.cli.projection_freeze import tools_text
from hotplug.cli.projection_test import environment
from hotplug.errors import ConfigError
from hotplug.projection import shipped

SERVERS = Path(__file__).parent / "servers"
TINY = str(SERVERS / "tiny_calendar.py")
SERVER = f"{TINY}:server"
CODE = "class Tiny:\n    def __init__(self, provider):\n        self.provider = provider\n"


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """The projection that a person wrote, not frozen yet."""
    path = tmp_path / "tiny.yaml"
    shutil.copy(SERVERS / "tiny.yaml", path)
    return path


@pytest.fixture
def frozen(written: Path, run: Run) -> Path:
    assert run("projection", "freeze", "tiny.yaml", "--target", SERVER).code == 0
    return written


def test_a_draft_is_written_with_its_tools_and_refused_until_it_is_decided(run: Run, tmp_path: Path) -> None:
    ran = run("projection", "new", "--profile", "calendar", "--target", SERVER, "--json")
    assert ran.code == 0
    document = ran.document
    assert document["file"] == "tiny_calendar.yaml"
    assert {one["member"]: one["tool"] for one in document["scores"]}["calendar.create"] == "create_event"
    assert document["todos"] > 0
    tools = json.loads((tmp_path / "tiny_calendar.tools.json").read_text())["tools"]
    assert len(tools) == document["toolCount"] == 7
    check = run("projection", "check", "tiny_calendar.yaml", "--json")
    assert check.code == 1
    assert check.document["errors"] == document["todos"]
    freeze = run("projection", "freeze", "tiny_calendar.yaml", "--json")
    assert freeze.code == 1
    assert not freeze.document["frozen"]
    assert freeze.document["written"] == []


def test_a_draft_overwrites_nothing_and_writes_both_or_neither(run: Run, tmp_path: Path) -> None:
    (tmp_path / "mine.tools.json").write_text("[]")
    ran = run("projection", "new", "--profile", "calendar", "-o", "mine.yaml", "--json", "--target", SERVER)
    assert ran.code == 2
    assert "mine.tools.json exists already" in ran.error["message"]
    assert not (tmp_path / "mine.yaml").exists()
    ran = run("projection", "new", "--profile", "calendar", "-o", "no/mine.yaml", "--target", SERVER)
    assert ran.code == 2
    assert "no folder" in ran.err


def test_freezing_writes_digests_and_keeps_comments_and_layout(run: Run, written: Path) -> None:
    before = written.read_text().splitlines()
    ran = run("projection", "freeze", "tiny.yaml", "--target", SERVER, "--json")
    assert ran.code == 0
    document = ran.document
    assert document["written"] == ["tiny.tools.json", "tiny.yaml"]
    after = written.read_text().splitlines()
    added = [line for line in after if line not in before]
    assert added == [f"  tools: {document['toolsDigest']}"]
    assert [line for line in after if line not in added] == before
    assert after.index(added[0]) == after.index('  versions: ">=0"   # any') + 1
    again = run("projection", "freeze", "tiny.yaml", "--json")
    assert again.document["written"] == []


def test_freezing_replaces_an_old_digest_and_keeps_line_ends(run: Run, written: Path) -> None:
    text = written.read_text().replace("  package:", f"  tools: 'sha256:{'0' * 64}' # old\n  package:")
    written.write_bytes(text.replace("\n", "\r\n").encode())
    ran = run("projection", "freeze", "tiny.yaml", "--target", SERVER, "--json")
    assert ran.code == 0
    after = written.read_bytes().decode()
    assert ran.document["toolsDigest"] in after
    assert "# old\r\n" in after
    assert after.count("\n") == after.count("\r\n") == text.count("\n")


def test_freezing_takes_the_code_along(run: Run, written: Path) -> None:
    text = written.read_text().replace("\nerrors:", "\ncode: tiny:Tiny # the class\n\nerrors:", 1)
    written.write_text(text)
    ran = run("projection", "freeze", "tiny.yaml", "--target", SERVER, "--json")
    assert ran.code == 1
    assert [one["code"] for one in ran.document["findings"] if one["level"] == "error"] == ["code_missing"]
    assert written.read_text() == text
    written.with_name("tiny.py").write_text(CODE)
    ran = run("projection", "freeze", "tiny.yaml", "--target", SERVER, "--json")
    assert ran.code == 0
    assert f"code: tiny:Tiny # the class\ncodeDigest: {ran.document['codeDigest']}\n" in written.read_text()
    written.with_name("tiny.py").write_text(CODE + "\n")
    check = run("projection", "check", "tiny.yaml", "--json")
    assert check.code == 1
    assert [one["code"] for one in check.document["findings"] if one["level"] == "error"] == ["code_digest"]


def test_freezing_refuses_what_the_check_refuses_and_writes_nothing(run: Run, written: Path) -> None:
    text = written.read_text().replace("  wipe: {raw_only: It forgets everything.}\n", "")
    written.write_text(text)
    ran = run("projection", "freeze", "tiny.yaml", "--target", SERVER)
    assert ran.code == 1
    assert "coverage_missing" in ran.out
    assert "nothing was written" in ran.out
    assert written.read_text() == text
    assert not written.with_name("tiny.tools.json").exists()


def test_freezing_without_tools_asks_for_the_server(run: Run, written: Path) -> None:
    ran = run("projection", "freeze", "tiny.yaml", "--json")
    assert ran.code == 2
    assert "--target" in ran.error["hint"]


def test_a_frozen_projection_passes_its_check(run: Run, frozen: Path) -> None:
    ran = run("projection", "check", "tiny.yaml", "--strict", "--json")
    assert ran.code == 0, ran.document["findings"]
    assert ran.document["passed"]


def test_the_check_points_at_the_line_and_strict_counts_warnings(run: Run, frozen: Path) -> None:
    frozen.write_text(frozen.read_text().replace("tool: delete_event", "tool: delete_evnt"))
    ran = run("projection", "check", "tiny.yaml")
    assert ran.code == 1
    assert "operations.calendar.delete.tool: error: the server has no tool 'delete_evnt'" in ran.out
    assert "did you mean 'delete_event'?" in ran.out
    frozen.write_text((SERVERS / "tiny.yaml").read_text())
    assert run("projection", "check", "tiny.yaml").code == 0
    assert run("projection", "check", "tiny.yaml", "--strict").code == 1


def test_what_is_no_projection_is_a_usage_error(run: Run, tmp_path: Path) -> None:
    (tmp_path / "odd.yaml").write_text("projektion: x\n")
    ran = run("projection", "check", "odd.yaml", "--json")
    assert ran.code == 2
    assert ran.error["code"] == "projection"
    ran = run("projection", "show", "caldav-mpc", "--json")
    assert ran.code == 2
    assert "caldav-mcp" in ran.error["hint"]


@pytest.mark.parametrize("name", [one.name for one in shipped()])
def test_the_shipped_ones_can_be_shown(run: Run, name: str) -> None:
    ran = run("projection", "show", name, "--json")
    assert ran.code == 0
    document = ran.document
    assert all(row["state"] for row in document["coverage"])
    assert all(row["note"] for row in document["coverage"] if row["state"] == "approximated")


def test_the_matrix_shows_which_operation_calls_which_tool(run: Run, frozen: Path) -> None:
    ran = run("projection", "show", "tiny.yaml")
    assert ran.code == 0
    rows = {line.split()[1]: line for line in ran.out.splitlines() if line[:1] in {"✓", "~", "·"}}
    assert rows["get_event"].count("●") == 2
    assert rows["wipe"].startswith("·")
    assert "The server keeps instants only" in ran.out


def test_a_difference_counts_only_where_it_is_used(run: Run, frozen: Path) -> None:
    ran = run("projection", "diff", "tiny.yaml", "--target", f"{TINY}:grown", "--json")
    assert ran.code == 0
    assert ran.document["added"] == ["export"]
    ran = run("projection", "diff", "tiny.yaml", "--target", f"{TINY}:changed", "--json")
    assert ran.code == 1
    assert ran.document["broken"] == ["delete_event"]
    assert ran.document["details"] == {"delete_event": ["argument reason is new and required"]}
    assert "the tools are as frozen" in run("projection", "diff", "tiny.yaml", "--target", SERVER).out


def test_a_tool_list_with_half_a_pair_of_surrogates_can_be_kept() -> None:
    tools = [{"name": "t", "description": "\ud83d", "inputSchema": {}}]
    assert json.loads(tools_text(tools).encode("utf-8")) == {"tools": tools}


def test_changes_are_told_in_words() -> None:
    old = {"inputSchema": {"properties": {"a": {"type": "string"}, "b": {}, "c": {}}, "required": ["b"]}}
    new = {
        "inputSchema": {"properties": {"a": {"type": "integer"}, "b": {}, "d": {}}},
        "outputSchema": {"type": "object"},
    }
    assert changes_of(old, new) == [
        "argument a has another schema",
        "argument b is no longer required",
        "argument c is gone",
        "argument d is new",
        "the output schema is another",
    ]


def test_a_day_is_played_through_it(run: Run, frozen: Path) -> None:
    ran = run("projection", "test", "tiny.yaml", "--target", SERVER, "--json")
    report = ran.document
    (backend,) = report["backends"]
    failed = [cell for cell in backend["cells"] if cell["status"] == "failed"]
    assert failed == []
    assert ran.code == 0
    assert report["same"] == 1
    assert backend["notes"]["coverage"]["wipe"]["state"] == "raw_only"


def test_a_day_that_goes_wrong_says_where(run: Run, frozen: Path) -> None:
    frozen.write_text(frozen.read_text().replace("code: not_found", "code: conflict"))
    ran = run("projection", "test", "tiny.yaml", "--target", SERVER)
    assert ran.code == 1
    assert "refused with conflict instead of not_found" in ran.out
    assert "✗ it does not pass" in ran.out


def test_a_server_that_cannot_be_reached_is_undecided(run: Run, frozen: Path) -> None:
    ran = run("projection", "test", "tiny.yaml", "--target", "no-such-program x", "--json")
    assert ran.code == 5
    assert "no-such-program" in ran.document["backends"][0]["error"]


def test_variables_for_the_server_are_templates() -> None:
    assert environment(["A={url}dav/", "B=x=y"]) == {"A": "{url}dav/", "B": "x=y"}
    with pytest.raises(ConfigError, match=r"there is no \{usr\}") as refused:
        environment(["A={usr}"])
    assert "'user'" in str(refused.value.hint)
    with pytest.raises(ConfigError, match="no variable"):
        environment(["1=x"])


def test_a_server_has_to_be_named_for_what_needs_one(run: Run, frozen: Path) -> None:
    for verb in ("test", "diff"):
        ran = run("projection", verb, "tiny.yaml")
        assert ran.code == 2
        assert "a server is missing" in ran.err
    assert "speaks its profile by itself" in run("projection", "diff", "tiny.yaml", "--target", "sqlite:///x.db").err


def test_one_that_was_never_frozen_is_not_as_frozen(run: Run, frozen: Path) -> None:
    lines = frozen.read_text().splitlines(keepends=True)
    frozen.write_text("".join(line for line in lines if not re.match(r"  tools: .?sha256:", line)))
    ran = run("projection", "diff", "tiny.yaml", "--target", SERVER)
    assert ran.code == 1
    assert "not frozen" in ran.out
    assert "as frozen" not in ran.out
    assert run("projection", "diff", "tiny.yaml", "--target", SERVER, "--json").document["usable"] is False
    ran = run("inspect", SERVER, "--projection", "tiny.yaml")
    assert "not frozen" in ran.out
    assert "as frozen" not in ran.out
