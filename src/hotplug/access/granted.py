"""What a thread gets: a decision, with its reason, for every server and tool."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from hotplug.access.host import Host
from hotplug.access.names import PROFILES, path_text, quoted
from hotplug.access.profiles import Everything, Profile, ToolRule

__all__ = ["OUTSIDE", "Access", "Decision", "Layer", "Refused", "Rule", "Step", "Withheld"]

Rule = Literal[
    "given",
    "ungrouped",
    "server_left_out",
    "tool_not_allowed",
    "tool_denied",
    "group_left_out",
    "in_neither",
    "name_of_both",
    "no_such_server",
    "no_such_tool",
    "refused",
]

OUTSIDE: Final = "there is no such tool"
"""What the wire says of a tool that isn't given, whether it exists or not."""

_OPEN: Final = ToolRule()
_SHUT: Final = ToolRule(allow=frozenset())


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that the resolver did.

    Args:
        thread: For which thread of the lineage.
        kind: `pick`, `no-pick`, `role`, `profile`, `cut`, `narrow` or `refused`.
        text: In words.
        setting: The setting that decided; None where none did.
        value: What it says; None where it is not set.
    """

    thread: str
    kind: str
    text: str
    setting: str | None = None
    value: str | None = None

    def document(self) -> dict[str, object]:
        """The step for programs."""
        return {
            "thread": self.thread,
            "kind": self.kind,
            "setting": self.setting,
            "value": self.value,
            "text": self.text,
        }


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether a thread gets one tool.

    Args:
        allowed: Whether it does.
        reason: For the owner and for whoever opened the thread; the caller reads `OUTSIDE`.
        rule: Which kind of rule decided.
        setting: The place of that rule in the settings; None where none decided.
        by: The setting that brought the rule in.
        thread: The thread in the lineage that it was brought in for.
    """

    allowed: bool
    reason: str
    rule: Rule
    setting: str | None = None
    by: str | None = None
    thread: str | None = None

    def __bool__(self) -> bool:
        return self.allowed

    def document(self) -> dict[str, object]:
        """The decision for programs."""
        return {
            "allowed": self.allowed,
            "rule": self.rule,
            "reason": self.reason,
            "setting": self.setting,
            "by": self.by,
            "thread": self.thread,
        }


@dataclass(frozen=True, slots=True)
class Withheld:
    """Tools that a thread doesn't get, by the rule that keeps them.

    Args:
        server: The outside server or the toolkit.
        tools: Which; none where a server is left out that offers none now.
        whole: All that it has, later ones too.
        decision: Why.
    """

    server: str
    tools: tuple[str, ...]
    whole: bool
    decision: Decision

    def document(self) -> dict[str, object]:
        """The entry for programs."""
        found = self.decision.document()
        del found["allowed"]
        return {"server": self.server, "tools": list(self.tools), "whole": self.whole, **found}


@dataclass(frozen=True, slots=True)
class Layer:
    """A profile that applies, and why.

    Args:
        thread: For which thread of the lineage.
        setting: What names it.
        profile: What it gives.
    """

    thread: str
    setting: str
    profile: Profile

    def rule(self, server: str) -> ToolRule:
        """What it gives of a server's tools."""
        if server not in self.profile.servers:
            return _SHUT
        return self.profile.tools.get(server, _OPEN)

    def place(self, *path: str) -> str:
        """Where a part of the profile stands; a built-in one stands nowhere, so what names it."""
        return self.setting if self.profile.built_in else path_text((PROFILES, self.profile.name, *path))


@dataclass(frozen=True, slots=True)
class Refused:
    """A thread that gets nothing.

    Args:
        thread: The thread.
        code: Stable, for programs: `unknown_profile`, `loop`, ….
        reason: Why.
        fix: What the owner does.
        setting: The setting that decided; None where none did.
        at: The thread of the lineage where it was decided: itself, or one above.
        steps: What the resolver did.
    """

    thread: str
    code: str
    reason: str
    fix: str
    setting: str | None
    at: str
    steps: tuple[Step, ...] = ()

    def allows(self, server: str, tool: str) -> Decision:
        """Never; the reason is the thread's."""
        return Decision(False, self.reason, "refused", self.setting, self.setting, self.at)

    def document(self) -> dict[str, object]:
        """The refusal for programs."""
        return {
            "code": self.code,
            "reason": self.reason,
            "fix": self.fix,
            "setting": self.setting,
            "at": self.at,
        }


