"""`hotplug server`: the servers of the gateway's configuration."""

from __future__ import annotations

import os
from dataclasses import replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import anyio
import typer

from hotplug.cli.command import command, group
from hotplug.cli.config_option import ConfigOption, configuration
from hotplug.cli.failure import Exit
from hotplug.cli.output import Output
from hotplug.cli.printing import block
from hotplug.cli.server_login import hook
from hotplug.cli.targets import AfterDashes, Launching, one_of
from hotplug.errors import ConfigError

if TYPE_CHECKING:
    from hotplug.gateway.config import GatewayConfig

app = group("The gateway's servers: list, add, remove, test, log in.")


class Share(StrEnum):
    """Who shares one child of a server."""

    THREAD = "thread"
    ALL = "all"


@command(app, "list")
def list_(out: Output, config: ConfigOption = None) -> int:
    """Say which servers are set up, in which file, and which entries can't be used. Nothing is started.

    Exit codes: 0 all can be used, 1 some can't.
    """
    found = configuration(out, config)
    servers = [*(_listed(found, name) for name in found.servers), *(_broken(found, name) for name in found.broken)]
    body = {"file": str(found.path) if found.path else None, "servers": servers}
    out.answer(
        "hotplug.server-list/1",
        body,
        lambda: _table(servers),
        rows=("hotplug.server-list.server/1", servers),
    )
    return Exit.NO if found.broken else Exit.YES


def _listed(found: GatewayConfig, name: str) -> dict[str, Any]:
    one = found.servers[name]
    return {
        "name": name,
        "state": "disabled" if one.disabled else "set-up",
        "file": str(one.file) if one.file else None,
        "target": one.target.describe(),
        "summary": str(getattr(one.target, "launch", one.target)),
        "profiles": list(one.profiles),
    }


def _broken(found: GatewayConfig, name: str) -> dict[str, Any]:
    error = found.broken[name]
    body = {"name": name, "state": "broken", "problem": error.message}
    return {**body, "hint": error.hint} if error.hint else body


_MARKS = {"set-up": "•", "disabled": "–", "broken": "✗"}


def _table(servers: list[dict[str, Any]]) -> str:
    if not servers:
        return "no server is set up: hotplug server add NAME TARGET"
    width = max(len(one["name"]) for one in servers)
    lines: list[str] = []
    for one in servers:
        head = f"{_MARKS[one['state']]} {one['name']:<{width}}"
        if one["state"] == "broken":
            lines.append(f"{head}  {one['problem']}" + (f" ({one['hint']})" if one.get("hint") else ""))
            continue
        more = [f"speaks {', '.join(one['profiles'])}"] if one["profiles"] else []
        more += ["disabled"] if one["state"] == "disabled" else []
        lines.append("  ".join(filter(None, [head, one["summary"], f"({'; '.join(more)})" if more else None])))
    return block(lines)


