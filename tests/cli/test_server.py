"""`hotplug server`: the servers of the owner's file, listed, added, removed and tried."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import pytest
from tests.cli.conftest import Run, validated

SERVERS = Path(__file__).parent / "servers"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "config" / "hotplug.toml"
    path.parent.mkdir()
    return path


def entries(path: Path) -> dict[str, dict[str, object]]:
    return tomllib.loads(path.read_text())["servers"]


def test_what_is_set_up_is_listed(run: Run, config: Path) -> None:
    config.write_text(
        '[servers.work]\ntarget = "npm:x"\nprofile = "calendar"\n[servers.off]\nurl = "https://user:pw@example.org/mcp"\n'
        "disabled = true\n[servers.bad]\nx = 1\n"
    )
    ran = run("server", "list")
    assert ran.code == 1
    lines = ran.out.splitlines()
    assert lines[0] == "• work  npm:x  (speaks calendar)"
    assert lines[1] == "– off   https://example.org/mcp  (disabled)"
    assert lines[2].startswith("✗ bad ")
    document = run("server", "list", "--json").document
    assert document["file"] == str(config)
    assert [one["state"] for one in document["servers"]] == ["set-up", "disabled", "broken"]
    rows = [validated(line) for line in run("server", "list", "--format", "jsonl").out.splitlines()]
    assert [one["name"] for one in rows] == ["work", "off", "bad"]


def test_a_trusted_project_s_servers_are_listed_and_an_untrusted_one_s_not(run: Run, tmp_path: Path) -> None:
    (tmp_path / "hotplug.toml").write_text('[servers.theirs]\ncommand = "x"\n')
    ran = run("server", "list")
    assert "no server is set up" in ran.out
    assert "isn't trusted" in ran.err
    assert run("trust", "hotplug.toml").code == 0
    assert "theirs" in run("server", "list").out


def test_a_command_is_added_and_starts_from_anywhere(run: Run, tmp_path: Path, config: Path) -> None:
    (tmp_path / "server.py").write_text("")
    ran = run(
        "server", "add", "memo", "--env", "A=secret:a", "--profile", "calendar", "--", "python", "server.py", "--x"
    )
    assert ran.code == 0
    assert ran.out.splitlines()[-1] == "next: hotplug server test memo"
    assert entries(config)["memo"] == {
        "command": "python",
        "args": ["server.py", "--x"],
        "cwd": str(tmp_path),
        "env": {"A": "secret:a"},
        "profile": "calendar",
    }
    assert config.stat().st_mode & 0o777 == 0o600
    assert run("server", "add", "npx", "--", "npx", "-y", "x").code == 0
    assert entries(config)["npx"] == {"command": "npx", "args": ["-y", "x"]}


@pytest.mark.parametrize(
    ("words", "entry"),
    [
        (
            ("https://example.org/mcp", "--header", "X=1", "--oauth"),
            {"url": "https://example.org/mcp", "headers": {"X": "1"}, "oauth": True},
        ),
        (("npm:x@1.2.3", "--share", "all"), {"target": "npm:x@1.2.3", "share": "all"}),
        (("sqlite:///home.db?me=a@b.c",), {"target": "sqlite:///HERE/home.db?me=a@b.c"}),
        (("folder:days",), {"target": "folder:HERE/days"}),
        (("server.py:object",), {"target": "HERE/server.py:object"}),
        (("mcp.json#a",), {"target": "HERE/mcp.json#a"}),
        (
            ("npm:x", "--profile", "a", "--profile", "b", "--projection", "p.yaml"),
            {"target": "npm:x", "profiles": ["a", "b"], "projection": "HERE/p.yaml"},
        ),
        (("npm:x", "--prefix", "", "--disabled"), {"target": "npm:x", "prefix": "", "disabled": True}),
    ],
)  # fmt: skip
def test_targets_are_added_as_they_are_seen_from_here(
    run: Run, tmp_path: Path, config: Path, words: tuple[str, ...], entry: dict[str, object]
) -> None:
    assert run("server", "add", "a", *words).code == 0
    here = str(tmp_path)
    expected = {key: value.replace("HERE", here) if isinstance(value, str) else value for key, value in entry.items()}
    assert entries(config)["a"] == expected


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("work", "npm:x"), "has a server 'work' already"),
        (("a b", "npm:x"), "a server's name has"),
        (("hotplug", "npm:x"), "of the gateway's own"),
        (("a",), "a server is missing"),
        (("a", "other"), "only the name of one"),
        (("a", "npm:x", "--env", "A"), "--env is NAME=VALUE"),
        (("a", "npm:x", "--cwd", "/x"), "cwd means nothing"),
        (("a", "sqlit:///x"), "unknown scheme"),
    ],
)
def test_what_can_t_be_added_changes_nothing(run: Run, config: Path, words: tuple[str, ...], said: str) -> None:
    config.write_text('[servers.work]\ncommand = "x"\n')
    ran = run("server", "add", *words, "--json")
    assert ran.code == 2
    assert said in ran.error["message"]
    assert config.read_text() == '[servers.work]\ncommand = "x"\n'


def test_a_secret_in_plain_is_taken_with_a_warning(run: Run, config: Path) -> None:
    ran = run("server", "add", "a", "npm:x", "--env", "API_KEY=hunter2222", "--json")
    assert ran.code == 0
    assert "servers.a.env.API_KEY looks like a secret" in ran.err
    assert ran.document["warnings"]
    assert "hunter2222" not in ran.out + ran.err


def test_removing_leaves_the_rest_as_it_is(run: Run, config: Path) -> None:
    config.write_text('# mine\n[servers.a]\ncommand = "x"\n\n[servers.b]  # the other\ncommand = "y"\n')
    config.chmod(0o640)
    assert run("server", "remove", "a", "--json").document["name"] == "a"
    assert config.read_text() == '# mine\n[servers.b]  # the other\ncommand = "y"\n'
    assert config.stat().st_mode & 0o777 == 0o640
    ran = run("server", "remove", "a", "--json")
    assert (ran.code, ran.error["hint"]) == (2, "it has: b")


def test_one_server_is_started_and_looked_at(run: Run, config: Path) -> None:
    config.write_text(
        f'[servers.tiny]\ntarget = "{SERVERS / "tiny_calendar.py"}:server"\ndisabled = true\n'
        f'[servers.dies]\ncommand = "{sys.executable}"\nargs = ["{SERVERS / "dies.py"}"]\n'
    )
    ran = run("server", "test", "tiny")
    assert ran.code == 0
    assert ran.out.startswith("✓ tiny: memory")
    assert "a new thread, a sub-agent: all 7 tools" in ran.out
    dies = run("server", "test", "dies", "--json")
    assert (dies.code, dies.document["causes"][0]["code"]) == (4, "exits")
    ran = run("server", "test", "tyni", "--json")
    assert (ran.code, ran.error["hint"]) == (2, "Did you mean 'tiny'?")


def test_a_server_of_the_owner_s_file_is_known_by_name_everywhere(run: Run, tmp_path: Path, config: Path) -> None:
    config.write_text('[servers.home]\ntarget = "sqlite:///home.db"\n')
    assert run("call", "home", "calendar.calendars").code == 0
    assert (config.parent / "home.db").exists()
    (tmp_path / "hotplug.toml").write_text('[servers.theirs]\ntarget = "sqlite:///theirs.db"\n')
    ran = run("call", "theirs", "calendar.calendars", "--json")
    assert ran.code == 2
    assert "hotplug trust" in ran.error["hint"]
    assert run("trust", "hotplug.toml").code == 0
    assert run("call", "theirs", "calendar.calendars").code == 0
