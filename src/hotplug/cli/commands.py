"""Which commands there are: name, the module that holds it, and its line in `hotplug --help`.

A command's module has `app`, a `typer.Typer` with verbs; one whose only verb has the command's own name is a plain verb
itself. Nothing here imports it: the list alone answers `--help`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

__all__ = ["COMMANDS", "Command"]


class Command(NamedTuple):
    """A command of the first level."""

    module: str
    help: str
    """One line, under 70 characters, without a full stop."""


COMMANDS: Final[Mapping[str, Command]] = {
    "demo": Command("hotplug.cli.demo", "See it work: one calendar journey on six unlike backends"),
    "journey": Command("hotplug.cli.journey", "Play one agent journey on several backends and compare"),
    "profile": Command("hotplug.cli.profile", "Read, compare, start, document and publish profiles"),
}
"""In the order of the help: what a new user needs comes first."""
