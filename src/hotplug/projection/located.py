"""YAML as JSON can say it, with the line of every part, so that an error can point at it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from collections.abc import Mapping as Map
from typing import Any, Final, TypeAlias, cast

import yaml

from hotplug.errors import ProjectionError

__all__ = ["Keys", "Lines", "located", "place", "put"]

Keys: TypeAlias = tuple[str | int, ...]
"""The path of a part: keys and positions from the root."""

Lines: TypeAlias = Map[Keys, int]
"""The line of every part, from 1; of an entry of a map, the line of its key."""

# The C loader where PyYAML was built with it: ten times as fast. It composes only; nothing is constructed.
_LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_NUMBER: Final = re.compile(r"[-+]?(0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?")


def located(text: str, file: str) -> tuple[Any, Lines]:
    """The data in a YAML text, and where its parts stand.

    No anchors, aliases or tags, no key twice, no value left empty; `yes`, `no` and dates are texts.

    Raises:
        ProjectionError: Not such a text, with file and line.
    """
    lines: dict[Keys, int] = {}

    def build(node: yaml.Node, path: Keys) -> Any:
        lines.setdefault(path, node.start_mark.line + 1)
        if isinstance(node, yaml.SequenceNode):
            return [build(item, (*path, number)) for number, item in enumerate(node.value)]
        if isinstance(node, yaml.MappingNode):
            result: dict[str, Any] = {}
            for key, value in node.value:
                line = key.start_mark.line + 1
                if not isinstance(key, yaml.ScalarNode):
                    raise ProjectionError(f"{file}:{line}: a key has to be a text")
                name = str(key.value)
                if name in result:
                    raise ProjectionError(f"{file}:{line} {_dotted((*path, name))}: this key is there twice")
                lines[(*path, name)] = line
                result[name] = build(value, (*path, name))
            return result
        value = _scalar(node)
        if value is None:
            raise ProjectionError(f"{place(file, lines, path)}: there is no value (null is written as an expression)")
        return value

    try:
        # Events first: an alias would make one node of many, and a few of them a tree of any size.
        for event in cast("Iterable[yaml.Event]", yaml.parse(text, Loader=_LOADER)):  # pyright: ignore[reportUnknownMemberType]
            for what in ("anchor", "tag"):
                if getattr(event, what, None) is not None:
                    line = event.start_mark.line + 1
                    raise ProjectionError(f"{file}:{line}: {what}s are not used here")
        root = cast("yaml.Node | None", yaml.compose(text, Loader=_LOADER))  # pyright: ignore[reportUnknownMemberType]
        if root is None:
            raise ProjectionError(f"{file}: the document is empty")
        return build(root, ()), lines
    except yaml.MarkedYAMLError as error:
        line = f":{error.problem_mark.line + 1}" if error.problem_mark else ""
        raise ProjectionError(f"{file}{line}: not YAML: {error.problem or error.context}") from error
    except (yaml.YAMLError, RecursionError) as error:
        raise ProjectionError(f"{file}: not YAML: {' '.join(str(error).split())[:200]}") from error


def put(text: str, path: Sequence[str], value: str) -> str:
    """The YAML text with a text value written at a path of keys; comments and layout stay as they are.

    The key is added where it is missing; what it stands in has to be there.

    Raises:
        ProjectionError: There is no map at the path, or a value that is no scalar.
    """
    at = cast("yaml.Node | None", yaml.compose(text, Loader=yaml.SafeLoader))  # pyright: ignore[reportUnknownMemberType]
    quoted = f'"{value}"' if re.fullmatch(r"[\w:./+-]*", value) else json.dumps(value)
    for depth, name in enumerate(path):
        if not isinstance(at, yaml.MappingNode):
            raise ProjectionError(f"there is no map at {_dotted(tuple(path[:depth]))!r}")
        last = depth == len(path) - 1
        found = next((part for key, part in at.value if key.value == name), None)
        if found is None and last:
            first = at.value[0][0].start_mark if at.value else None
            if at.flow_style or first is None:
                start = at.start_mark.index + 1
                return f"{text[:start]}{name}: {quoted}{', ' if first else ''}{text[start:]}"
            start = first.index
            return f"{text[:start]}{name}: {quoted}\n{' ' * first.column}{text[start:]}"
        at = found
    if not isinstance(at, yaml.ScalarNode):
        raise ProjectionError(f"{_dotted(tuple(path))}: is no text")
    return f"{text[: at.start_mark.index]}{quoted}{text[at.end_mark.index :]}"


def place(file: str, lines: Lines, path: Keys) -> str:
    """`file:line operations.calendar.create.args`, with the line of the nearest part that is there."""
    at = path
    while at and at not in lines:
        at = at[:-1]
    line = lines.get(at)
    return f"{file}{'' if line is None else f':{line}'}{' ' if path else ''}{_dotted(path)}"


def _dotted(path: Keys) -> str:
    return ".".join(str(part) for part in path)


def _scalar(node: yaml.Node) -> Any:
    value = str(node.value)
    if getattr(node, "style", None):  # quoted or a block; a plain one has none
        return value
    if value in ("true", "false"):
        return value == "true"
    if value in ("", "null", "~"):
        return None
    number = _NUMBER.fullmatch(value)
    if number is None:
        return value
    return float(value) if number.group(2) or number.group(3) else int(value)
