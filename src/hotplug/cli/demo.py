"""`hotplug demo`: one calendar journey on six backends that were not made for each other."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import anyio
import typer

from hotplug.cli.command import command, group
from hotplug.cli.failure import Exit
from hotplug.cli.output import Output
from hotplug.cli.version import version

if TYPE_CHECKING:
    from hotplug.conform.journey import BackendOutcome, Cell, Journey, JourneyReport, Witness
    from hotplug.testing.radicale import RadicaleServer

app = group("See it work: one calendar journey on six unlike backends.")

_AT_ONCE: Final = 3
"""Backends played at the same time: each published server takes seconds of a core to start."""
_START_SECONDS: Final = 300.0
"""A package may have to be downloaded first."""


@dataclass(frozen=True)
class Backend:
    """One backend of the demo."""

    name: str
    target: Any
    projection: str | None
    witness: Witness


@command(app, "demo")
def demo(
    out: Output,
    only: Annotated[
        list[str] | None,
        typer.Option("--only", help="Only this backend; may be given more than once.", show_default=False),
    ] = None,
) -> int:
    """Play a calendar day on six backends: two native, four published servers that know nothing of Hotplug.

    The four run unmodified, against a real Radicale on loopback that is started for this. What they stored is read
    from Radicale itself, the native ones' from their files: the table shows what is true, not what a server says.
    Everything that is started is stopped again, also on Ctrl-C.
    """
    from hotplug.cli.journey import exit_code
    from hotplug.cli.journey_text import report_text
    from hotplug.conform.journey import load
    from hotplug.examples import CALENDAR_DAY

    journey = load(CALENDAR_DAY)
    report = anyio.run(_run, out, journey, only)
    out.answer(
        "hotplug.journey-report/1",
        {key: value for key, value in report.document().items() if key != "schema"},
        lambda: report_text(report, title=f"{journey.title}: one journey, {len(report.backends)} backends"),
    )
    code = exit_code(report)
    # The demo is about honesty: a backend that refuses what it can't do is a success of it, a failure is not.
    if report.failed or report.same < len(report.backends) - 1:
        return code or Exit.NO
    return Exit.INCOMPLETE if report.undecided else Exit.YES


async def _run(out: Output, journey: Journey, only: list[str] | None) -> JourneyReport:
    from hotplug.conform.journey import BackendOutcome, JourneyReport
    from hotplug.store import open_store
    from hotplug.testing.radicale import radicale

    with tempfile.TemporaryDirectory(prefix="hotplug-demo-") as folder:
        home = Path(folder)
        async with (
            radicale(calendars={"work": "Work"}) as server,
            open_store(f"sqlite:///{home / 'store.db'}") as store,
        ):
            out.progress("Radicale is running on loopback.")
            backends = await _backends(out, home, server, only)
            found: dict[str, BackendOutcome] = {}
            limit = anyio.CapacityLimiter(_AT_ONCE)

            async def one(backend: Backend) -> None:
                async with limit:
                    out.progress(f"{backend.name}: starting")
                    found[backend.name] = await _play(out, journey, backend, store)
                    out.progress(f"{backend.name}: done")

            async with anyio.create_task_group() as tasks:
                for backend in backends:
                    if isinstance(backend, BackendOutcome):
                        found[backend.name] = backend
                    else:
                        tasks.start_soon(one, backend)
    return JourneyReport(
        journey=journey.journey,
        version=journey.version,
        digest=journey.digest,
        steps=tuple(step.name for step in journey.steps),
        core=journey.core,
        backends=tuple(found[backend.name] for backend in backends),
        at=datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        tool=f"hotplug {version()}",
    )


async def _backends(
    out: Output, home: Path, server: RadicaleServer, only: list[str] | None
) -> list[Backend | BackendOutcome]:
    """The six, in order; one that can't be started here stands with what is missing."""
    from hotplug.conform.journey import BackendOutcome
    from hotplug.connect import CommandTarget
    from hotplug.errors import ConfigError
    from hotplug.testing.published import PUBLISHED, published
    from hotplug.witness import CalDav, CalendarFolder, CalendarTables

    caldav = CalDav(server.user_url, server.username, server.password, describe="Radicale, read over CalDAV")
    natives = [
        Backend("sqlite", f"sqlite:///{home / 'calendar.db'}", None, CalendarTables(home / "calendar.db")),
        Backend("folder", f"folder:{home / 'folder'}", None, CalendarFolder(home / "folder")),
    ]
    names = [one.name for one in natives] + list(PUBLISHED_ORDER)
    wanted = names if only is None else [name for name in names if name in only]
    unknown = sorted(set(only or ()) - set(names))
    if unknown:
        raise ConfigError(f"the demo has no backend {', '.join(unknown)}", hint=f"it has {', '.join(names)}")
    found: list[Backend | BackendOutcome] = [one for one in natives if one.name in wanted]
    for name in PUBLISHED_ORDER:
        if name not in wanted or name not in PUBLISHED:
            continue
        try:
            upstream = await anyio.to_thread.run_sync(published, name, abandon_on_cancel=True)
        except ConfigError as error:
            found.append(BackendOutcome(name=name, target=name, via="projected", cells=(), error=str(error)))
            continue
        target = CommandTarget(upstream.command, env=upstream.env(server))
        found.append(Backend(name, target, upstream.projection, caldav))
    return found


PUBLISHED_ORDER: Final = ("caldav-mcp", "cal-scheduler-mcp", "agents-calendar", "caldav-blade-mcp")


async def _play(out: Output, journey: Journey, backend: Backend, store: Any) -> BackendOutcome:
    from hotplug.catalog import Calendar
    from hotplug.conform.journey import BackendOutcome, play
    from hotplug.connect import link_of
    from hotplug.door import connect
    from hotplug.errors import HotplugError

    via = "native" if isinstance(backend.target, str) else "projected"

    async def told(name: str, cell: Cell) -> None:
        out.progress(f"{name}: {cell.step}: {cell.status}{f' ({cell.code})' if cell.code else ''}")

    native = isinstance(backend.target, str)
    options: dict[str, Any] = {} if native else {"store": store, "start_timeout": _START_SECONDS, "name": backend.name}
    if native and backend.name == "folder":
        options["store"] = store
    try:
        async with connect(Calendar, backend.target, projection=backend.projection, **options) as calendar:
            described = await calendar.describe()
            return await play(
                journey,
                link_of(calendar),
                name=backend.name,
                via=via,
                witness=backend.witness,
                notes=described.get("notes") or {},
                on_cell=told,
            )
    except HotplugError as error:
        return BackendOutcome(name=backend.name, target=str(backend.target), via=via, cells=(), error=str(error))
