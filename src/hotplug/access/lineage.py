"""Threads and where they come from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from hotplug.access.document import BooleanNode, NullNode, ObjectNode, TextNode, node_of, parse_node
from hotplug.access.errors import AccessError
from hotplug.access.names import listed, path_text

__all__ = ["DEEPEST", "Lineage", "Thread", "read_lineage"]

DEEPEST: Final = 64
"""Parents, one above the other, that a thread may have."""


@dataclass(frozen=True, slots=True)
class Thread:
    """One agent conversation.

    Args:
        id: Its name.
        parent: The thread that it was forked from or that opened it; None for a root.
        delegated: It is a sub-agent: its parent gave it a job. A fork isn't.
        project: Whose overrides apply to it.
    """

    id: str
    parent: str | None = None
    delegated: bool = False
    project: str | None = None


Lineage = Mapping[str, Thread]
"""Every thread that there is, by id."""

_FIELDS: Final = ("parent", "delegated", "project")


def read_lineage(text: str | bytes | Mapping[str, object]) -> Lineage:
    """A lineage from its document, `{thread: {"parent"?, "delegated"?, "project"?}}`, or from what it parses to.

    Raises:
        NotJson: the text is none.
        AccessError: an entry has another shape; the message names the place. A field that isn't known is refused:
            `delegate` in place of `delegated` would make a fork of a sub-agent.
    """
    root = parse_node(text) if isinstance(text, str | bytes) else node_of(text)
    if not isinstance(root, ObjectNode):
        raise AccessError(f"the lineage is a {root.kind}: write an object, thread by thread")
    if root.twice():
        raise AccessError(f"the lineage gives {listed(root.twice(), last='and')} twice: leave one")
    return {name: _thread(name, value) for name, value in root.members}


def _thread(name: str, value: object) -> Thread:
    place = path_text((name,))
    if not isinstance(value, ObjectNode):
        raise AccessError(f"{place} in the lineage is no object: write {{}} for a root")
    if value.twice():
        raise AccessError(f"{place} in the lineage gives {listed(value.twice(), last='and')} twice: leave one")
    for key in value.names():
        if key not in _FIELDS:
            raise AccessError(f"{path_text((name, key))} is no part of a lineage: a thread has {', '.join(_FIELDS)}")
    delegated = value.get("delegated")
    if delegated is not None and not isinstance(delegated, BooleanNode | NullNode):
        raise AccessError(f"{place}.delegated is a {delegated.kind}: write true or false")
    return Thread(
        name,
        parent=_text(name, value, "parent"),
        delegated=isinstance(delegated, BooleanNode) and delegated.value,
        project=_text(name, value, "project"),
    )


def _text(name: str, value: ObjectNode, key: str) -> str | None:
    node = value.get(key)
    if node is None or isinstance(node, NullNode):
        return None
    if isinstance(node, TextNode):
        return node.value
    raise AccessError(f"{path_text((name, key))} is a {node.kind}: write a name")