@command(app, "add", cls=Launching)
def add(
    out: Output,
    name: Annotated[str, typer.Argument(help="What it shall be called.", show_default=False)],
    targets: Annotated[
        list[str] | None,
        typer.Argument(help="A URL, npm:PACKAGE, sqlite:///FILE, …", metavar="[TARGET]", show_default=False),
    ] = None,
    config: ConfigOption = None,
    env: Annotated[
        list[str] | None,
        typer.Option(
            help="A variable for it, NAME=VALUE or NAME=secret:NAME.", metavar="NAME=VALUE", show_default=False
        ),
    ] = None,
    header: Annotated[
        list[str] | None,
        typer.Option(help="A header for it, NAME=VALUE.", metavar="NAME=VALUE", show_default=False),
    ] = None,
    cwd: Annotated[
        str | None, typer.Option(help="Where its command starts.", metavar="DIR", show_default=False)
    ] = None,
    profile: Annotated[
        list[str] | None, typer.Option(help="A profile that it must speak.", metavar="NAME", show_default=False)
    ] = None,
    projection: Annotated[
        str | None, typer.Option(help="The projection to use.", metavar="NAME|FILE", show_default=False)
    ] = None,
    prefix: Annotated[
        str | None, typer.Option(help="What stands before its tools' names.", metavar="TEXT", show_default=False)
    ] = None,
    share: Annotated[Share | None, typer.Option(help="Who shares one child of it.", show_default=False)] = None,
    oauth: Annotated[bool, typer.Option("--oauth", help="It asks for OAuth.")] = False,
    disabled: Annotated[bool, typer.Option("--disabled", help="Set it up, and don't offer it yet.")] = False,
    command_word: AfterDashes = None,
) -> int:
    """Add a server to your hotplug.toml; comments and order of the file stay as they are. Nothing is started.

    Its command stands after --. Paths are written as they are seen from here.

    Exit codes: 0 added, 2 the name is taken, or the entry can't be used.
    """
    from hotplug.gateway.changing import change_config
    from hotplug.gateway.config import Notice
    from hotplug.gateway.config_file import default_config_path
    from hotplug.gateway.server_entry import read_server
    from hotplug.gateway.writing import add_server

    path = (config or default_config_path()).expanduser()
    out.used(f"configuration: {path}")
    entry = _launch(one_of(targets, command_word), command_word, cwd)
    entry |= _pairs("env", env) | _pairs("headers", header)
    profiles = list(profile or ())
    settings: dict[str, Any] = {
        "profile": profiles[0] if len(profiles) == 1 else None,
        "profiles": profiles if len(profiles) > 1 else None,
        "projection": _here(projection) if projection and projection.endswith((".yaml", ".yml")) else projection,
        "prefix": prefix,
        "share": share.value if share else None,
        "oauth": oauth or None,
        "disabled": disabled or None,
    }
    entry |= {key: value for key, value in settings.items() if value is not None}
    notices: list[Notice] = []

    def note(key: str, message: str, fix: str | None = None, *, secret: bool = False) -> None:
        notices.append(Notice(key, message, fix, secret))

    read = read_server(name, entry, path=path, notice=note)
    change_config(path, lambda text: add_server(text, name, entry, where=str(path)))
    for notice in notices:
        out.note(f"warning: {notice}")
    body = {"name": name, "file": str(path), "target": read.target.describe(), "warnings": list(map(str, notices))}
    text = f"{name} is added to {path}\nnext: hotplug server {'login' if oauth else 'test'} {name}"
    out.answer("hotplug.server-add/1", body, lambda: text)
    return Exit.YES


def _launch(given: object, command_word: list[str] | None, cwd: str | None) -> dict[str, Any]:
    """The keys of an entry that say what starts it, so that it starts from anywhere."""
    from hotplug.connect import HttpTarget, NamedTarget, NativeTarget, PythonTarget, parse_target
    from hotplug.connect.target import CommandTarget

    target = parse_target(given)
    match target:
        case CommandTarget(argv=argv) if command_word:
            found: dict[str, Any] = {"command": argv[0]}
            if len(argv) > 1:
                found["args"] = list(argv[1:])
            if cwd is not None:
                return {**found, "cwd": _here(cwd)}
            # A file that is there is meant from here; a client may start the gateway elsewhere.
            beside = any("=" not in part and not Path(part).is_absolute() and Path(part).exists() for part in argv)
            return {**found, "cwd": str(Path.cwd())} if beside else found
        case HttpTarget(url=url):
            return _with_cwd({"url": url}, cwd)
        case NativeTarget(path=path) if path != ":memory:":
            return _with_cwd({"target": str(replace(target, path=_here(path)))}, cwd)
        case PythonTarget(source=source, object=object_) if target.is_file:
            return _with_cwd({"target": _here(source) + (f":{object_}" if object_ else "")}, cwd)
        case NamedTarget(file=str() as file):
            return _with_cwd({"target": f"{_here(file)}#{target.name}" if target.name else _here(file)}, cwd)
        case _:
            return _with_cwd({"target": list(given) if isinstance(given, list) else str(given)}, cwd)  # pyright: ignore[reportUnknownArgumentType]


