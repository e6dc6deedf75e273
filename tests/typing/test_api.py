"""The public API under pyright, strict: what is right passes, what is wrong is found."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.mark.timeout(180)
def test_pyright_accepts_what_is_right_and_finds_what_is_wrong() -> None:
    checked = subprocess.run(
        [sys.executable, "-m", "pyright", "--project", str(HERE), "--pythonpath", sys.executable, "--outputjson"],
        capture_output=True,
        text=True,
        check=False,
        timeout=170,
        env={**os.environ, "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"},
    )
    report = json.loads(checked.stdout)
    found = [
        f"{one['range']['start']['line'] + 1}: {one['message']} ({one.get('rule')})"
        for one in report["generalDiagnostics"]
        if one["severity"] == "error"
    ]
    assert found == []
    assert report["summary"]["filesAnalyzed"] >= 1
