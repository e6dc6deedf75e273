"""The `hotplug` command: one module a command, loaded when it is asked for."""

from hotplug.cli.front import main

__all__ = ["main"]
