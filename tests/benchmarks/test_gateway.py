"""The benchmark of the gateway runs, and says what it measured in its schema; how fast anything is, no test asserts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


def measured(tmp_path: Path, *arguments: str) -> dict[str, Any]:
    file, page = tmp_path / "bench.json", tmp_path / "page.md"
    page.write_text("before\n<!-- measured -->\nold\n<!-- end of measured -->\nafter\n")
    command = [sys.executable, "-m", "benchmarks.gateway", "--json", str(file), "--doc", str(page), *arguments]
    done = subprocess.run(
        [*command, "--rounds", "1", "--calls", "2", "--starts", "1"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": "src"},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "old" not in text
    return json.loads(file.read_text())


@pytest.mark.real
def test_calls_on_a_way_are_measured_in_both_eras(tmp_path: Path) -> None:
    document = measured(tmp_path, "--only", "calls", "--way", "HTTP > stdio")
    assert document["schema"] == "hotplug.bench-gateway/1"
    ways = {row["group"] for row in document["rows"]}
    assert ways == {"HTTP > stdio, 2026-07-28", "HTTP > stdio, 2025-11-25"}
    for way in ways:
        rows = [row for row in document["rows"] if row["group"] == way]
        assert {"direct", "hotplug"} <= {row["target"] for row in rows}
        assert {row["what"] for row in rows if row["target"] == "hotplug" and "ratio" in row} == {
            "small call, p50",
            "small calls, 32 at once",
            "20 kB result, p50",
        }


@pytest.mark.real
@pytest.mark.parametrize("group", ["extras", "memory"])
def test_a_gateway_as_a_whole_is_measured(group: str, tmp_path: Path) -> None:
    document = measured(tmp_path, "--only", group, "--alone")
    assert document["rows"]
    assert all(row["value"] > 0 for row in document["rows"])
