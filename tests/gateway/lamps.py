"""A small profile with volatile refs and a guarded part, and a server of somebody else's that speaks it: a fake.

It answers on the wire of the SDK's server, so that it can declare and answer whatever a test wants.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from mcp.server.lowlevel import Server

from hotplug.catalog import Connection
from hotplug.profile import Model, Profile, Receipt, Ref, operation, read, receipt
from hotplug.serve.bound import bind

__all__ = ["Foreign", "Lamps"]


class Lamp(Ref, kind="lamps.lamp", volatile=True):
    """A lamp that is in the room now."""


class Room(Ref, kind="lamps.room"):
    """A room."""


class Found(Model):
    lamps: list[Lamp]
    room: Room


class Done(Model):
    receipt: Receipt = receipt()


class Lamps(Profile, name="lamps", version="1.1.0"):
    """Lamps. For tests."""

    @read("lamps.find", sense="state")
    async def find(self, room: Room | None = None) -> Found:
        """Find lamps."""
        ...

    @operation("lamps.press", effects=True, once=True)
    async def press(self, lamp: Lamp) -> Done:
        """Press a lamp's button."""
        ...

    @operation("lamps.smash", effects=True, guarded=True)
    async def smash(self, lamp: Lamp) -> Done:
        """Smash a lamp."""
        ...


class _Listed(Lamps):
    async def find(self, room: Room | None = None) -> Found:
        raise NotImplementedError

    async def press(self, lamp: Lamp) -> Done:
        raise NotImplementedError

    async def smash(self, lamp: Lamp) -> Done:
        raise NotImplementedError


class Foreign:
    """What it declares, lists and answers is what a test says; each call is kept as it came.

    Args:
        keeps_keys: Has the parts of connection@1.
    """

    def __init__(self, *, keeps_keys: bool = True, **declared: Any) -> None:
        from hotplug.serve import NativeProvider
        from hotplug.serve.bound import Bound

        bound = bind(NativeProvider(_Listed(), Lamps))
        self.tools: dict[str, dict[str, Any]] = {one.part.name: one.tool.listed() for one in bound}
        if keeps_keys:
            for name, part in Connection.definition.all_parts.items():
                member = Connection.definition.member(name)
                self.tools[name] = Bound(part, member, bound[0].provider).tool.listed()
        self.declared: dict[str, Any] = {"profiles": {"lamps": "1.1.0"}, **declared}
        if keeps_keys:
            self.declared["profiles"] = {**self.declared["profiles"], "connection": "1.0.0"}
        self.calls: list[Mapping[str, Any]] = []
        self.answers: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {}
        self.raw: dict[str, dict[str, Any]] = {}
        """Results as they stand on the wire, by tool."""
        self.server: Server[Any] = Server("lamps", version="1")
        self.server.middleware.append(self._answer)

    def rename(self, name: str, to: str) -> None:
        """List a tool under another name, which says nothing of its member."""
        tool = self.tools.pop(name)
        tool.pop("_meta")
        self.tools[to] = {**tool, "name": to}

    async def _answer(self, ctx: Any, call_next: Any) -> Any:
        if ctx.method == "tools/list":
            return {"tools": list(self.tools.values()), "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
        if ctx.method == "tools/call":
            self.calls.append(dict(ctx.params))
            name = ctx.params["name"]
            if name in self.raw:
                return {**self.raw[name], "resultType": "complete"}
            content = self.answers[name](ctx.params) if name in self.answers else self._content(name)
            failed = set(content) >= {"code", "message"}
            return {
                "content": [{"type": "text", "text": json.dumps(content)}, {"type": "text", "text": "by the way"}],
                "structuredContent": content,
                "isError": failed,
                "resultType": "complete",
            }
        result = await call_next(ctx)
        if ctx.method in {"initialize", "server/discover"}:
            result["capabilities"]["tools"] = {}
            result["capabilities"]["extensions"] = {"tools.noetic/profiles": self.declared}
        return result

    def _content(self, name: str) -> dict[str, Any]:
        if name == "lamps.find":
            return {"lamps": ["s1.e2"], "room": "room-7", "x-brightness": 12345678901234567890}
        return {"receipt": {"actionId": f"a_{len(self.calls)}", "dispatched": True, "at": "2026-01-01T00:00:00Z"}}
