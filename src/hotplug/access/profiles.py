"""An access profile: which servers, which groups, and per server which tools."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from hotplug.access.document import ListNode, Node, NullNode, ObjectNode, TextNode
from hotplug.access.names import ALL, BUILT_IN, HOST_ONLY, listed, near, path_text, quoted

__all__ = [
    "ALL_PROFILE",
    "EVERYTHING",
    "HOST_ONLY_PROFILE",
    "Everything",
    "Fault",
    "Profile",
    "ToolRule",
    "read_profile",
]


class Everything:
    """Holds every name, those that come later too: what `"all"` means."""

    __slots__ = ()

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str)

    def __repr__(self) -> str:
        return "everything"


EVERYTHING: Final = Everything()
Names = frozenset[str] | Everything


@dataclass(frozen=True, slots=True)
class ToolRule:
    """What a profile gives of one server's tools.

    Args:
        allow: Only these; everything where the rule doesn't say.
        deny: Never these; it wins over `allow`.
    """

    allow: Names = EVERYTHING
    deny: Names = frozenset()

    def gives(self, tool: str) -> bool:
        """Whether the rule gives this tool."""
        return tool in self.allow and tool not in self.deny

    @property
    def nothing(self) -> bool:
        """Whether it can give no tool, whatever the server comes to offer."""
        if not isinstance(self.deny, frozenset):
            return True
        return isinstance(self.allow, frozenset) and self.allow <= self.deny


@dataclass(frozen=True, slots=True)
class Profile:
    """Which servers, groups and tools.

    Args:
        servers: Outside servers.
        groups: Groups of the host's own tools.
        tools: A server without an entry gives all of its tools.
    """

    name: str
    servers: Names
    groups: Names
    tools: Mapping[str, ToolRule] = field(default_factory=dict[str, ToolRule])

    @property
    def built_in(self) -> bool:
        """Whether it is one of those that need no settings."""
        return self.name in BUILT_IN


ALL_PROFILE: Final = Profile(ALL, EVERYTHING, EVERYTHING)
HOST_ONLY_PROFILE: Final = Profile(HOST_ONLY, frozenset(), EVERYTHING)


class Fault(NamedTuple):
    """What is wrong with a profile's document: where in it, what, and what to do."""

    path: tuple[str, ...]
    message: str
    fix: str


_FIELDS: Final = ("servers", "groups", "tools")
_RULE: Final = ("allow", "deny")
_NEITHER: Final = 'write "all" or a list of names'


def read_profile(name: str, node: Node) -> Profile | Fault:
    """A profile from its document, or the first thing that makes it unusable; strict: a doubt closes it."""
    if not isinstance(node, ObjectNode):
        return Fault((), f"is a {node.kind}, not a profile", "write an object with servers and groups")
    fault = _fields(node, (), _FIELDS)
    if fault is not None:
        return fault
    found: dict[str, Names] = {}
    for part in ("servers", "groups"):
        value = node.get(part)
        if value is None:
            return Fault((part,), "is missing", f"{_NEITHER}; [] for none")
        names = _names(value, (part,))
        if isinstance(names, Fault):
            return names
        found[part] = names
    tools = node.get("tools")
    rules: dict[str, ToolRule] = {}
    if tools is not None:
        if not isinstance(tools, ObjectNode):
            return Fault(("tools",), f"is {_a(tools)}", "write an object, server by server, or leave it out")
        if tools.twice():
            return Fault(("tools", tools.twice()[0]), "is given twice", "leave one")
        for server, value in tools.members:
            rule = _rule(server, value)
            if isinstance(rule, Fault):
                return rule
            rules[server] = rule
    return Profile(name, found["servers"], found["groups"], rules)


def _rule(server: str, node: Node) -> ToolRule | Fault:
    path = ("tools", server)
    if not server.strip():
        return Fault(path, "names a blank server", "write the server's name")
    if not isinstance(node, ObjectNode):
        return Fault(path, f"is {_a(node)}", "write an object with allow, deny or both, or leave the server out")
    fault = _fields(node, path, _RULE)
    if fault is not None:
        return fault
    if not node.members:
        return Fault(path, "says neither allow nor deny", "write one of them, or leave the server out")
    found: dict[str, Names] = {}
    for part, value in node.members:
        names = _names(value, (*path, part))
        if isinstance(names, Fault):
            return names
        found[part] = names
    return ToolRule(found.get("allow", EVERYTHING), found.get("deny", frozenset()))


def _fields(node: ObjectNode, path: tuple[str, ...], known: tuple[str, ...]) -> Fault | None:
    if node.twice():
        return Fault((*path, node.twice()[0]), "is given twice", "leave one")
    for key in node.names():
        if key not in known:
            close = near(key, known)
            fix = f"did you mean {listed(close)}?" if close else f"take it out: there are {', '.join(known)}"
            return Fault((*path, key), "is a field that this build doesn't know", fix)
    return None


def _names(node: Node, path: tuple[str, ...]) -> Names | Fault:
    if isinstance(node, TextNode):
        if node.value == ALL:
            return EVERYTHING
        return Fault(path, f"is the text {quoted(node.value)}", f"{_NEITHER}, as in [{quoted(node.value)}]")
    if not isinstance(node, ListNode):
        return Fault(path, f"is {_a(node)}", f"{_NEITHER}; [] for none")
    found: set[str] = set()
    for item in node.items:
        if not isinstance(item, TextNode):
            return Fault(path, f"holds {_a(item)}", "write names only")
        if not item.value.strip():
            return Fault(path, "holds a blank name", "write the name, or take it out")
        found.add(item.value)
    return frozenset(found)


def _a(node: Node) -> str:
    return "null" if isinstance(node, NullNode) else f"{'an' if node.kind == 'object' else 'a'} {node.kind}"


def fault_text(path: tuple[str, ...], fault: Fault) -> str:
    """A fault in words, its place first."""
    return f"{path_text((*path, *fault.path))} {fault.message}"
