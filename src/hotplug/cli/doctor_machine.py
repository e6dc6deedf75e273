"""What this machine has of what servers and Hotplug need, and how to get what is missing."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import anyio
import anyio.to_thread

__all__ = ["MachinePart", "machine"]

_SECONDS: Final = 10.0
_OLDEST_PYTHON: Final = (3, 11)
_OLDEST_NODE: Final = 20


@dataclass(frozen=True)
class MachinePart:
    """One thing of the machine.

    Args:
        found: Where it is, or None.
        needed: What can't be done without it.
        required: Nothing works without it.
        install: How to get it, or a newer one, where it is missing or too old.
    """

    name: str
    found: str | None
    version: str | None
    needed: str
    required: bool = False
    install: str | None = None

    @property
    def fine(self) -> bool:
        return self.install is None

    def document(self) -> dict[str, Any]:
        body: dict[str, Any] = {
            "name": self.name,
            "found": self.found,
            "version": self.version,
            "needed": self.needed,
            "required": self.required,
            "fine": self.fine,
        }
        if self.install:
            body["install"] = self.install
        return body


async def machine() -> tuple[MachinePart, ...]:
    """Everything that servers may need, looked up at the same time."""
    makers: list[Callable[[], MachinePart]] = [
        _python,
        _tzdata,
        partial(_node, "node"),
        partial(_node, "npx"),
        _uvx,
        _chromium,
    ]
    found: dict[int, MachinePart] = {}

    async def make(number: int, maker: Callable[[], MachinePart]) -> None:
        found[number] = await anyio.to_thread.run_sync(maker)

    async with anyio.create_task_group() as group:
        for number, maker in enumerate(makers):
            group.start_soon(make, number, maker)
    return tuple(found[number] for number in range(len(makers)))


def _python() -> MachinePart:
    fine = sys.version_info[:2] >= _OLDEST_PYTHON
    return MachinePart(
        "python",
        sys.executable,
        platform.python_version(),
        "Hotplug itself",
        required=True,
        install=None if fine else f"install Python {'.'.join(map(str, _OLDEST_PYTHON))} or newer",
    )


def _tzdata() -> MachinePart:
    """The zone database: without it no zoned time can be placed."""
    from importlib.metadata import PackageNotFoundError, version
    from zoneinfo import TZPATH, ZoneInfo, ZoneInfoNotFoundError

    try:
        known: str | None = version("tzdata")
    except PackageNotFoundError:
        known = None
    try:
        ZoneInfo.no_cache("Europe/Berlin")
        works = known is not None
    except ZoneInfoNotFoundError:
        works = False
    place = next((path for path in TZPATH if Path(path).is_dir()), None) or ("the package tzdata" if known else None)
    return MachinePart(
        "tzdata",
        place,
        known,
        "times in zones",
        required=True,
        install=None if works else "pip install --upgrade tzdata",
    )


def _node(name: str) -> MachinePart:
    needed = "servers that are npm packages"
    path = shutil.which(name)
    version = _version(path)
    major = version.lstrip("v").partition(".")[0] if version else ""
    install = None
    if path is None or version is None:
        install = f"{_node_command()} (Node.js {_OLDEST_NODE} or newer; npx comes with it)"
    elif name == "node" and major.isdigit() and int(major) < _OLDEST_NODE:
        install = f"{_node_command()} (Node.js {_OLDEST_NODE} or newer; this is {version})"
    return MachinePart(name, path, version and version.lstrip("v"), needed, install=install)


def _node_command() -> str:
    if sys.platform == "darwin":
        return "brew install node"
    if sys.platform == "win32":
        return "winget install OpenJS.NodeJS.LTS"
    return "see https://nodejs.org/en/download"


def _uvx() -> MachinePart:
    from hotplug.connect.launch import find_program
    from hotplug.errors import ConfigError

    try:
        path: str | None = find_program("uvx", os.environ)
    except ConfigError:
        path = None
    version = _version(path)
    return MachinePart(
        "uvx",
        path,
        version.split()[1] if version and len(version.split()) > 1 else version,
        "servers that are PyPI packages",
        install=None if version else "pip install uv",
    )


_CHROMIUM: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge")


def _chromium() -> MachinePart:
    """Only servers that drive a browser want one, and most bring their own; so nothing is wrong without."""
    path = next((found for name in _CHROMIUM if (found := shutil.which(name))), None)
    return MachinePart(
        "chromium",
        path,
        None,
        "servers that drive a browser",
        install=None if path else "npx playwright install chromium",
    )


def _version(path: str | None) -> str | None:
    if path is None:
        return None
    try:
        ran = subprocess.run(  # noqa: S603 - a program found on the path, with one fixed argument
            [path, "--version"], capture_output=True, text=True, timeout=_SECONDS, check=False, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    first = ran.stdout.strip().splitlines()
    return first[0].strip() if ran.returncode == 0 and first else None
