"""`hotplug server accept`: a changed tool is closed until its owner took the difference."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.cli.conftest import Run

CLI = Path(__file__).parent / "servers"


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("HOTPLUG_STORE", raising=False)
    path = tmp_path / "config" / "hotplug.toml"
    path.parent.mkdir()
    return path


def become(config: Path, function: str) -> None:
    """The same server, after somebody worked on it."""
    code = f"import sys; sys.path.insert(0, '{CLI}'); import tiny_calendar; tiny_calendar.{function}().run('stdio')"
    store = config.parent / "gateway.sqlite3"
    config.write_text(
        f'[store]\nurl = "sqlite:///{store}"\n[servers.tiny]\ncommand = "{sys.executable}"\nargs = ["-c", "{code}"]\n'
    )


def test_a_changed_tool_is_shown_and_stays_closed_until_it_is_taken(run: Run, config: Path) -> None:
    become(config, "server")
    first = run("server", "accept", "tiny", "--json")
    assert (first.code, first.document["first"], first.document["tools"]) == (0, True, [])
    assert "every tool is as it was accepted" in run("server", "accept", "tiny").out

    become(config, "changed")
    looked = run("server", "accept", "tiny", "--look")
    assert looked.code == 1
    assert "delete_event: its definition changed" in looked.out
    assert "reason" in looked.out
    assert "closed until you accept them: delete_event" in looked.out

    nobody = run("server", "accept", "tiny", "--json")
    assert nobody.code == 2
    assert "there is nobody to ask" in nobody.err

    taken = run("server", "accept", "tiny", "delete_event", "--yes", "--json")
    assert taken.code == 0
    document = taken.document
    assert (document["accepted"], document["closed"]) == (["delete_event"], [])
    assert document["tools"][0]["state"] == "changed"
    assert document["tools"][0]["difference"]
    assert "every tool is as it was accepted" in run("server", "accept", "tiny").out


def test_what_can_t_be_accepted_is_refused(run: Run, config: Path) -> None:
    become(config, "server")
    ran = run("server", "accept", "tiny", "wipee", "--json")
    assert (ran.code, "lists no tool 'wipee'" in ran.error["message"]) == (2, True)
    ran = run("server", "accept", "tyni", "--json")
    assert (ran.code, ran.error["hint"]) == (2, "Did you mean 'tiny'?")
    config.write_text('[servers.home]\ntarget = "sqlite:///home.db"\n[servers.away]\ncommand = "no-such-program"\n')
    assert "runs inside the gateway" in run("server", "accept", "home", "--json").error["message"]
    away = run("server", "accept", "away", "--json")
    assert (away.code, away.error["hint"]) == (4, "hotplug server test away")
