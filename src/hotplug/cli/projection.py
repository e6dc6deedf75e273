"""`hotplug projection`: draft, check, try, show, freeze and compare projections."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import anyio
import typer

from hotplug.cli.command import command, group
from hotplug.cli.failure import Exit
from hotplug.cli.files import write_whole
from hotplug.cli.lookup import find_profile
from hotplug.cli.output import Output
from hotplug.cli.printing import block
from hotplug.cli.targets import AfterDashes, Given, Launching, given, one_of
from hotplug.errors import ConfigError

if TYPE_CHECKING:
    from hotplug.cli.projection_live import Upstream
    from hotplug.conform.journey import Journey, JourneyReport
    from hotplug.projection import Loaded

app = group("Projections: unmodified servers presented as a profile.")


def _names(incomplete: str) -> list[str]:
    from hotplug.projection import shipped

    return [one.name for one in shipped() if one.name.startswith(incomplete)]


Which = Annotated[
    str,
    typer.Argument(
        help="A projection's file, or the name of one that comes with Hotplug or an installed package.",
        metavar="FILE|NAME",
        autocompletion=_names,
        show_default=False,
    ),
]
File = Annotated[Path, typer.Argument(help="The projection's file.", metavar="FILE", show_default=False)]
On = Annotated[
    str | None,
    typer.Option("--target", help="The server; its command may also stand after --.", show_default=False),
]
Limit = Annotated[float, typer.Option("--timeout", help="Seconds until the server must have answered.", min=0.001)]


def _load(out: Output, word: str) -> Loaded:
    from hotplug.projection import named

    loaded = named(word)
    out.used(f"projection: {loaded.name} {loaded.source.document.version} from {loaded.path}")
    return loaded


def _server(out: Output, target: str | None, words: list[str] | None) -> Given:
    return given(out, one_of([target] if target else None, words))


def _live(server: Given, limit: float) -> Upstream:
    from hotplug.cli.projection_live import upstream_of

    return anyio.run(upstream_of, server, limit)


@command(app, "new", cls=Launching)
def new(
    out: Output,
    profile: Annotated[
        str, typer.Option(help="The profile that the server is to be presented as.", show_default=False)
    ],
    target: On = None,
    to: Annotated[
        Path | None, typer.Option("--output", "-o", help="The file; by default the package's name.", show_default=False)
    ] = None,
    limit: Limit = 120.0,
    command_word: AfterDashes = None,
) -> None:
    """Draft a projection: start the server, read its tools, and find a tool for each operation by names and schemas.

    hotplug projection new --profile calendar -- npx -y caldav-mcp

    Writes the document and its tool list beside it; no tool of the server is called. Everything unsure is marked TODO,
    which `check` and `freeze` refuse: a draft is read by a person.
    """
    from hotplug.cli.projection_freeze import tools_path, tools_text
    from hotplug.cli.projection_new import free_path, score_document, scores_text
    from hotplug.projection.draft import SURE, draft

    found = find_profile(profile)
    server = _server(out, target, command_word)
    if to is not None:
        free_path(to, "")
    out.progress(f"starting {server.label} …")
    upstream = _live(server, limit)
    path = free_path(to, upstream.package)
    made = draft(found.document, upstream.tools, upstream.package, upstream.version)
    write_whole({path: made.yaml_text, tools_path(path): tools_text(upstream.tools)})
    todos = sum("TODO" in line for line in made.yaml_text.splitlines())
    body = {
        "target": server.document(),
        "profile": f"{found.definition.name} {found.definition.version}",
        "package": upstream.package,
        "version": upstream.version,
        "file": str(path),
        "tools": str(tools_path(path)),
        "toolCount": len(upstream.tools),
        "todos": todos,
        "scores": [score_document(score) for score in made.scores],
    }

    def text() -> str:
        lines = [scores_text(made.scores, sure=SURE), "", f"wrote {path} and {tools_path(path)}"]
        return "\n".join([*lines, f"next: decide its {todos} TODOs, then hotplug projection check {path}"])

    out.answer("hotplug.projection-new/1", body, text)


@command(app, "check")
def check(
    out: Output,
    file: Which,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 for warnings too.")] = False,
) -> int:
    """Check a projection without a server: that it is valid, loses nothing in silence, and fits its profile.

    Exit codes: 0 nothing wrong, 1 errors (with --strict also warnings), 2 it can't be read as a projection at all.
    """
    from hotplug.cli.projection_check import counts, finding_document, findings_of, findings_text

    loaded = _load(out, file)
    findings = findings_of(loaded.source, loaded.tools, loaded.path)
    many = counts(findings)
    bad = bool(many["errors"] or (strict and many["warnings"]))
    body = {
        "projection": loaded.name,
        "version": loaded.source.document.version,
        "file": str(loaded.path),
        "passed": not bad,
        **many,
        "findings": [finding_document(one) for one in findings],
    }
    out.answer("hotplug.projection-check/1", body, lambda: findings_text(findings))
    return Exit.NO if bad else Exit.YES


@command(app, "show")
def show(out: Output, which: Which) -> None:
    """Show what a projection does: operations × tools, and everything that is refused, not exact or missing."""
    from hotplug.cli.projection_show import document_of, text_of

    body = document_of(_load(out, which))
    out.answer("hotplug.projection-show/1", body, lambda: text_of(body))


@command(app, "test", cls=Launching)
def try_it(
    out: Output,
    which: Which,
    target: On = None,
    radicale: Annotated[
        bool, typer.Option("--radicale", help="Start a real CalDAV server on loopback for it, and read what it stored.")
    ] = False,
    env: Annotated[
        list[str] | None,
        typer.Option(
            "--env",
            help="A variable for the server, NAME=VALUE; {url}, {home}, {user}, {password} are Radicale's.",
            show_default=False,
        ),
    ] = None,
    journey: Annotated[
        str | None, typer.Option(help="Another journey than the calendar day.", show_default=False)
    ] = None,
    limit: Limit = 300.0,
    command_word: AfterDashes = None,
) -> int:
    """Play a day with a calendar through a projection, on a live server.

    \b
    hotplug projection test caldav-mcp --radicale
    hotplug projection test my.yaml --radicale --env CALDAV_URL={home} \\
        --env CALDAV_USER={user} --env CALDAV_PASS={password} -- uvx my-server

    It creates, moves and deletes events: name an account where that does no harm. Without --target and a command,
    --radicale starts the projection's own package.

    Exit codes: 0 what is asked of every backend was done, and nothing failed; 1 not so; 5 it could not be played, or
    with --radicale a claim of the journey was left open.
    """
    from hotplug.cli.journey import exit_code
    from hotplug.cli.journey_text import report_text
    from hotplug.conform.journey import load
    from hotplug.examples import CALENDAR_DAY

    loaded = _load(out, which)
    server = _server(out, target, command_word) if target or command_word or not radicale else None
    played = load(journey or CALENDAR_DAY)
    report = anyio.run(_test, out, loaded, played, server, list(env or ()), radicale, limit)
    # Without --radicale nobody looks at what is stored: what the journey claims stays open, as it must.
    code = exit_code(report, unwitnessed=not radicale)

    def text() -> str:
        title = f"{played.title} through {loaded.name} {loaded.source.document.version}"
        table = report_text(report, title=title).removesuffix(report.line)
        return f"{table}{'✓ it passes' if code == Exit.YES else '✗ it does not pass'}"

    out.answer(
        "hotplug.journey-report/1",
        {key: value for key, value in report.document().items() if key != "schema"},
        text,
    )
    return code


async def _test(
    out: Output, loaded: Loaded, journey: Journey, server: Given | None, env: list[str], radicale: bool, limit: float
) -> JourneyReport:
    from hotplug.cli.projection_test import environment, play_through, stage

    async with stage(out, loaded, server, environment(env), radicale=radicale) as on:
        return await play_through(out, loaded, journey, on, limit)


@command(app, "freeze", cls=Launching)
def freeze(out: Output, file: File, target: On = None, limit: Limit = 120.0, command_word: AfterDashes = None) -> int:
    """Write the digests of the tool list and of the code into a projection; comments and layout stay.

    With a server its present tools are taken, and written beside the document; without one the list that lies there.
    Refused with exit code 1, and nothing written, while a TODO is left or the check finds an error.
    """
    from hotplug.cli.projection_check import finding_document, findings_text
    from hotplug.cli.projection_freeze import freeze as plan
    from hotplug.cli.projection_freeze import tools_path
    from hotplug.projection import tool_list, tools_digest

    server = _server(out, target, command_word) if target or command_word else None
    if server is None and not tools_path(file).is_file():
        raise ConfigError(f"there is no {tools_path(file)}", hint="name its server with --target, or put it after --")
    tools: Any = _live(server, limit).tools if server else tool_list(file)
    frozen = plan(file, tools)
    changed = [path for path, text in frozen.texts.items() if not path.is_file() or _differs(path, text)]
    if server is None:
        # The list beside it was not read from a server: its bytes stay.
        changed = [path for path in changed if path != tools_path(file)]
    if not frozen.refused:
        write_whole({path: frozen.texts[path] for path in changed})
    document = frozen.source.document
    body: dict[str, Any] = {
        "projection": document.projection,
        "version": document.version,
        "file": str(file),
        "frozen": not frozen.refused,
        "toolsDigest": tools_digest(tools),
        "codeDigest": frozen.code_digest,
        "written": [] if frozen.refused else [str(path) for path in changed],
        "findings": [finding_document(one) for one in frozen.findings],
    }
    if server is not None:
        body["target"] = server.document()

    def text() -> str:
        if frozen.refused:
            return findings_text(frozen.findings, verdict="✗ not frozen, nothing was written")
        wrote = ", ".join(str(path) for path in changed)
        verdict = f"✓ frozen: {wrote} written" if wrote else "✓ frozen already: nothing to write"
        return findings_text(frozen.findings, verdict=verdict)

    out.answer("hotplug.projection-freeze/1", body, text)
    return Exit.NO if frozen.refused else Exit.YES


def _differs(path: Path, text: str) -> bool:
    return path.read_bytes() != text.encode("utf-8")


@command(app, "diff", cls=Launching)
def diff(out: Output, which: Which, target: On = None, limit: Limit = 120.0, command_word: AfterDashes = None) -> int:
    """Compare the tools that a projection was frozen with to what its server lists now; no tool is called.

    Exit codes: 0 nothing that it uses is different, 1 a tool that it uses is gone or changed, or it was
    never frozen.
    """
    from hotplug.cli.projection_drift import broken_by, changes_of, used_tools
    from hotplug.projection import drift

    loaded = _load(out, which)
    server = _server(out, target, command_word)
    live = _live(server, limit)
    changes = drift(loaded.tools, live.tools)
    broken = broken_by(loaded.source, changes)
    frozen = loaded.source.document.upstream.tools is not None
    used = used_tools(loaded.source)
    old = {str(tool["name"]): tool for tool in loaded.tools}
    now = {str(tool["name"]): tool for tool in live.tools}
    details = {name: changes_of(old[name], now[name]) for name in changes.changed}
    body = {
        "projection": loaded.name,
        "version": loaded.source.document.version,
        "file": str(loaded.path),
        "target": server.document(),
        **{key: list(names) for key, names in asdict(changes).items()},
        "details": details,
        "broken": list(broken),
        "usable": frozen and not broken,
    }

    def text() -> str:
        lines = [
            f"{'✗' if name in used else '-'} {name} is gone" + (" (used)" if name in used else "")
            for name in changes.removed
        ]
        for name in changes.changed:
            lines.append(f"{'✗' if name in used else '!'} {name} changed" + (" (used)" if name in used else ""))
            lines += [f"    {change}" for change in details[name]]
        lines += [f"+ {name} is new" for name in changes.added]
        if not frozen:
            lines.append("✗ it is not frozen, so there is nothing to compare with: `hotplug projection freeze` does it")
            return block(lines)
        lines += [f"· {name}: only words" for name in changes.prose]
        if broken:
            return block([*lines, f"✗ it can't be used until it is reviewed and frozen again: {', '.join(broken)}"])
        return block([*lines, "✓ nothing that it uses is different" if lines else "✓ the tools are as frozen"])

    out.answer("hotplug.projection-diff/1", body, text)
    return Exit.NO if broken or not frozen else Exit.YES
