"""`hotplug trust`: a project's file is trusted as it stands, listed, forgotten."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.conftest import Run

PROJECT = """
[servers.memo]
command = "python"
args = ["server.py", "--token", "hunter2222"]
env = { A = "secret:caldav" }
[servers.odd]
x = 1
[secrets.caldav]
[access]
servers = ["memo"]
tools = { memo = { allow = ["read"] } }
"""


@pytest.fixture(autouse=True)
def _own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("HOTPLUG_CONFIG", raising=False)


def test_trusting_says_what_it_lets_the_file_do(run: Run, tmp_path: Path) -> None:
    (tmp_path / "hotplug.toml").write_text(PROJECT)
    ran = run("trust", "hotplug.toml")
    assert ran.code == 0
    for words in (
        "is trusted as it stands",
        "adds the server python server.py --token '[secret]' as memo",
        "the secrets caldav",
    ):
        assert words in ran.out
    for words in ("can't use odd", "leaves threads the servers memo", "of memo only read"):
        assert words in ran.out
    assert "secrets counts only in your own file" in ran.err
    assert "hunter2222" not in ran.out + ran.err


def test_the_documents_are_of_their_schemas(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "hotplug.toml"
    path.write_text(PROJECT)
    first = run("trust", "hotplug.toml", "--json").document
    assert (first["trusted"], first["changed"], first["narrows"]) == (True, True, True)
    assert first["servers"][0]["secrets"] == ["caldav"]
    assert run("trust", "hotplug.toml", "--json").document["changed"] is False
    path.write_text(PROJECT + "# more\n")
    assert run("trust", "--list", "--json").document["files"][0]["standing"] == "changed"
    assert "changed" in run("trust", "--list").out
    path.unlink()
    assert run("trust", "--list", "--json").document["files"][0]["standing"] == "missing"
    gone = run("trust", "--forget", "hotplug.toml", "--json")
    assert (gone.code, gone.document["changed"]) == (0, True)
    again = run("trust", "--forget", "hotplug.toml")
    assert (again.code, "wasn't trusted" in again.out) == (1, True)
    assert run("trust", "--list").out == "no file is trusted\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "a file is missing"),
        (("none.toml",), "there is no file"),
        (("--list", "hotplug.toml"), "stands alone"),
        (("bad.toml",), "is not TOML"),
    ],
)
def test_what_can_t_be_trusted_is_a_usage_error(run: Run, tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    (tmp_path / "bad.toml").write_text("[[[")
    ran = run("trust", *words, "--json")
    assert ran.code == 2
    assert said in ran.error["message"]
    assert run("trust", "--list").out == "no file is trusted\n"
