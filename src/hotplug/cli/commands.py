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
    "serve": Command("hotplug.cli.serve", "Serve all your servers as one, each thread with what it may use"),
    "init": Command("hotplug.cli.init", "Write a hotplug.toml: your servers, from the clients that have them"),
    "server": Command("hotplug.cli.server", "List, add, remove and test the gateway's servers"),
    "doctor": Command("hotplug.cli.doctor", "Say whether your servers and this machine are in order"),
    "trust": Command("hotplug.cli.trust", "Let a project's hotplug.toml count"),
    "inspect": Command("hotplug.cli.inspect", "Say what a server is, speaks and lacks"),
    "call": Command("hotplug.cli.call", "Call one part of a server through its profile, or a raw tool"),
    "journey": Command("hotplug.cli.journey", "Play one agent journey on several backends and compare"),
    "projection": Command("hotplug.cli.projection", "Draft, check, try, freeze and compare projections"),
    "run": Command("hotplug.cli.runs", "Show and verify the record of a verification"),
    "adjudicate": Command("hotplug.cli.adjudicate", "Decide written-down cases by the verification protocol"),
    "access": Command("hotplug.cli.access", "Say and set which servers and tools a thread gets, and why"),
    "thread": Command("hotplug.cli.thread", "Open, fork, close and list the gateway's threads"),
    "log": Command("hotplug.cli.log", "Show the gateway's records of calls"),
    "profile": Command("hotplug.cli.profile", "Read, compare, start, document and publish profiles"),
}
"""In the order of the help: what a new user needs comes first."""
