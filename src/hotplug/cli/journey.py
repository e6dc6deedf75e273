"""`hotplug journey`: the same agent journey on several backends."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import anyio
import typer

from hotplug.cli.command import Noun, command, group
from hotplug.cli.failure import Exit
from hotplug.cli.failure import exit_code as code_of
from hotplug.cli.output import Output
from hotplug.cli.version import version
from hotplug.errors import ConfigError

if TYPE_CHECKING:
    from hotplug.cli.journey_backends import Backend, Named
    from hotplug.conform.journey import BackendCheck, BackendOutcome, Journey, JourneyCheck, JourneyReport


class _Journeys(Noun):
    """What is no verb is the file of a journey to be played: `hotplug journey FILE` is `hotplug journey play FILE`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        words = [*args]
        while words and re.fullmatch(r"--json|--format(=.*)?|--verbose|-v+", words[0]):
            words = words[2:] if words[0] == "--format" else words[1:]
        if words and words[0] not in (*self.commands, "--help", "-h"):
            args = ["play", *args]
        return super().parse_args(ctx, args)


app = group(
    "The same agent journey on several backends, compared. `hotplug journey FILE` plays it: `play` may be left out.",
    cls=_Journeys,
)

File = Annotated[str, typer.Argument(help="The journey: a YAML document.", show_default=False)]
On = Annotated[
    list[str],
    typer.Option(
        "--on", help="A backend: any target, `name=TARGET` to name it. Give it once for each.", show_default=False
    ),
]
Witnesses = Annotated[
    list[str] | None,
    typer.Option(
        "--witness",
        help="Who looks at what backends really store: caldav:URL, folder:DIR or sqlite:///FILE; NAME= before it for "
        "the backend of that name alone, else for all without one. ${VAR} is taken from the environment.",
        show_default=False,
    ),
]


@command(app, "play")
def play(
    out: Output,
    file: File,
    on: On,
    witness: Witnesses = None,
    unwitnessed: Annotated[
        bool,
        typer.Option(
            "--unwitnessed", help="Play also where nobody watches what a claim reads; such claims end in unknown."
        ),
    ] = False,
    runs: Annotated[
        Path | None,
        typer.Option(help="A folder for the verification runs: NAME.run.json for each backend.", show_default=False),
    ] = None,
) -> int:
    """Play FILE on every backend, and say whether they gave the same outcome and which claims were proved.

    \b
    hotplug journey day.yaml --on sqlite:///my.db --on work=mcp.json#work \\
        --witness 'work=caldav:https://me:${PASSWORD}@calendar.example/me/'

    First it is checked against every backend, as `hotplug journey check` does: where that fails, nothing is sent to
    any of them. Native backends have their witness. A file called `play` or `check` is played by `hotplug journey play
    check`, or as ./check.

    Exit codes: 0 every backend gave the same outcome, and no claim was left open; 1 one failed or gave another, or the
    check failed; 5 it could not be decided: a backend could not be played, or a claim ended in unknown (with
    --unwitnessed that is let pass).
    """
    from hotplug.cli.journey_backends import named
    from hotplug.cli.journey_text import check_text, report_text
    from hotplug.conform.journey import load

    document = load(file)
    checked, report = anyio.run(_play, out, document, named(out, on, witness or ()), unwitnessed, runs)
    title = f"{document.title} ({document.journey} {document.version})"
    if report is None:
        out.answer(
            "hotplug.journey-check/1", checked.document(), lambda: check_text(checked, title=title, refused=True)
        )
        return Exit.NO
    out.answer(
        "hotplug.journey-report/1",
        {key: value for key, value in report.document().items() if key != "schema"},
        lambda: report_text(report, title=title),
    )
    return exit_code(report, unwitnessed=unwitnessed)


@command(app, "check")
def check(out: Output, file: File, on: On, witness: Witnesses = None) -> int:
    """Say whether FILE can be played on every backend, and all that is missing where it can't, before anything is sent.

    Each step is held against what the backend offers and what is watched there, by itself or by its witness; backends
    are connected to and asked what they are, and nothing that changes anything is called.

    Exit codes: 0 portable to all; 1 not so; 2 the journey or a target can't be read; 4 a backend could not be reached.
    """
    from hotplug.cli.journey_backends import named
    from hotplug.cli.journey_text import check_text
    from hotplug.conform.journey import load

    document = load(file)
    checked, errors = anyio.run(_check, out, document, named(out, on, witness or ()))
    title = f"{document.title} ({document.journey} {document.version})"
    out.answer("hotplug.journey-check/1", checked.document(), lambda: check_text(checked, title=title))
    if any(one.faults for one in checked.backends):
        return Exit.NO
    return max(map(code_of, errors), default=Exit.YES)


