from __future__ import annotations

import asyncio

import pytest

from hotplug.gateway.bridge.parked import Parked, Unknown
from hotplug.gateway.message import Message

pytestmark = pytest.mark.anyio


class Waiting:
    def __init__(self) -> None:
        self.expired = asyncio.Event()

    def expire(self) -> None:
        self.expired.set()


def retry(**params: object) -> Message:
    return Message.request(1, "tools/call", {"name": "t", **params})


async def test_a_state_brings_its_call_back_once() -> None:
    parked = Parked[Waiting](b"k", "t_1", limit=2, wait=60)
    call = Waiting()
    state = parked.park(call, retry())
    assert call in parked
    assert parked.take(state, retry(requestState=state, inputResponses={}, _meta={"a": 1})) is call
    assert len(parked) == 0
    with pytest.raises(Unknown):
        parked.take(state, retry())


async def test_a_state_too_old_by_the_clock_is_refused_though_its_timer_has_not_run() -> None:
    now = [100.0]
    parked = Parked[Waiting](b"k", "t_1", limit=2, wait=60, clock=lambda: now[0])
    state = parked.park(Waiting(), retry())
    now[0] = 160.0
    with pytest.raises(Unknown):
        parked.take(state, retry())
    parked.clear()


@pytest.mark.parametrize(("secret", "owner"), [(b"other", "t_1"), (b"k", "t_2")])
async def test_a_state_of_another_key_or_owner_is_refused(secret: bytes, owner: str) -> None:
    parked = Parked[Waiting](b"k", "t_1", limit=2, wait=60)
    call = Waiting()
    name = Parked[Waiting](secret, owner, limit=2, wait=60)
    state = parked.park(call, retry())
    with pytest.raises(Unknown):
        name.take(state, retry())
    assert call in parked
    parked.clear()
    assert call.expired.is_set()


async def test_nothing_that_is_no_state_is_taken() -> None:
    parked = Parked[Waiting](b"k", "t_1", limit=2, wait=60)
    for state in ("", ".", "a.b", "é.ü", "\ud800", "." * 1000, "e30.e30"):
        with pytest.raises(Unknown):
            parked.take(state, retry())


async def test_who_does_not_come_back_expires() -> None:
    parked = Parked[Waiting](b"k", "t_1", limit=1, wait=0.01)
    call = Waiting()
    parked.park(call, retry())
    assert parked.full
    await asyncio.wait_for(call.expired.wait(), 5)
    assert not parked.full


async def test_a_state_says_nothing_of_owner_or_request() -> None:
    parked = Parked[Waiting](b"k", "t_secret", limit=1, wait=60)
    state = parked.park(Waiting(), retry(arguments={"password": "hunter2"}))
    import base64

    shown = base64.urlsafe_b64decode(state.partition(".")[0] + "==")
    assert b"t_secret" not in shown
    assert b"hunter2" not in shown
    parked.clear()
