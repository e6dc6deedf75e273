"""The published servers as fixtures: each is started once, for all tests that are `on` it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

import pytest

from hotplug.catalog.calendar import Calendar
from hotplug.store import Store
from hotplug.testing import RadicaleServer

from .published_calendar import Meddled, Running, file_of, meddle, run


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Have the tests of a module that names a `SERVER` run on it; pytest puts those of all modules together."""
    server = getattr(metafunc.module, "SERVER", None)
    if server is not None and "running" in metafunc.fixturenames:
        metafunc.parametrize("running", [server], indirect=True, scope="session")


@pytest.fixture(scope="session")
async def running(anyio_backend: str, request: pytest.FixtureRequest) -> AsyncGenerator[Running]:
    async with run(request.param) as one:
        yield one


@pytest.fixture(scope="session")
async def meddling(running: Running) -> AsyncGenerator[Meddled]:
    async with meddle(running.name, running.server) as one:
        yield one


@pytest.fixture
def meddled(meddling: Meddled) -> Meddled:
    meddling.channel.instead = None
    return meddling


@pytest.fixture
async def server(running: Running) -> RadicaleServer:
    """The Radicale, with nothing in its calendars."""
    for event in await running.server.stored():
        await running.server.remove(event.collection, file_of(event))
    return running.server


@pytest.fixture
def store(running: Running) -> Store:
    return running.store


@pytest.fixture
def cal(running: Running, server: RadicaleServer) -> Calendar:
    return running.cal


@pytest.fixture
def home(running: Running) -> Any:
    return running.home
