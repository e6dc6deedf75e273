"""Lossless JSON: what is read can be written back value for value, digit for digit, key for key.

Numbers keep their digits, texts the way they were written, objects their order and every member of a key that is given
twice. Reading, writing and comparing take any depth.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal, DecimalException
from math import isfinite
from typing import Final, NoReturn, cast

from hotplug.access.errors import AccessError, NotJson

__all__ = [
    "BooleanNode",
    "Document",
    "ListNode",
    "Node",
    "NullNode",
    "NumberNode",
    "ObjectNode",
    "TextNode",
    "node_of",
    "parse",
    "parse_node",
    "same",
    "write",
    "write_node",
]

_BLANK: Final = r"[ \t\n\r]*+"
_TEXT: Final = r'"[^"\\\x00-\x1f]*+(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*+)*+"'
_NUMBER: Final = r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?"
_TOKEN: Final = re.compile(rf"({_BLANK})(?:([{{}}\[\],:])|({_TEXT})|({_NUMBER})|(true|false|null)(?![A-Za-z0-9_]))")
_INDENT: Final = re.compile(r"\s*[{\[][ \t]*\r?\n([ \t]+)\S")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_DEEPEST: Final = 200
_BOM: Final = "\ufeff"


class Node(ABC):
    """One value of a JSON document; two are equal when their values are."""

    __slots__ = ()

    @property
    @abstractmethod
    def kind(self) -> str:
        """What a person calls it: object, list, text, number, boolean, null."""

    def __eq__(self, other: object) -> bool:
        return same(self, other) if isinstance(other, Node) else NotImplemented

    def __hash__(self) -> int:
        return hash(type(self))

    def __repr__(self) -> str:
        text = write_node(self, indent=None)
        return f"<{self.kind} {text if len(text) <= 60 else text[:57] + '...'}>"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class NullNode(Node):
    """`null`."""

    @property
    def kind(self) -> str:
        """null."""
        return "null"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BooleanNode(Node):
    """`true` or `false`."""

    value: bool

    @property
    def kind(self) -> str:
        """boolean."""
        return "boolean"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class NumberNode(Node):
    """A number as it is written.

    Args:
        digits: The whole literal: `1.50`, `1e400`.
        rounded: It came through a double, so that it equals whatever rounds to the same one.
    """

    digits: str
    rounded: bool = False

    @property
    def kind(self) -> str:
        """number."""
        return "number"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TextNode(Node):
    """A text.

    Args:
        value: What it says.
        raw: How it stood in the file, quotes included; None for a new one.
    """

    value: str
    raw: str | None = None

    @property
    def kind(self) -> str:
        """text."""
        return "text"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ListNode(Node):
    """A list; `inline` says that it stood on one line."""

    items: tuple[Node, ...] = ()
    inline: bool = False

    @property
    def kind(self) -> str:
        """list."""
        return "list"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ObjectNode(Node):
    """An object: its members in the file's order, a key that is given twice with both; `inline` as for a list."""

    members: tuple[tuple[str, Node], ...] = ()
    inline: bool = False

    @property
    def kind(self) -> str:
        """object."""
        return "object"

    def values(self, key: str) -> list[Node]:
        """Everything that stands under a key: none, one, or more where it is given twice."""
        return [value for name, value in self.members if name == key]

    def get(self, key: str) -> Node | None:
        """The value of a key, the last one where it is given twice; None where it is missing."""
        found = self.values(key)
        return found[-1] if found else None

    def names(self) -> tuple[str, ...]:
        """Each key once, in order."""
        return tuple(dict.fromkeys(name for name, _ in self.members))

    def twice(self) -> tuple[str, ...]:
        """The keys that are given more than once."""
        seen: dict[str, int] = {}
        for name, _ in self.members:
            seen[name] = seen.get(name, 0) + 1
        return tuple(name for name, times in seen.items() if times > 1)

    def having(self, key: str, value: Node) -> ObjectNode:
        """With this value at the key's place; a new key comes last; a second one of that key goes."""
        found: list[tuple[str, Node]] = []
        placed = False
        for name, old in self.members:
            if name != key:
                found.append((name, old))
            elif not placed:
                found.append((key, value))
                placed = True
        if not placed:
            found.append((key, value))
        return replace(self, members=tuple(found))

    def without(self, key: str) -> ObjectNode:
        """Without the key, however often it is given."""
        return replace(self, members=tuple(one for one in self.members if one[0] != key))


