"""What the doctor found, as text."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

from hotplug.cli.doctor_machine import MachinePart
from hotplug.cli.doctor_servers import Examined
from hotplug.cli.failure import particulars
from hotplug.cli.inspect_text import SHOWN, drift_words, spoken_words
from hotplug.cli.printing import block

__all__ = ["server_text", "text"]

_WIDTH = 100
_MARKS = {"fine": "✓", "wrong": "✗", "unreachable": "✗", "disabled": "–"}


def text(examined: Sequence[Examined], parts: Sequence[MachinePart]) -> str:
    """The whole answer of `hotplug doctor`."""
    lines: list[str] = []
    for one in examined:
        lines += _server(one)
    if examined:
        lines.append("")
    lines.append("this machine")
    width = max(len(part.name) for part in parts)
    for part in parts:
        mark = "✓" if part.fine else "✗" if part.required else "–"
        found = " ".join(filter(None, [part.version, f"({part.found})" if part.found else None])) or "not found"
        lines.append(f"{mark} {part.name:<{width}}  {found}")
        if part.install:
            lines.append(f"  {'':<{width}}  for {part.needed}: {part.install}")
    counts = {state: sum(1 for one in examined if one.state == state) for state in _MARKS}
    if examined:
        said = [f"{count} {word}" for word, count in counts.items() if count]
        lines += ["", f"{len(examined)} server{'s' if len(examined) != 1 else ''}: {', '.join(said)}"]
    return block(lines)


def server_text(one: Examined) -> str:
    """One server's part of it."""
    return block(_server(one))


def _server(one: Examined) -> Iterator[str]:
    head = f"{_MARKS[one.state]} {one.label}"
    if one.state == "disabled":
        yield f"{head}: disabled in its file"
        return
    if one.note is not None:
        yield f"{head}: {one.note}"
        return
    if one.error is not None:
        yield from _wrapped(f"{head}: {one.error.message}", "", "    ")
        for name, value in particulars(one.error).items():
            yield from _particular(name, value)
        yield from _fixes(one)
        return
    looked = one.looked
    assert looked is not None
    how = ", ".join(filter(None, [looked.transport, looked.era and f"{looked.era} era", looked.protocol]))
    count = len(looked.tools)
    yield f"{head}: {how}, {count} tool{'s' if count != 1 else ''}, started in {looked.seconds:.1f} s"
    for spoke in looked.profiles:
        yield f"    {'✗' if spoke.reason else '✓'} {spoken_words(spoke)}"
        if spoke.projection:
            yield f"      {drift_words(spoke.projection)}"
            if spoke.projection.unset:
                yield f"      its launch doesn't set {', '.join(spoke.projection.unset)}"
        if spoke.reason:
            yield from _wrapped(spoke.reason, "      ", "      ")
    if not looked.profiles:
        yield "    no profile: raw tools only"
    if looked.problem:
        yield f"    {looked.problem}"
    for name, reason in list(looked.unusable.items())[:SHOWN]:
        yield f"    ✗ {name} {reason}"
    for cause in one.causes:
        yield from _wrapped(f"✗ {cause.message}")
    yield from _fixes(one)
    for gets in one.gets:
        count = f"all {gets.of} tools" if gets.tools == gets.of else f"{gets.tools or 'none'} of {gets.of} tools"
        reason = f": {gets.reason}" if gets.reason else ""
        words = f"{', '.join(gets.threads)}: {count}{reason}"
        yield from _wrapped(words)


def _fixes(one: Examined) -> Iterator[str]:
    for fix in dict.fromkeys(cause.fix for cause in one.causes):
        yield from _wrapped(f"fix: {fix}")


def _wrapped(text: str, first: str = "    ", other: str = "      ") -> list[str]:
    """Paths, URLs and commands stay whole, to be copied."""
    return textwrap.wrap(
        text,
        _WIDTH,
        initial_indent=first,
        subsequent_indent=other,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _particular(name: str, value: Any) -> Iterator[str]:
    if isinstance(value, list):
        yield f"    {name}:"
        yield from (f"      {line}" for line in value)  # pyright: ignore[reportUnknownVariableType]
    else:
        yield f"    {name}: {value}"
