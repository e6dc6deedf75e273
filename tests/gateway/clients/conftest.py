"""What the clients find behind the gateway."""

from __future__ import annotations

import sys
from collections.abc import Generator

import pytest

from hotplug.testing.program import started


@pytest.fixture(scope="session")
def everything() -> Generator[str]:
    """The entry of a server that has every method, and runs already."""
    with started([sys.executable, "-m", "hotplug.testing.everything", "--http", "0"], seconds=120) as url:
        yield f'\n[servers.everything]\nurl = "{url}"\n'
