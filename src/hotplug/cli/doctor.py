"""`hotplug doctor`: whether the servers that are named, and this machine, are in order."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import anyio
import typer

from hotplug.cli.command import command, group
from hotplug.cli.config_option import ConfigOption, configuration
from hotplug.cli.failure import Exit
from hotplug.cli.output import Output
from hotplug.cli.targets import AfterDashes, Given, Launching, given, given_entry, tell_unfilled
from hotplug.errors import ConfigError

if TYPE_CHECKING:
    from hotplug.cli.doctor_machine import MachinePart
    from hotplug.cli.doctor_servers import Broken, Examined
    from hotplug.gateway.config import GatewayConfig

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
    config: ConfigOption = None,
    timeout: Annotated[
        float | None,
        typer.Option(
            help="Seconds that each server has to answer. [default: its start_timeout, else 60]",
            min=0.001,
            show_default=False,
        ),
    ] = None,
    command_word: AfterDashes = None,
) -> int:
    """Start or reach every server, and say what is wrong with it and what to do; then what this machine lacks.

    Without a target: the servers of your hotplug.toml and of trusted files of projects here, with what each thread
    would get of them. Four are looked at at the same time; no tool of them is called. What is optional on this machine
    never fails; a server that needs it does.

    Exit codes: 0 all fine, 1 a server contradicts what it declares or what its entry asks for, or its projection no
    longer fits, or this machine lacks what everything needs, 3 a server wants a credential, 4 one can't be reached.
    """
    from hotplug.cli.doctor_text import text

    words = list(targets or ())
    if words or command_word:
        if config is not None:
            raise ConfigError("--config and a target both say what to look at", hint="leave one out")
        gateway = None
    else:
        gateway = configuration(out, config)
    examined, parts = anyio.run(_all, out, gateway, words, list(command_word or ()), timeout)
    if not examined:
        out.note("note: no server was named, and none is set up (hotplug init, hotplug server add)")
    servers = [one.document() for one in examined]
    code = _code(examined, parts)
    body = {"fine": code == Exit.YES, "servers": servers, "machine": [part.document() for part in parts]}
    out.answer("hotplug.doctor/1", body, lambda: text(examined, parts), rows=("hotplug.doctor.server/1", servers))
    return code


async def _all(
    out: Output, gateway: GatewayConfig | None, words: list[str], command: list[str], limit: float | None
) -> tuple[tuple[Examined, ...], tuple[MachinePart, ...]]:
    from hotplug.cli.doctor_gateway import all_of, examine_gateway
    from hotplug.cli.doctor_machine import machine
    from hotplug.cli.doctor_servers import examine

    if gateway is not None:
        return await examine_gateway(out, gateway, all_of(gateway), limit), await machine()
    found: list[Given | Broken] = []
    for word in words:
        if word.endswith((".toml", ".json")):
            found += _of_file(out, word)
        else:
            found.append(given(out, word))
    if command:
        found.append(given(out, command))
    examined = await examine(found, limit=limit or 60.0, progress=out.progress)
    return examined, await machine()


def _of_file(out: Output, word: str) -> list[Given | Broken]:
    """Every server of a file; an entry that is wrong is a finding of its own, and costs no other."""
    from hotplug.cli.doctor_gateway import all_of
    from hotplug.cli.doctor_servers import Broken
    from hotplug.connect.serversfile import read_servers

    if word.endswith(".toml"):
        from hotplug.gateway.trust import load_config

        config = load_config(Path(word))
        for notice in config.warnings:
            out.note(f"warning: {notice}")
        out.used(f"servers of {word}: {', '.join((*config.servers, *config.broken)) or 'none'}")
        return all_of(config)
    file = read_servers(word)
    out.used(f"servers of {file.path}: {', '.join(file.names) or 'none'}")
    found: list[Given | Broken] = []
    for name in file.names:
        try:
            one = given_entry(file, file.server(name))
        except ConfigError as error:
            found.append(Broken(name, str(file.path), error))
        else:
            tell_unfilled(out, one)
            found.append(one)
    return found


def _code(examined: tuple[Examined, ...], parts: tuple[MachinePart, ...]) -> int:
    from hotplug.cli.doctor_servers import exit_of

    code = exit_of(examined)
    if code == Exit.YES and any(part.required and not part.fine for part in parts):
        return Exit.NO
    return code
