"""`hotplug doctor`: every server of a file, and the machine."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.cli.conftest import Run, validated

from hotplug.cli import doctor_machine, doctor_servers
from hotplug.cli.doctor_machine import machine
from hotplug.cli.targets import Given
from hotplug.connect import parse_target
from hotplug.errors import ConnectError

SERVERS = Path(__file__).parent / "servers"
TINY = f"{SERVERS / 'tiny_calendar.py'}:server"


def test_without_servers_the_machine_alone_is_looked_at(run: Run) -> None:
    ran = run("doctor", "--json")
    assert ran.code == 0
    document = ran.document
    assert document["servers"] == []
    assert [part["name"] for part in document["machine"]] == ["python", "tzdata", "node", "npx", "uvx", "chromium"]
    python = document["machine"][0]
    assert (python["found"], python["fine"], python["required"]) == (sys.executable, True, True)
    assert "no server was named" in ran.err


def test_every_server_of_a_file_has_its_own_fate(run: Run, tmp_path: Path) -> None:
    servers: dict[str, Any] = {
        "dies": {"command": sys.executable, "args": [str(SERVERS / "dies.py")]},
        "away": {"command": "no-such-program"},
        "off": {"command": "no-such-program", "disabled": True},
        "odd": {"args": []},
    }
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
    ran = run("doctor", "mcp.json", TINY, "--json")
    assert ran.code == 4
    found = {one["name"]: one for one in ran.document["servers"]}
    assert found["dies"]["state"] == "unreachable"
    assert found["dies"]["error"]["transport"] == "stdio"
    assert found["dies"]["error"]["log"] == ["no such account"]
    assert "no-such-program" in found["away"]["error"]["message"]
    assert found["off"]["state"] == "disabled"
    assert "neither command nor url" in found["odd"]["error"]["message"]
    assert found[TINY]["state"] == "fine"
    assert found[TINY]["tools"] == 7
    assert found[TINY]["seconds"] > 0


def test_another_client_s_file_is_read_as_that_client_writes_it_and_what_it_would_fill_in_is_told(
    run: Run, tmp_path: Path
) -> None:
    (tmp_path / "mcp.json").write_text(
        """{ // of this workspace
          "servers": {
            "a": {"command": "no-such-program", "args": ["${input:path}"], "env": {"A": "${env:B}"}, "disabled": true},
            "b": {"type": "http", "url": "https://example.org/mcp", "headers": {"X": "Bearer ${T}"}, "disabled": true},
            "c": {"command": "no-such-program", "args": ["$5"], "disabled": true},
          }, /* trailing */
        }"""
    )
    ran = run("doctor", "mcp.json", "--json")
    assert ran.code == 0
    assert [one["state"] for one in ran.document["servers"]] == ["disabled"] * 3
    for words in ("a: args[0] holds ${input:path}", "a: env.A holds ${env:B}", "b: headers.X holds ${T}"):
        assert f"{words}, which isn't filled in here (hotplug init --import mcp.json" in ran.err
    assert "warning: c" not in ran.err


def test_the_text_says_cause_transport_and_last_lines(run: Run, tmp_path: Path) -> None:
    (tmp_path / "hotplug.toml").write_text(
        f'[servers.dies]\ncommand = "{sys.executable}"\nargs = ["{SERVERS / "dies.py"}"]\n'
    )
    ran = run("doctor", "hotplug.toml")
    assert ran.code == 4
    for words in ("✗ dies", "exited with code 7", "transport: stdio", "no such account", "1 server: 1 unreachable"):
        assert words in ran.out


def test_an_untrusted_file_here_is_not_started(run: Run, tmp_path: Path) -> None:
    (tmp_path / "hotplug.toml").write_text('[servers.theirs]\ncommand = "no-such-program"\n')
    ran = run("doctor")
    assert ran.code == 0
    assert "isn't trusted, and counts for nothing" in ran.err
    assert "theirs" not in ran.out


def test_as_lines_of_json_each_server_is_a_document(run: Run) -> None:
    assert run("call", "sqlite:///cal.db", "calendar.calendars").code == 0
    ran = run("doctor", "sqlite:///cal.db", "--format", "jsonl")
    assert ran.code == 0
    (line,) = ran.out.splitlines()
    document = validated(line)
    assert document["state"] == "fine"
    assert document["profiles"][0]["profile"] == "calendar"


def test_a_projection_that_no_longer_fits_is_wrong(run: Run, tmp_path: Path) -> None:
    (tmp_path / "tiny.yaml").write_text((SERVERS / "tiny.yaml").read_text())
    assert run("projection", "freeze", "tiny.yaml", "--target", TINY).code == 0
    server = Given(parse_target(TINY.replace(":server", ":changed")), projection="tiny.yaml")
    (examined,) = anyio.run(_examined, [server])
    assert examined.state == "wrong"
    assert examined.looked is not None
    assert "delete_event" in str(examined.looked.profiles[0].reason)


async def _examined(servers: list[Given]) -> Any:
    return await doctor_servers.examine(servers, limit=30, progress=lambda _: None)


def test_at_most_four_are_looked_at_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    running, most = 0, 0

    async def look(server: Given, *, limit: float) -> Any:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await anyio.wait_all_tasks_blocked()
        running -= 1
        raise ConnectError(f"{server.label} is not there")

    monkeypatch.setattr(doctor_servers, "look", look)
    examined = anyio.run(_examined, [Given(parse_target(f"name{number}")) for number in range(9)])
    assert [one.label for one in examined] == [f"name{number}" for number in range(9)]
    assert most == doctor_servers.AT_ONCE == 4


def test_what_is_missing_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    parts = {part.name: part for part in anyio.run(machine)}
    assert parts["node"].found is None
    assert "Node.js 20" in str(parts["npx"].install)
    assert parts["chromium"].install == "npx playwright install chromium"
    assert not parts["chromium"].required


def test_a_node_that_is_too_old_is_not_fine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    node = tmp_path / "node"
    node.write_text("#!/bin/sh\necho v18.19.0\n")
    node.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    part = doctor_machine._node("node")  # pyright: ignore[reportPrivateUsage]
    assert (part.version, part.fine) == ("18.19.0", False)
    assert "this is v18.19.0" in str(part.install)
