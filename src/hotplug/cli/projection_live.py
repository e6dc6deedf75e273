"""A projection's upstream while it runs: its tools, and which package it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from hotplug.cli.deadline import Deadline
from hotplug.cli.targets import Given
from hotplug.errors import ConfigError, Unavailable

__all__ = ["Upstream", "upstream_of"]


@dataclass(frozen=True)
class Upstream:
    """A server's tools as it lists them, and what it is.

    Args:
        package: `npm:name`, `pypi:name`, or `command:` and the program's name.
    """

    tools: tuple[Mapping[str, Any], ...]
    package: str
    version: str | None
    server: Mapping[str, Any]


async def upstream_of(server: Given, limit: float) -> Upstream:
    """Start or reach a server and read its whole tool list; no tool is called.

    Raises:
        ConnectError: It can't be reached.
        Unavailable: Its tool list can't be read to the end, or has entries that are no tools.
        ConfigError: It is a native server, which needs no projection.
    """
    from hotplug.connect import McpSession, NativeTarget, package_of

    if isinstance(server.target, NativeTarget):
        raise ConfigError(
            f"{server.target} speaks its profile by itself", hint="projections are for servers that don't"
        )
    deadline = Deadline(limit)
    async with McpSession(server.target, start_timeout=limit, **server.session) as session:
        listed = await session.list_tools(timeout=deadline.left())
        info = session.server_info
    if not listed.complete:
        raise Unavailable(f"the tool list of {server.label} is incomplete: {listed.problem}")
    if listed.unusable:
        bad = "; ".join(f"{name} {reason}" for name, reason in listed.unusable.items())
        raise Unavailable(f"{server.label} lists what is no tool: {bad}")
    package = package_of(server.target)
    if package is not None:
        return Upstream(tuple(listed.as_wire()), f"{package.registry}:{package.name}", package.version, info)
    return Upstream(tuple(listed.as_wire()), f"command:{_program(server)}", None, info)


def _program(server: Given) -> str:
    """What to call a server that no package names: its script, else its program, else its own name for itself."""
    target: Any = getattr(server.target, "launch", server.target)
    words = [word for word in getattr(target, "argv", ()) if not word.startswith("-")]
    script = next((word for word in words[1:] if PurePath(word).suffix in {".py", ".js", ".mjs", ".ts"}), None)
    source = script or (words[0] if words else getattr(target, "source", None) or str(server.target))
    return PurePath(source).stem or "server"
