"""`hotplug access profile`: the named access profiles of the settings."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hotplug.cli.access_files import BasedOn, HostFile, Settings, save, settings_file
from hotplug.cli.command import command, group
from hotplug.cli.output import Output
from hotplug.cli.printing import did_you_mean
from hotplug.errors import ConfigError

if TYPE_CHECKING:
    from hotplug.access import Node
    from hotplug.access import Settings as Read

app = group("Access profiles: which servers, groups and tools they give.")

Name = Annotated[str, typer.Argument(help="The profile's name.", show_default=False)]
Servers = Annotated[
    str | None,
    typer.Option("--servers", help="Outside servers: all, none, or names with commas.", show_default=False),
]
Groups = Annotated[
    str | None,
    typer.Option("--groups", help="Groups of the host's tools: all, none, or names with commas.", show_default=False),
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
    there = name in _profiles(file.look().settings)
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
    profiles = _profiles(file.look().settings)
    if name not in profiles:
        raise _unknown(name, profiles)
    return save(out, file, {"mcpProfiles": {name: None}}, f"profile {name} is removed", based_on=based_on)


@command(app, "rename")
def rename(
    out: Output,
    name: Name,
    to: Annotated[str, typer.Argument(help="Its new name.", metavar="NEW", show_default=False)],
    everywhere: Annotated[
        bool,
        typer.Option("--everywhere", help="Also in defaults, picks and projects that use it, in one save."),
    ] = False,
    based_on: BasedOn = None,
    settings: Settings = None,
) -> int:
    """Give a profile another name. One that is in use is renamed only with --everywhere.

    Exit codes: 0 renamed, 1 refused, 2 it can't be done as it stands.
    """
    file = settings_file(out, settings)
    looked = file.look()
    profiles = _profiles(looked.settings)
    if name not in profiles:
        raise _unknown(name, profiles)
    if to in profiles:
        raise ConfigError(f"there is a profile {to!r} already", hint="choose another name, or remove that one first")
    patch: dict[str, Any] = {"mcpProfiles": {name: None, to: profiles[name]}}
    if everywhere:
        patch |= _uses(looked.settings, name, to)
    # What is moved is what was read just now: a change in between must not be undone.
    return save(out, file, patch, f"profile {name} is now called {to}", based_on=based_on or looked.version)


def _listed(word: str) -> str | list[str]:
    """What a list of names on the command line means in the settings."""
    if word == "all":
        return word
    return [] if word == "none" else [name.strip() for name in word.split(",")]


def _rules(allow: list[str], deny: list[str]) -> dict[str, dict[str, Any]]:
    rules: dict[str, dict[str, Any]] = {}
    for word in allow:
        server, slash, tool = word.partition("/")
        if not server or not slash:
            raise ConfigError(f"--allow {word!r} isn't SERVER/TOOL", hint="`--allow mail/search`, for example")
        rules.setdefault(server, {}).setdefault("allow", []).extend([tool] if tool else [])
    for word in deny:
        server, slash, tool = word.partition("/")
        if not server or (slash and not tool):
            raise ConfigError(
                f"--deny {word!r} is neither SERVER/TOOL nor SERVER", hint="for example `--deny mail/send`"
            )
        rule = rules.setdefault(server, {})
        if not slash or rule.get("deny") == "all":
            rule["deny"] = "all"
        else:
            rule.setdefault("deny", []).append(tool)
    return rules


def _profiles(settings: Read) -> dict[str, Node]:
    """Every profile that stands in the file, also one that can't be used."""
    from hotplug.access.document import ObjectNode

    root = settings.document and settings.document.root
    there = root.get("mcpProfiles") if isinstance(root, ObjectNode) else None
    return dict(there.members) if isinstance(there, ObjectNode) else {}


def _unknown(name: str, known: Iterable[str]) -> ConfigError:
    hint = did_you_mean(name, known) or "`hotplug access show` lists them"
    return ConfigError(f"there is no profile {name!r} in the settings", hint=hint)


def _uses(settings: Read, name: str, to: str) -> dict[str, Any]:
    """A patch that puts `to` wherever `name` is used."""
    patch: dict[str, Any] = {}
    if settings.default == name:
        patch["mcpProfile"] = to
    if settings.subagent_default == name:
        patch["mcpSubagentProfile"] = to
    if picks := {thread: to for thread, pick in settings.picks.items() if pick == name}:
        patch["mcpThreadProfiles"] = picks
    projects = {
        project: {
            key: to
            for key, used in (("mcpProfile", one.default), ("mcpSubagentProfile", one.subagent_default))
            if used == name
        }
        for project, one in settings.projects.items()
        if name in (one.default, one.subagent_default)
    }
    if projects:
        patch["projects"] = projects
    return patch
