"""Servers on the command line: one grammar everywhere, names looked up, and the file that was used told."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
import typer.core

from hotplug.cli.output import Output
from hotplug.cli.printing import did_you_mean
from hotplug.errors import ConfigError

if TYPE_CHECKING:
    from hotplug.connect import NamedTarget, Target
    from hotplug.connect.serversfile import ServersFile
    from hotplug.gateway.config import GatewayConfig, ServerConfig

__all__ = ["AfterDashes", "Given", "Launching", "given", "given_config", "given_entry", "one_of"]
__all__ += ["tell_unfilled"]

_WORD: Final = "--command-word"
_REFERENCE: Final = re.compile(r"\$\{[^{}]*\}")


class Launching(typer.core.TyperCommand):
    """A command that takes a server's own command after `--`, with whatever options that has."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if "--" in args:
            at = args.index("--")
            args = [*args[:at], *(f"{_WORD}={word}" for word in args[at + 1 :])]
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        metavars = [str(one.metavar) for one in self.params if one.param_type_name == "argument" and one.metavar]
        return ["[OPTIONS]", *metavars, "[-- COMMAND...]"]


AfterDashes = Annotated[list[str] | None, typer.Option(_WORD, hidden=True)]
"""The words after `--` of a `Launching` command."""


@dataclass(frozen=True)
class Given:
    """A server that was named, ready to be connected to.

    Args:
        target: What it is; a name is looked up already.
        file: The configuration file that its entry stands in.
        projection: The projection that the entry names.
        session: Options of the session: the file's secrets, and the name that they are given to.
        name: Its name in the gateway's configuration.
        profiles: The profiles that it has to speak, each with a range after an `@` maybe.
        limit: Seconds that its entry gives it to be ready.
    """

    target: Target
    file: str | None = None
    projection: str | None = None
    disabled: bool = False
    session: Mapping[str, Any] = field(default_factory=dict[str, Any])
    name: str | None = None
    profiles: tuple[str, ...] = ()
    limit: float | None = None

    @property
    def label(self) -> str:
        """What a person calls it: its name in the file, else the target."""
        if self.name is not None:
            return self.name
        name = getattr(self.target, "name", None)
        return name if self.file is not None and isinstance(name, str) else str(self.target)

    @property
    def unfilled(self) -> Mapping[str, str]:
        """Where its entry in another client's file holds what that client fills in: `headers.X` → `${TOKEN}`."""
        from hotplug.connect import CommandTarget, EntryTarget

        launch = self.target.launch if isinstance(self.target, EntryTarget) else None
        if launch is None or self.name is not None:
            return {}
        if isinstance(launch, CommandTarget):
            texts = {f"env.{name}": value for name, value in launch.env.items()}
            texts |= {f"args[{at - 1}]" if at else "command": word for at, word in enumerate(launch.argv)}
        else:
            texts = {"url": launch.url, **{f"headers.{name}": value for name, value in launch.headers.items()}}
        found = {place: _REFERENCE.search(text) for place, text in texts.items() if isinstance(text, str)}
        return {place: one[0] for place, one in found.items() if one is not None}

    @property
    def variables(self) -> frozenset[str] | None:
        """The names of the variables that its launch sets; None for what takes none."""
        env = getattr(getattr(self.target, "launch", self.target), "env", None)
        return None if env is None else frozenset(env)

    def document(self) -> dict[str, Any]:
        """The target for JSON documents, with the file that was used; no credential is in it."""
        return self.target.describe()


def tell_unfilled(out: Output, found: Given) -> None:
    """Say what of a server's entry isn't filled in here."""
    for place, reference in found.unfilled.items():
        out.note(
            f"warning: {found.label}: {place} holds {reference}, which isn't filled in here "
            f"(hotplug init --import {found.file} takes such servers over)"
        )


