"""Threads in files, and other processes that open and close some."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.store.conftest import Worker

from hotplug.gateway.threads import Threads
from hotplug.store import SqliteStore, open_store

WORKER = Path(__file__).with_name("worker.py")


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/gateway.db"


@pytest.fixture
async def store(url: str) -> AsyncIterator[SqliteStore]:
    async with open_store(url) as opened:
        yield opened


@pytest.fixture
async def threads(store: SqliteStore) -> AsyncIterator[Threads]:
    async with Threads.over(store) as opened:
        yield opened


@pytest.fixture
def start() -> Iterator[Callable[..., Any]]:
    workers: list[Worker] = []

    def begin(*arguments: str) -> Worker:
        workers.append(Worker(*arguments, program=WORKER))
        return workers[-1]

    yield begin
    for worker in workers:
        worker.end()


@pytest.fixture
def everything_written(tmp_path: Path) -> Callable[[], bytes]:
    """All bytes of all files that there are."""
    return lambda: b"".join(path.read_bytes() for path in sorted(tmp_path.rglob("*")) if path.is_file())
