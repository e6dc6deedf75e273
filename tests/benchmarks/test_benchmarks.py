"""The benchmarks run, and say what they measured in their schema; how fast anything is, no test asserts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


def measured(group: str, file: Path) -> dict[str, Any]:
    counts = ["--rounds", "1", "--calls", "2", "--starts", "1"]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "--only", group, "--json", str(file), *counts],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": "src"},
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert " ms" in done.stdout
    return json.loads(file.read_text())


@pytest.mark.parametrize("group", ["native", "client", "projected", "start", "documents", "evidence", "access"])
def test_a_group_gives_a_document_of_its_schema(group: str, tmp_path: Path) -> None:
    document = measured(group, tmp_path / "bench.json")
    assert document["schema"] == "hotplug.bench/1"
    assert document["counts"] == {"rounds": 1, "calls": 2, "starts": 1}
    assert {"cpus", "system", "python", "mcp", "load"} == document["machine"].keys()
    assert document["rows"]
    for row in document["rows"]:
        assert row["ms"] > 0
        assert ("ratio" in row) == ("base" in row) == ("spread" in row) == ("baseMs" in row)
        assert ("met" in row) == ("aim" in row)


@pytest.mark.real
def test_a_published_server_is_measured_too(tmp_path: Path) -> None:
    names = [row["name"] for row in measured("real", tmp_path / "bench.json")["rows"]]
    assert [name.partition(" ")[0] for name in names] == ["calendars", "get", "search"]
