"""What the tests of the settings file run in other processes; each prints JSON, one value a line.

rounds FILE                  for each line {"seed": S} on stdin: a child that saves until it is killed
keep FILE SECONDS OWN        wait for a line, then save picks of one's own threads for so long
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
from collections.abc import Iterator
from typing import Any

from hotplug.access import Host, PatchRefused
from hotplug.store import SettingsFile

HOST = Host(servers={"mail": ("send",)}, toolkits={}, ungrouped={})


def say(value: object) -> None:
    # One write of less than a pipe's atomic size: lines of several processes don't mix.
    os.write(1, json.dumps(value).encode() + b"\n")


def moves(seed: int) -> Iterator[tuple[str, str | None]]:
    """What a round saves, one after the other: (thread, profile); None removes, and `nobody` is refused."""
    choose = random.Random(seed)
    while True:
        yield f"t{choose.randrange(40)}", choose.choice(["lean", "all", "host-only", None, "nobody"])


def save(file: SettingsFile, thread: str, profile: str | None) -> bool:
    try:
        file.save({"mcpThreadProfiles": {thread: profile}}, role="person", host=HOST)
    except PatchRefused:
        return False
    return True


def rounds(path: str) -> None:
    say("ready")
    for line in sys.stdin:
        given: dict[str, Any] = json.loads(line)
        child = os.fork()
        if child == 0:
            file = SettingsFile(path)
            say({"pid": os.getpid()})
            for number, (thread, profile) in enumerate(moves(given["seed"])):
                say({"done": number, "saved": save(file, thread, profile)})
        os.waitpid(child, 0)
        say("ended")


def keep(path: str, seconds: str, own: str) -> None:
    file = SettingsFile(path)
    choose = random.Random(int(own))
    say("ready")
    sys.stdin.readline()
    end = time.monotonic() + float(seconds)
    accepted: dict[str, str | None] = {}
    refused = 0
    while time.monotonic() < end or not accepted:
        thread = f"{own}-{choose.randrange(20)}"
        profile = choose.choice(["lean", "all", None, "nobody"])
        if save(file, thread, profile):
            accepted[thread] = profile
        else:
            refused += 1
    say({"accepted": accepted, "refused": refused})


if __name__ == "__main__":
    {"rounds": rounds, "keep": keep}[sys.argv[1]](*sys.argv[2:])
