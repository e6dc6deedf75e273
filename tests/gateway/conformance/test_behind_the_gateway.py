"""The official suite passes behind the gateway as it does at the server: all checks, in both eras.

One of the handshake era needs a stream that a server closes, which one over stdio has not.
"""

from __future__ import annotations

from collections.abc import Generator

import pytest
from benchmarks.conformance import ROWS, Endpoint, Row

from hotplug.testing.suite import LEGACY, MODERN, run_suite

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]

CHECKS = {"HTTP": {LEGACY: 84, MODERN: 152}, "stdio": {LEGACY: 83, MODERN: 152}}


@pytest.fixture(scope="module", params=CHECKS)
def gateway(request: pytest.FixtureRequest) -> Generator[tuple[str, Endpoint]]:
    (row,) = (row for row in ROWS if row.name == f"gateway, upstream over {request.param}")
    with row.way() as endpoint:
        yield request.param, endpoint


@pytest.mark.parametrize("version", [LEGACY, MODERN])
def test_the_suite_passes_behind_the_gateway(gateway: tuple[str, Endpoint], version: str) -> None:
    upstream, endpoint = gateway
    result = run_suite(endpoint.url, version, headers=endpoint.headers)
    assert (result.passed, result.failed) == (CHECKS[upstream][version], 0), result.summary()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_what_is_printed_wants_the_same_figures(row: Row) -> None:
    assert dict(row.wanted) == CHECKS["stdio" if "stdio" in row.name else "HTTP"]
