"""What a thread gets: a decision, with its reason, for every server and tool."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final, Literal

from hotplug.access.host import Host
from hotplug.access.names import PROFILES, path_text, quoted
from hotplug.access.profiles import EVERYTHING, Profile, ToolRule

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
        reason: For the owner and for whoever opened the thread; the caller reads `outside`.
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

    @property
    def outside(self) -> str:
        """What the caller reads of it: for everything that isn't given the same, whether it exists or not."""
        return "" if self.allowed else OUTSIDE

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
    _layered: dict[str, tuple[tuple[Layer, ToolRule | None], ...]] = field(
        default_factory=dict[str, "tuple[tuple[Layer, ToolRule | None], ...]"], init=False, repr=False, compare=False
    )
    _grouped: dict[str, Layer | None] = field(
        default_factory=dict[str, "Layer | None"], init=False, repr=False, compare=False
    )
    _given: dict[str, Decision] = field(default_factory=dict[str, "Decision"], init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        layer = self.layers[0]
        for part in ("servers", "groups"):
            self._given[part] = Decision(
                True, f"{self._words(layer)} gives it", "given", layer.place(part), layer.setting, layer.thread
            )

    def allows(self, server: str, tool: str) -> Decision:
        """Whether the thread may call a tool of an outside server, or of a toolkit of the host's; why or why not."""
        if server in self.host.toolkits:
            return self._own(server, tool)
        if not self.host.offers(server, tool):
            if server in self.host.servers:
                return Decision(False, f"{quoted(server)} offers no tool {quoted(tool)}", "no_such_tool")
            return Decision(False, f"no server {quoted(server)} is set up", "no_such_server")
        if self.rule(server).gives(tool):
            return self._given["servers"]
        return self._against(server, tool)

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
            if server in self.host.servers:
                return ()
            if kit.group is not None and kit.group.strip() and self._group(kit.group) is None:
                return kit.tools
            return tuple(tool for tool in kit.tools if self.host.is_ungrouped(server, tool))
        rule, offered = self.rule(server), self.host.servers.get(server, ())
        if isinstance(rule.allow, frozenset):
            kept = rule.allow - rule.deny if isinstance(rule.deny, frozenset) else frozenset[str]()
            return tuple(tool for tool in offered if tool in kept)
        return tuple(tool for tool in offered if tool not in rule.deny) if rule.deny else tuple(offered)

    def withheld(self) -> tuple[Withheld, ...]:
        """Everything that the host has and the thread doesn't get, by the rule that keeps it."""
        found: list[Withheld] = []
        for server in dict.fromkeys((*self.host.servers, *self.host.toolkits)):
            kit = self.host.toolkits.get(server)
            has = self.host.servers[server] if kit is None else kit.tools
            shut = kit is None and self.rule(server).nothing
            if shut and not has:
                found.append(Withheld(server, (), True, self._against(server, "")))
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
        allows: list[frozenset[str]] = []
        denies: list[frozenset[str]] = []
        for _, rule in self._ruled(server):
            if rule is None or not isinstance(rule.deny, frozenset):
                return _SHUT
            denies.append(rule.deny)
            if isinstance(rule.allow, frozenset):
                allows.append(rule.allow)
        deny = frozenset[str]().union(*denies)
        if not allows:
            return ToolRule(EVERYTHING, deny)
        kept, *others = sorted(allows, key=len)
        for other in others:
            if not kept <= other:  # looking is cheaper than making a set, and mostly enough
                kept &= other
        return ToolRule(kept - deny)

    def _ruled(self, server: str) -> tuple[tuple[Layer, ToolRule | None], ...]:
        """The layers that say anything of a server, each with its rule; None where it leaves the server out."""
        found = self._layered.get(server)
        if found is None:
            ruled: list[tuple[Layer, ToolRule | None]] = []
            for layer in self.layers:
                profile = layer.profile
                if profile.servers is not EVERYTHING and server not in profile.servers:
                    ruled.append((layer, None))
                elif server in profile.tools:
                    ruled.append((layer, profile.tools[server]))
            found = self._layered[server] = tuple(ruled)
        return found

    def _against(self, server: str, tool: str) -> Decision:
        """What the nearest layer that keeps a tool says."""
        for layer, rule in self._ruled(server):
            if rule is None:
                return self._denied(layer, f"leaves out the server {quoted(server)}", "server_left_out", "servers")
            if tool in rule.deny:
                return self._denied(layer, "denies it", "tool_denied", "tools", server, "deny")
            if rule.allow is not EVERYTHING and tool not in rule.allow:
                text = f"gives {'only other tools' if rule.allow else 'no tool'} of {quoted(server)}"
                return self._denied(layer, text, "tool_not_allowed", "tools", server, "allow")
        # Where each layer gives some tool and all together none, no one rule says so.
        return Decision(False, "its profiles together give none of it", "server_left_out")

    def _denied(self, layer: Layer, reason: str, rule: Rule, *path: str) -> Decision:
        words = f"{self._words(layer)} {reason}"
        return Decision(False, words, rule, layer.place(*path), layer.setting, layer.thread)

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
            return self._given["groups"]
        return self._denied(against, f"leaves out the group {quoted(group)}", "group_left_out", "groups")

    def _group(self, group: str) -> Layer | None:
        """The nearest layer that leaves a group out."""
        if group not in self._grouped:
            self._grouped[group] = next((layer for layer in self.layers if group not in layer.profile.groups), None)
        return self._grouped[group]

    def _words(self, layer: Layer) -> str:
        whose = "" if layer.thread == self.thread else f" for {quoted(layer.thread)} above it"
        return f"{quoted(layer.profile.name)} ({layer.setting}{whose})"
