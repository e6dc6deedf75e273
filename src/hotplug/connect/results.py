"""What a server answered, as it stood on the wire: results of calls and lists of tools."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, cast

from hotplug.errors import ConnectionFailed, Internal, InvalidArgument, Undeclared, Unsupported, failure

__all__ = ["LIST_LIMIT", "TOOLS_LIMIT", "RawResult", "RpcError", "ToolList", "UpstreamTool", "read_tools"]

_TEXT_LIMIT: Final = 4000
TOOLS_LIMIT: Final = 10_000
"""Tools of one server that are taken; the largest real ones have some hundreds."""
LIST_LIMIT: Final = 16 * 2**20
"""Bytes of all the tools of one server."""
_DEPTH: Final = 100
"""Objects and lists in one another in a tool: everything that walks schemas may recurse."""


@dataclass(frozen=True, slots=True)
class RpcError:
    """A JSON-RPC error that the server answered a call with: an answer, not a lost connection."""

    code: int
    message: str
    data: Any = None


@dataclass(frozen=True, slots=True)
class RawResult:
    """A tool's result.

    Args:
        raw: The `result` member as received; empty where the server answered with a JSON-RPC error.
        rpc_error: That error.
    """

    raw: Mapping[str, Any]
    rpc_error: RpcError | None = None

    @property
    def is_error(self) -> bool:
        """Whether the server says that the call failed, in the result or by a JSON-RPC error."""
        return self.rpc_error is not None or self.raw.get("isError") is True

    @property
    def structured(self) -> Any:
        """`structuredContent`; none where there isn't any."""
        return self.raw.get("structuredContent")

    @property
    def content(self) -> tuple[Mapping[str, Any], ...]:
        """The content items as received."""
        content: Any = self.raw.get("content")
        if not isinstance(content, list):
            return ()
        items = cast("list[Any]", content)
        return tuple(cast("dict[str, Any]", item) for item in items if isinstance(item, dict))

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts of the text items; of a JSON-RPC error its message."""
        if self.rpc_error is not None:
            return (self.rpc_error.message,)
        return tuple(str(item.get("text", "")) for item in self.content if item.get("type") == "text")

    @property
    def meta(self) -> Mapping[str, Any]:
        """The result's `_meta`."""
        return cast("Mapping[str, Any]", self.raw.get("_meta") or {})

    @property
    def input_required(self) -> bool:
        """Whether this is no outcome but a question (2026-07-28): call again with the answers and `request_state`."""
        return self.raw.get("resultType") == "input_required"

    def failed(self) -> ConnectionFailed | None:
        """The failure as an exception to raise, none for a success.

        Read as the wire page says: the flag first, then `{code, message, details?}` in `structuredContent`, else as
        JSON in the text, else the text itself as `internal`.
        """
        if not self.is_error:
            return None
        if self.rpc_error is not None:
            return _of_rpc(self.rpc_error)
        for candidate in (self.structured, *map(_json, self.texts)):
            if (known := _of_body(candidate)) is not None:
                return known
        text = "\n".join(self.texts).strip()
        return Internal(
            text[:_TEXT_LIMIT] or "the tool failed and gave no reason", details={"text": text[:_TEXT_LIMIT]}
        )


@dataclass(frozen=True, slots=True)
class UpstreamTool:
    """A tool as its server lists it; `raw` is the whole entry in the shape of the wire."""

    name: str
    raw: Mapping[str, Any] = field(repr=False)

    @property
    def size(self) -> int:
        """Its length as JSON."""
        return len(json.dumps(self.raw))

    @property
    def description(self) -> str:
        """Its description, or nothing. The server's prose: a claim, not an instruction."""
        return str(self.raw.get("description") or "")

    @property
    def input_schema(self) -> Mapping[str, Any]:
        """Its input's JSON Schema."""
        return cast("Mapping[str, Any]", self.raw.get("inputSchema") or {"type": "object"})

    @property
    def output_schema(self) -> Mapping[str, Any] | None:
        """Its output's JSON Schema, if it has one."""
        return cast("Mapping[str, Any] | None", self.raw.get("outputSchema"))

    @property
    def annotations(self) -> Mapping[str, Any]:
        """Its annotations: claims."""
        return cast("Mapping[str, Any]", self.raw.get("annotations") or {})

    @property
    def meta(self) -> Mapping[str, Any]:
        """Its `_meta`, where members and extensions stand."""
        return cast("Mapping[str, Any]", self.raw.get("_meta") or {})


