"""`hotplug call`: one call of a part through its profile, or of a raw tool."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import anyio
import typer

from hotplug.cli.command import command, group
from hotplug.cli.deadline import Deadline, within
from hotplug.cli.lookup import Found, find_profile, known_profiles
from hotplug.cli.output import Format, Output
from hotplug.cli.printing import cut, did_you_mean, printable
from hotplug.cli.targets import AfterDashes, Given, Launching, given
from hotplug.errors import ConfigError, NotFound, Unavailable

if TYPE_CHECKING:
    from hotplug.connect import Link
    from hotplug.connect.results import RawResult
    from hotplug.profile import Part

app = group("One call of a server, through a profile or raw.")


@dataclass(frozen=True)
class _Wanted:
    """What is to be called, as it was written."""

    name: str
    words: tuple[str, ...]
    args: str | None
    key: str | None
    instance: str | None
    projection: str | None
    limit: float | None
    authorised: bool


@command(app, "call", cls=Launching)
def call(
    out: Output,
    words: Annotated[
        list[str] | None,
        typer.Argument(
            help="The server (or its command after --), the part or tool, and its arguments; nested fields with dots.",
            metavar="TARGET PART|TOOL [FIELD=VALUE]...",
            show_default=False,
        ),
    ] = None,
    args: Annotated[
        str | None, typer.Option(help="Arguments as a JSON object, @FILE, or - for stdin.", show_default=False)
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(
            help="The idempotency key: a repeat with the same one gets the first outcome.", show_default=False
        ),
    ] = None,
    instance: Annotated[
        str | None,
        typer.Option(help="Which of several instances is meant, as a gateway names it.", show_default=False),
    ] = None,
    profile: Annotated[
        str | None, typer.Option(help="The profile; by default what the part's name begins with.", show_default=False)
    ] = None,
    projection: Annotated[
        str | None, typer.Option(help="A projection by name or file, where none fits by itself.", show_default=False)
    ] = None,
    timeout: Annotated[
        float | None, typer.Option(help="Seconds until an answer has to be there.", min=0.001, show_default=False)
    ] = None,
    raw: Annotated[bool, typer.Option("--raw", help="Call a tool of the server as it is, without a profile.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Authorise a part that is destructive or costly.")] = False,
    command_word: AfterDashes = None,
) -> None:
    """Call one part of a server and print its result as JSON.

    \b
    hotplug call sqlite:///cal.db calendar.calendars
    hotplug call work calendar.update event=REF changes.title="Late lunch"
    hotplug call calendar.get event=REF -- npx -y caldav-mcp
    hotplug call --raw "npx -y caldav-mcp" list-calendars

    A text field takes its value as it is; a list or an object is written as JSON.

    A failed call says its code on stderr. Exit codes: 1 a refusal or failure, 2 wrong arguments, 4 unreachable,
    5 it may or may not have been done.
    """
    rest = list(words or ())
    target: object = list(command_word) if command_word else rest.pop(0) if rest else None
    if target is None or not rest:
        raise ConfigError(
            f"the {'server' if target is None else 'tool' if raw else 'part'} is missing",
            hint="hotplug call TARGET PART [field=value ...]",
        )
    wanted = _Wanted(rest[0], tuple(rest[1:]), args, key, instance, projection, timeout, yes)
    if raw:
        if profile or projection or key or instance or yes:
            raise ConfigError(
                "--raw goes without --profile, --projection, --key, --instance and --yes",
                hint="a raw tool knows none of them",
            )
        anyio.run(_raw, out, given(out, target), wanted)
        return
    found = _profile(out, wanted.name, profile)
    anyio.run(_part, out, given(out, target), found, wanted)


def _profile(out: Output, part: str, named: str | None) -> Found:
    """The profile that a part is of: the one that was named, else what its name begins with."""
    known = known_profiles()
    if named is None and (prefix := part.partition(".")[0]) in known and "." in part:
        named = prefix
    if named is None:
        every = [name for profile in known for name in find_profile(profile).definition.all_parts]
        raise ConfigError(
            f"{part!r} is no part of a profile that is known here",
            hint=did_you_mean(part, every) or "name its profile with --profile, or call a tool with --raw",
        )
    found = find_profile(named)
    out.used(f"profile: {found.definition.name} {found.definition.version} from {found.origin}")
    return found


async def _part(out: Output, server: Given, found: Found, wanted: _Wanted) -> None:
    from hotplug.cli.call_arguments import arguments_of
    from hotplug.connect import link_of
    from hotplug.door import connect

    profile = found.profile
    known = found.definition.all_parts
    if wanted.name.partition(".")[0] != "connection":
        _known_part(wanted.name, found, known)
    projection = wanted.projection or server.projection
    notes: list[str] = []

    def noted(_: str, note: str) -> None:
        notes.append(note)

    options: dict[str, Any] = {"on_note": noted, **server.session}
    if wanted.limit:
        options["start_timeout"] = wanted.limit
    async with AsyncExitStack() as stack:
        opening = stack.enter_async_context(connect(profile, server.target, projection=projection, **options))
        connection = await within(wanted.limit, opening, server.label)
        link = link_of(connection)
        part = _known_part(wanted.name, found, link.spoken.known)
        arguments = arguments_of(wanted.words, wanted.args, part.input.schema, what=part.name)
        called = link.with_options(
            key=wanted.key,
            instance=wanted.instance,
            timeout=wanted.limit,
            authorized=(found.definition.member(part.name),) if wanted.authorised else (),
        )
        via = _via(link, found.definition.name)
        out.used(f"called: {part.name} of {link.channel.target}, {via}")
        result = await called.call_wire(part, arguments)
    profile_said = f"{link.spoken.profile} {link.spoken.version}"
    told: dict[str, Any] = {"part": part.name, "profile": profile_said, "via": via}
    if notes and out.format is not Format.TEXT:
        told["notes"] = notes
    for note in notes if out.format is Format.TEXT else ():
        out.note(f"note: {printable(note)}")
    _answer(out, server, told, result)


def _known_part(name: str, found: Found, known: Mapping[str, Part]) -> Part:
    part = known.get(name) or known.get(f"{found.definition.name}.{name}")
    if part is None:
        raise ConfigError(
            f"{found.definition.name} {found.definition.version} has no part {name!r}",
            hint=did_you_mean(name, known) or f"`hotplug profile show {found.definition.name}` lists them",
        )
    if part.kind == "event":
        raise ConfigError(
            f"{part.name} is an event, which can't be called", hint="`connection.events` gives what happened"
        )
    return part


def _via(link: Link, profile: str) -> str:
    from hotplug.declare import Declaration

    card = Declaration.from_extensions(link.channel.extensions).card(profile)
    if card is None or card.projection is None:
        return "native"
    return f"{card.projection.get('id')} {card.projection.get('version')}"


async def _raw(out: Output, server: Given, wanted: _Wanted) -> None:
    from hotplug.cli.call_arguments import arguments_of
    from hotplug.connect import McpSession

    options: dict[str, Any] = {**server.session, **({"start_timeout": wanted.limit} if wanted.limit else {})}
    deadline = Deadline(wanted.limit) if wanted.limit else None
    async with McpSession(server.target, **options) as session:
        listed = await session.list_tools(timeout=deadline.left() if deadline else None)
        if not listed.complete and listed.get(wanted.name) is None:
            raise Unavailable(f"the tool list of {session.name} is incomplete: {listed.problem}")
        tool = listed.get(wanted.name)
        if tool is None:
            names = [one.name for one in listed.tools]
            raise NotFound(
                f"{session.name} has no tool {wanted.name!r}",
                details={"tools": names[:_NAMED]},
                hint=did_you_mean(wanted.name, names)
                or f"it has {', '.join(map(cut, names[:_NAMED])) or 'none'}{' …' if len(names) > _NAMED else ''}",
            )
        arguments = arguments_of(wanted.words, wanted.args, tool.input_schema, what=wanted.name)
        out.used(f"called: the tool {wanted.name} of {session.name} as it is")
        result = await session.call(wanted.name, arguments, timeout=wanted.limit)
        if (failed := result.failed()) is not None:
            raise failed
    if out.format is Format.TEXT and result.structured is None:
        _print_texts(out, result)
        return
    content = (
        result.structured
        if out.format is Format.TEXT
        else {key: result.raw[key] for key in _SHOWN if key in result.raw}
    )
    _answer(out, server, {"tool": wanted.name, "via": "raw"}, content)


_NAMED = 50
"""Tools that an error names."""
_SHOWN = ("structuredContent", "content", "_meta")


def _print_texts(out: Output, result: RawResult) -> None:
    """What came without structure, as it came: texts, and for anything else a line that says what it is."""
    lines = [
        str(item.get("text", ""))
        if item.get("type") == "text"
        else f"[{item.get('type')}: {item.get('mimeType') or 'no type'}]"
        for item in result.content
    ]
    out.answer("hotplug.call/1", {}, lambda: "\n".join(lines))


def _answer(out: Output, server: Given, called: Mapping[str, Any], result: Any) -> None:
    body = {"target": server.document(), **called, "result": result}
    out.answer("hotplug.call/1", body, lambda: json.dumps(result, indent=2, ensure_ascii=False))
