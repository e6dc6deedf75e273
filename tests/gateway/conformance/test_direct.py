"""The official suite passes at our own upstream for it: all checks of each era, and as many as there are.

A scenario that misses what it needs checks less and fails nothing, so the counts are part of it.
"""

from __future__ import annotations

import sys
from collections.abc import Generator

import pytest

from hotplug.testing.program import started
from hotplug.testing.suite import LEGACY, MODERN, run_suite

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]

CHECKS = {LEGACY: 84, MODERN: 152}


@pytest.fixture(scope="module")
def upstream() -> Generator[str]:
    with started([sys.executable, "-m", "hotplug.testing.everything", "--http", "0"]) as url:
        yield url


@pytest.mark.parametrize("version", CHECKS)
def test_the_suite_passes_at_our_upstream(upstream: str, version: str) -> None:
    result = run_suite(upstream, version)
    assert (result.passed, result.failed, result.warnings) == (CHECKS[version], 0, 0), result.summary()


@pytest.mark.parametrize("version", CHECKS)
def test_the_front_that_adds_headers_changes_no_figure(upstream: str, version: str) -> None:
    # What reaches a gateway with a token has to be what reaches a server without one.
    result = run_suite(upstream, version, headers={"Authorization": "Bearer of-no-use"})
    assert (result.passed, result.failed, result.warnings) == (CHECKS[version], 0, 0), result.summary()