def _with_cwd(entry: dict[str, Any], cwd: str | None) -> dict[str, Any]:
    return entry if cwd is None else {**entry, "cwd": _here(cwd)}


def _here(path: str) -> str:
    return os.path.abspath(Path(path).expanduser())  # noqa: PTH100 - Path.absolute keeps `..`, resolve follows links


def _pairs(kind: str, words: list[str] | None) -> dict[str, Any]:
    found: dict[str, str] = {}
    for word in words or ():
        name, equals, value = word.partition("=")
        if not equals or not name.strip():
            raise ConfigError(f"--{kind.removesuffix('s')} is NAME=VALUE", hint="NAME=secret:NAME names a secret")
        found[name.strip()] = value
    return {kind: found} if found else {}


@command(app, "remove")
def remove(
    out: Output,
    name: Annotated[str, typer.Argument(help="The server's name.", show_default=False)],
    config: ConfigOption = None,
) -> int:
    """Remove a server from your hotplug.toml; everything else in the file stays as it is.

    Exit codes: 0 removed, 2 there is none of that name.
    """
    from hotplug.gateway.changing import change_config
    from hotplug.gateway.config_file import default_config_path
    from hotplug.gateway.writing import remove_server

    path = (config or default_config_path()).expanduser()
    out.used(f"configuration: {path}")
    change_config(path, lambda text: remove_server(text, name, where=str(path)))
    out.answer("hotplug.server-remove/1", {"name": name, "file": str(path)}, lambda: f"{name} is removed from {path}")
    return Exit.YES


@command(app, "test")
def start_one(
    out: Output,
    name: Annotated[str, typer.Argument(help="The server's name.", show_default=False)],
    config: ConfigOption = None,
    timeout: Annotated[
        float | None,
        typer.Option(help="Seconds that it has to answer. [default: its start_timeout]", min=0.001, show_default=False),
    ] = None,
) -> int:
    """Start one server and say what `hotplug doctor` says of it. No tool is called. A disabled one is tested too.

    Exit codes: as those of `hotplug doctor`.
    """
    from hotplug.cli.doctor_gateway import examine_gateway, pick
    from hotplug.cli.doctor_servers import exit_of
    from hotplug.cli.doctor_text import server_text

    found = configuration(out, config, warn=False)
    for notice in found.warnings:
        if f"servers.{name}" in notice.place:
            out.note(f"warning: {notice}")
    (examined,) = anyio.run(examine_gateway, out, found, [pick(found, name)], timeout)
    out.answer("hotplug.doctor.server/1", examined.document(), lambda: server_text(examined))
    return exit_of([examined])


@command(app, "accept")
def accept(
    out: Output,
    name: Annotated[str, typer.Argument(help="The server's name.", show_default=False)],
    tools: Annotated[
        list[str] | None,
        typer.Argument(
            help="Only these of its tools. [default: all that changed]", metavar="[TOOL]...", show_default=False
        ),
    ] = None,
    config: ConfigOption = None,
    look: Annotated[bool, typer.Option("--look", help="Only show what changed.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Take the changes without being asked.")] = False,
) -> int:
    """Show what changed in a server's tools since they were pinned, and take it if you want.

    A tool is pinned as it was first seen: name, schemas, annotations and wording. One that changes is closed to every
    thread until it is accepted here, since what a model reads of a tool is what it obeys. Starts the server; calls none
    of its tools.

    Exit codes: 0 nothing is closed any more, 1 something stays closed, 4 the server can't be reached.
    """
    from hotplug.cli.asking import Asking
    from hotplug.cli.doctor_gateway import pick
    from hotplug.cli.server_accept import accept as accepted

    found = configuration(out, config, warn=False)
    pick(found, name)
    if name in found.broken:
        raise found.broken[name]
    server = replace(found.servers[name], disabled=False)
    return anyio.run(partial(accepted, look=look), out, found, server, tools or [], Asking(yes))


hook(app)
