"""What the tests run in other processes; each prints JSON, one value a line.

hold URL KEY ATOMIC        begin, and stay until a line comes or a signal does; then finish
fork URL KEY                  begin, fork a child, and both stay until their input ends
tear URL KEY               begin atomically, write effect and outcome in a transaction, and stay before its commit
call URL ATOMIC EFFECTS CALLS KEYS   so many calls at once, spread over keys; each does its effect if it is to
append URL STREAM COUNT    wait for a line, then append events
seal URL                   print the sealing key
"""

from __future__ import annotations

import functools
import json
import os
import sys

import anyio
import anyio.to_thread

from hotplug.store import Finished, Fresh, InFlight, SqliteStore, open_store


def say(value: object) -> None:
    os.write(1, json.dumps(value).encode() + b"\n")


async def line() -> None:
    await anyio.to_thread.run_sync(sys.stdin.readline)


async def hold(url: str, key: str, atomic: str) -> None:
    async with open_store(url) as store:
        begun = await store.begin("p", "calendar.create", key, "d", atomic=atomic == "atomic")
        say(type(begun).__name__)
        await line()
        assert isinstance(begun, Fresh)
        await store.finish(begun.token, {"by": "the other"})
        say("finished")


async def fork(url: str, key: str) -> None:
    store = open_store(url)
    begun = await store.begin("p", "calendar.create", key, "d")
    if os.fork():
        say(type(begun).__name__)
    os.read(0, 1)
    os._exit(0)


async def tear(url: str, key: str) -> None:
    async with open_store(url) as store:
        begun = await store.begin("p", "calendar.create", key, "d", atomic=True)
        assert isinstance(begun, Fresh)
        with store.transaction() as c:
            c.execute("INSERT INTO effect (key) VALUES (?)", (key,))
            store.finish_in(c, begun.token, {"did": key})
            say("written")
            sys.stdin.readline()


async def one(store: SqliteStore, key: str, atomic: bool, effects: str) -> None:
    begun = await store.begin("p", "calendar.create", key, "d", atomic=atomic)
    first = isinstance(begun, Fresh)
    if isinstance(begun, InFlight):
        begun = await store.wait(begun, 15)
    if isinstance(begun, Fresh):
        await anyio.sleep(0.002)
        outcome = {"did": key, "pid": os.getpid()}
        if atomic:
            with store.transaction() as c:
                c.execute("INSERT INTO effect (key) VALUES (?)", (key,))
                store.finish_in(c, begun.token, outcome)
        else:
            fd = os.open(effects, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            os.write(fd, key.encode() + b"\n")
            os.close(fd)
            await anyio.sleep(0.001)
            await store.finish(begun.token, outcome)
        begun = Finished(outcome, is_error=False)
    say([key, type(begun).__name__, begun.outcome if isinstance(begun, Finished) else None, first])


async def call(url: str, atomic: str, effects: str, calls: str, keys: str) -> None:
    async with open_store(url) as store:
        say("ready")
        await line()
        async with anyio.create_task_group() as group:
            for number in range(int(calls)):
                group.start_soon(one, store, f"key-{number % int(keys)}", atomic == "atomic", effects)


async def append(url: str, stream: str, count: str) -> None:
    async with open_store(url) as store:
        say("ready")
        await line()
        for number in range(int(count)):
            await store.append_event(stream, {"id": f"{os.getpid()}-{number}", "type": "t"})
        say("done")


async def seal(url: str) -> None:
    async with open_store(url) as store:
        say(store.sealing_key().hex())


if __name__ == "__main__":
    acts = {"hold": hold, "fork": fork, "tear": tear, "call": call, "append": append, "seal": seal}
    anyio.run(functools.partial(acts[sys.argv[1]], *sys.argv[2:]))
