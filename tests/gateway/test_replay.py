"""A client of the handshake era that comes back gets the rest of its stream, or is told that it is gone."""

from __future__ import annotations

import asyncio

import pytest

from hotplug.gateway.link import Frame
from hotplug.gateway.message import Message
from hotplug.gateway.replay import Replay, Stream

pytestmark = pytest.mark.anyio


def _note(number: int, size: int = 0) -> Frame:
    return Frame(Message.notification("n", {"number": number, "filler": "x" * size}))


def _numbers(frames: list[Frame]) -> list[int]:
    return [frame.message.value("number") for frame in frames if frame.message is not None]


async def _all(stream: Stream, after: int = -1) -> list[Frame]:
    async with asyncio.timeout(5):
        return [frame async for frame in stream.read(after)]


async def test_a_stream_is_read_to_its_end_with_an_id_for_each_event() -> None:
    replay = Replay()
    stream = replay.open(primed=True)
    for number in range(3):
        await stream.put(_note(number))
    stream.end()
    frames = await _all(stream)
    assert frames[0].message is None
    assert frames[0].retry is not None
    assert _numbers(frames) == [0, 1, 2]
    assert len({frame.event_id for frame in frames}) == 4


async def test_whoever_comes_back_gets_what_it_hasnt_seen_also_what_came_meanwhile() -> None:
    replay = Replay()
    stream = replay.open(primed=True)
    await stream.put(_note(0))
    reader = stream.read()
    seen = [await anext(reader), await anext(reader)]
    await reader.aclose()
    await stream.put(_note(1))
    found = replay.find(seen[-1].event_id or "")
    assert found is not None
    again = asyncio.create_task(_all(*found))
    await asyncio.sleep(0)
    await stream.put(_note(2))
    stream.end()
    assert _numbers(await again) == [1, 2]


async def test_an_id_of_nowhere_leads_nowhere() -> None:
    replay = Replay()
    stream = replay.open(primed=True)
    for id_ in ("", "~", "~9~0", f"~{stream.name}~7", f"~{stream.name}~x", f"work~{stream.name}~0", "~1"):
        assert replay.find(id_) is None
    assert Replay().find(f"~{stream.name}~0") is None


async def test_what_is_no_longer_kept_is_refused_and_never_skipped() -> None:
    replay = Replay()
    stream = replay.open(primed=True)
    for number in range(10):
        await stream.put(_note(number, size=1_000_000))
    assert replay.find(f"~{stream.name}~0") is None
    stream.end()
    found = replay.find(f"~{stream.name}~8")
    assert found is not None
    assert _numbers(await _all(*found)) == [8, 9]


async def test_a_slow_reader_holds_up_what_is_put_and_loses_nothing() -> None:
    stream = Replay().open(primed=False)
    reader = stream.read()
    waiting = asyncio.ensure_future(anext(reader))
    await asyncio.sleep(0)

    async def put() -> None:
        for number in range(1_000):
            await stream.put(_note(number))
        stream.end()

    putting = asyncio.create_task(put())
    frames = [await waiting]
    for _ in range(20):
        await asyncio.sleep(0)
    assert not putting.done()
    async with asyncio.timeout(20):
        frames += [frame async for frame in reader]
        await putting
    assert _numbers(frames) == list(range(1_000))


async def test_a_later_reader_takes_over_from_an_earlier_one() -> None:
    stream = Replay().open(primed=False)
    first = stream.read()
    waiting = asyncio.ensure_future(anext(first))
    await asyncio.sleep(0)
    second = asyncio.ensure_future(_all(stream))
    await asyncio.sleep(0)
    await stream.put(_note(0))
    stream.end()
    assert _numbers(await second) == [0]
    with pytest.raises(StopAsyncIteration):
        await waiting
