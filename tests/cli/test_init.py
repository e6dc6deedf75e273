"""`hotplug init`: a file is written whole, nothing is overwritten unasked, no secret is left where it isn't wanted."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Run

CLAUDE: dict[str, Any] = {
    "mcpServers": {
        "memo": {"command": "python", "args": ["server.py"], "env": {"API_KEY": "hunter2222"}},
        "github": {
            "type": "http",
            "url": "https://example.org/mcp",
            "headers": {"Authorization": "Bearer ${GH_TOKEN}"},
        },
        "old": {"type": "sse", "url": "https://example.org/sse"},
    }
}


@pytest.fixture
def claude(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with a file of Claude Code's, and nothing else of anybody."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / ".config"))
    monkeypatch.delenv("GH_TOKEN", raising=False)
    path = home / ".claude.json"
    path.write_text(json.dumps(CLAUDE))
    return path


def test_without_servers_a_file_with_an_example_is_written(run: Run, tmp_path: Path) -> None:
    ran = run("init", "--yes")
    assert ran.code == 0
    path = tmp_path / "config" / "hotplug.toml"
    assert f"{path} is written" in ran.out
    assert tomllib.loads(path.read_text()) == {}
    assert "# [servers.work]" in path.read_text()
    assert path.stat().st_mode & 0o777 == 0o600
    assert run("server", "list").out.startswith("no server is set up")


def test_a_client_s_servers_are_taken_over_and_their_secrets_moved(run: Run, tmp_path: Path, claude: Path) -> None:
    ran = run("init", "--import", str(claude), "--yes", "--names", "underscored", "--json")
    assert ran.code == 0
    document = ran.document
    assert [one["name"] for one in document["servers"]] == ["memo", "github"]
    assert document["leftOut"][0]["name"] == "old"
    assert document["secrets"] == [
        {"name": "memo-api_key", "keeping": "file", "servers": ["memo"], "file": "secrets/memo-api_key"},
        {"name": "gh_token", "keeping": "env", "servers": ["github"], "variable": "GH_TOKEN", "set": False},
    ]
    path = tmp_path / "config" / "hotplug.toml"
    assert "hunter2222" not in path.read_text() + ran.out + ran.err
    held = path.parent / "secrets" / "memo-api_key"
    assert held.read_text() == "hunter2222\n"
    assert held.stat().st_mode & 0o777 == 0o600
    assert held.parent.stat().st_mode & 0o777 == 0o700
    assert tomllib.loads(path.read_text())["serve"] == {"names": "underscored"}
    assert json.loads(claude.read_text()) == CLAUDE


def test_secrets_that_stay_in_plain_are_warned_of(run: Run, claude: Path) -> None:
    ran = run("init", "--import", str(claude), "--secrets", "plain")
    assert ran.code == 0
    assert "warning: memo.env.API_KEY is a secret in plain" in ran.out
    assert "hunter2222" not in ran.out + ran.err
    listed = run("server", "list")
    assert "servers.memo.env.API_KEY looks like a secret" in listed.err
    assert "hunter2222" not in listed.out + listed.err


def test_secrets_go_to_variables_or_the_keyring(run: Run, claude: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = run("init", "--import", str(claude), "--secrets", "env")
    assert "secret memo-api_key: in HOTPLUG_SECRET_MEMO_API_KEY, which isn't set" in ran.out
    ring: dict[tuple[str, str], str] = {}

    class Ring:
        """A keyring that keeps what it is given."""

        __spec__ = object()

        @staticmethod
        def set_password(service: str, name: str, value: str) -> None:
            ring[service, name] = value

    monkeypatch.setitem(sys.modules, "keyring", Ring)
    assert run("init", "--import", str(claude), "--secrets", "keyring", "--replace").code == 0
    assert ring == {("hotplug", "memo-api_key"): "hunter2222"}
    monkeypatch.setitem(sys.modules, "keyring", None)
    refused = run("init", "--import", str(claude), "--secrets", "keyring", "--replace", "--json")
    assert (refused.code, "keyring is not installed" in refused.error["message"]) == (2, True)


def test_what_is_there_is_replaced_only_if_wanted_and_kept(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "config" / "hotplug.toml"
    path.parent.mkdir()
    path.write_text("# mine\n")
    for words in ((), ("--yes",)):
        refused = run("init", *words, "--json")
        assert (refused.code, refused.error["hint"]) == (2, "--replace keeps it under another name")
    assert path.read_text() == "# mine\n"
    for number in (1, 2):
        ran = run("init", "--yes", "--replace", "--json")
        assert ran.document["kept"] == f"{path}.{number}"
    assert (path.parent / "hotplug.toml.1").read_text() == "# mine\n"


def test_a_secret_s_file_that_holds_something_else_stays(run: Run, tmp_path: Path, claude: Path) -> None:
    held = tmp_path / "config" / "secrets" / "memo-api_key"
    held.parent.mkdir(parents=True)
    held.write_text("other\n")
    ran = run("init", "--import", str(claude), "--yes", "--json")
    assert (ran.code, "holds another secret" in ran.error["message"]) == (2, True)
    assert held.read_text() == "other\n"
    assert not (tmp_path / "config" / "hotplug.toml").exists()


def test_auto_finds_what_is_here_and_asks(run: Run, tmp_path: Path, claude: Path) -> None:
    (tmp_path / ".vscode").mkdir()
    (tmp_path / ".vscode" / "mcp.json").write_text('{"servers": {"ws": {"command": "x"}}} // here')
    (tmp_path / ".mcp.json").write_text("{")
    ran = run("init", "--import", "auto", "--json")
    assert ran.code == 2
    assert "there is nobody to ask: Take these servers over?" in ran.err
    ran = run("init", "--import", "auto", "--yes", "--json")
    assert [one["name"] for one in ran.document["servers"]] == ["memo", "github", "ws"]
    # Nobody looked at what the folder's own file starts.
    assert [one["disabled"] for one in ran.document["servers"]] == [False, False, True]
    assert "look what it starts" in ran.document["servers"][2]["notes"][-1]
    assert f"found {claude}: 3 servers of Claude Code" in ran.err
    assert "mcp.json: 1 server of VS Code" in ran.err
    assert ".mcp.json is not JSON" in ran.err


@pytest.mark.parametrize("text", ["{", '{"a": 1}', None])
def test_a_file_that_holds_no_servers_is_refused(run: Run, tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "mcp.json").write_text(text)
    ran = run("init", "--import", "mcp.json", "--yes", "--json")
    assert ran.code == 2
    assert "mcp.json" in ran.error["message"]
    assert not (tmp_path / "config" / "hotplug.toml").exists()


def test_at_a_terminal_it_asks(tmp_path: Path, claude: Path) -> None:
    ours, theirs = pty.openpty()
    env = {**os.environ, "HOTPLUG_CONFIG": str(tmp_path / "hotplug.toml"), "PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen(
        [sys.executable, "-m", "hotplug", "init"], cwd=tmp_path, env=env, stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    said = ""
    answers = [("Take these servers over?", "y\n"), ("Where shall they be kept?", "what\n"), ("[file] ", "pl\n")]
    until = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < until:
        if select.select([ours], [], [], 0.1)[0]:
            try:
                said += os.read(ours, 65536).decode()
            except OSError:
                break
        if answers and answers[0][0] in said:
            os.write(ours, answers.pop(0)[1].encode())
    assert process.wait(10) == 0, said
    os.close(ours)
    assert "hunter2222" not in said
    document = tomllib.loads((tmp_path / "hotplug.toml").read_text())
    assert document["servers"]["memo"]["env"] == {"API_KEY": "hunter2222"}
