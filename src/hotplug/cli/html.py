"""HTML from Python: what isn't markup by its type is text, and is escaped."""

from __future__ import annotations

import html
from collections.abc import Iterable
from typing import Final

from hotplug.cli.printing import printable

__all__ = ["Child", "Markup", "element", "text"]

_VOID: Final = frozenset({"meta", "link", "br", "hr", "img", "input"})


class Markup(str):
    """Text that is HTML already. Only `element` and `text` make it from what others wrote."""

    __slots__ = ()


Child = Markup | str | int | float | None | Iterable["Child"]
"""Markup as it is; anything else as text; None is nothing."""


def text(value: object) -> Markup:
    """A text with nothing in it that a browser would act on; what a reader wouldn't see is an escape."""
    return Markup(html.escape(printable(str(value), lines=True), quote=True))


def element(tag: str, *children: Child, **attributes: str | int | float | bool | None) -> Markup:
    """An element. In an attribute's name a trailing `_` is dropped, others are hyphens; None and False leave it out."""
    written = [tag]
    for name, value in attributes.items():
        if value is None or value is False:
            continue
        name = name.rstrip("_").replace("_", "-")
        written.append(name if value is True else f'{name}="{text(value)}"')
    head = f"<{' '.join(written)}>"
    if tag in _VOID:
        return Markup(head)
    return Markup(f"{head}{''.join(_flat(children))}</{tag}>")


def _flat(children: Iterable[Child]) -> Iterable[str]:
    for child in children:
        if child is None:
            continue
        if isinstance(child, Markup):
            yield child
        elif isinstance(child, str | int | float):
            yield text(child)
        else:
            yield from _flat(child)
