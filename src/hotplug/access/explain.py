"""Why a thread gets what it gets, as data: the command line and the page print the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hotplug.access.granted import Access, Decision, Refused, Step, Withheld
from hotplug.access.host import Host
from hotplug.access.lineage import Thread
from hotplug.access.resolver import resolve
from hotplug.access.settings import Settings

__all__ = ["Explanation", "explain"]


@dataclass(frozen=True, slots=True)
class Explanation:
    """The steps to an answer, and the answer.

    Args:
        thread: The thread that was asked about.
        answer: What it gets, or that it is refused.
        steps: What was done, each with the setting that decided.
        withheld: What the host has and the thread doesn't get, by rule; nothing for a refused thread, which gets none.
        asked: The one tool that was asked about, as (server, tool), with its decision.
        warning: What must be said loudly of the settings.
    """

    thread: str
    answer: Access | Refused
    steps: tuple[Step, ...]
    withheld: tuple[Withheld, ...]
    asked: tuple[str, str] | None = None
    decision: Decision | None = None
    warning: str | None = None

    @property
    def allowed(self) -> bool:
        """Whether the tool that was asked about is given; without one, whether the thread starts."""
        return isinstance(self.answer, Access) if self.decision is None else self.decision.allowed

    def document(self) -> dict[str, object]:
        """The explanation for programs; what isn't there is left out."""
        found: dict[str, object] = {"thread": self.thread}
        if self.warning is not None:
            found["warning"] = self.warning
        found["steps"] = [step.document() for step in self.steps]
        if isinstance(self.answer, Refused):
            found["refused"] = self.answer.document()
        else:
            tools: dict[str, list[str]] = {}
            for server, tool in self.answer.tools:
                tools.setdefault(server, []).append(tool)
            found["access"] = {
                "profiles": [
                    {"thread": layer.thread, "setting": layer.setting, "profile": layer.profile.name}
                    for layer in self.answer.layers
                ],
                "servers": list(self.answer.servers),
                "groups": list(self.answer.groups),
                "tools": tools,
                "unknownServers": list(self.answer.unknown_servers),
                "unknownGroups": list(self.answer.unknown_groups),
                "withheld": [one.document() for one in self.withheld],
            }
        if self.asked is not None and self.decision is not None:
            found["tool"] = {"server": self.asked[0], "tool": self.asked[1], **self.decision.document()}
        return found


def explain(
    settings: Settings,
    thread_id: str,
    lineage: Mapping[str, Thread],
    host: Host,
    *,
    tool: tuple[str, str] | None = None,
) -> Explanation:
    """Explains what `resolve` answers.

    Args:
        tool: One to decide on, as (server or toolkit, tool).
    """
    answer = resolve(settings, thread_id, lineage, host)
    return Explanation(
        thread=thread_id,
        answer=answer,
        steps=answer.steps,
        withheld=answer.withheld() if isinstance(answer, Access) else (),
        asked=tool,
        decision=None if tool is None else answer.allows(*tool),
        warning=settings.warning,
    )
