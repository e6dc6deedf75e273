"""A small calendar server that knows no profile, with the faults that a test provokes: a fake, on the real SDK."""

from __future__ import annotations

import json
from typing import Any

from mcp.server.mcpserver import MCPServer
from mcp.types import CallToolResult, TextContent

__all__ = ["BIG", "Diary"]

BIG = 810234567890123457
"""An id beyond 2^53, sent as a number."""


def _text(body: Any, *, is_error: bool = False) -> CallToolResult:
    return CallToolResult(
        content=[TextContent(type="text", text=body if isinstance(body, str) else json.dumps(body))], is_error=is_error
    )


class Diary:
    """Entries by id. Set `fault` to have the next call of that tool go wrong in a way that a real server did."""

    def __init__(self) -> None:
        self.entries: dict[int, dict[str, Any]] = {}
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.fault: dict[str, str] = {}
        self.server = MCPServer("diary")
        self._next = BIG
        for tool in (self.diaries, self.entries_of, self.add_entry, self.change_entry, self.drop_entry):
            self.server.add_tool(tool, structured_output=False)

    async def diaries(self) -> CallToolResult:
        """List the diaries."""
        return _text([{"id": "main", "label": "Main"}, {"id": "old", "label": "Old"}])

    async def entries_of(self, diary: str) -> CallToolResult:
        """List the entries of a diary."""
        self.calls.append(("entries_of", {"diary": diary}))
        if self.fault.get("entries_of") == "down":
            return _text({"status": "error", "reason": "no session"})
        if self.fault.get("entries_of") == "noise":
            return _text("<html>Bad gateway</html>")
        return _text([entry for entry in self.entries.values() if entry["diary"] == diary])

    async def add_entry(
        self, diary: str, head: str, begin: str, finish: str, place: str | None = None
    ) -> CallToolResult:
        """Add an entry."""
        self.calls.append(
            ("add_entry", {"diary": diary, "head": head, "begin": begin, "finish": finish, "place": place})
        )
        if self.fault.get("add_entry") == "refused":
            return _text("Error: the diary is locked", is_error=True)
        number = self._next
        self._next += 2
        keeps = place if self.fault.get("add_entry") != "forgets" else None
        self.entries[number] = {
            "id": number,
            "diary": diary,
            "head": head,
            "begin": begin,
            "finish": finish,
            "place": keeps,
        }
        if self.fault.get("add_entry") == "mumbles":
            return _text("done!")
        return _text({"id": number})

    async def change_entry(self, id: int, head: str | None = None) -> CallToolResult:  # noqa: A002  # its own word
        """Change an entry's head."""
        if id not in self.entries:
            return _text(f"Error: no entry {id}", is_error=True)
        self.entries[id]["head"] = head
        return _text({"id": id})

    async def drop_entry(self, id: int) -> CallToolResult:  # noqa: A002  # its own word
        """Drop an entry."""
        if self.entries.pop(id, None) is None:
            return _text(f"Error: no entry {id}", is_error=True)
        return _text("dropped")
