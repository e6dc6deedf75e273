"""What is published of the command line: the page about it, and the schemas of its documents."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

from hotplug.profile.lock import Lock, publish

ROOT = Path(__file__).parent.parent.parent


def test_the_page_is_current() -> None:
    ran = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "cli_docs.py"), "--check"],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "COLUMNS": "40", "NO_COLOR": "1"},
    )
    assert ran.returncode == 0, f"run python tools/cli_docs.py\n{ran.stderr}"


def test_the_locks_of_this_repository_are_valid() -> None:
    schema = json.loads((ROOT / "schemas" / "hotplug.lock-1.json").read_text(encoding="utf-8"))
    validator = jsonschema.Draft202012Validator(schema)
    locks = [path for path in ROOT.rglob("profiles.lock") if ".venv" not in path.parts]
    for path in locks:
        validator.validate(json.loads(path.read_text(encoding="utf-8")))
    digest = "sha256:" + "0" * 64
    lock = publish(publish(Lock(), "profiles", "a", "1.0.0", digest), "projections", "b.c", "0.1.0", digest)
    validator.validate(json.loads(lock.dump()))
    assert not validator.is_valid({"schema": "hotplug.lock/1", "profiles": {"a": {"1.0.0": "sha256:0"}}})


@pytest.mark.parametrize("path", sorted((ROOT / "schemas").glob("hotplug.*.json")), ids=lambda path: path.stem)
def test_every_published_schema_is_one(path: Path) -> None:
    schema = json.loads(path.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    name, _, version = path.stem.rpartition("-")
    assert schema["properties"]["schema"]["const"] == f"{name}/{version}"


def test_help_of_commands_that_connect_imports_nothing_heavy() -> None:
    script = (
        "import sys; from hotplug.cli import main;"
        "names = 'call', 'inspect', 'doctor', 'projection', 'run', 'thread', 'log', 'init', 'server', 'trust';"
        "[main([name, '--help']) for name in names];"
        "print(sorted(set(sys.modules) & {'mcp', 'icalendar', 'jsonschema', 'rich', 'yaml', 'tomlkit'}))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script],
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    assert ran.stdout.splitlines()[-1] == "[]"