@dataclass(frozen=True, slots=True)
class Document:
    """A JSON text as read.

    Args:
        root: Its value.
        indent: What a level is indented by; None where all stood on one line.
        newline: How its lines end.
        end: What follows the value.
    """

    root: Node = field(default_factory=ObjectNode)
    indent: str | None = "  "
    newline: str = "\n"
    end: str = "\n"


def parse(text: str | bytes) -> Document:
    """Reads one JSON text (RFC 8259) of any depth, a byte order mark before it forgiven.

    Raises:
        NotJson: with line and column; bytes that aren't UTF-8 too.
    """
    if isinstance(text, bytes):
        try:
            text = text.decode("utf-8")
        except UnicodeDecodeError as error:
            line, column = _place(text[: error.start].decode("utf-8"), error.start)
            raise NotJson("the bytes are not UTF-8", line=line, column=column) from None
    text = text.removeprefix(_BOM)
    root = _Reader(text).value()
    stripped = text.strip()
    indented = _INDENT.match(text)
    return Document(
        root=root,
        indent=indented[1] if indented else "  " if "\n" in stripped or stripped in ("{}", "[]") else None,
        newline="\r\n" if "\r\n" in text else "\n",
        end=("\r\n" if text.endswith("\r\n") else "\n") if text.endswith("\n") else "",
    )


def parse_node(text: str | bytes) -> Node:
    """The value of a JSON text alone. Raises as `parse` does."""
    return parse(text).root


def write(document: Document) -> str:
    """The document as a text that reads as the same values; white space as the file has it."""
    return write_node(document.root, indent=document.indent, newline=document.newline) + document.end


def write_node(node: Node, *, indent: str | None = "  ", newline: str = "\n") -> str:
    """One value as JSON text; with `indent` None on one line."""
    pieces: list[str] = []
    # What is still to be written, last first: pieces of text, and values with their depth (None: inside one line).
    waiting: list[str | tuple[Node, int | None]] = [(node, None if indent is None else 0)]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            pieces.append(one)
            continue
        value, depth = one
        if isinstance(value, ObjectNode):
            keys = [f"{_quoted(key)}: " for key, _ in value.members]
            items = [item for _, item in value.members]
            waiting.extend(_spread("{}", keys, items, value.inline, depth, indent, newline))
        elif isinstance(value, ListNode):
            waiting.extend(_spread("[]", None, value.items, value.inline, depth, indent, newline))
        else:
            pieces.append(_scalar(value))
    return "".join(pieces)


def _spread(
    brackets: str,
    keys: Sequence[str] | None,
    items: Sequence[Node],
    inline: bool,
    depth: int | None,
    indent: str | None,
    newline: str,
) -> list[str | tuple[Node, int | None]]:
    """What an object or a list comes to, last piece first."""
    if not items:
        return [brackets]
    within = None if depth is None or inline else depth + 1
    between = ", " if within is None else f",{newline}{(indent or '') * within}"
    found: list[str | tuple[Node, int | None]] = [brackets[0]]
    if within is not None:
        found.append(f"{newline}{(indent or '') * within}")
    for number, item in enumerate(items):
        if number:
            found.append(between)
        if keys is not None:
            found.append(keys[number])
        found.append((item, within))
    if within is not None:
        found.append(f"{newline}{(indent or '') * (within - 1)}")
    found.append(brackets[1])
    found.reverse()
    return found


