"""`hotplug journey`: the same agent journey on several backends."""

from __future__ import annotations

from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Final

import anyio
import typer

from hotplug.cli.command import command, group
from hotplug.cli.deadline import within
from hotplug.cli.output import Output
from hotplug.cli.targets import given
from hotplug.cli.version import version

_READY: Final = 120.0
"""Seconds until a backend must be ready to be called; a package may have to be downloaded first."""

app = group("The same agent journey on several backends, compared.")


@command(app, "journey")
def journey(
    out: Output,
    file: Annotated[str, typer.Argument(help="The journey: a YAML document.", show_default=False)],
    on: Annotated[
        list[str],
        typer.Option(
            "--on", help="A backend: any target, `name=TARGET` to name it. Give it once for each.", show_default=False
        ),
    ],
) -> int:
    """Play FILE on every backend, and say whether they gave the same outcome.

    Exit code 0: every backend gave the same outcome. 1: one failed, or gave another. 5: it could not be decided.
    """
    from hotplug.cli.journey_text import report_text
    from hotplug.conform.journey import load

    document = load(file)
    report = anyio.run(_play, out, document, on)
    out.answer(
        "hotplug.journey-report/1",
        {key: value for key, value in report.document().items() if key != "schema"},
        lambda: report_text(report, title=f"{document.title} ({document.journey} {document.version})"),
    )
    return exit_code(report)


def exit_code(report: Any) -> int:
    """0 where every backend gave the same outcome, 1 where one failed or differs, 5 where one could not be played."""
    if any(one.error for one in report.backends):
        return (
            1 if report.failed and any(cell.status == "failed" for one in report.backends for cell in one.cells) else 5
        )
    return 0 if report.same == len(report.backends) else 1


async def _play(out: Output, document: Any, on: list[str]) -> Any:
    from hotplug.catalog import profile_class
    from hotplug.conform.journey import BackendOutcome, JourneyReport, play
    from hotplug.connect import NativeTarget, link_of
    from hotplug.door import connect
    from hotplug.errors import ConfigError, ConnectionFailed, HotplugError
    from hotplug.witness import CalendarFolder, CalendarTables

    if len(document.profiles) != 1:
        raise ConfigError("this build plays journeys over one profile", hint="split the journey")
    ((name, range_),) = document.profiles.items()
    try:
        profile = profile_class(name)
    except KeyError:
        raise ConfigError(f"the journey needs the profile {name!r}, which the catalog doesn't have") from None
    outcomes: list[BackendOutcome] = []
    for word in on:
        label, target = _named(word)
        server = given(out, target)
        parsed = server.target
        witness: Any = None
        if isinstance(parsed, NativeTarget):
            witness = CalendarTables(parsed.path) if parsed.scheme == "sqlite" else CalendarFolder(parsed.path)
        try:
            found = connect(profile.range(range_), parsed, projection=server.projection, **server.session)
            async with AsyncExitStack() as stack:
                connection = await within(_READY, stack.enter_async_context(found), server.label)
                link = link_of(connection)
                described = await connection.describe()
                outcomes.append(await play(document, link, name=label, via=_via(described, name), witness=witness))
        except (ConnectionFailed, HotplugError) as error:
            outcomes.append(BackendOutcome(name=label, target=str(parsed), via="unknown", cells=(), error=str(error)))
    steps = tuple(step.name for step in document.steps)
    return JourneyReport(
        journey=document.journey,
        version=document.version,
        digest=document.digest,
        steps=steps,
        core=document.core,
        backends=tuple(outcomes),
        at=datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        tool=f"hotplug {version()}",
    )


def _named(word: str) -> tuple[str, str]:
    label, equals, target = word.partition("=")
    if equals and label.replace("-", "").replace("_", "").isalnum() and target:
        return label, target
    return _short(word), word


def _short(word: str) -> str:
    scheme, _, rest = word.partition(":")
    rest = rest.partition("?me=")[0]
    return f"{scheme}:{Path(rest.lstrip('/')).name}" if scheme in {"sqlite", "folder"} else word[:24]


def _via(described: Any, profile: str) -> str:
    cards = described.get("declaration", {}).get("org.classprofiles/profiles", {}).get("profiles", [])
    return next((str(card.get("via", "native")) for card in cards if card.get("profile") == profile), "native")
