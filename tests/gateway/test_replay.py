"""A client of the handshake era that comes back gets the rest of its stream, or is told that it is gone."""

from __future__ import annotations

import asyncio
import time

import pytest

from hotplug.gateway.link import Frame
from hotplug.gateway.message import Message
from hotplug.gateway.replay import Replay, Stream

pytestmark = pytest.mark.anyio


def _note(number: int, size: int = 0) -> Frame:
    return Frame(Message.notification("n", {"number": number, "filler": "x" * size}))


def _numbers(frames: list[Frame]) -> list[int]:
    return [frame.message.value("number") for frame in frames if frame.message is not None]


async def _all(stream: Stream, after: int = -1, limit: float = 5) -> list[Frame]:
    async with asyncio.timeout(limit):
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


@pytest.mark.parametrize("awaited", [False, True])
async def test_who_comes_at_the_moment_when_too_much_is_kept_gets_all_or_nothing(awaited: bool) -> None:
    stream = Replay().open(primed=False, awaited=awaited)
    reader = stream.read()
    putting = asyncio.create_task(_put(stream, 10, 1_000_000))
    for _ in range(20):
        await asyncio.sleep(0)
    async with asyncio.timeout(5):
        numbers = _numbers([frame async for frame in reader])
        await putting
    assert numbers == (list(range(10)) if awaited else [])


async def test_a_slow_reader_of_large_frames_holds_up_what_is_put() -> None:
    stream = Replay().open(primed=False)
    reader = stream.read()
    waiting = asyncio.ensure_future(anext(reader))
    await asyncio.sleep(0)
    putting = asyncio.create_task(_put(stream, 50, 1_000_000))
    frames = [await waiting]
    async with asyncio.timeout(20):
        async for frame in reader:
            frames.append(frame)
            assert stream.size < 7_000_000
        await putting
    assert _numbers(frames) == list(range(50))


async def test_nobody_is_waited_for_who_doesnt_come_after_all() -> None:
    stream = Replay().open(primed=False, awaited=True)
    putting = asyncio.create_task(_put(stream, 500))
    for _ in range(20):
        await asyncio.sleep(0)
    assert not putting.done()
    stream.leave()
    async with asyncio.timeout(5):
        await putting


async def test_the_streams_of_a_session_that_have_ended_are_kept_up_to_a_size() -> None:
    replay = Replay()
    streams: list[Stream] = []
    for _ in range(30):
        streams.append(replay.open(primed=True))
        await _put(streams[-1], 2, 1_000_000)
    kept = [stream for stream in streams if replay.find(f"~{stream.name}~0")]
    assert kept == streams[-9:]


async def test_a_long_stream_costs_no_more_for_each_of_its_frames_than_a_short_one() -> None:
    stream = Replay().open(primed=False)
    putting = asyncio.create_task(_put(stream, 20_000, every=1))
    began = time.process_time()
    assert len(await _all(stream, limit=60)) == 20_000
    await putting
    # A third of a second; it took seven where each frame was looked for among all.
    assert time.process_time() - began < 4


async def _put(stream: Stream, count: int, size: int = 0, every: int = 7) -> None:
    for number in range(count):
        await stream.put(_note(number, size))
        if number % every == 0:
            await asyncio.sleep(0)
    stream.end()


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
