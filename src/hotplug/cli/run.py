"""Runs a command through Typer and turns whatever comes out of it into an exit code."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any, cast

import typer
import typer.main

from hotplug.cli.command import Noun
from hotplug.cli.commands import COMMANDS
from hotplug.cli.failure import Exit, exit_code, particulars, report
from hotplug.cli.front import root_help
from hotplug.cli.output import Format
from hotplug.cli.printing import did_you_mean
from hotplug.cli.version import version
from hotplug.errors import HotplugError

__all__ = ["run"]

_NO_SUCH_OPTION = re.compile(r"No such option: (?P<word>\S+)")
_NO_SUCH_COMMAND = re.compile(r"No such command '(?P<word>.*)'")
_NO_SUCH_VALUE = re.compile(r"'(?P<word>[^']*)' is not one of (?P<known>.*)")


class _Root(Noun):
    """The first level: a command's module is imported when that command, or its completion, is asked for."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        command: Any = typer.main.get_command(import_module(entry.module).app)
        verbs = getattr(command, "commands", {})
        if list(verbs) == [cmd_name]:
            # A module whose only command has the module's own name is a plain verb: `hotplug journey FILE`.
            command = verbs[cmd_name]
        command.name = cmd_name
        command.short_help = entry.help
        return command

    def format_help(self, ctx: Any, formatter: Any) -> None:
        formatter.write(root_help())


def _show_version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"hotplug {version()}\n")
        raise typer.Exit


def _application() -> Any:
    app = typer.Typer(
        cls=_Root,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        no_args_is_help=True,
        suggest_commands=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )

    @app.callback()
    def root(  # pyright: ignore[reportUnusedFunction]
        version: bool = typer.Option(
            False, "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
        ),
    ) -> None:
        """Plug in an MCP server your agent has never seen, and it works."""

    return typer.main.get_command(app)


def run(arguments: Sequence[str]) -> int:
    """The exit code of one command; its errors are written to stderr."""
    form, verbose = _asked_for(arguments)
    try:
        result = _application().main(list(arguments), prog_name="hotplug", standalone_mode=False)
        sys.stdout.flush()
    except typer.TyperException as error:
        return _usage(error, form)
    except (KeyboardInterrupt, typer.Abort):
        return Exit.INTERRUPTED
    except BrokenPipeError:
        # Python flushes stdout once more on its way out, which would complain again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.PIPE
    except Exception as error:
        return _failed(error, form, verbose)
    return int(result) if isinstance(result, int) else Exit.YES


def _asked_for(arguments: Sequence[str]) -> tuple[Format, int]:
    """The format and verbosity that the command line asks for, even one that can't be parsed."""
    form, verbose = Format.TEXT, 0
    words = iter(arguments)
    for word in words:
        if word == "--":
            break
        if word == "--json":
            form = Format.JSON
        elif word == "--format" or word.startswith("--format="):
            name = word.partition("=")[2] or next(words, "")
            form = Format(name) if name in set(Format) else form
        elif word == "--verbose":
            verbose += 1
        elif re.fullmatch(r"-v+", word):
            verbose += len(word) - 1
    return form, verbose


def _usage(error: typer.TyperException, form: Format) -> int:
    context: Any = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError":
        sys.stderr.write(error.format_message() + "\n")
        return Exit.USAGE
    message = error.format_message()
    hints: list[str] = []
    if (wrong := _NO_SUCH_OPTION.match(message)) and context is not None:
        message = wrong[0]
        hints += filter(None, [did_you_mean(wrong["word"], _options(context))])
    elif (wrong := _NO_SUCH_COMMAND.match(message)) and context is not None:
        message = wrong[0]
        hints += filter(None, [did_you_mean(wrong["word"], context.command.list_commands(context))])
    elif wrong := _NO_SUCH_VALUE.search(message):
        message = message.replace("Value error, ", "")
        hints += filter(None, [did_you_mean(wrong["word"], re.findall(r"'([^']*)'", wrong["known"]))])
    path = context.command_path if context is not None else "hotplug"
    hints.append(f"`{path} --help` shows what there is.")
    report("usage", message.rstrip("."), hint=" ".join(hints), form=form)
    return Exit.USAGE


def _options(context: Any) -> Iterator[str]:
    for parameter in context.command.get_params(context):
        yield from (option for option in parameter.opts if option.startswith("--"))


def _failed(error: Exception, form: Format, verbose: int) -> int:
    leaf = _ours(error)
    trace = error if verbose > 1 else None
    if leaf is not None:
        report(leaf.code, leaf.message, hint=leaf.hint, form=form, more=particulars(leaf), trace=trace)
        return exit_code(leaf)
    report(
        "bug",
        f"this is a bug in Hotplug: {type(error).__name__}: {error}",
        hint="Please report it, with what the same command prints with -vv."
        if trace is None
        else "Please report it with the lines above.",
        form=form,
        trace=trace,
    )
    return Exit.BUG


def _ours(error: BaseException) -> HotplugError | None:
    """The error of ours in what was raised, which task groups may have wrapped."""
    if isinstance(error, HotplugError):
        return error
    if isinstance(error, BaseExceptionGroup):
        parts = cast("BaseExceptionGroup[BaseException]", error).exceptions
        return next(filter(None, (_ours(one) for one in parts)), None)
    return None
