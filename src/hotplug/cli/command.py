"""`@command`: a function becomes a command that takes `--format`, `--json` and `-v`, and answers via `Output`."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable
from typing import Annotated, Any, Concatenate, Final, ParamSpec, get_type_hints

import typer
import typer.core

from hotplug.cli.output import Format, Output

__all__ = ["Noun", "command", "group"]

P = ParamSpec("P")

_SHARED: Final = (
    (
        "format",
        Format.TEXT,
        Annotated[Format, typer.Option("--format", help="How to write the answer.", show_choices=True)],
    ),
    ("json", False, Annotated[bool, typer.Option("--json", help="The same as --format json.")]),
    (
        "verbose",
        0,
        Annotated[
            int,
            typer.Option(
                "--verbose", "-v", count=True, help="Say what was used; -vv adds tracebacks.", show_default=False
            ),
        ],
    ),
)


_FLAGS: Final = re.compile(r"--json|--format=.*|--verbose|-v+")


class Noun(typer.core.TyperGroup):
    """A command with verbs. Options that every verb has may stand before the verb too: their order means nothing."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        count = 0
        while count < len(args) and (_FLAGS.fullmatch(args[count]) or args[count] == "--format"):
            count += 2 if args[count] == "--format" else 1
        if count < len(args):
            args = [args[count], *args[:count], *args[count + 1 :]]
        return super().parse_args(ctx, args)


def group(about: str, *, cls: type[Noun] = Noun) -> typer.Typer:
    """The Typer application of a command's module; `about` is what its help says first."""
    return typer.Typer(
        cls=cls,
        help=about,
        suggest_commands=False,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        no_args_is_help=True,
        context_settings={"help_option_names": ["-h", "--help"]},
        callback=lambda: None,
    )


def command(
    app: typer.Typer, name: str, *, cls: type[typer.core.TyperCommand] | None = None
) -> Callable[[Callable[Concatenate[Output, P], int | None]], Callable[Concatenate[Output, P], int | None]]:
    """Add a function to `app` as the command `name`; the docstring is its help.

    Its first parameter is the `Output`; the others are the command's own. It returns the exit code, or None for 0, and
    raises errors of `hotplug.errors`: nothing in it prints or exits.

    Args:
        cls: The class of the command, for one that reads its words in another way.
    """

    def register(
        function: Callable[Concatenate[Output, P], int | None],
    ) -> Callable[Concatenate[Output, P], int | None]:
        @functools.wraps(function)
        def run(**arguments: Any) -> int | None:
            chosen: Format = arguments.pop("format")
            if arguments.pop("json"):
                chosen = Format.JSON
            out = Output(chosen, arguments.pop("verbose"))
            from hotplug.cli.logs import route_logs

            route_logs(out)
            return function(out, **arguments)  # pyright: ignore[reportCallIssue]

        hints = get_type_hints(function, include_extras=True)
        own = list(inspect.signature(function).parameters.values())[1:]
        parameters = [
            parameter.replace(annotation=hints[parameter.name], kind=inspect.Parameter.KEYWORD_ONLY)
            for parameter in own
        ]
        parameters += [
            inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
            for key, default, annotation in _SHARED
        ]
        run.__signature__ = inspect.Signature(parameters)  # pyright: ignore[reportAttributeAccessIssue]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        app.command(name, cls=cls)(run)
        return function

    return register
