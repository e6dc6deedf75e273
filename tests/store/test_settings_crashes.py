"""The settings file under processes that die while they save, and under many that save at once.

CI plays 500 rounds, and 12 processes for a minute; elsewhere the suite plays fewer, and `HOTPLUG_ROUNDS` and
`HOTPLUG_SECONDS` say how many. Where a round's process dies follows from the seed and the machine; the seed is printed,
and `HOTPLUG_SEED` sets it.
"""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import IN_CI
from tests.store.conftest import Worker
from tests.store.settings_worker import moves

from hotplug.store import SettingsFile

ROUNDS = int(os.environ.get("HOTPLUG_ROUNDS") or ("500" if IN_CI else "40"))
SECONDS = float(os.environ.get("HOTPLUG_SECONDS") or ("60" if IN_CI else "3"))
SEED = int(os.environ.get("HOTPLUG_SEED") or random.randrange(2**32))
WORKER = Path(__file__).with_name("settings_worker.py")
START = """{
  "theme": {"zoom": 1.50},
  "mcpProfiles": {"lean": {"servers": ["mail"], "groups": []}},
  "mcpThreadProfiles": {"old": "lean"}
}
"""

Start = Callable[..., Worker]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "settings.json"
    path.write_text(START, encoding="utf-8")
    return path


@pytest.fixture
def start_on() -> Iterator[Start]:
    workers: list[Worker] = []

    def begin(*arguments: str) -> Worker:
        workers.append(Worker(*arguments, program=WORKER))
        assert workers[-1].read() == "ready"
        return workers[-1]

    yield begin
    for worker in workers:
        worker.end()


def document(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8"))


def after(picks: dict[str, str], thread: str, profile: str | None) -> dict[str, str]:
    rest = {name: pick for name, pick in picks.items() if name != thread}
    return rest if profile is None else {**rest, thread: profile}


def killed_in_the_middle(worker: Worker, seed: int, choose: random.Random) -> list[bool]:
    """Let a child save, kill it at a random point; gives what it was told of each save."""
    assert worker.process.stdin is not None
    worker.process.stdin.write(json.dumps({"seed": seed}).encode() + b"\n")
    worker.process.stdin.flush()
    pid = worker.read()["pid"]
    time.sleep(choose.uniform(0, 0.15))
    os.kill(pid, signal.SIGKILL)
    told: list[bool] = []
    while (line := worker.read()) != "ended":
        assert line["done"] == len(told)
        told.append(line["saved"])
    return told


@pytest.mark.timeout(900)
def test_whenever_a_saving_process_is_killed_the_file_is_whole_and_no_accepted_save_is_lost(
    file: Path, start_on: Start
) -> None:
    print(f"HOTPLUG_SEED={SEED} HOTPLUG_ROUNDS={ROUNDS}")
    choose = random.Random(SEED)
    worker = start_on("rounds", str(file))
    before = document(file)
    saves = 0
    for number in range(ROUNDS):
        seed = choose.randrange(2**32)
        told = killed_in_the_middle(worker, seed, choose)
        made = list(islice(moves(seed), len(told) + 1))
        picks = before["mcpThreadProfiles"]
        for (thread, profile), saved in zip(made, told, strict=False):
            assert saved == (profile != "nobody"), f"round {number}"
            picks = after(picks, thread, profile) if saved else picks
        thread, profile = made[-1]
        in_doubt = picks if profile == "nobody" else after(picks, thread, profile)
        now = document(file)
        assert now["mcpThreadProfiles"] in (picks, in_doubt), f"round {number}, seed {seed}: after {told}"
        assert {**now, "mcpThreadProfiles": None} == {**before, "mcpThreadProfiles": None}
        looked = SettingsFile(file).look()
        assert looked.problem is None
        before, saves = now, saves + sum(told)
    assert saves > ROUNDS / 4, "the processes died before they saved anything: the rounds show nothing"
    assert '"zoom": 1.50' in file.read_text(encoding="utf-8")
    settings = SettingsFile(file)
    settings.save({"mcpThreadProfiles": {"last": "lean"}}, role="person")
    assert [kept.version for kept in settings.history() if not kept.readable] == []
    left = [path.name for path in (*file.parent.iterdir(), *file.parent.glob("*/*")) if path.name.endswith(".saving")]
    assert left == []


@pytest.mark.parametrize(("processes", "seconds"), [(4, min(SECONDS, 5)), (12, SECONDS)])
def test_processes_that_save_at_once_all_keep_what_was_accepted(
    file: Path, start_on: Start, processes: int, seconds: float
) -> None:
    print(f"HOTPLUG_SECONDS={seconds}")
    workers = [start_on("keep", str(file), str(seconds), str(number)) for number in range(processes)]
    for worker in workers:
        worker.go_on()
    end = time.monotonic() + seconds
    reader = SettingsFile(file)
    while time.monotonic() < end:
        assert document(file)["theme"] == {"zoom": 1.5}
        assert reader.look().problem is None
        time.sleep(0.005)
    said = [worker.read() for worker in workers]
    expected = {"old": "lean"}
    for one in said:
        assert one["accepted"]
        expected |= {thread: profile for thread, profile in one["accepted"].items() if profile is not None}
    assert document(file)["mcpThreadProfiles"] == expected
    assert sum(one["refused"] for one in said) > 0
