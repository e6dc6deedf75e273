from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("mcp", "mcp_types", "httpx2", "pydantic", "anyio", "fastmcp", "jsonschema", "rich")


@pytest.mark.parametrize("module", ["target", "packages", "serversfile", "secrets", "session"])
def test_importing_a_module_of_connect_pulls_nothing_heavy(module: str) -> None:
    script = f"import sys, hotplug.connect.{module}; print([m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": ":".join(sys.path)},
    )
    assert done.stdout.strip() == "[]"
