"""The published calendar servers that Hotplug ships projections for, at the versions that these were tried with.

```python
async with radicale(calendars={"work": "Work"}) as server:
    upstream = published("cal-scheduler-mcp")
    session = McpSession(CommandTarget(upstream.command, env=upstream.env(server)))
```

What they need (`uv`) comes with `pip install 'hotplug[demo]'`; `caldav-mcp` needs Node 20 as well.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hotplug.errors import ConfigError

if TYPE_CHECKING:
    from hotplug.testing.radicale import RadicaleServer

__all__ = ["PUBLISHED", "Published", "published"]

_INSTALL_SECONDS: Final = 600
_FIND_SECONDS: Final = 60
_LINES_SHOWN: Final = 8


@dataclass(frozen=True, slots=True)
class Published:
    """A published server, ready to start.

    Args:
        name: Of the package, and of the shipped projection.
        package: As a projection names it: `pypi:caldav-blade-mcp`.
        version: The one that is started.
        command: Starts it on standard streams.
        projection: The shipped projection to name where the command doesn't show the package; None where it does.
    """

    name: str
    package: str
    version: str
    command: tuple[str, ...]
    projection: str | None = None
    _settings: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    _home: bool = field(default=True, repr=False)
    _url: str = field(default="CALDAV_URL", repr=False)

    def env(self, server: RadicaleServer) -> dict[str, str]:
        """The variables that it needs to reach a calendar server as its user, and to keep times in UTC."""
        return {
            self._url: server.user_url if self._home else server.url,
            "CALDAV_USERNAME": server.username,
            "CALDAV_PASSWORD": server.password,
            **self._settings,
        }


def published(name: str) -> Published:
    """The published server of that name.

    `caldav-blade-mcp` asks for Python 3.12. Where uv finds none, it is installed once for this Python, on which it runs
    as well, into the user's cache directory; that takes up to some minutes.

    Raises:
        ConfigError: There is none of that name, or what starts it is missing or failed, with its last lines.
    """
    make = _MAKERS.get(name)
    if make is None:
        raise ConfigError(f"no published server {name!r} is known here", hint=f"one of {', '.join(PUBLISHED)}")
    return make()


def _caldav() -> Published:
    npx = shutil.which("npx")
    if npx is None:
        raise ConfigError("caldav-mcp is started by npx, which is not installed", hint="install Node 20 or newer")
    return Published(
        name="caldav-mcp",
        package="npm:caldav-mcp",
        version="0.10.0",
        command=(npx, "-y", "caldav-mcp@0.10.0"),
        _settings={"TZ": "UTC"},
        _home=False,
        _url="CALDAV_BASE_URL",
    )


def _cal_scheduler() -> Published:
    return Published(
        name="cal-scheduler-mcp",
        package="pypi:cal-scheduler-mcp",
        version="1.1.3",
        command=(_beside("uvx"), "--from", "cal-scheduler-mcp==1.1.3", "cal-scheduler"),
        _settings={"CAL_DEFAULT_TZ": "UTC"},
        _url="CALDAV_BASE_URL",
    )


def _agents() -> Published:
    return Published(
        name="agents-calendar",
        package="pypi:agents-calendar",
        version="0.1.2",
        command=(_beside("uvx"), "agents-calendar@0.1.2", "serve"),
        _settings={"CALDAV_TIMEZONE": "UTC", "AGENTS_NO_UPDATE_CHECK": "1"},
    )


def _blade() -> Published:
    name, version = "caldav-blade-mcp", "0.4.0"
    newer = _python(">=3.12")
    if newer is not None:
        command, projection = (_beside("uvx"), "--python", newer, f"{name}@{version}"), None
    else:
        command, projection = (str(_installed(name, version)), "-m", "caldav_blade_mcp"), name
    return Published(
        name=name,
        package=f"pypi:{name}",
        version=version,
        command=command,
        projection=projection,
        _settings={"CALDAV_WRITE_ENABLED": "true"},
    )


_MAKERS: Final[Mapping[str, Callable[[], Published]]] = {
    "agents-calendar": _agents,
    "cal-scheduler-mcp": _cal_scheduler,
    "caldav-blade-mcp": _blade,
    "caldav-mcp": _caldav,
}

PUBLISHED: Final = tuple(_MAKERS)
"""The names that `published` takes."""


def _beside(program: str) -> str:
    """A program of uv: the one installed with this Python, else the one on the path."""
    here = Path(sys.executable).parent
    found = shutil.which(program, path=os.pathsep.join([str(here), os.environ.get("PATH", "")]))
    if found is None:
        raise ConfigError(
            f"{program} is neither beside {sys.executable} nor on the path", hint="pip install 'hotplug[demo]'"
        )
    return found


def _python(wanted: str) -> str | None:
    """The path of a Python that uv finds on this machine; None where there is none. Nothing is downloaded."""
    asked = subprocess.run(  # noqa: S603 - uv's own program
        [_beside("uv"), "python", "find", "--no-project", "--no-python-downloads", wanted],
        capture_output=True,
        text=True,
        timeout=_FIND_SECONDS,
        check=False,
    )
    return asked.stdout.strip() or None if asked.returncode == 0 else None


def _installed(name: str, version: str) -> Path:
    """The Python of an environment that holds a package whose Requires-Python this Python doesn't meet.

    The environment is made beside its place and renamed, so it is whole where it stands. Its own pip installs: uv
    has no way past Requires-Python.
    """
    import platformdirs

    home = Path(platformdirs.user_cache_dir("hotplug")) / "published" / f"{name}-{version}"
    python = _python_of(home)
    if python.is_file():
        return python
    home.parent.mkdir(parents=True, exist_ok=True)
    making = Path(tempfile.mkdtemp(prefix=f"{home.name}.", dir=home.parent))
    try:
        _run(
            [
                _beside("uv"),
                "venv",
                "--quiet",
                "--seed",
                "--no-project",
                "--allow-existing",
                "--python",
                sys.executable,
                str(making),
            ]
        )
        pip = [str(_python_of(making)), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        _run([*pip, "--ignore-requires-python", f"{name}=={version}"])
        # Scripts inside name the old place; nothing but `python -m` is used.
        try:
            making.rename(home)
        except OSError:
            if not python.is_file():
                # What stands there lost the Python that it was made with.
                stale = Path(tempfile.mkdtemp(prefix=f"{home.name}.", dir=home.parent))
                home.rename(stale / home.name)
                making.rename(home)
                shutil.rmtree(stale, ignore_errors=True)
    finally:
        shutil.rmtree(making, ignore_errors=True)
    return python


def _python_of(environment: Path) -> Path:
    return environment / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def _run(command: list[str]) -> None:
    done = subprocess.run(  # noqa: S603 - uv's own program, or the pip of an environment made here
        command, capture_output=True, text=True, timeout=_INSTALL_SECONDS, check=False
    )
    if done.returncode != 0:
        last = "\n".join((done.stdout + done.stderr).strip().splitlines()[-_LINES_SHOWN:])
        raise ConfigError(f"{Path(command[0]).name} {command[1]} failed with {done.returncode}: {last}")