def _scalar(node: Node) -> str:
    if isinstance(node, TextNode):
        return _quoted(node.value) if node.raw is None else node.raw
    if isinstance(node, NumberNode):
        return node.digits
    if isinstance(node, BooleanNode):
        return "true" if node.value else "false"
    return "null"


def _quoted(text: str) -> str:
    # Half of a surrogate pair can't be UTF-8; its escape can.
    return json.dumps(text, ensure_ascii=_SURROGATE.search(text) is not None)


def same(one: Node, other: Node) -> bool:
    """Whether two values are equal: the order of keys and the way of writing don't matter, every digit does."""
    waiting: list[tuple[Node, Node]] = [(one, other)]
    while waiting:
        left, right = waiting.pop()
        if left is right:
            continue
        if isinstance(left, ObjectNode) and isinstance(right, ObjectNode):
            if len(left.members) != len(right.members):
                return False
            ordered = [name for name, _ in left.members] == [name for name, _ in right.members]
            pairs = zip(left.members, right.members, strict=True)
            if not ordered:
                by_name = (sorted(left.members, key=_name), sorted(right.members, key=_name))
                pairs = zip(*by_name, strict=True)
            for (key, value), (other_key, other_value) in pairs:
                if key != other_key:
                    return False
                waiting.append((value, other_value))
        elif isinstance(left, ListNode) and isinstance(right, ListNode):
            if len(left.items) != len(right.items):
                return False
            waiting.extend(zip(left.items, right.items, strict=True))
        elif not _same_scalar(left, right):
            return False
    return True


def _name(member: tuple[str, Node]) -> str:
    return member[0]


def _same_scalar(left: Node, right: Node) -> bool:
    if isinstance(left, TextNode) and isinstance(right, TextNode):
        return left.value == right.value
    if isinstance(left, NumberNode) and isinstance(right, NumberNode):
        return _same_number(left, right)
    if isinstance(left, BooleanNode) and isinstance(right, BooleanNode):
        return left.value == right.value
    return isinstance(left, NullNode) and isinstance(right, NullNode)


def _same_number(left: NumberNode, right: NumberNode) -> bool:
    if left.digits == right.digits:
        return True
    if left.rounded or right.rounded:
        return float(left.digits) == float(right.digits)
    try:
        return Decimal(left.digits) == Decimal(right.digits)
    except DecimalException:  # an exponent that no Decimal has
        return False


def node_of(value: object) -> Node:
    """A Python value (None, bool, int, float, Decimal, str, mappings, sequences, nodes themselves) as a node.

    Raises:
        AccessError: a value, a key or a depth that this has no JSON for.
    """
    return _node_of(value, 0)


def _node_of(value: object, depth: int) -> Node:
    if isinstance(value, Node):
        return value
    if isinstance(value, Document):
        return value.root
    if depth > _DEEPEST:
        raise AccessError(f"the value is nested deeper than {_DEEPEST}: hand it in as JSON text, through parse()")
    if value is None:
        return NullNode()
    if isinstance(value, bool):
        return BooleanNode(value)
    if isinstance(value, str):
        return TextNode(str(value))
    if isinstance(value, int):
        return NumberNode(str(int(value)))
    if isinstance(value, float | Decimal):
        if not isfinite(value):
            raise AccessError(f"{value} is no JSON number: leave it out, or write it as a text")
        return NumberNode(repr(float(value)), rounded=True) if isinstance(value, float) else NumberNode(str(value))
    if isinstance(value, Mapping):
        return _object_of(cast("Mapping[object, object]", value), depth)
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray | memoryview):
        items = tuple(_node_of(item, depth + 1) for item in cast("Sequence[object]", value))
        return ListNode(items, inline=not any(isinstance(item, ObjectNode | ListNode) for item in items))
    kind = type(cast("object", value)).__name__
    raise AccessError(f"a {kind} has no JSON: use what json.loads() would give")


