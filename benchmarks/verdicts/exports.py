"""Exports into a folder: a world of files, what is claimed there, and what is planted."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, Literal, cast

import anyio
import anyio.abc

from benchmarks.verdicts.case import LATE, SLOW, Case, Stored, Task, World
from hotplug.connect.claims import sense
from hotplug.door import connect
from hotplug.errors import Disconnected
from hotplug.evidence.witness import Witness
from hotplug.profile import Model, Profile, Receipt, operation, read, receipt
from hotplug.store import memory
from hotplug.witness import Folder

__all__ = ["EXPORT_CASES"]

_HAS: Final = ("april.csv", "may.csv")
"""The files that are there before."""


class Done(Model):
    words: str
    receipt: Receipt = receipt()


class Files(Model):
    names: list[str]


class Exports(Profile, name="exports", version="1.0.0", facets={}):
    """Exports of a month into a file. For the benchmark."""

    @operation("exports.export", effects=True, eager=True)
    async def export(self, month: str) -> Done:
        """Write the month's file."""
        ...

    @read("exports.files", sense="state", look="ask", eager=True)
    async def files(self) -> Files:
        """The files that there are."""
        ...


class FakeExports(Exports):
    """Writes files, or does what is planted and says that it did."""

    title = "exports"
    instance = "exports"

    def __init__(self, world: ExportWorld, plant: str) -> None:
        self._world, self._plant = world, plant
        self._shown: list[str] = []

    async def export(self, month: str) -> Done:
        if not self._plant:
            self._world.write(f"{month}.csv")
        else:
            self._world.record(self._plant)
            self._do(f"{month}.csv")
        return Done(words="Exported.")

    def _do(self, name: str) -> None:
        write, remove, later = self._world.write, self._world.remove, self._world.later
        match self._plant:
            case "writes nothing":
                pass
            case "writes nothing, and lists it":
                self._shown.append(name)
            case "writes into another folder":
                write(name, self._world.elsewhere)
            case "writes another month":
                write("july.csv")
            case "writes it into a subfolder":
                write(f"old/{name}")
            case "leaves a part file":
                write(f"{name}.part")
            case "writes a copy too":
                write(name)
                write(f"copy of {name}")
            case "writes over another":
                write(name)
                write("may.csv")
            case "removes another":
                write(name)
                remove("april.csv")
            case "is cleaned up afterwards":
                write(name)
                later(0.15, lambda: remove(name))
            case "writes too late":
                later(LATE, lambda: write(name))
            case "writes slowly":
                later(SLOW, lambda: write(name))
            case "breaks off after it wrote":
                write(name)
                raise Disconnected("the exporter broke off", details={"state": "unknown"})
            case "breaks off before it writes":
                raise Disconnected("the exporter broke off", details={"state": "unknown"})
            case _:
                raise ValueError(f"nobody knows the plant {self._plant!r}")

    async def files(self) -> Files:
        return Files(names=[*self._world.names(), *self._shown])


class ExportWorld(World):
    """A folder of exports, and another one."""

    def __init__(self, root: Path, tasks: anyio.abc.TaskGroup, plant: str) -> None:
        super().__init__(tasks)
        self.folder, self.elsewhere = root / "exports", root / "elsewhere"
        (self.folder / "old").mkdir(parents=True)
        self.elsewhere.mkdir()
        for name in _HAS:
            self.write(name)
        self._server = FakeExports(self, plant)
        self._witnesses = (Folder(self.folder, timeout=1, name="exports"),)

    @property
    def witnesses(self) -> Sequence[Witness]:
        return self._witnesses

    def connected(self) -> AbstractAsyncContextManager[Any]:
        return self._connected()

    @asynccontextmanager
    async def _connected(self) -> AsyncGenerator[Any]:
        async with memory() as store, connect(Exports, self._server, store=store) as client:
            yield client

    def write(self, name: str, folder: Path | None = None) -> None:
        """Write a file, with content that it has not had."""
        path = (folder or self.folder) / name
        before = path.read_bytes() if path.exists() else b""
        path.write_bytes(before + b"1;2\n")

    def remove(self, name: str) -> None:
        (self.folder / name).unlink()

    def later(self, seconds: float, do: Callable[[], None]) -> None:
        """Do something after the answer."""

        async def wait() -> None:
            await anyio.sleep(seconds)
            do()

        self.tasks.start_soon(wait)

    def names(self) -> list[str]:
        return sorted(path.name for path in self.folder.iterdir() if path.is_file())

    async def stored(self) -> Stored:
        found: Stored = Counter()
        for path in sorted(self.folder.rglob("*")):
            if path.is_file():
                digest = sha256(path.read_bytes()).hexdigest()
                found["file", str(path.relative_to(self.folder)), digest] += 1
        return found


