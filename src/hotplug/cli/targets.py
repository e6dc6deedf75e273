"""Servers on the command line: one grammar everywhere, names looked up, and the file that was used told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
import typer.core

from hotplug.cli.output import Output
from hotplug.errors import ConfigError

if TYPE_CHECKING:
    from hotplug.connect import Target
    from hotplug.connect.serversfile import ServersFile

__all__ = ["CONFIGURATION", "AfterDashes", "Given", "Launching", "given", "given_entry", "one_of"]

CONFIGURATION: Final = "hotplug.toml"
"""The file in this folder in which servers are looked up by name."""

_WORD: Final = "--command-word"


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
        session: Options of the session: the file's secrets and the files for names.
    """

    target: Target
    file: str | None = None
    projection: str | None = None
    disabled: bool = False
    session: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def label(self) -> str:
        """What a person calls it: its name in the file, else the target."""
        name = getattr(self.target, "name", None)
        return name if self.file is not None and isinstance(name, str) else str(self.target)

    @property
    def variables(self) -> frozenset[str] | None:
        """The names of the variables that its launch sets; None for what takes none."""
        env = getattr(getattr(self.target, "launch", self.target), "env", None)
        return None if env is None else frozenset(env)

    def document(self) -> dict[str, Any]:
        """The target for JSON documents, with the file that was used; no credential is in it."""
        return self.target.describe()


def given(out: Output, word: object) -> Given:
    """The server that a word, or a list of words after `--`, means.

    Raises:
        ConfigError: It means none.
    """
    from hotplug.connect import NamedTarget, parse_target

    target = parse_target(word)
    files = _configuration()
    if isinstance(target, NamedTarget):
        from hotplug.connect.serversfile import find_server, read_servers

        entry = find_server(target, files)
        found = given_entry(read_servers(entry.file) if entry.file else None, entry, files)
    else:
        found = Given(target, session={"files": files})
    out.used(f"target: {found.target}" + (f" from {found.file}" if found.file else ""))
    return found


def given_entry(file: ServersFile | None, entry: Any, files: tuple[ServersFile, ...] = ()) -> Given:
    """The server of an entry of a configuration file.

    Raises:
        ConfigError: The file's secrets are described wrongly.
    """
    projection = entry.rest.get("projection")
    return Given(
        entry,
        file=entry.file,
        projection=_beside(entry.file, projection) if isinstance(projection, str) else None,
        disabled=entry.rest.get("disabled") is True,
        session={"files": files, **({"secrets": file.secrets()} if file else {})},
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


def _configuration() -> tuple[ServersFile, ...]:
    from hotplug.connect.serversfile import read_servers

    return (read_servers(CONFIGURATION),) if Path(CONFIGURATION).is_file() else ()
