"""The demo, as a newcomer runs it: six backends, one outcome, nothing left behind."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import jsonschema
import pytest

ROOT = Path(__file__).resolve().parents[2]
DEMO = (sys.executable, "-m", "hotplug", "demo")
pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]


def _environment(folder: Path) -> dict[str, str]:
    """Ours, with a folder for temporary files of its own: by that, everything that was started is known again."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("HOTPLUG_")}
    return {**env, "TMPDIR": str(folder), "PYTHONPATH": str(ROOT / "src"), "NO_COLOR": "1"}


def _alive(folder: Path) -> list[str]:
    """The processes whose environment names the folder, with their command lines."""
    mark = f"TMPDIR={folder}"
    if not Path("/proc/self/environ").exists():
        listed = subprocess.run(["ps", "axeww", "-o", "command="], stdout=subprocess.PIPE, text=True, check=True)
        return [line for line in listed.stdout.splitlines() if mark in line]
    found: list[str] = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark.encode() in (process / "environ").read_bytes().split(b"\0"):
                command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                if command:  # a zombie has none: it has ended, and its parent hasn't looked yet
                    found.append(command)
    return found


def _all_gone(folder: Path) -> bool:
    return _wait(lambda: not _alive(folder), seconds=10)


def _wait(done: object, *, seconds: float) -> bool:
    assert callable(done)
    until = time.monotonic() + seconds
    while not done():
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


def _ours(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir() if path.name.startswith("hotplug")]


def _shown_in_readme() -> str:
    spec = importlib.util.spec_from_file_location("readme_demo", ROOT / "tools" / "readme_demo.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.shown((ROOT / "README.md").read_text(encoding="utf-8"))


def test_the_demo_ends_with_six_of_six_prints_what_the_readme_shows_and_leaves_nothing(tmp_path: Path) -> None:
    done = subprocess.run(DEMO, env=_environment(tmp_path), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.rstrip("\n").splitlines()[-1] == "6 of 6 backends gave the same outcome"
    assert done.stdout == _shown_in_readme(), "run tools/readme_demo.py"
    assert _all_gone(tmp_path), _alive(tmp_path)
    assert _ours(tmp_path) == []


def test_the_demo_as_json_is_of_its_published_schema(tmp_path: Path) -> None:
    words = (*DEMO, "--json", "--only", "sqlite", "--only", "cal-scheduler-mcp")
    done = subprocess.run(words, env=_environment(tmp_path), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    schema = json.loads((ROOT / "schemas" / "hotplug.journey-report-1.json").read_text(encoding="utf-8"))
    report = json.loads(done.stdout)
    jsonschema.Draft202012Validator(schema).validate(report)
    assert [one["name"] for one in report["backends"]] == ["sqlite", "cal-scheduler-mcp"]


@contextlib.contextmanager
def _terminal() -> Iterator[tuple[int, int]]:
    """A pseudo terminal, since progress is told to terminals only: our end and the process's end."""
    ours, theirs = os.openpty()
    try:
        yield ours, theirs
    finally:
        for end in (ours, theirs):
            with contextlib.suppress(OSError):
                os.close(end)


def _read_until(terminal: int, words: str, *, seconds: float) -> str:
    said, until = "", time.monotonic() + seconds
    while words not in said and time.monotonic() < until:
        if select.select([terminal], [], [], 0.1)[0]:
            said += os.read(terminal, 65536).decode(errors="replace")
    return said


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
def test_an_interrupt_ends_the_demo_with_130_and_leaves_nothing(tmp_path: Path, number: signal.Signals) -> None:
    with _terminal() as (ours, theirs):
        demo = subprocess.Popen(DEMO, env=_environment(tmp_path), stdout=subprocess.DEVNULL, stderr=theirs)
        try:
            assert "starting" in _read_until(ours, "starting", seconds=120), "the demo said nothing"
            assert _wait(lambda: len(_alive(tmp_path)) > 2, seconds=120), "no server was started"
            demo.send_signal(number)
            until = time.monotonic() + 60
            while demo.poll() is None and time.monotonic() < until:
                _read_until(ours, "\0", seconds=0.2)  # a full terminal would hold it up
            assert demo.poll() == 130
        finally:
            if demo.poll() is None:
                demo.kill()
            demo.wait()
    assert _all_gone(tmp_path), _alive(tmp_path)
    assert _ours(tmp_path) == []