@dataclass(frozen=True, slots=True)
class Access:
    """What a thread gets of a host: what every one of its layers gives.

    Args:
        thread: The thread.
        layers: Its own profile first, then those it is cut down by.
        host: What there is.
        unknown_servers: Named by a layer, and not set up.
        unknown_groups: Named by a layer, and not there: they keep nothing.
        steps: What the resolver did.
    """

    thread: str
    layers: tuple[Layer, ...]
    host: Host
    unknown_servers: tuple[str, ...] = ()
    unknown_groups: tuple[str, ...] = ()
    steps: tuple[Step, ...] = ()
    _rules: dict[str, ToolRule] = field(default_factory=dict[str, ToolRule], init=False, repr=False, compare=False)

    def allows(self, server: str, tool: str) -> Decision:
        """Whether the thread may call a tool of an outside server, or of a toolkit of the host's; why or why not."""
        if server in self.host.toolkits:
            return self._own(server, tool)
        if not self.host.offers(server, tool):
            if server in self.host.servers:
                return Decision(False, f"{quoted(server)} offers no tool {quoted(tool)}", "no_such_tool")
            return Decision(False, f"no server {quoted(server)} is set up", "no_such_server")
        if self.rule(server).gives(tool):
            layer = self.layers[0]
            return Decision(
                True, f"{self._words(layer)} gives it", "given", layer.place("servers"), layer.setting, layer.thread
            )
        return next(self._against(server, tool))

    def rule(self, server: str) -> ToolRule:
        """What all layers together give of an outside server's tools, those that it will offer later too."""
        found = self._rules.get(server)
        if found is None:
            found = _SHUT if server in self.host.toolkits else self._joined(server)
            self._rules[server] = found
        return found

    @property
    def servers(self) -> tuple[str, ...]:
        """The outside servers that it gets something of, now or once they offer more; sorted."""
        return tuple(server for server in self.host.servers if not self.rule(server).nothing)

    @property
    def groups(self) -> tuple[str, ...]:
        """The host's groups that it gets; sorted."""
        return tuple(group for group in self.host.groups if self._group(group) is None)

    @property
    def tools(self) -> tuple[tuple[str, str], ...]:
        """Every tool that it gets, as (server or toolkit, tool): the servers' first, each part sorted."""
        found: list[tuple[str, str]] = []
        for server in self.host.servers:
            found.extend((server, tool) for tool in self.tools_of(server))
        for toolkit in self.host.toolkits:
            if toolkit not in self.host.servers:
                found.extend((toolkit, tool) for tool in self.tools_of(toolkit))
        return tuple(found)

    def tools_of(self, server: str) -> tuple[str, ...]:
        """What it gets of a server or a toolkit; sorted."""
        kit = self.host.toolkits.get(server)
        if kit is not None:
            return tuple(tool for tool in kit.tools if self._own(server, tool).allowed)
        rule, offered = self.rule(server), self.host.servers.get(server, ())
        if isinstance(rule.allow, Everything) and not rule.deny:
            return tuple(offered)
        return tuple(tool for tool in offered if rule.gives(tool))

    def withheld(self) -> tuple[Withheld, ...]:
        """Everything that the host has and the thread doesn't get, by the rule that keeps it."""
        found: list[Withheld] = []
        for server in dict.fromkeys((*self.host.servers, *self.host.toolkits)):
            kit = self.host.toolkits.get(server)
            has = self.host.servers[server] if kit is None else kit.tools
            shut = kit is None and self.rule(server).nothing
            if shut and not has:
                found.append(Withheld(server, (), True, next(self._against(server, ""))))
                continue
            kept: dict[Decision, list[str]] = {}
            for tool in has:
                decision = self.allows(server, tool)
                if not decision.allowed:
                    kept.setdefault(decision, []).append(tool)
            found.extend(
                Withheld(server, tuple(tools), shut and len(kept) == 1, decision) for decision, tools in kept.items()
            )
        return tuple(found)

    def narrowed(self, profile: Profile, source: str) -> Access:
        """Cut down further, by a profile that isn't the owner's: a file in a repository can narrow, and only that.

        Args:
            profile: What it would give at most.
            source: Where it stands, as `.hotplug.toml`; named in reasons.
        """
        layer = Layer(self.thread, source, profile)
        step = Step(self.thread, "narrow", f"{source} may only narrow: cut down to what it gives", source, profile.name)
        return replace(self, layers=(*self.layers, layer), steps=(*self.steps, step))

    def _joined(self, server: str) -> ToolRule:
        allow = _OPEN.allow
        deny = _OPEN.deny
        for layer in self.layers:
            rule = layer.rule(server)
            if isinstance(allow, Everything):
                allow = rule.allow
            elif not isinstance(rule.allow, Everything):
                allow &= rule.allow
            if isinstance(deny, Everything) or isinstance(rule.deny, Everything):
                return _SHUT
            deny |= rule.deny
        return ToolRule(allow, deny)

    def _against(self, server: str, tool: str) -> Iterator[Decision]:
        """What each layer that keeps a tool says, the nearest first."""
        for layer in self.layers:
            words = self._words(layer)
            if server not in layer.profile.servers:
                yield self._denied(
                    layer, f"{words} leaves out the server {quoted(server)}", "server_left_out", "servers"
                )
                continue
            rule = layer.profile.tools.get(server)
            if rule is None:
                continue
            if tool in rule.deny:
                yield self._denied(layer, f"{words} denies it", "tool_denied", "tools", server, "deny")
            elif tool not in rule.allow:
                text = (
                    f"{words} gives other tools of {quoted(server)}"
                    if rule.allow
                    else f"{words} gives none of its tools"
                )
                yield self._denied(layer, text, "tool_not_allowed", "tools", server, "allow")
        # Together they can give nothing where each gives something; that has no one rule.
        yield Decision(False, "its profiles together give none of it", "server_left_out")

    def _denied(self, layer: Layer, reason: str, rule: Rule, *path: str) -> Decision:
        return Decision(False, reason, rule, layer.place(*path), layer.setting, layer.thread)

    def _own(self, toolkit: str, tool: str) -> Decision:
        if toolkit in self.host.servers:
            reason = f"{quoted(toolkit)} is the name of a server and of a toolkit, so neither is given"
            return Decision(False, reason, "name_of_both")
        if not self.host.owns(toolkit, tool):
            return Decision(False, f"{quoted(toolkit)} has no tool {quoted(tool)}", "no_such_tool")
        if self.host.is_ungrouped(toolkit, tool):
            return Decision(True, "it is ungrouped: every thread gets it that isn't refused", "ungrouped")
        group = self.host.toolkits[toolkit].group
        if group is None or not group.strip():
            return Decision(False, f"{quoted(tool)} is in no group and not ungrouped, so nobody gets it", "in_neither")
        against = self._group(group)
        if against is None:
            layer = self.layers[0]
            return Decision(
                True, f"{self._words(layer)} gives it", "given", layer.place("groups"), layer.setting, layer.thread
            )
        return self._denied(
            against, f"{self._words(against)} leaves out the group {quoted(group)}", "group_left_out", "groups"
        )

    def _group(self, group: str) -> Layer | None:
        """The nearest layer that leaves a group out."""
        return next((layer for layer in self.layers if group not in layer.profile.groups), None)

    def _words(self, layer: Layer) -> str:
        whose = "" if layer.thread == self.thread else f" for {quoted(layer.thread)} above it"
        return f"{quoted(layer.profile.name)} ({layer.setting}{whose})"
