"""A tool of the everything server: how it is listed, and what runs it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mcp_types import ContentBlock, TextContent, Tool

from hotplug.testing.everything.call import Call

__all__ = ["Content", "EverythingTool", "text"]

Content = Sequence[ContentBlock] | str
"""What a tool gives: blocks, or the text of one."""


@dataclass(frozen=True, slots=True)
class EverythingTool:
    """A tool.

    Args:
        name: On the wire.
        description: On the wire.
        run: Gives the content of a successful result. What it raises becomes a result with `isError`, `MCPError` an
            error of the protocol, `Asking` a round of questions.
        schema: Of the arguments. Nothing checks them: what a tool needs it takes with a default.
    """

    name: str
    description: str
    run: Callable[[Call], Awaitable[Content]]
    schema: Mapping[str, Any] = field(default_factory=lambda: {"type": "object", "properties": {}})

    def listed(self) -> Tool:
        """As `tools/list` shows it."""
        return Tool(name=self.name, description=self.description, input_schema=dict(self.schema))


def text(content: str) -> TextContent:
    """A block of text."""
    return TextContent(type="text", text=content)