@dataclass(frozen=True, slots=True)
class ToolList:
    """A server's tools.

    Args:
        tools: In the server's order.
        complete: Whether every page was read.
        problem: Why not.
        unusable: Entries that are no tools, by name or place, with the reason; the others are not touched by them.
    """

    tools: tuple[UpstreamTool, ...]
    complete: bool = True
    problem: str | None = None
    unusable: Mapping[str, str] = field(default_factory=dict[str, str])

    def get(self, name: str) -> UpstreamTool | None:
        """The tool of that name."""
        return next((tool for tool in self.tools if tool.name == name), None)

    def as_wire(self) -> list[dict[str, Any]]:
        """The entries in the shape of the wire."""
        return [dict(tool.raw) for tool in self.tools]


def read_tools(page: Mapping[str, Any], *, start: int = 0) -> tuple[list[UpstreamTool], dict[str, str]]:
    """The tools of one page as received, and what in it is no tool, with the reason.

    Args:
        start: The place of its first entry in the whole list, for what has no name.
    """
    listed: Any = page.get("tools")
    if not isinstance(listed, list):
        return [], {"tools": f"is {type(listed).__name__}, not a list"}
    tools: list[UpstreamTool] = []
    unusable: dict[str, str] = {}
    for index, entry in enumerate(cast("list[Any]", listed), start):
        if not isinstance(entry, dict):
            unusable[f"#{index}"] = f"is {type(entry).__name__}, not an object"
            continue
        table = cast("dict[str, Any]", entry)
        name, schema = table.get("name"), table.get("inputSchema")
        if not isinstance(name, str) or not name:
            unusable[f"#{index}"] = "has no name"
        elif not isinstance(schema, dict):
            unusable[name] = "has no inputSchema"
        elif _deeper(table, _DEPTH):
            unusable[name] = f"is nested more than {_DEPTH} levels deep"
        else:
            tools.append(UpstreamTool(name, table))
    return tools, unusable


def _deeper(value: Any, limit: int) -> bool:
    """Whether a value has more than `limit` objects and lists in one another."""
    level: list[Any] = [value]
    for _ in range(limit + 1):
        inner: list[Any] = []
        for one in level:
            if isinstance(one, dict):
                inner += cast("dict[str, Any]", one).values()
            elif isinstance(one, list):
                inner += cast("list[Any]", one)
        if not inner:
            return False
        level = inner
    return True


def _of_body(body: Any) -> ConnectionFailed | None:
    if not isinstance(body, dict):
        return None
    table = cast("dict[str, Any]", body)
    code, message, details = table.get("code"), table.get("message"), table.get("details")
    if not isinstance(code, str) or not isinstance(message, str):
        return None
    return failure(code, message, cast("dict[str, Any]", details) if isinstance(details, dict) else None)


def _of_rpc(error: RpcError) -> ConnectionFailed:
    if (known := _of_body(error.data)) is not None:
        return known
    details: dict[str, Any] = {"rpcCode": error.code}
    match error.code:
        case -32602:
            return InvalidArgument(error.message, details=details)
        case -32601:
            return Undeclared(error.message, details=details)
        case -32021 | -32042:
            return Unsupported(error.message, details=details)
        case _:
            return Internal(error.message, details=details)


def _json(text: str) -> Any:
    if not text.lstrip().startswith("{"):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
