"""Stores in files and in other processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import hotplug

WORKER = Path(__file__).with_name("worker.py")


class Worker:
    """Another process with the same store; says one JSON value a line."""

    def __init__(self, *arguments: str, program: Path = WORKER) -> None:
        source = str(Path(hotplug.__file__).parents[1])
        self.process = subprocess.Popen(
            [sys.executable, str(program), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": source},
        )

    def read(self) -> Any:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        return json.loads(line) if line.endswith(b"\n") else None

    def read_all(self) -> list[Any]:
        return list(iter(self.read, None))

    def go_on(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def end(self) -> None:
        self.kill()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/store.db"


@pytest.fixture
def start() -> Iterator[Callable[..., Worker]]:
    workers: list[Worker] = []

    def begin(*arguments: str) -> Worker:
        workers.append(Worker(*arguments))
        return workers[-1]

    yield begin
    for worker in workers:
        worker.end()
