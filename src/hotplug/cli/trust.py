"""`hotplug trust`: which projects' files count."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from hotplug.cli.command import command, group
from hotplug.cli.failure import Exit
from hotplug.cli.output import Output
from hotplug.cli.printing import block
from hotplug.errors import ConfigError

if TYPE_CHECKING:
    from hotplug.gateway.config_file import Project
    from hotplug.gateway.trust import ProjectFile, Trust

app = group("Let a project's hotplug.toml count.")


@command(app, "trust")
def trust(
    out: Output,
    file: Annotated[
        Path | None, typer.Argument(help="A project's hotplug.toml.", metavar="[FILE]", show_default=False)
    ] = None,
    listed: Annotated[
        bool, typer.Option("--list", help="Say which files are trusted, and whether they changed.")
    ] = False,
    forget: Annotated[bool, typer.Option("--forget", help="Trust FILE no more.")] = False,
) -> int:
    """Trust a project's hotplug.toml as it stands now, and say what that lets it do.

    Such a file counts for a gateway that is started in its folder or below it. It adds servers, whose commands are run,
    and narrows what threads get; it replaces no server of yours. When it changes it adds nothing until it is trusted
    again, and what it narrowed goes on to hold.

    Exit codes: 0 done, 1 --forget of a file that wasn't trusted, 2 the file can't be used.
    """
    from hotplug.gateway.trust import Trust, read_project

    known = Trust()
    out.used(f"trusted files are remembered in {known.path}")
    if listed:
        if file is not None or forget:
            raise ConfigError("--list stands alone", hint="hotplug trust --list")
        return _list(out, known)
    if file is None:
        raise ConfigError("a file is missing", hint="hotplug trust FILE, or hotplug trust --list")
    if forget:
        was = known.forget(file)
        text = f"{file} is trusted no more" if was else f"{file} wasn't trusted"
        out.answer("hotplug.trust/1", {"file": str(file), "trusted": False, "changed": was}, lambda: text)
        return Exit.YES if was else Exit.NO
    project = read_project(file)
    said = project.parse()
    before = known.standing(project)
    known.add(project)
    for notice in said.warnings:
        out.note(f"warning: {notice}")
    body = {
        "file": str(project.path),
        "trusted": True,
        "changed": before != "trusted",
        "digest": f"sha256:{project.digest}",
        "servers": [_server(name, one) for name, one in said.servers.items()],
        "broken": {name: str(error) for name, error in said.broken.items()},
        "narrows": said.narrowing is not None,
    }
    out.answer("hotplug.trust/1", body, lambda: _text(project, said))
    return Exit.YES


def _server(name: str, config: Any) -> dict[str, Any]:
    from hotplug.connect.secrets import SecretName
    from hotplug.gateway.server_entry import held_by

    secrets = sorted({one.name for one in held_by(config.target).values() if isinstance(one, SecretName)})
    return {"name": name, "target": config.target.describe(), "secrets": secrets}


def _text(file: ProjectFile, said: Project) -> str:
    lines = [f"{file.path} is trusted as it stands"]
    for name, config in said.servers.items():
        lines.append(f"  adds the server {getattr(config.target, 'launch', config.target)} as {name}")
        secrets = _server(name, config)["secrets"]
        if secrets:
            lines.append(f"    it asks for the secrets {', '.join(secrets)}: it gets those that name it as a place")
    lines += [f"  can't use {name}: {error.message}" for name, error in said.broken.items()]
    if said.narrowing is not None:
        profile = said.narrowing.profile
        lines.append(f"  leaves threads the servers {_names(profile.servers)}, the groups {_names(profile.groups)}")
        for server, rule in profile.tools.items():
            kept = f"only {_names(rule.allow)}" if isinstance(rule.allow, frozenset) else "all"
            without = f" but {_names(rule.deny)}" if rule.deny else ""
            lines.append(f"    of {server} {kept}{without}")
    if len(lines) == 1:
        lines.append("  it adds nothing and narrows nothing")
    return block(lines)


def _names(names: object) -> str:
    return (", ".join(sorted(cast("frozenset[str]", names))) or "none") if isinstance(names, frozenset) else "all"


def _list(out: Output, known: Trust) -> int:
    from hotplug.gateway.trust import read_project

    files: list[dict[str, Any]] = []
    for one in known.list():
        try:
            standing = known.standing(read_project(one.path))
        except ConfigError:
            standing = "missing"
        files.append({"file": str(one.path), "standing": standing, "at": one.at.isoformat()})
    text = block(f"{entry['file']}  {entry['standing']}, trusted {entry['at']}" for entry in files)
    out.answer("hotplug.trust-list/1", {"files": files}, lambda: text or "no file is trusted")
    return Exit.YES
