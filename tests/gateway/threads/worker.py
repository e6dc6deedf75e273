"""What the tests run in other processes; each prints JSON, one value a line.

open URL                   open threads below threads without end, and say each: what it is, and its token
close URL ID               wait for a line, then close a thread
"""

from __future__ import annotations

import functools
import json
import os
import random
import sys

import anyio

from hotplug.gateway.threads import Threads, thread_document
from hotplug.store import open_store


def say(value: object) -> None:
    os.write(1, json.dumps(value).encode() + b"\n")


async def open_many(url: str) -> None:
    async with open_store(url) as store, Threads.over(store) as threads:
        opened: list[str | None] = [None]
        while True:
            parent = random.choice(opened[-20:])
            project = random.choice(["acme", None]) if parent is None else None
            thread, token = await threads.open(parent=parent, delegated=parent is not None, project=project)
            say([thread_document(thread), token])
            if thread.depth < 60:
                opened.append(thread.id)
            if random.random() < 0.1:
                gone = await threads.close(thread.id)
                say([list(gone), None])
                opened = [one for one in opened if one not in gone]


async def close(url: str, id_: str) -> None:
    async with open_store(url) as store, Threads.over(store) as threads:
        say("ready")
        sys.stdin.readline()
        say(list(await threads.close(id_)))


if __name__ == "__main__":
    anyio.run(functools.partial({"open": open_many, "close": close}[sys.argv[1]], *sys.argv[2:]))