def exit_code(report: JourneyReport, *, unwitnessed: bool = False) -> int:
    """0 where every backend gave the same outcome, 1 where one failed or differs, 5 where it could not be decided.

    Args:
        unwitnessed: Claims that were left open are let pass.
    """
    if any(one.error for one in report.backends):
        failed = any(cell.status == "failed" for one in report.backends for cell in one.cells)
        return Exit.NO if failed else Exit.INCOMPLETE
    if report.failed or report.same != len(report.backends):
        return Exit.NO
    return Exit.INCOMPLETE if report.undecided and not unwitnessed else Exit.YES


async def _check(out: Output, document: Journey, named: tuple[Named, ...]) -> tuple[JourneyCheck, list[Any]]:
    from hotplug.cli.journey_backends import opened

    async with opened(out, document, named) as backends:
        return await _checked(document, backends), [one.error for one in backends if one.error]


async def _checked(document: Journey, backends: tuple[Backend, ...]) -> JourneyCheck:
    from hotplug.conform.journey import BackendCheck, JourneyCheck, check
    from hotplug.connect import link_of

    found: list[BackendCheck] = []
    for one in backends:
        if one.error is not None:
            found.append(BackendCheck(one.name, one.target, error=str(one.error)))
        else:
            found.append(await check(document, link_of(one.connection), name=one.name, witness=one.witness))
    return JourneyCheck(
        journey=document.journey,
        version=document.version,
        digest=document.digest,
        steps=tuple(step.name for step in document.steps),
        backends=tuple(found),
    )


async def _play(
    out: Output, document: Journey, named: tuple[Named, ...], unwitnessed: bool, runs: Path | None
) -> tuple[JourneyCheck, JourneyReport | None]:
    from hotplug.cli.journey_backends import opened
    from hotplug.conform.journey import BackendOutcome

    if runs is not None:
        _make(runs)
    async with opened(out, document, named) as backends:
        checked = await _checked(document, backends)
        if any(one.without_channels() if unwitnessed else one.faults for one in checked.backends):
            return checked, None
        outcomes: list[BackendOutcome] = []
        for one in backends:
            if one.error is not None:
                outcomes.append(BackendOutcome(one.name, one.target, "unknown", (), error=str(one.error)))
            else:
                outcomes.append(await _played(out, document, one, runs))
    return checked, report_of(document, outcomes)


async def _played(out: Output, document: Journey, one: Backend, runs: Path | None) -> BackendOutcome:
    from hotplug.conform.journey import BackendOutcome, Cell, play
    from hotplug.connect import link_of
    from hotplug.errors import HotplugError

    async def told(name: str, cell: Cell) -> None:
        out.progress(f"{name}: {cell.step}: {cell.status}{f' ({cell.code})' if cell.code else ''}")

    link = link_of(one.connection)
    async with one.connection.recorded() as recording:
        try:
            outcome = await play(document, link, name=one.name, via=one.via, witness=one.witness, on_cell=told)
        except HotplugError as error:
            outcome = BackendOutcome(one.name, one.target, one.via, (), error=str(error))
        if runs is not None and recording:
            path = runs / f"{re.sub('[^A-Za-z0-9._-]', '-', one.name)}.run.json"
            try:
                recording.save(path)
            except OSError as error:
                raise ConfigError(f"the run can't be written to {path}: {error.strerror}") from None
            out.used(f"run: {path}")
    return outcome


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"{folder} can't be made: {error.strerror}") from None


def report_of(document: Journey, outcomes: list[BackendOutcome]) -> JourneyReport:
    """The report of a journey that was played just now."""
    from hotplug.conform.journey import JourneyReport

    return JourneyReport(
        journey=document.journey,
        version=document.version,
        digest=document.digest,
        steps=tuple(step.name for step in document.steps),
        core=document.core,
        backends=tuple(outcomes),
        at=datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        tool=f"hotplug {version()}",
    )