def _object_of(value: Mapping[object, object], depth: int) -> ObjectNode:
    members: list[tuple[str, Node]] = []
    for key, item in value.items():
        if not isinstance(key, str):
            raise AccessError(f"the key {key!r} is not a text: JSON has no other keys")
        members.append((key, _node_of(item, depth + 1)))
    return ObjectNode(tuple(members))


def _place(text: str, position: int) -> tuple[int, int]:
    before = text[:position]
    return before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1


@dataclass(slots=True)
class _Open:
    """An object or a list whose end hasn't come yet."""

    start: int
    members: list[tuple[str, Node]] | None = None
    items: list[Node] = field(default_factory=list["Node"])
    key: str = ""

    @property
    def closing(self) -> str:
        return "]" if self.members is None else "}"

    def add(self, node: Node) -> None:
        if self.members is None:
            self.items.append(node)
        else:
            self.members.append((self.key, node))

    def closed(self, inline: bool) -> Node:
        if self.members is None:
            return ListNode(tuple(self.items), inline=inline)
        return ObjectNode(tuple(self.members), inline=inline)


class _Reader:
    """One pass over a text, its open brackets on a stack of its own: Python's has an end."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0
        self.start = 0  # where the last word began
        self.line_at = -1  # where the last line break between two tokens was
        self.literals = {"true": BooleanNode(True), "false": BooleanNode(False), "null": NullNode()}

    def value(self) -> Node:
        stack: list[_Open] = []
        while True:
            node = self._opened(stack)
            while node is not None:
                if not stack:
                    if self.text[self.position :].strip(" \t\n\r"):
                        self._next()
                        self._fail("something follows the value", self.start)
                    return node
                stack[-1].add(node)
                node = self._after_item(stack)

    def _opened(self, stack: list[_Open]) -> Node | None:
        """The next value where it is whole at once; None where it only began, with its first key read."""
        word = self._next()
        if word not in ("{", "["):
            return self._whole(word)
        stack.append(_Open(self.start, members=[] if word == "{" else None))
        before = self.position
        if self._next() == stack[-1].closing:
            return self._close(stack)
        self.position = before
        if word == "{":
            self._key(stack[-1])
        return None

    def _after_item(self, stack: list[_Open]) -> Node | None:
        top = stack[-1]
        word = self._next()
        if word == top.closing:
            return self._close(stack)
        if word != ",":
            self._fail(f"a comma or a {top.closing} should stand here", self.start)
        if top.members is not None:
            self._key(top)
        return None

    def _close(self, stack: list[_Open]) -> Node:
        top = stack.pop()
        return top.closed(inline=self.line_at < top.start)

    def _key(self, top: _Open) -> None:
        word = self._next()
        if not word.startswith('"'):
            self._fail("a key in double quotes should stand here", self.start)
        top.key = _unquoted(word)
        if self._next() != ":":
            self._fail("a colon should stand here", self.start)

    def _whole(self, word: str) -> Node:
        if word.startswith('"'):
            return TextNode(_unquoted(word), word)
        if word in self.literals:
            return self.literals[word]
        if word in "{}[],:":
            self._fail(f"a value should stand here, not {word}", self.start)
        return NumberNode(word)

    def _next(self) -> str:
        match = _TOKEN.match(self.text, self.position)
        if match is None:
            rest = self.text[self.position :].lstrip(" \t\n\r")
            at = len(self.text) - len(rest)
            if not rest:
                self._fail("the text ends too early" if self.text.strip() else "the text is empty", at)
            if rest.startswith('"'):
                self._fail("this text has no end, or holds a character or an escape that no JSON text can", at)
            self._fail("what stands here is no JSON", at)
        blank = match[1]
        if "\n" in blank:
            self.line_at = self.position + blank.rfind("\n")
        self.position = match.end()
        self.start = match.start() + len(blank)
        return match[2] or match[3] or match[4] or match[5]

    def _fail(self, problem: str, position: int) -> NoReturn:
        line, column = _place(self.text, position)
        raise NotJson(problem, line=line, column=column)


def _unquoted(word: str) -> str:
    return json.loads(word) if "\\" in word else word[1:-1]
