"""What was seen of a server, as text."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from typing import Any, Final

from hotplug.cli.inspect_server import Applied, Looked, Spoke
from hotplug.cli.printing import block, cut, printable

__all__ = ["SHOWN", "drift_words", "spoken_words", "text"]

_WIDTH = 100
SHOWN: Final = 50
"""Names of tools that are written out; JSON has all."""


def text(label: str, looked: Looked) -> str:
    """The whole answer of `hotplug inspect`."""
    lines = [label, *_facts(looked)]
    for one in looked.profiles:
        lines += ["", *_profile(one)]
    if not looked.profiles:
        lines += ["", "no profile: nothing that is declared or projected fits what is known here"]
        if looked.tools and looked.era:
            lines.append("  `hotplug projection new` drafts a projection")
    if looked.findings:
        lines += ["", "findings"]
        for one in looked.findings:
            lines += _wrapped(f"  {one.code} {one.part or ''}".rstrip(), f"{one.message}; {one.fix}")
    lines += ["", *_tools(looked)]
    return block(lines)


def spoken_words(spoke: Spoke) -> str:
    """`calendar 1.0.0, projected by dev.hotplug.caldav-mcp 1.0.0`."""
    by = f" by {spoke.projection.id} {spoke.projection.version}" if spoke.projection else ""
    return f"{spoke.profile} {spoke.version}, {spoke.via}{by}"


def drift_words(applied: Applied) -> str:
    """How the tools differ from the frozen list, in a line."""
    if not applied.frozen:
        return "not frozen: `hotplug projection freeze` makes its tools the ones that it is held to"
    drift = applied.drift
    said = [
        f"{len(names)} {word}: {', '.join(names)}"
        for word, names in (("new", drift.added), ("gone", drift.removed), ("changed", drift.changed))
        if names
    ]
    if not said:
        return "tools as frozen" + (f", prose of {len(drift.prose)} changed" if drift.prose else "")
    return "tools differ: " + "; ".join(said) + ("" if applied.broken else " (none that it uses)")


def _facts(looked: Looked) -> Iterator[str]:
    how = ", ".join(filter(None, [looked.transport, f"{looked.era} era" if looked.era else None, looked.protocol]))
    yield f"  transport   {how}"
    if looked.server:
        yield f"  says it is  {_named(looked.server)}"
    if looked.package:
        yield f"  package     {looked.package}"
    declared = ", ".join(f"{one['profile']} {one['version']}" for one in looked.declared)
    yield f"  declares    {declared or 'no profile'}" + (
        f" (in {' and '.join(looked.dialects)})" if looked.dialects else ""
    )
    yield f"  started in  {looked.seconds:.2f} s"
    if looked.instructions:
        first = " ".join(looked.instructions.split())
        yield f"  says        {textwrap.shorten(first, _WIDTH - 14, placeholder=' …')}"


def _named(server: Mapping[str, Any]) -> str:
    return " ".join(cut(str(server[key])) for key in ("name", "version") if server.get(key)) or "nothing"


def _profile(spoke: Spoke) -> Iterator[str]:
    yield f"{'✗' if spoke.reason else '✓'} {spoken_words(spoke)}"
    if spoke.reason:
        yield from _wrapped("  unavailable", spoke.reason)
    if spoke.projection:
        applied = spoke.projection
        yield from _wrapped(
            "  projection", f"{applied.package} {applied.versions}, found by {_by(applied)}; {drift_words(applied)}"
        )
        if applied.unset:
            yield from _wrapped("  needs", f"{', '.join(applied.unset)}; its launch doesn't set them")
    if spoke.facets:
        yield from _wrapped("  facets", ", ".join(spoke.facets))
    if spoke.offered:
        yield from _wrapped("  offers", ", ".join(spoke.offered))
    for missing in spoke.missing:
        yield from _wrapped(f"  lacks {missing.part}", missing.without or "")


def _by(applied: Applied) -> str:
    return {"named": "its name", "package": "the package", "tools": "the tool list"}[applied.by]


def _tools(looked: Looked) -> Iterator[str]:
    word = "tools" if len(looked.tools) != 1 else "tool"
    yield f"{len(looked.tools)} {word}" + (f"  ({looked.problem})" if looked.problem else "")
    shown = looked.tools[:SHOWN]
    width = max((len(_tool(name)) for name in shown), default=0)
    if not looked.coverage:
        yield from textwrap.wrap(", ".join(map(_tool, shown)), _WIDTH, initial_indent="  ", subsequent_indent="  ")
    else:
        for name in shown:
            entry = looked.coverage.get(name)
            state = entry["state"] if entry else "not in the coverage"
            note = entry.get("note", "") if entry else ""
            head = f"  {_tool(name):<{width}}  {state}"
            yield from _wrapped(head, note) if note else [head]
    if len(looked.tools) > SHOWN:
        yield f"  … {len(looked.tools) - SHOWN} more"
    for name, reason in list(looked.unusable.items())[:SHOWN]:
        yield f"  ✗ {_tool(name)} {reason}"
    if len(looked.unusable) > SHOWN:
        yield f"  … {len(looked.unusable) - SHOWN} more that are no tools"


def _tool(name: str) -> str:
    """A tool's name as one word: wrapped at its blanks, it could begin a line."""
    return cut(printable(name)).replace(" ", r"\x20")


def _wrapped(head: str, text: str) -> list[str]:
    return textwrap.wrap(f"{head}: {text}" if text else head, _WIDTH, subsequent_indent="      ") or [head]
