"""The way into the command line: what needs no library is answered at once, every error becomes an exit code.

`hotplug`, `hotplug --help` and `hotplug --version` import nothing but this and the list of commands: Typer alone takes
as long as the whole answer may.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType
from typing import Final

from hotplug.cli.commands import COMMANDS

__all__ = ["main", "root_help"]

_COMPLETION: Final = "_HOTPLUG_COMPLETE"

_HELP: Final = """\
Usage: hotplug COMMAND [ARGS]...

  Plug in an MCP server your agent has never seen, and it works.

Commands:
{commands}

Options:
  --version             Show the version and exit.
  --install-completion  Install completion for the current shell.
  --show-completion     Show completion for the current shell.
  -h, --help            Show this message and exit.

`hotplug COMMAND --help` says more. Exit codes: 0 yes, 1 no, 2 usage or
configuration, 3 authentication, 4 unreachable or not MCP, 5 could not be
decided, 70 our bug.
"""


def root_help() -> str:
    """The text of `hotplug --help`."""
    width = max(len(name) for name in COMMANDS)
    return _HELP.format(commands="\n".join(f"  {name:<{width}}  {command.help}" for name, command in COMMANDS.items()))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and give its exit code.

    Args:
        arguments: Those after the program's name; None means the process's own.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    if _COMPLETION not in os.environ:
        if not given or given in (["--help"], ["-h"]):
            sys.stdout.write(root_help())
            return 0
        if given == ["--version"]:
            sys.stdout.write(f"hotplug {_version()}\n")
            return 0
    if arguments is None:
        _end_as_interrupted()
    from hotplug.cli.run import run

    return run(given)


def _end_as_interrupted() -> None:
    """Let a polite kill and a closed terminal end a command as Ctrl-C does: what it started is stopped and removed."""
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        # One that was ignored when we were started (nohup) stays ignored.
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _interrupt)


def _interrupt(number: int, frame: FrameType | None) -> None:
    signal.raise_signal(signal.SIGINT)


def _version() -> str:
    from hotplug.cli.version import version

    return version()
