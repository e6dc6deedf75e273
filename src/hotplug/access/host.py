"""What a host has: outside servers with their tools, toolkits of its own in groups, and ungrouped tools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, cast

from hotplug.access.document import ListNode, Node, NullNode, ObjectNode, TextNode, node_of, parse_node
from hotplug.access.errors import AccessError
from hotplug.access.findings import Finding
from hotplug.access.names import listed, near, path_text, quoted

__all__ = ["Host", "Toolkit", "read_host"]


@dataclass(frozen=True, slots=True)
class Toolkit:
    """Tools of the host's own that belong together.

    Args:
        group: What profiles call it; None where each of its tools is ungrouped.
    """

    group: str | None
    tools: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Host:
    """Everything that a thread could be given.

    Args:
        servers: Outside servers that are set up, with the names of their tools.
        toolkits: The host's own tools, by toolkit.
        ungrouped: Tools that every thread gets that isn't refused, each with the toolkit it is pinned to.
    """

    servers: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    toolkits: Mapping[str, Toolkit] = field(default_factory=dict[str, Toolkit])
    ungrouped: Mapping[str, str] = field(default_factory=dict[str, str])
    _offered: Mapping[str, frozenset[str]] = field(init=False, repr=False, compare=False)
    _own: Mapping[str, frozenset[str]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        servers = {name: tuple(sorted(set(self.servers[name]))) for name in sorted(self.servers)}
        toolkits = {
            name: Toolkit(self.toolkits[name].group, tuple(sorted(set(self.toolkits[name].tools))))
            for name in sorted(self.toolkits)
        }
        object.__setattr__(self, "servers", servers)
        object.__setattr__(self, "toolkits", toolkits)
        object.__setattr__(self, "ungrouped", dict(self.ungrouped))
        object.__setattr__(self, "_offered", {name: frozenset(tools) for name, tools in servers.items()})
        object.__setattr__(self, "_own", {name: frozenset(kit.tools) for name, kit in toolkits.items()})

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups that its toolkits are in, each once, in order."""
        return tuple(sorted({kit.group for kit in self.toolkits.values() if kit.group is not None}))

    def offers(self, server: str, tool: str) -> bool:
        """Whether an outside server has this tool now."""
        return tool in self._offered.get(server, ())

    def owns(self, toolkit: str, tool: str) -> bool:
        """Whether a toolkit of the host's has this tool."""
        return tool in self._own.get(toolkit, ())

    def is_ungrouped(self, toolkit: str, tool: str) -> bool:
        """Whether every thread gets this tool: its name alone doesn't say so, in another toolkit it is another tool."""
        return self.ungrouped.get(tool) == toolkit

    def check(self) -> tuple[Finding, ...]:
        """What a host should find in its own tests: tools in no group and not on the list, and names that mean nothing.

        A tool that is in neither is not allowed, to anyone.
        """
        found: list[Finding] = []
        for name, kit in self.toolkits.items():
            place = path_text(("toolkits", name))
            if kit.group is None:
                found.extend(_in_neither(name, tool) for tool in kit.tools if not self.is_ungrouped(name, tool))
            elif not kit.group.strip():
                found.append(
                    Finding("blank_name", f"{place}.group", "the group has no name", "name it, or leave it out")
                )
            if name in self.servers:
                found.append(
                    Finding(
                        "name_of_both",
                        place,
                        f"{quoted(name)} is the name of a toolkit and of a server, so nobody gets either",
                        "rename one of them",
                    )
                )
        for tool, name in self.ungrouped.items():
            if not self.owns(name, tool):
                known = self.toolkits[name].tools if name in self.toolkits else tuple(self.toolkits)
                close = near(tool if name in self.toolkits else name, known)
                found.append(
                    Finding(
                        "ungrouped_nowhere",
                        path_text(("ungrouped", tool)),
                        f"the toolkit {quoted(name)} has no tool {quoted(tool)}"
                        if name in self.toolkits
                        else f"there is no toolkit {quoted(name)}",
                        f"did you mean {listed(close)}?" if close else "take it off the list",
                        close,
                    )
                )
        return tuple(found)


def _in_neither(name: str, tool: str) -> Finding:
    return Finding(
        "tool_in_neither",
        f"{path_text(('toolkits', name))}.tools",
        f"the tool {quoted(tool)} is in no group and not on the list of ungrouped tools, so nobody gets it",
        f"give {quoted(name)} a group, or put the tool on the list of ungrouped ones",
    )


_KIT: Final = ("group", "tools")


def read_host(text: str | bytes | Mapping[str, object]) -> Host:
    """A host from its document, or from what `json.loads` made of one.

    `{"servers": {name: [tools]}, "toolkits": {name: {"group": …, "tools": […]}}, "ungrouped": {tool: toolkit}}`: all
    three may be left out, a server may also be `{"tools": […]}`, a toolkit without group has ungrouped tools only.

    Raises:
        NotJson: the text is none.
        AccessError: a part has another shape; the message names the place.
    """
    root = parse_node(text) if isinstance(text, str | bytes) else node_of(text)
    top = _object(root, ())
    for key in top:
        if key not in ("servers", "toolkits", "ungrouped", "schema"):
            raise AccessError(f"{path_text((key,))} is no part of a host: it has servers, toolkits and ungrouped")
    servers: dict[str, tuple[str, ...]] = {}
    for name, value in _object(top.get("servers"), ("servers",)).items():
        if isinstance(value, ObjectNode):
            value = _object(value, ("servers", name)).get("tools")
        servers[name] = _texts(value, ("servers", name))
    kits: dict[str, Toolkit] = {}
    for name, value in _object(top.get("toolkits"), ("toolkits",)).items():
        parts = _object(value, ("toolkits", name))
        for key in parts:
            if key not in _KIT:
                raise AccessError(
                    f"{path_text(('toolkits', name, key))} is no part of a toolkit: it has group and tools"
                )
        group = parts.get("group")
        if group is not None and not isinstance(group, NullNode | TextNode):
            raise AccessError(f"{path_text(('toolkits', name, 'group'))} is a {group.kind}: write the group's name")
        kits[name] = Toolkit(
            group.value if isinstance(group, TextNode) else None,
            _texts(parts.get("tools"), ("toolkits", name, "tools")),
        )
    ungrouped: dict[str, str] = {}
    for tool, value in _object(top.get("ungrouped"), ("ungrouped",)).items():
        if not isinstance(value, TextNode):
            raise AccessError(f"{path_text(('ungrouped', tool))} is a {value.kind}: write the toolkit's name")
        ungrouped[tool] = value.value
    return Host(cast("Mapping[str, Sequence[str]]", servers), kits, ungrouped)


def _object(node: Node | None, path: tuple[str, ...]) -> dict[str, Node]:
    place = path_text(path) or "the document"
    if node is None:
        return {}
    if not isinstance(node, ObjectNode):
        raise AccessError(f"{place} is a {node.kind}: it should be an object")
    if node.twice():
        raise AccessError(f"{place} gives {listed(node.twice(), last='and')} twice: leave one")
    return dict(node.members)


def _texts(node: Node | None, path: tuple[str, ...]) -> tuple[str, ...]:
    if not isinstance(node, ListNode):
        kind = "missing" if node is None else f"a {node.kind}"
        raise AccessError(f"{path_text(path)} is {kind}: it should be a list of tool names")
    found: list[str] = []
    for item in node.items:
        if not isinstance(item, TextNode):
            raise AccessError(f"{path_text(path)} holds a {item.kind}: it should be a list of tool names")
        found.append(item.value)
    return tuple(found)
