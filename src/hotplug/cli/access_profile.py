"""`hotplug access profile`: the named access profiles of the settings."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from hotplug.cli.access_files import BasedOn, HostFile, Settings, save, settings_file
from hotplug.cli.command import command, group
from hotplug.cli.output import Output
from hotplug.errors import ConfigError

app = group("Access profiles: which servers, groups and tools they give.")

Name = Annotated[str, typer.Argument(help="The profile's name.", show_default=False)]
Servers = Annotated[
    str | None,
    typer.Option("--servers", help="Outside servers: all, none, or names with commas.", show_default=False),
]
Groups = Annotated[
    str | None,
    typer.Option("--groups", help="Groups of the host's own tools: all, none, or names with commas.", show_default=False),
]
Allow = Annotated[
    list[str] | None,
    typer.Option(
        "--allow",
        help="Of this server only the tools that are named so; may be given more than once. `SERVER/` allows none.",
        metavar="SERVER/TOOL",
        show_default=False,
    ),
]
Deny = Annotated[
    list[str] | None,
    typer.Option(
        "--deny",
        help="Not this tool of the server; may be given more than once. `SERVER` alone denies all of its tools.",
        metavar="SERVER[/TOOL]",
        show_default=False,
    ),
]


@command(app, "add")
def add(
    out: Output,
    name: Name,
    servers: Servers = None,
    groups: Groups = None,
    allow: Allow = None,
    deny: Deny = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Put it in the place of the profile that has this name.")
    ] = False,
    host: HostFile = None,
    based_on: BasedOn = None,
    settings: Settings = None,
) -> int:
    """Add a profile. Say both what it gives of the outside servers and of the host's own groups.

    A group that the host hasn't got is refused if --host says what there is. Names are compared exactly.

    Exit codes: 0 saved, 1 refused, 2 it can't be done as it stands.
    """
    if servers is None or groups is None:
        raise ConfigError(
            f"profile {name!r} needs both --servers and --groups",
            hint="`--servers none --groups all` gives no outside server and all of the host's own tools",
        )
    profile: dict[str, Any] = {"servers": _listed(servers), "groups": _listed(groups)}
    if rules := _rules(allow or [], deny or []):
        profile["tools"] = rules
    file = settings_file(out, settings)
    there = name in _entries(file)
    if there and not replace:
        raise ConfigError(f"there is a profile {name!r} already", hint="--replace puts this one in its place")
    patch = {"mcpProfiles": {name: profile}}
    return save(out, file, patch, f"profile {name} is {'replaced' if there else 'added'}", based_on=based_on, host=host)


@command(app, "remove")
def remove(out: Output, name: Name, based_on: BasedOn = None, settings: Settings = None) -> int:
    """Remove a profile. One that is in use is kept, and the answer says where it is used.

    Exit codes: 0 removed, 1 refused, 2 it can't be done as it stands.
    """
    file = settings_file(out, settings)
    _existing(file, name)
    return save(out, file, {"mcpProfiles": {name: None}}, f"profile {name} is removed", based_on=based_on)


@command(app, "rename")
def rename(
    out: Output,
    name: Name,
    to: Annotated[str, typer.Argument(help="Its new name.", metavar="NEW", show_default=False)],
    everywhere: Annotated[
        bool, typer.Option("--everywhere", help="Also where it is used: defaults, picks and projects, in the same save.")
    ] = False,
    based_on: BasedOn = None,
    settings: Settings = None,
) -> int:
    """Give a profile another name. One that is in use is renamed only with --everywhere.

    Exit codes: 0 renamed, 1 refused, 2 it can't be done as it stands.
    """
    file = settings_file(out, settings)
    profile = _existing(file, name)
    if to in _entries(file):
        raise ConfigError(f"there is a profile {to!r} already", hint="choose another name, or remove that one first")
    patch: dict[str, Any] = {"mcpProfiles": {name: None, to: profile}}
    if everywhere:
        patch |= _uses(file.look().settings, name, to)
    return save(out, file, patch, f"profile {name} is now called {to}", based_on=based_on)
