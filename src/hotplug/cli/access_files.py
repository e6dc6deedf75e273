"""The files that `hotplug access` is asked about: settings, a host's tools, a lineage of threads."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from hotplug.cli.failure import Exit, report
from hotplug.cli.files import read_text
from hotplug.cli.output import Output
from hotplug.cli.printing import did_you_mean
from hotplug.errors import ConfigError

if TYPE_CHECKING:
    from hotplug.access import Host, PatchRefused, Thread
    from hotplug.store.settings import Looked, SettingsFile

__all__ = [
    "BasedOn",
    "HostFile",
    "LineageFile",
    "Settings",
    "looked_at",
    "read_host",
    "read_lineage",
    "save",
    "settings_file",
]

Settings = Annotated[
    Path | None,
    typer.Option(
        "--settings",
        help="The settings file. [default: what HOTPLUG_SETTINGS names, else settings.json in the user's folder of "
        "configuration]",
        metavar="FILE",
        show_default=False,
    ),
]
HostFile = Annotated[
    Path | None,
    typer.Option(
        "--host",
        help='What there is to be had, as JSON: {"servers": {NAME: [TOOLS]}, "toolkits": {NAME: {"group": NAME, '
        '"tools": [TOOLS]}}, "ungrouped": {TOOL: TOOLKIT}}.',
        metavar="FILE",
        show_default=False,
    ),
]
LineageFile = Annotated[
    Path | None,
    typer.Option(
        "--lineage",
        help='Where threads come from, as JSON: {THREAD: {"parent": THREAD, "delegated": true, "project": NAME}}.',
        metavar="FILE",
        show_default=False,
    ),
]
BasedOn = Annotated[
    str | None,
    typer.Option(
        "--based-on",
        help="The version that you looked at: refused if somebody changed the same setting since.",
        metavar="VERSION",
        show_default=False,
    ),
]


def settings_file(out: Output, path: Path | None) -> SettingsFile:
    """The settings file that is meant; told with `-v`."""
    from hotplug.store.settings import SettingsFile, default_settings_path

    file = SettingsFile(default_settings_path() if path is None else path)
    out.used(f"settings: {file.path}")
    return file


def looked_at(out: Output, file: SettingsFile) -> Looked:
    """What the file says now; loud where a copy stands in for it."""
    looked = file.look()
    if looked.problem is not None:
        instead = f"shown is version {looked.version}" if looked.stands_in else "every thread is refused"
        out.note(f"warning: {looked.problem}; {instead}. {looked.fix}".rstrip("."))
    return looked


def save(out: Output, file: SettingsFile, patch: Mapping[str, object], *, based_on: str | None, host: Host | None) -> int:
    """Save a patch in the person's role, and answer; a refusal is an error on stderr, and a no."""
    from hotplug.access import PatchRefused

    try:
        saved = file.save(patch, role="person", host=host, based_on=based_on)
    except PatchRefused as error:
        return refused(out, error)
    return 0
