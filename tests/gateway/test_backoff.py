"""How long something that failed is left alone."""

from __future__ import annotations

from hotplug.gateway.backoff import Backoff

from .pooling import HandClock


def test_the_pause_doubles_from_half_a_second_to_a_minute() -> None:
    backoff = Backoff(HandClock())
    assert backoff.remaining == 0
    assert [backoff.failed() for _ in range(9)] == [0.5, 1, 2, 4, 8, 16, 32, 60, 60]


def test_a_pause_goes_by() -> None:
    clock = HandClock()
    backoff = Backoff(clock)
    backoff.failed()
    clock.now += 0.25
    assert backoff.remaining == 0.25
    clock.now += 1
    assert backoff.remaining == 0


def test_a_minute_up_makes_the_next_failure_the_first() -> None:
    clock = HandClock()
    backoff = Backoff(clock)
    for _ in range(4):
        backoff.failed()
    backoff.succeeded()
    assert backoff.remaining == 0
    clock.now += 59
    assert backoff.failed() == 8
    backoff.succeeded()
    clock.now += 60
    assert backoff.failed() == 0.5


def test_years_of_failures_stay_a_minute() -> None:
    backoff = Backoff(HandClock())
    assert [backoff.failed() for _ in range(2000)][-1] == 60
