"""The files that `hotplug access` is asked about: settings, a host's tools, a lineage of threads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hotplug.cli.failure import Exit, report
from hotplug.cli.files import read_text
from hotplug.cli.output import Output
from hotplug.errors import ConfigError

if TYPE_CHECKING:
    from hotplug.access import Host, Thread
    from hotplug.store.settings import Looked, Saved, SettingsFile

__all__ = [
    "BasedOn",
    "HostFile",
    "LineageFile",
    "Settings",
    "answer",
    "looked_at",
    "read_host_file",
    "read_lineage_file",
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


def save(
    out: Output,
    file: SettingsFile,
    patch: Mapping[str, object],
    done: str,
    *,
    based_on: str | None = None,
    host: Path | None = None,
) -> int:
    """Save a patch in the person's role, and answer; a refusal is an error on stderr, and a no.

    Args:
        done: What the text says once it is done.
    """
    known = read_host_file(host)
    return answer(out, file, done, lambda: file.save(patch, role="person", host=known, based_on=based_on))


def answer(out: Output, file: SettingsFile, done: str, act: Callable[[], Saved]) -> int:
    """Do a save, and say what came of it."""
    from hotplug.access import PatchRefused

    try:
        saved = act()
    except PatchRefused as error:
        more: dict[str, object] = {"setting": error.setting}
        if error.others:
            more["others"] = [f"{other.message}: {other.fix}" for other in error.others]
        report("refused", error.message, hint=error.fix, form=out.format, more=more)
        return Exit.NO
    document = {
        "file": str(file.path),
        "version": saved.version,
        "previous": saved.previous,
        "changed": saved.changed,
    }
    text = f"{done} (version {saved.version})" if saved.changed else f"{file.path} said so already: nothing was written"
    out.answer("hotplug.access-save/1", document, lambda: text)
    return Exit.YES


def read_host_file(path: Path | None) -> Host | None:
    """What a host offers, as a file says it; None without one.

    Raises:
        ConfigError: The file can't be read, or has something else in it.
    """
    from hotplug.access import AccessError, read_host

    if path is None:
        return None
    try:
        return read_host(_text(path))
    except AccessError as error:
        raise ConfigError(f"{path}: {error}") from None


def read_lineage_file(path: Path | None) -> Mapping[str, Thread]:
    """Threads by their ids, as a file says it; without a file, none.

    Raises:
        ConfigError: The file can't be read, or has something else in it.
    """
    from hotplug.access import AccessError, read_lineage

    if path is None:
        return {}
    try:
        return read_lineage(_text(path))
    except AccessError as error:
        raise ConfigError(f"{path}: {error}") from None


def _text(path: Path) -> str:
    text = read_text(path)
    if text is None:
        raise ConfigError(f"there is no file {path}")
    return text
