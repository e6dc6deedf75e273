"""What the pool loads before anything is started."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import hotplug


def test_neither_the_sdk_nor_an_http_client_is_loaded_before_it_is_needed() -> None:
    code = (
        "import sys, hotplug.gateway.pool, hotplug.gateway.links.stdio\n"
        "print([name for name in ('mcp', 'mcp_types', 'aiohttp', 'httpx2', 'jsonschema') if name in sys.modules])"
    )
    env = {**os.environ, "PYTHONPATH": str(Path(hotplug.__file__).parents[1])}
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env)
    assert shown.stdout == "[]\n"
