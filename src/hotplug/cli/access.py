"""`hotplug access`: which outside servers, groups and tools a thread gets, and who decided that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from hotplug.cli.access_files import (
    BasedOn,
    HostFile,
    LineageFile,
    Settings,
    answer,
    looked_at,
    read_host_file,
    read_lineage_file,
    save,
    settings_file,
)
from hotplug.cli.access_profile import app as profile_app
from hotplug.cli.command import command, group
from hotplug.cli.failure import Exit
from hotplug.cli.output import Output
from hotplug.cli.printing import did_you_mean
from hotplug.errors import ConfigError

if TYPE_CHECKING:
    from hotplug.access import Host

app = group("Access: which outside servers, groups and tools a thread gets. A save from here is the owner's.")
app.add_typer(profile_app, name="profile")

_KEYS = ("mcpProfile", "mcpSubagentProfile")
_ELSEWHERE = {"mcpThreadProfiles": "pick", "mcpProfiles": "profile"}


@command(app, "show")
def show(out: Output, settings: Settings = None) -> None:
    """Show the settings, and what in the file can't be used."""
    from hotplug.cli.access_text import settings_document, settings_text

    looked = looked_at(out, file := settings_file(out, settings))
    document = settings_document(str(file.path), looked)
    out.answer("hotplug.access-show/1", document, lambda: settings_text(str(file.path), looked))


@command(app, "explain")
def explain(
    out: Output,
    thread: Annotated[str, typer.Argument(help="The thread's id.", show_default=False)],
    lineage: LineageFile = None,
    host: HostFile = None,
    tool: Annotated[
        str | None,
        typer.Option(
            "--tool",
            help="Decide on this tool of an outside server, or of a toolkit of the host's.",
            metavar="SERVER/TOOL",
            show_default=False,
        ),
    ] = None,
    settings: Settings = None,
) -> int:
    """Tell step by step what a thread gets, and why.

    Without --lineage THREAD is taken as one that has no parent and no project; without --host nobody knows which tools
    there are, so only the profiles are told.

    Exit codes: 0 it gets the tool of --tool, or without one, it isn't refused; 1 it doesn't, 2 it can't be asked.
    """
    from hotplug.access import Host, Thread
    from hotplug.access import explain as explained
    from hotplug.cli.access_text import explanation_text

    known = read_host_file(host)
    asked = None if tool is None or known is None else _split(tool, known)
    if tool is not None and known is None:
        raise ConfigError("--tool needs --host", hint="without it nobody knows which tools there are")
    looked = looked_at(out, file := settings_file(out, settings))
    threads = {thread: Thread(thread)} if lineage is None else read_lineage_file(lineage)
    found = explained(looked.settings, thread, threads, known or Host(), tool=asked)
    document = {"file": str(file.path), "version": looked.version, **found.document()}
    if known is None and isinstance(access := document.get("access"), dict):
        # What is there isn't known: no list of it may read as none.
        document["access"] = {"profiles": access["profiles"]}
    out.answer(
        "hotplug.access-explain/1",
        document,
        lambda: explanation_text(found, lineage=lineage is not None, host=known is not None),
    )
    return Exit.YES if found.allowed else Exit.NO


def _split(word: str, host: Host) -> tuple[str, str]:
    """Server and tool; a slash in a server's own name is no end of it."""
    cuts = [at for at, one in enumerate(word) if one == "/"]
    if not cuts:
        raise ConfigError(f"--tool {word!r} isn't SERVER/TOOL", hint="for example `--tool mail/send`")
    at = next((at for at in cuts if word[:at] in host.servers or word[:at] in host.toolkits), cuts[0])
    return word[:at], word[at + 1 :]


@command(app, "check")
def check(out: Output, host: HostFile = None, settings: Settings = None) -> int:
    """Find what can't be used or matches nothing.

    That is: values that can't be read, names of profiles that aren't there, and with --host names of servers, groups
    and tools that aren't there. The host is checked as well.

    Exit codes: 0 nothing is wrong, 1 something is, 2 it can't be checked.
    """
    from hotplug.access import check as checked
    from hotplug.cli.access_text import findings_text

    known = read_host_file(host)
    looked = looked_at(out, file := settings_file(out, settings))
    findings = checked(looked.settings, known)
    rows = [one.document() for one in findings]
    document: dict[str, Any] = {"file": str(file.path), "version": looked.version}
    if looked.problem is not None:
        document |= {"problem": looked.problem, "fix": looked.fix}
    out.answer(
        "hotplug.access-check/1",
        {**document, "findings": rows},
        lambda: findings_text(findings, str(file.path)),
        rows=("hotplug.access-check.finding/1", rows),
    )
    return Exit.NO if findings or looked.problem is not None else Exit.YES


