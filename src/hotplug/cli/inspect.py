"""`hotplug inspect`: what a server is, what it speaks, and what it lacks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import anyio
import typer

from hotplug.cli.command import command, group
from hotplug.cli.failure import Exit
from hotplug.cli.lookup import find_profile
from hotplug.cli.output import Output
from hotplug.cli.targets import AfterDashes, Given, Launching, given, one_of

if TYPE_CHECKING:
    from hotplug.cli.inspect_server import Looked

app = group("What a server is, speaks and lacks.")


@command(app, "inspect", cls=Launching)
def inspect(
    out: Output,
    target: Annotated[
        list[str] | None,
        typer.Argument(help="The server; its command goes after --.", metavar="TARGET", show_default=False),
    ] = None,
    profile: Annotated[
        str | None, typer.Option(help="Only look for this profile; by default for all.", show_default=False)
    ] = None,
    projection: Annotated[
        str | None, typer.Option(help="A projection by name or file, to see what it would offer.", show_default=False)
    ] = None,
    timeout: Annotated[
        float, typer.Option(help="Seconds until the server must have answered, with all its tools.", min=0.001)
    ] = 60.0,
    command_word: AfterDashes = None,
) -> int:
    """Say what a server is, what it speaks and what it lacks. No tool of it is called.

    \b
    hotplug inspect -- npx -y caldav-mcp
    hotplug inspect https://example.org/mcp

    Exit codes: 0 it could be looked at and holds what it declares, 1 it contradicts what it declares, a projection
    can't be used with it, or its list of tools can't be read, 4 it can't be reached.
    """
    from hotplug.cli.inspect_text import text

    server = given(out, one_of(target, command_word))
    name = find_profile(profile).definition.name if profile else None
    looked = anyio.run(_look, server, name, projection, timeout)
    out.answer("hotplug.inspect/1", looked.document(), lambda: text(server.label, looked))
    return Exit.NO if looked.wrong else Exit.YES


async def _look(server: Given, profile: str | None, projection: str | None, limit: float) -> Looked:
    from hotplug.cli.inspect_server import look

    return await look(server, profile=profile, projection=projection, limit=limit)
