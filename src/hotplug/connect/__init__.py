"""Connecting: targets, sessions of both protocol eras, secrets, and typed clients with errors and safe retries."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from hotplug.connect.channel import Channel, Reply
    from hotplug.connect.client import Link, Options, Window, link_of, typed_client
    from hotplug.connect.mcp_channel import McpChannel
    from hotplug.connect.packages import PackageId, package_of
    from hotplug.connect.session import McpSession
    from hotplug.connect.spoken import Spoken, Way, speaks
    from hotplug.connect.target import (
        CommandTarget,
        EntryTarget,
        HttpTarget,
        NamedTarget,
        NativeTarget,
        ObjectTarget,
        PackageTarget,
        PythonTarget,
        Target,
        parse_target,
    )

__all__ = [
    "Channel",
    "CommandTarget",
    "EntryTarget",
    "HttpTarget",
    "Link",
    "McpChannel",
    "McpSession",
    "NamedTarget",
    "NativeTarget",
    "ObjectTarget",
    "Options",
    "PackageId",
    "PackageTarget",
    "PythonTarget",
    "Reply",
    "Spoken",
    "Target",
    "Way",
    "Window",
    "link_of",
    "package_of",
    "parse_target",
    "speaks",
    "typed_client",
]

_HOMES: Final = {
    "Channel": "hotplug.connect.channel",
    "CommandTarget": "hotplug.connect.target",
    "EntryTarget": "hotplug.connect.target",
    "HttpTarget": "hotplug.connect.target",
    "Link": "hotplug.connect.client",
    "McpChannel": "hotplug.connect.mcp_channel",
    "McpSession": "hotplug.connect.session",
    "NamedTarget": "hotplug.connect.target",
    "NativeTarget": "hotplug.connect.target",
    "ObjectTarget": "hotplug.connect.target",
    "Options": "hotplug.connect.client",
    "PackageId": "hotplug.connect.packages",
    "PackageTarget": "hotplug.connect.target",
    "PythonTarget": "hotplug.connect.target",
    "Reply": "hotplug.connect.channel",
    "Spoken": "hotplug.connect.spoken",
    "Target": "hotplug.connect.target",
    "Way": "hotplug.connect.spoken",
    "Window": "hotplug.connect.client",
    "link_of": "hotplug.connect.client",
    "package_of": "hotplug.connect.packages",
    "parse_target": "hotplug.connect.target",
    "speaks": "hotplug.connect.spoken",
    "typed_client": "hotplug.connect.client",
}


def __getattr__(name: str) -> Any:
    # Imported when first used: reading a target needs neither the models of profiles nor the event loop's library.
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'hotplug.connect' has no attribute {name!r}")
    return getattr(importlib.import_module(home), name)
