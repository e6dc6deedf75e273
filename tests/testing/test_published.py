"""The published servers: what starts them, and the environment made for one that asks for a newer Python."""

from __future__ import annotations

import subprocess
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import platformdirs
import pytest

import hotplug.testing.published as module
from hotplug.connect import CommandTarget, package_of
from hotplug.errors import ConfigError
from hotplug.projection import named
from hotplug.testing import radicale
from hotplug.testing.published import PUBLISHED, published

pytestmark = pytest.mark.real

DEMANDS = ">=99"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder, and `tiny` 1.0 as the only package that pip can find."""
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    with zipfile.ZipFile(wheels / "tiny-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("tiny.py", "print('it runs')\n")
        wheel.writestr(
            "tiny-1.0.dist-info/METADATA",
            f"Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\nRequires-Python: {DEMANDS}\n",
        )
        wheel.writestr("tiny-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr("tiny-1.0.dist-info/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    folder = tmp_path / "cache"

    def user_cache_dir(name: str) -> str:
        return str(folder / name)

    monkeypatch.setattr(platformdirs, "user_cache_dir", user_cache_dir)
    return folder / "hotplug" / "published"


@pytest.mark.parametrize("name", PUBLISHED)
@pytest.mark.timeout(600)
def test_a_command_shows_the_package_or_a_projection_is_named(name: str) -> None:
    server = published(name)
    shown = package_of(CommandTarget(server.command))
    document = named(server.name).source.document
    assert document.upstream.fits(server.package, server.version)
    if server.projection is None:
        assert shown is not None
        assert (f"{shown.registry}:{shown.name}", shown.version) == (server.package, server.version)
    else:
        assert shown is None
        assert named(server.projection).source.document == document


@pytest.mark.anyio
async def test_the_settings_lead_to_the_users_calendars_in_utc() -> None:
    async with radicale() as server:
        given = {name: published(name).env(server) for name in ("cal-scheduler-mcp", "caldav-mcp")}
        scheduler, caldav = given["cal-scheduler-mcp"], given["caldav-mcp"]
        assert scheduler == {
            "CALDAV_BASE_URL": server.user_url,
            "CALDAV_USERNAME": server.username,
            "CALDAV_PASSWORD": server.password,
            "CAL_DEFAULT_TZ": "UTC",
        }
        assert (caldav["CALDAV_BASE_URL"], caldav["TZ"]) == (server.url, "UTC")
        assert server.password not in repr(published("cal-scheduler-mcp"))


def test_an_unknown_name_is_told_with_those_that_are_known() -> None:
    with pytest.raises(ConfigError, match="cal-scheduler-mcp"):
        published("caldav")


def test_a_package_that_asks_for_another_python_is_installed_once_and_runs(cache: Path) -> None:
    python = module._installed("tiny", "1.0")  # pyright: ignore[reportPrivateUsage]
    said = subprocess.run([str(python), "-m", "tiny"], capture_output=True, text=True, check=True)
    assert said.stdout == "it runs\n"
    made = python.stat().st_ctime_ns, cache.joinpath("tiny-1.0", "pyvenv.cfg").stat().st_mtime_ns
    assert module._installed("tiny", "1.0") == python  # pyright: ignore[reportPrivateUsage]
    assert made == (python.stat().st_ctime_ns, cache.joinpath("tiny-1.0", "pyvenv.cfg").stat().st_mtime_ns)


def test_two_at_once_make_one_environment_and_leave_nothing_else(cache: Path) -> None:
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda _: module._installed("tiny", "1.0"), range(2))  # pyright: ignore[reportPrivateUsage]
    assert first == second
    assert first.is_file()
    assert [path.name for path in cache.iterdir()] == ["tiny-1.0"]


def test_what_fails_leaves_nothing_behind_and_says_why(cache: Path) -> None:
    with pytest.raises(ConfigError, match="huge"):
        module._installed("huge", "1.0")  # pyright: ignore[reportPrivateUsage]
    assert list(cache.iterdir()) == []


def test_an_environment_that_lost_its_python_is_made_anew(cache: Path) -> None:
    cache.mkdir(parents=True)
    (cache / "tiny-1.0" / "bin").mkdir(parents=True)
    assert module._installed("tiny", "1.0").is_file()  # pyright: ignore[reportPrivateUsage]