@asynccontextmanager
async def _opened(plant: str) -> AsyncGenerator[World]:
    with tempfile.TemporaryDirectory(prefix="hotplug-exports-") as name:
        async with anyio.create_task_group() as tasks:
            world = ExportWorld(Path(name), tasks, plant)
            try:
                yield world
            finally:
                for witness in world.witnesses:
                    await witness.aclose()
                tasks.cancel_scope.cancel()


async def _export(client: Any, _: Any) -> None:
    await client.export("june")


async def _shows(client: Any) -> bool:
    return "june.csv" in (await client.files()).names


def _names(stored: Stored) -> list[str]:
    return [key[1] for key in stored.elements()]


EXPORT = Task(
    name="export",
    words="Export June into june.csv; april.csv and may.csv stay as they are.",
    claims={
        "june.csv was written, and no other file of a month was": (
            sense("x-artifact", "june.csv created").exactly(1),
            sense("x-artifact", "*june.csv* created").exactly(1),
            sense("x-artifact", "* deleted").absent(),
            sense("x-artifact", "april.csv updated").absent(),
            sense("x-artifact", "may.csv updated").absent(),
        )
    },
    act=_export,
    holds=lambda gained, lost, _: [name for name in _names(gained) if "june.csv" in name] == ["june.csv"] and not lost,
    shows=_shows,
)


async def _others(world: World, when: Literal["opened", "acted"]) -> None:
    """Another program writes its own files there, all along."""
    kept = cast("ExportWorld", world)

    async def work() -> None:
        for number in range(8):
            kept.write(f"log-{number}.txt")
            await anyio.sleep(0.1)

    if when == "opened":
        kept.tasks.start_soon(work)


def _case(
    kind: str,
    plant: str,
    text: str = "",
    *,
    truth: bool = False,
    late: bool = False,
    meanwhile: Callable[[World, Literal["opened", "acted"]], Awaitable[None]] | None = None,
) -> Case:
    return Case(
        name=f"files/export/{(text or plant).replace(', ', ' ').replace(' ', '-')}",
        kind=kind,
        task=EXPORT,
        plant=text or plant,
        truth=truth,
        world=partial(_opened, plant),
        meanwhile=meanwhile,
        late=late,
    )


EXPORT_CASES: Final = (
    _case("silent failure", "writes nothing"),
    _case("optimistic page", "writes nothing, and lists it"),
    _case("effect elsewhere", "writes into another folder"),
    _case("effect elsewhere", "writes it into a subfolder"),
    _case("wrong target", "writes another month"),
    _case("silent failure", "leaves a part file"),
    _case("duplicate", "writes a copy too"),
    _case("collateral", "writes over another"),
    _case("collateral", "removes another"),
    _case("rolled back", "is cleaned up afterwards"),
    _case("late effect", "writes too late", late=True),
    _case("crashed subject", "breaks off before it writes"),
    _case("lost answer", "breaks off after it wrote", truth=True),
    _case("healthy", "", "plain", truth=True),
    _case("healthy", "writes slowly", "done slowly", truth=True),
    _case("healthy", "", "others at work", truth=True, meanwhile=_others),
)
