"""The owner, who changes the settings all the time and remembers what stood in them when."""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Literal

TOOLS: Mapping[str, tuple[str, ...]] = {
    "own": ("echo", "slow", "big", "other"),
    "all": ("echo", "slow", "big", "other"),
    "frail": ("add", "echo"),
    "stuck": ("echo", "other"),
    "web": ("echo", "other"),
    "cal": ("calendar.calendars", "calendar.create", "calendar.get"),
}
"""What the soak calls of each server."""

Verdict = Literal["given", "refused", "either"]
_KEPT = 5_000


@dataclass
class Thread:
    """A thread as its opener knows it."""

    id: str
    token: str
    parent: Thread | None
    delegated: bool
    closed: float | None = None
    """When it was begun to be closed."""
    surely: float | None = None
    """When that had been done."""
    calendar: str | None = None
    events: dict[str, str] = field(default_factory=dict[str, str])
    """Marks by ref."""


def shut(thread: Thread) -> bool:
    """Whether a thread is being closed, or one above it is."""
    at: Thread | None = thread
    while at is not None:
        if at.closed is not None:
            return True
        at = at.parent
    return False


class Owner:
    """Writes the settings of a gateway.

    Args:
        path: The settings' file.
    """

    def __init__(self, path: Path, random: Random) -> None:
        self._path = path
        self._random = random
        self._profiles: dict[str, Any] = {f"p{number}": self._profile() for number in range(6)}
        self._picks: dict[str, str] = {}
        self._subagents = "p0"
        self._history: deque[tuple[float, float, Mapping[str, Any]]] = deque(maxlen=_KEPT)
        self.changes = 0
        self._save()

    def open_all(self) -> None:
        """Give everything to everybody who isn't a sub-agent."""
        self._picks = {}
        self._save()

    def change(self, threads: list[Thread]) -> None:
        """Change one thing."""
        match self._random.randrange(5):
            case 0 | 1:
                self._profiles[self._random.choice(sorted(self._profiles))] = self._profile()
            case 2 | 3 if threads:
                thread = self._random.choice(threads).id
                if self._random.random() < 0.4:
                    self._picks.pop(thread, None)
                else:
                    self._picks[thread] = self._random.choice(sorted(self._profiles))
            case _:
                self._subagents = self._random.choice([*sorted(self._profiles), "inherit"])
        known = {thread.id for thread in threads}
        self._picks = {thread: name for thread, name in self._picks.items() if thread in known}
        self._save()

    def verdict(self, thread: Thread, server: str, tool: str, began: float, ended: float) -> Verdict:
        """What all settings that stood at any moment between two say of a tool: one thing, or not the same."""
        said = {_gives(document, thread, server, tool) for document in self._between(began, ended)}
        return "either" if len(said) != 1 else "given" if said.pop() else "refused"

    def _between(self, began: float, ended: float) -> list[Mapping[str, Any]]:
        found: list[Mapping[str, Any]] = []
        until = float("inf")
        for begun, done, document in reversed(self._history):
            if begun <= ended and until >= began:
                found.append(document)
            if done < began:
                return found
            until = done
        assert len(self._history) < _KEPT, "the history doesn't reach back so far"
        return found

    def _save(self) -> None:
        document = {
            "mcpProfiles": dict(self._profiles),
            "mcpSubagentProfile": self._subagents,
            "mcpThreadProfiles": dict(self._picks),
        }
        fresh = self._path.with_suffix(".new")
        fresh.write_text(json.dumps(document), encoding="utf-8")
        begun = time.monotonic()
        fresh.replace(self._path)
        self._history.append((begun, time.monotonic(), document))
        self.changes += 1

    def _profile(self) -> dict[str, Any]:
        random = self._random
        if random.random() < 0.2:
            return {"servers": "all", "groups": []}
        servers = [name for name in TOOLS if random.random() < 0.75]
        rules: dict[str, Any] = {}
        for name in servers:
            match random.randrange(4):
                case 0:
                    rules[name] = {"allow": [tool for tool in TOOLS[name] if random.random() < 0.5]}
                case 1:
                    rules[name] = {"deny": [tool for tool in TOOLS[name] if random.random() < 0.5]}
                case _:
                    pass
        return {"servers": servers, "groups": [], "tools": rules}


def _gives(document: Mapping[str, Any], thread: Thread, server: str, tool: str) -> bool:
    pick = document["mcpThreadProfiles"].get(thread.id)
    name = pick or (document["mcpSubagentProfile"] if thread.delegated else "all")
    profile = document["mcpProfiles"].get(name, {"servers": "all"})
    if profile["servers"] != "all" and server not in profile["servers"]:
        return False
    rule = profile.get("tools", {}).get(server, {})
    if tool in rule.get("deny", ()) or tool not in rule.get("allow", (tool,)):
        return False
    return pick is not None or thread.parent is None or _gives(document, thread.parent, server, tool)