@command(app, "set")
def set_(
    out: Output,
    key: Annotated[str, typer.Argument(help="mcpProfile or mcpSubagentProfile.", show_default=False)],
    value: Annotated[
        str | None, typer.Argument(help="A profile, all, host-only; for sub-agents inherit too.", show_default=False)
    ] = None,
    unset: Annotated[bool, typer.Option("--unset", help="Take it out: what it is without being set applies.")] = False,
    project: Annotated[
        str | None, typer.Option("--project", help="For the threads of this project only.", show_default=False)
    ] = None,
    based_on: BasedOn = None,
    settings: Settings = None,
) -> int:
    """Set the default profile of threads or sub-agents.

    Exit codes: 0 saved, 1 refused, 2 it can't be done as it stands.
    """
    if key not in _KEYS:
        other = _ELSEWHERE.get(key)
        hint = f"`hotplug access {other}` changes it" if other else did_you_mean(key, _KEYS)
        raise ConfigError(f"{key!r} can't be set here", hint=hint or f"it is one of {', '.join(_KEYS)}")
    if (value is None) is not unset:
        raise ConfigError(f"{key} needs a value or --unset, and not both", hint=f"`hotplug access set {key} host-only`")
    patch: dict[str, Any] = {key: value}
    where = f"projects.{project}.{key}" if project is not None else key
    done = f"{where} is not set any more" if value is None else f"{where} is {value}"
    return save(
        out,
        settings_file(out, settings),
        patch if project is None else {"projects": {project: patch}},
        done,
        based_on=based_on,
    )


@command(app, "pick")
def pick(
    out: Output,
    thread: Annotated[str, typer.Argument(help="The thread's id.", show_default=False)],
    profile: Annotated[str | None, typer.Argument(help="A profile, all or host-only.", show_default=False)] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Take the pick away: the default applies again.")] = False,
    based_on: BasedOn = None,
    settings: Settings = None,
) -> int:
    """Pick a profile for one thread. It is final: for a child too, whatever its parent has.

    Exit codes: 0 saved, 1 refused, 2 it can't be done as it stands.
    """
    if (profile is None) is not remove:
        raise ConfigError(
            "a pick needs a profile or --remove, and not both", hint=f"`hotplug access pick {thread} all`"
        )
    done = f"thread {thread} has no pick any more" if profile is None else f"thread {thread} gets {profile}"
    patch = {"mcpThreadProfiles": {thread: profile}}
    return save(out, settings_file(out, settings), patch, done, based_on=based_on)


@command(app, "history")
def history(out: Output, settings: Settings = None) -> None:
    """List the versions that are kept, newest first.

    Each is one that was saved, or an edit by hand as it was first seen.
    """
    file = settings_file(out, settings)
    rows = [
        {
            "version": one.version,
            "kept": one.kept.isoformat(timespec="seconds").replace("+00:00", "Z"),
            "current": one.current,
            "readable": one.readable,
        }
        for one in file.history()
    ]

    def text() -> str:
        marks = {True: "  is in the file now", False: ""}
        lines = [
            f"{row['version']}  {row['kept']}{marks[bool(row['current'])]}{'' if row['readable'] else '  no settings'}"
            for row in rows
        ]
        return "\n".join(lines) or f"no version of {file.path} is kept yet"

    out.answer(
        "hotplug.access-history/1",
        {"file": str(file.path), "versions": rows},
        text,
        rows=("hotplug.access-history.version/1", rows),
    )


@command(app, "restore")
def restore(
    out: Output,
    version: Annotated[str, typer.Argument(help="The version, or its beginning.", show_default=False)],
    settings: Settings = None,
) -> int:
    """Put a kept version in place of the settings.

    Whatever stands there now is replaced, and kept as a version itself.

    Exit codes: 0 restored, 2 it can't be done as it stands.
    """
    file = settings_file(out, settings)
    return answer(out, file, f"{file.path} is as it was", lambda: file.restore(version, role="person"))