def given(out: Output, word: object) -> Given:
    """The server that a word, or a list of words after `--`, means.

    Raises:
        ConfigError: It means none.
    """
    from hotplug.connect import NamedTarget, parse_target

    target = parse_target(word)
    found = _named(target) if isinstance(target, NamedTarget) else Given(target)
    out.used(f"target: {found.target}" + (f" from {found.file}" if found.file else ""))
    tell_unfilled(out, found)
    return found


def _named(target: NamedTarget) -> Given:
    """A server by its name: in the file that is named, else in the gateway's configuration."""
    from hotplug.connect.serversfile import read_servers

    if target.file is not None and not target.file.endswith(".toml"):
        file = read_servers(target.file)
        return given_entry(file, file.server(target.name))
    config = _configuration(target.file)
    looked = str(config.path or target.file or "no configuration file was found")
    names = [*config.servers, *config.broken]
    name = target.name
    if name is None:
        if len(names) != 1:
            raise ConfigError(
                f"{looked} has {len(names)} servers: {', '.join(names) or 'none'}", hint=f"name one: {target.file}#NAME"
            )
        name = names[0]
    if name in config.broken:
        raise config.broken[name]
    if name not in config.servers:
        untrusted = next((one for one in config.warnings if one.fix and "hotplug trust" in one.fix), None)
        hint = did_you_mean(name, names) or (str(untrusted) if untrusted else None)
        where = (
            f"{looked} has no server {name!r}" if target.file else f"no server is named {name!r} (looked at: {looked})"
        )
        raise ConfigError(where, hint=hint or "a command goes after --, a file is file.json#name")
    return given_config(config.servers[name], config)


def _configuration(file: str | None) -> GatewayConfig:
    from hotplug.gateway.config_file import read_config
    from hotplug.gateway.trust import load_config

    if file is None:
        return load_config(start=Path.cwd())
    if not Path(file).expanduser().exists():
        raise ConfigError(f"there is no file {file}")
    return read_config(Path(file).expanduser())


def given_config(server: ServerConfig, config: GatewayConfig) -> Given:
    """The server of an entry of the gateway's configuration.

    Raises:
        ConfigError: It names another file's server, which can't be used.
    """
    from hotplug.connect import NamedTarget
    from hotplug.connect.serversfile import find_server

    target = find_server(server.target) if isinstance(server.target, NamedTarget) else server.target
    secrets = config.secrets
    if server.oauth:
        from hotplug.gateway.oauth import with_login

        target, secrets = with_login(server, target, secrets)
    return Given(
        target,
        file=str(server.file) if server.file else None,
        projection=server.projection,
        disabled=server.disabled,
        session={"secrets": secrets, "name": server.name},
        name=server.name,
        profiles=server.profiles,
        limit=server.start_timeout,
    )


def given_entry(file: ServersFile, entry: Any) -> Given:
    """The server of an entry of another client's file.

    Raises:
        ConfigError: The file's secrets are described wrongly.
    """
    projection = entry.rest.get("projection")
    return Given(
        entry,
        file=entry.file,
        projection=_beside(entry.file, projection) if isinstance(projection, str) else None,
        disabled=entry.rest.get("disabled") is True,
        session={"secrets": file.secrets()},
    )


def one_of(words: Sequence[str] | None, command: Sequence[str] | None, *, what: str = "a server") -> object:
    """The one target of a command that takes one: the word, or the command after `--`.

    Raises:
        ConfigError: None or both were given.
    """
    if words and command:
        raise ConfigError(f"{words[0]!r} and the command after -- both name {what}", hint="leave one out")
    if command:
        return list(command)
    if not words:
        raise ConfigError(f"{what} is missing", hint="name a target, or put its command after --")
    if len(words) > 1:
        raise ConfigError(f"{', '.join(words)} are {len(words)} targets, not one", hint="a command goes after --")
    return words[0]


def _beside(file: str | None, projection: str) -> str:
    """A projection's file is named from where the entry stands."""
    return str(Path(file).parent / projection) if file and projection.endswith((".yaml", ".yml")) else projection
