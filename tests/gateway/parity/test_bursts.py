"""Thousands of progress notes to a reader who is slow: all of them arrive, in order, before the result."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from hotplug.gateway.link import Era

from .raw_client import RawClient
from .ways import ODD, Place, behind

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(120)]
NOTES = 3_000


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_all_notes_of_a_burst_reach_a_slow_reader(places: tuple[Place, Place], era: Era) -> None:
    async with places[1].client(era) as client:
        numbers: list[int] = []
        answers: list[str] = []
        async with asyncio.timeout(100):
            reading = client.read(
                "tools/call", f'"name":"burst","arguments":{{"count":{NOTES}}}', '"progressToken":"t"'
            )
            async for text in reading:
                message = json.loads(text)
                if message.get("method") != "notifications/progress":
                    answers.append(message["result"]["content"][0]["text"])
                    continue
                assert not answers
                assert message["params"]["progressToken"] == "t"
                assert message["params"]["vendorField"] == [message["params"]["progress"]]
                numbers.append(message["params"]["progress"])
                if len(numbers) % 20 == 0:
                    # This is what makes the reader slow; nothing is waited for.
                    await asyncio.sleep(0.005)
    assert numbers == list(range(1, NOTES + 1))
    assert answers == [f"{NOTES} notices were sent"]


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_two_bursts_at_once_under_one_token_keep_apart(tmp_path: Path, era: Era) -> None:
    with behind(tmp_path, {"odd": ODD}, "HTTP>stdio") as place:
        async with place.client(era) as one, place.client(era) as other:
            counts = {one: 1_000, other: 700}

            async def burst(client: RawClient) -> list[int]:
                said = await client.call("burst", f'{{"count":{counts[client]}}}', '"progressToken":"same"')
                notes = [json.loads(text)["params"] for text in said.notes]
                assert {note["total"] for note in notes} == {counts[client]}
                return [note["progress"] for note in notes]

            found = await asyncio.gather(burst(one), burst(other))
    assert found == [list(range(1, 1_001)), list(range(1, 701))]
