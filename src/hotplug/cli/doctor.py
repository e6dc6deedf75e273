"""`hotplug doctor`: whether the servers that are named, and this machine, are in order."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import anyio
import typer

from hotplug.cli.command import command, group
from hotplug.cli.failure import Exit
from hotplug.cli.output import Output
from hotplug.cli.targets import CONFIGURATION, AfterDashes, Given, Launching, given, given_entry

if TYPE_CHECKING:
    from hotplug.cli.doctor_machine import MachinePart
    from hotplug.cli.doctor_servers import Broken, Examined

app = group("Whether your servers and this machine are in order.")


@command(app, "doctor", cls=Launching)
def doctor(
    out: Output,
    targets: Annotated[
        list[str] | None,
        typer.Argument(
            help="Servers, or files of servers (hotplug.toml, mcp.json): all in a file are looked at.",
            metavar="[FILE|TARGET]...",
            show_default=False,
        ),
    ] = None,
    timeout: Annotated[float, typer.Option(help="Seconds that each server has to answer.", min=0.001)] = 60.0,
    command_word: AfterDashes = None,
) -> int:
    """Start or reach every server, and say what is wrong with it; then what this machine lacks.

    Without a target: the servers of hotplug.toml in this folder. Four are looked at at the same time; no tool of them
    is called. What is optional on this machine never fails; a server that needs it does.

    Exit codes: 0 all fine, 1 a server contradicts what it declares, or its projection no longer fits, or this machine
    lacks what everything needs, 4 a server can't be reached.
    """
    from hotplug.cli.doctor_text import text

    words = list(targets or ())
    if not words and not command_word and Path(CONFIGURATION).is_file():
        words = [CONFIGURATION]
    examined, parts = anyio.run(_all, out, words, list(command_word or ()), timeout)
    if not examined:
        out.note(f"note: no server was named, and there is no {CONFIGURATION} here with one")
    servers = [one.document() for one in examined]
    code = _code(examined, parts)
    body = {"fine": code == Exit.YES, "servers": servers, "machine": [part.document() for part in parts]}
    out.answer("hotplug.doctor/1", body, lambda: text(examined, parts), rows=("hotplug.doctor.server/1", servers))
    return code


async def _all(
    out: Output, words: list[str], command: list[str], limit: float
) -> tuple[tuple[Examined, ...], tuple[MachinePart, ...]]:
    from hotplug.cli.doctor_machine import machine
    from hotplug.cli.doctor_servers import examine

    found: list[Given | Broken] = []
    for word in words:
        if word.endswith((".toml", ".json")):
            found += _of_file(out, word)
        else:
            found.append(given(out, word))
    if command:
        found.append(given(out, command))
    examined = await examine(found, limit=limit, progress=out.progress)
    return examined, await machine()


def _of_file(out: Output, word: str) -> list[Given | Broken]:
    """Every server of a file; an entry that is wrong is a finding of its own, and costs no other."""
    from hotplug.cli.doctor_servers import Broken
    from hotplug.connect.serversfile import read_servers
    from hotplug.errors import ConfigError

    file = read_servers(word)
    out.used(f"servers of {file.path}: {', '.join(file.names) or 'none'}")
    found: list[Given | Broken] = []
    for name in file.names:
        try:
            found.append(given_entry(file, file.server(name), (file,)))
        except ConfigError as error:
            found.append(Broken(name, str(file.path), error))
    return found


def _code(examined: tuple[Examined, ...], parts: tuple[MachinePart, ...]) -> int:
    if any(one.error is not None for one in examined):
        return Exit.UNREACHABLE
    if any(one.state == "wrong" for one in examined) or any(part.required and not part.fine for part in parts):
        return Exit.NO
    return Exit.YES
