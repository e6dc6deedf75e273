"""iCalendar files as their lines: what isn't edited is written back byte for byte.

The library `icalendar` is not used for this: it writes a file anew, and alters texts that hold a backslash and an N.
Source: RFC 5545 sections 3.1 to 3.3.11, RFC 6868 for parameter values.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

__all__ = ["Component", "FileError", "Line", "escape", "line", "parse", "unescape", "with_param"]

_NAME: Final = re.compile(r"[A-Za-z0-9-]+", re.ASCII)
_PARAM: Final = re.compile(r';([A-Za-z0-9-]+)=((?:"[^"]*"|[^";:,]*)(?:,(?:"[^"]*"|[^";:,]*))*)', re.ASCII)
_PARAM_VALUE: Final = re.compile(r'"([^"]*)"|([^",]+)')
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)
_OCTETS: Final = 75
_DEEPEST: Final = 20


class FileError(Exception):
    """A file isn't an iCalendar object that can be read here; the message says why."""


@dataclass(frozen=True, slots=True)
class Line:
    """A content line: its bytes as they stand (folds and line ends with them), and what they say.

    A line that isn't one has the name `""`; it is kept.
    """

    raw: bytes
    name: str
    params: tuple[tuple[str, tuple[str, ...]], ...] = ()
    value: str = ""

    def param(self, name: str) -> str | None:
        """The first value of a parameter."""
        return next((values[0] for each, values in self.params if each == name and values), None)


@dataclass(slots=True)
class Component:
    """A component: its first and last line, and what is between them."""

    name: str
    begin: bytes
    items: list[Line | Component] = field(default_factory=list["Line | Component"])
    end: bytes = b""

    def lines(self, *names: str) -> Iterator[Line]:
        """Its own properties of these names, in order."""
        return (item for item in self.items if isinstance(item, Line) and item.name in names)

    def first(self, name: str) -> Line | None:
        """Its first property of this name."""
        return next(self.lines(name), None)

    def components(self, name: str) -> Iterator[Component]:
        """The components of this name directly in it."""
        return (item for item in self.items if isinstance(item, Component) and item.name == name)

    def put(self, names: Iterable[str], new: Iterable[Line]) -> None:
        """Its properties of these names, replaced: where the first one stood, or before its components."""
        names, new = tuple(names), list(new)
        at = next(
            (
                index
                for index, item in enumerate(self.items)
                if isinstance(item, Component) or (item.name in names and item.name)
            ),
            len(self.items),
        )
        self.items[at:] = [
            *new,
            *(each for each in self.items[at:] if isinstance(each, Component) or each.name not in names),
        ]

    def copy(self) -> Component:
        """A copy that can be edited apart."""
        items = [item if isinstance(item, Line) else item.copy() for item in self.items]
        return Component(self.name, self.begin, items, self.end)

    def to_bytes(self) -> bytes:
        """As it stands in a file."""
        inner = (item.raw if isinstance(item, Line) else item.to_bytes() for item in self.items)
        return b"".join((self.begin, *inner, self.end))


def parse(source: bytes) -> Component:
    """Read a file that holds one VCALENDAR.

    Raises:
        FileError: It holds none, several, one that doesn't end, or isn't UTF-8.
    """
    found: Component | None = None
    stack: list[Component] = []
    for raw in _logical(source):
        item = _read(raw)
        if not stack and found is not None:
            if raw.strip():
                raise FileError("there is something after the END:VCALENDAR")
            found.end += raw
        elif item.name == "BEGIN":
            component = Component(item.value.strip().upper(), raw)
            if stack:
                stack[-1].items.append(component)
            elif component.name != "VCALENDAR":
                raise FileError(f"it begins with a {component.name}, not a VCALENDAR")
            stack.append(component)
            if len(stack) > _DEEPEST:
                raise FileError(f"its components are nested more than {_DEEPEST} deep")
        elif not stack:
            raise FileError("it doesn't begin with BEGIN:VCALENDAR")
        elif item.name == "END":
            component = stack.pop()
            if component.name != item.value.strip().upper():
                raise FileError(f"BEGIN:{component.name} is followed by END:{item.value}")
            component.end = raw
            if not stack:
                found = component
        else:
            stack[-1].items.append(item)
    if found is None:
        raise FileError("END:VCALENDAR is missing" if stack else "it is empty")
    return found


