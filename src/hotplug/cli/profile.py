"""`hotplug profile`."""
from __future__ import annotations
from typing import Annotated
import typer
from hotplug.cli.command import command, group
from hotplug.cli.output import Output
app = group("Profiles: contracts for one kind of thing.")

@command(app, "show")
def show(out: Output, which: Annotated[str, typer.Argument(help="x")]) -> None:
    """Show it."""
    if which == "bug": raise KeyError("x\x1b[31m")
    out.answer("hotplug.x/1", {"a": "\x1b\u202e\U000e0041é"}, lambda: "x\x1b\u202e")
