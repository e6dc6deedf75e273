"""Connecting: targets, sessions of both protocol eras, secrets, and typed clients with errors and safe retries."""

from hotplug.connect.channel import Channel, Reply
from hotplug.connect.client import Link, Options, Window, client, link_of
from hotplug.connect.mcp_channel import McpChannel
from hotplug.connect.packages import PackageId, package_of
from hotplug.connect.session import McpSession
from hotplug.connect.spoken import Spoken, Way, spoken
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
    "client",
    "link_of",
    "package_of",
    "parse_target",
    "spoken",
]
