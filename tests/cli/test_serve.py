"""`hotplug serve --http`: where it listens, and what it says where it can't."""

from __future__ import annotations

import socket

import pytest
from tests.cli.conftest import Run

from hotplug.cli.serve import _at  # pyright: ignore[reportPrivateUsage]
from hotplug.errors import ConfigError
from hotplug.gateway.binding import bound
from hotplug.gateway.config import GatewayConfig


def test_a_port_that_is_taken_is_an_error_like_any_other(run: Run) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ran = run("serve", "--http", str(port), "--json")
    assert ran.code == 2
    assert ran.out == ""
    (line,) = [one for one in ran.err.splitlines() if "can't be served" in one]
    assert f"127.0.0.1:{port}" in line
    assert "Task exception" not in ran.err


@pytest.mark.parametrize("host", ["203.0.113.5", "no name", "2001:db8::1"])
def test_a_place_that_isn_t_this_machine_s_is_told(host: str) -> None:
    with pytest.raises(ConfigError, match="can't be served"):
        bound(host, 0)


@pytest.mark.parametrize(
    ("word", "host", "port"),
    [
        ("8080", "127.0.0.1", 8080),
        (":8080", "127.0.0.1", 8080),
        ("[]:8080", "127.0.0.1", 8080),
        ("[::1]:8080", "::1", 8080),
        ("::1:8080", "::1", 8080),
        ("0.0.0.0:0", "0.0.0.0", 0),
    ],
)
def test_only_a_host_that_is_named_is_listened_on_beyond_loopback(word: str, host: str, port: int) -> None:
    found = _at(GatewayConfig(), word)
    assert (found.host, found.port) == (host, port)


def test_every_address_of_a_name_has_the_same_port() -> None:
    found = bound("localhost", 0)
    try:
        assert len({one.getsockname()[1] for one in found}) == 1
        assert {one.getsockname()[0] for one in found} <= {"127.0.0.1", "::1"}
    finally:
        for one in found:
            one.close()
