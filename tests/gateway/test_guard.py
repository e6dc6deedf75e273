"""A page that a browser was lured to can't speak to the gateway."""

from __future__ import annotations

import pytest

from hotplug.gateway.front.guard import Guard


@pytest.mark.parametrize("host", ["localhost", "localhost:8080", "127.0.0.1:1", "[::1]:8080", "LOCALHOST:1"])
def test_names_of_this_machine_are_taken(host: str) -> None:
    assert Guard().refuses({"host": host}) is None


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "localhost.evil.example",
        "evil.example:80",
        "127.0.0.1.evil.example",
        "a@localhost",
        "localhost/x",
        "localhost#",
        "localhost:80:80",
        "localhost:x",
        "192.168.0.1",
        "[::1",
        "0.0.0.0",
        "",
    ],
)
def test_any_other_host_is_refused(host: str) -> None:
    assert Guard().refuses({"host": host}) == (421, "Invalid Host header")


def test_a_request_without_host_is_refused() -> None:
    assert Guard().refuses({}) == (421, "Invalid Host header")


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "https://localhost.evil.example", "file://", "localhost", ""]
)
def test_a_foreign_origin_is_refused(origin: str) -> None:
    assert Guard().refuses({"host": "localhost", "origin": origin}) == (403, "Invalid Origin header")


@pytest.mark.parametrize("origin", ["http://localhost:3000", "https://127.0.0.1", "http://[::1]:5"])
def test_an_origin_of_this_machine_is_taken(origin: str) -> None:
    assert Guard().refuses({"host": "localhost", "origin": origin}) is None


def test_the_owners_own_names_are_taken_as_they_are_written() -> None:
    guard = Guard(hosts=["gate.example", "other.example:*"], origins=["https://app.example"])
    assert guard.refuses({"host": "gate.example"}) is None
    assert guard.refuses({"host": "gate.example:81"}) is not None
    assert guard.refuses({"host": "other.example:81"}) is None
    assert guard.refuses({"host": "other.example"}) is not None
    assert guard.refuses({"host": "gate.example", "origin": "https://app.example"}) is None
    assert guard.refuses({"host": "gate.example", "origin": "https://app.example.evil"}) is not None
