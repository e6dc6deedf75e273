"""Which settings of a patch somebody else changed in the meantime."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from hotplug.access.document import Node, ObjectNode, node_of, parse_node

__all__ = ["overlapping"]

_MAPS: Final = ("mcpProfiles", "mcpThreadProfiles", "projects")
"""The settings that are patched entry by entry."""


def overlapping(patch: Mapping[str, object], base: bytes | None, now: bytes | None) -> tuple[str, ...]:
    """The settings that the patch changes and that differ between two contents, as `mcpThreadProfiles.build-7`.

    Args:
        patch: As for a save.
        base: What its maker had before his eyes; None: no file.
        now: What the file holds.

    Raises:
        AccessError: A content isn't JSON.
    """
    before, after = _root(base), _root(now)
    return tuple(".".join(path) for path in _paths(patch) if _at(before, path) != _at(after, path))


def _root(content: bytes | None) -> Node:
    return ObjectNode() if content is None else parse_node(content)


def _paths(patch: Mapping[str, object]) -> Iterator[tuple[str, ...]]:
    for key, value in patch.items():
        node = node_of(value)
        if key in _MAPS and isinstance(node, ObjectNode):
            yield from ((key, entry) for entry in node.names())
        else:
            yield (key,)


def _at(node: Node, path: tuple[str, ...]) -> tuple[Node, ...]:
    """Everything that stands at a path: none, one, or more where a key is given twice."""
    found: tuple[Node, ...] = (node,)
    for key in path:
        found = tuple(value for one in found if isinstance(one, ObjectNode) for value in one.values(key))
    return found
