"""One of several processes that ask for the same event under one key; it may be killed at any moment.

`rounds.py sqlite|folder FOLDER`: prints `ready`, then for each line `KEY CALLS` makes so many calls at once and prints
their outcomes as JSON.
"""

from __future__ import annotations

import collections
import json
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parents[1] / "src"), str(HERE)]

import anyio  # noqa: E402
from native import opened  # noqa: E402

from hotplug.errors import ConnectionFailed  # noqa: E402


async def main(kind: str, folder: str) -> None:
    async with opened(kind, Path(folder)) as calendar:
        where = (await calendar.calendars()).calendars[0].calendar
        print("ready", flush=True)
        for line in sys.stdin:
            key, calls = line.split()
            outcomes: collections.Counter[str] = collections.Counter()
            keyed = calendar.using(key=key)

            async def one(keyed=keyed, outcomes=outcomes, key=key) -> None:
                try:
                    made = await keyed.create(
                        calendar=where,
                        title=key,
                        start="2026-06-11T17:00:00",
                        duration="PT1H",
                        time_zone="Asia/Jerusalem",
                    )
                    outcomes[f"{made.event} {made.receipt.action_id}"] += 1
                except ConnectionFailed as error:
                    outcomes[error.code] += 1

            async with anyio.create_task_group() as tasks:
                for _ in range(int(calls)):
                    tasks.start_soon(one)
            print(json.dumps(outcomes), flush=True)


anyio.run(main, sys.argv[1], sys.argv[2])
