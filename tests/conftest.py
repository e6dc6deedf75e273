"""What holds for every test."""

from __future__ import annotations

import os
from collections.abc import Generator

import pytest

IN_CI = os.environ.get("CI", "") not in ("", "0", "false")


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """The MCP SDK's servers and clients run on asyncio here."""
    return "asyncio"


@pytest.fixture(scope="session", autouse=True)
def _own_state(tmp_path_factory: pytest.TempPathFactory) -> Generator[None]:
    """No test, and nothing that one starts, keeps anything in the state folder of whoever runs the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


def _refuse_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    """In CI a skip is a failure: what a test needs has to be installed, or the test has to go."""
    if not IN_CI or report.outcome != "skipped" or hasattr(report, "wasxfail"):
        return
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
    report.outcome = "failed"
    report.longrepr = f"Skipped in CI, where every test has to run: {reason}"


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    _refuse_skip(report)
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    _refuse_skip(report)
    return report