def _logical(source: bytes) -> Iterator[bytes]:
    """Content lines with their folds: a physical line that starts with a blank goes on with the one before."""
    current: list[bytes] = []
    for physical in _split(source):
        if current and physical[:1] not in (b" ", b"\t"):
            yield b"".join(current)
            current.clear()
        current.append(physical)
    if current:
        yield b"".join(current)


def _split(source: bytes) -> list[bytes]:
    parts = source.split(b"\n")
    return [part + b"\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])


def _read(raw: bytes) -> Line:
    try:
        text = _unfolded(raw).removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise FileError(f"it is not UTF-8: {error.reason}") from None
    name = _NAME.match(text)
    if name is None:
        return Line(raw, "")
    params: list[tuple[str, tuple[str, ...]]] = []
    at = name.end()
    while (param := _PARAM.match(text, at)) is not None:
        values = tuple(_param_text(quoted or plain) for quoted, plain in _PARAM_VALUE.findall(param[2]))
        params.append((param[1].upper(), values))
        at = param.end()
    if text[at : at + 1] != ":":
        return Line(raw, "")
    return Line(raw, name[0].upper(), tuple(params), text[at + 1 :])


def _unfolded(raw: bytes) -> str:
    return re.sub(rb"\r?\n[ \t]", b"", raw).removesuffix(b"\n").removesuffix(b"\r").decode()


def _param_text(text: str) -> str:
    return re.sub(r"\^([n'^])", lambda match: {"n": "\n", "'": '"', "^": "^"}[match[1]], text)


def line(name: str, value: str, **params: str) -> Line:
    """A line to add, folded at 75 octets between characters; `value` is escaped already if it is a text."""
    shown = "".join(f";{key}={_param(each)}" for key, each in params.items())
    raw = _folded(f"{name}{shown}:{value}")
    return Line(raw, name, tuple((key, (each,)) for key, each in params.items()), value)


def with_param(old: Line, name: str, *values: str | None) -> Line:
    """A line of a file with another value of one parameter (None: without it), all else of it as it stands."""
    text = _unfolded(old.raw)
    found = _NAME.match(text)
    assert found is not None
    at = found.end()
    shown = [_param(each) for each in values if each is not None]
    new = f";{name}={','.join(shown)}" if shown else ""
    kept = [text[:at]]
    while (param := _PARAM.match(text, at)) is not None:
        at = param.end()
        if param[1].upper() != name:
            kept.append(param[0])
        else:
            kept.append(new)
            new = ""
    return _read(_folded("".join([*kept, new, text[at:]])))


def _folded(text: str) -> bytes:
    folded: list[str] = []
    width = 0
    for character in text:
        octets = len(character.encode())
        if width + octets > _OCTETS:
            folded.append("\r\n ")
            width = 1
        folded.append(character)
        width += octets
    return ("".join(folded) + "\r\n").encode()


def _param(text: str) -> str:
    text = text.replace("^", "^^").replace("\n", "^n").replace('"', "^'")
    return f'"{text}"' if not text or re.search(r"[;:,]", text) else text


def escape(text: str) -> str:
    """A text as the value of a property."""
    return text.replace("\\", "\\\\").replace(";", "\\;").replace(",", "\\,").replace("\n", "\\n")


def unescape(value: str) -> str:
    """The text of the value of a property."""
    return _ESCAPED.sub(lambda match: "\n" if match[1] in "nN" else match[1], value)
