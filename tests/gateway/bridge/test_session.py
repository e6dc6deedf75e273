"""In which call a question is asked that names none."""

from __future__ import annotations

import asyncio
from typing import Any

import anyio
import pytest
from msgspec import Raw

from hotplug.gateway.bridge.session import Session
from hotplug.gateway.message import Message

from .fake_link import FakeLink

pytestmark = pytest.mark.anyio

CAN: dict[str, Any] = {"elicitation": {"form": {}}}
HELLO: dict[str, Any] = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "serverInfo": {"name": "old", "version": "1"},
}


class FakeAsker:
    """A call of a client that answers at once, or that thinks about its first question for ever."""

    def __init__(self, *, quick: bool) -> None:
        self.quick = quick
        self.offered: list[Message] = []
        self.came = asyncio.Event()

    @property
    def asking(self) -> bool:
        return bool(self.offered) and not self.quick

    @property
    def rounds(self) -> int:
        return len(self.offered) if self.quick else min(len(self.offered), 1)

    @property
    def token(self) -> Raw | None:
        return None

    def withdraw(self, id_: bytes) -> None:
        raise AssertionError("nothing is withdrawn here")

    def tell(self, note: Message) -> None:
        raise AssertionError("nothing is told here")

    def offer(self, question: Message) -> bool:
        self.offered.append(question)
        self.came.set()
        return True


async def pushed(count: int, *askers: FakeAsker) -> None:
    """Let a server ask so many questions, one after the other."""
    link = FakeLink("legacy", HELLO)
    session = Session(link, CAN, lambda _: None)
    session.askers = dict.fromkeys(askers)
    try:
        with anyio.fail_after(30):
            for number in range(1, count + 1):
                link.push(link.question("elicitation/create", {"message": "?", "requestedSchema": {}}))
                while sum(len(asker.offered) for asker in askers) < number:
                    await asyncio.sleep(0)
    finally:
        await session.aclose()


async def test_a_question_is_asked_in_the_newest_call_that_asks_nothing_yet() -> None:
    first, second, third = (FakeAsker(quick=False) for _ in range(3))
    await pushed(1, first, second, third)
    assert [len(asker.offered) for asker in (first, second, third)] == [0, 0, 1]
    first, second, third = (FakeAsker(quick=False) for _ in range(3))
    await pushed(3, first, second, third)
    assert [len(asker.offered) for asker in (first, second, third)] == [1, 1, 1]


@pytest.mark.parametrize("place", [0, 1, 2])
async def test_no_call_goes_round_for_all_others_because_its_client_answers_first(place: int) -> None:
    askers = [FakeAsker(quick=number == place) for number in range(3)]
    await pushed(40, *askers)
    assert sum(len(asker.offered) for asker in askers) == 40
    # The SDK's client gives a call up after ten rounds.
    assert askers[place].rounds <= 6


async def test_the_only_call_is_asked_however_often_it_was() -> None:
    asker = FakeAsker(quick=True)
    await pushed(20, asker)
    assert asker.rounds == 20
